"""Remember, list, recall, change, forget: what is printed, and in which form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.test_cli import Cli, cli  # noqa: F401 - a fixture


@pytest.fixture
def told(cli: Cli) -> Cli:  # noqa: F811
    cli("remember", "My cat is called Luna")
    cli("remember", "I live in [red]Porto[/red]")
    cli("graph", "state", "cat", "colour", "black")
    return cli


def ids(nyima: Cli, kind: str) -> list[str]:
    return [r["id"] for r in nyima.json("memories", "--kind", kind)["records"]]


def test_what_is_listed_is_text_and_never_markup(told: Cli) -> None:
    out = told("memories").stdout
    assert "[red]Porto[/red]" in out
    assert out.splitlines()[-1] == f"{len(told.json('memories')['records'])} records"
    assert "[red]Porto[/red]" in told("recall", "where do I live").stdout


def test_kinds_can_be_repeated(told: Cli) -> None:
    kinds = [r["kind"] for r in told.json("memories", "--kind", "note", "--kind", "claim")["records"]]
    assert set(kinds) == {"note", "claim"}
    found = told.json("recall", "my cat", "--kind", "note")["kept"]
    assert {p["kind"] for p in found} == {"note"}


def test_what_is_retired_is_listed_with_a_cross_when_asked(told: Cli) -> None:
    relation = ids(told, "claim")[0]
    told("graph", "retire", relation)
    assert relation not in told("memories").stdout
    line = next(row for row in told("memories", "--all").stdout.splitlines() if relation in row)
    assert line.startswith("× claim")


def test_as_of_looks_back(told: Cli) -> None:
    assert told.json("memories", "--as-of", "2001-01-01")["records"] == []
    assert told.json("recall", "cat", "--as-of", "2001-01-01")["kept"] == []
    assert told.json("memories", "--as-of", "2999-01-01")["records"] != []


@pytest.mark.parametrize("k", ["0", "1001", "-1", "x"])
def test_a_number_of_pieces_has_limits(told: Cli, k: str) -> None:
    assert "--k" in told("recall", "cat", "--k", k, code=2).output
    assert len(told.json("recall", "cat", "--k", "1")["kept"]) == 1


@pytest.mark.parametrize("arguments", [("--recipe", "default@²"), ("--as-of", "soon")])
def test_an_odd_number_is_a_wrong_input(told: Cli, arguments: tuple[str, str]) -> None:
    told("recall", "cat", *arguments, code=2)


def test_nothing_to_the_point_is_said(cli: Cli) -> None:  # noqa: F811
    assert "nothing to the point is remembered" in cli("recall", "zebra").stdout
    assert "nothing is known yet" in cli("profile").stdout
    assert "nothing was changed yet" in cli("log").stdout
    assert cli("sessions").stdout == "0 sessions\n"
    assert "jobs     none" in cli("stats").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("redo",), 3, "there is no undo left to take back"),
        (("undo", "999"), 3, "there is no change '999': `nyima log` lists them"),
        (("log", "--limit", "0"), 2, "--limit"),
        (("forget", "--query", "zebra", "--yes"), 3, "there is nothing to forget"),
        (("forget", "--yes"), 3, "give an id, a query that finds something, or a session"),
        (("revise", "n-", "x"), 3, "n-"),
        (("memories", "--as-of", "yesterday"), 2, "is no date"),
    ],
)
def test_what_is_not_there(told: Cli, arguments: tuple[str, ...], code: int, words: str) -> None:
    before = told("export").stdout
    assert words in told(*arguments, code=code).output
    assert told("export").stdout == before


def test_a_change_cannot_be_undone_twice(told: Cli) -> None:
    change = told.json("log")["changes"][0]["id"]
    told("undo", change)
    assert f"change '{change}'" in told("undo", change, code=2).output


def test_an_id_may_be_shortened_to_its_unambiguous_beginning(told: Cli) -> None:
    note = ids(told, "note")[0]
    assert told.json("why", note[:12])["record"]["id"] == note
    assert "several records begin with 'n-t-'" in told("why", "n-t-", code=3).output
    assert "there is no record 'n-t'" in told("why", "n-t", code=3).output, "three letters are too few"


def test_undo_says_what_before_it_does_it_and_json_says_nothing_else(told: Cli) -> None:
    first, second = told("undo").stdout.splitlines()
    assert first.startswith("undo      ")
    assert second == "taken back; `nyima redo` brings it back"
    assert told("redo").stdout.startswith("done again: ")
    assert set(json.loads(told("undo", "--json").stdout)) == {"undone"}


def test_a_receipt_tells_what_went_and_what_stays(told: Cli) -> None:
    note = ids(told, "note")[0]
    shown = told("forget", note, input="y\n")
    assert "said      " in shown.stderr
    assert "Erase this for good?" in shown.stderr
    assert "erased    1 episode, 1 note, 1 turns\n" in shown.stdout
    assert "0 bytes of it left" in shown.stdout


def test_everything_is_forgotten_only_when_it_is_confirmed(told: Cli) -> None:
    for typed in ("", "n\n"):
        refused = told("forget", "--all", input=typed, code=1).output
        assert "Erase everything for good?" in refused
        assert "not confirmed; nothing was changed" in refused
    assert told.json("memories")["records"] != []
    receipt = told.json("forget", "--all", "--yes")
    assert receipt["bytes_found"] == 0
    assert told.json("memories", "--all")["records"] == told.json("sessions")["sessions"] == []


def test_a_session_is_forgotten_with_all_that_was_said_in_it(told: Cli) -> None:
    session = told.json("sessions")["sessions"][0]
    assert "Luna" in told("forget", "--session", session["id"], input="y\n").stderr
    left = told.json("sessions")["sessions"]
    assert session["id"] not in {s["id"] for s in left}
    assert not [r for r in told.json("memories", "--all")["records"] if "Luna" in r["text"]]


def test_a_new_value_is_explained_with_the_old_one(cli: Cli) -> None:  # noqa: F811
    first = cli.json("graph", "state", "cat", "name", "Luna")["id"]
    new = cli.json("revise", first, "Momo")["record"]
    assert (new["supersedes"], new["text"]) == (first, "cat name: Momo")
    told = cli("why", new["id"]).stdout
    assert "before, until " in told
    assert "cat name: Luna" in told


def rows(nyima: Cli, *arguments: str) -> Any:
    return json.loads(nyima(*arguments, "--json").stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        ("recall", "cat"),
        ("profile",),
        ("memories",),
        ("log",),
        ("sessions",),
        ("stats",),
        ("sources",),
        ("docs", "list"),
        ("graph", "show"),
        ("graph", "history", "cat colour"),
        ("reminders",),
        ("travel", "home"),
        ("keys", "list"),
        ("models", "list"),
        ("config", "show"),
        ("reindex",),
        ("undo",),
    ],
    ids=" ".join,
)
def test_with_json_standard_output_is_one_document(told: Cli, arguments: tuple[str, ...]) -> None:
    assert isinstance(rows(told, *arguments), dict)


def test_standard_error_may_say_more_and_standard_output_stays_json(told: Cli, tmp_path: Path) -> None:
    broken = tmp_path / "own_broken.py"
    broken.write_text("def find(query):\n    raise ValueError('out of order')\n")
    import sys

    sys.path.insert(0, str(tmp_path))
    try:
        told("sources", "--add", "broken", "--call", "own_broken:find")
        done = told("recall", "cat", "--json")
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("own_broken", None)
    assert "broken: ValueError: out of order" in done.stderr
    assert json.loads(done.stdout)["kept"]
