"""Rows of the SQLite store: values in, values out. Runs on the store's thread."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from nyima.domain.conversation import Session, Turn
from nyima.domain.ports import LAPSED, Event, Job, RecordFilter
from nyima.domain.records import Episode, MemoryRecord
from nyima.errors import Conflict, LostLease, NotFound
from nyima.stores.encoding import claim_key, decode, encode, from_micros, micros
from nyima.stores.sqlite import indexes

__all__ = [
    "add_change", "add_event", "add_jobs", "add_record", "add_turn", "close_record", "embedder", "events", "finish", "jobs", "lease",
    "moment", "put_session", "records", "renew", "requeue", "settle", "unindexed",
]  # fmt: skip

_COLUMNS = "r.id, r.kind, r.valid_from, r.valid_to, r.rec_from, r.rec_to, r.stale, r.body"
_FOREVER = 2**62
_CLOCKS_DIFFER = 3_600_000_000
"""An hour in microseconds: two workers read their clocks at different times."""


def moment(value: int) -> datetime:
    """A stored time."""
    at = from_micros(value)
    assert at is not None
    return at


def put_session(db: sqlite3.Connection, n: int, session: Session, *, replace: bool) -> None:
    """Insert a session; replace an older line only when asked."""
    db.execute(
        f"INSERT OR {'REPLACE' if replace else 'IGNORE'} INTO sessions VALUES (?, ?, ?, ?, ?)",
        (n, session.id, micros(session.started), micros(session.ended), session.title),
    )


def add_turn(db: sqlite3.Connection, n: int, turn: Turn) -> Turn:
    """Insert a turn at the end of its session; an id that exists keeps its row."""
    row = db.execute("SELECT position FROM turns WHERE scope = ? AND id = ?", (n, turn.id)).fetchone()
    if row is None:
        row = db.execute(
            "SELECT ifnull(max(position), -1) + 1 FROM turns WHERE scope = ? AND session = ?", (n, turn.session)
        ).fetchone()
        db.execute(
            "INSERT INTO turns (scope, id, session, position, role, text, at, origin, speaker)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (n, turn.id, turn.session, row[0], turn.role, turn.text, micros(turn.at), turn.origin, turn.speaker),
        )
    return replace(turn, position=row[0])


def add_record(db: sqlite3.Connection, n: int, record: MemoryRecord, places: Mapping[str, tuple[str, int]]) -> None:
    """Insert a record with its links and its full-text row; an id that exists is left."""
    session, position = record.region, -1
    if isinstance(record, Episode):
        position = record.position
        for turn in record.provenance.turns:
            session, position = places.get(turn, (session, position))
        record = replace(record, position=position)
    cursor = db.execute(
        "INSERT OR IGNORE INTO records (scope, id, kind, session, position, valid_from, valid_to, rec_from, rec_to,"
        " stale, body, claim) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            n, record.id, record.kind, session, position, micros(record.valid.since), micros(record.valid.until),
            micros(record.recorded.since), micros(record.recorded.until), int(record.stale), encode(record),
            claim_key(record.claim),
        ),
    )  # fmt: skip
    if not cursor.rowcount:
        return
    row = cursor.lastrowid
    assert row is not None
    indexes.add_text(db, n, row, record.kind, record.text)
    links = [(n, parent, record.id) for parent in set(record.parents)]
    db.executemany("INSERT OR IGNORE INTO links VALUES (?, ?, ?)", links)


def close_record(
    db: sqlite3.Connection, n: int, id: str, at: datetime, valid_until: datetime, *, stale: bool = False
) -> None:
    """End the belief in a record, and its validity where that is open."""
    end, until = micros(at), micros(valid_until)
    cursor = db.execute(
        "UPDATE records SET rec_to = max(?, rec_from), stale = ?,"
        " valid_to = CASE WHEN valid_to IS NULL OR valid_to > ? THEN max(?, valid_from) ELSE valid_to END"
        " WHERE scope = ? AND id = ? AND rec_to IS NULL",
        (end, int(stale), until, until, n, id),
    )
    if not cursor.rowcount:
        known = db.execute("SELECT 1 FROM records WHERE scope = ? AND id = ?", (n, id)).fetchone()
        if known:
            raise Conflict(f"record {id!r} is retired already: `nyima memories --all` lists every record")
        raise NotFound(f"record {id!r} does not exist: `nyima memories --all` lists every record")


def add_change(
    db: sqlite3.Connection,
    n: int,
    revision: int,
    ordinal: int,
    row: tuple[str, str, str | None, datetime | None, str],
    by: str,
) -> None:
    """One line of the history of changes."""
    verb, id, successor, at, reason = row
    db.execute(
        "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (n, revision, ordinal, verb, id, successor, micros(at) or 0, by, reason),
    )


def records(db: sqlite3.Connection, n: int, where: RecordFilter) -> list[MemoryRecord]:
    """The records that match, by recorded time and id."""
    parts, values = ["r.scope = ?"], [n]
    # A unary plus keeps SQLite from reading a whole kind where a few rows are named.
    plus = "+" if where.ids or where.turns or where.claims else ""
    conditions: list[tuple[bool, str, list[Any]]] = [
        (bool(where.kinds), f"{plus}r.kind IN (SELECT value FROM json_each(?))", [json.dumps(where.kinds)]),
        (bool(where.ids), "r.id IN (SELECT value FROM json_each(?))", [json.dumps(where.ids)]),
        (
            bool(where.turns),
            "r.id IN (SELECT child FROM links WHERE scope = ? AND parent IN (SELECT value FROM json_each(?)))",
            [n, json.dumps(where.turns)],
        ),
        (
            bool(where.claims),
            "r.claim IN (SELECT value FROM json_each(?))",
            [json.dumps([claim_key(c) for c in where.claims])],
        ),
        (where.session is not None, "r.session = ?", [where.session]),
        (where.positions is not None, "r.position BETWEEN ? AND ?", list(where.positions or ())),
    ]
    if where.as_of is not None:
        at = micros(where.as_of)
        time = "r.valid_from <= ? AND ifnull(r.valid_to, ?) > ? AND ifnull(r.rec_to, ?) > ?"
        conditions.append((True, time, [at, _FOREVER, at, _FOREVER, at]))
    elif not where.retired:
        conditions.append((True, f"{plus}r.rec_to IS NULL", []))
        conditions.append((where.at is not None, "ifnull(r.valid_to, ?) > ?", [_FOREVER, micros(where.at)]))
    for wanted, sql, bound in conditions:
        if wanted:
            parts.append(sql)
            values += bound
    sql = f"SELECT {_COLUMNS} FROM records r WHERE {' AND '.join(parts)} ORDER BY r.rec_from, r.id LIMIT ?"
    limit = -1 if where.limit is None else where.limit
    return [decode(row) for row in db.execute(sql, (*values, limit))]


def embedder(db: sqlite3.Connection, n: int) -> str | None:
    """The model that the scope's vectors come from."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (f"embedder {n:d}",)).fetchone()
    return None if row is None else str(row[0])


def unindexed(db: sqlite3.Connection, n: int, limit: int) -> list[MemoryRecord]:
    """Records without a vector, oldest first. Vectors are made in order, so they are
    those after the last that has one."""
    sql = (
        f"SELECT {_COLUMNS} FROM records r WHERE +r.scope = ?"
        " AND r.n > ifnull((SELECT max(n) FROM vectors WHERE scope = ?), 0) ORDER BY r.n LIMIT ?"
    )
    return [decode(row) for row in db.execute(sql, (n, n, limit))]


def add_event(db: sqlite3.Connection, n: int, event: Event) -> None:
    """Insert an event and what it refers to."""
    cursor = db.execute(
        "INSERT OR IGNORE INTO events (scope, id, kind, at, refs, body) VALUES (?, ?, ?, ?, ?, ?)",
        (
            n, event.id, event.kind, micros(event.at), json.dumps(event.refs),
            json.dumps(dict(event.body), ensure_ascii=False),
        ),
    )  # fmt: skip
    if cursor.rowcount:
        refs = [(n, ref, cursor.lastrowid) for ref in set(event.refs)]
        db.executemany("INSERT OR IGNORE INTO event_refs VALUES (?, ?, ?)", refs)


def events(db: sqlite3.Connection, n: int, kind: str, ref: str | None, limit: int | None) -> list[Event]:
    """Events of a kind, newest first."""
    sql = "SELECT id, kind, at, refs, body FROM events WHERE scope = ? AND kind = ?"
    values: list[Any] = [n, kind]
    if ref is not None:
        sql += " AND n IN (SELECT n FROM event_refs WHERE scope = ? AND ref = ?)"
        values += [n, ref]
    rows = db.execute(sql + " ORDER BY n DESC LIMIT ?", (*values, -1 if limit is None else limit))
    return [Event(r[0], r[1], moment(r[2]), tuple(json.loads(r[3])), json.loads(r[4])) for r in rows]


def add_jobs(db: sqlite3.Connection, n: int, jobs: Sequence[Job]) -> None:
    """Queue jobs; an id that exists is left."""
    db.executemany(
        "INSERT OR IGNORE INTO jobs (scope, id, kind, subject, state, attempts, error, recipe, due, lease_until, worker)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, '')",
        [(n, j.id, j.kind, j.subject, j.state, j.attempts, j.error, j.recipe) for j in jobs],
    )


def finish(
    db: sqlite3.Connection,
    n: int,
    jobs: Sequence[Job],
    events: Sequence[Event],
    close: str | None,
    holder: str = "",
) -> None:
    """Close a job (when ``holder`` is given, only while it holds it), log events and queue jobs."""
    if close is not None:
        held = db.execute("SELECT state, worker FROM jobs WHERE scope = ? AND id = ?", (n, close)).fetchone()
        if held is None:
            raise NotFound(f"job {close!r} is gone: what it was about was erased in the meantime")
        if holder and held != ("leased", holder):
            raise LostLease(f"job {close!r} was taken by another worker: nothing was written")
        db.execute("UPDATE jobs SET state = 'done', error = '' WHERE scope = ? AND id = ?", (n, close))
    for event in events:
        add_event(db, n, event)
    add_jobs(db, n, jobs)


def jobs(db: sqlite3.Connection, n: int, states: Sequence[str]) -> list[Job]:
    """The jobs in these states, by age."""
    sql = "SELECT id, kind, subject, state, attempts, error, recipe, worker FROM jobs WHERE scope = ?"
    values: list[Any] = [n]
    if states:
        sql += " AND state IN (SELECT value FROM json_each(?))"
        values.append(json.dumps(list(states)))
    return [Job(*row) for row in db.execute(sql + " ORDER BY n", values)]


def lease(db: sqlite3.Connection, n: int, worker: str, times: tuple[int, int], kinds: Sequence[str]) -> Job | None:
    """The oldest job that is due, now leased to the worker. A lease that ends much later than one
    that begins now can only come from a clock that was set back since: it counts as run out."""
    now, until = times
    wanted = json.dumps(list(kinds)) if kinds else None
    row = db.execute(
        "SELECT n, id, kind, subject, state, attempts, error, recipe FROM jobs WHERE scope = ? AND"
        " ((state = 'queued' AND due <= ?) OR (state = 'leased' AND (lease_until <= ? OR lease_until > ?)))"
        " AND (? IS NULL OR kind IN (SELECT value FROM json_each(?))) ORDER BY n LIMIT 1",
        (n, now, now, until + _CLOCKS_DIFFER, wanted, wanted),
    ).fetchone()
    if row is None:
        return None
    number, id, kind, subject, state, attempts, error, recipe = row
    if state == "leased":
        error = f"{LAPSED}: {Job(id, kind, subject, error=error).lapses + 1}"
    holder = f"{worker}:{uuid.uuid4().hex}"
    db.execute(
        "UPDATE jobs SET state = 'leased', worker = ?, lease_until = ?, attempts = ?, error = ? WHERE n = ?",
        (holder, until, attempts + 1, error, number),
    )
    return Job(id, kind, subject, "leased", attempts + 1, error, recipe, holder)


def renew(db: sqlite3.Connection, n: int, job: Job, until: int) -> bool:
    """Let a lease last until then; False when its holder has lost it."""
    sql = "UPDATE jobs SET lease_until = ? WHERE scope = ? AND id = ? AND state = 'leased' AND worker = ?"
    return bool(db.execute(sql, (until, n, job.id, job.holder)).rowcount)


def settle(db: sqlite3.Connection, n: int, job: Job, retry: int | None, error: str) -> bool:
    """Put a leased job back, or park it; False when its holder has lost it."""
    state = "parked" if retry is None else "queued"
    sql = (
        "UPDATE jobs SET state = ?, attempts = ?, error = ?, due = ?, lease_until = 0, worker = ''"
        " WHERE scope = ? AND id = ? AND state = 'leased' AND worker = ?"
    )
    return bool(db.execute(sql, (state, job.attempts, error, retry or 0, n, job.id, job.holder)).rowcount)


def requeue(db: sqlite3.Connection, n: int, id: str) -> bool:
    """Put a parked job back as if it had never been tried."""
    sql = "UPDATE jobs SET state = 'queued', attempts = 0, due = 0 WHERE scope = ? AND id = ? AND state = 'parked'"
    return bool(db.execute(sql, (n, id)).rowcount)
