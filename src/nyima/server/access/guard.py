"""What every request passes: host, size, time, headers; and the log line it leaves."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nyima.server.problems import Problem, respond

__all__ = ["Guard", "JsonLines", "route_of"]

_log = logging.getLogger("nyima.server")
_SECRET = re.compile(r"nyima-[0-9a-f]{8}-[\w-]+|sk-[\w-]{8,}|(?i:bearer)\s+[^\s\"]+")
_FILES = ("/v1/", "/api/import", "/api/documents", "/documents")
_DIGITS = 15
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'; media-src 'self' blob:"
)
_HEADERS = {
    "content-security-policy": _CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(self)",
}


@dataclass(slots=True)
class Guard:
    """The outermost layer: refuses foreign hosts (DNS rebinding), foreign pages, and bodies
    that are large or take longer than ``seconds``, and adds the headers that keep pages apart.
    ``sizes`` are the bytes of most bodies, and of those that may hold files."""

    app: ASGIApp
    hosts: frozenset[str]
    sizes: tuple[int, int] = (4_194_304, 67_108_864)
    seconds: float = 60.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, replaced = time.perf_counter(), 500, False
        request, refused = Request(scope), list[Problem]()

        async def answer(message: Message) -> None:
            nonlocal status, replaced
            if replaced:
                return
            if message["type"] == "http.response.start" and refused and message["status"] != refused[0].status:
                # a framework takes what was raised while it read the body for a malformed one
                await respond(request, refused[0])(scope, receive, answer)
                replaced = True
                return
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        most = self.sizes[scope["path"].startswith(_FILES)]
        problem = self._problem(Headers(scope=scope), most)
        if problem is not None:
            await respond(request, problem)(scope, receive, answer)
        else:
            await self.app(scope, self._limited(receive, refused, most), answer)
        took = round((time.perf_counter() - started) * 1_000, 1)
        told = {"method": scope["method"], "route": route_of(scope), "status": status, "ms": took}
        _log.info("request", extra=told)

    def _problem(self, headers: Headers, most: int) -> Problem | None:
        host = headers.get("host", "").lower()
        if host not in self.hosts and _bare(host) not in self.hosts:
            return Problem(421, "this address is not served here: start the server with --host-name for it")
        origin = headers.get("origin", "").lower()
        if origin and origin.partition("://")[2] != host:
            return Problem(403, "requests from another site's page are not taken")
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            return Problem(400, "the content-length is no number")
        if len(length) > _DIGITS or int(length) > most:
            return Problem(413, f"the body has {length[:_DIGITS]} bytes; the limit is {most:,}")
        return None

    def _limited(self, receive: Receive, refused: list[Problem], most: int) -> Receive:
        size, whole = 0, False
        until = asyncio.get_running_loop().time() + self.seconds

        async def limited() -> Message:
            nonlocal size, whole
            if whole:
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError as error:
                refused.append(Problem(408, f"the body did not come within {self.seconds:g} seconds: send it again"))
                raise refused[0] from error
            whole = not message.get("more_body", False)
            size += len(message.get("body", b""))
            if size > most:
                refused.append(Problem(413, f"the body is larger than the limit of {most:,} bytes"))
                raise refused[0]
            return message

        return limited


def route_of(scope: Scope) -> str:
    """The pattern of a request's route, never its address; ``none`` where no route was reached."""
    route = getattr(scope.get("route"), "path", "")
    return str(route or getattr(scope.get("endpoint"), "__name__", "none"))


def _bare(host: str) -> str:
    """A host without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


class JsonLines(logging.Formatter):
    """Log lines as JSON objects; what looks like a secret is left out."""

    _OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        body = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname.lower(),
            "what": record.getMessage(),
        }
        body |= {k: v for k, v in vars(record).items() if k not in self._OWN}
        if record.exc_info and record.exc_info[0] is not None:
            body["error"] = record.exc_info[0].__name__
        return _SECRET.sub("[secret]", json.dumps(body, ensure_ascii=False, default=str))
