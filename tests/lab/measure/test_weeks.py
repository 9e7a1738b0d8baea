"""The evaluations of the graph: cascades and weeks of edits, with known truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nyima.errors import InputError
from nyima.testing import HashEmbedder, ScriptedModel
from nyima_lab.measure.cascades import read_cascades, run_cascades
from nyima_lab.measure.stats import t_test
from nyima_lab.measure.weeks import make_life, run_weeks

JUDGED = Path(__file__).parents[2] / "judged"


def test_there_are_enough_cascades_half_of_them_by_a_stranger() -> None:
    own, outside = (read_cascades(JUDGED / f"cascades_{name}.jsonl") for name in ("own", "outside"))
    assert len(own) + len(outside) >= 60
    assert len(outside) >= len(own)
    assert {c.kind for c in (*own, *outside)} == {"change", "deletion", "absence"}


async def test_most_cascades_are_handled_when_they_are_stated_by_hand() -> None:
    cases = read_cascades(JUDGED / "cascades_own.jsonl")
    by_hand = await run_cascades(cases[::3], HashEmbedder(size=256), by_hand=True)
    assert by_hand["shares"]["all"]["handled"] >= 0.9, by_hand["failed"]


async def test_the_judgement_notices_what_is_not_handled() -> None:
    cases = [c for c in read_cascades(JUDGED / "cascades_own.jsonl") if c.kind == "change"][:6]
    without = await run_cascades(cases, HashEmbedder(size=256), by_hand=False, recipe="history")
    assert without["shares"]["all"]["handled"] <= 0.2


async def test_with_a_model_the_question_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text((JUDGED / "cascades_own.jsonl").read_text("utf-8").split("\n")[0] + "\n", "utf-8")
    model = ScriptedModel({"chat": ["I do not know any more."], "read": ["{}"]})
    report = await run_cascades(read_cascades(path), HashEmbedder(), by_hand=False, models=(model, model))
    assert model.asked("chat")
    assert report["shares"]["all"]["cases"] == 1


@pytest.mark.parametrize("text", ["", "{}\n", "not json\n"])
def test_a_broken_file_of_cases_is_located(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError):
        read_cascades(path)


@pytest.mark.req("emg.continuous-edits")
def test_a_life_is_dated_changing_and_repeatable() -> None:
    life = make_life(3)
    assert life == make_life(3)
    assert life != make_life(4)
    assert len(life.weeks) == 4
    assert life.changes == 40
    assert sum(make_life(s).changes for s in range(8)) >= 300
    times = [t.at for week in life.weeks for t in week]
    assert times == sorted(times, key=lambda t: t.timestamp() if t else 0)
    for week in life.asked:
        for asked in week:
            assert asked.now not in asked.stale
            assert asked.turn or not asked.changed
    texts = " ".join(t.text for week in life.weeks for t in week)
    assert "My friend" in texts
    assert "I quit" in texts or "no longer" in texts or "cancelled" in texts or "sold" in texts or "broke up" in texts


@pytest.mark.req("emg.continuous-edits")
async def test_what_history_alone_gives_grows_stale() -> None:
    """Nothing is claimed without a model; the words of old turns are found beside the new ones."""
    history = (await run_weeks([1], "history", HashEmbedder(size=256)))["weeks"]
    assert [w["week"] for w in history] == [1, 2, 3, 4, "all"]
    assert history[-1]["stale"]["mean"] > 0.15


async def test_a_seeded_sample_is_answered() -> None:
    model = ScriptedModel({"chat": ["You live in Porto."]})
    report = await run_weeks([1], "graph", HashEmbedder(), model=model, sample=3)
    assert len(model.asked("chat")) == 3
    assert sum("right" in r for r in report["rows"]) == 3
    json.dumps(report)


@pytest.mark.req("emg.significance")
@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        ([1.0, 2.0, 3.0, 4.0], [0.5, 1.0, 3.5, 2.0], 0.2452),
        ([5.1, 4.9, 6.2, 5.8, 6.0], [4.1, 4.2, 5.0, 5.1, 4.8], 0.0007),
        ([1.0, 1.0], [1.0, 1.0], 1.0),
        ([2.0, 3.0], [1.0, 2.0], 0.0),
    ],
)
def test_the_paired_t_test(first: list[float], second: list[float], p: float) -> None:
    assert t_test(first, second) == pytest.approx(p, abs=5e-4)
