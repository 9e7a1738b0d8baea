"""Recalls as JSON values, and the journal line that goes with what it quotes."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from made import T0, claim, episode, note, passage, piece
from nyima.domain.conversation import Origin
from nyima.domain.evidence import Answer, Query, Recall, Review, Step, Visit
from nyima.domain.records import Interval, Provenance
from nyima.read.trace import evidence_to_dict, place_of, plan_to_list, record_to_json, trace_event

QUERY = Query("where is it", T0, keywords=("cat",))
MADE = Provenance(("t1", "t2"), ("n0",), "conditional", "note@1", "small", Origin.IMPORT)


def test_a_step_is_its_source_and_what_it_needs() -> None:
    recall = Recall(QUERY, (Step("profile", QUERY, 2), Step("documents", QUERY, 3, ("profile",))))
    assert plan_to_list(recall) == [
        {"source": "profile", "k": 2, "after": []},
        {"source": "documents", "k": 3, "after": ["profile"]},
    ]


@pytest.mark.parametrize(
    ("record", "place"),
    [
        (passage("p", "x", "m.pdf", "p. 2"), "m.pdf p. 2"),
        (passage("p", "x", "notes.txt"), "notes.txt"),
        (note("n", "x"), ""),
    ],
)
def test_only_a_passage_has_a_place(record: Any, place: str) -> None:
    assert place_of(record) == place


def test_a_piece_has_times_scores_and_labels() -> None:
    record = note("n", "text", provenance=MADE, valid=Interval(T0, T0 + timedelta(days=1)))
    found = evidence_to_dict(
        piece(record, 0.123456, scores={"words": 2.0}, superseded=T0, ended=("Moab",), stale=T0 + timedelta(hours=1))
    )
    assert found["score"] == 0.1235
    assert found["turns"] == ["t1", "t2"]
    assert (found["valid_from"], found["valid_to"]) == ("2026-03-02T09:00:00Z", "2026-03-03T09:00:00Z")
    assert (found["superseded"], found["ended"], found["stale"]) == ("2026-03-02T09:00:00Z", ["Moab"], "2026-03-02T10:00:00Z")  # fmt: skip
    assert evidence_to_dict(piece(note("n", "x")))["superseded"] is None
    json.dumps(found)


def test_a_record_says_what_made_it_and_when_it_held() -> None:
    record = claim("f", "city", "Moab", provenance=MADE, supersedes="f0", recorded=Interval(T0, T0 + timedelta(days=1)))
    found = record_to_json(record)
    assert (found["writer"], found["prompt"], found["model"], found["origin"]) == (
        "conditional",
        "note@1",
        "small",
        "import",
    )
    assert (found["kind"], found["text"], found["supersedes"]) == ("claim", "user city: Moab", "f0")
    assert (found["recorded"], found["retired"], found["valid_to"]) == (
        "2026-03-02T09:00:00Z",
        "2026-03-03T09:00:00Z",
        None,
    )


# --- the journal line ---


FOUND = tuple(piece(episode(f"e{i}", f"said {i}", provenance=Provenance((f"t{i}",))), 1 - i / 100) for i in range(50))
RECALL = Recall(
    QUERY, (Step("history", QUERY, 3),), FOUND, FOUND[:2], 1, ("cat",), {"web": "slow"}, ("plan@1",),
    (Visit("r1", (0.123456, 0.2, 0.3), 1, -0.5),), {"total": 1.5}, "rules", ("persona",),
    (Review("draft", (("e0", 0.5),), 0.5, True, ("e9",)),), ("e0", "e1"),
)  # fmt: skip


def test_a_trace_refers_to_all_that_it_quotes_once_and_in_order() -> None:
    event = trace_event(RECALL, T0, Answer("Here.", "a1", RECALL), "u1", ("f1", ""))
    quoted = {p["id"] for p in (*event.body["found"], *event.body["kept"])}
    assert quoted <= {*event.refs}
    assert {"t0", "t1", "u1", "a1", "f1"} <= {*event.refs}
    assert "" not in event.refs
    assert list(event.refs) == sorted(set(event.refs))


def test_what_was_kept_is_quoted_however_far_down_it_was_found() -> None:
    event = trace_event(replace(RECALL, kept=FOUND[48:]), T0)
    assert len(event.body["found"]) == 40
    assert [p["id"] for p in event.body["kept"]] == ["e48", "e49"]
    assert {"e48", "e49", "t48"} <= {*event.refs}
    assert "e41" not in event.refs


def test_a_trace_without_a_reply_names_none() -> None:
    event = trace_event(RECALL, T0)
    assert (event.body["turn"], event.body["reply"], event.body["complete"]) == ("", "", True)
    assert trace_event(RECALL, T0, complete=False).body["complete"] is False


def test_a_trace_says_how_it_was_found() -> None:
    event = trace_event(RECALL, T0 + timedelta(hours=1))
    body = json.loads(json.dumps(dict(event.body)))
    assert (event.kind, event.at) == ("recall", T0 + timedelta(hours=1))
    assert body["walk"] == [["r1", 0.1235, 0.2, 0.3, 1]]
    assert body["reviews"] == [
        {"draft": "draft", "scores": [["e0", 0.5]], "consistency": 0.5, "consistent": True, "replaced": ["e9"]}
    ]
    assert (body["failed"], body["skipped"], body["rounds"], body["planner"]) == (
        {"web": "slow"},
        ["persona"],
        1,
        "rules",
    )
    assert (body["query"], body["keywords"], body["shown"]) == ("where is it", ["cat"], ["e0", "e1"])


def test_two_traces_are_two_lines() -> None:
    assert trace_event(RECALL, T0).id != trace_event(RECALL, T0).id
