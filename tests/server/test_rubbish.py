"""What an upstream may send, and what its responses' ids may be used for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from nyima.domain.conversation import Role
from nyima.testing import FixedClock
from nyima.testing.upstream import StubUpstream

from .conftest import Desk, chunks, desk_at

NOTES = "\n<nyima-notes>\nremember: yes\ncat_name: Nyima\n</nyima-notes>"
DEEP = b"[" * 100_000 + b"]" * 100_000
HUGE = b"1" + b"0" * 400


class Given(StubUpstream):
    """Answers with these bytes."""

    kind, status, payload = "application/json", 200, (b"{}",)

    async def _answer(self, path: str, body: dict[str, Any], send: Callable[[dict[str, Any]], Any]) -> None:
        head = {
            "type": "http.response.start",
            "status": self.status,
            "headers": [(b"content-type", self.kind.encode())],
        }
        await send(head)
        for piece in self.payload:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def given() -> Given:
    return Given()


@pytest.fixture
def desk(tmp_path: Path, given: Given) -> Iterator[Desk]:
    with desk_at(tmp_path, given) as found:
        yield found


def completion(content: bytes, more: bytes = b"") -> bytes:
    return (
        b'{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":'
        + content + b'},"finish_reason":"stop","logprobs":null}]' + more + b"}"
    )  # fmt: skip


def event(data: Any) -> bytes:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return b"data: " + raw + b"\n\n"


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({"id": "c", "object": "chat.completion.chunk", "choices": [choice], **more})


def said(desk: Desk) -> list[tuple[str, str]]:
    return [(t.role.value, t.text) for t in desk.turns()]


@pytest.mark.parametrize(
    ("status", "payload", "code", "part"),
    [
        (200, completion(rb'"a \ud83d b"'), 200, "\\ud83d"),
        (200, completion(b'"hi"').replace(b"null", b'{"content":[{"token":"a","logprob":-Infinity}]}'), 200, "-Inf"),
        (200, completion(b'"hi"', b',"usage":{"prompt_tokens":' + HUGE + b',"completion_tokens":1}'), 200, "hi"),
        (200, completion(b'"hi"', b',"more":' + b"[" * 300 + b"]" * 300), 200, "hi"),
        (200, DEEP, 502, "no JSON object"),
        (200, b'{"id": 7, "choices": 7}', 200, "7"),
        (400, rb'{"error":{"message":"bad \ud83d"}}', 400, "bad"),
        (500, DEEP, 500, "HTTP 500"),
    ],
)
def test_strange_answers_are_no_failure_of_ours(
    desk: Desk, given: Given, status: int, payload: bytes, code: int, part: str
) -> None:
    given.status, given.payload = status, (payload,)
    for headers in ({}, {"X-Nyima-Memory": "off"}):
        answer = desk.ask("Hello", headers=headers)
        assert answer.status_code == code
        assert part in answer.text
        assert "should not" not in answer.text


def test_a_deep_answer_of_another_route_is_passed_on(desk: Desk, given: Given) -> None:
    with desk.client() as client:
        assert client.post("/v1/embeddings", json={"input": "x"}).status_code == 200
        assert client.post("/v1/embeddings", content=DEEP).status_code == 400


@pytest.mark.parametrize("kind", ["Application/JSON", "text/json", "text/plain", ""])
def test_no_user_is_named_upstream_whatever_the_type_says(desk: Desk, kind: str) -> None:
    with desk.client() as client:
        content = json.dumps({"input": "x", "user": "karen@example.org"}).encode()
        client.post("/v1/embeddings", content=content, headers={"content-type": kind} if kind else {})
    assert "karen" not in str(desk.stub.bodies)


@pytest.mark.parametrize("memory", ["on", "off"])
@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        ([chunk({"content": "Half of"})], "broke off"),
        ([chunk({"content": "Half of"}), b'data: {"id":"c","cho'], "broke off"),
        ([chunk({"content": "Half of"}), event({"error": {"message": "overloaded"}}), event(b"[DONE]")], "overloaded"),
        ([chunk({"content": "Half of"}), b'data: {"error":\ndata: {"message":"too much"}}\n\n'], "too much"),
        ([event(DEEP), event({"error": {"message": "overloaded"}})], "overloaded"),
    ],
)
def test_half_an_answer_is_never_taken_for_a_whole_one(
    desk: Desk, given: Given, pieces: list[bytes], told: str, memory: str
) -> None:
    given.kind, given.payload = "text/event-stream", tuple(pieces)
    answer = desk.ask("Hello", stream=True, headers={"X-Nyima-Memory": memory})
    blocks = [b for b in answer.text.split("\n\n") if b]
    assert all(line.startswith("data: ") for b in blocks for line in b.split("\n")), "each line is an event's"
    read = ["\n".join(line[6:] for line in b.split("\n")) for b in blocks]
    errors = [json.loads(r)["error"]["message"] for r in read if r != "[DONE]" and '"error"' in r]
    assert [told in e for e in errors] == [True]
    if memory == "on" and "Half" in answer.text:
        turn = next(t for t in desk.turns() if t.role is Role.ASSISTANT)
        assert desk.look(lambda m: m.explain(turn.id)).trace["complete"] is False


def test_signs_of_life_are_passed_on_and_are_no_answer(desk: Desk, given: Given) -> None:
    given.kind = "text/event-stream"
    given.payload = (
        b": PROCESSING\n\n",
        b": PROCESSING\n\n",
        chunk({"content": "Whole."}),
        chunk({}, "stop"),
        event(b"[DONE]"),
    )
    for memory in ("on", "off"):
        answer = desk.ask("Hello", stream=True, headers={"X-Nyima-Memory": memory})
        assert answer.text.startswith(": PROCESSING\n\n: PROCESSING\n\ndata: ")
        assert answer.text.endswith("data: [DONE]\n\n")
    given.payload = (b": PROCESSING\n\n",)
    answer = desk.ask("Hello again", stream=True)
    assert "broke off" in answer.text, "also when nothing but signs of life came"


def test_an_end_without_its_last_word_is_an_end(desk: Desk, given: Given) -> None:
    given.kind, given.payload = "text/event-stream", (chunk({"content": "Whole."}), chunk({}, "stop"))
    assert desk.ask("Hello", stream=True).text.endswith("data: [DONE]\n\n")
    turn = next(t for t in desk.turns() if t.role is Role.ASSISTANT)
    assert desk.look(lambda m: m.explain(turn.id)).trace["complete"] is not False


def test_an_error_before_the_last_word_is_heard_of(desk: Desk, given: Given) -> None:
    given.kind, given.payload = "text/event-stream", (event({"error": {"message": "overloaded"}}), event(b"[DONE]"))
    assert "overloaded" in desk.ask("Hello", stream=True).text


def test_a_second_try_that_is_refused_is_heard_of(desk: Desk, given: Given) -> None:
    class Once(Given):
        """Notes alone, then too busy."""

        async def _answer(self, path: str, body: dict[str, Any], send: Any) -> None:
            await super()._answer(path, body, send)
            self.kind, self.status, self.payload = "application/json", 429, (b'{"error":{"message":"too busy"}}',)

    desk.stub.__class__ = Once
    given.kind = "text/event-stream"
    given.payload = (b": PROCESSING\n\n", chunk({"content": NOTES.lstrip()}), chunk({}, "stop"), event(b"[DONE]"))
    answer = desk.ask("My cat is called Nyima.", stream=True)
    assert answer.text.startswith(": PROCESSING")
    assert "too busy" in answer.text


def test_usage_beside_the_end_is_told_and_a_null_error_is_none(desk: Desk, given: Given) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    last = chunk({}, "stop", usage=usage, error=None)
    given.kind = "text/event-stream"
    given.payload = (
        chunk({"content": "Lovely name."}, error=None),
        chunk({"content": NOTES}, error=None),
        last,
        event(b"[DONE]"),
    )
    answer = desk.ask("My cat is Nyima", stream=True, stream_options={"include_usage": True})
    assert "nyima-notes" not in answer.text
    assert [c["usage"] for c in chunks(answer.text) if c.get("usage")] == [usage]
    assert said(desk) == [("user", "My cat is Nyima"), ("assistant", "Lovely name.")]


def message(id: str, text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"id": id, "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def two_messages(second: str) -> list[bytes]:
    rows: list[dict[str, Any]] = []
    for place, (id, text) in enumerate((("m1", "Let me think."), ("m2", second))):
        at = {"output_index": place, "content_index": 0, "item_id": id}
        rows += [
            {"type": "response.output_item.added", "output_index": place, "item": {**message(id, ""), "content": []}},
            {"type": "response.output_text.delta", **at, "delta": text},
            {"type": "response.output_text.done", **at, "text": text},
            {"type": "response.content_part.done", **at, "part": message(id, text)["content"][0]},
            {"type": "response.output_item.done", "output_index": place, "item": message(id, text)},
        ]
    whole = {"id": "r", "instructions": "X", "output": [message("m1", "Let me think."), message("m2", second)]}
    rows.append({"type": "response.completed", "response": whole})
    return [b"event: " + r["type"].encode() + b"\n" + event(r) for r in rows]


def test_each_message_of_a_response_keeps_its_own_text(desk: Desk, given: Given) -> None:
    given.kind, given.payload = "text/event-stream", tuple(two_messages("It is Nyima." + NOTES))
    with desk.client() as client:
        body = {"input": "What is my cat called?", "instructions": "Be brief.", "stream": True}
        text = client.post("/v1/responses", json=body).text
        events = [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]
        assert "nyima-notes" not in text
        deltas = {
            p: "".join(e["delta"] for e in events if e["type"].endswith("delta") and e["output_index"] == p)
            for p in (0, 1)
        }
        assert {p: t.strip() for p, t in deltas.items()} == {0: "Let me think.", 1: "It is Nyima."}
        done = [e["text"].strip() for e in events if e["type"] == "response.output_text.done"]
        assert done == ["Let me think.", "It is Nyima."]
        whole = events[-1]["response"]
        assert [m["content"][0]["text"].strip() for m in whole["output"]] == ["Let me think.", "It is Nyima."]
        assert whole["instructions"] == "Be brief.", "what the memory added is not repeated"
        given.kind = "application/json"
        given.payload = (
            json.dumps(
                {"id": "r2", "instructions": "X", "output": [*whole["output"][:1], message("m3", "Porto." + NOTES)]}
            ).encode(),
        )
        answer = client.post("/v1/responses", json={"input": "And where do I live?"}).json()
        assert [m["content"][0]["text"] for m in answer["output"]] == ["Let me think.", "Porto."]
        assert answer["instructions"] is None
    assert [t for r, t in said(desk) if r == "assistant"] == ["Let me think.\nIt is Nyima.", "Let me think.\nPorto."]


# --- whose the responses are ---


def respond(given: Given, id: str, *items: dict[str, Any]) -> None:
    given.payload = (
        json.dumps({"id": id, "object": "response", "status": "completed", "output": list(items)}).encode(),
    )


def test_nobody_goes_on_from_the_response_of_another(desk: Desk, given: Given) -> None:
    respond(given, "resp_1", message("msg_1", "Hello."))
    eve = desk.key("eve")
    with desk.client() as mine, desk.client(eve) as hers:
        assert mine.post("/v1/responses", json={"input": "I live in Porto."}).status_code == 200
        tool = [{"type": "function_call_output", "call_id": "c", "output": "x"}]
        tries: list[tuple[dict[str, Any], dict[str, str]]] = [
            ({"input": "Where do I live?", "previous_response_id": "resp_1"}, {}),
            ({"input": "Where do I live?", "previous_response_id": "resp_1"}, {"X-Nyima-Memory": "off"}),
            ({"input": tool, "previous_response_id": "resp_1"}, {}),
            ({"input": "### Task:\n### Output:", "previous_response_id": "resp_1"}, {}),
            ({"input": [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "Repeat it."}]}, {}),
            ({"input": [{"id": "msg_1"}, {"role": "user", "content": "Repeat it."}]}, {"X-Nyima-Memory": "off"}),
        ]
        before = len(given.bodies)
        assert [hers.post("/v1/responses", json=body, headers=h).status_code for body, h in tries] == [404] * 6
        assert len(given.bodies) == before, "none went on"
        assert [mine.post("/v1/responses", json=body, headers=h).status_code for body, h in tries] == [200] * 6
        hers.post("/v1/responses", json={"input": "Hi", "conversation": "conv_of_me"})
        assert "conversation" not in given.bodies[-1], "its owner is not known here"
        respond(given, "resp_2", message("msg_2", "Hello."))
        mine.post("/v1/responses", json={"input": "Hi"}, headers={"X-Nyima-Memory": "off"})
        assert (
            mine.get("/v1/responses/resp_2").status_code != 404 or "upstream" in mine.get("/v1/responses/resp_2").text
        )
        assert "of yours" in hers.get("/v1/responses/resp_2").text


def test_a_stored_response_tells_nothing_of_the_memory(tmp_path: Path) -> None:
    class Keeps(Given):
        """Gives what it was asked for back, as the upstream that keeps it does."""

        async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
            await super().__call__(
                {**scope, "method": "POST"} if scope.get("method") == "GET" else scope, receive, send
            )

    stub = Keeps()
    with desk_at(tmp_path, stub) as desk, desk.client() as client:
        whole = {"id": "resp_1", "instructions": "the memory of Timbuktu", "output": [message("m", "Hello." + NOTES)]}
        stub.payload = (json.dumps(whole).encode(),)
        client.post("/v1/responses", json={"input": "Hi"})
        told = client.get("/v1/responses/resp_1")
        assert told.status_code == 200
        assert "Timbuktu" not in told.text
        assert "nyima-notes" not in told.text
        assert client.get("/v1/responses/resp_1?stream=true").status_code == 400
        reading = desk.key("me", "read")
        with desk.client(reading) as other:
            assert other.delete("/v1/responses/resp_1").status_code == 403


def test_a_key_that_only_reads_writes_nothing_after_tools(desk: Desk, given: Given) -> None:
    call = {"id": "fc_1", "type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    tools = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
    respond(given, "resp_1", call)
    with desk.client() as client:
        client.post("/v1/responses", json={"input": "How is the weather?", "tools": tools})
    respond(given, "resp_2", message("m", "Sunny."))
    output = [{"type": "function_call_output", "call_id": "c", "output": "sun"}]
    with desk.client(desk.key("me", "read")) as client:
        body = {"input": output, "previous_response_id": "resp_1", "tools": tools}
        assert client.post("/v1/responses", json=body).status_code == 403
    assert said(desk) == [("user", "How is the weather?")]


def test_a_key_that_acts_for_others_finds_their_responses(desk: Desk, given: Given) -> None:
    acting = desk.key("service", "read,write,act-as")
    respond(given, "resp_9", message("msg_9", "Hello."))
    with desk.client(acting) as client:
        assert client.post("/v1/responses", json={"input": "Hi", "user": "karen"}).status_code == 200
        assert "of yours" not in client.get("/v1/responses/resp_9").text
        assert "of yours" in client.get("/v1/responses/resp_9", headers={"X-Nyima-User-Id": "ben"}).text
    elsewhere = desk.key("service", "read,write,act-as", "other")
    with desk.client(elsewhere) as client:
        assert "of yours" in client.get("/v1/responses/resp_9").text


def test_what_tools_gave_goes_on_with_the_message_before(desk: Desk, given: Given) -> None:
    tools = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
    call = {"id": "fc_1", "type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    with desk.client() as client:
        respond(given, "resp_1", call)
        client.post("/v1/responses", json={"input": "How is the weather?", "tools": tools})
        respond(given, "resp_2", message("msg_2", "It is sunny."))
        output = [{"type": "function_call_output", "call_id": "c", "output": "sun"}]
        body = {"input": output, "tools": tools, "previous_response_id": "resp_1"}
        assert client.post("/v1/responses", json=body).status_code == 200
        respond(given, "resp_3", message("msg_3", "Rain."))
        body = {"input": "Thanks, and tomorrow?", "previous_response_id": "resp_2", "tools": tools}
        assert client.post("/v1/responses", json=body).status_code == 200
    assert said(desk) == [
        ("user", "How is the weather?"), ("assistant", "It is sunny."),
        ("user", "Thanks, and tomorrow?"), ("assistant", "Rain."),
    ]  # fmt: skip
    assert len({t.session for t in desk.turns()}) == 1


def test_a_prompt_of_the_upstream_needs_no_input(desk: Desk, given: Given) -> None:
    respond(given, "resp_1", message("m", "Hello."))
    with desk.client() as client:
        assert client.post("/v1/responses", json={"prompt": {"id": "pmpt_1"}}).status_code == 200
        assert client.post("/v1/responses", json={}).status_code == 400


# --- retries ---


def test_what_was_not_answered_is_the_same_message_again(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        clock = FixedClock()
        memories = desk.app.state.served.memories
        memories.parts = replace(memories.parts, clock=clock)
        desk.stub.fault = "429"
        for _ in range(3):
            assert desk.ask("My cat is called Nyima.").status_code == 429
            clock.at += timedelta(minutes=1)
        desk.stub.fault = ""
        assert desk.ask("My cat is called Nyima.").status_code == 200
        clock.at += timedelta(minutes=5)
        assert desk.ask("My cat is called Nyima.").status_code == 200, "the program may have lost the answer"
        assert said(desk) == [("user", "My cat is called Nyima."), ("assistant", "Hello.")]


def test_the_whole_reply_takes_the_place_of_the_one_that_broke_off(tmp_path: Path) -> None:
    with desk_at(tmp_path, StubUpstream("It is a very nice name for a cat.", fault="die:4")) as desk:
        headers = {"Idempotency-Key": "k1"}
        desk.ask("My cat is called Nyima.", headers=headers, stream=True)
        (_, broken) = said(desk)
        assert broken[1] in "It is a very nice"
        desk.stub.fault = ""
        for stream in (True, False):
            desk.ask("My cat is called Nyima.", headers=headers, stream=stream)
            assert said(desk) == [
                ("user", "My cat is called Nyima."), ("assistant", "It is a very nice name for a cat."),
            ]  # fmt: skip
        assert not [r for r in desk.records("episode") if r.text.endswith(broken[1])]
        desk.stub.fault = "die:4"
        desk.ask("My cat is called Nyima.", headers=headers, stream=True)
        assert len(said(desk)) == 2, "a retry that breaks off adds nothing to a whole reply"


def test_tools_of_responses_do_not_repeat_the_message(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk, desk.client() as client:
        clock = FixedClock()
        memories = desk.app.state.served.memories
        memories.parts = replace(memories.parts, clock=clock)
        tools = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
        items: list[dict[str, Any]] = [{"role": "user", "content": "How is the weather?"}]
        for number in range(3):
            client.post("/v1/responses", json={"input": items, "tools": tools})
            clock.at += timedelta(minutes=15)
            items += [
                {"type": "function_call", "call_id": f"c{number}", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": f"c{number}", "output": "sun"},
            ]
        assert [t for r, t in said(desk) if r == "user"] == ["How is the weather?"]


def test_a_name_is_one_name_in_header_and_body(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        acting = desk.key("service", "read,write,act-as")
        desk.ask("I live in Porto.", secret=acting, headers={"X-Nyima-User-Id": "Zoë".encode()})  # type: ignore[dict-item]
        desk.ask("I like tea.", secret=acting, user="Zoë")
        assert [t.text for t in desk.turns("Zoë") if t.role is Role.USER] == ["I live in Porto.", "I like tea."]


def test_a_key_without_read_or_write_asks_no_model(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        assert desk.ask("Hello", secret=desk.key("ops", "admin"), headers={"X-Nyima-Memory": "off"}).status_code == 403
        assert desk.stub.bodies == []


def test_tools_get_no_memory_and_the_answer_says_so(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        desk.ask("I live in Porto.")
        tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
        answer = desk.ask("Where do I live, in Porto?", tools=tools)
        assert (answer.headers["x-nyima-memory"], answer.headers["x-nyima-recalled"]) == ("write", "0")
