"""Notes in a program's own call: from models that write them, and never instead of a reply."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import openai
import pytest

from nyima.server.proxy.note_support import Notetakers
from nyima.testing.upstream import StubUpstream

from .conftest import NOTES, Desk, chunks, desk_at, said

ALONE = NOTES.format(facts="cat_name: Nyima").lstrip("\n")


def asks(body: dict[str, Any]) -> bool:
    return "<nyima-notes>" in str(body)


class Thinker(StubUpstream):
    """Thinks aloud, answers when somebody has heard it thinking, and is heard all at once else."""

    heard = threading.Event()

    async def _answer(self, path: str, body: dict[str, Any], send: Any) -> None:
        deltas = [{"role": "assistant"}, *({"reasoning_content": "hm "} for _ in range(30)), {"content": "Hello!"}]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for delta in deltas:
            row = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
            await send(
                {"type": "http.response.body", "body": f"data: {json.dumps(row)}\n\n".encode(), "more_body": True}
            )
            if delta is deltas[15]:
                await asyncio.to_thread(self.heard.wait, 60)
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


@pytest.fixture
def terse(desk: Desk) -> Desk:
    """A model that, when it is asked for notes, writes nothing else."""
    desk.stub.reply = lambda body: ALONE if asks(body) else "Hello, Nyima!"
    return desk


@pytest.mark.req("serve.proxy")
@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_of_notes_alone_is_asked_for_again(terse: Desk, stream: bool) -> None:
    answer = terse.ask("My cat is called Nyima.", stream=stream)
    shown = said(answer.text) if stream else answer.json()["choices"][0]["message"]["content"]
    assert shown == "Hello, Nyima!"
    assert [asks(b) for b in terse.stub.bodies] == [True, False]
    assert [t.text for t in terse.turns()] == ["My cat is called Nyima.", "Hello, Nyima!"]
    if stream:
        ends = [c["choices"][0]["finish_reason"] for c in chunks(answer.text)]
        assert [e for e in ends if e] == ["stop"]


def test_a_response_of_notes_alone_is_asked_for_again(terse: Desk) -> None:
    with openai.OpenAI(base_url=f"{terse.url}/v1", api_key=terse.secret) as client:
        assert client.responses.create(model="stub", input="My cat is called Nyima.").output_text == "Hello, Nyima!"
        with client.responses.stream(model="stub", input="She is eleven.") as typed:
            seen = [e.type for e in typed]
            assert typed.get_final_response().output_text == "Hello, Nyima!"
    assert seen.count("response.created") == 1
    assert [asks(b) for b in terse.stub.bodies] == [True, False, True, False]


def test_both_calls_of_such_a_reply_are_counted(terse: Desk) -> None:
    secret = terse.key("karen", tokens=1_000_000)
    terse.ask("My cat is called Nyima.", secret=secret)
    with terse.client(terse.key("ops", "admin")) as client:
        assert 'nyima_llm_tokens_total{direction="out"} 10.0' in client.get("/metrics").text


def test_a_model_that_never_writes_notes_is_not_asked_for_ever(desk: Desk) -> None:
    desk.stub.reply = "Fine."
    for number in range(6):
        desk.ask(f"I live in house {number}.", stream=number % 2 == 0)
    assert [asks(b) for b in desk.stub.bodies] == [True] * 4 + [False] * 2
    desk.ask("I live in Porto.", model="other")
    assert asks(desk.stub.bodies[-1]), "another model is asked"
    owed = desk.look(lambda m: m.store.jobs(m.scope, ("queued",)))
    assert len([j for j in owed if j.kind == "claims"]) == 7, "a job makes the notes of each"


def test_one_that_writes_them_now_and_then_is_asked() -> None:
    takers = Notetakers()
    for wrote in (False, False, False, True, False, False, False, True):
        takers.heard("m", wrote=wrote)
        assert takers.asked("m")


def test_a_small_local_model_is_never_asked(tmp_path: Path) -> None:
    assert not Notetakers(small=True).asked("qwen")
    with desk_at(tmp_path, StubUpstream("Fine.")) as desk:
        desk.app.state.served.proxy.notetakers.small = True
        desk.ask("I live in Porto.")
        assert not asks(desk.stub.bodies[-1])


@pytest.mark.req("serve.proxy")
def test_what_is_the_same_in_every_request_comes_first(desk: Desk) -> None:
    desk.stub.reply = "Nice!" + NOTES.format(facts="cat_name: Nyima")
    desk.ask("My cat is called Nyima.")
    desk.ask("My cat Nyima likes fish.", headers={"X-Nyima-Session-Id": "b"})
    desk.ask("What does my cat like?", headers={"X-Nyima-Session-Id": "c"})
    first, second = (b["messages"][0]["content"] for b in desk.stub.bodies[-2:])
    rules, _, data = first.partition("[memory]")
    assert second.startswith(rules)
    assert "<nyima-notes>" in rules
    assert "Nyima" in data


@pytest.mark.parametrize("fault", ["die:0", "die:1"])
def test_what_breaks_before_a_word_is_said_is_an_error_with_its_status(desk: Desk, fault: str) -> None:
    desk.stub.fault = fault
    assert desk.ask("Hello", stream=True).status_code == 502
    assert [t.text for t in desk.turns()] == ["Hello"]


@pytest.mark.parametrize("fault", ["429", "html", "gone"])
@pytest.mark.parametrize("stream", [False, True])
def test_when_asking_again_fails_the_error_is_told_and_no_notes_are_kept(terse: Desk, fault: str, stream: bool) -> None:
    def reply(body: dict[str, Any]) -> str:
        if asks(body):
            terse.stub.fault = fault if fault != "gone" else "die:0"
            return ALONE
        return "never"

    terse.stub.reply = reply
    answer = terse.ask("My cat is called Nyima.", stream=stream)
    assert answer.status_code in {429, 502} or (fault == "gone" and not stream)
    if answer.status_code != 200:
        assert answer.json()["error"]["message"]
    assert "<nyima-notes>" not in str([t.text for t in terse.turns()])


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_writes_notes_alone_twice_says_nothing(terse: Desk, stream: bool) -> None:
    terse.stub.reply = ALONE
    answer = terse.ask("My cat is called Nyima.", stream=stream)
    assert answer.status_code == 200
    assert "nyima-notes" not in answer.text
    assert [t.text for t in terse.turns()] == ["My cat is called Nyima."]


def test_a_reply_cut_short_by_its_program_says_nothing_of_the_model(desk: Desk) -> None:
    desk.stub.reply = "Fine."
    for number in range(6):
        desk.ask(f"I live in house {number}.", max_tokens=5)
    assert asks(desk.stub.bodies[-1])


def test_a_model_that_thinks_aloud_is_heard_thinking(tmp_path: Path) -> None:
    with desk_at(tmp_path, Thinker()) as desk, desk.client() as client:
        body = {"messages": [{"role": "user", "content": "Hello"}], "stream": True}
        thoughts, early = 0, False
        with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            for line in answer.iter_lines():
                thoughts += "hm" in line
                if thoughts == 10 and not early:
                    early = not Thinker.heard.is_set()
                    Thinker.heard.set()
        assert thoughts == 30
        assert early, "not all at once"
        assert [t.text for t in desk.turns()] == ["Hello", "Hello!"]
