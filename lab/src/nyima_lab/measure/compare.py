"""Two runs side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nyima.errors import InputError
from nyima_lab.measure.runner import read_rows
from nyima_lab.measure.stats import paired
from nyima_lab.measure.tables import differences, scores_of

__all__ = ["compare_runs"]

_SHOWN = 10


def compare_runs(first: Path, second: Path, metric: str = "", recipes: Sequence[str] = ()) -> dict[str, Any]:
    """For each recipe of both runs (or the named pair) the paired difference of a metric,
    on the questions that both have, and which of them changed most."""
    one, two = _report(first), _report(second)
    shared = [m for m in one["metrics"] if m in two["metrics"]]
    if metric and metric not in shared:
        raise InputError(f"the metric {metric!r} is not in both runs; both have {', '.join(shared) or 'none'}")
    if not shared:
        raise InputError("the runs have no metric in common: judge both by the same judge")
    if recipes and len(recipes) != 2:
        raise InputError("--recipes takes two names: that of the first run, that of the second")
    both = [(r, r) for r in one["recipes"] if r in two["recipes"]]
    pairs = [(recipes[0], recipes[1])] if recipes else both
    if not pairs:
        raise InputError("the runs have no recipe in common: name two with --recipes one,other")
    rows, others = read_rows(first), read_rows(second)
    texts = {(r["case"], r["question"]): r["text"] for r in rows if r["row"] == "answer"}
    out: list[dict[str, Any]] = []
    for recipe, other in pairs:
        for name in [metric] if metric else shared[:1]:
            ours = scores_of(rows, recipe, name, one["recipes"][0], one["recipes"])
            theirs = scores_of(others, other, name, two["recipes"][0], two["recipes"])
            found = paired(ours, theirs)
            if found is None:
                continue
            moved = differences(ours, theirs)[:_SHOWN]
            listed = [{"case": k[0], "question": k[1], "text": texts[k], "by": round(v, 4)} for k, v in moved]
            out.append(
                {"recipe": recipe, "other": other, "metric": name, "difference": asdict(found), "changed": listed}
            )
    if not out:
        raise InputError("the runs have no question in common: compare runs on the same cases")
    return {"first": str(first), "second": str(second), "rows": out}


def _report(folder: Path) -> dict[str, Any]:
    path = folder / "report.json"
    try:
        report: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}): give the folder of a finished run") from error
    return report
