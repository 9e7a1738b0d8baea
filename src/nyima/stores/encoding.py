"""Migrations, one function a step, and record ↔ JSON."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from nyima.domain.conversation import Origin
from nyima.domain.records import KINDS, Claim, Interval, MemoryRecord, Provenance

__all__ = ["MIGRATIONS", "claim_key", "decode", "encode", "from_micros", "micros", "record_from_dict", "record_to_dict"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHARED = ("id", "provenance", "valid", "recorded", "claim", "stale", "supersedes")


def micros(moment: datetime | None) -> int | None:
    """Microseconds since 1970, exactly."""
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def from_micros(value: int | None) -> datetime | None:
    """The inverse of ``micros``."""
    return None if value is None else _EPOCH + timedelta(microseconds=value)


def record_to_dict(record: MemoryRecord) -> dict[str, Any]:
    """A record as JSON values, without loss; the export format."""
    own = {f.name: getattr(record, f.name) for f in fields(record) if f.name not in _SHARED}
    made = record.provenance
    return {
        "id": record.id,
        "kind": record.kind,
        **{name: list(value) if isinstance(value, tuple) else value for name, value in own.items()},
        "provenance": {
            "turns": list(made.turns),
            "records": list(made.records),
            "writer": made.writer,
            "prompt": made.prompt,
            "model": made.model,
            "origin": made.origin.value,
        },
        "valid": _interval_to_list(record.valid),
        "recorded": _interval_to_list(record.recorded),
        "claim": [record.claim.subject, record.claim.relation] if record.claim else None,
        "stale": record.stale,
        "supersedes": record.supersedes,
    }


def record_from_dict(values: Mapping[str, Any]) -> MemoryRecord:
    """The inverse of ``record_to_dict``. Raises KeyError, TypeError or ValueError for
    anything else."""
    kind = KINDS[values["kind"]]
    made = values["provenance"]
    own = {f.name: values[f.name] for f in fields(kind) if f.name not in _SHARED and f.name in values}
    own = {name: tuple(value) if isinstance(value, list) else value for name, value in own.items()}
    return kind(
        id=values["id"],
        provenance=Provenance(
            turns=tuple(made["turns"]),
            records=tuple(made["records"]),
            writer=made["writer"],
            prompt=made["prompt"],
            model=made["model"],
            origin=Origin(made["origin"]),
        ),
        valid=_interval_from_list(values["valid"]),
        recorded=_interval_from_list(values["recorded"]),
        claim=Claim(*values["claim"]) if values.get("claim") else None,
        stale=bool(values.get("stale", False)),
        supersedes=values.get("supersedes"),
        **own,
    )


def _interval_to_list(interval: Interval) -> list[int | None]:
    return [micros(interval.since), micros(interval.until)]


def _interval_from_list(pair: list[int | None]) -> Interval:
    since, until = pair
    if since is None:
        raise ValueError("an interval needs a beginning")
    return Interval(_EPOCH + timedelta(microseconds=since), from_micros(until))


def encode(record: MemoryRecord) -> str:
    """The row's body: what is not in a column of its own."""
    values = record_to_dict(record)
    for name in ("id", "kind", "valid", "recorded", "stale"):
        del values[name]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def decode(row: tuple[Any, ...]) -> MemoryRecord:
    """A record from ``id, kind, valid_from, valid_to, rec_from, rec_to, stale, body``."""
    id, kind, valid_from, valid_to, rec_from, rec_to, stale, body = row
    values = json.loads(body)
    values |= {"id": id, "kind": kind, "valid": [valid_from, valid_to], "recorded": [rec_from, rec_to], "stale": stale}
    return record_from_dict(values)


def _first(db: sqlite3.Connection) -> None:
    for statement in (
        """CREATE TABLE scopes (
            n INTEGER PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL, assistant TEXT NOT NULL,
            revision INTEGER NOT NULL DEFAULT 0, closed INTEGER NOT NULL DEFAULT 0,
            UNIQUE (tenant, user, assistant))""",
        """CREATE TABLE sessions (
            scope INTEGER NOT NULL, id TEXT NOT NULL, started INTEGER NOT NULL, ended INTEGER, title TEXT NOT NULL,
            PRIMARY KEY (scope, id)) WITHOUT ROWID""",
        """CREATE TABLE turns (
            n INTEGER PRIMARY KEY, scope INTEGER NOT NULL, id TEXT NOT NULL, session TEXT NOT NULL,
            position INTEGER NOT NULL, role TEXT NOT NULL, text TEXT NOT NULL, at INTEGER NOT NULL,
            origin TEXT NOT NULL, speaker TEXT NOT NULL, UNIQUE (scope, id))""",
        "CREATE INDEX turns_order ON turns (scope, session, position)",
        """CREATE TABLE records (
            n INTEGER PRIMARY KEY, scope INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL,
            session TEXT NOT NULL, position INTEGER NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER,
            rec_from INTEGER NOT NULL, rec_to INTEGER, stale INTEGER NOT NULL, body TEXT NOT NULL,
            UNIQUE (scope, id))""",
        "CREATE INDEX records_kind ON records (scope, kind, rec_to)",
        "CREATE INDEX records_place ON records (scope, session, position)",
        (
            "CREATE TABLE links (scope INTEGER NOT NULL, parent TEXT NOT NULL, child TEXT NOT NULL,"
            " PRIMARY KEY (scope, parent, child)) WITHOUT ROWID"
        ),
        "CREATE INDEX links_child ON links (scope, child)",
        "CREATE TABLE vectors (n INTEGER PRIMARY KEY, scope INTEGER NOT NULL, v BLOB NOT NULL)",
        "CREATE INDEX vectors_scope ON vectors (scope, n)",
        """CREATE TABLE changes (
            scope INTEGER NOT NULL, revision INTEGER NOT NULL, ordinal INTEGER NOT NULL, verb TEXT NOT NULL,
            id TEXT NOT NULL, successor TEXT, at INTEGER NOT NULL, by TEXT NOT NULL, reason TEXT NOT NULL,
            PRIMARY KEY (scope, revision, ordinal)) WITHOUT ROWID""",
        """CREATE TABLE jobs (
            n INTEGER PRIMARY KEY, scope INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL,
            subject TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL, error TEXT NOT NULL,
            recipe TEXT NOT NULL, due INTEGER NOT NULL, lease_until INTEGER NOT NULL, worker TEXT NOT NULL,
            UNIQUE (scope, id))""",
        "CREATE INDEX jobs_due ON jobs (scope, state, due)",
        """CREATE TABLE events (
            n INTEGER PRIMARY KEY, scope INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL,
            at INTEGER NOT NULL, refs TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (scope, id))""",
        "CREATE INDEX events_kind ON events (scope, kind, n)",
        (
            "CREATE TABLE event_refs (scope INTEGER NOT NULL, ref TEXT NOT NULL, n INTEGER NOT NULL,"
            " PRIMARY KEY (scope, ref, n)) WITHOUT ROWID"
        ),
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    ):
        db.execute(statement)


def claim_key(claim: Claim | None) -> str | None:
    """A claim as one text that can be indexed."""
    return None if claim is None else f"{claim.subject}\x1f{claim.relation}"


def _claims(db: sqlite3.Connection) -> None:
    """An index of claims, so that what states the same is found at once."""
    db.execute("ALTER TABLE records ADD COLUMN claim TEXT")
    db.execute("CREATE INDEX records_claim ON records (scope, claim) WHERE claim IS NOT NULL")
    for n, body in db.execute("SELECT n, body FROM records WHERE kind = 'fact'").fetchall():
        pair = json.loads(body).get("claim")
        key = claim_key(Claim(*pair)) if pair else None
        db.execute("UPDATE records SET claim = ? WHERE n = ?", (key, n))


def _counters(db: sqlite3.Connection) -> None:
    """Counters in place of counting, and indexes for what is asked of every scope at once."""
    db.execute("ALTER TABLE sessions ADD COLUMN next_position INTEGER NOT NULL DEFAULT 0")
    db.execute("ALTER TABLE sessions ADD COLUMN last_turn INTEGER NOT NULL DEFAULT 0")
    db.execute(
        "UPDATE sessions SET last_turn = started, (next_position) ="
        " (SELECT ifnull(max(position), -1) + 1 FROM turns t WHERE t.scope = sessions.scope AND t.session = sessions.id)"
    )
    db.execute(
        "UPDATE sessions SET last_turn = ifnull((SELECT t.at FROM turns t WHERE t.scope = sessions.scope"
        " AND t.session = sessions.id ORDER BY t.position DESC LIMIT 1), started)"
    )
    db.execute("CREATE INDEX sessions_silent ON sessions (last_turn) WHERE ended IS NULL")
    db.execute("ALTER TABLE records ADD COLUMN base TEXT NOT NULL DEFAULT ''")
    db.execute(
        "UPDATE records SET base = CASE instr(id, '~') WHEN 0 THEN id ELSE substr(id, 1, instr(id, '~') - 1) END"
    )
    db.execute("CREATE INDEX records_base ON records (scope, base)")
    db.execute("CREATE INDEX changes_id ON changes (scope, id)")
    db.execute("CREATE INDEX changes_successor ON changes (scope, successor) WHERE successor IS NOT NULL")
    db.execute("CREATE INDEX jobs_waiting ON jobs (state, due) WHERE state IN ('queued', 'leased', 'parked')")


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_first, _claims, _counters)
"""Each runs once, in order, in one transaction with the raise of ``user_version``."""
