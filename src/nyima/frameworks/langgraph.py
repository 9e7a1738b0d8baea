"""A LangGraph store: ``graph.compile(store=NyimaStore(Memory.open("me.db")))``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from nyima.domain.records import Passage
from nyima.errors import InputError
from nyima.frameworks.shelf import Shelf
from nyima.memory import BlockingMemory, Memory
from nyima.sync import Opening

__all__ = ["NyimaStore"]

_COMPARE = {
    "$eq": lambda a, b: a == b, "$ne": lambda a, b: a != b, "$gt": lambda a, b: a > b, "$gte": lambda a, b: a >= b,
    "$lt": lambda a, b: a < b, "$lte": lambda a, b: a <= b,
}  # fmt: skip


class NyimaStore(BaseStore):
    """Items in a memory: found by meaning and words, with their history. Close it after use."""

    supports_ttl = False

    def __init__(self, memory: Opening[Memory, BlockingMemory]) -> None:
        """Over a memory that is about to be opened. Raises StoreError."""
        self._sync = memory.sync
        self._shelf = Shelf(self._sync.inner, "langgraph:")

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations in order, blocking."""
        return self._sync.wait(self._all(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations in order."""
        return await self._sync.wrap(self._all(list(ops)))

    def close(self) -> None:
        """Close the memory."""
        self._sync.close()

    async def _all(self, ops: list[Op]) -> list[Result]:
        return [await self._one(op) for op in ops]

    async def _one(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = await self._shelf.get(_where(op.namespace), op.key)
            return None if found is None else _item(found)
        if isinstance(op, PutOp):
            await self._put(op)
            return None
        if isinstance(op, SearchOp):
            return await self._search(op)
        return await self._namespaces(op)

    async def _put(self, op: PutOp) -> None:
        if op.value is None:
            await self._shelf.drop(_where(op.namespace), op.key)
            return
        try:
            text = json.dumps(dict(op.value), ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"the value of {op.key!r} is no JSON object: {error}") from error
        await self._shelf.put(_where(op.namespace), op.key, text)

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        def fits(passage: Passage) -> bool:
            item = _item(passage)
            return item.namespace[: len(op.namespace_prefix)] == op.namespace_prefix and _fits(item.value, op.filter)

        most = op.offset + op.limit
        scored: list[tuple[Passage, float | None]]
        if op.query:
            scored = list(await self._shelf.search(op.query, most, fits))
        else:
            scored = [(p, None) for p in reversed(await self._shelf.all()) if fits(p)]
        found = ((_item(passage), score) for passage, score in scored[op.offset : most])
        return [SearchItem(i.namespace, i.key, i.value, i.created_at, i.updated_at, score) for i, score in found]

    async def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        every = {_item(p).namespace for p in await self._shelf.all()}
        found = {n[: op.max_depth] for n in every if all(_matches(n, c) for c in op.match_conditions or ())}
        return sorted(found)[op.offset : op.offset + op.limit]


def _where(namespace: tuple[str, ...]) -> str:
    return json.dumps(list(namespace), ensure_ascii=False)


def _item(passage: Passage) -> Item:
    namespace = tuple(json.loads(passage.document.partition(":")[2]))
    at = passage.recorded.since
    return Item(value=json.loads(passage.body), key=passage.place, namespace=namespace, created_at=at, updated_at=at)


def _fits(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    for key, condition in (wanted or {}).items():
        found = value.get(key)
        tests = (
            condition
            if isinstance(condition, dict) and any(str(k).startswith("$") for k in condition)
            else {"$eq": condition}
        )
        for how, other in tests.items():
            if how not in _COMPARE:
                raise InputError(f"there is no filter {how!r}: give one of {', '.join(_COMPARE)}")
            try:
                if not _COMPARE[how](found, other):
                    return False
            except TypeError:
                return False
    return True


def _matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(want in {"*", have} for want, have in zip(path, part, strict=True))
