"""The policy of the walk: three cosines in, include or stop out (Wang et al. 2024,
sections 4.3 and 5.1): 3-20-2 with tanh, softmax. Pure numpy; training is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nyima.errors import InputError

__all__ = ["HIDDEN", "STATE", "Policy", "RulePolicy", "WalkPolicy", "fresh_policy", "policy_from", "policy_of"]

STATE, HIDDEN, ACTIONS = 3, 20, 2
Array = NDArray[np.float64]


class WalkPolicy(Protocol):
    """Says how likely it is that a memory in this state belongs in."""

    def include(self, state: Sequence[float]) -> float:
        """The probability of including the memory and going on, 0..1."""
        ...


@dataclass(frozen=True, slots=True)
class RulePolicy:
    """Before anything was learned: a weighted mean of the cosines against a threshold, both
    measured in docs/LOG.md. The state is (node, edge, memory)."""

    weights: tuple[float, float, float] = (0.2, 0.1, 0.7)
    threshold: float = 0.2
    slope: float = 14.0

    def include(self, state: Sequence[float]) -> float:
        """The logistic function of the weighted mean."""
        mean = sum(w * s for w, s in zip(self.weights, state, strict=True))
        return float(1 / (1 + np.exp(-self.slope * (mean - self.threshold))))


@dataclass(frozen=True, slots=True)
class Policy:
    """The two layers: ``w1`` (20, 3), ``b1`` (20,), ``w2`` (2, 20), ``b2`` (2,)."""

    w1: Array
    b1: Array
    w2: Array
    b2: Array

    def forward(self, states: Array) -> tuple[Array, Array]:
        """States (n, 3) to hidden values (n, 20) and probabilities (n, 2) of stop and include."""
        hidden = np.tanh(states @ self.w1.T + self.b1)
        logits = hidden @ self.w2.T + self.b2
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        return hidden, shifted / shifted.sum(axis=1, keepdims=True)

    def include(self, state: Sequence[float]) -> float:
        """The probability of the action "include"."""
        return float(self.forward(np.asarray([state], float))[1][0, 1])

    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """The weights in a fixed order."""
        return self.w1, self.b1, self.w2, self.b2

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"shape": [STATE, HIDDEN, ACTIONS], "weights": [[float(v) for v in a.ravel()] for a in self.arrays()]}


def policy_of(learned: Mapping[str, Any]) -> WalkPolicy:
    """The policy with the weights that were learned; the rule where there are none."""
    return policy_from(learned["weights"]) if learned.get("weights") else RulePolicy()


def policy_from(values: Mapping[str, Any]) -> Policy:
    """The inverse of ``Policy.to_dict``. Raises InputError for anything else."""
    shapes = ((HIDDEN, STATE), (HIDDEN,), (ACTIONS, HIDDEN), (ACTIONS,))
    try:
        arrays = [np.asarray(v, float).reshape(s) for v, s in zip(values["weights"], shapes, strict=True)]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"these are no weights of the policy: {error}: train it again") from error
    if not all(np.isfinite(array).all() for array in arrays):
        raise InputError("these are no weights of the policy: some are no numbers: train it again")
    return Policy(*arrays)


def fresh_policy(seed: int = 0) -> Policy:
    """Small random weights; equal seeds give equal weights."""
    draw = np.random.default_rng(seed)
    return Policy(
        draw.normal(0, STATE**-0.5, (HIDDEN, STATE)),
        np.zeros(HIDDEN),
        draw.normal(0, HIDDEN**-0.5, (ACTIONS, HIDDEN)),
        np.zeros(ACTIONS),
    )
