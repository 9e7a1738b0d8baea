"""The chat of the web page: one reply as a stream, with what it used."""

from __future__ import annotations

import asyncio
import urllib.parse
from collections.abc import AsyncIterator
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from nyima.assistant import Assistant
from nyima.domain.conversation import Role
from nyima.domain.evidence import Answer
from nyima.domain.records import ME
from nyima.errors import NotFound, NyimaError
from nyima.memory import Said
from nyima.read.trace import evidence_to_dict
from nyima.server.problems import Problem
from nyima.server.shapes import ChatIn
from nyima.server.sse import rendered
from nyima.server.state import Principal, caller
from nyima.server.web.pages import Route, render
from nyima.write.claims import quote_of

__all__ = ["routes"]


async def page(request: Request) -> Response:
    """The chat, with the open session's turns."""
    who = caller(request, "read")
    memory = who.memory
    session = request.query_params.get("session", "")
    turns = await memory.turns(session) if session else []
    model = memory.parts.chat is not None
    return render(request, "chat.html", "Chat", session=session if turns else "", turns=turns, model=model)


async def say(request: Request) -> Response:
    """A message; the answer is a stream of events."""
    who = caller(request, "read", "write")
    try:
        given = ChatIn.model_validate_json(await request.body())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Problem(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if who.memory.parts.chat is None:
        raise Problem(503, "there is no chat model behind this server: set OPENAI_BASE_URL or NYIMA_MODEL")
    nyima = who.served.memories.assistant(who.scope, private=given.private)
    await _resume(nyima, given)
    return StreamingResponse(_events(who, nyima, given), media_type="text/event-stream")


async def _resume(nyima: Assistant, given: ChatIn) -> None:
    if given.private:
        await nyima.resume(turns=[Said(t.text, Role(t.role)) for t in given.before])
    elif given.session:
        try:
            await nyima.resume(given.session)
        except NotFound:
            return  # it has ended in the meantime: the message begins a new one


async def _events(who: Principal, nyima: Assistant, given: ChatIn) -> AsyncIterator[bytes]:
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()
    task = asyncio.get_running_loop().create_task(_talk(who, nyima, given, queue))
    who.served.running.add(task)
    task.add_done_callback(who.served.running.discard)
    while (piece := await queue.get()) is not None:
        yield piece


async def _talk(who: Principal, nyima: Assistant, given: ChatIn, queue: asyncio.Queue[bytes | None]) -> None:
    """The reply, to its end whoever still listens."""
    with who.served.memories.talking(who.scope):
        try:
            stream = nyima.stream(given.text)
            async for piece in stream:
                queue.put_nowait(rendered({"delta": piece}))
            answer = stream.answer
            queue.put_nowait(rendered(await _done(nyima, answer, given)))
            who.limits.spend(who.key, answer.usage.prompt + answer.usage.completion)
        except NyimaError as error:
            queue.put_nowait(rendered({"error": str(error)}))
        finally:
            queue.put_nowait(None)


async def _done(nyima: Assistant, answer: Answer, given: ChatIn) -> dict[str, Any]:
    shown = set(answer.recall.shown)
    used = [evidence_to_dict(e) for e in answer.recall.kept if e.record.id in shown]
    said, noted = await _noted(nyima, answer) if not given.private else ("", [])
    return {
        "done": True, "session": nyima.session, "turn": answer.turn, "said": said, "used": used, "noted": noted,
        "private": given.private, "ms": round(1_000 * answer.seconds.get("total", 0.0)),
    }  # fmt: skip


async def _noted(nyima: Assistant, answer: Answer) -> tuple[str, list[list[str]]]:
    """The id of the user's turn that was answered, and the claims of the notes that its words
    support: others are not kept."""
    turns = await nyima.memory.turns(nyima.session) if nyima.session else []
    at = next((i for i, t in enumerate(turns) if t.id == answer.turn), 0)
    said = turns[at - 1] if at else None
    if said is None:
        return "", []
    kept = [c for c in answer.notes.claims if quote_of(c.value, said) is not None]
    return said.id, [[c.what if c.who == ME else f"{c.who} {c.what}", c.value] for c in kept]


async def used(request: Request) -> Response:
    """What an earlier reply used, as far as it is still there."""
    memory = caller(request, "read").memory
    turn = request.query_params.get("turn", "")
    trace = (await memory.explain(turn)).trace if turn else None
    shown = set(trace["shown"]) if trace is not None else set[str]()
    return JSONResponse({"used": [e for e in trace["kept"] if e["id"] in shown] if trace is not None else []})


async def end(request: Request) -> Response:
    """End the session: summary and profile are made of it."""
    who = caller(request, "read", "write")
    given = (await request.body()).decode("utf-8", "replace")
    session = dict(urllib.parse.parse_qsl(given)).get("session", "")
    await who.memory.end_session(session)
    who.owe()
    return Response(status_code=204)


def routes() -> list[Route]:
    """Path, function, method."""
    return [("/", page, "GET"), ("/chat", say, "POST"), ("/chat/used", used, "GET"), ("/chat/end", end, "POST")]
