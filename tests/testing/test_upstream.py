"""The chat server of the tests speaks as real ones do, also where it is told to fail."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.testing.upstream import StubUpstream, serving

pytest.importorskip("uvicorn", reason="the extra server is not installed")

ASK = {"model": "stub", "messages": [{"role": "user", "content": "hello"}]}
TOOLS = {"tools": [{"type": "function", "function": {"name": "look"}}]}


class Sent:
    """What an application gives to its server."""

    def __init__(self) -> None:
        self.status, self.headers, self.body = 0, dict[str, str](), b""

    async def __call__(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
        self.body += message.get("body", b"")

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        return [json.loads(line[6:]) for line in self.body.decode().split("\n") if line.startswith("data: {")]


async def asked(stub: StubUpstream, body: Any, path: str = "/v1/chat/completions", method: str = "POST") -> Sent:
    raw, sent = json.dumps(body).encode(), Sent()
    messages: Iterator[dict[str, Any]] = iter([{"body": raw[:5], "more_body": True}, {"body": raw[5:]}])

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", **next(messages)}

    scope = {"type": "http", "path": path, "method": method, "headers": [(b"X-Own", b"1")]}
    await stub(scope, receive, sent)
    return sent


words = st.text(st.characters(codec="utf-8"), max_size=30)


@given(words, st.integers(1, 9), st.booleans())
async def test_a_reply_is_the_same_whole_and_in_pieces(text: str, size: int, usage: bool) -> None:
    stub = StubUpstream(text, size)
    whole = (await asked(stub, ASK)).json
    streamed = await asked(stub, {**ASK, "stream": True, "stream_options": {"include_usage": usage}})
    said = [e["choices"][0]["delta"].get("content") or "" for e in streamed.events if e["choices"]]
    assert whole["choices"][0]["message"]["content"] == "".join(said) == text
    assert streamed.body.endswith(b"data: [DONE]\n\n")
    assert bool([e for e in streamed.events if e.get("usage")]) is usage


@given(words, st.integers(1, 9))
async def test_a_response_is_the_same_whole_and_in_pieces(text: str, size: int) -> None:
    stub = StubUpstream(text, size)
    path = "/v1/responses"
    whole = (await asked(stub, {"model": "stub", "input": "hello"}, path)).json
    events = (await asked(stub, {"model": "stub", "input": "hello", "stream": True}, path)).events
    deltas = [e["delta"] for e in events if e["type"] == "response.output_text.delta"]
    assert whole["output"][0]["content"][0]["text"] == "".join(deltas) == text
    assert [e["sequence_number"] for e in events] == list(range(len(events)))
    assert (events[0]["type"], events[-1]["type"]) == ("response.created", "response.completed")
    assert events[-1]["response"]["output"] == whole["output"]


async def test_a_function_answers_each_request_and_all_are_kept() -> None:
    stub = StubUpstream(lambda body: body["messages"][-1]["content"].upper())
    assert (await asked(stub, ASK)).json["choices"][0]["message"]["content"] == "HELLO"
    assert stub.bodies == [ASK]
    assert stub.headers == [{"x-own": "1"}]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_first_tool_is_called_until_its_result_is_there(stream: bool) -> None:
    def called(sent: Sent) -> list[Any]:
        key = "delta" if stream else "message"
        rows = sent.events if stream else [sent.json]
        return [c for r in rows for c in (r["choices"] and r["choices"][0][key].get("tool_calls")) or ()]

    (call,) = called(await asked(StubUpstream(), {**ASK, **TOOLS, "stream": stream}))
    assert call["function"] == {"name": "look", "arguments": "{}"}
    after = {**TOOLS, "stream": stream, "messages": [*ASK["messages"], {"role": "tool", "content": "found"}]}
    assert called(await asked(StubUpstream(), after)) == []


async def test_a_response_calls_its_tool_until_the_output_is_there() -> None:
    given_tools = {"tools": [{"type": "function", "name": "look"}]}
    first = (await asked(StubUpstream(), {**given_tools, "input": "hi"}, "/v1/responses")).json
    assert [o["type"] for o in first["output"]] == ["function_call"]
    last = {**given_tools, "input": [{"type": "function_call_output", "call_id": "call_1", "output": "x"}]}
    second = (await asked(StubUpstream(), last, "/v1/responses")).json
    assert [o["type"] for o in second["output"]] == ["message"]


@pytest.mark.parametrize(("fault", "status", "retry"), [("429", 429, "7"), ("503", 503, None)])
async def test_a_status_is_an_error_of_openais_form(fault: str, status: int, retry: str | None) -> None:
    sent = await asked(StubUpstream(fault=fault), ASK)
    assert (sent.status, sent.headers.get("retry-after")) == (status, retry)
    assert sent.json["error"]["type"] == "rate_limit_error"


async def test_rubbish_stands_between_what_can_be_read() -> None:
    body = (await asked(StubUpstream("Hello there", fault="rubbish"), {**ASK, "stream": True})).body
    assert b"data: {not json\n\n: hm\n\ndata: 7\n\n" in body
    assert body.startswith(b'data: {"id"')
    assert (await asked(StubUpstream(fault="html"), ASK)).headers["content-type"] == "text/html"


@pytest.mark.parametrize("pieces", [0, 1, 3])
async def test_it_dies_after_so_many_pieces(pieces: int) -> None:
    stub, seen = StubUpstream("abcdefgh", 2, fault=f"die:{pieces}"), list[bytes]()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps({**ASK, "stream": True}).encode()}

    async def send(message: dict[str, Any]) -> None:
        seen.extend([message["body"]] if "body" in message else [])

    scope = {"type": "http", "path": "/v1/chat/completions", "method": "POST", "headers": []}
    with pytest.raises(ConnectionAbortedError):
        await stub(scope, receive, send)
    assert len(seen) == pieces


async def test_what_it_does_not_know_is_404() -> None:
    assert (await asked(StubUpstream(), {}, "/v1/models", "GET")).json["data"][0]["id"] == "stub"
    assert (await asked(StubUpstream(), {}, "/v1/files", "GET")).status == 404


def test_an_application_is_served_until_it_is_left() -> None:
    with serving(StubUpstream()) as url, urllib.request.urlopen(f"{url}/v1/models") as answer:
        assert json.loads(answer.read())["object"] == "list"
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{url}/v1/models", timeout=5)
