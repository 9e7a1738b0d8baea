"""Scores of planning, of relevance and of consistency (Wang et al. 2024, sections 5.3, 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

__all__ = ["calibration", "consistency_case", "planning_scores"]


def planning_scores(gold: Sequence[str], planned: Sequence[str]) -> dict[str, Any]:
    """Of each decision its F1, how often it is right and how often it was taken (table 3);
    ``accuracy``, and ``macro``, the mean F1 of the decisions that should be taken."""
    wanted, taken = Counter(gold), Counter(planned)
    hits = Counter(g for g, p in zip(gold, planned, strict=True) if g == p)
    rows = {
        name: {
            "f1": round(2 * hits[name] / max(1, wanted[name] + taken[name]), 4),
            "gold": wanted[name],
            "planned": taken[name],
        }
        for name in sorted(wanted | taken)
    }
    macro = sum(rows[name]["f1"] for name in wanted) / max(1, len(wanted))
    return {"decisions": rows, "accuracy": round(sum(hits.values()) / max(1, len(gold)), 4), "macro": round(macro, 4)}


def consistency_case(grounded: bool, planned: bool, entailed: bool) -> float:
    """Equation 11: with a grounding that was planned, whether the reply follows from it;
    1 when there is none and none was planned; 0 when only one of the two holds."""
    return float(entailed) if grounded and planned else float(grounded == planned)


def calibration(scores: Sequence[float], truth: Sequence[bool], bins: int = 11) -> dict[str, Any]:
    """How far relevance can be read as a probability: of each of the eleven scores how often
    it was given and how often rightly; ``ece``, the expected calibration error (Guo et al.
    2017), and ``brier``, the mean squared error."""
    rows: list[dict[str, float]] = []
    error = 0.0
    for i in range(bins):
        inside = [t for s, t in zip(scores, truth, strict=True) if round(s * (bins - 1)) == i]
        if inside:
            share, value = sum(inside) / len(inside), i / (bins - 1)
            rows.append({"score": round(value, 2), "count": len(inside), "used": round(share, 4)})
            error += len(inside) / len(scores) * abs(share - value)
    brier = sum((s - t) ** 2 for s, t in zip(scores, truth, strict=True)) / max(1, len(scores))
    return {"rows": rows, "ece": round(error, 4), "brier": round(brier, 4)}
