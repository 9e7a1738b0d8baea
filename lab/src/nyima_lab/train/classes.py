"""TransE over a user's own graph: entities, relations and subclasses in one space, each
entity at its nearest subclass (Wang et al. 2024, section 4.2)."""

from __future__ import annotations

from collections import Counter

from nyima.domain.records import Entity, Relation
from nyima.errors import InputError
from nyima.memory import Memory
from nyima_lab.train.transe import IN_SUBCLASS, TransE, TransESettings, train_transe

__all__ = ["assign", "embed_graph"]


def embed_graph(relations: list[Relation], epochs: int = 300, seed: int = 0) -> TransE:
    """The vectors of a graph; a relation's tail, the node that the memory hangs on, is in
    the relation's subclass."""
    triples = [(r.head, r.label, r.tail) for r in relations]
    triples += [(r.tail, IN_SUBCLASS, f"subclass {r.subclass}") for r in relations if r.subclass]
    return train_transe(list(dict.fromkeys(triples)), TransESettings(epochs=epochs, seed=seed))


async def assign(memory: Memory, epochs: int = 300, seed: int = 0) -> tuple[dict[str, str], float]:
    """The nearest subclass of each entity by name, and the last loss. Raises InputError for
    an empty graph."""
    records = await memory.records(kinds=("relation", "entity"))
    relations = [r for r in records if isinstance(r, Relation)]
    names = {r.id: r.name for r in records if isinstance(r, Entity)}
    if not relations:
        raise InputError("the graph is empty: say something first")
    learned = embed_graph(relations, epochs, seed)
    classes = [name for name in learned.entities if name.startswith("subclass ")]
    used = Counter(r.head for r in relations) + Counter(r.tail for r in relations)
    order = sorted((id for id in learned.entities if id in names), key=lambda e: (-used[e], names[e]))
    found = {names[id]: learned.nearest(id, classes).removeprefix("subclass ") for id in order if id != "user"}
    return found, learned.losses[-1]
