"""Import and export from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.test_cli import Cli, cli  # noqa: F401 - a fixture
from support import openai_server

TALK = "Karen: I live in Moab with my parrot\nAssistant: Lovely\n\nKaren: I like tea\n"


@pytest.fixture
def talk(tmp_path: Path) -> str:
    path = tmp_path / "talk.txt"
    path.write_text(TALK, "utf-8")
    return str(path)


def test_an_import_counts_and_asks_no_model(cli: Cli, talk: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    with openai_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert cli("import", talk).stdout == "2 sessions, 3 turns, 0 skipped, 3 new\n"
        assert cli("import", talk).stdout == "2 sessions, 3 turns, 0 skipped, 0 new\n"
        assert server.requests == []
    assert cli.json("stats")["jobs"] == {}
    sessions = cli.json("sessions")["sessions"]
    assert {(s["title"], s["turns"], bool(s["ended"])) for s in sessions} == {("talk 1", 2, True), ("talk 2", 1, True)}
    assert cli.json("profile")["profile"] == {}


def test_what_is_skipped_is_counted_without_a_model(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("NYIMA_MODEL", "none")
    said = [{"uuid": "1", "sender": "human", "text": "I like tea"}, {"uuid": "2", "sender": "human", "text": " "}]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"chat_messages": [3]}, {"uuid": "k", "chat_messages": said}]))
    assert cli.json("import", str(path)) == {"sessions": 1, "turns": 1, "skipped": 2, "new": 1}


@pytest.mark.parametrize(
    ("name", "content", "more", "words"),
    [
        ("talk.txt", "no speaker at all", (), "write lines as `Name: what was said`"),
        ("talk.jsonl", '{"text": "a"}\n{"role": "x", "text": "b"}', (), "line 2: "),
        ("conversations.json", "[1]", (), "conversation 1 is no object"),
        ("talk.txt", TALK, ("--format", "gemini"), "there is no format 'gemini'"),
        ("me.jsonl", '{"nyima": 1}\n{"turn": {}}', (), "me.jsonl, line 2: "),
    ],
)
def test_a_file_that_cannot_be_read_brings_nothing_in(
    cli: Cli,  # noqa: F811
    tmp_path: Path,
    name: str,
    content: str,
    more: tuple[str, ...],
    words: str,
) -> None:
    (tmp_path / name).write_text(content)
    assert words in cli("import", str(tmp_path / name), *more, code=2).output
    assert cli.json("sessions")["sessions"] == []


def test_enriching_is_only_done_when_it_is_wanted(cli: Cli, talk: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    with openai_server(plan=['{"remember": false, "facts": {}, "text": "Karen lives in Moab."}']) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        asked = cli("import", talk, "--enrich", input="n\n")
        assert "about 7 model calls, " in asked.output.replace("\n", " ")
        assert "Go on?" in asked.stderr
        assert asked.stdout.splitlines()[-1].endswith("3 new, 7 estimated_calls, 0 jobs")
        assert server.requests == []
        done = cli.json("import", talk, "--enrich", "--yes")
        assert (done["new"], done["parked"], done["waiting"]) == (0, 0, 0)
        assert done["jobs"] > 0
        assert server.requests != []


def exported(nyima: Cli, *arguments: str) -> str:
    return str(nyima("export", *arguments).stdout)


def test_markdown_has_every_part_under_its_title(cli: Cli, talk: str, tmp_path: Path) -> None:  # noqa: F811
    cli("import", talk)
    cli("remember", "My cat is called [b]Luna[/b]")
    text = exported(cli, "--format", "markdown", "--user", "me")
    lines = text.splitlines()
    assert lines[0] == "# What Nyima remembers of me"
    assert [line for line in lines if line in {"## Profile", "## Notes", "## Summaries"}] == [
        "## Profile", "## Notes", "## Summaries",
    ]  # fmt: skip
    assert any(line.endswith(": My cat is called [b]Luna[/b]") for line in lines)
    assert "**Karen**: I like tea  " in lines
    assert any(line.startswith("## ") and line.endswith(" talk 2") for line in lines)
    out = tmp_path / "me.md"
    cli("export", "--format", "markdown", "-o", str(out))
    assert out.read_text("utf-8") == text


def test_an_export_holds_nobody_elses_words(cli: Cli) -> None:  # noqa: F811
    cli("remember", "The safe opens with zebrafish", "--user", "ana")
    assert exported(cli) == '{"nyima": 1, "user": "me"}\n'
    assert "zebrafish" in exported(cli, "--user", "ana")


def test_what_was_retired_comes_back_as_retired(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    cli("remember", "I live in Porto")
    relation = cli.json("graph", "state", "user", "lives in", "Porto")["id"]
    cli("revise", relation, "Braga")
    out = tmp_path / "me.jsonl"
    cli("export", "-o", str(out))
    other = Cli(tmp_path / "other.db")
    assert other("import", str(out)).stdout == "1 sessions, 1 turns, 0 skipped, 1 new\n"
    for arguments in (("memories",), ("memories", "--all"), ("graph", "history", "user lives in")):
        assert other.json(*arguments) == cli.json(*arguments), arguments
    assert other.json("profile")["profile"] == cli.json("profile")["profile"] == {"lives in": "Braga"}
    assert "nothing was changed" not in other("log").stdout


def test_a_folder_to_write_to_is_told_with_its_code(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    assert "check the path and the disk" in cli("export", "-o", str(tmp_path), code=5).output
    assert "check the path and the disk" in cli("export", "-o", str(tmp_path / "none" / "x"), code=5).output


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("talk.jsonl", "[" * 100_000),
        ("me.jsonl", '{"nyima": 1}\n{"session": {"id": "s", "started": "0001-01-01T00:00:00+14:00", "ended": null, "title": ""}}'),
    ],
    ids=["brackets", "export-before-time"],
)  # fmt: skip
def test_a_hostile_file_is_a_wrong_input(cli: Cli, tmp_path: Path, name: str, content: str) -> None:  # noqa: F811
    (tmp_path / name).write_text(content)
    done: Any = cli("import", str(tmp_path / name), code=2)
    assert name in done.output
