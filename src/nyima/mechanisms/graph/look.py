"""A look at the memory graph: what stands around an entity, and the history of a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nyima.change.opened import OpenMemory
from nyima.domain.conversation import Turn
from nyima.domain.evidence import Budget
from nyima.domain.ports import RecordFilter
from nyima.domain.records import ME, Entity, MemoryRecord, Relation
from nyima.errors import NotFound
from nyima.language.english.mentions import stems

__all__ = ["Neighbourhood", "Value", "entity_named", "history_of", "neighbourhood"]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities by id, the relations between them, and where one began to look."""

    root: str
    entities: Mapping[str, Entity]
    relations: tuple[Relation, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a claim: the relation with its intervals, its entities' names, and the
    turns that say so."""

    relation: Relation
    head: str
    tail: str
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
    linked = await memory.store.records(memory.scope, RecordFilter(kinds=("relation",)))
    degree = {e.id: sum(e.id in {r.head, r.tail} for r in linked if isinstance(r, Relation)) for e in like}
    if like:
        return min(like, key=lambda e: (len(stems(e.name)), -degree[e.id], e.id))
    some = ", ".join(sorted({e.name for e in entities})[:12])
    raise NotFound(
        f"the graph has no {name!r}" + (f": it has {some}" if some else ": it is empty, say something first")
    )


async def neighbourhood(memory: OpenMemory, root: Entity, depth: int = 2, *, retired: bool = False) -> Neighbourhood:
    """What is related to an entity, over at most ``depth`` relations; through the user's
    node it does not go, since everything hangs there."""
    now = memory.clock.now()
    relations: dict[str, Relation] = {}
    ends, seen = {root.id}, set[str]()
    for _ in range(depth):
        where = RecordFilter(kinds=("relation",), turns=tuple(sorted(ends)), at=now, retired=retired)
        found = [r for r in await memory.store.records(memory.scope, where) if isinstance(r, Relation)]
        found = [r for r in found if {r.head, r.tail} & ends]
        relations |= {r.id: r for r in found}
        seen |= ends
        ends = {id for r in found for id in (r.head, r.tail)} - seen - {ME}
        if not ends:
            break
    relations |= {r.id: r for r in await _belonging(memory, root, retired=retired)}
    ids = tuple({id for r in relations.values() for id in (r.head, r.tail)} | {root.id})
    records = await memory.store.records(memory.scope, RecordFilter(ids=ids, retired=True))
    entities = {r.id: r for r in records if isinstance(r, Entity)}
    return Neighbourhood(root.id, entities, tuple(relations.values()))


async def _belonging(memory: OpenMemory, root: Entity, *, retired: bool) -> list[Relation]:
    """What is said of the root's own things: "user's office" is the user's by its name."""
    entities = [r for r in await memory.records(kinds=("entity",)) if isinstance(r, Entity)]
    own = tuple(e.id for e in entities if e.name.startswith(f"{root.name}'s "))
    if not own:
        return []
    where = RecordFilter(kinds=("relation",), turns=own, at=memory.clock.now(), retired=retired)
    found = await memory.store.records(memory.scope, where)
    return [r for r in found if isinstance(r, Relation) and r.head in own]


async def history_of(memory: OpenMemory, query: str) -> list[Value]:
    """Every value of the claim that a query means, oldest first. Raises NotFound."""
    claim = await _claim(memory, query)
    where = RecordFilter(kinds=("relation",), claims=(claim.claim,) if claim.claim else (), retired=True)
    found = [r for r in await memory.store.records(memory.scope, where) if isinstance(r, Relation)]
    names = await _names(memory, found)
    turn_ids = tuple({t for r in found for t in r.provenance.turns})
    turns = {t.id: t for t in await memory.store.turns(memory.scope, ids=turn_ids)} if turn_ids else {}
    values = [
        Value(
            r, names.get(r.head, ""), names.get(r.tail, ""), tuple(turns[t] for t in r.provenance.turns if t in turns)
        )
        for r in found
    ]
    return sorted(values, key=lambda v: (v.relation.valid.since, v.relation.recorded.since, v.relation.id))


async def _claim(memory: OpenMemory, query: str) -> Relation:
    """The relation that a query means, closed ones too: by its words, then by meaning."""
    every = await memory.store.records(memory.scope, RecordFilter(kinds=("relation",), retired=True))
    relations = [r for r in every if isinstance(r, Relation)]
    names = await _names(memory, relations)
    wanted = stems(query)
    best: tuple[int, str, Relation] | None = None
    for relation in relations:
        said = " ".join((names.get(relation.head, ""), relation.label.replace("_", " "), relation.note))
        score = len(wanted & stems(said)) * 2 + len(wanted & stems(relation.label.replace("_", " ")))
        if score and (best is None or (score, relation.id) > best[:2]):
            best = (score, relation.id, relation)
    if best is not None:
        return best[2]
    kept = (await memory.recall(query, Budget(5, 10_000), kinds=("relation",), log=False)).kept
    found = [e.record for e in kept if isinstance(e.record, Relation)]
    if not found:
        raise NotFound(f"the graph has nothing on {query!r}: `nyima graph show` lists what it has")
    return found[0]


async def _names(memory: OpenMemory, relations: Sequence[MemoryRecord]) -> dict[str, str]:
    ids = tuple({id for r in relations if isinstance(r, Relation) for id in (r.head, r.tail)})
    found = await memory.store.records(memory.scope, RecordFilter(ids=ids, retired=True)) if ids else []
    return {e.id: e.name for e in found if isinstance(e, Entity)}
