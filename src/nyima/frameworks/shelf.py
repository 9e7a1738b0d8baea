"""Values that a program keeps under a name: as passages of a document, so that they are found,
quoted, kept in history and erased like all else, and never taken for the user's word."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from nyima.domain.changes import Add, Change, Delta, Retire
from nyima.domain.conversation import Origin, clean_text
from nyima.domain.evidence import Query, Step
from nyima.domain.recipe import Recipe, SourceSpec
from nyima.domain.records import Interval, Passage, Provenance
from nyima.errors import Conflict, ModelError
from nyima.memory import Memory

__all__ = ["Shelf"]

_TRIES = 5
_VALUES = Recipe("values", "what a program keeps", sources=(SourceSpec("documents"),))


@dataclass(frozen=True, slots=True)
class Shelf:
    """The values below a prefix, by document (where) and place (key)."""

    memory: Memory
    prefix: str
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def all(self) -> list[Passage]:
        """The values that hold now, oldest first."""
        found = await self.memory.records(kinds=("passage",))
        return [r for r in found if isinstance(r, Passage) and r.document.startswith(self.prefix)]

    async def get(self, where: str, key: str) -> Passage | None:
        """One value."""
        wanted = (clean_text(self.prefix + where), clean_text(key))
        return next((p for p in await self.all() if (p.document, p.place) == wanted), None)

    async def put(self, where: str, key: str, text: str) -> None:
        """Set a value; what it was stays in the history. The same value changes nothing."""
        for attempt in range(_TRIES):
            try:
                async with self._writing:
                    await self._put(where, key, clean_text(text))
            except Conflict:  # another process wrote in between: look again
                if attempt + 1 == _TRIES:
                    raise
            else:
                return

    async def _put(self, where: str, key: str, text: str) -> None:
        revision = await self.memory.store.revision(self.memory.scope)
        old, now = await self.get(where, key), self.memory.clock.now()
        if old is not None and old.body == text:
            return
        made = Provenance(writer="framework", origin=Origin.TOOL)
        new = Passage(
            id="d-" + uuid.uuid4().hex[:16], provenance=made, valid=Interval(now), recorded=Interval(now),
            document=clean_text(self.prefix + where), place=clean_text(key), body=text,
        )  # fmt: skip
        changes: list[Change] = [Retire(old.id, now, "replaced")] if old is not None else []
        await self.memory.store.commit(self.memory.scope, Delta((*changes, Add(new)), "framework"), expect=revision)

    async def drop(self, where: str, key: str) -> bool:
        """Erase a value for good, with what it was before; whether there was one."""
        found = [r for r in await self.memory.records(kinds=("passage",), retired=True) if isinstance(r, Passage)]
        wanted = (clean_text(self.prefix + where), clean_text(key))
        ids = [r.id for r in found if (r.document, r.place) == wanted]
        if ids:
            await self.memory.forget(*ids)
        return bool(ids)

    async def search(self, query: str, most: int, fits: Callable[[Passage], bool]) -> list[tuple[Passage, float]]:
        """The ``most`` values that fit a query best, of those that ``fits`` lets through, with
        their scores in 0..1, equal texts included."""
        wanted = {p.id: p for p in await self.all() if fits(p)}
        if not wanted:
            return []
        with contextlib.suppress(ModelError):  # then by words alone
            await self.memory.ingest.index(self.memory.scope)
        within = tuple(sorted({p.document for p in wanted.values()}))
        asked = Query(clean_text(query), self.memory.clock.now(), kinds=("passage",), within=within)
        retriever = self.memory.parts.recaller(_VALUES).retrievers["documents"]
        taken = 2 * most
        while True:  # of what stands there, some may not fit
            found = await retriever.retrieve(self.memory.scope, Step("documents", asked, taken))
            kept = [(wanted[e.record.id], e.score) for e in found if e.record.id in wanted]
            if len(kept) >= most or len(found) < taken:
                return kept[:most]
            taken *= 4
