"""The memory graph: claims as edges between entities, walked by a learned policy (Wang et al. 2024,
section 4)."""

from __future__ import annotations

from nyima.domain.mechanism import Mechanism, Source
from nyima.mechanisms.graph.policy import policy_of
from nyima.mechanisms.graph.walk import WalkSelector, walked

__all__ = ["MECHANISM"]

MECHANISM = Mechanism(
    "graph",
    "people, things and events, how they are related, and what changes (Wang et al. 2024)",
    sources=(Source("graph", "people, things, events and how they are related to the user", kinds=("claim",)),),
    retrievers={"walk": walked},
    selectors={"policy": lambda kit, *cut: WalkSelector(policy_of(kit.learned.get("policy", {})), *cut)},
    learns=("policy",),
)
