"""The embedded store: one SQLite file, several processes, durable at each commit."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from nyima.domain.changes import Add, Delta, Erase, Retire, Revise, about, touched
from nyima.domain.conversation import Scope, Session, Turn
from nyima.domain.ports import Event, Hit, Job, Probe, RecordFilter, Vector
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
from nyima.errors import Conflict, EmbedderMismatch
from nyima.stores.encoding import from_micros, micros
from nyima.stores.sqlite import files as sqlite_files
from nyima.stores.sqlite import indexes, rows
from nyima.stores.sqlite.files import translated

__all__ = ["SqliteStore"]

T = TypeVar("T")


class SqliteStore(Store):
    """A Store in one file (``nyima.domain.storage.Store`` says what each method does).

    All statements of one process run on one thread, in order. WAL with
    ``synchronous=FULL``: what was acknowledged survives a power cut.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises StoreError with the reason and what to do."""
        self.path = path
        self._db = sqlite_files.open_file(path)
        self._thread = ThreadPoolExecutor(1, "nyima-sqlite")
        self._matrices = indexes.Matrices()
        self._numbers: dict[Scope, int] = {}

    async def _run(self, work: Callable[[], T]) -> T:
        def guarded() -> T:
            with translated(self.path):
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._thread, guarded)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with sqlite_files.transaction(self._db):
            yield self._db

    def _number(self, scope: Scope, *, make: bool = False) -> int:
        """The scope's row number, 0 when it has none and none is made."""
        if scope in self._numbers:
            return self._numbers[scope]
        key = (scope.tenant, scope.user, scope.assistant)
        find = "SELECT n FROM scopes WHERE tenant = ? AND user = ? AND assistant = ?"
        row = self._db.execute(find, key).fetchone()
        if row is None and make:
            self._db.execute("INSERT INTO scopes (tenant, user, assistant) VALUES (?, ?, ?)", key)
            row = self._db.execute(find, key).fetchone()
            indexes.ensure_text(self._db, row[0])
            return int(row[0])
        if row is None:
            return 0
        self._numbers[scope] = int(row[0])
        return int(row[0])

    def _scope(self, number: int) -> Scope:
        """The scope of a row number."""
        return Scope(*self._db.execute("SELECT tenant, user, assistant FROM scopes WHERE n = ?", (number,)).fetchone())

    # --- writing ---

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
        """Store turns with all that belongs to them in one transaction."""

        def work() -> list[Turn]:
            with self._transaction() as db:
                n = self._number(scope, make=True)
                rows.put_session(db, n, session, replace=False)
                stored = [rows.add_turn(db, n, turn) for turn in turns]
                places = {t.id: (t.session, t.position) for t in stored}
                self._apply(db, n, delta or Delta(), places)
                rows.finish(db, n, jobs, events, close)
            return stored

        return await self._run(work)

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
        """Apply a delta, queue jobs, log events and close a job, in one transaction."""

        def work() -> int:
            with self._transaction() as db:
                n = self._number(scope, make=True)
                (now,) = db.execute("SELECT revision FROM scopes WHERE n = ?", (n,)).fetchone()
                if expect is not None and now != expect:
                    self._same(db, n, delta, expect)
                rows.finish(db, n, jobs, events, close, holder)
                return self._apply(db, n, delta, {})

        return await self._run(work)

    def _same(self, db: sqlite3.Connection, n: int, delta: Delta, since: int) -> None:
        """Refuse a delta when something that it is about was changed since a revision."""
        later = rows.changes(db, n, AskChanges(since))
        if any(row.verb == "erase" for row in later):  # the delta may rest on what is gone
            raise Conflict(f"something was erased after revision {since}: read the memory again and retry")
        changed = {id for row in later for id in (row.id, row.successor) if id}
        wanted = touched(delta)
        other = {id.partition("~")[0] for id in changed} & wanted
        for record in rows.records(db, n, RecordFilter(ids=tuple(changed), retired=True)) if changed else ():
            other |= about(record) & wanted
        if other:
            raise Conflict(f"{min(other)!r} was changed after revision {since}: read it again and retry")

    def _apply(self, db: sqlite3.Connection, n: int, delta: Delta, places: Mapping[str, tuple[str, int]]) -> int:
        revision = int(db.execute("SELECT revision FROM scopes WHERE n = ?", (n,)).fetchone()[0])
        if not delta:
            return revision
        revision += 1
        closed = False
        for erases, batch in itertools.groupby(enumerate(delta.changes), lambda pair: isinstance(pair[1], Erase)):
            changes = list(batch)
            if erases:
                sqlite_files.erase(db, n, [(c.id, c.what) for _, c in changes if isinstance(c, Erase)])
            for ordinal, change in changes:
                row: tuple[str, str, str | None, datetime | None, str]
                match change:
                    case Add(record):
                        row = ("add", record.id, None, record.recorded.since, "")
                        rows.add_record(db, n, record, places)
                    case Revise(id, successor, reason):
                        at = successor.recorded.since
                        row = ("revise", id, successor.id, at, reason)
                        rows.close_record(db, n, id, at, successor.valid.since)
                        rows.add_record(db, n, successor, places)
                    case Retire(id, at, reason, stale):
                        row = ("retire", id, None, at, reason)
                        rows.close_record(db, n, id, at, at, stale=stale)
                    case Erase(id=id):
                        row = ("erase", id, None, None, "")
                closed = closed or row[0] != "add"
                rows.add_change(db, n, revision, ordinal, row, delta.by)
        db.execute("UPDATE scopes SET revision = ?, closed = closed + ? WHERE n = ?", (revision, int(closed), n))
        return revision

    async def put_session(self, scope: Scope, session: Session, jobs: Sequence[Job] = ()) -> None:
        """Create or replace a session's line and queue jobs."""

        def work() -> None:
            with self._transaction() as db:
                n = self._number(scope, make=True)
                rows.put_session(db, n, session, replace=True)
                rows.add_jobs(db, n, jobs)

        await self._run(work)

    async def log(self, scope: Scope, event: Event) -> None:
        """Append an event."""

        def work() -> None:
            with self._transaction() as db:
                rows.add_event(db, self._number(scope, make=True), event)

        await self._run(work)

    # --- reading ---

    async def read(self, scope: Scope, asks: Sequence[Ask[Any]]) -> list[Any]:
        """Answer all asks on one snapshot."""

        def work() -> list[Any]:
            n = self._number(scope)
            if len(asks) == 1:
                return [self._answer(n, asks[0])]
            self._db.execute("BEGIN")
            try:
                return [self._answer(n, ask) for ask in asks]
            finally:
                if self._db.in_transaction:
                    self._db.execute("COMMIT")

        return await self._run(work)

    def _answer(self, n: int, ask: Ask[Any]) -> Any:
        match ask:
            case AskRecords(where):
                return rows.records(self._db, n, where)
            case AskTurns():
                return rows.turns(self._db, n, ask)
            case AskSessions():
                return rows.sessions(self._db, n, ask)
            case AskEvents():
                return rows.events(self._db, n, ask)
            case AskChanges():
                return rows.changes(self._db, n, ask)
            case AskJobs():
                return rows.jobs(self._db, n, ask)
            case AskSearch(probe):
                return self._search(n, probe)
            case AskUnindexed(limit):
                return rows.unindexed(self._db, n, limit)
            case AskVectors(ids):
                return rows.vectors(self._db, n, ids)
            case AskCentres():
                return self._matrices.centres(self._db, n) if n else {}
            case AskEmbedder():
                return rows.embedder(self._db, n)
            case AskRevision():
                return rows.revision(self._db, n)
        raise TypeError(f"SqliteStore does not know how to answer {ask!r}")

    def _search(self, n: int, probe: Probe) -> list[Hit]:
        if not n:
            return []
        if probe.vector is not None:
            return self._matrices.search(self._db, n, probe)
        return indexes.search_words(self._db, n, probe)

    # --- indexing ---

    async def index(self, scope: Scope, vectors: Mapping[str, Vector], model: str) -> None:
        """Store the vectors of records."""

        def work() -> None:
            with self._transaction() as db:
                n = self._number(scope)
                known = rows.embedder(db, n)
                if known is None:
                    db.execute("INSERT INTO meta VALUES (?, ?)", (f"embedder {n:d}", model))
                elif known != model:
                    raise EmbedderMismatch(
                        f"{self.path} holds vectors of {known!r}, not of {model!r}:"
                        f" use that model, or run `nyima reindex --vectors` to embed everything again"
                    )
                for id, vector in vectors.items():
                    db.execute(
                        "INSERT OR REPLACE INTO vectors SELECT n, scope, ? FROM records WHERE scope = ? AND id = ?",
                        (vector, n, id),
                    )

        await self._run(work)

    async def reindex(self, scope: Scope, *, vectors: bool) -> int:
        """Rebuild the full-text rows, and drop all vectors when asked."""

        def work() -> int:
            with self._transaction() as db:
                n = self._number(scope, make=True)
                if vectors:
                    db.execute("DELETE FROM vectors WHERE scope = ?", (n,))
                    db.execute("DELETE FROM meta WHERE key = ?", (f"embedder {n:d}",))
                count = sqlite_files.rebuild_text(db, n)
                # Others may hold what they know of the index: a new revision tells them.
                db.execute("UPDATE scopes SET revision = revision + 1 WHERE n = ?", (n,))
            self._matrices.drop(n)
            return count

        return await self._run(work)

    # --- jobs ---

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
        """Take the oldest jobs that are due and not leased."""

        def work() -> list[tuple[Scope, Job]]:
            with self._transaction() as db:
                n = None if scope is None else self._number(scope)
                until = micros(now + timedelta(seconds=seconds)) or 0
                leased = rows.lease(db, n, worker, micros(now) or 0, until, kinds, limit)
                return [(self._scope(number), job) for number, job in leased]

        return await self._run(work)

    async def renew(self, scope: Scope, job: Job, now: datetime, seconds: float) -> bool:
        """Hold a leased job for longer."""

        def work() -> bool:
            with self._transaction() as db:
                until = micros(now + timedelta(seconds=seconds)) or 0
                return rows.renew(db, self._number(scope), job, until)

        return await self._run(work)

    async def settle(self, scope: Scope, job: Job, *, retry_at: datetime | None, error: str) -> bool:
        """Put a failed job back, or park it, if its holder still has it."""

        def work() -> bool:
            with self._transaction() as db:
                return rows.settle(db, self._number(scope), job, micros(retry_at), error)

        return await self._run(work)

    async def requeue(self, scope: Scope, id: str) -> bool:
        """Put a parked job back."""

        def work() -> bool:
            with self._transaction() as db:
                return rows.requeue(db, self._number(scope), id)

        return await self._run(work)

    async def silent(self, before: datetime, limit: int) -> list[tuple[Scope, Session]]:
        """The sessions of any scope in which nothing was said since, and that have not ended."""
        sql = (
            "SELECT scope, id, started, ended, title FROM sessions WHERE ended IS NULL AND last_turn < ?"
            " ORDER BY last_turn, scope, id LIMIT ?"
        )

        def work() -> list[tuple[Scope, Session]]:
            found = self._db.execute(sql, (micros(before), limit)).fetchall()
            return [(self._scope(r[0]), Session(r[1], rows.moment(r[2]), from_micros(r[3]), r[4])) for r in found]

        return await self._run(work)

    async def due(self, now: datetime, limit: int) -> list[Scope]:
        """The scopes with a job that is due."""
        sql = (
            "SELECT scope FROM jobs WHERE state IN ('queued', 'leased')"
            " AND ((state = 'queued' AND due <= ?) OR (state = 'leased' AND lease_until <= ?))"
            " GROUP BY scope ORDER BY min(n) LIMIT ?"
        )
        at = micros(now)
        return await self._run(lambda: [self._scope(r[0]) for r in self._db.execute(sql, (at, at, limit)).fetchall()])

    async def queue(self) -> Mapping[str, int]:
        """How many jobs of all scopes are in each state but done."""
        sql = "SELECT state, count(*) FROM jobs WHERE state IN ('queued', 'leased', 'parked') GROUP BY state"
        return dict(await self._run(lambda: self._db.execute(sql).fetchall()))

    async def users(self, *, after: Scope | None = None, limit: int = 1_000) -> list[Scope]:
        """The scopes that were written to, in order."""
        key = ("", "", "") if after is None else (after.tenant, after.user, after.assistant)
        sql = (
            "SELECT tenant, user, assistant FROM scopes WHERE (tenant, user, assistant) > (?, ?, ?)"
            " ORDER BY tenant, user, assistant LIMIT ?"
        )
        return [Scope(*row) for row in await self._run(lambda: self._db.execute(sql, (*key, limit)).fetchall())]

    # --- files ---

    async def scrub(self, scope: Scope, needles: Sequence[str]) -> Mapping[str, int]:
        """Compact the file so that erased bytes are gone, then look for the needles."""

        def work() -> Mapping[str, int]:
            sqlite_files.compact(self._db)
            return sqlite_files.scan(self._db, self.path, self._number(scope), needles)

        return await self._run(work)

    async def check(self) -> str:
        """``ok``, or what SQLite's integrity check says."""
        return await self._run(lambda: str(self._db.execute("PRAGMA integrity_check").fetchone()[0]))

    async def close(self) -> None:
        """Close the connection and end the thread."""
        await self._run(self._db.close)
        self._thread.shutdown()
