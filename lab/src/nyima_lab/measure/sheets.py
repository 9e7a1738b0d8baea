"""Sheets for people (CSV), what they filled in, and how far they agree."""

from __future__ import annotations

import csv
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nyima.domain.ports import ChatModel
from nyima.errors import InputError, ModelGarbled
from nyima.language.words import cut_tokens
from nyima_lab.measure.asking import ANNOTATE, AnnotateIn, ask
from nyima_lab.measure.cases import Case
from nyima_lab.measure.judges import ASPECTS
from nyima_lab.measure.stats import cohen_kappa, fleiss_kappa, interval

__all__ = [
    "agreement",
    "annotated",
    "human_agreement",
    "human_scores",
    "judge_agreement",
    "load_sheet",
    "save_sheet",
    "write_case_sheet",
    "write_reply_sheet",
]

_QUESTIONS = ("related", "fitting")
_ROOM = 1_500
_YES = {"yes", "y", "1", "true", "ja", "sim"}
_NO = {"no", "n", "0", "false", "nein", "não"}


def save_sheet(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Write a CSV file that spreadsheets open as UTF-8."""
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def load_sheet(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file; the empty key is the line's number. Raises InputError."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [c for c in columns if c not in (reader.fieldnames or ())]
            if missing:
                raise InputError(
                    f"{path}:1: the columns {', '.join(missing)} are missing: fill in a sheet that `nyima eval sheet` wrote"
                )
            return [
                {**dict.fromkeys(columns, ""), **{k: v or "" for k, v in row.items() if k}, "": f"{reader.line_num}"}
                for row in reader
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}: give a CSV file in UTF-8") from error


def write_case_sheet(cases: Sequence[Case], path: Path, sample: int, seed: int = 0) -> int:
    """A sheet for checking a built test set (Yuan et al. 2023, appendix A.1): is the question
    related to the dialogue, does the answer fit. How many rows it has."""
    items = [(c, q) for c in cases for q in c.questions]
    random.Random(seed).shuffle(items)  # noqa: S311 - a sample
    rows = [
        {
            "case": case.name, "question": q.id, "dialogue": "\n".join(f"{t.role.value}: {t.text}" for _, turns in case.sessions for t in turns),
            "asked": q.text, "answer": q.answer, **dict.fromkeys(_QUESTIONS, ""),
        }
        for case, q in items[:sample]
    ]  # fmt: skip
    save_sheet(path, ("case", "question", "dialogue", "asked", "answer", *_QUESTIONS), rows)
    return len(rows)


def write_reply_sheet(rows: Sequence[Mapping[str, Any]], path: Path, sample: int, seed: int = 0) -> int:
    """A blind sheet of replies, to be rated 0 to 2 for engagingness, coherence and
    consistency (Wang et al. 2023, section 5.2), and against the reference (``score``).
    How many rows it has."""
    answers = [r for r in rows if r["row"] == "answer" and not r["failed"]]
    random.Random(seed).shuffle(answers)  # noqa: S311 - a sample
    out = [
        {
            "id": _blind(r), "known": " ".join(r.get("known") or ()), "dialogue": "\n".join([*(r.get("context") or ()), f"user: {r['text']}"]),
            "reply": r["reply"], "reference": r["reference"], **dict.fromkeys((*ASPECTS, "score"), ""),
        }
        for r in answers[:sample]
    ]  # fmt: skip
    save_sheet(path, ("id", "known", "dialogue", "reply", *ASPECTS, "reference", "score"), out)
    return len(out)


def _blind(row: Mapping[str, Any]) -> str:
    key = json.dumps([row["case"], row["question"], row["recipe"]])
    return hashlib.sha256(key.encode()).hexdigest()[:12]


def human_scores(rows: Sequence[Mapping[str, Any]], sheets: Sequence[Path]) -> dict[str, Any]:
    """Filled reply sheets: means with intervals by recipe and aspect, and Fleiss' kappa of
    the raters on the replies that all rated."""
    recipes = {_blind(r): (r["recipe"], r["case"]) for r in rows if r["row"] == "answer"}
    rated: list[dict[tuple[str, str], int]] = []
    for path in sheets:
        marks: dict[tuple[str, str], int] = {}
        for line in load_sheet(path, ("id", *ASPECTS)):
            number = line[""]
            if line["id"] not in recipes:
                raise InputError(
                    f"{path}:{number}: {line['id']!r} is no reply of this run: give the run that the sheet is from"
                )
            for aspect in ASPECTS:
                written = line[aspect].strip()
                if written and written not in {"0", "1", "2"}:
                    raise InputError(f"{path}:{number}: {aspect} is {written!r}: write 0, 1 or 2")
                if written:
                    marks[line["id"], aspect] = int(written)
        rated.append(marks)
    found: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for marks in rated:
        for (id, aspect), value in marks.items():
            found.setdefault((recipes[id][0], aspect), []).append((float(value), recipes[id][1]))
    scores = {
        f"{recipe}/{aspect}": {"mean": i.mean, "low": i.low, "high": i.high, "n": i.n}
        for (recipe, aspect), values in sorted(found.items())
        for i in [interval([v for v, _ in values], [c for _, c in values])]
    }
    shared = sorted(set.intersection(*(set(m) for m in rated))) if len(rated) > 1 else []
    kappa = fleiss_kappa([[str(m[k]) for m in rated] for k in shared]) if shared else None
    return {"scores": scores, "kappa": kappa, "raters": len(rated), "shared": len(shared)}


def agreement(sheets: Sequence[Path]) -> dict[str, Any]:
    """Filled case sheets of several annotators: the share of items that is qualified (both
    answers yes, by the majority), and Fleiss' kappa (Yuan et al. 2023, table 7)."""
    read: list[dict[tuple[str, str], str]] = []
    for path in sheets:
        labels: dict[tuple[str, str], str] = {}
        for line in load_sheet(path, ("case", "question", *_QUESTIONS)):
            number = line[""]
            answers = [line[q].strip().casefold() for q in _QUESTIONS]
            if not any(answers):
                continue
            if any(a not in _YES | _NO for a in answers):
                raise InputError(
                    f"{path}:{number}: {', '.join(answers)!r} is not yes or no in {' and '.join(_QUESTIONS)}"
                )
            labels[line["case"], line["question"]] = "yes" if all(a in _YES for a in answers) else "no"
        read.append(labels)
    items = sorted(set.intersection(*(set(labels) for labels in read))) if read else []
    if not items:
        raise InputError("no item was judged by every annotator: fill in the same rows of each sheet")
    table = [[labels[item] for labels in read] for item in items]
    good = [float(row.count("yes") * 2 > len(row)) for row in table]
    kappa = fleiss_kappa(table) if len(read) > 1 else None
    found = interval(good, [item[0] for item in items])
    rate = {"mean": found.mean, "low": found.low, "high": found.high}
    return {"items": len(items), "annotators": len(read), "qualified": rate, "kappa": kappa}


def human_agreement(rows: Sequence[Mapping[str, Any]], judge: str, sheets: Sequence[Path]) -> dict[str, Any]:
    """How far a judge of 0, 1 or 2 agrees with what people wrote into ``score``."""
    blind = {_blind(r): (r["case"], r["question"], r["recipe"]) for r in rows if r["row"] == "answer"}
    people: dict[tuple[str, str, str], str] = {}
    for path in sheets:
        for line in load_sheet(path, ("id", "score")):
            if line["score"].strip():
                if line["id"] not in blind or line["score"].strip() not in {"0", "1", "2"}:
                    raise InputError(
                        f"{path}:{line['']}: {line['id']!r} with score {line['score']!r}: write 0, 1 or 2 for a reply of this run"
                    )
                people[blind[line["id"]]] = line["score"].strip()
    verdicts = {
        (r["case"], r["question"], r["recipe"]): r for r in rows if r["row"] == "verdict" and r["judge"] == judge
    }
    keys = sorted(k for k in people if k in verdicts and not verdicts[k]["failed"])
    if not keys:
        raise InputError(f"people and {judge!r} judged nothing in common: fill in the column score of the run's sheet")
    theirs = [people[k] for k in keys]
    its = [str(round(verdicts[k]["score"] * 2)) for k in keys]
    same = interval([float(a == b) for a, b in zip(theirs, its, strict=True)], [k[0] for k in keys])
    shown = {"mean": same.mean, "low": same.low, "high": same.high}
    return {"judge": judge, "n": len(keys), "same": shown, "kappa": cohen_kappa(theirs, its)}


async def annotated(cases: Sequence[Case], path: Path, sample: int, seed: int, model: ChatModel) -> int:
    """The case sheet as a model fills it in, one annotator among others. How many rows."""
    rows = write_case_sheet(cases, path, sample, seed)
    lines = load_sheet(path, ("case", "question", "dialogue", "asked", "answer", *_QUESTIONS))
    for line in lines:
        given = AnnotateIn(cut_tokens(line["dialogue"], _ROOM), line["asked"], line["answer"])
        try:
            out = await ask(model, ANNOTATE, given)
        except ModelGarbled:
            continue  # left empty, as a person would
        line["related"], line["fitting"] = ("yes" if out.related else "no"), ("yes" if out.fitting else "no")
    columns = ("case", "question", "dialogue", "asked", "answer", *_QUESTIONS)
    save_sheet(path, columns, [{c: line[c] for c in columns} for line in lines])
    return rows


def judge_agreement(rows: Sequence[Mapping[str, Any]], first: str, second: str) -> dict[str, Any]:
    """How far two judges of a run agree on what both judged: share and Cohen's kappa."""
    marks = {
        name: {(r["case"], r["question"], r["recipe"], r["other"]): str(r["score"]) for r in rows if r["row"] == "verdict" and r["judge"] == name and not r["failed"]}
        for name in (first, second)
    }  # fmt: skip
    keys = sorted(set(marks[first]) & set(marks[second]))
    if not keys:
        there = sorted({r["judge"] for r in rows if r["row"] == "verdict"})
        raise InputError(
            f"{first} and {second} judged nothing in common; the run has {', '.join(there) or 'no verdicts'}"
        )
    one, two = [marks[first][k] for k in keys], [marks[second][k] for k in keys]
    same = interval([float(a == b) for a, b in zip(one, two, strict=True)], [k[0] for k in keys])
    return {
        "judges": [first, second], "n": len(keys), "same": {"mean": same.mean, "low": same.low, "high": same.high},
        "kappa": cohen_kappa(one, two),
    }  # fmt: skip
