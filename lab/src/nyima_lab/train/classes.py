"""TransE over a user's own graph: entities, claims and subclasses in one space, each
entity at its nearest subclass (Wang et al. 2024, section 4.2)."""

from __future__ import annotations

from collections import Counter

from nyima.domain.records import Claim, Entity
from nyima.errors import InputError
from nyima.memory import Memory
from nyima_lab.train.transe import IN_SUBCLASS, TransE, TransESettings, train_transe

__all__ = ["assign", "embed_graph"]


def embed_graph(claims: list[Claim], epochs: int = 300, seed: int = 0) -> TransE:
    """The vectors of a graph; a claim's object, the node that the memory hangs on, is in the
    claim's subclass."""
    triples = [(r.subject, r.attribute, r.object) for r in claims if r.object]
    triples += [(r.object, IN_SUBCLASS, f"subclass {r.subclass}") for r in claims if r.subclass and r.object]
    return train_transe(list(dict.fromkeys(triples)), TransESettings(epochs=epochs, seed=seed))


async def assign(memory: Memory, epochs: int = 300, seed: int = 0) -> tuple[dict[str, str], float]:
    """The nearest subclass of each entity by name, and the last loss. Raises InputError for
    an empty graph."""
    records = await memory.records(kinds=("claim", "entity"))
    claims = [r for r in records if isinstance(r, Claim)]
    names = {r.id: r.name for r in records if isinstance(r, Entity)}
    if not claims:
        raise InputError("the graph is empty: say something first")
    learned = embed_graph(claims, epochs, seed)
    classes = [name for name in learned.entities if name.startswith("subclass ")]
    used = Counter(r.subject for r in claims) + Counter(r.object for r in claims)
    order = sorted((id for id in learned.entities if id in names), key=lambda e: (-used[e], names[e]))
    found = {names[id]: learned.nearest(id, classes).removeprefix("subclass ") for id in order if id != "user"}
    return found, learned.losses[-1]
