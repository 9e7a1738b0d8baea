"""Judges: what they ask, in which order, and what they make of nonsense."""

from __future__ import annotations

import csv
import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from nyima.errors import ConfigError, InputError
from nyima.testing import ScriptedModel
from nyima.testing.doubles import Request
from nyima_lab.measure.judges import JUDGES, error_rate, judge_rows
from nyima_lab.measure.sheets import (
    agreement,
    annotated,
    human_agreement,
    human_scores,
    judge_agreement,
    write_case_sheet,
    write_reply_sheet,
)
from nyima_lab.measure.tables import Prices, scores_of, table


def row(recipe: str, reply: str, question: str = "0", **more: Any) -> dict[str, Any]:
    base = {"row": "answer", "case": "ivy", "question": question, "recipe": recipe, "kind": "", "failed": ""}
    spent = {"calls": 1, "prompt": 10, "completion": 5, "seconds": 1.0, "own": 0.01}
    text = {"text": "What is my pet called?", "reference": "Your pet is called Coco.", "reply": reply}
    return {**base, **spent, **text, "known": ["I own Coco."], "context": ["user: hi"], **more}


async def judged(
    kind: str, model: ScriptedModel, rows: list[dict[str, Any]], recipes: list[str]
) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    await judge_rows(JUDGES[kind], model, rows, recipes, set(), made.append)
    return made


@pytest.mark.req("cond.gpt-score")
async def test_a_score_is_0_1_or_2_against_the_reference() -> None:
    model = ScriptedModel({"judge-score": ['{"score": 2}', '{"score": 1}', '{"score": 0}']})
    made = await judged("score", model, [row("a", "Coco."), row("b", "A pet."), row("c", "Rex.")], ["a", "b", "c"])
    assert [(v["recipe"], v["score"], v["detail"]["score"]) for v in made] == [
        ("a", 1.0, 2),
        ("b", 0.5, 1),
        ("c", 0.0, 0),
    ]
    asked = model.requests[0]
    assert "Reference: Your pet is called Coco.\nAnswer: Coco." in asked.last
    assert asked.schema is not None
    assert asked.schema["properties"]["score"]["enum"] == [0, 1, 2]


def prefers(text: str) -> ScriptedModel:
    """A judge that always finds the candidate with a text, whatever its letter."""

    def best(request: Request) -> str:
        lines = [line for line in request.last.splitlines() if line[1:3] == ": " and line[0] in "ABCD"]
        return json.dumps({"best": next((line[0] for line in lines if text in line), "A")})

    return ScriptedModel({"judge-best": [best]})


@pytest.mark.req("cond.gsb")
async def test_good_same_bad_is_asked_twice_and_a_disagreement_is_a_tie() -> None:
    rows = [row("base", "Rex."), row("mine", "Coco.")]
    model = prefers("Coco")
    (good,) = await judged("gsb", model, rows, ["base", "mine"])
    assert (good["score"], good["detail"]["verdict"], good["recipe"], good["other"]) == (1.0, "good", "mine", "base")
    first, second = (r.last for r in model.requests)
    assert "A: Coco.\nB: Rex." in first
    assert "A: Rex.\nB: Coco." in second
    (bad,) = await judged("gsb", prefers("Rex"), rows, ["base", "mine"])
    assert bad["detail"]["verdict"] == "bad"
    (same,) = await judged("gsb", ScriptedModel({"judge-best": ['{"best": "A"}']}), rows, ["base", "mine"])
    assert (same["score"], same["detail"]["verdict"]) == (0.0, "same")


@pytest.mark.req("cond.multi-choice")
async def test_multiple_choice_has_positions_drawn_for_each_question() -> None:
    names = ["none", "history", "summary", "conditional"]
    rows = [row(n, f"reply of {n}", question=str(q)) for q in range(12) for n in names]
    model = prefers("reply of summary")
    made = await judged("choice", model, rows, names)
    assert len(made) == 12
    assert {v["detail"]["winner"] for v in made} == {"summary"}
    places = {next(line[0] for line in r.last.splitlines() if "reply of summary" in line) for r in model.requests}
    assert len(places) > 2
    again = prefers("reply of summary")
    await judged("choice", again, rows, names)
    assert [r.last for r in again.requests] == [r.last for r in model.requests]
    shares = {n: scores_of([*rows, *made], n, "choice:scripted") for n in names}
    assert set(shares["summary"].values()) == {1.0}
    assert set(shares["none"].values()) == {0.0}
    with pytest.raises(ConfigError, match="two to four"):
        await judged("choice", model, rows, [*names, "fifth"])


@pytest.mark.req("rsum.judge-single")
async def test_a_single_rating_has_three_aspects_and_reasons_first() -> None:
    model = ScriptedModel({"judge-single": ['{"reason": "fits well", "score": 80}', '{"reason": "dull", "score": 40}']})
    (made,) = await judged("single", model, [row("a", "Coco.")], ["a"])
    assert made["score"] == pytest.approx((80 + 40 + 40) / 300)
    assert made["detail"]["engagingness"] == {"score": 80, "reason": "fits well"}
    assert set(made["detail"]) == {"engagingness", "coherence", "consistency"}
    schema = model.requests[0].schema
    assert schema is not None
    assert list(schema["properties"]) == ["reason", "score"]
    assert scores_of([row("a", "Coco."), made], "a", "single:scripted/engagingness") == {("ivy", "0"): 0.8}


@pytest.mark.req("rsum.judge-pair")
async def test_a_pair_has_four_ways_and_balanced_positions() -> None:
    rows = [row(n, f"reply of {n}", question=str(q)) for q in range(16) for n in ("base", "mine")]

    def likes_mine(request: Request) -> str:
        return '{"verdict": "first"}' if "First: reply of mine" in request.last else '{"verdict": "second"}'

    model = ScriptedModel({"judge-pair": [likes_mine]})
    made = await judged("pair", model, rows, ["base", "mine"])
    assert {v["detail"]["won"] for v in made} == {"win"}
    turned = [v["detail"]["turned"] for v in made]
    assert 3 <= sum(turned) <= 13
    for verdict in ("both", "neither"):
        (one,) = await judged(
            "pair", ScriptedModel({"judge-pair": [json.dumps({"verdict": verdict})]}), rows[:2], ["base", "mine"]
        )
        assert (one["score"], one["detail"]["won"]) == (0.0, "tie")
    with pytest.raises(ConfigError, match="at least two"):
        await judged("pair", model, rows, ["base"])


async def test_strict_and_lenient_accuracy() -> None:
    model = ScriptedModel(
        {"judge-correct": ['{"verdict": "correct"}', '{"verdict": "partly"}', '{"verdict": "wrong"}']}
    )
    rows = [row("a", "x", question=str(i)) for i in range(3)]
    made = await judged("accuracy", model, rows, ["a"])
    both = [*rows, *made]
    assert sorted(scores_of(both, "a", "accuracy:scripted").values()) == [0.0, 0.0, 1.0]
    assert sorted(scores_of(both, "a", "accuracy:scripted/lenient").values()) == [0.0, 1.0, 1.0]


async def test_a_judge_that_answers_nonsense_is_counted_never_dropped() -> None:
    model = ScriptedModel({"judge-score": ["blah", "still blah", '{"score": 2}']})
    rows = [row("a", "Coco."), row("a", "Coco!", question="1"), row("a", "", question="2", failed="it broke")]
    made = await judged("score", model, rows, ["a"])
    assert [bool(v["failed"]) for v in made] == [True, False]
    assert len(model.requests) == 3
    (line,) = table([*rows, *made], ["a"], ["score:scripted"], Prices())
    assert (line.unjudged, line.failed) == (1, 1)
    assert line.scores["score:scripted"].n == 3
    assert line.scores["score:scripted"].mean == pytest.approx(1 / 3)


async def test_a_failed_reply_loses_a_comparison_and_each_opponent_has_its_own_verdicts() -> None:
    rows = [row("none", "Rex."), row("history", "Coco."), row("mine", "Coco!"), row("dead", "", failed="it broke")]
    against_none = await judged("gsb", prefers("Coco"), rows, ["none", "mine", "dead"])
    against_history = await judged("gsb", prefers("Coco."), rows, ["history", "mine"])
    every = [*rows, *against_none, *against_history]
    assert scores_of(every, "mine", "gsb:scripted", "none") == {("ivy", "0"): 1.0}
    assert scores_of(every, "mine", "gsb:scripted", "history") == {("ivy", "0"): -1.0}
    assert scores_of(every, "dead", "gsb:scripted", "none") == {("ivy", "0"): -1.0}
    assert scores_of(every, "none", "gsb:scripted", "none") == {}


async def test_a_recipe_whose_answers_all_failed_counts_0_and_names_may_have_slashes() -> None:
    model = ScriptedModel({"judge-score": ['{"score": 2}']}, name="Qwen/Qwen3-8B")
    rows = [row("a", "Coco."), row("dead", "", failed="it broke")]
    made = await judged("score", model, rows, ["a", "dead"])
    lines = table([*rows, *made], ["a", "dead"], ["score:Qwen/Qwen3-8B"], Prices())
    assert [line.scores["score:Qwen/Qwen3-8B"].mean for line in lines] == [1.0, 0.0]
    assert lines[1].ahead["score:Qwen/Qwen3-8B"].losses == 1


async def test_an_answer_without_a_reference_is_not_judged_against_nothing() -> None:
    model = ScriptedModel({"judge-correct": ['{"verdict": "correct"}']})
    assert await judged("accuracy", model, [row("a", "x", reference="")], ["a"]) == []
    assert model.requests == []


async def test_the_judges_own_error_rate_is_measured() -> None:
    def right(request: Request) -> str:
        text = (resources.files("nyima_lab.measure") / "judge_check.jsonl").read_text("utf-8")
        items = [json.loads(line) for line in text.splitlines()]
        score = next(
            s
            for i in items
            for s, k in ((2, "right"), (1, "partly"), (0, "wrong"))
            if f"Answer: {i[k]}" in request.last
        )
        return json.dumps({"score": score})

    good = await error_rate(JUDGES["score"], ScriptedModel({"judge-score": [right]}))
    assert (good["wrong"], good["n"]) == (0, 36)
    lazy = await error_rate(JUDGES["score"], ScriptedModel({"judge-score": ['{"score": 2}']}))
    assert (lazy["wrong"], lazy["n"]) == (24, 36)
    first = await error_rate(JUDGES["gsb"], ScriptedModel({"judge-best": ['{"best": "A"}']}))
    assert (first["wrong"], first["n"]) == (12, 12)
    mute = await error_rate(JUDGES["accuracy"], ScriptedModel({"judge-correct": ["?"]}))
    assert (mute["n"], mute["wrong"], mute["failed"]) == (36, 36, 36)
    flat = await error_rate(JUDGES["single"], ScriptedModel({"judge-single": ['{"reason": "r", "score": 50}']}))
    assert (flat["wrong"], flat["n"]) == (12, 12)


@pytest.mark.req("cond.agreement")
def test_annotators_sheets_give_the_qualified_rate_and_kappa(tmp_path: Path) -> None:
    from test_runner import case

    made = write_case_sheet([case(f"c{i}") for i in range(3)], tmp_path / "sheet.csv", 5)
    assert made == 5
    head, *body = (tmp_path / "sheet.csv").read_text("utf-8-sig").split("\n", 1)
    assert head.strip() == "case,question,dialogue,asked,answer,related,fitting"
    assert "Coco" in body[0]

    def filled(name: str, marks: list[tuple[str, str]]) -> Path:
        lines = ["case,question,dialogue,asked,answer,related,fitting"]
        lines += [f"c{i},0,d,q,a,{one},{two}" for i, (one, two) in enumerate(marks)]
        path = tmp_path / name
        path.write_text("\n".join(lines), "utf-8")
        return path

    sheets = [
        filled("a.csv", [("yes", "yes"), ("yes", "no"), ("no", "no"), ("Yes", "y")]),
        filled("b.csv", [("yes", "yes"), ("no", "no"), ("no", "yes"), ("yes", "yes")]),
        filled("c.csv", [("yes", "yes"), ("yes", "yes"), ("no", "no"), ("yes", "yes")]),
    ]
    report = agreement(sheets)
    assert (report["items"], report["annotators"]) == (4, 3)
    assert report["qualified"]["mean"] == 0.5
    assert report["kappa"] == pytest.approx(0.657, abs=0.001)
    wrong = filled("d.csv", [("maybe", "yes")])
    with pytest.raises(InputError, match=r"d\.csv:2: .*is not yes or no"):
        agreement([wrong])
    with pytest.raises(InputError, match="no item was judged by every"):
        agreement([filled("e.csv", [])])


@pytest.mark.req("rsum.human")
def test_people_rate_replies_blind_from_0_to_2(tmp_path: Path) -> None:
    rows = [row(n, f"reply of {n}", question=str(q)) for q in range(3) for n in ("base", "mine")]
    assert write_reply_sheet(rows, tmp_path / "sheet.csv", 6) == 6
    text = (tmp_path / "sheet.csv").read_text("utf-8-sig")
    assert "base" not in text.replace("reply of base", "")
    lines = text.splitlines()
    marks = []
    for number, mark in enumerate((2, 1)):
        out = [lines[0]]
        for line in lines[1:]:
            if ",,,,Your pet" in line:
                good = mark if "reply of mine" in line else 0
                line = line.replace(",,,,Your pet", f",{good},{good},2,Your pet")
            out.append(line)
        path = tmp_path / f"{number}.csv"
        path.write_text("\n".join(out), "utf-8")
        marks.append(path)
    report = human_scores(rows, marks)
    assert report["scores"]["mine/engagingness"]["mean"] == 1.5
    assert report["scores"]["base/engagingness"]["mean"] == 0.0
    assert (report["raters"], report["shared"]) == (2, 18)
    assert 0 < report["kappa"] < 1
    marks[0].write_text(lines[0] + "\nnobody,,,,1,1,1\n", "utf-8")
    with pytest.raises(InputError, match=r"0\.csv:2: 'nobody' is no reply"):
        human_scores(rows, marks)


def test_a_judge_agrees_with_people_or_not(tmp_path: Path) -> None:
    rows = [row("a", "Coco.", question=str(i)) for i in range(4)]
    base = {"row": "verdict", "judge": "score:m", "case": "ivy", "recipe": "a", "other": "", "detail": {}, "failed": ""}
    verdicts = [{**base, "question": str(i), "score": s} for i, s in enumerate((1.0, 0.5, 0.0, 0.0))]
    write_reply_sheet(rows, tmp_path / "sheet.csv", 9)
    with pytest.raises(InputError, match="nothing in common"):
        human_agreement([*rows, *verdicts], "score:m", [tmp_path / "sheet.csv"])
    with (tmp_path / "sheet.csv").open(newline="", encoding="utf-8-sig") as file:
        lines = list(csv.DictReader(file))
    from nyima_lab.measure.sheets import _blind

    wrote = {_blind(r): mark for r, mark in zip(rows, ("2", "1", "0", "2"), strict=True)}
    with (tmp_path / "filled.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows({**line, "score": wrote[line["id"]]} for line in lines)
    report = human_agreement([*rows, *verdicts], "score:m", [tmp_path / "filled.csv"])
    assert (report["n"], report["same"]["mean"]) == (4, 0.75)
    assert report["kappa"] == pytest.approx(0.636, abs=0.001)


async def test_a_model_fills_in_a_sheet_as_one_annotator(tmp_path: Path) -> None:
    from test_runner import case

    model = ScriptedModel(
        {"build-annotate": ['{"related": true, "fitting": true}', '{"related": true, "fitting": false}']}
    )
    assert await annotated([case("c0")], tmp_path / "one.csv", 5, 0, model) == 2
    report = agreement([tmp_path / "one.csv", tmp_path / "one.csv"])
    assert (report["items"], report["qualified"]["mean"], report["kappa"]) == (2, 0.5, 1.0)
    assert "I own a green parrot" in model.requests[0].last


async def test_a_rubric_is_followed_or_not() -> None:
    model = ScriptedModel({"judge-rubric": ['{"verdict": "follows"}', '{"verdict": "ignores"}']})
    made = await judged("rubric", model, [row("a", "x"), row("b", "y")], ["a", "b"])
    assert [v["score"] for v in made] == [1.0, 0.0]


def test_two_judges_agree_or_not() -> None:
    def verdicts(judge: str, scores: list[float]) -> list[dict[str, Any]]:
        base = {"row": "verdict", "judge": judge, "case": "c", "recipe": "a", "other": "", "detail": {}, "failed": ""}
        return [{**base, "question": str(i), "score": s} for i, s in enumerate(scores)]

    rows = [*verdicts("score:one", [1, 1, 0, 0]), *verdicts("score:two", [1, 1, 0, 1])]
    report = judge_agreement(rows, "score:one", "score:two")
    assert (report["n"], report["same"]["mean"], report["kappa"]) == (4, 0.75, 0.5)
    with pytest.raises(InputError, match="the run has score:one, score:two"):
        judge_agreement(rows, "score:one", "score:three")
