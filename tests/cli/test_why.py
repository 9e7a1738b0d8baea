"""The trace as lines: what was asked, found, kept, dropped, reviewed."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from cli.test_cli import Cli, cli  # noqa: F401 - a fixture
from nyima.cli.why import show_evidence, show_trace


def printed(show: Any, *arguments: Any) -> str:
    out = Console(file=StringIO(), highlight=False, soft_wrap=True, width=400)
    show(out, *arguments)
    return str(out.file.getvalue())  # type: ignore[attr-defined]


def piece(id: str, text: str = "green tea", score: float = 0.8, **more: Any) -> dict[str, Any]:
    base = {
        "id": id,
        "text": text,
        "score": score,
        "source": "notes",
        "valid_from": "2026-03-02T09:00:00Z",
        "turns": ["t1"],
    }
    return {**base, **more}


def trace(**more: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "query": "what do I [b]drink[/b]?", "plan": [{"source": "notes", "after": []}], "keywords": [], "found": [],
        "kept": [], "failed": {}, "rounds": 0, "prompts": [], "ms": {"total": 12.4},
    }  # fmt: skip
    return {**base, **more}


def test_a_query_that_found_nothing() -> None:
    assert printed(show_trace, trace(plan=[])) == (
        "query     what do I [b]drink[/b]?\nplan      nothing (NULL)\nevidence  none\nprompts   none    12 ms\n"
    )


def test_sources_that_need_others_stand_behind_an_arrow() -> None:
    plan = [{"source": "documents", "after": ["profile"]}, {"source": "profile"}, {"source": "notes", "after": []}]
    told = trace(plan=plan, skipped=["graph"], planner="rules", ms={"total": 5, "plan": 1500})
    shown = printed(show_trace, told)
    assert "plan      profile, notes → documents    (not asked: graph; planner: rules, 1.50 s)" in shown


def test_kept_pieces_are_numbered_as_the_reply_may_cite_them() -> None:
    told = trace(kept=[piece("a"), piece("b", score=0.5)], found=[piece("a"), piece("b")], shown=["b", "a"])
    shown = printed(show_trace, told, {"t1": 7})
    assert "evidence  0.8  notes      [2] green tea  turn 7, 2 March  a" in shown
    assert "          0.5  notes      [1] green tea  turn 7, 2 March  b" in shown
    assert "dropped" not in shown


def test_five_of_what_was_dropped_are_shown_and_the_rest_counted() -> None:
    shown = printed(show_trace, trace(found=[piece(f"d{i}") for i in range(8)]))
    assert [f"d{i}" in shown for i in range(8)] == [True] * 5 + [False] * 3
    assert "and 3 more" in shown
    assert "[2]" not in shown, "only what was kept can be cited"


@pytest.mark.parametrize(
    ("more", "label"),
    [
        ({"superseded": "2026-04-01T00:00:00Z"}, "(no longer true since 2026-04-01)"),
        ({"superseded": "2026-04-01T00:00:00Z", "ended": ["the [job]", "b"]}, "since 2026-04-01: the [job], b)"),
        (
            {"superseded": "2026-04-01T00:00:00Z", "stale": "2026-05-01T00:00:00Z"},
            "(no longer true since 2026-04-01; the rest is not known any more)",
        ),
        ({"stale": "2026-05-01T00:00:00Z"}, "(not known any more since 2026-05-01)"),
        ({"place": "p. 3"}, 'p. 3 "green tea"'),
    ],
)
def test_what_does_not_hold_any_more_is_labelled(more: dict[str, Any], label: str) -> None:
    assert label in printed(show_trace, trace(kept=[piece("a", **more)]))
    assert label in printed(show_evidence, [piece("a", **more)])


def test_evidence_is_one_line_however_it_was_written() -> None:
    shown = printed(show_evidence, [piece("a", "[red]two\n  lines[/red]")])
    assert shown == "0.80  notes     2026-03-02  [red]two lines[/red]  a\n"


def test_each_review_of_a_draft_is_told() -> None:
    reviews = [
        {"consistent": False, "consistency": 0.2, "scores": [["a", 0.3], ["b", 0.1]], "replaced": ["b"]},
        {"consistent": False, "consistency": 0.2, "scores": [["z", 0.4]], "replaced": []},
        {"consistent": True, "consistency": 0.9, "scores": [], "replaced": []},
    ]
    shown = printed(show_trace, trace(kept=[piece("a"), piece("b")], shown=["a", "b"], reviews=reviews))
    assert (
        "critic    round 1: draft did not agree with [2] (0.10) → 1 replaced"
        " → round 2: draft did not agree with what was found (0.40) → nothing else to try → round 3: consistent (0.90)"
    ) in shown


def test_what_failed_what_was_searched_again_and_the_prompts_are_told() -> None:
    told = trace(failed={"shelf": "[b]no answer[/b]"}, keywords=["tea", "cup"], rounds=2, prompts=["reply@1", "note@2"])
    shown = printed(show_trace, told)
    assert "left out  shelf: [b]no answer[/b]" in shown
    assert "searched again with tea, cup" in shown
    assert "prompts   reply@1, note@2    12 ms, searched 2 more times" in shown


def test_the_last_recall_is_explained_without_a_word(cli: Cli) -> None:  # noqa: F811
    cli("remember", "I drink green tea")
    cli("recall", "green tea")
    for arguments in ((), ("last",), ("LAST",)):
        shown = cli("why", *arguments).stdout
        assert shown.startswith("query     green tea\n")
        assert "turn 1, " in shown


def test_a_record_is_explained_by_what_was_said(cli: Cli) -> None:  # noqa: F811
    note = cli.json("remember", "I drink [i]green[/i] tea")["records"][1]
    shown = cli("why", note).stdout
    assert shown.startswith(f"note  {note}\nI drink [i]green[/i] tea\nmade by conditional")
    assert "User: I drink [i]green[/i] tea" in shown
