"""TransE (Bordes et al. 2013) in numpy: entities and relations as vectors with
head + relation ≈ tail; margin ranking against corrupted triples.

Wang et al. 2024, section 4.2, assign each entity to its nearest subclass by it: subclasses
are entities here, and ``in_subclass`` is one of the relations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nyima.errors import InputError
from nyima.mechanisms.graph.policy import Array

__all__ = ["IN_SUBCLASS", "TransE", "TransESettings", "train_transe"]

IN_SUBCLASS = "in_subclass"


@dataclass(frozen=True, slots=True)
class TransESettings:
    """``size`` of a vector, ``margin``, ``rate`` of learning, ``epochs`` and the ``seed``
    from which all chance comes."""

    size: int = 32
    margin: float = 1.0
    rate: float = 0.05
    epochs: int = 300
    seed: int = 0


@dataclass(frozen=True, slots=True)
class TransE:
    """Learned vectors: entities (n, size), each of length 1 at most, and relations (m, size)."""

    entities: Mapping[str, int]
    relations: Mapping[str, int]
    entity: Array
    relation: Array
    losses: tuple[float, ...]

    def distance(self, head: str, relation: str, tail: str) -> float:
        """How far head + relation is from tail (L2); smaller is more plausible."""
        there = self.entity[self.entities[head]] + self.relation[self.relations[relation]]
        return float(np.linalg.norm(there - self.entity[self.entities[tail]]))

    def rank(self, head: str, relation: str, tail: str, known: Sequence[tuple[str, str, str]] = ()) -> int:
        """The place of a tail among all entities, from 1; other known tails are left out."""
        there = self.entity[self.entities[head]] + self.relation[self.relations[relation]]
        distances = np.linalg.norm(there - self.entity, axis=1)
        others = [self.entities[t] for h, r, t in known if (h, r) == (head, relation) and t != tail]
        distances[others] = np.inf
        return int((distances < distances[self.entities[tail]]).sum()) + 1

    def nearest(self, entity: str, choices: Sequence[str], relation: str = IN_SUBCLASS) -> str:
        """The choice that is nearest to entity + relation, ties by name."""
        return min(choices, key=lambda c: (self.distance(entity, relation, c), c))


def train_transe(
    triples: Sequence[tuple[str, str, str]],
    settings: TransESettings | None = None,
    note: Callable[[int, float], None] = lambda epoch, loss: None,
) -> TransE:
    """Learn from (head, relation, tail). Equal input and seed give equal vectors. Raises
    InputError without triples."""
    settings = settings or TransESettings()
    if not triples:
        raise InputError("there are no relations to learn from: say something first")
    entities = {name: i for i, name in enumerate(dict.fromkeys(e for h, _, t in triples for e in (h, t)))}
    relations = {name: i for i, name in enumerate(dict.fromkeys(r for _, r, _ in triples))}
    draw = np.random.default_rng(settings.seed)
    bound = 6 / settings.size**0.5
    entity = _unit(draw.uniform(-bound, bound, (len(entities), settings.size)))
    relation = _unit(draw.uniform(-bound, bound, (len(relations), settings.size)))
    rows = np.array([(entities[h], relations[r], entities[t]) for h, r, t in triples])
    there = {tuple(row) for row in rows.tolist()}
    losses: list[float] = []
    for epoch in range(settings.epochs):
        order = draw.permutation(len(rows))
        wrong = _corrupted(rows[order], len(entities), there, draw)
        losses.append(_step(entity, relation, rows[order], wrong, settings))
        note(epoch, losses[-1])
    return TransE(entities, relations, entity, relation, tuple(losses))


def _unit(vectors: Array) -> Array:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float64)


def _corrupted(
    rows: NDArray[np.int64], count: int, there: set[tuple[int, ...]], draw: np.random.Generator
) -> NDArray[np.int64]:
    """Each triple with its head or tail replaced, so that it is not a known one where that
    can be helped."""
    wrong = rows.copy()
    for row in wrong:
        side = 0 if draw.random() < 0.5 else 2
        for _ in range(10):
            row[side] = draw.integers(count)
            if tuple(row.tolist()) not in there:
                break
    return wrong


def _step(
    entity: Array, relation: Array, rows: NDArray[np.int64], wrong: NDArray[np.int64], settings: TransESettings
) -> float:
    """One pass in small batches; the mean loss. Entities are brought back to length 1."""
    total = 0.0
    for start in range(0, len(rows), 64):
        good, bad = rows[start : start + 64], wrong[start : start + 64]
        near = entity[good[:, 0]] + relation[good[:, 1]] - entity[good[:, 2]]
        far = entity[bad[:, 0]] + relation[bad[:, 1]] - entity[bad[:, 2]]
        d_near, d_far = np.linalg.norm(near, axis=1), np.linalg.norm(far, axis=1)
        loss = np.maximum(0.0, settings.margin + d_near - d_far)
        total += float(loss.sum())
        active = (loss > 0)[:, None]
        pull = active * near / np.maximum(d_near, 1e-12)[:, None] * settings.rate
        push = active * far / np.maximum(d_far, 1e-12)[:, None] * settings.rate
        np.add.at(entity, good[:, 0], -pull)
        np.add.at(entity, good[:, 2], pull)
        np.add.at(relation, good[:, 1], -pull)
        np.add.at(entity, bad[:, 0], push)
        np.add.at(entity, bad[:, 2], -push)
        np.add.at(relation, bad[:, 1], push)
        entity /= np.maximum(1.0, np.linalg.norm(entity, axis=1, keepdims=True))
    return total / len(rows)
