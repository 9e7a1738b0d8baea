"""Judges: any chat model over the rows of a run; what was judged once is kept."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from nyima.domain.ports import ChatModel
from nyima.errors import ConfigError, ModelError
from nyima.language.words import cut_tokens
from nyima_lab.measure.asking import (
    BEST,
    CORRECT,
    PAIR,
    RUBRIC,
    SCORE,
    SINGLE,
    BestIn,
    PairIn,
    ScoreIn,
    SingleIn,
    ask,
)

__all__ = ["ASPECTS", "JUDGES", "AnswerJudge", "error_rate", "judge_rows"]

ASPECTS = ("engagingness", "coherence", "consistency")
_LETTERS = "ABCD"
_ANSWER = 160
_DIALOGUE = 300

JudgedRow = Mapping[str, Any]
Verdict = tuple[float, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class AnswerJudge:
    """A way to judge. ``sees`` is how many replies it looks at: 1, 2 (a reply and that of
    the first recipe) or 4 (all recipes). ``scale`` says what its score means; a judge that ``refers`` needs a reference, and
    leaves out what has none."""

    name: str
    about: str
    sees: int
    scale: str
    judge: Callable[[ChatModel, Sequence[JudgedRow]], Awaitable[Verdict]]
    refers: bool = True


def _cut(text: str, room: int = _ANSWER) -> str:
    return cut_tokens(text, room) or "-"


async def score(model: ChatModel, rows: Sequence[JudgedRow]) -> Verdict:
    """0, 1 or 2 against the reference (Yuan et al. 2023, appendix B.1), as 0, 0.5 or 1."""
    (row,) = rows
    out = await ask(model, SCORE, ScoreIn(_cut(row["text"]), _cut(row["reference"]), _cut(row["reply"])))
    return out.score / 2, {"score": out.score}


async def accuracy(model: ChatModel, rows: Sequence[JudgedRow]) -> Verdict:
    """Strict (correct) and lenient (at least partly) accuracy; the score is the strict one."""
    (row,) = rows
    out = await ask(model, CORRECT, ScoreIn(_cut(row["text"]), _cut(row["reference"]), _cut(row["reply"])))
    return float(out.verdict == "correct"), {"verdict": out.verdict, "lenient": out.verdict != "wrong"}


async def rubric(model: ChatModel, rows: Sequence[JudgedRow]) -> Verdict:
    """Whether a reply follows what its reference says of a good answer: 1, 0.5 or 0."""
    (row,) = rows
    out = await ask(model, RUBRIC, ScoreIn(_cut(row["text"]), _cut(row["reference"]), _cut(row["reply"])))
    return {"follows": 1.0, "partly": 0.5, "ignores": 0.0}[out.verdict], {"verdict": out.verdict}


async def _best(model: ChatModel, rows: Sequence[JudgedRow]) -> int:
    listed = "\n".join(f"{letter}: {_cut(row['reply'])}" for letter, row in zip(_LETTERS, rows, strict=False))
    given = BestIn(_cut(rows[0]["text"]), _cut(rows[0]["reference"]), listed)
    place = _LETTERS.index((await ask(model, BEST, given)).best)
    return place if place < len(rows) else -1


async def gsb(model: ChatModel, rows: Sequence[JudgedRow]) -> Verdict:
    """Good, same or bad against the first recipe, asked twice with exchanged positions; a
    disagreement is a tie (appendix B.2). The score is 1, 0 or -1."""
    mine, other = rows
    ahead = await _best(model, [mine, other])
    behind = await _best(model, [other, mine])
    won = {(0, 1): 1, (1, 0): -1}.get((ahead, behind), 0)
    return float(won), {"verdict": ("bad", "same", "good")[won + 1], "asked": [ahead, behind]}


async def choice(model: ChatModel, rows: Sequence[JudgedRow]) -> Verdict:
    """The best of up to four with positions drawn for each question (appendix B.3). The
    score is the place of the winner among the recipes, -1 for none."""
    order = list(range(len(rows)))
    random.Random(f"{rows[0]['case']}/{rows[0]['question']}").shuffle(order)  # noqa: S311 - positions
    place = await _best(model, [rows[i] for i in order])
    winner = order[place] if place >= 0 else -1
    return float(winner), {"winner": rows[winner]["recipe"] if winner >= 0 else "", "order": order}


async def single(model: ChatModel, rows: Sequence[JudgedRow]) -> Verdict:
    """1 to 100 on three aspects, the reason before the number (Wang et al. 2023, table 16);
    the score is their mean over 100."""
    (row,) = rows
    marks: dict[str, Any] = {}
    for aspect in ASPECTS:
        given = SingleIn(aspect, _known(row), _dialogue(row), _cut(row["reply"]))
        out = await ask(model, SINGLE, given)
        marks[aspect] = {"score": out.score, "reason": out.reason}
    return sum(m["score"] for m in marks.values()) / len(marks) / 100, marks


async def pair(model: ChatModel, rows: Sequence[JudgedRow]) -> Verdict:
    """Four ways between two replies, with positions balanced over the questions (Wang et
    al. 2023, table 17). The score is 1, 0 or -1 for the first of the two rows."""
    mine, other = rows
    turned = bool(random.Random(f"{mine['case']}/{mine['question']}/{mine['recipe']}").getrandbits(1))  # noqa: S311
    first, second = (other, mine) if turned else (mine, other)
    out = await ask(model, PAIR, PairIn(_known(mine), _dialogue(mine), _cut(first["reply"]), _cut(second["reply"])))
    won = {"first": 1, "second": -1}.get(out.verdict, 0) * (-1 if turned else 1)
    return float(won), {"verdict": out.verdict, "turned": turned, "won": ("loss", "tie", "win")[won + 1]}


def _known(row: JudgedRow) -> str:
    return cut_tokens(" ".join(row.get("known") or ()), 200) or "nothing"


def _dialogue(row: JudgedRow) -> str:
    return cut_tokens("\n".join([*(row.get("context") or ()), f"user: {row['text']}"]), _DIALOGUE)


_ALL = (
    AnswerJudge("score", "0, 1 or 2 against the reference", 1, "0..1", score),
    AnswerJudge("accuracy", "correct, partly or wrong", 1, "strict 0..1", accuracy),
    AnswerJudge("rubric", "follows, partly or ignores what the reference asks for", 1, "0..1", rubric),
    AnswerJudge("gsb", "good, same or bad against the first recipe", 2, "-1..1", gsb),
    AnswerJudge("choice", "the best of up to four", 4, "share won", choice),
    AnswerJudge("single", "1 to 100 on three aspects", 1, "0..1", single, refers=False),
    AnswerJudge("pair", "four ways against the first recipe", 2, "-1..1", pair, refers=False),
)
JUDGES: Mapping[str, AnswerJudge] = {judge.name: judge for judge in _ALL}


async def judge_rows(
    judge: AnswerJudge,
    model: ChatModel,
    rows: Sequence[JudgedRow],
    recipes: Sequence[str],
    done: set[tuple[str, ...]],
    add: Callable[[dict[str, Any]], None],
) -> None:
    """Judge the answers of a run that were not judged yet. An answer that failed is not
    shown to the judge; a judge that fails makes a row that says so."""
    if judge.sees == 4 and not 2 <= len(recipes) <= 4:
        raise ConfigError(f"the judge {judge.name} compares two to four recipes, not {len(recipes)}")
    if judge.sees == 2 and len(recipes) < 2:
        raise ConfigError(f"the judge {judge.name} compares with the first recipe: give at least two")
    name = f"{judge.name}:{model.name}"
    by_question: dict[tuple[str, str], dict[str, JudgedRow]] = {}
    for row in rows:
        if row["row"] == "answer" and row["recipe"] in recipes:
            by_question.setdefault((row["case"], row["question"]), {})[row["recipe"]] = row
    for (case, question), answers in by_question.items():
        for recipe, other, shown in _shown(judge, answers, recipes):
            key = (name, case, question, recipe, other)
            if key in done or any(r["failed"] for r in shown) or (judge.refers and not shown[0]["reference"]):
                continue
            verdict: dict[str, Any] = {
                "row": "verdict", "judge": name, "case": case, "question": question, "recipe": recipe, "other": other,
                "score": 0.0, "detail": {}, "failed": "",
            }  # fmt: skip
            try:
                verdict["score"], verdict["detail"] = await judge.judge(model, shown)
            except ModelError as error:
                verdict["failed"] = f"{type(error).__name__}: {error}"
            add(verdict)


def _shown(
    judge: AnswerJudge, answers: Mapping[str, JudgedRow], recipes: Sequence[str]
) -> list[tuple[str, str, list[JudgedRow]]]:
    there = [r for r in recipes if r in answers]
    if judge.sees == 1:
        return [(r, "", [answers[r]]) for r in there]
    if len(there) < len(recipes):
        return []
    if judge.sees == 2:
        return [(r, recipes[0], [answers[r], answers[recipes[0]]]) for r in recipes[1:]]
    return [(" | ".join(recipes), "", [answers[r] for r in recipes])]


async def error_rate(judge: AnswerJudge, model: ChatModel) -> dict[str, Any]:
    """How often a judge is wrong on a small built-in set of right, partly right and wrong
    answers: ``wrong`` of ``n``; ``failed`` checks had no usable answer and count as wrong.
    A judge that compares must prefer the right answer to the wrong one; one that rates
    must rate it higher."""
    text = (resources.files("nyima_lab.measure") / "judge_check.jsonl").read_text("utf-8")
    wrong = n = failed = 0
    for number, line in enumerate(filter(None, text.split("\n"))):
        item = json.loads(line)
        rows = {
            kind: {
                "case": "check", "question": f"{number}", "recipe": kind, "text": item["question"],
                "reference": item["reference"], "reply": item[kind], "known": [item["reference"]], "context": [],
            }
            for kind in ("right", "partly", "wrong")
        }  # fmt: skip
        for good in await _checks(judge, model, rows):
            n += 1
            wrong += not good
            failed += good is None
    return {"judge": judge.name, "model": model.name, "wrong": wrong, "n": n, "failed": failed}


async def _checks(judge: AnswerJudge, model: ChatModel, rows: Mapping[str, JudgedRow]) -> list[bool | None]:
    """Whether each check was right; None where the judge gave no usable answer."""

    async def mark(*kinds: str) -> tuple[float, dict[str, Any]] | None:
        try:
            return await judge.judge(model, [rows[k] for k in kinds])
        except ModelError:
            return None

    if judge.sees > 1:
        both = await mark("right", "wrong")
        return [None if both is None else both[1].get("winner") == "right" if judge.name == "choice" else both[0] > 0]
    if judge.name == "single":
        good, bad = await mark("right"), await mark("wrong")
        return [None if good is None or bad is None else good[0] > bad[0]]
    wanted = {"right": 1.0, "partly": 0.0 if judge.name == "accuracy" else 0.5, "wrong": 0.0}
    found = {kind: await mark(kind) for kind in wanted}
    return [None if (got := found[kind]) is None else got[0] == value for kind, value in wanted.items()]
