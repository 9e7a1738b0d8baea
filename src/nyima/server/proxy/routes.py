"""The proxy: any OpenAI-compatible program gets a memory by changing one URL."""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from nyima.domain.conversation import Role
from nyima.program import ProgramReply, ProgramRequest
from nyima.server.access.keys import Key
from nyima.server.access.limits import RateLimits
from nyima.server.metrics import Metrics
from nyima.server.pool import Memories
from nyima.server.problems import Problem
from nyima.server.proxy.identity import (
    RequestIdentity,
    header,
    housekeeping,
    open_session,
    own_session,
    place_of,
    scope_of,
    told,
)
from nyima.server.proxy.note_support import Notetakers
from nyima.server.proxy.relay import MOST_ANSWER, RelayParts, Work
from nyima.server.proxy.response_owners import Owned
from nyima.server.proxy.rewrite import Answered, outgoing, read_object, refused
from nyima.server.proxy.upstream import Upstream
from nyima.server.proxy.wire_chat import CHAT
from nyima.server.proxy.wire_responses import RESPONSES
from nyima.server.proxy.wires import DialogueLines, Wire
from nyima.server.sse import parsed

__all__ = ["Proxy"]


@dataclass(slots=True)
class Proxy:
    """Sends chat requests on, with the memory in them, and keeps what was said."""

    memories: Memories
    upstream: Upstream
    limits: RateLimits
    metrics: Metrics
    notetakers: Notetakers
    trusted: bool = False
    owned: Owned = field(default_factory=Owned)
    running: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])

    async def answer(self, request: Request, key: Key, wire: Wire) -> Response:
        """One chat request. Raises Problem."""
        if not {"read", "write"} & set(key.scopes):
            raise Problem(403, f"this key has the scopes {', '.join(key.scopes)}: a chat needs read or write")
        body = await read_object(request)
        lines = wire.lines(body)
        who = told(key, request.headers, body, trusted=self.trusted)
        request.state.whose = who.scope  # for the audit
        for id in wire.refers(body):
            self.owned.check(id, who.scope)
        exchange = await self._begin(who, key, wire, body, lines)
        plain = exchange is not None and (wire.plain(body) or who.explicit)
        services = RelayParts(self.memories, self.upstream, self.owned, self.notetakers, self.limits, self.metrics)
        sent = outgoing(body, key, wire.drops)
        work = Work(services, self.running, who, key, wire, exchange, sent, dict(request.headers), plain)
        return await (work.streamed() if body.get("stream") is True else work.whole())

    async def _begin(
        self, who: RequestIdentity, key: Key, wire: Wire, body: Mapping[str, Any], lines: DialogueLines
    ) -> ProgramReply | None:
        """The exchange of a request that the memory takes part in; the message is stored."""
        message = next((text for role, text in reversed(lines) if role == "user"), "")
        if who.mode == "off" or housekeeping(message):
            return None
        if (who.reads and "read" not in key.scopes) or (who.writes and "write" not in key.scopes):
            raise Problem(403, f"this key has the scopes {', '.join(key.scopes)}: memory {who.mode!r} needs more")
        if not message.strip():
            return await self._going_on(who, body)
        memory = self.memories.of(who.scope)
        last = max(i for i, (role, _) in enumerate(lines) if role == "user")
        said = [line for line in lines[: last + 1] if line[0] in {"user", "system", "developer"}]
        session = who.session or self.owned.session(body.get("previous_response_id"), who.scope)
        now, own = memory.clock.now(), not session
        if not session:
            goes_on = any(role in {"assistant", "tool"} for role, _ in lines)
            session = await own_session(memory, said, now, goes_on=goes_on)
        session = await open_session(memory, session)
        messages = [text for role, text in lines if role == "user"]
        place = await place_of(memory, session, messages, now, answered=last + 1 < len(lines), own=own)
        dialogue = tuple((r, t) for r, t in lines[:last] if r in {"user", "assistant"} and t.strip())
        notes = wire.plain(body) and who.writes and self.notetakers.asked(body.get("model"))
        asked = ProgramRequest(message, session, dialogue, place, who.key, who.reads, who.writes, notes)
        return await ProgramReply.begin(memory, asked)

    async def _going_on(self, who: RequestIdentity, body: Mapping[str, Any]) -> ProgramReply | None:
        """What tools gave, without a message: it goes on with the message before the response
        that called them."""
        session = self.owned.session(body.get("previous_response_id"), who.scope)
        if not session or not who.writes:
            return None
        memory = self.memories.of(who.scope)
        said = [t for t in await memory.turns(session) if t.role is Role.USER]
        if not said:
            return None
        asked = ProgramRequest(said[-1].text, session, (), said[-1].id, who.key, reads=False, notes=False)
        return await ProgramReply.begin(memory, asked, said[-1])

    async def pass_on(self, request: Request, key: Key, path: str) -> Response:
        """A request of another kind (models, embeddings, audio), as it is but for its user."""
        if any(part in {"", ".", ".."} for part in path.split("/")[1:]):
            raise Problem(404, "there is nothing at this address")
        where = urllib.parse.quote(path, safe="/:@")
        if request.url.query:
            where += f"?{request.url.query}"
        content = await request.body()
        if content and not request.headers.get("content-type", "").lower().startswith("multipart/"):
            content = json.dumps(outgoing(await read_object(request), key)).encode()
        async with self.upstream.send(request.method, where, content, dict(request.headers)) as sent:
            raw = await sent.read(MOST_ANSWER)
        if sent.status >= 400:
            return refused(sent, raw)
        with contextlib.suppress(ValueError, AttributeError):
            spent = CHAT.usage(parsed(raw))
            self.limits.spend(key, spent.prompt + spent.completion)
            self.metrics.spend(spent.prompt, spent.completion)
        return Response(raw, sent.status, dict(sent.headers))

    async def stored(self, request: Request, key: Key, id: str) -> Response:
        """A response that the upstream keeps, for who asked for it; without our notes."""
        named = header(request.headers, "x-nyima-user-id").strip()
        if named:
            self.owned.check(id, scope_of(key, named))
        else:
            self.owned.reached(id, key, scope_of(key, ""))
        if request.query_params.get("stream", "").lower() in {"true", "1"}:
            raise Problem(400, "a stored response is given whole here: leave `stream` out", param="stream")
        answer = await self.pass_on(request, key, f"/responses/{id}")
        with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
            body = RESPONSES.unsaid(parsed(bytes(answer.body)), {})  # what the memory added is not told again
            shown, _, notes = RESPONSES.text(body).partition("<nyima-notes>")
            return Answered(RESPONSES.with_text(body, shown.rstrip()) if notes else body, answer.status_code)
        return answer

    async def close(self) -> None:
        """Wait for the replies that are still coming in; what takes too long is broken off,
        and kept as not complete."""
        if self.running:
            _, late = await asyncio.wait(self.running, timeout=10.0)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
