"""One chat request on its way through the proxy: sent on with the memory in it, read to its end
whoever still listens, and kept."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import urllib.parse
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse, Response, StreamingResponse

from nyima.domain.evidence import Usage
from nyima.errors import ModelUnreachable, NyimaError
from nyima.language.words import tokens
from nyima.program import ProgramReply
from nyima.server.access.keys import Key
from nyima.server.access.limits import RateLimits
from nyima.server.metrics import Metrics
from nyima.server.pool import Memories
from nyima.server.problems import Problem, envelope, problem_of
from nyima.server.proxy.identity import RequestIdentity
from nyima.server.proxy.note_support import Notetakers
from nyima.server.proxy.response_owners import Owned
from nyima.server.proxy.rewrite import Answered, refused
from nyima.server.proxy.upstream import Sent, Upstream
from nyima.server.proxy.wires import Wire, WireStream
from nyima.server.sse import events, parsed, rendered

__all__ = ["MOST_ANSWER", "RelayParts", "Work"]

MOST_ANSWER = 32_000_000
_MOST_HELD = 8
_SHORT = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RelayParts:
    """What all requests share."""

    memories: Memories
    upstream: Upstream
    owned: Owned
    notetakers: Notetakers
    limits: RateLimits
    metrics: Metrics


@dataclass(slots=True)
class Work:
    """One request on its way: it is finished even when its client is gone."""

    services: RelayParts
    running: set[asyncio.Task[Any]]
    who: RequestIdentity
    key: Key
    wire: Wire
    exchange: ProgramReply | None
    bare: dict[str, Any]
    headers: dict[str, str]
    plain: bool
    asked: int = 0
    spent: bool = False
    opened: bool = False
    begun: bool = False
    repeated: bool = False
    stream: WireStream | None = None

    @property
    def strips(self) -> bool:
        """Whether notes are taken out: a model that wrote them alone may write them again."""
        return self.notes or self.repeated

    @property
    def notes(self) -> bool:
        """Whether the model is asked for notes."""
        return self.exchange is not None and self.exchange.notes

    def _send(self) -> contextlib.AbstractAsyncContextManager[Sent]:
        """The request with the memory in it, on its way."""
        system = self.exchange.system if self.exchange is not None and self.plain else ""
        body = self.wire.with_system(self.bare, system) if system else self.bare
        self.asked = sum(tokens(text) for _, text in self.wire.lines(body))
        return self.services.upstream.send("POST", self.wire.path, body, self.headers)

    def _heard(self, *, wrote: bool) -> None:
        """Keep in mind whether the model wrote the notes that it was asked for."""
        if self.notes and not any(self.bare.get(name) for name in _SHORT):
            self.services.notetakers.heard(self.bare.get("model"), wrote=wrote)

    def _silent(self) -> bool:
        """Whether the notes began before anything was said, or passed on."""
        exchange = self.exchange
        return exchange is not None and self.notes and exchange.noting and not exchange.begun and not self.begun

    def _again(self, usage: Usage, written: int) -> None:
        """Prepare to ask once more, without notes."""
        assert self.exchange is not None
        self._spend(usage, written)
        self._heard(wrote=False)
        self.spent, self.repeated, self.stream = False, True, None
        self.exchange.again()

    @property
    def _told(self) -> dict[str, str]:
        if self.exchange is None:
            return {"x-nyima-memory": "off"}
        kept = self.exchange.recall.kept if self.plain else ()
        mode = self.who.mode if self.plain or not self.who.writes else "write"
        said = {"x-nyima-memory": mode, "x-nyima-session-id": self.exchange.said.session}
        said["x-nyima-session-id"] = urllib.parse.quote(said["x-nyima-session-id"], safe=":@/+ ")
        return said | {"x-nyima-turn-id": self.exchange.said.id, "x-nyima-recalled": str(len(kept))}

    async def whole(self) -> Response:
        """An answer in one piece."""
        work: asyncio.Task[Response] = asyncio.get_running_loop().create_task(self._whole())
        self._hold(work)
        return await asyncio.shield(work)

    def _hold(self, work: asyncio.Task[Any]) -> None:
        self.running.add(work)
        work.add_done_callback(self.running.discard)

    async def _whole(self) -> Response:
        with self.services.memories.talking(self.who.scope):
            async with self._send() as sent:
                raw = await sent.read(MOST_ANSWER)
            if sent.status >= 400:
                return refused(sent, raw)
            try:
                answer = parsed(raw)
                text, usage, ids = self.wire.text(answer), self.wire.usage(answer), self.wire.ids(answer)
            except (ValueError, TypeError, AttributeError) as error:
                raise ModelUnreachable(
                    "the upstream sent an answer that is no JSON object: check its address"
                ) from error
            self._spend(usage, tokens(text))
            self._own(ids)
            kept = {k: v for k, v in sent.headers.items() if k.lower() != "content-type"} | self._told
            exchange, shown = self.exchange, text
            if exchange is not None:
                if self.strips:
                    shown = exchange.feed(text) + exchange.finish()
                    if self._silent():
                        self._again(usage, tokens(text))
                        return await self._whole()
                    shown = shown.rstrip() if exchange.noting else shown
                if text and (exchange.begun or not self.repeated):
                    closed = await exchange.close(None if self.strips else text, usage=usage)
                    self._heard(wrote=closed.notes.complete)
            try:
                answer = self.wire.unsaid(answer, self.bare)
                changed = self.wire.with_text(answer, shown) if self.strips else answer
                return Answered(changed, sent.status, kept)
            except RecursionError as error:
                raise ModelUnreachable("the upstream sent an answer that is nested too deeply") from error

    def _own(self, ids: set[str]) -> None:
        self.services.owned.keep(ids, self.who.scope, self.exchange.said.session if self.exchange is not None else "")

    async def streamed(self) -> Response:
        """An answer as it comes. It is read to its end, whoever still listens."""
        queue: asyncio.Queue[bytes | Response | None] = asyncio.Queue()
        left = asyncio.Event()

        async def put(piece: bytes | Response | None, *, says: bool = True) -> None:
            self.opened, self.begun = True, self.begun or says
            if not left.is_set():
                await queue.put(piece)

        self._hold(asyncio.get_running_loop().create_task(self._read(put)))
        first = await queue.get()
        if isinstance(first, Response):
            return first

        async def pieces() -> AsyncIterator[bytes]:
            try:
                piece: bytes | Response | None = first
                while isinstance(piece, bytes):
                    yield piece
                    piece = await queue.get()
            finally:
                left.set()

        told = {"cache-control": "no-store", "x-accel-buffering": "no", **self._told}
        return StreamingResponse(pieces(), 200, told, media_type="text/event-stream")

    async def _read(self, put: Any) -> None:
        with self.services.memories.talking(self.who.scope):
            try:
                await self._once(put)
                if self.stream is not None and self._silent():
                    self._again(self.stream.usage, tokens(self.stream.text))
                    await self._once(put)
            except NyimaError as error:
                await self._failed(put, problem_of(error))
            except Exception:  # the boundary of a task that nobody awaits: its client must hear of it
                _log.exception("a stream failed")
                await self._failed(put, Problem(500, "something failed that should not: see the server's log"))
            finally:
                await self._ended(put)

    async def _failed(self, put: Any, problem: Problem) -> None:
        told = envelope(problem)
        await put(rendered(told) if self.opened else JSONResponse(told, problem.status))

    async def _once(self, put: Any) -> None:
        """One call, passed on as it comes."""
        async with self._send() as sent:
            if sent.status >= 400:
                told = refused(sent, await sent.read(MOST_ANSWER))
                await put(b"data: " + bytes(told.body) + b"\n\n" if self.opened else told)
                return
            if "event-stream" not in sent.headers.get("content-type", ""):
                raise ModelUnreachable("the upstream sent no stream of events: check its address")
            self.stream = self.wire.stream(self.exchange, self.bare, notes=self.strips)
            await self._follow(self.stream, sent, put)

    async def _follow(self, stream: WireStream, sent: Sent, put: Any) -> None:
        """Pass on what comes. The first events wait for a word of the reply, so that one which
        turns out to be notes alone can be asked for again; they do not wait for long, since a
        model may think aloud before it says something."""
        held: list[bytes] = []
        async for event in events(sent.body):
            if event.comment:
                await put(event.sent(), says=False)
                continue
            for piece in stream.take(event):
                held.append(piece)
                if self._silent():
                    return
                if stream.complete:
                    await self._finish()  # what the client hears of as done is stored
                if stream.complete or self._waited(len(held)):
                    for ready in held:
                        await put(ready)
                    held.clear()
            if event.done:
                break
        for ready in held:
            await put(ready)
        for last in stream.end():
            await self._finish()
            await put(last)

    def _waited(self, count: int) -> bool:
        """Whether what is held may go on: a word was said, or it took too long."""
        said = self.exchange is not None and self.exchange.begun
        return not self.notes or said or self.begun or count > _MOST_HELD

    def _spend(self, usage: Usage, written: int) -> None:
        """Count once; an upstream that tells no usage is counted by what was written."""
        if not self.spent:
            self.spent = True
            counted = usage if usage.prompt else Usage(1, self.asked, 0, written)
            self.services.limits.spend(self.key, counted.prompt + counted.completion)
            self.services.metrics.spend(counted.prompt, counted.completion)

    async def _finish(self) -> None:
        stream, exchange = self.stream, self.exchange
        if stream is None:
            return
        self._spend(stream.usage, tokens(stream.text))
        self._own(stream.ids)
        if exchange is None or exchange.answer is not None:
            return
        if self.strips:
            exchange.finish()
        if (self.repeated and not exchange.begun) or not (self.strips or stream.text):
            return  # nothing was said; of a call of tools the reply follows in another request
        text = None if self.strips else stream.text
        closed = await exchange.close(text, complete=stream.complete, usage=stream.usage)
        if stream.complete:
            self._heard(wrote=closed.notes.complete)

    async def _ended(self, put: Any) -> None:
        try:
            with contextlib.suppress(NyimaError):
                await self._finish()
        finally:
            await put(None)
