"""Pinned records: what the user wants in mind for every reply."""

from __future__ import annotations

import uuid

from nyima.change.opened import OpenMemory
from nyima.domain.ports import Event, RecordFilter
from nyima.domain.records import MemoryRecord

__all__ = ["pin", "pinned"]


async def pin(memory: OpenMemory, id: str, *, on: bool = True) -> None:
    """Pin a record, or let it go. It stays pinned when it is revised, and is gone with the
    record when that is erased. Raises NotFound."""
    record = await memory.record(id)
    event = Event("pin-" + uuid.uuid4().hex[:16], "pin", memory.clock.now(), (record.id,), {"on": on})
    await memory.store.log(memory.scope, event)


async def pinned(memory: OpenMemory) -> list[MemoryRecord]:
    """The pinned records that hold now, oldest first."""
    wanted: dict[str, bool] = {}
    for event in sorted(await memory.store.events(memory.scope, "pin"), key=lambda e: (e.at, e.id)):
        wanted[event.refs[0]] = bool(event.body["on"])
    if not any(wanted.values()):
        return []
    live = await memory.records()
    found: list[MemoryRecord] = []
    for record in live:
        id, before = record.id, record.supersedes
        while id not in wanted and before is not None:
            id, before = before, await _earlier(memory, before)
        if wanted.get(id):
            found.append(record)
    return found


async def _earlier(memory: OpenMemory, id: str) -> str | None:
    found = await memory.store.records(memory.scope, RecordFilter(ids=(id,), retired=True))
    return found[0].supersedes if found else None
