"""Runs: resumable, honest about failures, on the shipped paths."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nyima.domain.conversation import Role
from nyima.errors import InputError, ModelError, ModelUnreachable, StoreFull, StoreLocked
from nyima.memory import Said
from nyima.testing import HashEmbedder, ScriptedModel
from nyima.testing.contract import T0
from nyima.testing.doubles import Request
from nyima_lab.measure.cases import Case, Gold, Question
from nyima_lab.measure.replay import Calls, ReplayedModel
from nyima_lab.measure.report import markdown, summarise, write_report
from nyima_lab.measure.runner import Progress, Run, read_rows, run_cases
from nyima_lab.measure.tables import Prices, differences, scores_of, table
from nyima_lab.measure.tasks import TASKS, Choice, choose_cases, dataset_of
from support import NOTE, answer

CONFIG = {
    "task": "learning-knowledge", "dataset": "jsonl", "data": "x", "model": "scripted", "embedder": "hash-64",
    "made": {"version": "0", "at": "now"},
}  # fmt: skip


def case(name: str = "ivy", pet: str = "parrot") -> Case:
    turns = (
        Said(f"I own a green {pet} called Coco.", Role.USER, T0, id="0:0"),
        Said("How nice!", Role.ASSISTANT, T0, id="0:1"),
    )
    asked = Question(
        "What is my pet called?", frozenset({"0:0"}), "pets", None, None, "Your pet is called Coco.", (), "0"
    )
    other = Question("Which pet do I own?", frozenset(), "pets", None, None, f"You own a {pet}.", (), "1")
    return Case(name, (("0", turns),), (asked, other), "en", (Gold(f"I own a {pet}.", Role.USER, "0", "0:0"),))


def reader(request: Request) -> str:
    """Knows only what stands in its prompt."""
    seen = " ".join(m.content for m in request.messages)
    reply = "Your pet is called Coco." if "Coco" in seen else "I don't know that yet."
    return answer(reply) if request.grammar else reply


def model(**more: Any) -> ScriptedModel:
    lanes = {"chat": [reader], "note": [NOTE], "read": ['{"turns": [{"n": 1, "remember": true}]}'], **more}
    return ScriptedModel({"summary": ['{"text": "The user owns a green parrot called Coco."}'], **lanes})


async def go(
    folder: Path, recipes: list[str], chat: ScriptedModel, cases: list[Case] | None = None, **more: Any
) -> Run:
    run = Run.open(folder, CONFIG)
    try:
        await run_cases(run, cases or [case()], recipes, (chat, chat), HashEmbedder(), **more)
    finally:
        run.close()
    return run


@pytest.mark.req("rsum.cost")
async def test_a_memory_answers_what_none_cannot_and_its_cost_is_counted(tmp_path: Path) -> None:
    run = await go(tmp_path / "run", ["none", "history", "conditional", "gold-memory"], model())
    f1 = {r: scores_of(run.rows, r, "f1")["ivy", "0"] for r in ("none", "history", "conditional")}
    assert f1["history"] == f1["conditional"] == 1.0
    assert f1["none"] < 0.5
    lines = {
        line.recipe: line for line in table(run.rows, ["none", "history", "conditional"], ["f1"], Prices(1.0, 2.0))
    }
    assert lines["none"].calls == lines["history"].calls == pytest.approx(2 / 3)  # one turn heard, two answers
    assert lines["conditional"].calls == pytest.approx(4 / 3)  # and a reading and a note
    assert all(line.tokens > 0 and line.cost > 0 for line in lines.values())
    assert lines["history"].ahead["f1"].wins == 1
    (gold,) = [r for r in run.rows if r["row"] == "answer" and r["recipe"] == "gold-memory" and r["question"] == "1"]
    assert any("I own a parrot." in text for _, text in gold["messages"])


async def test_a_run_goes_on_where_it_stopped_and_asks_nothing_twice(tmp_path: Path) -> None:
    first = model(chat=[reader, ModelUnreachable("the server went away")])
    run = await go(tmp_path / "run", ["history"], first)
    failed = [r for r in run.rows if r["row"] == "answer" and r["failed"]]
    assert [r["question"] for r in failed] == ["1"]
    (line,) = table(run.rows, ["history"], ["f1"], Prices())
    assert (line.n, line.failed) == (2, 1)
    assert line.scores["f1"].mean == pytest.approx(0.5)  # a failed answer counts 0
    second = model()
    again = await go(tmp_path / "run", ["history"], second)
    assert len(second.asked("chat")) == 1
    assert not [r for r in again.rows if r["failed"]]
    third = model()
    await go(tmp_path / "run", ["history"], third)
    assert third.requests == []
    await go(tmp_path / "run", ["history", "summary"], third)
    assert {r["recipe"] for r in read_rows(tmp_path / "run")} == {"history", "summary"}


async def test_recipes_share_the_calls_that_write_the_same(tmp_path: Path) -> None:
    chat = model()
    run = await go(tmp_path / "run", ["conditional", "conditional+summary"], chat)
    assert len(chat.asked("read")) == len(chat.asked("note")) == 1
    writes = {r["recipe"]: r["calls"] for r in run.rows if r["row"] == "write"}
    assert writes == {"conditional": 2, "conditional+summary": 3}  # a replayed call still counts


async def test_writers_that_fail_are_failures_not_an_empty_memory(tmp_path: Path) -> None:
    broken = model(summary=[ModelUnreachable("no summary today")])
    run = await go(tmp_path / "run", ["history", "summary"], broken)
    assert all("no summary today" in r["failed"] for r in run.rows if r["row"] == "answer" and r["recipe"] == "summary")
    assert not [r for r in run.rows if r["failed"] and r["recipe"] == "history"]


async def test_a_model_that_never_works_stops_the_run(tmp_path: Path) -> None:
    dead = model(chat=[ModelUnreachable("nobody is there")])
    with pytest.raises(ModelError, match="nothing works: ModelUnreachable: nobody is there"):
        await go(tmp_path / "run", ["none"], dead, [case("a"), case("b")])
    assert len([r for r in read_rows(tmp_path / "run") if r["row"] == "answer"]) == 3


def test_two_runs_in_one_folder_and_a_folder_of_another_run(tmp_path: Path) -> None:
    run = Run.open(tmp_path / "run", CONFIG)
    with pytest.raises(StoreLocked, match="belongs to a run that is going on"):
        Run.open(tmp_path / "run", CONFIG)
    run.close()
    with pytest.raises(InputError, match="model 'scripted', not 'other'"):
        Run.open(tmp_path / "run", {**CONFIG, "model": "other"})
    Run.open(tmp_path / "run", CONFIG).close()


async def test_a_torn_line_is_left_out_and_mended(tmp_path: Path) -> None:
    await go(tmp_path / "run", ["none"], model())
    path = tmp_path / "run" / "rows.jsonl"
    whole = path.read_text("utf-8")
    path.write_text(whole[:-30], "utf-8")
    assert len(read_rows(tmp_path / "run")) == whole.count("\n") - 1
    run = await go(tmp_path / "run", ["none"], model())
    assert len([r for r in run.rows if r["row"] == "answer"]) == 2
    assert len(read_rows(tmp_path / "run")) == whole.count("\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
async def test_a_full_disk_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rows.jsonl").symlink_to("/dev/full")
    with pytest.raises(StoreFull, match="free some space and run it again"):
        run = Run(tmp_path / "run", Calls(tmp_path / "run" / "calls.db"))
        try:
            run.add({"row": "answer"})
        finally:
            run.close()


async def test_a_broken_off_call_is_not_kept(tmp_path: Path) -> None:
    calls = Calls(tmp_path / "calls.db")
    chat = ScriptedModel({"chat": ["a long answer"]})
    seen = ReplayedModel(chat, calls)
    stream = seen.stream([], max_tokens=5, lane="chat")
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    assert [p async for p in seen.stream([], max_tokens=5, lane="chat")][-1].text == "a long answer"  # type: ignore[union-attr]
    assert len(chat.requests) == 2
    assert await anext(seen.stream([], max_tokens=5, lane="chat")) == "a long answer"
    assert len(chat.requests) == 2
    assert seen.meter.usage.calls == 2
    assert (seen.name, seen.window, seen.grammars) == ("scripted", 4_096, True)
    calls.close()


@pytest.mark.req("rsum.sessions")
async def test_questions_within_a_session_see_its_beginning_and_only_earlier_sessions(tmp_path: Path) -> None:
    first = case().sessions[0]
    later = (
        "1",
        (Said("My ferret is called Biscotti.", Role.USER, T0, id="1:0"), Said("Cute.", Role.ASSISTANT, T0, id="1:1")),
    )
    context = (Said("Hi there, friend.", Role.USER), Said("Hello!", Role.ASSISTANT))
    asked = Question("And my green parrot?", frozenset(), "session 1", None, "1", "Coco.", context, "1:1")
    chat = model()
    await go(tmp_path / "run", ["history"], chat, [Case("ivy", (first, later), (asked,), "en")])
    seen = " ".join(m.content for m in chat.asked("chat")[-1].messages)
    assert "Hi there, friend." in seen
    assert "Biscotti" not in seen
    assert "Coco" in seen


async def test_a_resumed_run_by_sessions_costs_what_a_whole_one_costs(tmp_path: Path) -> None:
    first, second = case().sessions[0], ("1", (Said("My ferret is ill.", Role.USER, T0, id="1:0"),))
    asked = tuple(Question(f"What of {n}?", frozenset(), n, None, n, "x", (), n) for n in ("1",))
    last = Question("And now?", frozenset(), "end", None, None, "x", (), "end")
    two = Case("ivy", (first, second), (*asked, last), "en")
    whole = await go(tmp_path / "whole", ["conditional"], model(), [two])
    broken = model(chat=[reader, ModelUnreachable("gone")])
    await go(tmp_path / "parts", ["conditional"], broken, [two])
    parts = await go(tmp_path / "parts", ["conditional"], model(), [two])

    def cost(run: Run) -> tuple[float, int]:
        (line,) = table(run.rows, ["conditional"], ["f1"], Prices())
        return round(line.calls, 6), sum(r["turns"] for r in run.rows if r["row"] == "write")

    assert cost(parts) == cost(whole)


async def test_progress_counts_samples_calls_and_failures(tmp_path: Path) -> None:
    seen: list[Progress] = []
    await go(tmp_path / "run", ["none"], model(chat=[reader, ModelUnreachable("x")]), progress=seen.append)
    assert (seen[-1].done, seen[-1].total, seen[-1].failed) == (2, 2, 1)
    assert seen[-1].usage.calls == 1


async def test_the_report_is_one_file_that_needs_no_network(tmp_path: Path) -> None:
    bad = replace(case("<b>mallory</b>"), questions=(replace(case().questions[0], text="<script>alert(1)</script>"),))
    chat = model()
    run = await go(tmp_path / "run", ["none", "history", "history@1", "history@5"], chat, [case(), bad])
    config = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    recipes = ["none", "history", "history@1", "history@5"]
    summary = summarise(run.rows, recipes, TASKS["learning-knowledge"], config, Prices(), None)
    page = write_report(tmp_path / "run", run.rows, summary).read_text("utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons", ""
    )
    assert "src=" not in page
    assert page.count("<svg") == 2  # against tokens, and by k
    assert "I own a green parrot called Coco." in page  # the recall trace
    assert "95 % bootstrap" in page
    text = markdown(summary)
    assert "| history |" in text
    assert "history against none, rouge1: +" in text
    saved = json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))
    assert saved["lines"][1]["scores"]["f1"]["low"] <= saved["lines"][1]["scores"]["f1"]["mean"]
    moved = differences(scores_of(run.rows, "history", "f1"), scores_of(run.rows, "none", "f1"))
    assert moved[0][1] > 0


async def test_a_two_encoder_row_is_named_by_its_weights(tmp_path: Path) -> None:
    run = await go(tmp_path / "run", ["none", "two-encoder"], model())
    summary = summarise(
        run.rows, ["none", "two-encoder"], TASKS["questions"], {**CONFIG, "queries": "asks"}, Prices(), None
    )
    assert [line["label"] for line in summary["lines"]] == ["none", "two-encoder (asks, hash-64)"]


async def test_tasks_choose_cases(tmp_path: Path) -> None:
    from nyima.errors import ConfigError
    from nyima_lab.measure.cases import write_cases

    task = TASKS["learning-knowledge"]
    path = tmp_path / "own.jsonl"
    write_cases(path, [case(f"c{i}") for i in range(6)])
    calls = Calls(tmp_path / "calls.db")
    builder = ReplayedModel(model(), calls)

    async def names(choice: Choice) -> list[str]:
        return [c.name for c in await choose_cases(task, "jsonl", path, choice, tmp_path / "made.jsonl", builder)]

    every = await names(Choice(seed=3))
    assert sorted(every) == [f"c{i}" for i in range(6)]
    assert await names(Choice(seed=3, limit=2)) == every[:2]
    assert await names(Choice(seed=3, skip=2, limit=3)) == every[2:5]
    assert await names(Choice(pool=3)) == ["c0..c2", "c3..c5"]
    with pytest.raises(InputError, match="no case with a question is left"):
        await names(Choice(skip=6))
    calls.close()
    assert dataset_of(task, path, None) == "jsonl"
    with pytest.raises(ConfigError, match="does not take"):
        dataset_of(task, path, "beam")
    with pytest.raises(ConfigError, match="give --dataset"):
        dataset_of(TASKS["questions"], tmp_path / "what.json", None)
    assert dataset_of(TASKS["questions"], Path("data/locomo10.json"), None) == "locomo"
