"""The REST API below ``/api``: memories, for programs."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import AwareDatetime

from nyima.change.as_json import change_to_dict, forgetting_to_dict, receipt_to_dict
from nyima.domain.conversation import Role, Turn, iso
from nyima.domain.evidence import Budget
from nyima.domain.records import MemoryRecord
from nyima.errors import InputError, NotFound
from nyima.memory import Memory, Said
from nyima.read.trace import claim_to_json, evidence_to_dict, plan_to_list, record_to_json
from nyima.server.problems import Problem
from nyima.server.shapes import (
    ForgetIn,
    ForgetOut,
    Page,
    Problems,
    RecallIn,
    RecordOut,
    ReviseIn,
    TurnOut,
    TurnsIn,
    TurnsOut,
    ValueBody,
)
from nyima.server.state import Principal, reader, writer
from nyima.services.counts import statistics
from nyima.transfer.exports import export_lines
from nyima.transfer.restore import read_export, restore

__all__ = ["ERRORS", "Reads", "Writes", "router"]

ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problems, "content": {"application/problem+json": {}}, "description": "A problem"}
    for code in (400, 401, 403, 404, 409, 412, 413, 421, 422, 429, 502, 503)
}
"""What any route may answer with."""
router = APIRouter(prefix="/api", responses=ERRORS)
Reads = Annotated[Principal, Depends(reader)]
Writes = Annotated[Principal, Depends(writer)]
Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str | None, Query(max_length=400, description="The `next` of an earlier page.")]
Match = Annotated[str | None, Header(alias="If-Match", description="The `etag` that was read.")]


@router.post("/turns", tags=["turns"])
async def remember(given: TurnsIn, who: Writes) -> TurnsOut:
    """Store turns. They are durable when this answers; what is made of them follows."""
    said = [Said(t.text, Role(t.role), t.at, t.speaker, id=t.id) for t in given.turns]
    done = await who.memory.remember(said, session=given.session, title=given.title)
    who.owe()
    return TurnsOut(session=done.turns[0].session, turns=[_turn(t) for t in done.turns], records=list(done.records))


@router.get("/sessions", tags=["turns"])
async def sessions(who: Reads, cursor: Cursor = None, limit: Limit = 50) -> Page:
    """The sessions, newest first."""
    found = sorted(await who.memory.sessions(), key=lambda s: (s.started, s.id), reverse=True)
    rows = [{"id": s.id, "title": s.title, "started": iso(s.started), "ended": iso(s.ended)} for s in found]
    return _page(rows, cursor, limit)


@router.get("/sessions/{session:path}/turns", tags=["turns"])
async def turns(session: str, who: Reads, cursor: Cursor = None, limit: Limit = 100) -> Page:
    """The turns of a session, in order."""
    await _session(who.memory, session)
    rows = [_turn(t).model_dump(mode="json") for t in await who.memory.turns(session)]
    return _page(rows, cursor, limit)


@router.post("/sessions/{session:path}/end", tags=["turns"], status_code=204)
async def end(session: str, who: Writes) -> None:
    """End a session: summary and profile are made of it."""
    await who.memory.end_session(session)
    who.owe()


@router.get("/records", tags=["records"])
async def records(
    who: Reads, kind: Annotated[list[str] | None, Query()] = None, as_of: AwareDatetime | None = None, *,
    retired: bool = False, cursor: Cursor = None, limit: Limit = 50,
) -> Page:  # fmt: skip
    """The records that hold now, or as of a time; with ``retired`` those that no longer do, too."""
    found = await who.memory.records(kinds=tuple(kind or ()), as_of=as_of, retired=retired)
    rows = [_record(r) for r in reversed(found)]
    return _page(rows, cursor, limit)


@router.get("/records/{id}", tags=["records"])
async def record(id: str, who: Reads, response: Response) -> RecordOut:
    """A record with the turns that it came from and its earlier versions; the header
    ``ETag`` is for ``If-Match``."""
    found = await _own(who.memory, id)
    why = await who.memory.explain(found.id)
    response.headers["etag"] = _etag(found)
    said = [_turn(t).model_dump(mode="json") for t in why.turns]
    return RecordOut(**{**_record(found), "said": said, "history": [_record(r) for r in why.history]})


@router.patch("/records/{id}", tags=["records"])
async def revise(id: str, given: ReviseIn, who: Writes, response: Response, match: Match = None) -> RecordOut:
    """Give it another text or value. The old one stays in the history."""
    found = await _matching(who.memory, id, match)
    if found.recorded.until is not None:
        raise Problem(409, f"the record {id} was revised or retired already: read it again")
    try:
        made = await who.memory.revise(found.id, given.text)
    except InputError:
        if (await _own(who.memory, id)).recorded.until is not None:  # another request was first
            raise Problem(409, f"the record {id} was revised or retired already: read it again") from None
        raise
    who.owe()
    response.headers["etag"] = _etag(made)
    return RecordOut(**_record(made))


@router.post("/records/{id}/retire", tags=["records"], status_code=204)
async def retire(id: str, who: Writes, match: Match = None) -> None:
    """End the belief in a record; it stays in the history."""
    found = await _matching(who.memory, id, match)
    if found.recorded.until is not None:
        raise Problem(409, f"the record {id} was revised or retired already: read it again")
    await who.memory.retire(found.id)
    who.owe()


@router.delete("/records/{id}", tags=["records"])
async def erase(id: str, who: Writes, match: Match = None, *, only: bool = False) -> ForgetOut:
    """Erase it for good, with its turns and all that was derived from it; with ``only`` the turns
    stay, and the receipt's ``still_said`` names them."""
    found = await _matching(who.memory, id, match)
    receipt = await who.memory.forget(found.id, only=only)
    who.owe()
    return ForgetOut(receipt=receipt_to_dict(receipt))


@router.get("/changes", tags=["records"])
async def changes(who: Reads, cursor: Cursor = None, limit: Limit = 50) -> Page:
    """What was learned, changed and taken back, newest first; ``undoable`` ones have an id for undo."""
    return _page([change_to_dict(c) for c in await who.memory.log()], cursor, limit)


@router.post("/undo", tags=["records"])
async def undo(who: Writes, change: Annotated[str | None, Query(max_length=40)] = None) -> Page:
    """Take back the last change, or the one that is named. An erase cannot be taken back."""
    line = await who.memory.undoable(change)
    done = await who.memory.undo(line.id)
    who.owe()
    return Page(rows=[change_to_dict(done)])


@router.post("/redo", tags=["records"])
async def redo(who: Writes) -> Page:
    """Bring back what the last undo took."""
    done = await who.memory.redo()
    who.owe()
    return Page(rows=[change_to_dict(done)])


@router.post("/forget", tags=["records"])
async def forget(given: ForgetIn, who: Writes) -> ForgetOut:
    """Erase records, what a query finds, a session, or everything."""
    if not (given.ids or given.query.strip() or given.session or given.everything):
        raise Problem(422, "there is nothing to forget: give ids, a query, a session, or everything")
    if given.query.strip() and not given.confirm:
        found = await who.memory.meant(given.query)
        going = await who.memory.would_forget(*(e.record.id for e in found), only=given.only) if found else None
        return ForgetOut(
            candidates=[RecordOut(**_record(e.record)) for e in found],
            going=forgetting_to_dict(going) if going is not None else None,
        )
    if given.everything and not given.confirm:
        raise Problem(422, "to erase everything, confirm it", param="confirm")
    ids = [(await _own(who.memory, id)).id for id in given.ids]
    if given.preview:
        what = {"query": given.query or None, "session": given.session or None}
        going = await who.memory.would_forget(*ids, **what, everything=given.everything, only=given.only)
        return ForgetOut(going=forgetting_to_dict(going))
    receipt = await who.memory.forget(
        *ids,
        query=given.query or None,
        session=given.session or None,
        everything=given.everything,
        only=given.only,
    )
    who.owe()
    return ForgetOut(receipt=receipt_to_dict(receipt))


@router.post("/recall", tags=["recall"])
async def recall(given: RecallIn, who: Reads) -> dict[str, Any]:
    """What the memory has on a query, best first, with the trace."""
    budget = Budget(given.k, given.tokens)
    log = "write" in who.key.scopes
    found = await who.memory.recall(given.query, budget, as_of=given.as_of, kinds=given.kinds, log=log)
    return {
        "query": found.query.text, "plan": plan_to_list(found), "kept": [evidence_to_dict(e) for e in found.kept],
        "rounds": found.rounds, "planner": found.planner, "failed": dict(found.failed), "ms": dict(found.ms),
    }  # fmt: skip


@router.get("/traces/{turn}", tags=["recall"])
async def trace(turn: str, who: Reads) -> dict[str, Any]:
    """Why something was answered: the trace of a turn's recall, or of the ``last`` one."""
    found = await who.memory.explain(turn)
    if found.trace is None:
        raise NotFound(f"there is no trace of {turn!r}: give the id of a turn or a reply, or `last`")
    return dict(found.trace)


@router.get("/profile", tags=["profile"])
async def profile(who: Reads) -> dict[str, Any]:
    """The profile: what is claimed of the user; ``unread`` counts messages that no model has read yet."""
    found = await who.memory.profile()
    claims = [claim_to_json(c) for c in found.claims]
    return {"profile": found.as_dict(), "claims": claims, "unread": await who.memory.unread()}


@router.get("/claims", tags=["claims"])
async def claims(
    who: Reads,
    about: Annotated[str, Query(max_length=200, description="A subject's name or id; everything when empty.")] = "",
    every: Annotated[bool, Query(alias="all", description="Also what was closed.")] = False,
) -> dict[str, Any]:
    """What is believed, with what waits for a confirmation."""
    found = await who.memory.claims(about or None, every=every)
    return {"claims": [claim_to_json(c) for c in found], "unread": await who.memory.unread()}


@router.post("/claims/{id}/confirm", tags=["claims"])
async def confirm(id: str, who: Writes) -> dict[str, Any]:
    """Confirm a claim that waits for it, was planned, or is uncertain, by the user's own word."""
    (made,) = await who.memory.confirm(id)
    who.owe()
    return claim_to_json(made)


@router.put("/profile/{attribute}", tags=["profile"])
async def set_value(attribute: str, given: ValueBody, who: Writes) -> RecordOut:
    """Set a value of the profile, by the user's own word."""
    made = await who.memory.set(attribute, given.value)
    who.owe()
    return RecordOut(**_record(made))


@router.get("/jobs", tags=["server"])
async def jobs(who: Reads) -> Page:
    """What is still to be done, and what failed for good."""
    found = await who.memory.store.jobs(who.memory.scope, ("queued", "leased", "parked"))
    return Page(
        rows=[{"id": j.id, "kind": j.kind, "state": j.state, "attempts": j.attempts, "error": j.error} for j in found]
    )


@router.post("/jobs/run", tags=["server"])
async def run_jobs(who: Writes, seconds: Annotated[float, Query(ge=0, le=30)] = 20.0) -> dict[str, int]:
    """Do what is due now; how many were done, wait, and are parked. After ``seconds`` it tells
    how far it came, and goes on."""
    before = await _states(who)
    work = asyncio.get_running_loop().create_task(who.drain())
    who.served.running.add(work)
    work.add_done_callback(who.served.running.discard)
    work.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait for it any more
    if (await asyncio.wait({work}, timeout=seconds))[0]:
        return work.result()
    now = await _states(who)
    return {
        "done": max(0, before.total() - now.total()),
        "waiting": now["queued"] + now["leased"],
        "parked": now["parked"],
    }


async def _states(who: Principal) -> Counter[str]:
    return Counter(job.state for job in await who.memory.store.jobs(who.scope, ("queued", "leased", "parked")))


@router.get("/stats", tags=["server"])
async def stats(who: Reads) -> dict[str, Any]:
    """Records, calls, tokens, jobs, and what the key has used of its day."""
    limits = {"requests_per_minute": who.key.requests, "tokens_per_day": who.key.tokens}
    used = who.limits.usage(who.key)
    return {
        **await statistics(who.memory),
        "key": {"name": who.key.name, "scopes": list(who.key.scopes), **limits, "used": used},
    }


@router.get("/export", tags=["transfer"], response_class=Response)
async def export(who: Reads) -> Response:
    """Everything, as lossless JSON lines."""
    lines = await export_lines(who.memory)
    return Response("\n".join(lines) + "\n", media_type="application/x-ndjson")


@router.post("/import", tags=["transfer"])
async def import_(request: Request, who: Writes) -> dict[str, Any]:
    """Bring in what ``/api/export`` gave. What is there already stays as it is."""
    done = await restore(who.memory, read_export(await request.body(), "the body"), "the body")
    who.owe()
    return done


def _turn(turn: Turn) -> TurnOut:
    return TurnOut(
        id=turn.id, session=turn.session, role=turn.role.value, text=turn.text, at=turn.at, origin=turn.origin.value,
        position=turn.position,
    )  # fmt: skip


def _record(record: MemoryRecord) -> dict[str, Any]:
    return record_to_json(record) | {"etag": _etag(record)}


def _etag(record: MemoryRecord) -> str:
    """A record's version: it changes when the record is revised, retired or goes stale."""
    said = f"{record.id}\x1f{record.text}\x1f{record.recorded.until}\x1f{record.stale}"
    return f'"{hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]}"'


async def _own(memory: Memory, id: str) -> MemoryRecord:
    """A record by its whole id. Raises NotFound."""
    found = await memory.record(id)
    if found.id != id:
        raise NotFound(f"there is no record {id!r}: GET /api/records lists them")
    return found


async def _matching(memory: Memory, id: str, match: str | None) -> MemoryRecord:
    found = await _own(memory, id)
    if match is not None and match.strip() not in {"*", _etag(found)}:
        raise Problem(412, f"the record {id} is not the one that was read: read it again")
    return found


async def _session(memory: Memory, id: str) -> None:
    if not await memory.store.sessions(memory.scope, ids=(id,)):
        raise NotFound(f"there is no session {id!r}: GET /api/sessions lists them")


def _page(rows: Sequence[dict[str, Any]], cursor: str | None, limit: int) -> Page:
    """The rows after the one that a cursor names; a row that is gone ends nothing, since the
    cursor also says how many were before it. Raises Problem 400."""
    start = 0
    if cursor is not None:
        try:
            at, last = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii", "replace")))
            start = next((i + 1 for i, r in enumerate(rows) if r["id"] == last), min(int(at), len(rows)))
        except (ValueError, TypeError, binascii.Error, KeyError, OverflowError) as error:
            raise Problem(400, "this cursor is none of ours: leave it out to begin anew", param="cursor") from error
    shown = list(rows[max(0, start) : max(0, start) + limit])
    more = start + limit < len(rows)
    following = (
        base64.urlsafe_b64encode(json.dumps([start + limit, shown[-1]["id"]]).encode()).decode() if more else None
    )
    return Page(rows=shown, next=following)
