"""A look at the memory graph: what stands around an entity, and the history of a slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nyima.change.opened import OpenMemory
from nyima.domain.conversation import Turn
from nyima.domain.evidence import Budget
from nyima.domain.ports import RecordFilter
from nyima.domain.records import ME, Claim, Entity
from nyima.errors import NotFound
from nyima.language.words import stems

__all__ = ["Neighbourhood", "Value", "entity_named", "history_of", "neighbourhood"]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities by id, the claims between them, and where one began to look."""

    root: str
    entities: Mapping[str, Entity]
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a slot: the claim with its intervals, and the turns that say so."""

    claim: Claim
    turns: tuple[Turn, ...]


async def entity_named(memory: OpenMemory, name: str) -> Entity:
    """The entity of a name or id. Raises NotFound with what there is."""
    entities = [r for r in await memory.records(kinds=("entity",)) if isinstance(r, Entity)]
    wanted, words = name.casefold().strip(), stems(name)
    for entity in entities:
        if wanted in {entity.id.casefold(), *(n.casefold() for n in (entity.name, *entity.aliases))}:
            return entity
    if wanted in {"me", "i", "user", ""} and entities:
        return next((e for e in entities if e.id == ME), entities[0])
    like = [e for e in entities if words and words <= stems(" ".join((e.name, *e.aliases)))]
    linked = await memory.store.records(memory.scope, RecordFilter(kinds=("claim",)))
    degree = {e.id: sum(e.id in {r.subject, r.object} for r in linked if isinstance(r, Claim)) for e in like}
    if like:
        return min(like, key=lambda e: (len(stems(e.name)), -degree[e.id], e.id))
    some = ", ".join(sorted({e.name for e in entities})[:12])
    raise NotFound(
        f"the graph has no {name!r}" + (f": it has {some}" if some else ": it is empty, say something first")
    )


async def neighbourhood(memory: OpenMemory, root: Entity, depth: int = 2, *, retired: bool = False) -> Neighbourhood:
    """What is said of an entity, over at most ``depth`` claims; through the user's node it does not go,
    since everything hangs there."""
    now = memory.clock.now()
    claims: dict[str, Claim] = {}
    ends, seen = {root.id}, set[str]()
    for _ in range(depth):
        where = RecordFilter(kinds=("claim",), turns=tuple(sorted(ends)), at=now, retired=retired)
        found = [c for c in await memory.store.records(memory.scope, where) if isinstance(c, Claim)]
        found = [c for c in found if {c.subject, c.object} & ends]
        claims |= {c.id: c for c in found}
        seen |= ends
        ends = {id for c in found for id in (c.subject, c.object) if id} - seen - {ME}
        if not ends:
            break
    ids = tuple({id for c in claims.values() for id in (c.subject, c.object) if id} | {root.id})
    records = await memory.store.records(memory.scope, RecordFilter(ids=ids, retired=True))
    entities = {r.id: r for r in records if isinstance(r, Entity)}
    return Neighbourhood(root.id, entities, tuple(claims.values()))


async def history_of(memory: OpenMemory, query: str) -> list[Value]:
    """Every value of the slot that a query means, oldest first. Raises NotFound."""
    meant = await _meant(memory, query)
    found = [
        c for c in await memory.store.records(memory.scope, RecordFilter(slots=(meant.slot,), retired=True))
        if isinstance(c, Claim)
    ]  # fmt: skip
    turn_ids = tuple({t for c in found for t in c.provenance.turns})
    turns = {t.id: t for t in await memory.store.turns(memory.scope, ids=turn_ids)} if turn_ids else {}
    values = [Value(c, tuple(turns[t] for t in c.provenance.turns if t in turns)) for c in found]
    return sorted(values, key=lambda v: (v.claim.valid.since, v.claim.recorded.since, v.claim.id))


async def _meant(memory: OpenMemory, query: str) -> Claim:
    """The claim that a query means, closed ones too: by its words, then by meaning."""
    every = await memory.store.records(memory.scope, RecordFilter(kinds=("claim",), retired=True))
    wanted = stems(query)
    scored = [
        (len(wanted & stems(c.text)) * 2 + len(wanted & stems(c.attribute)), c.id, c)
        for c in every if isinstance(c, Claim)
    ]  # fmt: skip
    best = max(scored, default=None, key=lambda s: s[:2])
    if best is not None and best[0]:
        return best[2]
    kept = (await memory.recall(query, Budget(5, 10_000), kinds=("claim",), log=False)).kept
    found = [e.record for e in kept if isinstance(e.record, Claim)]
    if not found:
        raise NotFound(f"the graph has nothing on {query!r}: `nyima graph show` lists what it has")
    return found[0]
