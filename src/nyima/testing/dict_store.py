"""The store in memory: the reference that every other store is compared with."""

from __future__ import annotations

import math
import struct
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from nyima.domain.changes import Add, ChangeRow, Delta, Erase, Retire, Revise, about, touched
from nyima.domain.conversation import Scope, Session, Turn
from nyima.domain.ports import LAPSED, Event, Hit, Job, Probe, RecordFilter, Vector
from nyima.domain.records import Episode, Interval, MemoryRecord
from nyima.domain.storage import (
    Ask,
    AskCentres,
    AskChanges,
    AskEmbedder,
    AskEvents,
    AskJobs,
    AskRecords,
    AskRevision,
    AskSearch,
    AskSessions,
    AskTurns,
    AskUnindexed,
    AskVectors,
    Store,
)
from nyima.errors import Conflict, EmbedderMismatch, LostLease, NotFound
from nyima.language.words import content_words, words

__all__ = ["MemoryStore"]

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


@dataclass(slots=True)
class _Job:
    job: Job
    number: int = 0
    due: datetime = _EPOCH
    until: datetime = _EPOCH


@dataclass(slots=True)
class _Shelf:
    """One scope."""

    revision: int = 0
    sessions: dict[str, Session] = field(default_factory=dict[str, Session])
    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    records: dict[str, MemoryRecord] = field(default_factory=dict[str, MemoryRecord])
    vectors: dict[str, Vector] = field(default_factory=dict[str, Vector])
    jobs: dict[str, _Job] = field(default_factory=dict[str, _Job])
    events: dict[str, Event] = field(default_factory=dict[str, Event])
    changes: list[ChangeRow] = field(default_factory=list[ChangeRow])
    embedder: str | None = None
    counted: dict[str, int] = field(default_factory=dict[str, int])

    def copy(self) -> _Shelf:
        return _Shelf(
            self.revision, dict(self.sessions), dict(self.turns), dict(self.records), dict(self.vectors),
            {k: replace(j) for k, j in self.jobs.items()}, dict(self.events), list(self.changes), self.embedder,
            dict(self.counted),
        )  # fmt: skip


class MemoryStore(Store):
    """A Store without a file (``nyima.domain.storage.Store`` says what each method does).

    It is written to be obviously right, not fast: each write works on a copy that takes
    the place of the old state when everything went well.
    """

    def __init__(self) -> None:
        self._shelves: dict[Scope, _Shelf] = {}
        self._jobs = 0

    def _of(self, scope: Scope) -> _Shelf:
        return self._shelves.get(scope) or _Shelf()

    async def append(
        self,
        scope: Scope,
        session: Session,
        turns: Sequence[Turn],
        *,
        delta: Delta | None = None,
        jobs: Sequence[Job] = (),
        events: Sequence[Event] = (),
        close: str | None = None,
    ) -> list[Turn]:
        shelf = self._of(scope).copy()
        shelf.sessions.setdefault(session.id, session)
        stored: list[Turn] = []
        for turn in turns:
            old = shelf.turns.get(turn.id)
            if old is None:
                shelf.sessions.setdefault(turn.session, Session(turn.session, turn.at))
                shelf.counted[turn.session] = shelf.counted.get(turn.session, -1) + 1
            placed = replace(turn, position=old.position if old else shelf.counted[turn.session])
            shelf.turns.setdefault(turn.id, placed)
            stored.append(placed)
        self._apply(shelf, delta or Delta(), {t.id: t for t in stored})
        self._finish(shelf, jobs, events, close)
        self._shelves[scope] = shelf
        return stored

    async def commit(
        self,
        scope: Scope,
        delta: Delta,
        *,
        expect: int | None = None,
        jobs: Sequence[Job] = (),
        events: Sequence[Event] = (),
        close: str | None = None,
        holder: str = "",
    ) -> int:
        shelf = self._of(scope).copy()
        if expect is not None and shelf.revision != expect:
            later = [row for row in shelf.changes if row.revision > expect]
            if any(row.verb == "erase" for row in later):
                raise Conflict(f"something was erased after revision {expect}: read the memory again and retry")
            changed = {id for row in later for id in (row.id, row.successor) if id}
            others = {id.partition("~")[0] for id in changed}.union(
                *(about(shelf.records[id]) for id in changed if id in shelf.records)
            )
            if others & touched(delta):
                raise Conflict(f"{min(others & touched(delta))!r} was changed after revision {expect}: read it again")
        self._finish(shelf, jobs, events, close, holder)
        self._apply(shelf, delta, {})
        self._shelves[scope] = shelf
        return shelf.revision

    def _finish(
        self, shelf: _Shelf, jobs: Sequence[Job], events: Sequence[Event], close: str | None, holder: str = ""
    ) -> None:
        if close is not None:
            held = shelf.jobs.get(close)
            if held is None:
                raise NotFound(f"job {close!r} is gone: what it was about was erased in the meantime")
            if holder and (held.job.state, held.job.holder) != ("leased", holder):
                raise LostLease(f"job {close!r} was taken by another worker: nothing was written")
            held.job = replace(held.job, state="done", error="")
        for event in events:
            shelf.events.setdefault(event.id, event)
        for job in jobs:
            self._jobs += 1
            shelf.jobs.setdefault(job.id, _Job(job, self._jobs))

    def _apply(self, shelf: _Shelf, delta: Delta, placed: Mapping[str, Turn]) -> None:
        if not delta:
            return
        shelf.revision += 1
        for change in delta.changes:
            row: tuple[str, str, str | None, datetime, str]
            match change:
                case Add(record):
                    self._add(shelf, record, placed)
                    row = ("add", record.id, None, record.recorded.since, "")
                case Revise(id, successor, reason):
                    self._end(shelf, id, successor.recorded.since, successor.valid.since, stale=False)
                    self._add(shelf, successor, placed)
                    row = ("revise", id, successor.id, successor.recorded.since, reason)
                case Retire(id, at, reason, stale):
                    self._end(shelf, id, at, at, stale=stale)
                    row = ("retire", id, None, at, reason)
                case Erase(id=id, what=what):
                    self._erase(shelf, id, what)
                    row = ("erase", id, None, _EPOCH, "")
            shelf.changes.append(ChangeRow(shelf.revision, row[0], row[1], row[2], row[3], delta.by, row[4]))

    def _add(self, shelf: _Shelf, record: MemoryRecord, placed: Mapping[str, Turn]) -> None:
        if isinstance(record, Episode):
            for turn in record.provenance.turns:
                if turn in placed:
                    record = replace(record, position=placed[turn].position)
        shelf.records.setdefault(record.id, record)

    def _end(self, shelf: _Shelf, id: str, at: datetime, until: datetime, *, stale: bool) -> None:
        old = shelf.records.get(id)
        if old is None:
            raise NotFound(f"record {id!r} does not exist: `nyima memories --all` lists every record")
        if old.recorded.until is not None:
            raise Conflict(f"record {id!r} is retired already: `nyima memories --all` lists every record")
        valid = old.valid
        if valid.until is None or valid.until > until:
            valid = Interval(valid.since, max(until, valid.since))
        ended = Interval(old.recorded.since, max(at, old.recorded.since))
        shelf.records[id] = replace(old, valid=valid, recorded=ended, stale=old.stale or stale)

    def _erase(self, shelf: _Shelf, id: str, what: str) -> None:
        if what == "scope":
            parts = (shelf.sessions, shelf.turns, shelf.records, shelf.vectors, shelf.jobs, shelf.events, shelf.counted)
            for part in parts:
                part.clear()
            shelf.changes.clear()
            return
        {"session": shelf.sessions, "turn": shelf.turns, "event": shelf.events}.get(what, shelf.records).pop(id, None)  # type: ignore[attr-defined]
        if what == "record":
            shelf.vectors.pop(id, None)
        if what == "session":
            shelf.counted.pop(id, None)
        shelf.jobs = {k: j for k, j in shelf.jobs.items() if j.job.subject != id}
        shelf.events = {k: e for k, e in shelf.events.items() if id not in e.refs}
        shelf.changes = [replace(c, reason="") if id in {c.id, c.successor} else c for c in shelf.changes]

    async def read(self, scope: Scope, asks: Sequence[Ask[Any]]) -> list[Any]:
        return [self._answer(self._of(scope), ask) for ask in asks]

    def _answer(self, shelf: _Shelf, ask: Ask[Any]) -> Any:
        match ask:
            case AskRecords(where):
                found = [r for r in shelf.records.values() if _matches(r, where)]
                return sorted(found, key=lambda r: (r.recorded.since, r.id))[: where.limit]
            case AskTurns(session, ids, limit, last, upto):
                here = None if upto is None else shelf.turns.get(upto)
                told = [
                    t for t in shelf.turns.values()
                    if (session is None or t.session == session) and (not ids or t.id in ids) and t.session in shelf.sessions
                ]  # fmt: skip
                if upto is not None:
                    told = [t for t in told if here and t.session == here.session and t.position <= here.position]
                told.sort(key=lambda t: (shelf.sessions[t.session].started, t.session, t.position, t.id))
                return told[:limit] if last is None else told[max(0, len(told) - last) :]
            case AskSessions(ids, unended):
                held = [s for s in shelf.sessions.values() if (not ids or s.id in ids) and not (unended and s.ended)]
                return sorted(held, key=lambda s: (s.started, s.id))
            case AskEvents(kind, refs, limit):
                logged = [e for e in shelf.events.values() if e.kind == kind and (refs is None or {*refs} & {*e.refs})]
                return logged[::-1][:limit]
            case AskChanges():
                return _steps(shelf.changes, ask)
            case AskJobs(states, limit):
                return [j.job for j in shelf.jobs.values() if not states or j.job.state in states][:limit]
            case AskSearch(probe):
                return self._search(shelf, probe)
            case AskUnindexed(limit):
                return [r for id, r in shelf.records.items() if id not in shelf.vectors][:limit]
            case AskVectors(ids):
                return {id: shelf.vectors[id] for id in ids if id in shelf.vectors}
            case AskCentres():
                return _centres(shelf)
            case AskEmbedder():
                return shelf.embedder
            case AskRevision():
                return shelf.revision
        raise TypeError(f"MemoryStore does not know how to answer {ask!r}")

    async def put_session(self, scope: Scope, session: Session, jobs: Sequence[Job] = ()) -> None:
        shelf = self._of(scope).copy()
        shelf.sessions[session.id] = session
        self._finish(shelf, jobs, (), None)
        self._shelves[scope] = shelf

    def _search(self, shelf: _Shelf, probe: Probe) -> list[Hit]:
        where = RecordFilter(kinds=probe.kinds, at=probe.at, as_of=probe.as_of)
        allowed = [
            r for r in shelf.records.values()
            if _matches(r, where) and r.region != probe.not_session and r.region in (probe.regions or (r.region,))
        ]  # fmt: skip
        if probe.vector is not None:
            wanted = _floats(probe.vector)
            scored = [(_dot(wanted, _floats(shelf.vectors[r.id])), r) for r in allowed if r.id in shelf.vectors]
        else:
            scored = _bm25(probe.words, list(shelf.records.values()), allowed)
        hits = [Hit(r.id, s, r.kind, r.region, getattr(r, "position", -1), r.valid.since) for s, r in scored]
        return sorted(hits, key=lambda h: (-h.score, h.id))[: probe.k]

    async def index(self, scope: Scope, vectors: Mapping[str, Vector], model: str) -> None:
        shelf = self._of(scope)
        if shelf.embedder not in {None, model}:
            raise EmbedderMismatch(f"the vectors are of {shelf.embedder!r}: run `nyima reindex --vectors`")
        shelf.embedder = model
        shelf.vectors |= {id: v for id, v in vectors.items() if id in shelf.records}

    async def reindex(self, scope: Scope, *, vectors: bool) -> int:
        shelf = self._shelves[scope] = self._of(scope)
        shelf.revision += 1
        if vectors:
            shelf.vectors, shelf.embedder = {}, None
        return len(shelf.records)

    async def lease(
        self,
        worker: str,
        now: datetime,
        seconds: float,
        *,
        scope: Scope | None = None,
        kinds: Sequence[str] = (),
        limit: int = 1,
    ) -> list[tuple[Scope, Job]]:
        until = now + timedelta(seconds=seconds)
        leased: list[tuple[Scope, Job]] = []
        for number, whose, held in sorted(self._every_job(scope), key=lambda row: row[0]):
            del number
            job = held.job
            lapsed = job.state == "leased" and not now < held.until <= until + timedelta(hours=1)
            ready = lapsed or (job.state == "queued" and held.due <= now)
            if len(leased) < limit and ready and (not kinds or job.kind in kinds):
                error = f"{LAPSED}: {job.lapses + 1}" if lapsed else job.error
                holder = f"{worker}:{uuid.uuid4().hex}"
                held.job = replace(job, state="leased", attempts=job.attempts + 1, error=error, holder=holder)
                held.until = until
                leased.append((whose, held.job))
        return leased

    def _every_job(self, scope: Scope | None = None) -> list[tuple[int, Scope, _Job]]:
        shelves = self._shelves if scope is None else {scope: self._of(scope)}
        return [(held.number, whose, held) for whose, shelf in shelves.items() for held in shelf.jobs.values()]

    def _held(self, scope: Scope, job: Job) -> _Job | None:
        held = self._of(scope).jobs.get(job.id)
        return held if held is not None and (held.job.state, held.job.holder) == ("leased", job.holder) else None

    async def renew(self, scope: Scope, job: Job, now: datetime, seconds: float) -> bool:
        held = self._held(scope, job)
        if held is not None:
            held.until = now + timedelta(seconds=seconds)
        return held is not None

    async def settle(self, scope: Scope, job: Job, *, retry_at: datetime | None, error: str) -> bool:
        held = self._held(scope, job)
        if held is not None:
            state = "parked" if retry_at is None else "queued"
            held.job = replace(held.job, state=state, attempts=job.attempts, error=error, holder="")
            held.due = retry_at or _EPOCH
        return held is not None

    async def requeue(self, scope: Scope, id: str) -> bool:
        held = self._of(scope).jobs.get(id)
        parked = held is not None and held.job.state == "parked"
        if held is not None and parked:
            held.job, held.due = replace(held.job, state="queued", attempts=0), _EPOCH
        return parked

    async def log(self, scope: Scope, event: Event) -> None:
        shelf = self._of(scope).copy()
        self._finish(shelf, (), (event,), None)
        self._shelves[scope] = shelf

    async def silent(self, before: datetime, limit: int) -> list[tuple[Scope, Session]]:
        found: list[tuple[datetime, Scope, Session]] = []
        for scope, shelf in self._shelves.items():
            for session in shelf.sessions.values():
                said = [t for t in shelf.turns.values() if t.session == session.id]
                last = max(said, key=lambda t: t.position).at if said else session.started
                if session.ended is None and last < before:
                    found.append((last, scope, session))
        found.sort(key=lambda row: row[0])
        return [(scope, session) for _, scope, session in found[:limit]]

    async def due(self, now: datetime, limit: int) -> list[Scope]:
        waiting = [
            (number, scope) for number, scope, held in self._every_job()
            if (held.job.state == "queued" and held.due <= now) or (held.job.state == "leased" and held.until <= now)
        ]  # fmt: skip
        return list(dict.fromkeys(scope for _, scope in sorted(waiting, key=lambda row: row[0])))[:limit]

    async def queue(self) -> Mapping[str, int]:
        return Counter(held.job.state for _, _, held in self._every_job() if held.job.state != "done")

    async def users(self, *, after: Scope | None = None, limit: int = 1_000) -> list[Scope]:
        def key(scope: Scope) -> tuple[str, str, str]:
            return scope.tenant, scope.user, scope.assistant

        return [s for s in sorted(self._shelves, key=key) if after is None or key(s) > key(after)][:limit]

    async def scrub(self, scope: Scope, needles: Sequence[str]) -> Mapping[str, int]:
        del scope, needles
        return {"files_scanned": 0, "bytes_found": 0}

    async def check(self) -> str:
        return "ok"

    async def close(self) -> None:
        return None


def _steps(rows: Sequence[ChangeRow], ask: AskChanges) -> list[ChangeRow]:
    touched = {r.revision for r in rows if ask.ids is None or r.id in ask.ids or r.successor in ask.ids}
    if ask.revisions is not None:
        touched &= set(ask.revisions)
    found = [r for r in rows if r.revision in touched and r.revision > ask.since and r.by not in ask.but]
    if ask.last is not None:
        last = sorted({r.revision for r in found}, reverse=True)[: ask.last]
        found = [r for r in found if r.revision in last]
    return found


def _centres(shelf: _Shelf) -> Mapping[str, Vector]:
    members: dict[str, list[tuple[float, ...]]] = {}
    for record in shelf.records.values():
        if record.kind == "claim" and record.recorded.until is None and record.id in shelf.vectors:
            members.setdefault(record.region, []).append(_floats(shelf.vectors[record.id]))
    means = {p: [sum(column) / len(rows) for column in zip(*rows, strict=True)] for p, rows in members.items()}
    return {place: struct.pack(f"<{len(mean)}f", *mean) for place, mean in means.items()}


def _matches(record: MemoryRecord, where: RecordFilter) -> bool:
    if where.kinds and record.kind not in where.kinds:
        return False
    if where.ids and record.id not in where.ids:
        return False
    if where.turns and not set(where.turns) & set(record.parents):
        return False
    if where.slots and record.slot not in where.slots:
        return False
    if where.bases and record.id.partition("~")[0] not in where.bases:
        return False
    if not record.id.startswith(where.prefix):
        return False
    if where.session is not None and record.region != where.session:
        return False
    if where.positions is not None:
        low, high = where.positions
        if not low <= getattr(record, "position", -1) <= high:
            return False
    if where.as_of is not None:
        believed = record.recorded.until is None or record.recorded.until > where.as_of
        return believed and record.valid.contains(where.as_of)
    if where.retired:
        return True
    ended = where.at is not None and record.valid.until is not None and record.valid.until <= where.at
    return record.recorded.until is None and not ended


def _floats(vector: Vector) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


def _dot(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _bm25(
    query: str, everything: Sequence[MemoryRecord], allowed: Sequence[MemoryRecord]
) -> list[tuple[float, MemoryRecord]]:
    """Okapi BM25 (k1 1.2, b 0.75), positive weights only."""
    bags = {r.id: Counter(words(r.text)) for r in everything}
    mean = sum(sum(b.values()) for b in bags.values()) / max(1, len(bags)) or 1.0
    terms = content_words(query)
    found: list[tuple[float, MemoryRecord]] = []
    for record in allowed:
        bag = bags[record.id]
        length = sum(bag.values())
        score = 0.0
        for term in terms:
            if bag[term]:
                with_term = sum(1 for b in bags.values() if b[term])
                idf = max(1e-6, math.log((len(bags) - with_term + 0.5) / (with_term + 0.5)))
                score += idf * bag[term] * 2.2 / (bag[term] + 1.2 * (0.25 + 0.75 * length / mean))
        if score > 0:
            found.append((score, record))
    return found
