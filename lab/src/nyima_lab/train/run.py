"""Train the policy of a user's walk, and say what it gained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from nyima.domain.ports import ChatModel, Embedder
from nyima.errors import InputError
from nyima.mechanisms.graph.learning import Example, Gradient, Reward, reinforce, warm_start
from nyima.mechanisms.graph.policy import Policy, RulePolicy, WalkPolicy, fresh_policy
from nyima.mechanisms.graph.versions import Version, current, keep
from nyima.memory import Memory
from nyima_lab.measure.selection import selection_rows
from nyima_lab.train.rewards import AnswerReward, QuoteReward
from nyima_lab.train.samples import TrainingQuestion, dense_ranking, examples_of, own_examples

__all__ = ["TrainingPlan", "gather", "learn", "reward_of", "split", "thinned", "train_policy"]

RunReport = Callable[[str, int, int], None]
"""Told the stage, how much of it is done, and the whole."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How to train: ``k`` activated memories, episodes of both stages, the metric of the
    reward, and the seed. ``answers`` is "model" (a frozen model answers) or "quote"."""

    k: int = 3
    warm: int = 1_000
    gradient: int = 100
    rate: float = 0.001
    metric: str = "rouge"
    answers: str = "quote"
    seed: int = 0
    online: bool = False


async def gather(
    memory: Memory,
    model: ChatModel | None,
    embedder: Embedder | None,
    source: tuple[str, Path | None],
    k: int,
    note: RunReport,
) -> list[TrainingQuestion]:
    """The examples: of the user's own memory (with a model), of RealMem or of LongMemEval."""
    kind, path = source
    if kind == "own":
        if model is None:
            raise InputError(
                "questions about your own memory are made by a chat model: set NYIMA_MODEL, or give --realmem"
            )
        made = await own_examples(memory, model, k, note=lambda done, total: note("examples", done, total))
        return [TrainingQuestion(e, await dense_ranking(memory, e.question)) for e in made]
    if embedder is None or path is None:
        raise InputError("examples from a data set need an embedding model and a path")
    found = examples_of(kind, path, embedder, (k,), lambda done, total: note("examples", done, total))
    return [a async for _, a in found]


class _Grouped(Protocol):
    @property
    def example(self) -> Example: ...


G = TypeVar("G", bound=_Grouped)


def split(asked: Sequence[G], seed: int) -> tuple[list[G], list[G]]:
    """A part to learn from and a part to report, whole groups (persons) together; where
    there is one group only, questions are dealt."""
    groups = sorted({a.example.group for a in asked})
    draw = np.random.default_rng(seed)
    if len(groups) > 3:
        chosen = {groups[i] for i in draw.permutation(len(groups))[: max(1, round(0.6 * len(groups)))]}
        return [a for a in asked if a.example.group in chosen], [a for a in asked if a.example.group not in chosen]
    order = draw.permutation(len(asked))
    cut = max(1, round(0.6 * len(asked)))
    return [asked[i] for i in sorted(order[:cut])], [asked[i] for i in sorted(order[cut:])]


async def learn(
    examples: Sequence[Example], plan: TrainingPlan, reward: Reward, note: RunReport, start: Policy | None = None
) -> dict[str, tuple[Policy, list[float]]]:
    """The policies after the warm start and after the gradient stage, each with its curve."""
    curve: list[float] = []

    def warm_note(episode: int, loss: float) -> None:
        curve.append(loss)
        note("warm start", episode + 1, plan.warm)

    policy = start or fresh_policy(plan.seed)
    if plan.warm:
        policy = warm_start(policy, examples, episodes=plan.warm, rate=plan.rate, seed=plan.seed, note=warm_note)
    stages = {"warm start": (policy, curve)}
    returns: list[float] = []

    def gradient_note(episode: int, total: float) -> None:
        returns.append(total)
        note("policy gradient", episode + 1, plan.gradient)

    if plan.gradient:
        policy = await reinforce(
            policy, examples, reward, Gradient(plan.gradient, plan.rate, seed=plan.seed), gradient_note
        )
        stages["policy gradient"] = (policy, returns)
    return stages


def reward_of(plan: TrainingPlan, model: ChatModel | None) -> Reward:
    """What an answer earns. Raises InputError where it needs a model and there is none."""
    if plan.answers != "model":
        return QuoteReward()
    if model is None:
        raise InputError("answers by a model need a chat model: set NYIMA_MODEL, or use --answers quote")
    return AnswerReward(model, plan.metric)


async def train_policy(
    memory: Memory, asked: Sequence[TrainingQuestion], plan: TrainingPlan, model: ChatModel | None, note: RunReport
) -> tuple[Version, dict[str, Any]]:
    """Learn on one part, report another, and use what was learned. The report has the curve
    and the table; each version says which came before."""
    if len(asked) < 5:
        raise InputError(f"{len(asked)} examples are too few to learn from: talk some more, or give --realmem")
    reward = reward_of(plan, model)
    train, test = split(asked, plan.seed)
    before = await current(memory)
    stages = await learn([a.example for a in train], plan, reward, note)
    policies: dict[str, WalkPolicy] = {"rule": RulePolicy()}
    if before.number:
        policies[f"version {before.number}"] = before.policy
    policies |= {name: policy for name, (policy, _) in stages.items()}
    table = selection_rows(test, policies)
    last = list(stages.values())[-1][0]
    report = {
        "after": before.number, "examples": len(train), "tested": len(test), "k": plan.k, "seed": plan.seed, "answers": plan.answers,
        "table": table, "curve": {name: thinned(values) for name, (_, values) in stages.items()},
    }  # fmt: skip
    sources = {p.record.id for a in train for p in a.example.pieces if a.example.group == "own"}
    version = await keep(memory, last, report, sources)
    return version, report


def thinned(values: Sequence[float]) -> list[float]:
    """At most fifty points of a curve, each the mean of its stretch."""
    size = max(1, len(values) // 50)
    return [round(float(np.mean(values[i : i + size])), 4) for i in range(0, len(values), size)]
