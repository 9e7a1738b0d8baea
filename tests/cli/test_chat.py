"""The chat in a pipe: its slash commands, its script, what it keeps and how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.test_cli import Cli, cli  # noqa: F401 - a fixture
from nyima.cli.chat import _count, _remembered
from support import FakeServer, answer, openai_server


@dataclass
class Chat:
    """A chat with a scripted server behind it."""

    cli: Cli
    server: FakeServer

    def __call__(self, *lines: str, code: int = 0, options: tuple[str, ...] = ()) -> Any:
        return self.cli("chat", *options, input="".join(f"{line}\n" for line in lines), code=code)

    @property
    def said(self) -> list[str]:
        rows = map(json.loads, self.cli("export").stdout.splitlines())
        return [row["turn"]["text"] for row in rows if "turn" in row]


@pytest.fixture
def chat(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Chat]:  # noqa: F811
    config = tmp_path / "config.toml"
    config.write_text("tools = []\n")
    monkeypatch.setenv("NYIMA_CONFIG", str(config))
    with openai_server(plan=[answer("I see.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield Chat(cli, server)


def test_what_is_typed_and_replied_is_shown_and_kept(chat: Chat) -> None:
    done = chat("Hello there", "", "goodbye", "never read")
    out = done.stdout
    assert done.stderr == "", "an empty line is no message"
    assert "you    Hello there\nNyima  I see.\n" in out
    assert "remembered: nothing new        (0 model calls, 0 tokens)" in out
    assert chat.said[1:] == ["Hello there", "I see.", "goodbye", "I see."]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/good", "there is no reply yet"),
        ("/correct", "there is no reply yet"),
        ("/why", "nothing was recalled yet"),
        ("/recall", "an empty query finds nothing: give some words"),
        ("/forget", "an empty query finds nothing: give some words"),
        ("/forget zebra", "nothing that is remembered is to the point: say it in other words"),
        ("/recipe nothing", "there is no recipe 'nothing': choose one of"),
        ("/recipe history", "recipe: every utterance, top 3 by cosine"),
        ("/dance", "there is no command /dance: /help lists them"),
        ("/help", "Ctrl-C          stop a reply; a second time end the conversation"),
    ],
)
def test_a_slash_command_that_cannot_be_done_ends_nothing(chat: Chat, line: str, words: str) -> None:
    done = chat(line, "Still here?")
    if line == "/why":
        assert "query     " in done.output, "the greeting has a trace of its own"
    else:
        assert words in done.output
    assert chat.said[1:] == ["Still here?", "I see."], "a command is no turn"


def test_every_command_of_the_help_is_known(chat: Chat) -> None:
    helped = chat("/help").stdout
    names = [n.strip(",") for row in helped.splitlines() for n in row.split()[:2] if n.startswith("/")]
    assert len(names) >= 9
    assert "there is no command" not in chat(*(f"{n} x" if n == "/recall" else n for n in names)).output


def test_the_trace_of_a_reply_is_that_of_its_message(chat: Chat) -> None:
    chat.cli("remember", "My cat is called Luna")
    out = chat("What is my cat called?", "/why").stdout
    assert "query     What is my cat called?" in out
    assert "Luna" in out.split("query     ")[1]


def test_a_thumb_is_kept_and_teaches_nothing_unless_it_is_set(chat: Chat) -> None:
    out = chat("Hello there", "/good", "/bad", "/correct", "/correct Good morning").stdout
    assert out.count("thank you, kept (nothing is learned from it: the setting `learn` is off)") == 3
    assert "say what it should have been: /correct TEXT" in out


def test_a_private_chat_reads_and_keeps_nothing(chat: Chat) -> None:
    chat.cli("remember", "My cat is called Luna")
    before = chat.said
    done = chat("What is my cat called?", "/good", "/recall cat", "My pin is 4711.", options=("--private",))
    assert "nothing of a private chat is kept" in done.stdout
    assert "Luna" in done.stdout
    assert "Luna" in chat.server.requests[0]["messages"][-1]["content"]
    assert "remembered:" not in done.stdout
    assert chat.said == before


def test_becoming_private_ends_the_open_session_and_leaving_it_begins_another(chat: Chat) -> None:
    out = chat("one", "/private", "two", "/private", "three").stdout
    assert "private: nothing of this is kept" in out
    assert "no longer private" in out
    assert chat.said[1:] == ["one", "I see.", "three", "I see."]
    assert [bool(s["ended"]) for s in chat.cli.json("sessions")["sessions"]] == [True, True]


def test_forgetting_in_the_chat_says_what_goes_and_without_a_yes_takes_nothing(chat: Chat) -> None:
    chat.cli("remember", "The safe opens with zebrafish")
    done = chat("/forget what opens the safe zebrafish")
    assert "User: The safe opens with zebrafish" in done.stdout
    assert "not confirmed; nothing was changed" in done.stderr
    assert chat.cli.json("recall", "zebrafish")["kept"] != []


@pytest.mark.parametrize(("typed", "left"), [("y", False), ("n", True)])
def test_the_answer_to_a_question_in_a_pipe_is_no_message(chat: Chat, typed: str, left: bool) -> None:
    chat.cli("remember", "The safe opens with zebrafish")
    chat("/forget what opens the safe zebrafish", typed)
    assert typed not in chat.said
    assert bool(chat.cli.json("recall", "zebrafish")["kept"]) is left


def test_a_model_that_fails_is_told_with_what_is_kept(chat: Chat) -> None:
    chat.server.plan = [400]
    done = chat("Hello there", "Are you there?", code=4)
    assert done.output.count("planned 400") >= 2
    assert "; what you said is kept" in done.stderr
    assert {"Hello there", "Are you there?"} <= set(chat.said)
    done = chat("Secret", code=4, options=("--private",))
    assert "what you said is kept" not in done.output


def test_with_debug_what_is_extracted_and_merged_is_shown(chat: Chat) -> None:
    chat.server.plan = [
        answer("Hi Karen!", remember=True, claims={"name": "Karen"}),
        '{"text": "Karen.", "over": [], "said": [1], "context": "", "knowledge": "Karen."}',
    ]
    done = chat("I'm Karen.", "goodbye", options=("--debug",))
    assert "extracted: remember True, claims [('user', 'name', 'Karen', 'holds')]" in done.stderr
    assert "profile: {'name': 'Karen'}" in done.stderr


def test_a_script_from_standard_input_gives_a_line_a_turn_and_a_session(chat: Chat) -> None:
    done = chat.cli("chat", "--json", input="one\r\ntwo\n\n\nthree\n")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row.get("user", "end") for row in rows] == ["one", "two", "end", "three", "end"]
    assert [row["reply"] for row in rows if "reply" in row] == ["I see."] * 3
    assert rows[0]["calls"] == 1
    assert len(chat.cli.json("sessions")["sessions"]) == 2


def test_a_script_to_read(chat: Chat, tmp_path: Path) -> None:
    script = tmp_path / "talk.txt"
    script.write_text("one\n\ntwo", "utf-8")
    out = chat.cli("chat", "--script", str(script)).stdout
    assert out.startswith("you    one\nNyima  I see.\n       remembered: ")
    script.write_bytes(b"caf\xe9")
    assert "talk.txt cannot be read" in chat.cli("chat", "--script", str(script), code=2).output


@pytest.mark.parametrize("arguments", [("--recipe", "nothing"), ("--model", "none")])
def test_what_cannot_be_used_is_told_before_a_file_is_made(cli: Cli, arguments: tuple[str, str]) -> None:  # noqa: F811
    cli("chat", *arguments, code=2 if arguments[0] == "--recipe" else 4)
    assert not cli.db.exists()


@pytest.mark.parametrize(
    ("count", "one", "words"),
    [(1, "note", "1 note"), (2, "summary", "2 summaries"), (0, "model call", "0 model calls")],
)
def test_counts_are_written_as_people_do(count: int, one: str, words: str) -> None:
    assert _count(count, one) == words


def test_only_what_a_person_would_count_is_remembered() -> None:
    assert _remembered({"claim": 2, "note": 1, "summary": 1}) == "1 note, 2 claims, 1 summary"
    assert _remembered({"entity": 5, "episode": 2}) == "nothing new"
