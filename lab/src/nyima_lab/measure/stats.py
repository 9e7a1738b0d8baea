"""Intervals and agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Confidence", "Difference", "cohen_kappa", "fleiss_kappa", "interval", "paired", "t_test"]

_ROUNDS = 2_000
_SEED = 20_260_301


@dataclass(frozen=True, slots=True)
class Confidence:
    """A mean with its 95 % bootstrap interval; ``n`` values from ``clusters`` cases."""

    mean: float
    low: float
    high: float
    n: int
    clusters: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired difference of two means with its 95 % bootstrap interval, and on how many
    samples the first won, tied and lost."""

    mean: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}], {self.wins}/{self.ties}/{self.losses}"


def _means(values: Sequence[float], clusters: Sequence[str]) -> NDArray[np.float64]:
    """Means of resamples; whole cases are drawn, since their questions are not independent."""
    names = sorted(set(clusters))
    place = {name: i for i, name in enumerate(names)}
    sums, counts = np.zeros(len(names)), np.zeros(len(names))
    for value, cluster in zip(values, clusters, strict=True):
        sums[place[cluster]] += value
        counts[place[cluster]] += 1
    drawn = np.random.default_rng(_SEED).integers(0, len(names), (_ROUNDS, len(names)))
    return np.asarray(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), np.float64)


def interval(values: Sequence[float], clusters: Sequence[str] | None = None) -> Confidence:
    """The mean and its interval; values of one cluster are drawn together. With a single
    cluster the values are drawn."""
    if not values:
        return Confidence(0.0, 0.0, 0.0, 0, 0)
    groups = list(clusters) if clusters and len(set(clusters)) > 1 else [str(i) for i in range(len(values))]
    low, high = np.percentile(_means(values, groups), [2.5, 97.5])
    return Confidence(float(np.mean(values)), float(low), float(high), len(values), len(set(clusters or groups)))


def paired(first: Mapping[tuple[str, str], float], second: Mapping[tuple[str, str], float]) -> Difference | None:
    """First minus second on the (case, question) that both have; None when there is none."""
    keys = sorted(set(first) & set(second))
    if not keys:
        return None
    values = [first[k] - second[k] for k in keys]
    groups = [k[0] for k in keys]
    found = interval(values, groups)
    wins, losses = sum(v > 1e-9 for v in values), sum(v < -1e-9 for v in values)
    return Difference(found.mean, found.low, found.high, wins, len(values) - wins - losses, losses)


def t_test(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p of a paired t-test (Student 1908); 1.0 where nothing differs."""
    gaps = np.asarray(first, float) - np.asarray(second, float)
    if len(gaps) < 2 or not gaps.any():
        return 1.0
    if np.ptp(gaps) < 1e-9 * np.abs(gaps).max():  # the same gap everywhere
        return 0.0
    from scipy import stats  # it takes a second to load

    return float(stats.ttest_rel(first, second).pvalue)


def fleiss_kappa(ratings: Sequence[Sequence[str]]) -> float:
    """Agreement of several annotators beyond chance (Fleiss 1971): a row an item, a label
    an annotator; every row has as many. 1.0 where all give one and the same label."""
    labels = sorted({label for row in ratings for label in row})
    sizes = {len(row) for row in ratings}
    if len(sizes) != 1 or sizes <= {0, 1}:
        raise ValueError("each item needs the same number of annotators, at least two")
    counts = np.array([[row.count(label) for label in labels] for row in ratings], np.float64)
    raters = sizes.pop()
    agreed = ((counts**2).sum(axis=1) - raters) / (raters * (raters - 1))
    by_chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return 1.0 if by_chance >= 1.0 else float((agreed.mean() - by_chance) / (1 - by_chance))


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Agreement of two judges beyond chance (Cohen 1960)."""
    labels = sorted({*first, *second})
    agreed = sum(a == b for a, b in zip(first, second, strict=True)) / len(first)
    by_chance = sum(first.count(x) * second.count(x) for x in labels) / len(first) ** 2
    return 1.0 if by_chance >= 1.0 else (agreed - by_chance) / (1 - by_chance)
