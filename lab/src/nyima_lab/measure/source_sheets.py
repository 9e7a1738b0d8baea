"""The human sheet of replies from many sources (Wang et al. 2024, section 7.4): coherence 1
to 5, persona and knowledge consistency 0 or 1, by several annotators."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nyima.errors import InputError
from nyima_lab.measure.grounded import Sample
from nyima_lab.measure.sheets import load_sheet, save_sheet
from nyima_lab.measure.stats import fleiss_kappa, interval

__all__ = ["SCALES", "read_source_sheets", "write_source_sheet"]

SCALES: Mapping[str, tuple[str, ...]] = {
    "coherence": ("1", "2", "3", "4", "5"),
    "persona": ("0", "1"),
    "knowledge": ("0", "1"),
}
"""What is rated, and the marks that may be given."""

_COLUMNS = ("id", "dialogue", "message", "persona_text", "knowledge_text", "reply", *SCALES)


def _blind(setup: str, sample: str) -> str:
    return hashlib.sha256(f"{setup}\n{sample}".encode()).hexdigest()[:12]


def write_source_sheet(
    done: Mapping[str, Any], samples: Sequence[Sample], path: Path, sample: int, seed: int = 0
) -> int:
    """A blind sheet (CSV) of the replies of a run: as many turns of each set-up, shuffled, the
    set-up hidden. ``done`` is what ``nyima eval sources --part replies --out`` wrote. How
    many rows it has."""
    known = {s.id: s for s in samples}
    draw = random.Random(seed)  # noqa: S311 - a sample
    wanted = sorted({r["id"] for row in done.values() for r in row["rows"]} & set(known))
    chosen = set(draw.sample(wanted, min(sample, len(wanted))))
    rows: list[dict[str, object]] = []
    for row in done.values():
        for reply in (r for r in row["rows"] if r["id"] in chosen):
            turn = known[reply["id"]]
            gold = [p for p in turn.pieces if p.id in turn.gold]
            rows.append(
                {
                    "id": _blind(row["setup"], turn.id),
                    "dialogue": "\n".join(f"{role}: {text}" for role, text in turn.dialogue),
                    "message": turn.message,
                    "persona_text": "\n".join(p.text for p in gold if p.source != "documents"),
                    "knowledge_text": "\n".join(p.text for p in gold if p.source == "documents"),
                    "reply": reply["reply"],
                    **dict.fromkeys(SCALES, ""),
                }
            )
    if not rows:
        raise InputError("the run has no reply to these turns: give the data set that it was run on")
    draw.shuffle(rows)
    save_sheet(path, _COLUMNS, rows)
    return len(rows)


def read_source_sheets(done: Mapping[str, Any], sheets: Sequence[Path]) -> dict[str, Any]:
    """Filled sheets: the mean of each set-up with its interval, and Fleiss' kappa of each
    scale on the replies that all annotators rated. Raises InputError naming file and line."""
    setups = {_blind(row["setup"], r["id"]): row["setup"] for row in done.values() for r in row["rows"]}
    marks = [_marks(path, setups) for path in sheets]
    scores: dict[str, dict[str, Any]] = {}
    kappas: dict[str, float | None] = {}
    for scale in SCALES:
        values: dict[str, list[tuple[float, str]]] = {}
        for given in marks:
            for (id, name), mark in given.items():
                if name == scale:
                    values.setdefault(setups[id], []).append((float(mark), id))
        for setup, found in sorted(values.items()):
            value = interval([mark for mark, _ in found], [id for _, id in found])
            scores.setdefault(setup, {})[scale] = {
                "mean": round(value.mean, 4),
                "low": round(value.low, 4),
                "high": round(value.high, 4),
                "n": value.n,
            }
        shared = [k for k in marks[0] if k[1] == scale and all(k in m for m in marks)] if len(marks) > 1 else []
        kappas[scale] = round(fleiss_kappa([[m[k] for m in marks] for k in shared]), 4) if shared else None
    return {"annotators": len(marks), "scores": scores, "kappa": kappas}


def _marks(path: Path, setups: Mapping[str, str]) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for line in load_sheet(path, ("id", *SCALES)):
        if line["id"] not in setups:
            raise InputError(
                f"{path}:{line['']}: {line['id']!r} is no reply of this run: give the run that the sheet is from"
            )
        for scale, allowed in SCALES.items():
            mark = line[scale].strip()
            if mark and mark not in allowed:
                raise InputError(f"{path}:{line['']}: {scale} is {mark!r}: write one of {', '.join(allowed)}")
            if mark:
                found[line["id"], scale] = mark
    return found
