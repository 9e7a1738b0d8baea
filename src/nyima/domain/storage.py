"""The Store: canonical turns, records, changes and jobs, and the indexes that are derived from them.

What is asked of a store is a value (an ``Ask``), and several asks are answered at once, on one
snapshot: a store behind a network is asked once for all that is needed at a time. ``Batched``
puts together what several tasks ask in the same moment.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from nyima.domain.changes import ChangeRow, Delta
from nyima.domain.conversation import Scope, Session, Turn
from nyima.domain.ports import Event, Hit, Job, Probe, RecordFilter, Vector
from nyima.domain.records import MemoryRecord

__all__ = [
    "Ask", "AskCentres", "AskChanges", "AskEmbedder", "AskEvents", "AskJobs", "AskRecords", "AskRevision", "AskSearch",
    "AskSessions", "AskTurns", "AskUnindexed", "AskVectors", "Batched", "Store",
]  # fmt: skip

R = TypeVar("R")


class Ask(Generic[R]):
    """Something asked of a store; ``R`` is what it answers."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AskRecords(Ask[list[MemoryRecord]]):
    """The records that match, by recorded time and id."""

    where: RecordFilter


@dataclass(frozen=True, slots=True)
class AskTurns(Ask[list[Turn]]):
    """The turns of a session, or those with the ids, or those of a turn's session up to itself
    (``upto``), or all; by session start, then position. With ``limit`` the first ones, with
    ``last`` the last ones."""

    session: str | None = None
    ids: tuple[str, ...] = ()
    limit: int | None = None
    last: int | None = None
    upto: str | None = None


@dataclass(frozen=True, slots=True)
class AskSessions(Ask[list[Session]]):
    """The sessions, by start and id; with ``unended`` those that have not ended."""

    ids: tuple[str, ...] = ()
    unended: bool = False


@dataclass(frozen=True, slots=True)
class AskEvents(Ask[list[Event]]):
    """Events of a kind, newest first; with ``refs`` those that mention one of these ids."""

    kind: str
    refs: tuple[str, ...] | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class AskChanges(Ask[list[ChangeRow]]):
    """The history of changes after revision ``since``, oldest first, always whole steps; with
    ``ids`` the steps that touch one of them, with ``revisions`` these steps, with ``last`` the
    last ones. ``but`` names writers whose changes are left out."""

    since: int = 0
    ids: tuple[str, ...] | None = None
    revisions: tuple[int, ...] | None = None
    last: int | None = None
    but: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AskJobs(Ask[list[Job]]):
    """The jobs in these states (all when empty), by age."""

    states: tuple[str, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class AskSearch(Ask[list[Hit]]):
    """The best ``k`` hits, best first, ties by id."""

    probe: Probe


@dataclass(frozen=True, slots=True)
class AskUnindexed(Ask[list[MemoryRecord]]):
    """Records that have no vector yet, oldest first."""

    limit: int


@dataclass(frozen=True, slots=True)
class AskVectors(Ask[Mapping[str, Vector]]):
    """The vectors of records, of those that have one."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskCentres(Ask[Mapping[str, Vector]]):
    """The mean vector of the relations that are believed, by their place."""


@dataclass(frozen=True, slots=True)
class AskEmbedder(Ask[str | None]):
    """The model that the scope's vectors come from; None when it has none."""


@dataclass(frozen=True, slots=True)
class AskRevision(Ask[int]):
    """The number of commits so far."""


class Store(Protocol):
    """Values in, values out; no method calls a model; every write is idempotent by id.

    A store implements ``read`` and the writes, and inherits a method for each ask.
    """

    async def read(self, scope: Scope, asks: Sequence[Ask[Any]]) -> list[Any]:
        """What is asked, in order, all of it on one snapshot."""
        ...

    # --- one ask each ---

    async def ask(self, scope: Scope, ask: Ask[R]) -> R:
        """One answer."""
        (found,) = await self.read(scope, (ask,))
        answer: R = found
        return answer

    async def standing(self, scope: Scope, ask: Ask[R]) -> R:
        """One answer, which is at least as new as the last write that this object knows of."""
        return await self.ask(scope, ask)

    async def records(self, scope: Scope, where: RecordFilter) -> list[MemoryRecord]:
        """The records that match, by recorded time and id."""
        return await self.ask(scope, AskRecords(where))

    async def turns(
        self,
        scope: Scope,
        *,
        session: str | None = None,
        ids: Sequence[str] = (),
        limit: int | None = None,
        last: int | None = None,
    ) -> list[Turn]:
        """The turns of a session, or those with the ids, or all; by session start, then position."""
        return await self.ask(scope, AskTurns(session, tuple(ids), limit, last))

    async def sessions(self, scope: Scope, *, ids: Sequence[str] = (), unended: bool = False) -> list[Session]:
        """The sessions, by start and id."""
        return await self.ask(scope, AskSessions(tuple(ids), unended))

    async def events(self, scope: Scope, kind: str, *, ref: str | None = None, limit: int | None = None) -> list[Event]:
        """Events of a kind, newest first."""
        return await self.ask(scope, AskEvents(kind, None if ref is None else (ref,), limit))

    async def changes(
        self,
        scope: Scope,
        *,
        since: int = 0,
        ids: Sequence[str] | None = None,
        revisions: Sequence[int] | None = None,
        last: int | None = None,
        but: Sequence[str] = (),
    ) -> list[ChangeRow]:
        """The history of changes after revision ``since``, oldest first."""
        some = None if ids is None else tuple(ids)
        steps = None if revisions is None else tuple(revisions)
        return await self.ask(scope, AskChanges(since, some, steps, last, tuple(but)))

    async def jobs(self, scope: Scope, states: Sequence[str] = (), limit: int | None = None) -> list[Job]:
        """The jobs in these states (all when empty), by age."""
        return await self.ask(scope, AskJobs(tuple(states), limit))

    async def search(self, scope: Scope, probe: Probe) -> list[Hit]:
        """The best ``k`` hits, best first, ties by id."""
        return await self.ask(scope, AskSearch(probe))

    async def unindexed(self, scope: Scope, limit: int) -> list[MemoryRecord]:
        """Records that have no vector yet, oldest first."""
        return await self.ask(scope, AskUnindexed(limit))

    async def vectors(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Vector]:
        """The vectors of records, of those that have one."""
        return await self.ask(scope, AskVectors(tuple(ids)))

    async def centres(self, scope: Scope) -> Mapping[str, Vector]:
        """The mean vector of the relations that are believed, by their place."""
        return await self.ask(scope, AskCentres())

    async def embedder(self, scope: Scope) -> str | None:
        """The model that the scope's vectors come from; None when it has none."""
        return await self.ask(scope, AskEmbedder())

    async def revision(self, scope: Scope) -> int:
        """The number of commits so far."""
        return await self.ask(scope, AskRevision())

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
        """Store turns, their jobs, events and a delta, and mark job ``close`` as done, in
        one transaction; the turns come back with their positions. A turn id that exists
        is left as it is."""
        ...

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
        """Apply a delta in one transaction, queue jobs, log events and mark job
        ``close`` as done. Returns the new revision. Raises Conflict when since revision
        ``expect`` something was changed that the delta is about (see ``changes.touched``), or
        when a record to close is closed already, NotFound
        when it or job ``close`` does not exist, LostLease when ``holder`` is given and does not
        hold the job any more; then nothing is changed."""
        ...

    async def put_session(self, scope: Scope, session: Session, jobs: Sequence[Job] = ()) -> None:
        """Create or replace a session's line and queue jobs, in one transaction."""
        ...

    async def log(self, scope: Scope, event: Event) -> None:
        """Append an event."""
        ...

    async def index(self, scope: Scope, vectors: Mapping[str, Vector], model: str) -> None:
        """Store the vectors of records. Raises EmbedderMismatch for another model."""
        ...

    async def reindex(self, scope: Scope, *, vectors: bool) -> int:
        """Rebuild the full-text rows, and drop the vectors when asked; the number of records."""
        ...

    # --- work ---

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
        """Take up to ``limit`` jobs (of these kinds, of this scope or of any) that are due and not
        leased, the oldest first. The attempt is counted now, so that a job that kills its worker is counted too; a job whose lease ran
        out counts that in ``lapses``."""
        ...

    async def renew(self, scope: Scope, job: Job, now: datetime, seconds: float) -> bool:
        """Hold a leased job for ``seconds`` more; False when its holder has lost it."""
        ...

    async def settle(self, scope: Scope, job: Job, *, retry_at: datetime | None, error: str) -> bool:
        """Put a failed job back until ``retry_at``, or park it when that is None, with the
        attempts of ``job``. Only its holder can: for anybody else nothing changes, and False
        comes back."""
        ...

    async def requeue(self, scope: Scope, id: str) -> bool:
        """Put a parked job back as if it had never been tried; False when it is not parked."""
        ...

    async def silent(self, before: datetime, limit: int) -> list[tuple[Scope, Session]]:
        """Sessions of any scope that have not ended and whose last turn (without one, whose start)
        was before that moment, the longest silent first."""
        ...

    async def due(self, now: datetime, limit: int) -> list[Scope]:
        """The scopes with a job that is due and not leased, the one that waits longest first."""
        ...

    async def queue(self) -> Mapping[str, int]:
        """How many jobs of all scopes are in each state; those that are done are not counted."""
        ...

    async def users(self, *, after: Scope | None = None, limit: int = 1_000) -> list[Scope]:
        """The scopes that were written to, in order, after one of them: for administration."""
        ...

    # --- files ---

    async def scrub(self, scope: Scope, needles: Sequence[str]) -> Mapping[str, int]:
        """Make erased bytes unreadable in every file of the store, then look there for the
        needles that no other scope holds: ``files_scanned`` and ``bytes_found``."""
        ...

    async def check(self) -> str:
        """``ok``, or what is wrong with the files."""
        ...

    async def close(self) -> None:
        """Release files and threads."""
        ...


_MOST_STANDING = 2_000
"""For how many scopes answers stand at a time."""
_TURNS = 4
"""For how many turns of the event loop (microseconds) a read waits for others."""
_Waiting: TypeAlias = tuple[Sequence[Ask[Any]], asyncio.Future[tuple[int, list[Any]]]]


class Batched(Store):
    """A store that answers together what is asked of it in one moment.

    Tasks that run side by side (the sources of a recall) each ask for what they need; the inner
    store is read once for all of them. What one task asks after an answer is another read.

    ``standing`` answers without a read as long as nothing was written. What this object writes
    counts at once; what another process commits is seen with the next read, which asks for the
    revision beside everything else, and so counts from the standing answer after that. What
    another process logs has no revision of its own: it counts from the next commit on.
    """

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self._standing: dict[Scope, dict[Ask[Any], tuple[int, Any]]] = {}
        self._writes = 0
        self._waiting: dict[tuple[asyncio.AbstractEventLoop, Scope], list[_Waiting]] = {}
        self._running: set[asyncio.Task[list[Any]]] = set()

    async def read(self, scope: Scope, asks: Sequence[Ask[Any]]) -> list[Any]:
        """What is asked, with what others ask of the scope at this moment."""
        return (await self._read(scope, asks))[1]

    async def standing(self, scope: Scope, ask: Ask[R]) -> R:
        """One answer, from memory where nothing was written since it was given."""
        held = self._standing.get(scope, {}).get(ask)
        if held is None:
            writes = self._writes
            revision, (answer,) = await self._read(scope, (ask,))
            held = (revision, answer)
            if writes == self._writes:  # else it may be from before what was written meanwhile
                if len(self._standing) >= _MOST_STANDING:
                    self._standing.clear()
                self._standing.setdefault(scope, {})[ask] = held
        standing: R = copy.copy(held[1])  # whoever asked may change the list that they got
        return standing

    async def _read(self, scope: Scope, asks: Sequence[Ask[Any]]) -> tuple[int, list[Any]]:
        """The revision, and what is asked."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[int, list[Any]]] = loop.create_future()
        if (loop, scope) not in self._waiting:
            loop.call_soon(self._begin, loop, scope, _TURNS)
        self._waiting.setdefault((loop, scope), []).append((asks, future))
        return await future

    def _begin(self, loop: asyncio.AbstractEventLoop, scope: Scope, turns: int) -> None:
        if turns:  # tasks that have begun other tasks need a turn of the loop for each
            loop.call_soon(self._begin, loop, scope, turns - 1)
            return
        self._read_for(loop, scope, self._waiting.pop((loop, scope)))

    def _read_for(self, loop: asyncio.AbstractEventLoop, scope: Scope, waiting: Sequence[_Waiting]) -> None:
        """Read once what several ask. When that fails, read what each asks alone."""
        asks = [AskRevision(), *(ask for some, _ in waiting for ask in some)]
        task = loop.create_task(self.inner.read(scope, asks))
        self._running.add(task)

        def answer(task: asyncio.Task[list[Any]]) -> None:
            self._running.discard(task)
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            if error is not None and len(waiting) > 1:
                for one in waiting:
                    self._read_for(loop, scope, [one])
                return
            revision, *found = [0] if error else task.result()
            held = self._standing.get(scope, {}) if error is None else {}
            for ask in [ask for ask, (seen, _) in held.items() if seen != revision]:
                del held[ask]
            answers = iter(found)
            for some, future in waiting:
                mine = [next(answers) for _ in some] if error is None else []
                if not future.done():
                    future.set_result((revision, mine)) if error is None else future.set_exception(error)

        task.add_done_callback(answer)

    def _forget(self, scope: Scope, which: Callable[[Ask[Any]], bool] = lambda ask: True) -> None:
        """Forget standing answers of a scope, since something was written that they are about."""
        self._writes += 1
        held = self._standing.get(scope, {})
        for ask in list(filter(which, held)):
            del held[ask]

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
        """See ``Store.append``."""
        try:
            return await self.inner.append(scope, session, turns, delta=delta, jobs=jobs, events=events, close=close)
        finally:
            self._forget(scope)

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
        """See ``Store.commit``."""
        try:
            return await self.inner.commit(
                scope, delta, expect=expect, jobs=jobs, events=events, close=close, holder=holder
            )
        finally:
            self._forget(scope)

    async def put_session(self, scope: Scope, session: Session, jobs: Sequence[Job] = ()) -> None:
        """See ``Store.put_session``."""
        await self.inner.put_session(scope, session, jobs)

    async def log(self, scope: Scope, event: Event) -> None:
        """See ``Store.log``."""
        try:
            await self.inner.log(scope, event)
        finally:
            self._forget(scope, lambda ask: isinstance(ask, AskEvents) and ask.kind == event.kind)

    async def index(self, scope: Scope, vectors: Mapping[str, Vector], model: str) -> None:
        """See ``Store.index``."""
        try:
            await self.inner.index(scope, vectors, model)
        finally:
            derived = (AskUnindexed, AskEmbedder, AskVectors, AskCentres, AskSearch)
            self._forget(scope, lambda ask: isinstance(ask, derived))

    async def reindex(self, scope: Scope, *, vectors: bool) -> int:
        """See ``Store.reindex``."""
        try:
            return await self.inner.reindex(scope, vectors=vectors)
        finally:
            self._forget(scope)

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
        """See ``Store.lease``."""
        return await self.inner.lease(worker, now, seconds, scope=scope, kinds=kinds, limit=limit)

    async def renew(self, scope: Scope, job: Job, now: datetime, seconds: float) -> bool:
        """See ``Store.renew``."""
        return await self.inner.renew(scope, job, now, seconds)

    async def settle(self, scope: Scope, job: Job, *, retry_at: datetime | None, error: str) -> bool:
        """See ``Store.settle``."""
        return await self.inner.settle(scope, job, retry_at=retry_at, error=error)

    async def requeue(self, scope: Scope, id: str) -> bool:
        """See ``Store.requeue``."""
        return await self.inner.requeue(scope, id)

    async def silent(self, before: datetime, limit: int) -> list[tuple[Scope, Session]]:
        """See ``Store.silent``."""
        return await self.inner.silent(before, limit)

    async def due(self, now: datetime, limit: int) -> list[Scope]:
        """See ``Store.due``."""
        return await self.inner.due(now, limit)

    async def queue(self) -> Mapping[str, int]:
        """See ``Store.queue``."""
        return await self.inner.queue()

    async def users(self, *, after: Scope | None = None, limit: int = 1_000) -> list[Scope]:
        """See ``Store.users``."""
        return await self.inner.users(after=after, limit=limit)

    async def scrub(self, scope: Scope, needles: Sequence[str]) -> Mapping[str, int]:
        """See ``Store.scrub``."""
        return await self.inner.scrub(scope, needles)

    async def check(self) -> str:
        """See ``Store.check``."""
        return await self.inner.check()

    async def close(self) -> None:
        """See ``Store.close``."""
        await self.inner.close()
