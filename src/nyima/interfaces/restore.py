"""Bringing back what ``nyima export`` wrote: sessions, turns and records as they were."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from nyima.adapters.schema import record_from_dict
from nyima.domain.changes import Add, Delta
from nyima.domain.conversation import Origin, Role, Session, Turn
from nyima.errors import InputError
from nyima.memory import Memory

__all__ = ["is_export", "restore"]


def is_export(path: Path) -> bool:
    """Whether a file begins as our own export does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(10).startswith(b'{"nyima":')


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _session(row: dict[str, Any]) -> Session:
    started = _moment(row["started"])
    assert started is not None
    return Session(row["id"], started, _moment(row["ended"]), row["title"])


def _turn(row: dict[str, Any]) -> Turn:
    at = _moment(row["at"])
    assert at is not None
    return Turn(row["id"], row["session"], Role(row["role"]), row["text"], at, Origin(row["origin"]), row["speaker"])


def _lines(path: Path) -> list[str]:
    """Split at line feeds alone: a text may hold other line separators."""
    return path.read_text("utf-8").rstrip("\n").split("\n")


async def restore(memory: Memory, path: Path) -> dict[str, Any]:
    """Store everything under its own ids; what is there already stays as it is. Raises
    InputError with the line that cannot be read."""
    sessions: dict[str, Session] = {}
    turns: dict[str, list[Turn]] = {}
    records: list[Add] = []
    for number, line in enumerate(_lines(path), 1):
        try:
            row: dict[str, Any] = json.loads(line)
            if "session" in row:
                session = _session(row["session"])
                sessions[session.id] = session
            elif "turn" in row:
                turn = _turn(row["turn"])
                turns.setdefault(turn.session, []).append(turn)
            elif "record" in row:
                records.append(Add(record_from_dict(row["record"])))
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
            raise InputError(f"{path}, line {number}: {error!r}: export it again") from error
    before = len(await memory.turns())
    for id, said in turns.items():
        if id not in sessions:
            raise InputError(f"{path}: session {id!r} of a turn is missing: export it again")
        await memory.store.append(memory.scope, sessions[id], said)
    await memory.store.commit(memory.scope, Delta(tuple(records), "import"))
    await memory.ingest.index(memory.scope)
    new = len(await memory.turns()) - before
    count = sum(map(len, turns.values()))
    return {"sessions": len(sessions), "turns": count, "skipped": 0, "new": new, "ids": []}
