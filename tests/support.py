"""Helpers for tests: a companion with a scripted model, and a small OpenAI server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from nyima import Assistant, BlockingAssistant, Claim, Scope
from nyima.domain.ports import Looked
from nyima.sync import Opening
from nyima.testing import FixedClock, HashEmbedder, Request, ScriptedModel

NOTE = '{"context": "They talked.", "knowledge": "The user said something."}'


def answer(
    reply: str,
    *,
    remember: bool = False,
    claims: Mapping[str, str] | Sequence[tuple[str, str, str] | tuple[str, str, str, str]] = (),
    outdated: Sequence[int] = (),
) -> str:
    """What a well-behaved model writes: ``claims`` as (who, what, value) or with a status, or as a mapping of
    what is said of the user."""
    rows = [("user", k, v) for k, v in claims.items()] if isinstance(claims, Mapping) else claims
    noted = [{"who": r[0], "what": r[1], "value": r[2], "status": r[3] if len(r) > 3 else "holds"} for r in rows]
    data = {"reply": reply, "remember": remember or bool(noted), "claims": noted, "outdated": list(outdated)}
    return json.dumps(data, ensure_ascii=False)


class Agrees:
    """A second look that agrees with the reader: what it is shown as over is over, and all is said. ``over``
    names values of known claims that it says are over."""

    looks_further = True

    def __init__(self, *over: str) -> None:
        self.over = over

    async def look(self, scope: Scope, message: str, known: Sequence[Claim], new: Sequence[Claim]) -> Looked:
        del scope, message
        return Looked(tuple(not self.over or c.value in self.over for c in known), (True,) * len(new))


class SaysNo:
    """A second look that finds that nothing new is asserted, and nothing over."""

    looks_further = True

    async def look(self, scope: Scope, message: str, known: Sequence[Claim], new: Sequence[Claim]) -> Looked:
        del scope, message
        return Looked((False,) * len(known), (False,) * len(new))


def companion(
    db: Path, model: ScriptedModel, *, recipe: str | None = None, clock: FixedClock | None = None, **more: Any
) -> Opening[Assistant, BlockingAssistant]:
    """An assistant on a file with doubles for everything else."""
    return Assistant.open(
        db,
        model=model,
        recipe=recipe,
        embedder=HashEmbedder(),
        clock=clock or FixedClock(),
        tools=more.pop("tools", ()),
        verifier=more.pop("verifier", None) or Agrees("nothing is over"),
        **more,
    )


@dataclass
class FakeServer:
    """A loopback server that speaks enough of the OpenAI protocol. ``plan`` gives, per
    request, a text to stream (slowly after ``slow ``), an HTTP status, ``hang`` or ``cut``;
    the last is repeated."""

    plan: list[Any] = field(default_factory=lambda: ["hello"])
    headers: dict[str, str] = field(default_factory=dict)
    schemas: bool = True
    refuses: tuple[str, ...] = ()
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def next(self) -> Any:
        return self.plan.pop(0) if len(self.plan) > 1 else self.plan[0]


@contextmanager
def openai_server(**options: Any) -> Iterator[FakeServer]:
    """Run a FakeServer."""
    fake = FakeServer(**options)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            return

        def do_GET(self) -> None:
            self._send(200, {"object": "list", "data": [{"id": "fake-model", "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fake.requests.append(body)
            if "response_format" in body and not fake.schemas:
                self._send(400, {"error": {"message": "no response_format here", "type": "invalid_request_error"}})
                return
            refused = next((name for name in fake.refuses if name in body), None)
            if refused:
                self._send(400, {"error": {"message": f"{refused} is not supported", "type": "invalid_request_error"}})
                return
            if self.path.endswith("/embeddings"):
                rows = [{"index": i, "embedding": [float(len(t)), 1.0, 0.0]} for i, t in enumerate(body["input"])]
                self._send(
                    200,
                    {
                        "object": "list",
                        "data": rows[::-1],
                        "model": "e",
                        "usage": {"prompt_tokens": 1, "total_tokens": 1},
                    },
                )
                return
            step = fake.next()
            if isinstance(step, int):
                self._send(step, {"error": {"message": f"planned {step}", "type": "server_error"}})
            elif step == "hang":
                time.sleep(3)
            else:
                slow = isinstance(step, str) and step.startswith("slow ")
                text = "partial" if step == "cut" else step.removeprefix("slow ")
                self._stream(text, cut=step == "cut", pause=0.3 if slow else 0.0)

        def _send(self, status: int, body: dict[str, Any]) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            for name, value in fake.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        def _stream(self, text: str, *, cut: bool, pause: float) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake-model"}
            for i in range(0, len(text), 5):
                delta = {"index": 0, "delta": {"content": text[i : i + 5]}, "finish_reason": None}
                self.wfile.write(f"data: {json.dumps({**base, 'choices': [delta]})}\n\n".encode())
                self.wfile.flush()
                time.sleep(pause)
            if cut:
                return
            end = {"index": 0, "delta": {}, "finish_reason": "stop"}
            self.wfile.write(f"data: {json.dumps({**base, 'choices': [end]})}\n\n".encode())
            usage = {
                "prompt_tokens": 11,
                "completion_tokens": 3,
                "total_tokens": 14,
                "prompt_tokens_details": {"cached_tokens": 4},
            }
            self.wfile.write(f"data: {json.dumps({**base, 'choices': [], 'usage': usage})}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()


def reading(**said: Sequence[tuple[str, ...]]) -> Callable[[Request], str]:
    """What a well-behaved model reads from messages: for each message that has one of the keywords (with
    underscores for spaces) the claims as (who, what, value) or with a status, in the order of the numbers;
    nothing of the others. A claim ``("outdated", "2")`` numbers a known statement."""

    def read(request: Request) -> str:
        turns: list[dict[str, Any]] = []
        for line in request.last.splitlines():
            number, colon, text = line.removeprefix("Message ").partition(": ")
            if not line.startswith("Message ") or not colon:
                continue
            rows = [r for key, found in said.items() if key.replace("_", " ") in text for r in found]
            outdated = [int(r[1]) for r in rows if r[0] == "outdated"]
            claims = [
                {"who": r[0], "what": r[1], "value": r[2], "status": r[3] if len(r) > 3 else "holds"}
                for r in rows if r[0] != "outdated"
            ]  # fmt: skip
            turns.append({"n": int(number), "remember": bool(rows), "claims": claims, "outdated": outdated})
        return json.dumps({"turns": turns}, ensure_ascii=False)

    return read
