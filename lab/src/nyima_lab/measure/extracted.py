"""Quality of what was extracted, by people: a sheet to fill in, and its shares (Wang et al.
2024, section 5.2 (8), table 7)."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nyima.domain.records import Claim
from nyima.errors import InputError
from nyima.language.words import fold
from nyima.mechanisms.graph.learning import Example
from nyima.memory import Memory
from nyima_lab.measure.stats import interval

__all__ = ["read_sheet", "write_sheet"]

_COLUMNS = ("kind", "given", "stated", "right")
_MARKS = {"yes": True, "y": True, "1": True, "no": False, "n": False, "0": False}


async def write_sheet(memory: Memory, examples: Sequence[Example], path: Path) -> int:
    """A CSV with a line for every extracted memory beside its turns, and for every pair
    beside the memories that it needs; somebody writes yes or no into ``right``. The number
    of lines."""
    claims = [r for r in await memory.records(kinds=("claim",)) if isinstance(r, Claim) and r.provenance.turns]
    turns = {t.id: t.text for t in await memory.turns()}
    texts = {r.id: r.text for r in claims}
    rows = [("memory", " ".join(turns.get(t, "") for t in r.provenance.turns), r.text, "") for r in claims]
    rows += [
        ("pair", " ".join(texts.get(i, "") for i in sorted(e.required)), f"{e.question} {e.answer}", "")
        for e in examples
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([_COLUMNS, *rows])
    return len(rows)


def read_sheet(path: Path) -> dict[str, Any]:
    """The share of yes among memories and pairs, with 95 % intervals. Raises InputError for
    a sheet that is not one, or is not filled."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or set(rows[0]) != {*_COLUMNS}:
        raise InputError(f"{path} is no such sheet: its columns must be {', '.join(_COLUMNS)}")
    marks: dict[str, list[float]] = {}
    for number, row in enumerate(rows, 2):
        mark = _MARKS.get(fold(row["right"] or ""))
        if mark is None:
            raise InputError(f"{path}, line {number}: right is {row['right']!r}: write yes or no")
        marks.setdefault(row["kind"], []).append(float(mark))
    report: dict[str, Any] = {}
    for kind, values in marks.items():
        found = interval(values, [str(i) for i in range(len(values))])
        report[kind] = {"right": round(found.mean, 4), "low": round(found.low, 4), "high": round(found.high, 4), "n": len(values)}  # fmt: skip
    return report
