"""Selection: which share of the required memories a walk keeps, against as many tokens of
the best by cosine (Wang et al. 2024, tables 4 and 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from nyima.domain.evidence import Evidence
from nyima.language.words import tokens
from nyima.mechanisms.graph.policy import WalkPolicy
from nyima.mechanisms.graph.walk import walk
from nyima_lab.measure.stats import interval, t_test

_ENOUGH = 5

__all__ = ["compare_policies", "selection_rows"]


def _share(kept: Sequence[Evidence], required: frozenset[str]) -> float:
    return len({e.record.id for e in kept} & required) / len(required)


def _cut(ranked: Sequence[Evidence], room: int) -> list[Evidence]:
    """The best pieces that fit into so many tokens; at least one."""
    kept: list[Evidence] = []
    spent = 0
    for piece in ranked:
        spent += tokens(piece.text)
        if kept and spent > room:
            break
        kept.append(piece)
    return kept


def _clusters(asked: Sequence[Any]) -> list[str] | None:
    """Whole persons are drawn for an interval, where there are enough of them to draw."""
    groups = [a.example.group for a in asked]
    return groups if len(set(groups)) >= _ENOUGH else None


def selection_rows(asked: Sequence[Any], policies: Mapping[str, WalkPolicy]) -> list[dict[str, Any]]:
    """For each policy: the share of required memories that the walk keeps, its tokens, what
    cosine alone keeps of them in the same tokens, and the difference with its interval."""
    rows: list[dict[str, Any]] = []
    groups = _clusters(asked)
    for name, policy in policies.items():
        shares, spent, dense, precise = [], [], [], []
        for one in asked:
            kept, _ = walk(one.example.pieces, policy)
            kept = kept or list(one.dense[:1])
            used = sum(tokens(e.text) for e in kept)
            shares.append(_share(kept, one.example.required))
            precise.append(len({e.record.id for e in kept} & one.example.required) / len(kept))
            spent.append(used)
            dense.append(_share(_cut(one.dense, used), one.example.required))
        share, gap = interval(shares, groups), interval([a - b for a, b in zip(shares, dense, strict=True)], groups)
        rows.append(
            {
                "policy": name,
                "questions": len(asked),
                "share": round(share.mean, 4),
                "low": round(share.low, 4),
                "high": round(share.high, 4),
                "precision": round(fmean(precise), 4),
                "tokens": round(fmean(spent), 1),
                "dense": round(fmean(dense), 4),
                "gap": round(gap.mean, 4),
                "gap_low": round(gap.low, 4),
                "gap_high": round(gap.high, 4),
                "p": round(t_test(shares, dense), 4),
            }
        )
    return rows


def compare_policies(asked: Sequence[Any], one: WalkPolicy, other: WalkPolicy) -> dict[str, Any]:
    """An A/B comparison of two policies on the same questions: F1 of what they keep against
    what is required, with the interval of the difference."""

    def f1(policy: WalkPolicy, a: Any) -> float:
        ids = {e.record.id for e in walk(a.example.pieces, policy)[0]}
        hit = len(ids & a.example.required)
        return 2 * hit / (len(ids) + len(a.example.required)) if ids else 0.0

    first, second = [f1(one, a) for a in asked], [f1(other, a) for a in asked]
    gap = interval([b - a for a, b in zip(first, second, strict=True)], _clusters(asked))
    return {
        "questions": len(asked), "A": round(fmean(first), 4), "B": round(fmean(second), 4),
        "gap": round(gap.mean, 4), "low": round(gap.low, 4), "high": round(gap.high, 4), "p": round(t_test(second, first), 4),
    }  # fmt: skip
