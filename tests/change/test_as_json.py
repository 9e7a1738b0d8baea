"""Changes, erases and what they would take in JSON."""

from __future__ import annotations

import json
from typing import Any

from made import T0, claim, note, said
from nyima.change.as_json import change_to_dict, forgetting_to_dict, receipt_to_dict
from nyima.change.cascade import Forgetting, Receipt
from nyima.change.undo import LoggedChange
from nyima.domain.conversation import Role


def line(**more: Any) -> LoggedChange:
    given = {"id": "7", "at": T0, "by": "user", "what": "pet", "before": "", "after": "", "undoable": True, **more}
    return LoggedChange(**given)


def test_a_change_in_json_has_no_rows() -> None:
    assert change_to_dict(line(before="cat", after="dog", turn="t1")) == {
        "id": "7", "at": "2026-03-02T09:00:00Z", "what": "pet", "before": "cat", "after": "dog", "by": "user", "undoable": True,
    }  # fmt: skip


def test_a_receipt_in_json_counts_and_names_what_still_says_it() -> None:
    made = receipt_to_dict(Receipt({"note": 2}, 1, 3, {"traces": 4}, 5, 0, ("t1", "t2")))
    assert made == {
        "erased": {"note": 2}, "rederived": 1, "turns": 3, "also": {"traces": 4}, "files_scanned": 5, "bytes_found": 0,
        "still_said": ["t1", "t2"],
    }  # fmt: skip
    json.dumps(made)


def test_what_would_go_in_json_has_texts_and_roles() -> None:
    going = Forgetting((said("t", "hi"),), (note("n", "x"), claim("f", "k", "v")), (said("u", "ho", Role.ASSISTANT),))
    made = json.loads(json.dumps(forgetting_to_dict(going)))
    assert [t["text"] for t in made["turns"]] == ["hi"]
    assert [(r["id"], r["kind"], r["text"]) for r in made["records"]] == [
        ("n", "note", "x"),
        ("f", "claim", "user k: v"),
    ]
    assert [(t["id"], t["role"]) for t in made["kept"]] == [("u", "assistant")]
    assert forgetting_to_dict(Forgetting()) == {"turns": [], "records": [], "kept": []}
