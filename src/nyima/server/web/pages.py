"""The pages of the web page. They show what the public API gives and hold no logic of memory."""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import json
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from nyima.domain.conversation import Role
from nyima.domain.records import KINDS, Claim, Entity, MemoryRecord, Note, Status, Summary
from nyima.errors import NotFound
from nyima.mechanisms.documents.shelf import add_document, held_documents, index_documents, remove_documents
from nyima.mechanisms.graph.draw import as_svg
from nyima.mechanisms.graph.look import entity_named, neighbourhood
from nyima.mechanisms.pins import pin, pinned
from nyima.memory import Memory
from nyima.read.trace import record_to_json
from nyima.server.problems import Problem
from nyima.server.state import Principal, caller, served
from nyima.services.counts import statistics

__all__ = ["PAGES", "Route", "login_page", "render", "routes"]

Route = tuple[str, Callable[[Request], Awaitable[Response]], str]
PAGES = (
    ("/", "Chat"), ("/memories", "Memories"), ("/changes", "Changes"), ("/profile", "Profile"), ("/sessions", "Sessions"), ("/graph", "Graph"),
    ("/documents", "Documents"), ("/settings", "Settings"),
)  # fmt: skip
_HERE = Path(__file__).parent
_MOST = 200
_SHOWN = ("note", "claim")
_LOGIN_STYLE = (
    "*{box-sizing:border-box}:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:28rem;margin:4rem auto;padding:0 1rem;color:#1d1f23;background:#fff}"
    "input,button{font:inherit;padding:.4rem .6rem;display:block;margin:.4rem 0;width:100%}"
    "@media(prefers-color-scheme:dark){body,input,button{color:#e8e9ec;background:#16181d}}"
)


@functools.cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, auto_reload=False,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def render(request: Request, template: str, title: str, **values: Any) -> HTMLResponse:
    """A page, or a part of one."""
    parts = served(request)
    token = parts.gate.token(request.state.key)
    text = _templates().get_template(template).render(
        title=title, pages=PAGES, here=request.url.path, token=token, **values
    )  # fmt: skip
    return HTMLResponse(text)


def login_page(*, wrong: bool = False) -> HTMLResponse:
    """The page for who has no key in a cookie yet. Its style is allowed by its hash."""
    digest = base64.b64encode(hashlib.sha256(_LOGIN_STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    text = _templates().get_template("login.html").render(style=_LOGIN_STYLE, wrong=wrong)
    headers = {"content-security-policy": policy, "www-authenticate": 'Bearer realm="nyima"'}
    return HTMLResponse(text, 401, headers)


@dataclass(frozen=True, slots=True)
class _Form:
    values: Mapping[str, str]

    def need(self, name: str, most: int = 20_000) -> str:
        """A value that must be there. Raises Problem 422."""
        found = self.values.get(name, "").strip()
        if not found or len(found) > most:
            raise Problem(422, f"{name} must have 1 to {most} characters", param=name)
        return found


async def _form(request: Request) -> _Form:
    raw = (await request.body()).decode("utf-8", "replace")
    try:
        return _Form({k: v[-1] for k, v in urllib.parse.parse_qs(raw, max_num_fields=50).items()})
    except ValueError as error:
        raise Problem(422, f"the form cannot be read: {error}") from error


def _reads(request: Request) -> Principal:
    return caller(request, "read")


def _writes(request: Request) -> Principal:
    return caller(request, "read", "write")


# --- memories ---


async def memories(request: Request) -> Response:
    """All memories, to search and filter."""
    who = _reads(request)
    turns = await who.memory.turns()
    now = who.memory.clock.now()
    first = min((t.at for t in turns), default=now)
    return render(
        request, "memories.html", "Memories", kinds=KINDS, q=request.query_params.get("q", ""), kind="",
        first=first.strftime("%Y-%m-%d"), days=max(1, (now.date() - first.date()).days + 1), **await _rows(who.memory, request),
    )  # fmt: skip


async def rows(request: Request) -> Response:
    """The rows of a search or a filter."""
    return render(request, "rows.html", "", **await _rows(_reads(request).memory, request))


async def _rows(memory: Memory, request: Request) -> dict[str, Any]:
    asked = request.query_params
    words, kind = asked.get("q", "").strip()[:2_000], asked.get("kind", "")
    as_of = _day(asked.get("day"), await _first(memory), memory.clock.now())
    kinds = (kind,) if kind in KINDS else _SHOWN
    if words:
        found = [
            e.record for e in (await memory.recall(words, as_of=as_of, kinds=kinds if kind else (), log=False)).kept
        ]
    else:
        found = (await memory.records(kinds=kinds, as_of=as_of, retired=bool(asked.get("retired")) and as_of is None))[
            ::-1
        ]
    marked = {r.id for r in await pinned(memory)}
    shown = [record_to_json(r) | {"pinned": r.id in marked} for r in found[:_MOST]]
    note = f"As of {as_of:%-d %B %Y}." if as_of else ""
    return {"rows": shown, "more": len(found) if len(found) > _MOST else 0, "note": note}


async def _first(memory: Memory) -> datetime:
    return min((t.at for t in await memory.turns()), default=memory.clock.now())


def _day(given: str | None, first: datetime, now: datetime) -> datetime | None:
    """The end of the n-th day since the first turn; None for today."""
    if not given or not given.isdecimal() or len(given) > 6:
        return None
    day = datetime(first.year, first.month, first.day, tzinfo=UTC) + timedelta(days=int(given) + 1)
    return day if day < now else None


async def record(request: Request) -> Response:
    """What is behind one memory, with what can be done to it."""
    memory = _reads(request).memory
    found = await memory.record(request.path_params["id"])
    why = await memory.explain(found.id)
    going = await memory.would_forget(found.id)
    return render(
        request, "record.html", "", r=record_to_json(found), said=why.turns, value=await memory.value(found),
        revisable=isinstance(found, Claim | Note | Summary),
        going=[" ".join(t.text.split())[:120] for t in going.turns], others=len(going.records) - 1,
        history=[record_to_json(r) for r in why.history], pinned=found.id in {r.id for r in await pinned(memory)},
    )  # fmt: skip


async def change(request: Request) -> Response:
    """Revise, retire, pin or forget one memory; answers with its row as it is now."""
    who = _writes(request)
    memory, form = who.memory, await _form(request)
    found = await memory.record(request.path_params["id"])
    what = request.path_params["what"]
    if what == "revise":
        found = await memory.revise(found.id, form.need("text"))
    elif what == "retire":
        await memory.retire(found.id)
    elif what == "pin":
        await pin(memory, found.id, on=bool(form.values.get("pinned")))
    elif what == "forget":
        receipt = await memory.forget(found.id, only=bool(form.values.get("only")))
        who.owe()
        told = f"Erased for good. Turns: {receipt.turns}, records: {sum(receipt.erased.values())}."
        if receipt.still_said:
            told += " What you said is kept, and still says it."
        headers = {"HX-Trigger": json.dumps({"erased": {"text": told}})}  # the list is shown again without all of it
        return HTMLResponse('<li class="quiet">Erased for good.</li>', headers=headers)
    else:
        raise NotFound(f"a memory cannot be {what!r}: revise, retire, pin or forget it")
    who.owe()
    return await _row(request, memory, found)


async def _row(request: Request, memory: Memory, found: MemoryRecord) -> Response:
    now = await memory.record(found.id)
    marked = {r.id for r in await pinned(memory)}
    text = render(
        request, "rows.html", "", rows=[record_to_json(now) | {"pinned": now.id in marked}], more=0, note=""
    ).body
    whole = bytes(text).decode()
    return HTMLResponse(whole[whole.index("<li") : whole.rindex("</li>") + 5])


async def undo(request: Request) -> Response:
    """Take back one change of the log, or what was noted of one message."""
    who, form = _writes(request), await _form(request)
    await who.memory.undo(form.need("turn" if "turn" in form.values else "change", 200))
    who.owe()
    return RedirectResponse("/changes", 303)


async def redo(request: Request) -> Response:
    """Bring back what the last undo took."""
    who = _writes(request)
    await who.memory.redo()
    who.owe()
    return RedirectResponse("/changes", 303)


async def changes(request: Request) -> Response:
    """What was learned, changed and taken back, each with its undo."""
    found = await _reads(request).memory.log(_MOST)
    again = any(c.by == "undo" and c.undoable for c in found)
    return render(request, "changes.html", "Changes", changes=found, again=again)


# --- profile, sessions, graph, documents, settings ---


async def profile(request: Request) -> Response:
    """The profile; a POST sets a value, or confirms what waits for it."""
    if request.method == "POST":
        who, form = _writes(request), await _form(request)
        if "confirm" in form.values:
            wanted = form.need("confirm", 200)
            await who.memory.confirm(*([] if wanted == "all" else [wanted]))
        else:
            await who.memory.set(form.need("attribute", 60), form.need("value", 500))
        who.owe()
        return RedirectResponse("/profile", 303)
    memory = _reads(request).memory
    waiting = [c for c in await memory.claims() if c.status is Status.PENDING]
    found = (await memory.profile()).claims
    return render(request, "profile.html", "Profile", claims=found, waiting=waiting, unread=await memory.unread())


async def sessions(request: Request) -> Response:
    """The conversations."""
    memory = _reads(request).memory
    found = sorted(await memory.sessions(), key=lambda s: s.started, reverse=True)
    shown = [(s, s.title or await _begin(memory, s.id) or s.id) for s in found[:_MOST]]
    return render(request, "sessions.html", "Sessions", sessions=shown)


async def _begin(memory: Memory, session: str) -> str:
    """The first words of a session."""
    return next((t.text[:80] for t in await memory.turns(session) if t.role is Role.USER), "")


async def session(request: Request) -> Response:
    """One conversation; a POST forgets it."""
    id = request.path_params["id"]
    if request.method == "POST":
        who = _writes(request)
        await who.memory.forget(session=id)
        who.owe()
        return RedirectResponse("/sessions", 303)
    memory = _reads(request).memory
    found = await memory.store.sessions(memory.scope, ids=(id,))
    if not found:
        raise NotFound(f"there is no session {id!r}: the page Sessions lists them")
    return render(request, "sessions.html", found[0].title or "Session", session=found[0], turns=await memory.turns(id))


async def graph(request: Request) -> Response:
    """The memory graph around an entity."""
    memory = _reads(request).memory
    name = request.query_params.get("name", "")[:200]
    depth = request.query_params.get("depth", "2")
    steps = int(depth) if depth in {"1", "2", "3"} else 2
    svg, note = "", ""
    try:
        root = await entity_named(memory, name or "me")
        svg = as_svg(await neighbourhood(memory, root, steps), styled=False)
    except NotFound as error:
        note = str(error)
    return render(request, "graph.html", "Graph", name=name, depth=steps, svg=svg, note=note)


async def node(request: Request) -> Response:
    """What was clicked in the drawing."""
    memory = _reads(request).memory
    found = await memory.record(request.path_params["id"])
    if not isinstance(found, Entity):
        return await record(request)
    around = await neighbourhood(memory, found, 1)
    shown = [record_to_json(r) | {"pinned": False} for r in around.claims]
    return render(request, "rows.html", "", rows=shown, more=0, note=found.name)


async def documents(request: Request) -> Response:
    """The documents; a POST adds the file that is its body."""
    if request.method == "POST":
        from nyima.mechanisms.documents.parse import parse_document

        who = _writes(request)
        name = Path(request.query_params.get("name", "")).name
        if not name or len(name) > 200:
            raise Problem(422, "the file needs a name of 1 to 200 characters", param="name")
        added = await add_document(who.memory, await asyncio.to_thread(parse_document, await request.body(), name))
        await index_documents(who.memory)
        return HTMLResponse(f"{added.state}: {added.passages} passages", 201)
    held = await held_documents(_reads(request).memory)
    return render(request, "documents.html", "Documents", documents=held)


async def remove_document(request: Request) -> Response:
    """Erase a document."""
    who, form = _writes(request), await _form(request)
    await remove_documents(who.memory, [form.need("name", 500)])
    who.owe()
    return RedirectResponse("/documents", 303)


async def settings(request: Request) -> Response:
    """Budgets, costs, transfer, settings."""
    who = _reads(request)
    found = who.memory.parts.settings
    hidden = {"db", "cache", "persona", "examples", "sources", "trained", "api_key", "base_url"}
    values = found.shown()
    shown = [(f.name, values[f.name]) for f in fields(found) if f.name != "origin" and f.name not in hidden]
    return render(
        request, "settings.html", "Settings", stats=await statistics(who.memory), settings=found, key=who.key,
        used=who.limits.usage(who.key), shown=shown,
    )  # fmt: skip


async def forget_everything(request: Request) -> Response:
    """Erase the whole memory."""
    who = _writes(request)
    await who.memory.forget(everything=True)
    return RedirectResponse("/", 303)


def routes() -> list[Route]:
    """Path, function, method."""
    both = [("/profile", profile), ("/documents", documents)]
    return [
        ("/memories", memories, "GET"), ("/memories/rows", rows, "GET"), ("/memories/{id}", record, "GET"),
        ("/memories/{id}/{what}", change, "POST"), ("/changes", changes, "GET"), ("/undo", undo, "POST"),
        ("/redo", redo, "POST"),
        *((path, function, method) for path, function in both for method in ("GET", "POST")),
        ("/documents/remove", remove_document, "POST"), ("/sessions", sessions, "GET"), ("/sessions/{id:path}", session, "GET"),
        ("/sessions/{id:path}/forget", session, "POST"), ("/graph", graph, "GET"), ("/graph/{id}", node, "GET"),
        ("/settings", settings, "GET"), ("/forget-everything", forget_everything, "POST"),
    ]  # fmt: skip
