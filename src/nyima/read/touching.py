"""The current claims that a message may touch: those that stand near it in words or in meaning, and
those of the people and things that it names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from nyima.domain.conversation import Scope
from nyima.domain.ports import Probe, RecordFilter, Vector
from nyima.domain.records import ME, Claim, Entity, MemoryRecord, Status
from nyima.domain.storage import AskRecords, AskSearch, Store
from nyima.language.words import words
from nyima.read.ranking import reciprocal

__all__ = ["MOST_SHOWN", "touching"]

MOST_SHOWN = 6
"""How many claims a reply's prompt shows with their numbers."""

_NEAR = 12
_ENTITIES = 8
_OF_ENTITIES = 40
_ENDED = (Status.ENDED, Status.DENIED)


async def touching(
    store: Store,
    scope: Scope,
    embed: Callable[[str], Awaitable[Vector | None]],
    text: str,
    at: datetime,
    most: int = MOST_SHOWN,
) -> list[Claim]:
    """Return at most ``most`` claims that hold or are planned, the nearest first. The last places but
    one third go to claims of what the text names. Needs no chat model."""
    vector = await embed(text)
    probes = [
        Probe(words=text, kinds=("claim",), k=_NEAR, at=at),
        Probe(words=text, kinds=("entity",), k=_ENTITIES, at=at),
        *([Probe(vector=vector, kinds=("claim",), k=_NEAR, at=at)] if vector is not None else []),
    ]
    by_words, entities, *by_vector = await store.read(scope, [AskSearch(probe) for probe in probes])
    near = [c.id for c in reciprocal(by_words, by_vector[0] if by_vector else [])]
    named = tuple(hit.id for hit in entities if hit.id != ME)
    asks = [AskRecords(RecordFilter(ids=(*near, *named), at=at))]
    asks += [AskRecords(RecordFilter(kinds=("claim",), turns=named, at=at, limit=_OF_ENTITIES))] if named else []
    found, *linked = await store.read(scope, asks)
    return _chosen(near, found, linked[0] if linked else [], text, most)


def _chosen(
    near: Sequence[str], found: Sequence[MemoryRecord], linked: Sequence[MemoryRecord], text: str, most: int
) -> list[Claim]:
    by_id = {record.id: record for record in found}
    nearest = [c for id in near if isinstance(c := by_id.get(id), Claim) and c.status not in _ENDED]
    there = set(words(text))
    named = {e.id for e in found if isinstance(e, Entity) and any(_is_in(n, there) for n in (e.name, *e.aliases))}
    about = [
        c for c in linked
        if isinstance(c, Claim) and c.status not in _ENDED and (c.subject in named or c.object in named)
    ]  # fmt: skip
    about.sort(key=lambda c: (c.recorded.since, c.id), reverse=True)
    first = nearest[: most - most // 3]
    chosen = {c.id: c for c in (*first, *about[: most // 3], *nearest[len(first) :], *about[most // 3 :])}
    return list(chosen.values())[:most]


def _is_in(name: str, there: set[str]) -> bool:
    wanted = set(words(name))
    return bool(wanted) and wanted <= there
