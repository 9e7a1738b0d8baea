"""Migrations, one function a step, and record ↔ JSON."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from nyima.domain.conversation import Origin
from nyima.domain.records import KINDS, ME, Interval, MemoryRecord, Provenance, Quote, Slot, Status
from nyima.language.words import fold, segment

__all__ = [
    "MIGRATIONS",
    "claim_of_old",
    "decode",
    "encode",
    "from_micros",
    "micros",
    "record_from_dict",
    "record_to_dict",
    "slot_key",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHARED = ("id", "provenance", "valid", "recorded", "stale", "supersedes")


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
        **{name: _plain(value) for name, value in own.items()},
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
        "stale": record.stale,
        "supersedes": record.supersedes,
    }


def _plain(value: object) -> object:
    """A field's value as JSON."""
    match value:
        case tuple():
            return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        case Quote(turn, start, end):
            return [turn, start, end]
        case Status():
            return value.value
        case _:
            return value


def record_from_dict(values: Mapping[str, Any]) -> MemoryRecord:
    """The inverse of ``record_to_dict``; also of what the first edition wrote. Raises KeyError,
    TypeError or ValueError for anything else."""
    if values["kind"] in {"fact", "relation"}:
        values = claim_of_old(values, {})
    kind = KINDS[values["kind"]]
    made = values["provenance"]
    own = {f.name: values[f.name] for f in fields(kind) if f.name not in _SHARED and f.name in values}
    if own.get("quote") is not None:
        own["quote"] = Quote(*own["quote"])
    if "status" in own:
        own["status"] = Status(own["status"])
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


def slot_key(slot: Slot | None) -> str | None:
    """A slot as one text that can be indexed."""
    return None if slot is None else f"{slot.subject}\x1f{slot.attribute}"


def _slots(db: sqlite3.Connection) -> None:
    """An index of what claims give a value of, so that what states the same is found at once."""
    db.execute("ALTER TABLE records ADD COLUMN claim TEXT")
    db.execute("CREATE INDEX records_claim ON records (scope, claim) WHERE claim IS NOT NULL")


def claim_of_old(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """A fact or relation of the first edition as a claim, both as JSON values; ``names`` are those of
    the entities."""
    kept = {k: v for k, v in values.items() if k not in {"claim", "key", "head", "label", "tail", "note", "rests"}}
    if values["kind"] == "fact":
        stated = {"subject": ME, "attribute": values["key"].replace("_", " "), "value": values["value"], "name": ME}
    else:
        stated = {
            "subject": values["head"], "attribute": values["label"].replace("_", " "),
            "value": names.get(values["tail"]) or values.get("note") or values["tail"],
            "name": names.get(values["head"], values["head"]), "object": values["tail"],
            "depends_on": values.get("rests", []),
        }  # fmt: skip
    return {**kept, **stated, "kind": "claim", "status": "holds", "quote": None, "when": ""}


def _one_memory_a_statement(db: sqlite3.Connection) -> None:
    """Facts and relations become claims; a fact that says what a relation says is closed, and stays in
    history. What was still to be read by rules is not read any more; what was to be read by a model
    is read as claims."""
    old = db.execute("SELECT n, scope, id, kind, body FROM records WHERE kind IN ('fact', 'relation')").fetchall()
    for scope in {row[1] for row in old}:
        entities = db.execute("SELECT id, body FROM records WHERE scope = ? AND kind = 'entity'", (scope,))
        names = {id: json.loads(body)["name"] for id, body in entities}
        for n, _, id, kind, body in (row for row in old if row[1] == scope):
            values = claim_of_old({"id": id, "kind": kind, **json.loads(body)}, names)
            record = record_from_dict({**values, "valid": [0, None], "recorded": [0, None]})
            for name in ("id", "kind"):
                del values[name]
            db.execute(
                "UPDATE records SET kind = 'claim', claim = ?, session = ?, body = ? WHERE n = ?",
                (slot_key(record.slot), record.region, json.dumps(values, ensure_ascii=False), n),
            )
            db.execute(f"DELETE FROM fts_{scope:d}_rest WHERE rowid = ?", (n,))
            text = fold(segment(record.text))
            db.execute(f"INSERT INTO fts_{scope:d}_rest(rowid, x) VALUES (?, ?)", (n, text))
            db.execute("DELETE FROM vectors WHERE n = ?", (n,))
    facts = db.execute(
        "SELECT n, scope, id, body, rec_from FROM records WHERE kind = 'claim' AND id LIKE 'f-%' AND rec_to IS NULL"
    )
    for n, scope, id, body, since in facts.fetchall():
        fact = json.loads(body)
        beside = db.execute(
            "SELECT body FROM records WHERE scope = ? AND kind = 'claim' AND rec_to IS NULL AND id <> ? AND id IN"
            " (SELECT child FROM links WHERE scope = ? AND parent IN (SELECT value FROM json_each(?)))",
            (scope, id, scope, json.dumps(fact["provenance"]["turns"])),
        ).fetchall()
        told = {fold(other["value"]) for (text,) in beside if (other := json.loads(text)).get("object")}
        if fold(fact["value"]) in told:
            db.execute("UPDATE records SET rec_to = ? WHERE n = ?", (since, n))
    db.execute("DELETE FROM jobs WHERE kind IN ('graph', 'profile') AND state <> 'done'")
    db.execute("UPDATE jobs SET kind = 'claims' WHERE kind = 'gate' AND state <> 'done'")


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


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_first, _slots, _counters, _one_memory_a_statement)
"""Each runs once, in order, in one transaction with the raise of ``user_version``."""
