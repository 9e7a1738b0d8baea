"""The measure of what stays true: read, scored, and run through the path that users take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from made import T0, claim, episode, piece
from nyima.domain.records import Interval, Status
from nyima.errors import InputError
from nyima.testing import HashEmbedder, ScriptedModel
from nyima_lab.measure.truth import RATES, TruthCase, read_truth, run_truth, score
from support import Agrees, reading

MOVE: dict[str, Any] = {
    "id": "M1", "cat": "change", "cur": ["Braga"], "stale": ["Porto"], "keep": [], "never": ["Rome"], "q": "Where do I live?",
    "turns": [{"date": "2024-01-06", "text": "I live in Porto."}, {"date": "2024-02-06", "text": "Unpacking in Braga!"}],
}  # fmt: skip


def cases(tmp_path: Path, *rows: dict[str, Any]) -> list[TruthCase]:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in rows), "utf-8")
    return read_truth(path)


CLOSED = {"recorded": Interval(T0, T0.replace(hour=10)), "valid": Interval(T0, T0.replace(hour=10))}


@pytest.mark.parametrize(
    ("claims", "wrong"),
    [
        ([claim("a", "lives in", "Braga"), claim("b", "lives in", "Porto", **CLOSED)], set()),
        ([claim("a", "lives in", "Porto")], {"stale", "missed"}),
        (
            [claim("a", "lives in", "Porto", stale=True), claim("b", "lives in", "Braga", stale=True)],
            {"wrongly_labelled"},
        ),
        ([claim("a", "lives in", "Braga", status=Status.PLANNED)], {"missed"}),
        ([claim("a", "lives in", "Braga"), claim("b", "lives in", "Rome")], {"invented"}),
        ([claim("a", "lives in", "Braga"), claim("b", "lives in", "Rome", subject="x", name="dad")], set()),
        ([], {"missed"}),
    ],
)
def test_each_error_is_told_apart(tmp_path: Path, claims: list[Any], wrong: set[str]) -> None:
    (case,) = cases(tmp_path, MOVE)
    found = score(case, claims, [])
    assert {*found.wrong} == wrong
    assert found.marks["right"] == float(not wrong)


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ([claim("a", "lives in", "Porto", **CLOSED)], "wrongly_retired"),
        ([claim("a", "lives in", "Porto")], None),
        ([], "missed"),
    ],
)
def test_what_must_stay_is_retired_or_was_never_held(tmp_path: Path, claims: list[Any], name: str | None) -> None:
    (case,) = cases(tmp_path, {**MOVE, "cur": [], "stale": [], "keep": ["Porto"]})
    assert {*score(case, claims, []).wrong} == ({name} if name else set())


def test_the_newest_comes_first_or_the_old_one_is_labelled(tmp_path: Path) -> None:
    (case,) = cases(tmp_path, MOVE)
    old, new = piece(episode("1", "I live in Porto.")), piece(episode("2", "Unpacking in Braga!"))
    assert score(case, [], [new, old]).marks["newest_first"] == 1.0
    assert score(case, [], [old, new]).marks["newest_first"] == 0.0
    assert score(case, [], [piece(old.record, label="earlier"), new]).marks["newest_first"] == 1.0
    assert score(case, [], [new]).marks["newest_first"] == 1.0
    assert score(case, [], [old]).marks["newest_first"] == 0.0
    (plan,) = cases(tmp_path, {**MOVE, "cat": "plan"})
    assert score(plan, [], [new]).marks["valid_first"] == 1.0


async def test_a_case_is_played_through_the_shipped_path_and_among_others(tmp_path: Path) -> None:
    read = reading(Porto=[("user", "lives in", "Porto")], Braga=[("user", "lives in", "Braga"), ("outdated", "1")])
    for among in (0, 5):
        model = ScriptedModel({"read": [read], "note": ['{"context": "", "knowledge": "Something."}']})
        report = await run_truth(
            cases(tmp_path, MOVE), HashEmbedder(), model=model, verifier=Agrees("Porto"), among=among
        )
        assert (report["cases"], report["stale"], report["missed"]) == (1, 0.0, 0.0)
        # Among others, the number that the model always answers is another claim's: both are labelled.
        assert report["right"] == (0.0 if among else 1.0)
        assert {*RATES} <= {*report}
        assert report["n"]["stale"] == 1
    without = await run_truth(cases(tmp_path, MOVE), HashEmbedder())
    assert (without["stale"], without["missed"], without["rows"][0]["claims"]) == (0.0, 1.0, [])


@pytest.mark.parametrize("text", ["", "{}", "no", '{"id": "x", "turns": [{"date": "soon", "text": "a"}]}',
                                  '{"id": "x", "turns": [], "cur": ["("]}'])  # fmt: skip
def test_a_file_that_is_no_set_of_cases_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError):
        read_truth(path)


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_the_committed_cases_can_be_read(name: str) -> None:
    found = read_truth(Path(__file__).parents[2] / "judged" / "outside" / f"truth_{name}.jsonl")
    assert len(found) >= 90
    assert len({c.id for c in found}) == len(found)
