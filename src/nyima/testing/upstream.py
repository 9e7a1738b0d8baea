"""A chat server to test against: scripted, on loopback, in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["StubUpstream", "serving"]

Receive = Callable[[], Any]
Send = Callable[[dict[str, Any]], Any]


@dataclass(slots=True)
class StubUpstream:
    """Answers every chat request with ``reply`` (a text, or a function of the request's
    body), in pieces of ``size`` characters, ``wait`` seconds apart; with tools it calls the
    first one, until the request brings its result. ``fault`` spoils it:
    a status such as ``429``, ``rubbish``, ``html``, or ``die:N`` after N pieces.
    ``bodies`` are the requests, ``headers`` those of each."""

    reply: str | Callable[[dict[str, Any]], str] = "Hello."
    size: int = 4
    wait: float = 0.0
    fault: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            return
        raw = b""
        while True:
            message = await receive()
            raw += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.headers.append({k.decode().lower(): v.decode("latin-1") for k, v in scope["headers"]})
        path = scope["path"]
        if path.endswith("/models"):
            await _whole(
                send,
                200,
                {"object": "list", "data": [{"id": "stub", "object": "model", "created": 0, "owned_by": "stub"}]},
            )
            return
        if scope["method"] != "POST":
            await _whole(
                send, 404, {"error": {"message": "no such thing", "type": "not_found", "param": None, "code": None}}
            )
            return
        body = json.loads(raw or b"{}") if raw[:1] == b"{" else {}
        self.bodies.append(body)
        if path.endswith("/embeddings"):
            await _whole(
                send, 200, {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [1.0]}]}
            )
        elif self.fault.isdigit():
            error = {"message": "too busy", "type": "rate_limit_error", "param": None, "code": None}
            await _whole(send, int(self.fault), {"error": error}, retry=self.fault == "429")
        elif self.fault == "html":
            await _raw(send, 200, b"<html>It works!</html>", b"text/html")
        else:
            await self._answer(path, body, send)

    async def _answer(self, path: str, body: dict[str, Any], send: Send) -> None:
        text = self.reply(body) if callable(self.reply) else self.reply
        pieces = [text[i : i + self.size] for i in range(0, len(text), self.size)]
        responses, tool = path.endswith("/responses"), _wished(body)
        if not body.get("stream"):
            await _whole(send, 200, _response(text, tool=tool) if responses else _completion(text, tool))
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        events = _response_events(pieces, tool) if responses else _chat_events(pieces, body, tool)
        for number, event in enumerate(events):
            if self.fault == "rubbish" and number == 1:
                event = b"data: {not json\n\n: hm\n\ndata: 7\n\n"
            if self.fault.startswith("die:") and number == int(self.fault[4:]):
                raise ConnectionAbortedError("the stub dies")
            await send({"type": "http.response.body", "body": event, "more_body": True})
            await asyncio.sleep(self.wait)
        await send({"type": "http.response.body", "body": b""})


def _wished(body: dict[str, Any]) -> str:
    """The name of the tool that is called; empty when there is none, or its result is here."""
    tools = body.get("tools") or []
    lines = body.get("messages") or body.get("input") or []
    last = lines[-1] if isinstance(lines, list) and lines else {}
    if not tools or last.get("role") == "tool" or last.get("type") == "function_call_output":
        return ""
    return str(tools[0].get("name") or tools[0].get("function", {}).get("name", "look"))


async def _raw(
    send: Send, status: int, body: bytes, kind: bytes, more: list[tuple[bytes, bytes]] | None = None
) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind), *(more or [])]})
    await send({"type": "http.response.body", "body": body})


async def _whole(send: Send, status: int, data: dict[str, Any], *, retry: bool = False) -> None:
    more = [(b"retry-after", b"7")] if retry else []
    await _raw(send, status, json.dumps(data).encode(), b"application/json", more)


def _completion(text: str, tool: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    finish = "stop"
    if tool:
        call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        message, finish = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "stub",
        "choices": [choice],
        "usage": usage,
    }


def _chat_events(pieces: list[str], body: dict[str, Any], tool: str) -> Iterator[bytes]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "stub"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]})

    yield chunk({"role": "assistant", "content": ""})
    if tool:
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        yield chunk({"tool_calls": [call]})
        yield chunk({}, "tool_calls")
    else:
        for piece in pieces:
            yield chunk({"content": piece})
        yield chunk({}, "stop")
    if (body.get("stream_options") or {}).get("include_usage"):
        yield _event(
            {**head, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}
        )
    yield b"data: [DONE]\n\n"


def _message(text: str, status: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": content}


def _call(tool: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": tool, "arguments": arguments}


def _response(text: str, status: str = "completed", tool: str = "") -> dict[str, Any]:
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "stub", "error": None,
        "output": [_call(tool) if tool else _message(text, status)] if status == "completed" else [], "parallel_tool_calls": True, "tools": [],
        "tool_choice": "auto", "incomplete_details": None, "instructions": None, "metadata": {}, "temperature": 1.0,
        "top_p": 1.0, "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, **details},
    }  # fmt: skip


def _response_events(pieces: list[str], tool: str) -> Iterator[bytes]:
    text = "".join(pieces)
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    empty = {"type": "output_text", "text": "", "annotations": []}
    rows: list[dict[str, Any]] = [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**_message("", "in_progress"), "content": []},
        },
        {"type": "response.content_part.added", **place, "part": empty},
        *({"type": "response.output_text.delta", **place, "delta": p, "logprobs": []} for p in pieces),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": {**empty, "text": text}},
        {"type": "response.output_item.done", "output_index": 0, "item": _message(text, "completed")},
    ]
    if tool:
        at = {"item_id": "fc_1", "output_index": 0}
        rows = [
            {"type": "response.output_item.added", "output_index": 0, "item": _call(tool, "")},
            {"type": "response.function_call_arguments.delta", **at, "delta": "{}"},
            {"type": "response.function_call_arguments.done", **at, "name": tool, "arguments": "{}"},
            {"type": "response.output_item.done", "output_index": 0, "item": _call(tool)},
        ]
    begun = [
        {"type": f"response.{name}", "response": _response("", "in_progress")} for name in ("created", "in_progress")
    ]
    ended = {"type": "response.completed", "response": _response(text, tool=tool)}
    for number, row in enumerate((*begun, *rows, ended)):
        yield f"event: {row['type']}\n".encode() + _event({**row, "sequence_number": number})


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


@contextlib.contextmanager
def serving(app: Any, port: int = 0, **settings: Any) -> Iterator[str]:
    """Serve an ASGI application on loopback in a thread; gives its address. ``settings`` are
    those of uvicorn, which it needs."""
    import uvicorn

    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or asyncio keeps Nagle's delay
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    given = {"log_level": "critical", "lifespan": "on", "server_header": False, "timeout_graceful_shutdown": 2}
    config = uvicorn.Config(app, **{**given, **settings})
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([bound])), daemon=True)
    thread.start()
    while not server.started:
        if not thread.is_alive():
            raise RuntimeError("the application did not start: look at what it printed")
        threading.Event().wait(0.01)
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        bound.close()
