"""What takes a change back, expressed by the same four changes."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime

from nyima.domain.changes import Add, Change, ChangeRow, Erase, Retire, Revise
from nyima.domain.conversation import Scope
from nyima.domain.memory import Interval, MemoryRecord, Note
from nyima.domain.ports import Event, RecordFilter, Store
from nyima.errors import NotFound

__all__ = ["UNDONE", "inverse", "last_change", "withdrawn"]

UNDONE = "undone"
"""The kind of event that says that nothing is to be noted of a turn."""

_WITHOUT_UNDO = frozenset({"history", "forget", "undo", ""})
_NOTED = ("fact", "note", "relation")


async def withdrawn(store: Store, scope: Scope, turn: str, now: datetime) -> tuple[list[Change], list[Event]]:
    """The notes of a turn leave the journal, and what takes their place says that nothing of it
    is to be kept; jobs that would still note something of it find the event ``undone``. Raises
    NotFound for a turn that is not there."""
    if not await store.turns(scope, ids=(turn,)):
        raise NotFound(f"there is no turn {turn!r}: what was said is needed to undo what was noted of it")
    found = [e for kind in ("notes", "facts") for e in await store.events(scope, kind, ref=turn) if e.body.get("facts")]
    empty = [replace(e, id=f"{e.id}-undone", body={**e.body, "facts": [], "remember": False}) for e in found]
    mark = Event(f"undone-{turn}", UNDONE, now, (turn,), {"turn": turn})
    return [Erase(e.id, "event") for e in found], [*empty, mark]


def _noted_of(record: MemoryRecord, turn: str) -> bool:
    """Whether a turn gave a record this version: a note is of its first turn, the others are
    what stood around it; a fact or relation that is told again is of the last."""
    turns = record.provenance.turns
    return (turns[:1] if isinstance(record, Note) else turns[-1:]) == (turn,)


async def last_change(
    store: Store, scope: Scope, now: datetime, turn: str | None = None
) -> tuple[list[ChangeRow], list[Change]]:
    """The last revision that can be undone, with what undoes it; or, with ``turn``, all that
    was made of what was noted of that turn, in however many steps; empty where there is none."""
    rows = await store.changes(scope)
    undone = {int(r.reason.rpartition(" ")[2]) for r in rows if r.by == "undo" and r.reason.startswith("undo of")}
    done = [r for r in rows if r.by not in _WITHOUT_UNDO and r.revision not in undone]
    if turn is not None:
        linked = await store.records(scope, RecordFilter(kinds=_NOTED, turns=(turn,), retired=True))
        mine = {r.id for r in linked if _noted_of(r, turn)}
        own = {r.successor or r.id for r in done if r.by == "user"}  # the user's hand is no note
        steps = [[r for r in done if r.verb in {"add", "revise"} and (r.successor or r.id) in mine - own]]
    else:
        steps = [[r for r in done if r.revision == n] for n in sorted({r.revision for r in done}, reverse=True)]
    for step in steps:
        changes = [c for row in reversed(step) for c in await inverse(store, scope, row, now)]
        if changes:  # what was erased since cannot be undone
            return step, changes
    return [], []


async def inverse(store: Store, scope: Scope, row: ChangeRow, now: datetime) -> list[Change]:
    """The changes that undo one line of history; empty when it was erased or is undone.

    A record that comes back is a copy, ``id~…``, valid from now on, so that the past stays
    as it was.
    """
    reason = f"undo of {row.revision}"
    open_now = {r.id.partition("~")[0]: r for r in await store.records(scope, RecordFilter())}
    base = row.id.partition("~")[0]
    if row.verb == "add":
        return [Retire(open_now[base].id, now, reason)] if base in open_now else []
    found = await store.records(scope, RecordFilter(ids=(row.id,), retired=True))
    if not found or row.verb == "erase":
        return []
    new = open_now.get((row.successor or "").partition("~")[0])
    again = replace(
        found[0],
        id=f"{base}~{uuid.uuid4().hex[:8]}",
        valid=Interval(now),
        recorded=Interval(now),
        supersedes=new.id if new else None,
    )
    if row.verb == "revise":
        return [Revise(new.id, again, reason)] if new is not None else []
    return [] if base in open_now else [Add(again)]
