"""The embedded store: one SQLite file, several processes, durable at each commit."""

from __future__ import annotations

import asyncio
import itertools
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from nyima.domain.changes import Add, ChangeRow, Delta, Erase, Retire, Revise
from nyima.domain.conversation import Origin, Role, Scope, Session, Turn
from nyima.domain.ports import Event, Hit, Job, Probe, RecordFilter, Vector
from nyima.domain.records import MemoryRecord
from nyima.errors import Conflict, EmbedderMismatch
from nyima.stores.encoding import from_micros, micros
from nyima.stores.sqlite import files as sqlite_files
from nyima.stores.sqlite import indexes
from nyima.stores.sqlite import rows as sqlite_rows
from nyima.stores.sqlite.files import translated

__all__ = ["SqliteStore"]

T = TypeVar("T")


class SqliteStore:
    """A Store in one file (``nyima.domain.ports.Store`` says what each method does).

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
                sqlite_rows.put_session(db, n, session, replace=False)
                stored = [sqlite_rows.add_turn(db, n, turn) for turn in turns]
                places = {t.id: (t.session, t.position) for t in stored}
                self._apply(db, n, delta or Delta(), places)
                sqlite_rows.finish(db, n, jobs, events, close)
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
                    raise Conflict(f"the memory is at revision {now}, not {expect}: read it again and retry")
                sqlite_rows.finish(db, n, jobs, events, close, holder)
                return self._apply(db, n, delta, {})

        return await self._run(work)

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
                        sqlite_rows.add_record(db, n, record, places)
                    case Revise(id, successor, reason):
                        at = successor.recorded.since
                        row = ("revise", id, successor.id, at, reason)
                        sqlite_rows.close_record(db, n, id, at, successor.valid.since)
                        sqlite_rows.add_record(db, n, successor, places)
                    case Retire(id, at, reason, stale):
                        row = ("retire", id, None, at, reason)
                        sqlite_rows.close_record(db, n, id, at, at, stale=stale)
                    case Erase(id=id):
                        row = ("erase", id, None, None, "")
                closed = closed or row[0] != "add"
                sqlite_rows.add_change(db, n, revision, ordinal, row, delta.by)
        db.execute("UPDATE scopes SET revision = ?, closed = closed + ? WHERE n = ?", (revision, int(closed), n))
        return revision

    async def put_session(self, scope: Scope, session: Session, jobs: Sequence[Job] = ()) -> None:
        """Create or replace a session's line and queue jobs."""

        def work() -> None:
            with self._transaction() as db:
                n = self._number(scope, make=True)
                sqlite_rows.put_session(db, n, session, replace=True)
                sqlite_rows.add_jobs(db, n, jobs)

        await self._run(work)

    async def log(self, scope: Scope, event: Event) -> None:
        """Append an event."""

        def work() -> None:
            with self._transaction() as db:
                sqlite_rows.add_event(db, self._number(scope, make=True), event)

        await self._run(work)

    # --- reading ---

    async def revision(self, scope: Scope) -> int:
        """The number of commits so far."""

        def work() -> int:
            row = self._db.execute("SELECT revision FROM scopes WHERE n = ?", (self._number(scope),)).fetchone()
            return row[0] if row else 0

        return await self._run(work)

    async def scopes(self) -> list[Scope]:
        """Every scope that was written to."""
        rows = await self._run(
            lambda: self._db.execute("SELECT tenant, user, assistant FROM scopes ORDER BY 1, 2, 3").fetchall()
        )
        return [Scope(*row) for row in rows]

    async def records(self, scope: Scope, where: RecordFilter) -> list[MemoryRecord]:
        """The records that match, by recorded time and id."""
        return await self._run(lambda: sqlite_rows.records(self._db, self._number(scope), where))

    async def turns(self, scope: Scope, *, session: str | None = None, ids: Sequence[str] = ()) -> list[Turn]:
        """The turns, by session start, then position."""
        sql = (
            "SELECT t.id, t.session, t.role, t.text, t.at, t.origin, t.speaker, t.position FROM turns t"
            " JOIN sessions s ON s.scope = t.scope AND s.id = t.session WHERE t.scope = ?"
        )
        values: list[object] = []
        if session is not None:
            sql += " AND t.session = ?"
            values.append(session)
        if ids:
            sql += " AND t.id IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(ids)))
        sql += " ORDER BY s.started, t.session, t.position, t.id"
        rows = await self._run(lambda: self._db.execute(sql, (self._number(scope), *values)).fetchall())
        return [Turn(r[0], r[1], Role(r[2]), r[3], sqlite_rows.moment(r[4]), Origin(r[5]), r[6], r[7]) for r in rows]

    async def sessions(self, scope: Scope, *, ids: Sequence[str] = ()) -> list[Session]:
        """The sessions, by start and id."""
        sql = "SELECT id, started, ended, title FROM sessions WHERE scope = ?"
        if ids:
            sql += " AND id IN (SELECT value FROM json_each(?))"
        values = (json.dumps(list(ids)),) if ids else ()
        rows = await self._run(
            lambda: self._db.execute(sql + " ORDER BY started, id", (self._number(scope), *values)).fetchall()
        )
        return [Session(r[0], sqlite_rows.moment(r[1]), from_micros(r[2]), r[3]) for r in rows]

    async def events(self, scope: Scope, kind: str, *, ref: str | None = None, limit: int | None = None) -> list[Event]:
        """Events of a kind, newest first."""
        return await self._run(lambda: sqlite_rows.events(self._db, self._number(scope), kind, ref, limit))

    async def changes(self, scope: Scope, *, since: int = 0) -> list[ChangeRow]:
        """The history of changes, oldest first."""
        sql = (
            "SELECT revision, verb, id, successor, at, by, reason FROM changes"
            " WHERE scope = ? AND revision > ? ORDER BY revision, ordinal"
        )
        rows = await self._run(lambda: self._db.execute(sql, (self._number(scope), since)).fetchall())
        return [ChangeRow(r[0], r[1], r[2], r[3], sqlite_rows.moment(r[4]), r[5], r[6]) for r in rows]

    # --- searching ---

    async def search(self, scope: Scope, probe: Probe) -> list[Hit]:
        """The best hits for words or for a vector."""

        def work() -> list[Hit]:
            n = self._number(scope)
            if not n:
                return []
            if probe.vector is not None:
                return self._matrices.search(self._db, n, probe)
            return indexes.search_words(self._db, n, probe)

        return await self._run(work)

    async def index(self, scope: Scope, vectors: Mapping[str, Vector], model: str) -> None:
        """Store the vectors of records."""

        def work() -> None:
            with self._transaction() as db:
                n = self._number(scope)
                known = sqlite_rows.embedder(db, n)
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

    async def embedder(self, scope: Scope) -> str | None:
        """The model that the scope's vectors come from."""
        return await self._run(lambda: sqlite_rows.embedder(self._db, self._number(scope)))

    async def vectors(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Vector]:
        """The vectors of records, of those that have one."""
        sql = (
            "SELECT r.id, v.v FROM records r JOIN vectors v ON v.n = r.n"
            " WHERE r.scope = ? AND r.id IN (SELECT value FROM json_each(?))"
        )
        values = (self._number(scope), json.dumps(list(ids)))
        return dict(await self._run(lambda: self._db.execute(sql, values).fetchall()))

    async def centres(self, scope: Scope) -> Mapping[str, Vector]:
        """The mean vector of the believed relations, by their place."""

        def work() -> Mapping[str, Vector]:
            n = self._number(scope)
            return self._matrices.centres(self._db, n) if n else {}

        return await self._run(work)

    async def unindexed(self, scope: Scope, limit: int) -> list[MemoryRecord]:
        """Records without a vector, oldest first."""
        return await self._run(lambda: sqlite_rows.unindexed(self._db, self._number(scope), limit))

    async def reindex(self, scope: Scope, *, vectors: bool) -> int:
        """Rebuild the full-text rows, and drop all vectors when asked."""

        def work() -> int:
            with self._transaction() as db:
                n = self._number(scope, make=True)
                if vectors:
                    db.execute("DELETE FROM vectors WHERE scope = ?", (n,))
                    db.execute("DELETE FROM meta WHERE key = ?", (f"embedder {n:d}",))
                count = sqlite_files.rebuild_text(db, n)
            self._matrices.drop(n)
            return count

        return await self._run(work)

    # --- jobs ---

    async def jobs(self, scope: Scope, states: Sequence[str] = ()) -> list[Job]:
        """The jobs in these states, by age."""
        return await self._run(lambda: sqlite_rows.jobs(self._db, self._number(scope), states))

    async def lease(
        self, scope: Scope, worker: str, now: datetime, seconds: float, kinds: Sequence[str] = ()
    ) -> Job | None:
        """Take the oldest job that is due and not leased."""

        def work() -> Job | None:
            with self._transaction() as db:
                until = micros(now + timedelta(seconds=seconds)) or 0
                return sqlite_rows.lease(db, self._number(scope), worker, (micros(now) or 0, until), kinds)

        return await self._run(work)

    async def renew(self, scope: Scope, job: Job, now: datetime, seconds: float) -> bool:
        """Hold a leased job for longer."""

        def work() -> bool:
            with self._transaction() as db:
                until = micros(now + timedelta(seconds=seconds)) or 0
                return sqlite_rows.renew(db, self._number(scope), job, until)

        return await self._run(work)

    async def settle(self, scope: Scope, job: Job, *, retry_at: datetime | None, error: str) -> bool:
        """Put a failed job back, or park it, if its holder still has it."""

        def work() -> bool:
            with self._transaction() as db:
                return sqlite_rows.settle(db, self._number(scope), job, micros(retry_at), error)

        return await self._run(work)

    async def requeue(self, scope: Scope, id: str) -> bool:
        """Put a parked job back."""

        def work() -> bool:
            with self._transaction() as db:
                return sqlite_rows.requeue(db, self._number(scope), id)

        return await self._run(work)

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
