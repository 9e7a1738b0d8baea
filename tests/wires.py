"""A server that answers with given bytes, whatever it is asked."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def answered(body: object, kind: str = "application/json", *more: str, status: str = "200 OK") -> bytes:
    """An HTTP answer with a body: bytes as they are, else JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(data)}", "connection: close", *more]
    return "\r\n".join([*lines, "", ""]).encode() + data


def events(*rows: object) -> bytes:
    """An HTTP answer of server-sent events."""
    texts = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    return answered(b"".join(b"data: " + text + b"\n\n" for text in texts), "text/event-stream")


def chunk(content: Any, finish: str | None = None) -> dict[str, Any]:
    """A piece of a reply in the form of OpenAI."""
    choice = {"index": 0, "delta": {} if content is None else {"content": content}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


class Wire(socketserver.ThreadingTCPServer):
    """Gives each request the next of its answers, the last one again and again."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, answers: tuple[bytes, ...]) -> None:
        self.answers = list(answers)
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        super().__init__(("127.0.0.1", 0), _Speaker)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Speaker(socketserver.StreamRequestHandler):
    server: Wire

    def handle(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                return
            head += line
        fields = dict(row.lower().split(": ", 1) for row in head.decode("latin-1").split("\r\n") if ": " in row)
        self.server.heads.append(head.decode("latin-1"))
        self.server.bodies.append(self.rfile.read(int(fields.get("content-length", "0"))))
        answers = self.server.answers
        self.wfile.write(answers.pop(0) if len(answers) > 1 else answers[0])


@contextmanager
def wire(*answers: bytes) -> Iterator[Wire]:
    """Run a Wire on loopback."""
    with Wire(answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
