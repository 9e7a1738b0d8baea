"""A whole memory, taken out."""

from __future__ import annotations

import json
from typing import Any

from nyima.domain.conversation import iso
from nyima.mechanisms.pins import pinned
from nyima.memory import Memory
from nyima.stores.encoding import record_to_dict

__all__ = ["export_lines"]


async def export_lines(memory: Memory) -> list[str]:
    """A memory as lossless JSON lines: its user, sessions, turns, records with their history,
    and which of them are pinned."""
    rows: list[dict[str, Any]] = [{"nyima": 1, "user": memory.scope.user}]
    rows += [
        {"session": {"id": s.id, "started": iso(s.started), "ended": iso(s.ended), "title": s.title}}
        for s in await memory.sessions()
    ]
    rows += [
        {
            "turn": {
                "id": t.id, "session": t.session, "position": t.position, "role": t.role.value, "text": t.text,
                "at": iso(t.at), "origin": t.origin.value, "speaker": t.speaker,
            }
        }
        for t in await memory.turns()
    ]  # fmt: skip
    rows += [{"record": record_to_dict(r)} for r in await memory.records(retired=True)]
    rows += [{"pin": r.id} for r in await pinned(memory)]
    return [json.dumps(row, ensure_ascii=False) for row in rows]
