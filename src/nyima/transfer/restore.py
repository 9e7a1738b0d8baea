"""Bringing back what ``nyima export`` wrote: sessions, turns and records as they were."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from nyima.domain.changes import Add, Change, Delta, Retire
from nyima.domain.conversation import Origin, Role, Session, Turn, as_utc, clean_text
from nyima.errors import InputError
from nyima.mechanisms.pins import pin, pinned
from nyima.memory import Memory
from nyima.stores.encoding import claim_of_old, record_from_dict

__all__ = ["is_export", "read_export", "restore"]


def is_export(path: Path) -> bool:
    """Whether a file begins as our own export does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(10).startswith(b'{"nyima":')


def _moment(text: str | None) -> datetime | None:
    return None if text is None else as_utc(datetime.fromisoformat(text))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return clean_text(value)


def _session(row: dict[str, Any]) -> Session:
    started = _moment(row["started"])
    assert started is not None
    return Session(_text(row["id"]), started, _moment(row["ended"]), _text(row["title"]))


def _turn(row: dict[str, Any]) -> Turn:
    at = _moment(row["at"])
    assert at is not None
    id, session, text, speaker = (_text(row[name]) for name in ("id", "session", "text", "speaker"))
    return Turn(id, session, Role(row["role"]), text, at, Origin(row["origin"]), speaker)


def read_export(data: bytes, name: str) -> list[str]:
    """The lines of an export. They are split at line feeds alone: a text may hold other line
    separators. Raises InputError."""
    try:
        return data.decode("utf-8").rstrip("\n").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is no UTF-8 text (byte {error.start}): export it again") from error


def _entity_names(lines: Sequence[str]) -> dict[str, str]:
    """The names of the entities in an export of the first edition, whose relations name them by their ids."""
    found: dict[str, str] = {}
    for line in lines:
        if '"entity"' in line:
            with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
                record = json.loads(line)["record"]
                found[record["id"]] = str(record["name"])
    return found


async def restore(memory: Memory, lines: Sequence[str], name: str) -> dict[str, Any]:
    """Store everything under its own ids; what is there already stays as it is. Raises
    InputError with the line that cannot be read; then nothing was stored."""
    sessions: dict[str, Session] = {}
    turns: dict[str, list[Turn]] = {}
    records: list[Add] = []
    pins: list[str] = []
    names = _entity_names(lines)
    for number, line in enumerate(lines, 1):
        try:
            row: dict[str, Any] = json.loads(line)
            if "session" in row:
                session = _session(row["session"])
                sessions[session.id] = session
            elif "turn" in row:
                turn = _turn(row["turn"])
                turns.setdefault(turn.session, []).append(turn)
            elif "record" in row:
                given = row["record"]
                old = given["kind"] in {"fact", "relation"}
                records.append(Add(record_from_dict(claim_of_old(given, names) if old else given)))
            elif "pin" in row:
                pins.append(_text(row["pin"]))
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            AssertionError,
            ArithmeticError,
            RecursionError,
            InputError,
        ) as error:
            raise InputError(f"{name}, line {number}: {error!r}: export it again") from error
    unknown = sorted(set(pins) - {a.record.id for a in records})
    if unknown:
        raise InputError(f"{name}: the record {unknown[0]!r} of a pin is missing: export it again")
    missing = sorted(turns.keys() - sessions.keys())
    if missing:
        raise InputError(f"{name}: session {missing[0]!r} of a turn is missing: export it again")
    before = len(await memory.turns())
    for id, said in turns.items():
        await memory.store.append(memory.scope, sessions[id], said)
    there = {r.id: r for r in await memory.records(retired=True)}
    changes: list[Change] = [a for a in records if a.record.id not in there]
    for given in (a.record for a in records):
        ended, here = given.recorded.until, there.get(given.id)
        if ended is not None and here is not None and here.recorded.until is None:
            changes.append(Retire(given.id, ended, "had ended where it was exported"))
    if changes:  # what is there has its own history, which `undo` goes by
        await memory.store.commit(memory.scope, Delta(tuple(changes), "import"))
    held = {r.id for r in await pinned(memory)}
    for id in pins:
        if id not in held:
            await pin(memory, id)
    await memory.ingest.index(memory.scope)
    new = len(await memory.turns()) - before
    count = sum(map(len, turns.values()))
    return {"sessions": len(sessions), "turns": count, "skipped": 0, "new": new, "ids": []}
