"""The proxy: any OpenAI-compatible program gets a memory by changing one URL."""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.parse
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from nyima.adapters.upstream import Sent, Upstream
from nyima.domain.conversation import Scope
from nyima.domain.evidence import Usage
from nyima.domain.text import tokens
from nyima.errors import ModelUnreachable, NyimaError
from nyima.exchange import Asked, Exchange
from nyima.interfaces.server.bodies import outgoing, read_object, refused
from nyima.interfaces.server.identity import (
    Told,
    housekeeping,
    open_session,
    own_session,
    place_of,
    scope_of,
    told,
)
from nyima.interfaces.server.keys import Key
from nyima.interfaces.server.limits import Limits
from nyima.interfaces.server.memories import Memories
from nyima.interfaces.server.metrics import Metrics
from nyima.interfaces.server.notetakers import Notetakers
from nyima.interfaces.server.problems import Problem, envelope, problem_of
from nyima.interfaces.server.sse import events, rendered
from nyima.interfaces.server.wires import CHAT, RESPONSES, Stream, Wire

__all__ = ["Proxy"]

_MOST_ANSWER = 32_000_000
_MOST_RESPONSES = 10_000
_MOST_HELD = 8
_SHORT = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(slots=True)
class Proxy:
    """Sends chat requests on, with the memory in them, and keeps what was said."""

    memories: Memories
    upstream: Upstream
    limits: Limits
    metrics: Metrics
    notetakers: Notetakers
    trusted: bool = False
    sessions: OrderedDict[str, tuple[Scope, str]] = field(default_factory=OrderedDict[str, tuple[Scope, str]])
    running: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def answer(self, request: Request, key: Key, wire: Wire) -> Response:
        """One chat request. Raises Problem."""
        body = await read_object(request)
        lines = wire.lines(body)
        who = told(key, request.headers, body, trusted=self.trusted)
        exchange = await self._begin(who, key, wire, body, lines)
        headers = dict(request.headers)
        plain = exchange is not None and (wire.plain(body) or who.explicit)
        work = _Work(self, who, key, wire, exchange, outgoing(body, key), headers, plain)
        return await (work.streamed() if body.get("stream") is True else work.whole())

    async def _begin(
        self, who: Told, key: Key, wire: Wire, body: Mapping[str, Any], lines: list[tuple[str, str]]
    ) -> Exchange | None:
        """The exchange of a request that the memory takes part in; the message is stored."""
        message = next((text for role, text in reversed(lines) if role == "user"), "")
        if who.mode == "off" or not message.strip() or housekeeping(message):
            return None
        if (who.reads and "read" not in key.scopes) or (who.writes and "write" not in key.scopes):
            raise Problem(403, f"this key has the scopes {', '.join(key.scopes)}: memory {who.mode!r} needs more")
        memory = self.memories.of(who.scope)
        last = max(i for i, (role, _) in enumerate(lines) if role == "user")
        said = [line for line in lines[: last + 1] if line[0] in {"user", "system", "developer"}]
        earlier = body.get("previous_response_id")
        if isinstance(earlier, str):
            self.owned(earlier, who.scope)
        session = who.session or self._earlier(who.scope, earlier)
        now = memory.parts.clock.now()
        if not session:
            goes_on = any(role in {"assistant", "tool"} for role, _ in lines)
            session = await own_session(memory, said, now, goes_on=goes_on)
        session = await open_session(memory, session)
        messages = [text for role, text in lines if role == "user"]
        place = await place_of(memory, session, messages, now, answered=last + 1 < len(lines))
        dialogue = tuple((r, t) for r, t in lines[:last] if r in {"user", "assistant"} and t.strip())
        notes = wire.plain(body) and who.writes and self.notetakers.asked(body.get("model"))
        asked = Asked(message, session, dialogue, place, who.key, who.reads, who.writes, notes)
        return await Exchange.begin(memory, asked)

    def _earlier(self, scope: Scope, response: Any) -> str:
        found = self.sessions.get(response) if isinstance(response, str) else None
        return found[1] if found is not None and found[0] == scope else ""

    def keep(self, response: str, scope: Scope, session: str) -> None:
        """Remember which session a response belongs to."""
        self.sessions[response] = (scope, session)
        while len(self.sessions) > _MOST_RESPONSES:
            self.sessions.popitem(last=False)

    def spend(self, key: Key, usage: Usage) -> None:
        """Count what an answer took."""
        self.limits.spend(key, usage.prompt + usage.completion)
        self.metrics.spend(usage.prompt, usage.completion)

    async def pass_on(self, request: Request, key: Key, path: str) -> Response:
        """A request of another kind (models, embeddings, audio), as it is but for its user."""
        if any(part in {"", ".", ".."} for part in path.split("/")[1:]):
            raise Problem(404, "there is nothing at this address")
        where = urllib.parse.quote(path, safe="/:@")
        if request.url.query:
            where += f"?{request.url.query}"
        content = await request.body()
        if request.headers.get("content-type", "").startswith("application/json"):
            content = json.dumps(outgoing(await read_object(request), key)).encode()
        async with self.upstream.send(request.method, where, content, dict(request.headers)) as sent:
            raw = await sent.read(_MOST_ANSWER)
        if sent.status >= 400:
            return refused(sent, raw)
        with contextlib.suppress(ValueError, AttributeError):
            self.spend(key, CHAT.usage(json.loads(raw)))
        return Response(raw, sent.status, dict(sent.headers))

    async def stored(self, request: Request, key: Key, id: str) -> Response:
        """A response that the upstream keeps, for who asked for it; without our notes."""
        self.owned(id, scope_of(key, request.headers.get("x-nyima-user-id", "").strip()))
        answer = await self.pass_on(request, key, f"/responses/{id}")
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            body = json.loads(bytes(answer.body))
            shown, _, notes = RESPONSES.text(body).partition("<nyima-notes>")
            if notes:
                return JSONResponse(RESPONSES.with_text(body, shown.rstrip()), answer.status_code)
        return answer

    def owned(self, id: str, scope: Scope) -> None:
        """Raises Problem 404 for a response that is not this user's, or from before a restart."""
        if self.sessions.get(id, (None, ""))[0] != scope:
            raise Problem(404, f"there is no response {id[:80]!r} of yours since the server started")

    async def close(self) -> None:
        """Wait for the replies that are still coming in; what takes too long is broken off,
        and kept as not complete."""
        if self.running:
            _, late = await asyncio.wait(self.running, timeout=10.0)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


@dataclass(slots=True)
class _Work:
    """One request on its way: it is finished even when its client is gone."""

    proxy: Proxy
    who: Told
    key: Key
    wire: Wire
    exchange: Exchange | None
    bare: dict[str, Any]
    headers: dict[str, str]
    plain: bool
    asked: int = 0
    spent: bool = False
    begun: bool = False
    repeated: bool = False
    stream: Stream | None = None

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
        return self.proxy.upstream.send("POST", self.wire.path, body, self.headers)

    def _heard(self, *, wrote: bool) -> None:
        """Keep in mind whether the model wrote the notes that it was asked for."""
        if self.notes and not any(self.bare.get(name) for name in _SHORT):
            self.proxy.notetakers.heard(self.bare.get("model"), wrote=wrote)

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
        kept = self.exchange.recall.kept
        said = {"x-nyima-memory": self.who.mode, "x-nyima-session-id": self.exchange.said.session}
        said["x-nyima-session-id"] = urllib.parse.quote(said["x-nyima-session-id"], safe=":@/+ ")
        return said | {"x-nyima-turn-id": self.exchange.said.id, "x-nyima-recalled": str(len(kept))}

    async def whole(self) -> Response:
        """An answer in one piece."""
        work: asyncio.Task[Response] = asyncio.get_running_loop().create_task(self._whole())
        self._hold(work)
        return await asyncio.shield(work)

    def _hold(self, work: asyncio.Task[Any]) -> None:
        self.proxy.running.add(work)
        work.add_done_callback(self.proxy.running.discard)

    async def _whole(self) -> Response:
        with self.proxy.memories.talking(self.who.scope):
            async with self._send() as sent:
                raw = await sent.read(_MOST_ANSWER)
            if sent.status >= 400:
                return refused(sent, raw)
            try:
                answer = json.loads(raw)
                text = self.wire.text(answer)
            except (ValueError, TypeError, AttributeError) as error:
                raise ModelUnreachable(
                    "the upstream sent an answer that is no JSON object: check its address"
                ) from error
            usage = self.wire.usage(answer)
            self._spend(usage, tokens(text))
            if self.exchange is not None:
                if self.strips:
                    shown = self.exchange.feed(text) + self.exchange.finish()
                    if self._silent():
                        self._again(usage, tokens(text))
                        return await self._whole()
                    answer = self.wire.with_text(answer, shown.rstrip() if self.exchange.noting else shown)
                if text and (self.exchange.begun or not self.repeated):
                    closed = await self.exchange.close(None if self.strips else text, usage=usage)
                    self._heard(wrote=closed.notes.complete)
                if isinstance(answer.get("id"), str):
                    self.proxy.keep(answer["id"], self.who.scope, self.exchange.said.session)
            kept = {k: v for k, v in sent.headers.items() if k.lower() != "content-type"}
            return JSONResponse(answer, sent.status, {**kept, **self._told})

    async def streamed(self) -> Response:
        """An answer as it comes. It is read to its end, whoever still listens."""
        queue: asyncio.Queue[bytes | Response | None] = asyncio.Queue()
        left = asyncio.Event()

        async def put(piece: bytes | Response | None) -> None:
            self.begun = True
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
        with self.proxy.memories.talking(self.who.scope):
            try:
                await self._once(put)
                if self.stream is not None and self._silent():
                    self._again(self.stream.usage, tokens(self.stream.text))
                    await self._once(put)
            except NyimaError as error:
                told = envelope(problem_of(error))
                await put(rendered(told) if self.begun else JSONResponse(told, problem_of(error).status))
            finally:
                await self._ended(put)

    async def _once(self, put: Any) -> None:
        """One call, passed on as it comes."""
        async with self._send() as sent:
            if sent.status >= 400:
                await put(refused(sent, await sent.read(_MOST_ANSWER)))
                return
            if "event-stream" not in sent.headers.get("content-type", ""):
                raise ModelUnreachable("the upstream sent no stream of events: check its address")
            if self.exchange is None:
                count = 0
                async for piece in sent.body:
                    count += piece.count(b"data:")
                    await put(piece)
                self._spend(Usage(1), count)
                return
            self.stream = self.wire.stream(self.exchange, notes=self.strips)
            await self._follow(self.stream, self.exchange, sent, put)

    async def _follow(self, stream: Stream, exchange: Exchange, sent: Sent, put: Any) -> None:
        """Pass on what comes. The first events wait for a word of the reply, so that one which
        turns out to be notes alone can be asked for again; they do not wait for long, since a
        model may think aloud before it says something."""
        held: list[bytes] = []
        async for event in events(sent.body):
            for piece in stream.take(event):
                held.append(piece)
                if self._silent():
                    return
                if stream.complete:
                    await self._finish()  # what the client hears of as done is stored
                if stream.complete or not self.notes or exchange.begun or self.begun or len(held) > _MOST_HELD:
                    for ready in held:
                        await put(ready)
                    held.clear()
            if event.done:
                return
        for ready in held:
            await put(ready)

    def _spend(self, usage: Usage, written: int) -> None:
        """Count once; an upstream that tells no usage is counted by what was written."""
        if not self.spent:
            self.spent = True
            self.proxy.spend(self.key, usage if usage.prompt else Usage(1, self.asked, 0, written))

    async def _finish(self) -> None:
        stream, exchange = self.stream, self.exchange
        if stream is None or exchange is None or exchange.answer is not None:
            return
        self._spend(stream.usage, tokens(stream.text))
        if stream.id:
            self.proxy.keep(stream.id, self.who.scope, exchange.said.session)
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
