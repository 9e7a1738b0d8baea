"""The proxy, over real connections: what the program sees, what the upstream sees, what is kept."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nyima.testing import FixedClock
from nyima.testing.upstream import StubUpstream

from .conftest import NOTES, Desk, chunks, desk_at, said

CAT = "Nice to meet Nyima!" + NOTES.format(facts="cat_name: Nyima")


def system(body: dict[str, Any]) -> str:
    return "\n".join(m["content"] for m in body["messages"] if m["role"] in {"system", "developer"})


@pytest.mark.req("serve.proxy")
def test_what_was_said_once_is_known_in_another_session(desk: Desk) -> None:
    desk.stub.reply = CAT
    first = desk.ask("My cat is called Nyima.").json()
    assert first["choices"][0]["message"]["content"] == "Nice to meet Nyima!"
    assert first["usage"]["total_tokens"] == 15
    desk.stub.reply = "Your cat is called Nyima."
    answer = desk.ask("Hello, what is my cat called?", headers={"X-Nyima-Session-Id": "other"})
    assert answer.headers["x-nyima-session-id"] == "other"
    assert int(answer.headers["x-nyima-recalled"]) >= 1
    assert "Nyima" in system(desk.stub.bodies[-1])
    assert desk.stub.bodies[-1]["messages"][-1] == {"role": "user", "content": "Hello, what is my cat called?"}
    assert [t.text for t in desk.turns()][:2] == ["My cat is called Nyima.", "Nice to meet Nyima!"]


@pytest.mark.req("serve.proxy")
@pytest.mark.parametrize("size", [1, 3, 7, 1_000])
def test_the_notes_leave_the_stream_and_the_end_is_told_where_they_begin(tmp_path: Path, size: int) -> None:
    with desk_at(tmp_path, StubUpstream(CAT, size)) as desk:
        text = desk.ask("My cat is called Nyima.", stream=True, stream_options={"include_usage": True}).text
        assert said(text) == "Nice to meet Nyima!\n"
        ends = [
            c["choices"][0]["finish_reason"] for c in chunks(text) if c["choices"] and c["choices"][0]["finish_reason"]
        ]
        assert ends == ["stop"]
        assert chunks(text)[-1]["usage"]["total_tokens"] == 15
        assert chunks(text)[-1]["choices"] == []
        assert "nyima-notes" not in text
        notes = desk.look(lambda m: m.store.events(m.scope, "notes"))
        assert notes[0].body["claims"] == [["user", "cat name", "Nyima", "holds"]]
        assert [t.text for t in desk.turns()] == ["My cat is called Nyima.", "Nice to meet Nyima!"]


def test_a_reply_that_says_notes_itself_is_whole(desk: Desk) -> None:
    desk.stub.reply = "Minutes\nNotes: we met.\n<notes>no block of ours</notes>\nremember: yes"
    assert desk.ask("Write the minutes.").json()["choices"][0]["message"]["content"] == desk.stub.reply
    assert said(desk.ask("Write the minutes again.", stream=True).text) == desk.stub.reply


@pytest.mark.req("serve.unchanged")
@pytest.mark.parametrize(
    "more",
    [
        {"tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]},
        {"response_format": {"type": "json_object"}},
        {"stop": ["\n"]},
        {"n": 2},
        {"logprobs": True},
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_has_a_form_of_its_own_goes_on_unchanged(desk: Desk, more: dict[str, Any], stream: bool) -> None:
    desk.stub.reply = "It is sunny."
    body = {"temperature": 0.3, "seed": 7, "some_new_field": {"a": [1]}, "stream": stream, **more}
    answer = desk.ask("My name is Karen, how is the weather?", **body)
    assert answer.status_code == 200
    expected = {
        "model": "stub",
        "messages": [{"role": "user", "content": "My name is Karen, how is the weather?"}],
        **body,
    }
    assert desk.stub.bodies[-1] == expected
    if more.get("tools"):
        found = chunks(answer.text) if stream else answer.json()["choices"]
        calls = (
            [c["choices"][0]["delta"].get("tool_calls") for c in found if c["choices"]]
            if stream
            else [found[0]["message"]["tool_calls"]]
        )
        assert [c[0]["function"]["name"] for c in calls if c] == ["look"]
        assert not stream or next(c for c in calls if c)[0]["index"] == 0
    jobs = desk.look(lambda m: m.store.jobs(m.scope, ("queued",)))
    assert "claims" in {j.kind for j in jobs}, "its notes are made by a job"
    assert next(t.text for t in desk.turns()) == "My name is Karen, how is the weather?"
    assert len(desk.turns()) == (1 if more.get("tools") else 2)


def test_unknown_fields_and_parts_go_on_and_no_user_is_named_upstream(desk: Desk) -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    ]
    body = {
        "user": "karen@example.org",
        "metadata": {"user_id": "karen", "topic": "x"},
        "verbosity": "low",
        "prompt_cache_key": "abc",
    }
    with desk.client() as client:
        answer = client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": parts}], **body})
    assert answer.status_code == 200
    sent = desk.stub.bodies[-1]
    assert sent["messages"][-1]["content"] == parts
    assert sent["verbosity"] == "low"
    assert sent["metadata"] == {"topic": "x"}
    assert "karen" not in str(sent)
    assert desk.stub.headers[-1]["authorization"] == "Bearer upstream-secret"
    assert desk.secret not in str(desk.stub.headers[-1])
    assert not [h for h in desk.stub.headers[-1] if h.startswith("x-nyima")]
    assert desk.turns()[0].text == "What is this?"
    assert desk.turns()[0].session == "abc"


def test_the_system_message_keeps_what_the_program_said(desk: Desk) -> None:
    desk.stub.reply = CAT
    desk.ask("My cat is called Nyima.")
    for content in ("You are a pirate.", [{"type": "text", "text": "You are a pirate."}]):
        with desk.client() as client:
            messages = [
                {"role": "developer", "content": content},
                {"role": "user", "content": "What is my cat called?"},
            ]
            client.post("/v1/chat/completions", json={"messages": messages})
        first = desk.stub.bodies[-1]["messages"][0]
        assert first["role"] == "developer"
        text = first["content"] if isinstance(first["content"], str) else "\n".join(p["text"] for p in first["content"])
        assert text.startswith("You are a pirate.")
        assert "Nyima" in text


@pytest.mark.parametrize(
    ("mode", "reads", "writes"),
    [("on", True, True), ("off", False, False), ("read", True, False), ("write", False, True)],
)
def test_the_header_says_how_much_memory_takes_part(desk: Desk, mode: str, reads: bool, writes: bool) -> None:
    desk.stub.reply = CAT
    desk.ask("My cat is called Nyima.")
    before = len(desk.turns())
    desk.stub.reply = "Nyima."
    desk.ask("What is my cat called?", headers={"X-Nyima-Memory": mode, "X-Nyima-Session-Id": "two"})
    assert ("My cat is called Nyima." in str(desk.stub.bodies[-1])) is reads
    assert (len(desk.turns()) > before) is writes


@pytest.mark.parametrize(
    "prompt",
    [
        "### Task:\nGenerate a title for the chat.\n### Output:\nJSON format: {}\n<chat_history>\nMy name is Karen.</chat_history>",
        "Provide a concise, 5-word-or-less title for the conversation, using title case conventions.\n\nMy name is Karen.",
        "Please generate a short title for this chat: My name is Karen.",
    ],
)
def test_housekeeping_of_front_ends_leaves_no_trace(desk: Desk, prompt: str) -> None:
    assert desk.ask(prompt).headers["x-nyima-memory"] == "off"
    assert desk.turns() == []
    assert "nyima-notes" not in str(desk.stub.bodies[-1])


@pytest.mark.parametrize(
    "text",
    [
        "### Task: water my plants on Mondays, I always forget",
        "Suggest a title for my novel about Porto.",
        "Suggest a title for my talk on dialogue systems. My name is Karen and I live in Moab.",
        "Create a catchy title for the discussion section of my thesis.",
        "Please write a job title of a chat support agent for my CV.",
    ],
)
def test_what_only_looks_like_housekeeping_is_remembered(desk: Desk, text: str) -> None:
    desk.ask(text)
    assert [t.text for t in desk.turns() if t.role == "user"] == [text]


def test_a_dialogue_is_one_session_and_a_new_one_another(desk: Desk) -> None:
    desk.stub.reply = "Fine."
    messages = [{"role": "user", "content": "hello"}]
    with desk.client() as client:
        for text in ("how are you", "good", "bye"):
            client.post("/v1/chat/completions", json={"messages": messages})
            messages += [{"role": "assistant", "content": "Fine."}, {"role": "user", "content": text}]
    turns = desk.turns()
    assert len({t.session for t in turns}) == 1
    assert [t.text for t in turns if t.role == "user"] == ["hello", "how are you", "good"]
    desk.ask("hello")
    assert len({t.session for t in desk.turns()}) == 2


def test_a_retry_is_stored_once(desk: Desk) -> None:
    replies = iter(f"Reply {i}." for i in range(100))
    desk.stub.reply = lambda body: next(replies)
    for _ in range(5):
        assert desk.ask("My cat is called Nyima.", headers={"Idempotency-Key": "k-1"}).status_code == 200
    assert [t.text for t in desk.turns()] == ["My cat is called Nyima.", "Reply 0."]
    desk.ask("My cat is called Nyima.", headers={"Idempotency-Key": "k-2"})
    assert len(desk.turns()) == 4


def test_a_session_is_named_by_header_body_or_earlier_response(desk: Desk) -> None:
    with desk.client() as client:
        first = client.post(
            "/v1/responses", json={"model": "stub", "input": "I live in Porto.", "conversation": "c-1"}
        ).json()
        client.post("/v1/responses", json={"input": "And I like figs.", "previous_response_id": first["id"]})
    assert {t.session for t in desk.turns()} == {"c-1"}


def test_responses_get_memory_and_lose_their_notes(desk: Desk) -> None:
    desk.stub.reply = CAT
    with desk.client() as client:
        answer = client.post(
            "/v1/responses", json={"input": "My cat is called Nyima.", "instructions": "Be brief."}
        ).json()
        assert answer["output"][0]["content"][0]["text"] == "Nice to meet Nyima!"
        assert desk.stub.bodies[-1]["instructions"].startswith("Be brief.\n\n")
        text = client.post(
            "/v1/responses",
            json={
                "input": [{"role": "user", "content": [{"type": "input_text", "text": "What is my cat called?"}]}],
                "stream": True,
            },
        ).text
    assert "nyima-notes" not in text.replace("\\n", "")
    assert "Nyima" in desk.stub.bodies[-1]["instructions"]
    assert text.count("response.completed") == 2, "the event's name and its type"


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/stub"])
def test_models_are_those_of_the_upstream(desk: Desk, path: str) -> None:
    with desk.client() as client:
        assert client.get(path).json()["data"][0]["id"] == "stub" if path.endswith("models") else True
        assert client.post("/v1/embeddings", json={"input": "x", "model": "stub"}).json()["data"][0]["embedding"] == [
            1.0
        ]


@pytest.mark.parametrize(
    ("fault", "status"), [("429", 429), ("500", 500), ("401", 502), ("html", 502)],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_a_failing_upstream_is_an_error_in_openais_form_and_the_message_is_kept(
    desk: Desk, fault: str, status: int, stream: bool
) -> None:
    desk.stub.fault = fault
    answer = desk.ask("I moved to Porto.", stream=stream)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert "upstream-secret" not in answer.text
    assert fault != "429" or answer.headers["retry-after"] == "7"
    assert [t.text for t in desk.turns()] == ["I moved to Porto."]


@pytest.mark.parametrize("fault", ["die:0", "die:1", "die:3", "rubbish"])
def test_an_upstream_that_dies_in_the_middle_loses_nothing(desk: Desk, fault: str) -> None:
    desk.stub.fault, desk.stub.reply = fault, "Porto is a fine city."
    text = desk.ask("I moved to Porto.", stream=True).text
    turns = desk.turns()
    assert turns[0].text == "I moved to Porto."
    trace = desk.look(lambda m: m.store.events(m.scope, "recall"))
    if fault == "die:3":
        assert turns[1].text == "Porto is"
        assert trace[0].body["complete"] is False
        assert '"error"' in text
    if fault == "rubbish":
        assert turns[1].text == " is a fine city." or turns[1].text.endswith("fine city.")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"null",
        b'{"messages": 7}',
        b'{"messages": []}',
        b'{"messages": ["x"]}',
        b"\xff\xfe",
        b"[" * 200_000,
    ],
)
def test_what_is_no_request_gets_the_error_envelope(desk: Desk, body: bytes) -> None:
    with desk.client() as client:
        for path in ("/v1/chat/completions", "/v1/responses"):
            answer = client.post(path, content=body, headers={"content-type": "application/json"})
            assert answer.status_code == 400, path
            assert answer.json()["error"]["type"] == "invalid_request_error"


def test_odd_texts_are_stored_as_they_can_be(desk: Desk) -> None:
    with desk.client() as client:
        raw = b'{"messages": [{"role": "user", "content": "a\\u0000b \\ud800 c"}]}'
        answer = client.post("/v1/chat/completions", content=raw, headers={"content-type": "application/json"})
    assert answer.status_code == 200
    assert desk.turns()[0].text == "a\ufffdb ? c" or "\ufffd" in desk.turns()[0].text


def test_what_the_program_leaves_out_of_its_dialogue_is_recalled(desk: Desk) -> None:
    desk.ask("My cat is called Nyima.", headers={"X-Nyima-Session-Id": "long"})
    desk.ask("What is my cat called?", headers={"X-Nyima-Session-Id": "long"})
    assert "My cat is called Nyima." in system(desk.stub.bodies[-1])
    with desk.client() as client:
        messages = [
            {"role": "user", "content": "My cat is called Nyima."}, {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "What is my cat called?"},
        ]  # fmt: skip
        client.post("/v1/chat/completions", json={"messages": messages}, headers={"X-Nyima-Session-Id": "long"})
    assert "My cat is called Nyima." not in system(desk.stub.bodies[-1]), "what the dialogue shows is not said twice"


def test_the_same_words_later_are_said_again(desk: Desk) -> None:
    """Programs that send the newest message alone: "yes" today is not "yes" tomorrow."""
    clock = FixedClock()
    memories = desk.app.state.served.memories
    memories.parts = replace(memories.parts, clock=clock)
    for _ in range(2):
        for _ in range(2):
            desk.ask("yes", headers={"X-Nyima-Session-Id": "s"})
        clock.forward(minutes=5)
    assert [t.text for t in desk.turns() if t.role == "user"] == ["yes", "yes"], "a retry within seconds is one"


def test_a_session_that_ended_is_gone_on_with_under_another_name(desk: Desk) -> None:
    first = desk.ask("I live in Porto.", headers={"X-Nyima-Session-Id": "s"})
    with desk.client() as client:
        client.post("/api/sessions/s/end")
    again = desk.ask("I moved to Lund.", headers={"X-Nyima-Session-Id": "s"})
    assert (first.headers["x-nyima-session-id"], again.headers["x-nyima-session-id"]) == ("s", "s+2")


def test_a_session_of_any_script_and_ids_that_are_none(desk: Desk) -> None:
    answer = desk.ask("hello", metadata={"session_id": "会话 1"})
    assert answer.status_code == 200
    assert desk.turns()[0].session == "会话 1"
    with desk.client() as client:
        raw = b'{"messages": [{"role": "user", "content": "x"}], "conversation": "a\\ud800"}'
        assert client.post("/v1/chat/completions", content=raw).status_code == 400
    assert desk.ask("hello", metadata={"session_id": "x" * 300}).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/%2e%2e/files",
        "/v1/models/../../admin",
        "/v1/models/a%0Ab",
        "/v1/models/%2e%2e%2f%2e%2e%2fadmin",
        "/v1/models//x",
    ],
)
def test_no_address_leads_out_of_the_upstreams_v1(desk: Desk, path: str) -> None:
    host, port = desk.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:  # a client would tidy the path up
        line.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {desk.secret}\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b""
        while piece := line.recv(65_536):
            answer += piece
    assert answer.split()[1] in {b"404", b"502"}
    admin = desk.key("ops", "admin")
    with desk.client(admin) as client:
        assert client.get("/v1/models").status_code == 403


def test_a_stored_response_is_for_who_asked_for_it(desk: Desk) -> None:
    with desk.client() as client:
        made = client.post("/v1/responses", json={"input": "I live in Porto."}).json()
        assert (
            client.get(f"/v1/responses/{made['id']}").json()["error"]["message"]
            == "the upstream answered HTTP 404: no such thing"
        )
    other = desk.key("karen")
    with desk.client(other) as client:
        for method in ("GET", "DELETE"):
            assert "of yours" in client.request(method, f"/v1/responses/{made['id']}").json()["error"]["message"]
        assert (
            client.post("/v1/responses", json={"input": "And?", "previous_response_id": made["id"]}).status_code == 404
        )


def test_a_limit_of_tokens_counts_streams_that_tell_no_usage(desk: Desk) -> None:
    secret = desk.key("karen", tokens=20)
    assert (
        desk.ask(
            "Tell me a story about a very long river and its many bridges, please.", secret=secret, stream=True
        ).status_code
        == 200
    )
    assert desk.ask("And more.", secret=secret, stream=True).status_code == 429
    quiet = desk.key("ben", tokens=20)
    desk.stub.reply = "word " * 60
    assert desk.ask("Hello", secret=quiet, stream=True, headers={"X-Nyima-Memory": "off"}).status_code == 200
    assert desk.ask("Hello", secret=quiet).status_code == 429


def test_reasoning_is_left_as_it_is_and_only_the_text_loses_its_notes() -> None:
    from nyima.server.proxy.wire_responses import RESPONSES
    from nyima.server.sse import SseEvent

    exchange: Any = object()
    stream = RESPONSES.stream(exchange, {}, notes=True)
    data = {"type": "response.reasoning_summary_text.done", "text": "Thinking.", "sequence_number": 3}
    assert b"Thinking." in b"".join(stream.take(SseEvent("", "", data)))


def test_a_long_run_of_tools_says_its_message_once(desk: Desk) -> None:
    clock = FixedClock()
    memories = desk.app.state.served.memories
    memories.parts = replace(memories.parts, clock=clock)
    desk.stub.reply = ""
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Plan my week."}]
    with desk.client() as client:
        for _ in range(4):
            client.post("/v1/chat/completions", json={"messages": messages, "tools": tools})
            messages += [
                {"role": "assistant", "content": None, "tool_calls": []},
                {"role": "tool", "content": "fine", "tool_call_id": "c"},
            ]
            clock.forward(minutes=15)
    assert [t.text for t in desk.turns()] == ["Plan my week."]


def test_a_stream_without_usage_counts_what_was_written(desk: Desk) -> None:
    desk.stub.reply = "word " * 60
    secret = desk.key("karen", tokens=250)
    codes = [desk.ask("Hello", secret=secret, stream=True).status_code for _ in range(8)]
    assert codes[0] == 200
    assert codes[-1] == 429
