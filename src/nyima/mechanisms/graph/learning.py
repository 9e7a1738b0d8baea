"""Training the walk's policy (Wang et al. 2024, sections 4.3 and 5.1): a warm start by
cross-entropy on the memories that an answer requires, then REINFORCE on what each memory
adds to the answer.

Equation 5 of the paper has a misprinted sign; this is the standard cross-entropy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nyima.domain.evidence import Evidence
from nyima.errors import InputError
from nyima.mechanisms.graph.policy import Array, Policy
from nyima.mechanisms.graph.walk import walk

__all__ = ["Adam", "Example", "Gradient", "Reward", "backward", "reinforce", "through", "warm_start"]

Reward = Callable[["Example", Sequence[Evidence]], Awaitable[float]]
"""The metric of the answer that a frozen reader gives from some memories, 0..1."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the neighbourhood that it activates, the ids of the memories that an
    answer requires, and the answer."""

    question: str
    pieces: tuple[Evidence, ...]
    required: frozenset[str]
    answer: str = ""
    group: str = ""


def backward(
    policy: Policy, states: Array, actions: NDArray[np.int64], weights: Array
) -> tuple[float, tuple[Array, ...]]:
    """The loss -Σ weight · ln π(action | state), and its gradients in the order of
    ``Policy.arrays``. ``states`` (n, 3), ``actions`` (n,) of 0 and 1, ``weights`` (n,)."""
    hidden, chances = policy.forward(states)
    rows = np.arange(len(states))
    loss = float(-(weights * np.log(np.maximum(chances[rows, actions], 1e-12))).sum())
    logits = chances.copy()
    logits[rows, actions] -= 1
    return loss, through(policy, states, hidden, logits * weights[:, None])


def through(policy: Policy, states: Array, hidden: Array, logits: Array) -> tuple[Array, ...]:
    """The gradients of the weights from those of the logits (n, 2)."""
    inner = (logits @ policy.w2) * (1 - hidden**2)
    return inner.T @ states, inner.sum(axis=0), logits.T @ hidden, logits.sum(axis=0)


@dataclass(slots=True)
class Adam:
    """Adam (Kingma and Ba 2015) with the paper's learning rate of 0.001."""

    rate: float = 0.001
    first: float = 0.9
    second: float = 0.999
    tiny: float = 1e-8
    steps: int = 0
    means: list[Array] = field(default_factory=list[Array])
    squares: list[Array] = field(default_factory=list[Array])

    def step(self, policy: Policy, gradients: Sequence[Array]) -> Policy:
        """The policy after one step against the gradients."""
        if not self.means:
            self.means = [np.zeros_like(g) for g in gradients]
            self.squares = [np.zeros_like(g) for g in gradients]
        self.steps += 1
        made: list[Array] = []
        for i, (weights, gradient) in enumerate(zip(policy.arrays(), gradients, strict=True)):
            self.means[i] = self.first * self.means[i] + (1 - self.first) * gradient
            self.squares[i] = self.second * self.squares[i] + (1 - self.second) * gradient**2
            mean = self.means[i] / (1 - self.first**self.steps)
            square = self.squares[i] / (1 - self.second**self.steps)
            made.append(weights - self.rate * mean / (np.sqrt(square) + self.tiny))
        return Policy(*made)


def _state(piece: Evidence) -> tuple[float, float, float]:
    return piece.scores["node"], piece.scores["edge"], piece.scores["memory"]


def warm_start(
    policy: Policy,
    examples: Sequence[Example],
    *,
    episodes: int = 1_000,
    rate: float = 0.001,
    seed: int = 0,
    note: Callable[[int, float], None] = lambda episode, loss: None,
) -> Policy:
    """Learn to include what is required: an episode takes one question's neighbourhood and
    one step on the mean cross-entropy. Required memories and the others weigh the same
    in sum, since most of a neighbourhood is never required. Raises InputError."""
    usable = [e for e in examples if any(p.record.id in e.required for p in e.pieces)]
    if not usable:
        raise InputError("no example reaches a memory that its answer requires: give other examples")
    draw, adam = np.random.default_rng(seed), Adam(rate)
    for episode in range(episodes):
        example = usable[int(draw.integers(len(usable)))]
        states = np.asarray([_state(p) for p in example.pieces])
        labels = np.asarray([int(p.record.id in example.required) for p in example.pieces])
        share = np.where(labels == 1, 1 / labels.sum(), 1 / max(1, (1 - labels).sum())) / 2
        loss, gradients = backward(policy, states, labels, share)
        policy = adam.step(policy, gradients)
        note(episode, loss)
    return policy


@dataclass(frozen=True, slots=True)
class Gradient:
    """How the second stage goes: the paper's 100 episodes, rate and discount."""

    episodes: int = 100
    rate: float = 0.001
    discount: float = 0.99
    seed: int = 0


async def reinforce(
    policy: Policy,
    examples: Sequence[Example],
    reward: Reward,
    stage: Gradient,
    note: Callable[[int, float], None] = lambda episode, total: None,
) -> Policy:
    """Learn from what the answer gains: an episode walks one question with sampled actions;
    each included memory is rewarded with the change of the metric (equation 3), each action
    with its discounted return, less the mean return of the episodes before."""
    if not examples:
        raise InputError("there are no questions to learn from: give examples")
    draw, adam = np.random.default_rng(stage.seed), Adam(stage.rate)
    usual = 0.0
    for episode in range(stage.episodes):
        example = examples[int(draw.integers(len(examples)))]
        kept, visits = walk(example.pieces, policy, draw.random)
        if not visits:
            continue
        rewards = await _rewards(example, kept, [v.record for v in visits if v.action], reward)
        gains = [rewards.get(v.record, 0.0) if v.action else 0.0 for v in visits]
        returns = np.zeros(len(visits))
        after = 0.0
        for i in range(len(visits) - 1, -1, -1):
            after = gains[i] + stage.discount * after
            returns[i] = after
        states = np.asarray([v.state for v in visits])
        actions = np.asarray([v.action for v in visits])
        _, gradients = backward(policy, states, actions, (returns - usual) / len(visits))
        policy = adam.step(policy, gradients)
        usual = 0.9 * usual + 0.1 * float(returns[0])
        note(episode, float(returns[0]))
    return policy


async def _rewards(
    example: Example, kept: Sequence[Evidence], order: Sequence[str], reward: Reward
) -> dict[str, float]:
    """The change of the metric with each memory that was added."""
    pieces = {p.record.id: p for p in kept}
    before = await reward(example, ())
    chosen: list[Evidence] = []
    gains: dict[str, float] = {}
    for id in order:
        chosen.append(pieces[id])
        now = await reward(example, chosen)
        gains[id] = now - before
        before = now
    return gains
