"""What takes a change back, expressed by the same four changes."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime

from nyima.domain.changes import Add, Change, ChangeRow, Retire, Revise
from nyima.domain.conversation import Scope
from nyima.domain.memory import Interval
from nyima.domain.ports import RecordFilter, Store

__all__ = ["inverse"]


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
