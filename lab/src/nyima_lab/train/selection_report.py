"""The selection report: what a walk keeps of the required memories, learned and not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nyima.domain.ports import ChatModel, Embedder
from nyima.errors import InputError
from nyima.mechanisms.graph.learning import Reward
from nyima.mechanisms.graph.policy import Policy, RulePolicy, WalkPolicy
from nyima.mechanisms.graph.walk import walk
from nyima_lab.measure.selection import compare_policies, selection_rows
from nyima_lab.train.rewards import AnswerReward, QuoteReward
from nyima_lab.train.run import TrainingPlan, learn, split
from nyima_lab.train.samples import TrainingQuestion, examples_of

__all__ = ["selection_report", "selection_table"]


async def selection_report(
    kind: str,
    path: Path,
    embedder: Embedder | None,
    ks: Sequence[int],
    *,
    seed: int = 0,
    model: ChatModel | None = None,
    note: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Read the examples, learn on one part of the persons (or questions), report the other."""
    if embedder is None:
        raise InputError("selection compares vectors: set an embedding model")
    found: dict[int, list[TrainingQuestion]] = {}
    async for k, asked in examples_of(kind, path, embedder, ks, note):
        found.setdefault(k, []).append(asked)
    return await selection_table(found, seed, model)


async def selection_table(
    found: dict[int, list[TrainingQuestion]], seed: int, model: ChatModel | None = None
) -> dict[str, Any]:
    """Rows for each K and policy; the ablations without a warm start and without the gradient,
    and the A/B comparison of the rule with what was learned, at K = 3 (or the middle one)."""
    rows: list[dict[str, Any]] = []
    middle = 3 if 3 in found else sorted(found)[len(found) // 2]
    versus: dict[str, Any] = {}
    curves: dict[str, list[float]] = {}
    train: list[TrainingQuestion] = []
    test: list[TrainingQuestion] = []
    for k, asked in sorted(found.items()):
        train, test = split(asked, seed)
        reward: Reward = AnswerReward(model) if model is not None and k == middle else QuoteReward()
        policies: dict[str, WalkPolicy] = {"rule": RulePolicy()}
        examples = [a.example for a in train]
        stages = await learn(examples, TrainingPlan(k=k, seed=seed), reward, _silent)
        policies |= {name: policy for name, (policy, _) in stages.items()}
        if k == middle:
            alone = await learn(examples, TrainingPlan(k=k, seed=seed, warm=0), reward, _silent)
            policies["gradient alone"] = alone["policy gradient"][0]
            versus = compare_policies(test, RulePolicy(), stages["policy gradient"][0])
            curves = {name: curve for name, (_, curve) in stages.items()}
        measured = selection_rows(test, policies)
        rows += [{"k": k, "ms": _milliseconds(test, policies[row["policy"]]), **row} for row in measured]
    return {
        "learned_from": len(train), "reported": len(test), "seed": seed, "rows": rows, "a_b": versus,
        "curves": {name: [round(v, 4) for v in values[:: max(1, len(values) // 50)]] for name, values in curves.items()},
    }  # fmt: skip


def _milliseconds(test: Sequence[TrainingQuestion], policy: WalkPolicy | Policy) -> float:
    """How long a walk takes, without the search before it."""
    started = time.perf_counter()
    for asked in test:
        walk(asked.example.pieces, policy)
    return round((time.perf_counter() - started) * 1_000 / max(1, len(test)), 3)


def _silent(stage: str, done: int, total: int) -> None:
    del stage, done, total
