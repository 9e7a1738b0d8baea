"""The agent of M-RAG that selects a partition (Wang et al. 2024b, Agent-S; the adaptation of
Wang et al. 2024, section 5.1, leaves out Agent-R, which would alter memories)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Query
from nyima.domain.ports import Hit, Probe, Vector
from nyima.domain.storage import Store
from nyima.mechanisms.graph.policy import Array, Policy, policy_from

__all__ = ["PARTITION_AGENT", "PartitionAgent", "learned_agent", "partition_states", "seen_from"]

PARTITION_AGENT = "partition-agent"
"""The kind of event that holds an agent's weights."""

_SEEN = 2_000
_NEAREST = 20


async def seen_from(store: Store, scope: Scope, query: Query, vector: Vector) -> list[Hit]:
    """The memories as a question sees them, the nearest first."""
    probe = Probe(vector=vector, kinds=("claim",), k=_SEEN, at=query.at, as_of=query.as_of)
    return await store.search(scope, probe)


def partition_states(hits: Sequence[Hit]) -> dict[str, tuple[float, float, float]]:
    """Of each partition: the mean cosine of its memories, the best, and its share of the
    nearest twenty memories."""
    by_place: dict[str, list[float]] = {}
    for hit in hits:
        by_place.setdefault(hit.session, []).append(hit.score)
    near = [hit.session for hit in hits[:_NEAREST]]
    return {
        place: (sum(scores) / len(scores), max(scores), near.count(place) / len(near))
        for place, scores in sorted(by_place.items())
    }


@dataclass(frozen=True, slots=True)
class PartitionAgent:
    """Chooses by a softmax over the partitions; the network of the walk gives each a score."""

    policy: Policy

    def chances(self, states: Array) -> Array:
        """States (n, 3) to the probability of each partition (n,)."""
        _, pairs = self.policy.forward(states)
        scores = np.log(np.maximum(pairs[:, 1], 1e-12)) - np.log(np.maximum(pairs[:, 0], 1e-12))
        shifted = np.exp(scores - scores.max())
        total: Array = shifted / shifted.sum()
        return total

    def choose(self, states: Mapping[str, tuple[float, float, float]]) -> str:
        """The likeliest partition; empty when there is none."""
        if not states:
            return ""
        chances = self.chances(np.asarray(list(states.values()), float))
        return list(states)[int(np.argmax(chances))]


async def learned_agent(store: Store, scope: Scope) -> PartitionAgent | None:
    """The agent in use; None before any training."""
    found = await store.events(scope, PARTITION_AGENT, limit=1)
    weights = found[0].body.get("weights") if found else None
    return PartitionAgent(policy_from(weights)) if weights else None
