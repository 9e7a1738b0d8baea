"""The commands and their JSON: contracts that programs rely on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nyima.cli.main import app
from support import answer, openai_server

NYIMA = [sys.executable, "-c", "from nyima.cli.main import run; run()"]


class Cli:
    """Runs commands in this process, on one file, without vectors."""

    def __init__(self, db: Path) -> None:
        self.db = db
        self.runner = CliRunner()

    def __call__(self, *arguments: str, code: int = 0, **options: Any) -> Any:
        result = self.runner.invoke(app, [*arguments, "--db", str(self.db)], **options)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    def json(self, *arguments: str, **options: Any) -> Any:
        return json.loads(self(*arguments, "--json", **options).stdout)


@pytest.fixture
def cli(db: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("NYIMA_EMBEDDER", "none")
    return Cli(db)


def test_remember_recall_why_forget(cli: Cli) -> None:
    made = cli.json("remember", "My flight is on 3 May at 9:40")
    assert set(made) == {"turn", "records", "read"}
    assert not made["read"], "there is no model to read it"
    found = cli.json("recall", "when is my flight", "--k", "3")
    assert set(found) == {"query", "plan", "kept", "ms"}
    assert set(found["ms"]) == {"embed", "search", "total"}
    first = found["kept"][0]
    assert {"id", "kind", "text", "source", "score", "turns", "valid_from", "valid_to"} <= set(first)
    assert first["turns"] == [made["turn"]]
    trace = cli.json("why")
    assert {"plan", "found", "kept", "rounds", "prompts"} <= set(trace)
    assert cli.json("why", made["records"][1])["turns"][0]["text"] == "My flight is on 3 May at 9:40"
    receipt = cli.json("forget", made["records"][1], "--yes")
    assert set(receipt) == {"erased", "rederived", "turns", "also", "files_scanned", "bytes_found", "still_said"}
    assert receipt["bytes_found"] == 0
    assert receipt["erased"] == {"episode": 1, "note": 1}
    assert cli.json("recall", "flight")["kept"] == []


def test_forget_asks_first(cli: Cli) -> None:
    made = cli.json("remember", "The safe opens with zebrafish")
    assert "zebrafish" in cli("forget", made["records"][1], input="n\n", code=1).output
    assert len(cli.json("memories", "--kind", "note")["records"]) == 1
    cli("forget", "--query", "what opens the safe zebrafish", input="y\n")
    assert cli.json("memories", "--all")["records"] == []


def test_memories_profile_revise_undo_sessions_stats(cli: Cli) -> None:
    cli.json("remember", "I like green tea")
    (note,) = cli.json("memories", "--kind", "note")["records"]
    assert {"id", "kind", "text", "turns", "valid_from", "valid_to"} <= set(note)
    new = cli.json("revise", note["id"], "I like black tea")["record"]
    assert new["supersedes"] == note["id"]
    assert cli.json("undo")["undone"]["after"] == "I like black tea"
    assert [r["text"] for r in cli.json("memories", "--kind", "note")["records"]] == ["I like green tea"]
    assert cli.json("memories", "--as-of", "2001-01-01")["records"] == []
    assert cli.json("profile") == {"profile": {}, "claims": [], "unread": 1}
    (session,) = cli.json("sessions")["sessions"]
    assert session["turns"] == 1
    stats = cli.json("stats")
    assert set(stats) >= {"records", "calls", "tokens", "jobs"}
    assert set(stats["records"]["note"]) == {"count", "per_utterance", "mean_words"}


def test_the_log_names_changes_and_undo_takes_one(cli: Cli) -> None:
    cli.json("remember", "I like green tea")
    cli.json("remember", "I like chess")
    rows = cli.json("log")["changes"]
    assert set(rows[0]) == {"id", "at", "what", "before", "after", "by", "undoable"}
    assert ["chess" in r["after"] for r in rows] == [True, False]
    told = cli("undo", rows[1]["id"]).output
    assert "green tea" in told
    assert [r["text"] for r in cli.json("memories", "--kind", "note")["records"]] == ["I like chess"]
    assert "green tea" in cli("redo").output
    assert len(cli.json("memories", "--kind", "note")["records"]) == 2
    assert "undo: nyima undo" in cli("log", "--limit", "2").output


def test_revise_with_the_same_text_changes_nothing(cli: Cli) -> None:
    cli.json("remember", "I live in Braga.")
    before = cli.json("memories", "--all")["records"]
    for row in before:
        assert cli.json("revise", row["id"], row["text"])["record"]["id"] == row["id"]
    assert cli.json("memories", "--all")["records"] == before


def test_forget_only_says_that_the_words_stay(cli: Cli) -> None:
    made = cli.json("remember", "The safe opens with zebrafish")
    shown = cli("forget", made["records"][1], "--only", input="y\n").output
    assert "stays" in shown
    assert "still says it" in shown


def test_users_are_apart(cli: Cli) -> None:
    cli.json("remember", "I like green tea", "--user", "karen")
    assert cli.json("recall", "tea", "--user", "tomas")["kept"] == []
    assert cli.json("recall", "tea", "--user", "karen")["kept"] != []


def test_import_and_export_go_round(cli: Cli, tmp_path: Path) -> None:
    talk = tmp_path / "talk.txt"
    talk.write_text("Karen: My cat is called Nyima\nAssistant: Lovely\n", "utf-8")
    done = cli.json("import", str(talk))
    assert {"sessions", "turns", "skipped"} <= set(done)
    assert (done["sessions"], done["turns"], done["new"]) == (1, 2, 2)
    assert cli.json("import", str(talk))["new"] == 0
    lines = [json.loads(line) for line in cli("export").stdout.splitlines()]
    assert [next(iter(line)) for line in lines] == ["nyima", "session", "turn", "turn", "record", "record"]
    assert "**Karen**: My cat is called Nyima" in cli("export", "--format", "markdown").stdout
    out = tmp_path / "me.jsonl"
    cli("export", "-o", str(out))
    other = Cli(tmp_path / "other.db")
    assert other.json("import", str(out))["new"] == 2
    assert other.json("recall", "what is my cat called")["kept"][0]["text"] == "Karen: My cat is called Nyima"
    assert other("export").stdout == cli("export").stdout
    assert other.json("import", str(out))["new"] == 0
    assert other("export").stdout == cli("export").stdout


def test_a_scripted_chat_prints_one_json_line_a_turn(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "talk.txt"
    script.write_text("I'm Karen, I live in Moab.\ngoodbye\n\nWhere do I live?\n", "utf-8")
    first = answer("Hi Karen!", remember=True, claims={"name": "Karen", "location": "Moab"})
    note = '{"context": "", "knowledge": "The user is Karen and lives in Moab."}'
    look = '{"over": [], "said": [1, 2]}'
    fold = '{"text": "The user is Karen. The user lives in Moab."}'
    with openai_server(plan=[first, answer("Bye!"), look, note, fold, answer("In Moab.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("NYIMA_CONFIG", str(tmp_path / "config.toml"))
        (tmp_path / "config.toml").write_text("tools = []\n")
        rows = [json.loads(line) for line in cli("chat", "--script", str(script), "--json").stdout.splitlines()]
    assert [row.get("reply", "end") for row in rows] == ["Hi Karen!", "Bye!", "end", "In Moab.", "end"]
    turn = rows[0]
    assert set(turn) >= {"user", "reply", "notes", "recall", "calls", "tokens", "ms"}
    assert turn["notes"] == {
        "remember": True,
        "claims": [
            {"who": "user", "what": "name", "value": "Karen", "status": "holds"},
            {"who": "user", "what": "location", "value": "Moab", "status": "holds"},
        ],
        "outdated": [],
    }
    assert set(turn["recall"]) == {"plan", "kept"}
    assert set(turn["tokens"]) == {"prompt", "cached", "completion"}
    assert rows[2] == {
        "session_end": True,
        "profile": {"name": "Karen", "location": "Moab"},
        "records": {"note": 1, "summary": 1, "claim": 2, "entity": 3},
    }
    assert "location: Moab" in server.requests[-1]["messages"][0]["content"]
    assert server.requests[0]["model"] == "fake-model"


def test_a_chat_from_standard_input(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with openai_server(plan=[answer("Nice to meet you!"), answer("Bye!")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        out = cli(
            "chat", "--debug", input="hello\n/help\n/profile\n/recall hello\n/why\n/private\nhush\n/private\ngoodbye\n"
        ).stdout
    assert "What should I call you?" in out
    assert "Nyima  Nice to meet you!" in out
    assert "/forget WORDS" in out
    assert "private: nothing of this is kept" in out
    assert "remembered: nothing new" in out
    texts = [t["turn"]["text"] for t in map(json.loads, cli("export").stdout.splitlines()) if "turn" in t]
    assert "hush" not in texts
    assert "hello" in texts


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["recall", " "], 2, "give some words"),
        (["remember", ""], 2, "empty"),
        (["why", "nothing-here"], 3, "no record"),
        (["why"], 3, "nothing was recalled"),
        (["revise", "f-nothing", "x"], 3, "no record"),
        (["forget", "--session", "s-x", "--yes"], 3, "no session"),
        (["undo"], 3, "no change left"),
        (["recall", "x", "--recipe", "nothing"], 2, "choose one of"),
        (["recall", "x", "--as-of", "soon"], 2, "no date"),
        (["import", "/nowhere/at/all"], 2, "does not exist"),
        (["export", "--format", "pdf"], 2, "jsonl or markdown"),
        (["export", "--format", "markdown", "--json"], 2, "no JSON"),
        (["memories", "--kind", "facts"], 2, "choose from"),
        (["recall", "x", "--kind", "facts"], 2, "choose from"),
        (["forget", "--all"], 1, "nothing was changed"),
        (["chat", "--model", "none"], 4, "a chat needs one"),
        (["models", "verify", "nothing"], 3, "minilm-l6-int8"),
        (["eval", "retrieval", "locomo", "/nowhere"], 2, "does not exist"),
        (["chat", "--script", "/nowhere.txt"], 2, "cannot be read"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_mistakes_get_a_message_and_a_code(cli: Cli, arguments: list[str], code: int, words: str) -> None:
    result = cli(*arguments, code=code) if arguments != ["nonsense"] else cli.runner.invoke(app, arguments)
    assert words in result.output
    assert result.exit_code == code
    assert "Traceback" not in result.output


def test_a_model_that_is_away_keeps_what_was_said(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "talk.txt"
    script.write_text("I'm Karen, I live in Moab.\n", "utf-8")
    config = tmp_path / "config.toml"
    config.write_text('base_url = "http://127.0.0.1:9/v1"\nmodel = "m"\nembedder = "none"\n')
    monkeypatch.setenv("NYIMA_CONFIG", str(config))
    result = cli("chat", "--script", str(script), code=4)
    assert "cannot be reached" in result.output
    assert cli.json("stats")["jobs"] == {"queued": 1}
    assert "Karen" in cli("export").stdout


def test_a_foreign_file_is_explained(cli: Cli) -> None:
    cli.db.write_text("not a database at all, " * 100)
    assert "--db" in cli("recall", "x", code=5).output


def test_settings_say_where_they_come_from(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.toml"
    config.write_text('user = "file"\nrecipe = "history"\napi_key = "sk-secret"\n')
    monkeypatch.setenv("NYIMA_CONFIG", str(config))
    monkeypatch.setenv("NYIMA_USER", "environment")
    rows = cli.json("config", "show", "--origin")
    assert rows["user"] == {"value": "environment", "origin": "NYIMA_USER"}
    assert rows["recipe"] == {"value": "history", "origin": str(config)}
    assert rows["db"]["origin"] == "argument"
    assert rows["silence_minutes"]["origin"] == "default"
    assert "sk-secret" not in cli("config", "show", "--origin").output
    config.write_text("nonsense = 1\n")
    assert "no setting 'nonsense'" in cli("config", "show", code=2).output
    config.write_text("user = [")
    assert "cannot be read" in cli("config", "show", code=2).output


def test_doctor_reindex_models_list_work(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.json("remember", "I like green tea")
    checks = (
        cli.json("doctor", code=1)["checks"]
        if cli.runner.invoke(app, ["doctor", "--db", str(cli.db)]).exit_code != 0
        else cli.json("doctor")["checks"]
    )
    assert {c["check"] for c in checks} >= {"python", "sqlite", "memory", "work owed", "file"}
    assert cli.json("reindex") == {"records": 2, "embedded": 0}
    assert len(cli.json("models", "list")["models"]) >= 7
    with openai_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = cli.json("work")
        assert (done["waiting"], done["parked"]) == (0, 0)
        assert done["done"] >= 1, "the message that waited was read"


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, nyima, nyima.cli.main;"
        "print([m for m in ('numpy', 'openai', 'onnxruntime', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_program_runs_as_a_process(db: Path) -> None:
    environment = {**os.environ, "NYIMA_EMBEDDER": "none", "NYIMA_DB": str(db)}
    done = subprocess.run(
        [*NYIMA, "remember", "I like tea", "--json"], capture_output=True, text=True, env=environment, check=True
    )
    assert json.loads(done.stdout)["records"]
    found = subprocess.run(
        [*NYIMA, "recall", "tea", "--json"], capture_output=True, text=True, env=environment, check=True
    )
    assert json.loads(found.stdout)["kept"]
    assert found.stderr == ""


def test_enriching_an_import_says_the_cost_and_makes_notes(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = tmp_path / "talk.txt"
    talk.write_text("Karen: I live in Moab with my parrot\nAssistant: Lovely\n", "utf-8")
    claims = [{"who": "user", "what": "location", "value": "Moab", "status": "holds"}]
    every = {
        "turns": [{"n": 1, "remember": True, "claims": claims}],
        "over": [],
        "said": [1],
        "text": "The user lives in Moab.",
    }
    every |= {"context": "", "knowledge": "The user lives in Moab with a parrot."}
    with openai_server(plan=[json.dumps(every)]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert "about 4 model calls" in cli("import", str(talk), "--enrich", input="n\n").output
        assert server.requests == []
        done = cli.json("import", str(talk), "--enrich")
    assert (done["new"], done["estimated_calls"], done["waiting"], done["parked"]) == (0, 4, 0, 0)
    assert cli.json("profile")["profile"] == {"location": "Moab"}
    assert len(cli.json("memories", "--kind", "note")["records"]) == 1
