"""Rows of the SQLite store: values in, values out. Runs on the store's thread."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from nyima.domain.changes import ChangeRow
from nyima.domain.conversation import Origin, Role, Session, Turn
from nyima.domain.ports import LAPSED, Event, Job, RecordFilter
from nyima.domain.records import Episode, MemoryRecord
from nyima.domain.storage import AskChanges, AskEvents, AskJobs, AskSessions, AskTurns
from nyima.errors import Conflict, LostLease, NotFound
from nyima.stores.encoding import decode, encode, from_micros, micros, slot_key
from nyima.stores.sqlite import indexes

__all__ = [
    "add_change", "add_event", "add_jobs", "add_record", "add_turn", "changes", "close_record", "embedder", "events", "finish",
    "jobs", "lease", "moment", "put_session", "records", "renew", "requeue", "revision", "sessions", "settle", "turns",
    "unindexed", "vectors",
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
    """Insert a session; replace what an older line says only when asked."""
    otherwise = "UPDATE SET started = excluded.started, ended = excluded.ended, title = excluded.title"
    db.execute(
        "INSERT INTO sessions (scope, id, started, ended, title, last_turn) VALUES (?, ?, ?, ?, ?, ?)"
        f" ON CONFLICT (scope, id) DO {otherwise if replace else 'NOTHING'}",
        (n, session.id, micros(session.started), micros(session.ended), session.title, micros(session.started)),
    )


def add_turn(db: sqlite3.Connection, n: int, turn: Turn) -> Turn:
    """Insert a turn at the end of its session, whose line counts; an id that exists keeps its row."""
    row = db.execute("SELECT position FROM turns WHERE scope = ? AND id = ?", (n, turn.id)).fetchone()
    if row is not None:
        return replace(turn, position=row[0])
    put_session(db, n, Session(turn.session, turn.at), replace=False)
    (position,) = db.execute(
        "UPDATE sessions SET next_position = next_position + 1, last_turn = ? WHERE scope = ? AND id = ?"
        " RETURNING next_position - 1",
        (micros(turn.at), n, turn.session),
    ).fetchone()
    db.execute(
        "INSERT INTO turns (scope, id, session, position, role, text, at, origin, speaker)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (n, turn.id, turn.session, position, turn.role, turn.text, micros(turn.at), turn.origin, turn.speaker),
    )
    return replace(turn, position=position)


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
        " stale, body, claim, base) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            n, record.id, record.kind, session, position, micros(record.valid.since), micros(record.valid.until),
            micros(record.recorded.since), micros(record.recorded.until), int(record.stale), encode(record),
            slot_key(record.slot), record.id.partition("~")[0],
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
        "UPDATE records SET rec_to = max(?, rec_from), stale = max(stale, ?),"
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
    named = where.ids or where.turns or where.slots or where.bases or where.prefix
    plus = "+" if named else ""
    conditions: list[tuple[bool, str, list[Any]]] = [
        (bool(where.kinds), f"{plus}r.kind IN (SELECT value FROM json_each(?))", [json.dumps(where.kinds)]),
        (bool(where.ids), "r.id IN (SELECT value FROM json_each(?))", [json.dumps(where.ids)]),
        (
            bool(where.turns),
            "r.id IN (SELECT child FROM links WHERE scope = ? AND parent IN (SELECT value FROM json_each(?)))",
            [n, json.dumps(where.turns)],
        ),
        (
            bool(where.slots),
            "r.claim IN (SELECT value FROM json_each(?))",
            [json.dumps([slot_key(c) for c in where.slots])],
        ),
        (bool(where.bases), "r.base IN (SELECT value FROM json_each(?))", [json.dumps(where.bases)]),
        (bool(where.prefix), "r.id >= ? AND r.id < ?", [where.prefix, where.prefix + "\U0010ffff"]),
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


def turns(db: sqlite3.Connection, n: int, ask: AskTurns) -> list[Turn]:
    """The turns, by session start, then position."""
    sql = (
        "SELECT t.id, t.session, t.role, t.text, t.at, t.origin, t.speaker, t.position FROM turns t"
        " JOIN sessions s ON s.scope = t.scope AND s.id = t.session WHERE t.scope = ?"
    )
    values: list[Any] = [n]
    if ask.session is not None:
        sql += " AND t.session = ?"
        values.append(ask.session)
    if ask.ids:
        sql += " AND t.id IN (SELECT value FROM json_each(?))"
        values.append(json.dumps(ask.ids))
    if ask.upto is not None:
        here = "(SELECT {} FROM turns WHERE scope = ? AND id = ?)"
        sql += f" AND t.session = {here.format('session')} AND t.position <= {here.format('position')}"
        values += [n, ask.upto, n, ask.upto]
    order, limit = "ORDER BY s.started, t.session, t.position, t.id", _limit(ask.limit)
    if ask.last is not None:
        order, limit = "ORDER BY s.started DESC, t.session DESC, t.position DESC, t.id DESC", ask.last
    rows = db.execute(f"{sql} {order} LIMIT ?", (*values, limit)).fetchall()
    found = [Turn(r[0], r[1], Role(r[2]), r[3], moment(r[4]), Origin(r[5]), r[6], r[7]) for r in rows]
    return found if ask.last is None else found[::-1]


def sessions(db: sqlite3.Connection, n: int, ask: AskSessions) -> list[Session]:
    """The sessions, by start and id."""
    sql, values = "SELECT id, started, ended, title FROM sessions WHERE scope = ?", [n]
    if ask.ids:
        sql += " AND id IN (SELECT value FROM json_each(?))"
    if ask.unended:
        sql += " AND ended IS NULL"
    rows = db.execute(sql + " ORDER BY started, id", (*values, *([json.dumps(ask.ids)] if ask.ids else [])))
    return [Session(r[0], moment(r[1]), from_micros(r[2]), r[3]) for r in rows]


def changes(db: sqlite3.Connection, n: int, ask: AskChanges) -> list[ChangeRow]:
    """The history of changes, oldest first, whole steps."""
    some = "IN (SELECT value FROM json_each(?))"
    # A unary plus lets SQLite find the few steps that are named by their index.
    named = ask.ids is not None or ask.revisions is not None or ask.last is not None
    conditions, values = ["scope = ?", "+revision > ?" if named else "revision > ?"], [n, ask.since]
    bound: list[Any] = [*values]
    if ask.but:
        conditions.append(f"by NOT {some}")
        bound.append(json.dumps(ask.but))
    if ask.ids is not None:
        ids = json.dumps(ask.ids)
        conditions.append(
            f"revision IN (SELECT revision FROM changes WHERE scope = ? AND id {some}"
            f" UNION SELECT revision FROM changes WHERE scope = ? AND successor {some})"
        )
        bound += [n, ids, n, ids]
    if ask.revisions is not None:
        conditions.append(f"revision {some}")
        bound.append(json.dumps(ask.revisions))
    where = " AND ".join(conditions)
    if ask.last is not None:
        steps = f"SELECT DISTINCT revision FROM changes WHERE {where} ORDER BY revision DESC LIMIT ?"
        where, bound = f"{where} AND revision IN ({steps})", [*bound, *bound, ask.last]
    sql = f"SELECT revision, verb, id, successor, at, by, reason FROM changes WHERE {where} ORDER BY revision, ordinal"
    return [ChangeRow(r[0], r[1], r[2], r[3], moment(r[4]), r[5], r[6]) for r in db.execute(sql, bound)]


def vectors(db: sqlite3.Connection, n: int, ids: Sequence[str]) -> dict[str, bytes]:
    """The vectors of records, of those that have one."""
    sql = (
        "SELECT r.id, v.v FROM records r JOIN vectors v ON v.n = r.n"
        " WHERE r.scope = ? AND r.id IN (SELECT value FROM json_each(?))"
    )
    return dict(db.execute(sql, (n, json.dumps(list(ids)))).fetchall())


def revision(db: sqlite3.Connection, n: int) -> int:
    """The number of commits so far."""
    row = db.execute("SELECT revision FROM scopes WHERE n = ?", (n,)).fetchone()
    return row[0] if row else 0


def _limit(limit: int | None) -> int:
    return -1 if limit is None else limit


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


def events(db: sqlite3.Connection, n: int, ask: AskEvents) -> list[Event]:
    """Events of a kind, newest first."""
    sql = "SELECT id, kind, at, refs, body FROM events WHERE scope = ? AND kind = ?"
    values: list[Any] = [n, ask.kind]
    if ask.refs is not None:
        sql += " AND n IN (SELECT n FROM event_refs WHERE scope = ? AND ref IN (SELECT value FROM json_each(?)))"
        values += [n, json.dumps(ask.refs)]
    rows = db.execute(sql + " ORDER BY n DESC LIMIT ?", (*values, _limit(ask.limit)))
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


def jobs(db: sqlite3.Connection, n: int, ask: AskJobs) -> list[Job]:
    """The jobs in some states, by age."""
    sql = "SELECT id, kind, subject, state, attempts, error, recipe, worker FROM jobs WHERE scope = ?"
    values: list[Any] = [n]
    if ask.states:
        sql += " AND state IN (SELECT value FROM json_each(?))"
        values.append(json.dumps(ask.states))
    return [Job(*row) for row in db.execute(sql + " ORDER BY n LIMIT ?", (*values, _limit(ask.limit)))]


def lease(
    db: sqlite3.Connection, n: int | None, worker: str, now: int, until: int, kinds: Sequence[str], limit: int
) -> list[tuple[int, Job]]:
    """The oldest jobs that are due (of a scope, or of any), now leased to the worker, each with the
    number of its scope. A lease that ends much later than one that begins now can only come from
    a clock that was set back since: it counts as run out."""
    wanted = json.dumps(list(kinds)) if kinds else None
    rows = db.execute(
        "SELECT n, scope, id, kind, subject, state, attempts, error, recipe FROM jobs WHERE state IN ('queued', 'leased')"
        + (" AND scope = ?" if n is not None else "")
        + " AND ((state = 'queued' AND due <= ?) OR (state = 'leased' AND (lease_until <= ? OR lease_until > ?)))"
        " AND (? IS NULL OR kind IN (SELECT value FROM json_each(?))) ORDER BY n LIMIT ?",
        (*(() if n is None else (n,)), now, now, until + _CLOCKS_DIFFER, wanted, wanted, limit),
    ).fetchall()
    leased: list[tuple[int, Job]] = []
    for number, scope, id, kind, subject, state, attempts, error, recipe in rows:
        lapsed = f"{LAPSED}: {Job(id, kind, subject, error=error).lapses + 1}" if state == "leased" else error
        holder = f"{worker}:{uuid.uuid4().hex}"
        db.execute(
            "UPDATE jobs SET state = 'leased', worker = ?, lease_until = ?, attempts = ?, error = ? WHERE n = ?",
            (holder, until, attempts + 1, lapsed, number),
        )
        leased.append((scope, Job(id, kind, subject, "leased", attempts + 1, lapsed, recipe, holder)))
    return leased


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
