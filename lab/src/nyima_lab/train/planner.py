"""The encoder-classifier planner (Wang et al. 2024, section 5.3.1): logistic regression on
an encoder's features of the dialogue, a threshold a source, NULL when none is above."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from nyima.domain.ports import Embedder
from nyima.errors import InputError
from nyima.mechanisms.graph.policy import Array
from nyima_lab.measure.grounded import ORDER, Sample, decision
from nyima_lab.measure.planning import planning_scores
from nyima_lab.train.loop import TrainingReport
from nyima_lab.train.retriever import query_text

__all__ = ["Trained", "logistic", "train_planner"]

_TRIED = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True, slots=True)
class Trained:
    """A planner: sources, weights (sources, d + 1) with the bias last, thresholds, how many
    utterances of the dialogue it reads, and its scores on the validation part."""

    sources: tuple[str, ...]
    weights: Array
    thresholds: Mapping[str, float]
    turns: int
    report: Mapping[str, Any]

    def save(self, folder: Path) -> None:
        """Write ``planner.json``, which ``ClassifierPlanner`` reads."""
        folder.mkdir(parents=True, exist_ok=True)
        body = {
            "sources": list(self.sources), "weights": self.weights.tolist(), "thresholds": dict(self.thresholds),
            "turns": self.turns, "report": dict(self.report),
        }  # fmt: skip
        (folder / "planner.json").write_text(json.dumps(body), "utf-8")


def logistic(features: Array, labels: Array, penalty: float = 1.0, steps: int = 30) -> Array:
    """Weights (d + 1,), bias last, of logistic regression by Newton's method. ``features``
    (n, d), ``labels`` (n,) of 0 and 1; ``penalty`` is on the squared weights, not the bias."""
    x = np.hstack([features, np.ones((len(features), 1))])
    weights = np.zeros(x.shape[1])
    ridge = penalty * np.eye(x.shape[1])
    ridge[-1, -1] = 1e-6
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        slope = x.T @ (chance - labels) + ridge @ weights
        curve = (x * (chance * (1 - chance))[:, None]).T @ x + ridge
        step = np.linalg.solve(curve, slope)
        weights -= step
        if float(np.abs(step).max()) < 1e-8:
            break
    return np.asarray(weights)


async def train_planner(
    parts: tuple[Sequence[Sample], Sequence[Sample]],
    embedder: Embedder,
    folder: Path,
    note: TrainingReport,
    turns: int = 2,
) -> Trained:
    """Learn on the first part, choose thresholds on the second, save to ``folder``."""
    train, valid = parts
    sources = tuple(s for s in ORDER if any(s in sample.plan for sample in train))
    if not sources or not valid:
        raise InputError("no sample needs a source: there is nothing to learn planning from")
    x, y = await _features(train, embedder, turns, note), await _features(valid, embedder, turns, note)
    weights = np.stack([logistic(x, np.array([float(s in t.plan) for t in train])) for s in sources])
    chances = 1 / (1 + np.exp(-np.clip(np.hstack([y, np.ones((len(y), 1))]) @ weights.T, -30, 30)))
    gold = [decision(t.plan) for t in valid]
    thresholds = _best(chances, sources, gold)
    report = planning_scores(gold, _plans(chances, sources, thresholds))
    trained = Trained(sources, weights, thresholds, turns, report)
    trained.save(folder)
    return trained


async def _features(samples: Sequence[Sample], embedder: Embedder, turns: int, note: TrainingReport) -> Array:
    found: list[Array] = []
    for start in range(0, len(samples), 64):
        texts = [query_text(s.lines(turns)) for s in samples[start : start + 64]]
        found += [np.frombuffer(v, "<f4").astype(np.float64) for v in await embedder.embed(texts)]
        note("features", len(found), len(samples))
    return np.stack(found)


def _plans(chances: Array, sources: tuple[str, ...], thresholds: Mapping[str, float]) -> list[str]:
    return [decision([s for i, s in enumerate(sources) if row[i] >= thresholds[s]]) for row in chances]


def _best(chances: Array, sources: tuple[str, ...], gold: Sequence[str]) -> dict[str, float]:
    """The thresholds with the best mean F1 of the decisions: decisions that are rare count
    as much as the common one, which else would always be taken."""

    def worth(chosen: Sequence[float]) -> tuple[float, Sequence[float]]:
        plans = _plans(chances, sources, dict(zip(sources, chosen, strict=True)))
        return float(planning_scores(gold, plans)["macro"]), chosen

    return dict(zip(sources, max(map(worth, product(_TRIED, repeat=len(sources))))[1], strict=True))
