"""Retrievers: one step to evidence from one source, with scores in 0..1."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence, Query, Step
from nyima.domain.ports import Hit, Probe, RecordFilter, Vector
from nyima.domain.recipe import Weights
from nyima.domain.records import MemoryRecord
from nyima.domain.storage import AskRecords, Store
from nyima.read.ranking import Fused, coverage, fuse, reciprocal, spread

__all__ = ["SearchRetriever", "spoken"]

_CANDIDATES = 300


def spoken(query: Query, turns: int) -> str:
    """The last utterances of the dialogue and the text, each after a mark for its speaker,
    as trained encoders read a query."""
    before = query.dialogue[max(0, len(query.dialogue) - turns) :] if turns else ()
    marks = {"assistant": "[A]"}
    return " ".join(f"{marks.get(role, '[U]')} {text}" for role, text in (*before, ("user", query.text)))


@dataclass(frozen=True, slots=True)
class SearchRetriever:
    """Words, vectors or both over the records of a source.

    ``hybrid`` takes the union of both arms, fuses them by weight, and lets turns profit
    from their neighbours and their session. The scores of a step are scaled by how well
    the best pieces fit the query in absolute terms, so that a source without anything
    to the point scores low throughout.
    """

    store: Store
    embed: Callable[[str], Awaitable[Vector | None]]
    kinds: tuple[str, ...]
    how: str = "hybrid"
    weights: Weights = Weights()
    turns: int = 0
    region: str | None = None

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        """Up to ``step.k`` pieces, best first."""
        query = step.query
        vector = None
        if self.how != "words":
            vector = await self.embed(spoken(query, self.turns) if self.turns else query.words())
        lexical, dense = await asyncio.gather(self._by_words(scope, step), self._by_vector(scope, step, vector))
        if self.how == "reciprocal":
            fused = reciprocal(lexical, dense)
        else:
            fused = fuse(lexical, dense, self.weights, query.period)
            if self.weights.near or self.weights.session:
                fused = spread(fused, self.weights)
        return await self._evidence(scope, step, fused, words_only=not dense)

    async def _by_words(self, scope: Scope, step: Step) -> list[Hit]:
        if self.how == "vector":
            return []
        said = step.query.dialogue
        before = [text for _, text in said[max(0, len(said) - self.turns) :]] if self.turns else []
        return await self._search(scope, step, words=" ".join((*before, step.query.words())))

    async def _by_vector(self, scope: Scope, step: Step, vector: Vector | None) -> list[Hit]:
        return [] if vector is None else await self._search(scope, step, vector=vector)

    async def _search(self, scope: Scope, step: Step, words: str = "", vector: Vector | None = None) -> list[Hit]:
        query = step.query
        probe = Probe(
            words=words,
            vector=vector,
            kinds=self.kinds,
            k=max(_CANDIDATES, step.k),
            at=query.at,
            as_of=query.as_of,
            not_session=query.session,
            regions=(self.region,) if self.region else query.within,
        )
        return await self.store.search(scope, probe)

    async def _evidence(self, scope: Scope, step: Step, fused: Sequence[Fused], *, words_only: bool) -> list[Evidence]:
        if not fused:
            return []
        chosen = [c for c in fused[: max(step.k, 1)] if c.score > 0]
        records = await self._records(scope, chosen, step.query)
        best = fused[0].score
        pairs = [(c, r) for c in chosen if (r := records.get(c.id) or records.get(f"{c.session}\x1f{c.position}"))]
        absolute = max((_fit(step.query, c, r, words_only=words_only) for c, r in pairs[:5]), default=0.0)
        return [
            Evidence(
                text=record.text,
                source=step.source,
                score=round(absolute * candidate.score / best, 6),
                record=record,
                at=record.valid.since,
                scores={name: round(value, 4) for name, value in candidate.parts.items()},
            )
            for candidate, record in pairs
        ]

    async def _records(self, scope: Scope, chosen: Sequence[Fused], query: Query) -> dict[str, MemoryRecord]:
        ids = tuple(c.id for c in chosen if c.id)
        wheres = [RecordFilter(ids=ids, retired=True)] if ids else []
        beside: dict[str, list[int]] = {}
        for candidate in chosen:
            if not candidate.id:
                beside.setdefault(candidate.session, []).append(candidate.position)
        for session, positions in beside.items():
            places = (min(positions), max(positions))
            wheres.append(
                RecordFilter(kinds=("episode",), session=session, positions=places, at=query.at, as_of=query.as_of)
            )
        named, *near = await self.store.read(scope, [AskRecords(where) for where in wheres]) if wheres else [[]]
        if not ids:
            named, near = [], [named, *near]
        found: dict[str, MemoryRecord] = {record.id: record for record in named}
        for session, records in zip(beside, near if beside else (), strict=True):
            for record in records:
                found[f"{session}\x1f{getattr(record, 'position', -1)}"] = record
        return found


def _fit(query: Query, candidate: Fused, record: MemoryRecord, *, words_only: bool) -> float:
    """How well a piece fits in absolute terms, 0..1: its cosine and the query's words
    that it has; without vectors the words alone, read more leniently."""
    shared = coverage(query.words(), record.text)
    if words_only:
        return 0.8 * math.sqrt(shared)
    cosine = max(0.0, min(1.0, candidate.parts.get("vector", 0.0)))
    return 1 - (1 - cosine) * (1 - 0.8 * shared)
