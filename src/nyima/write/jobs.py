"""The write path: the journal first, then jobs, then writers, then derived vectors."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from nyima.change.cascade import Cascade
from nyima.change.undo import UNDONE
from nyima.domain.changes import Add, Delta, Revise, merge
from nyima.domain.conversation import Role, Scope, Session, Turn
from nyima.domain.evidence import Notes
from nyima.domain.mechanism import Registry, When, Writer
from nyima.domain.ports import Clock, Embedder, Event, Job, follow_up
from nyima.domain.recipe import Recipe
from nyima.domain.records import Claim, Episode, Note
from nyima.domain.roles import Written
from nyima.domain.storage import Store
from nyima.errors import ConfigError, Conflict, LostLease, ModelError, NotFound, NyimaError, StoreError
from nyima.language.intent import worth_keeping
from nyima.language.words import own_words
from nyima.prompts.prompt import version
from nyima.read.embedding import index_pending
from nyima.write.claims import quote_of
from nyima.write.desk import Desk, notes_event

__all__ = ["Ingest", "JobProgress", "settled", "turn_id"]

_LEASE_SECONDS = 60.0
_MOST_ATTEMPTS = 5
_MOST_UNREACHABLE = 20
_BACKOFF_SECONDS = (2.0, 15.0, 60.0, 300.0)
_MOST_PAUSE = 300.0
_UNREACHABLE_SECONDS = 20.0

JobProgress = Callable[[str, int], None]


def turn_id(*parts: str) -> str:
    """An id for a turn: from its source when there are parts, else a new one."""
    if parts:
        return "t-" + hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()[:20]
    return "t-" + uuid.uuid4().hex[:20]


def _checked(written: object, writer: Writer, subject: str) -> Written:
    """What a writer made of a turn or session. Raises ConfigError when an erase could not find what
    it made a record of, or could not have it made again."""
    if not isinstance(written, Written):
        raise ConfigError(f"the writer {writer.name!r} returned {type(written).__name__}: return a Written")
    for change in written.delta.changes:
        record = change.record if isinstance(change, Add) else change.successor if isinstance(change, Revise) else None
        made = record.provenance if isinstance(record, Note | Episode | Claim) else None
        by_hand = isinstance(change, Revise) and made is not None and made.writer == "user"
        if record is not None and made is not None and not (made.turns or made.records or by_hand):
            raise ConfigError(
                f"the writer {writer.name!r} made the record {record.id!r} and does not say of what, so that no erase"
                " would find it: give Provenance(turns=…)"
            )
        if isinstance(change, Add) and writer.when is When.SESSION_END:
            again = tuple(writer.again(change.record))
            if again and subject not in again:
                raise ConfigError(
                    f"the writer {writer.name!r} works on sessions, and its `again` names {again[0]!r} for the record"
                    f" {change.record.id!r}: return the ids of the sessions that the record was made of"
                )
    return written


def _all(writer: Writer) -> bool:
    del writer
    return True


def settled(said: Turn, notes: Notes) -> Notes:
    """The notes with the decision corrected by what can be seen in the turn: what states a claim is
    kept, and so is a statement in the first person; a plain question is not. What is not kept states and
    ends nothing: a small model fills its lists from habit."""
    own = own_words(said.text)
    stated = sum(quote_of(claim.value, replace(said, text=own)) is not None for claim in notes.claims)
    if not worth_keeping(own, notes.remember, stated):
        return replace(notes, remember=False, claims=(), outdated=())
    return replace(notes, remember=True)


@dataclass(frozen=True, slots=True)
class Ingest:
    """Takes turns in and works off what they owe."""

    store: Store
    clock: Clock
    registry: Registry
    desk: Callable[[Recipe], Desk]
    embedder: Embedder | None = None
    silence: timedelta = timedelta(hours=1)
    renew_seconds: float = 20.0

    async def hear(
        self,
        scope: Scope,
        session: Session,
        turns: Sequence[Turn],
        recipe: Recipe,
        *,
        owed: Callable[[Writer], bool] = _all,
        extra: Delta | None = None,
    ) -> list[Turn]:
        """Make turns durable, with what is made of them at once and the jobs of those of the
        recipe's writers that are ``owed``, for each turn of the user."""
        writers = [w for w in self.registry.writers(recipe, When.TURN) if owed(w)]
        heard = [t for t in turns if t.role is Role.USER and t.text.strip()]
        jobs = [follow_up(writer.name, turn.id, recipe.name) for turn in heard for writer in writers]
        delta = merge((extra or Delta(), self.at_once(turns, recipe)))
        return await self.store.append(scope, session, turns, delta=delta, jobs=jobs)

    def at_once(self, turns: Sequence[Turn], recipe: Recipe) -> Delta:
        """What is made of turns in the transaction that stores them."""
        now = self.clock.now()
        return merge(writer.at_once(turns, now) for writer in self.registry.writers(recipe, When.NOW))

    async def answered(
        self,
        scope: Scope,
        session: Session,
        said: Turn,
        reply: Turn,
        notes: Notes,
        recipe: Recipe,
        logged: Sequence[Event],
        shown: Sequence[Claim] = (),
    ) -> None:
        """Store a reply with its notes and the events that are ``logged`` with it. ``shown`` are the
        claims that the notes' numbers mean. The job that was opened with the user's turn is closed,
        unless it has claims to settle or the notes are missing: then it stays for the worker."""
        events = list(logged)
        jobs: list[Job] = []
        close = None
        if recipe.takes_notes and notes.complete:
            body: dict[str, object] = {
                "remember": notes.remember,
                "claims": [[c.who, c.what, c.value, c.status] for c in notes.claims],
                "outdated": [shown[n - 1].id for n in notes.outdated if 0 < n <= len(shown)],
                "known": [claim.id for claim in shown],
                "by": version("reply"),
            }
            events.append(notes_event(said, body, self.clock))
            # What was noted is settled by the turn's job; where there is nothing to settle, it is done.
            close = None if (notes.claims or notes.outdated) and "claims" in recipe.writers else f"claims-{said.id}"
            asked_for = self.desk(recipe).follow_ups(notes)
            jobs += [follow_up(name, said.id, recipe.name, suffix) for name, suffix in asked_for]
        delta = self.at_once([reply], recipe)
        with contextlib.suppress(NotFound):  # the user's turn was erased while the reply came
            await self.store.append(scope, session, [reply], delta=delta, jobs=jobs, events=events, close=close)

    async def end(
        self, scope: Scope, session: Session, recipe: Recipe, *, owed: Callable[[Writer], bool] = _all
    ) -> Session:
        """End a session; its writers (those that are ``owed``) become jobs. Ending twice
        changes nothing."""
        if session.ended is not None:
            return session
        turns = await self.store.turns(scope, session=session.id)
        ended = replace(session, ended=turns[-1].at if turns else self.clock.now())
        spoken = any(t.role is Role.USER and t.text.strip() for t in turns)
        writers = self.registry.writers(recipe, When.SESSION_END) if spoken else ()
        names = [w.name for w in writers if owed(w)]
        await self.store.put_session(scope, ended, [follow_up(name, session.id, recipe.name) for name in names])
        return ended

    async def end_silent(self, scope: Scope, recipe: Recipe, *, keep: str | None = None) -> int:
        """End the sessions whose last turn is older than the silence; how many."""
        count = 0
        for session in await self.store.sessions(scope, unended=True):
            if session.id == keep:
                continue
            last = await self.store.turns(scope, session=session.id, last=1)
            if self.clock.now() - (last[0].at if last else session.started) >= self.silence:
                await self.end(scope, session, recipe)
                count += 1
        return count

    async def work(self, scope: Scope, worker: str, kinds: Sequence[str] = ()) -> Job | None:
        """Do one job (of these kinds) that is due. A job that fails, or kills its worker, is put back
        with backoff, then parked; the error stays with it. While the work runs the lease is
        renewed. Returns the job, in the state ``done`` when it was done; None when none was due."""
        leased = await self.store.lease(worker, self.clock.now(), _LEASE_SECONDS, scope=scope, kinds=kinds)
        if not leased:
            return None
        ((_, job),) = leased
        if job.lapses >= _MOST_ATTEMPTS:
            await self.store.settle(scope, job, retry_at=None, error=job.error)
            return job
        renewing = asyncio.get_running_loop().create_task(self._renew(scope, job))
        try:
            await self._do(scope, job)
            job = replace(job, state="done")
        except LostLease:
            job = replace(job, state="done")  # another worker has it, or has done it: what was made here is dropped
        except NotFound:
            # What the job was about was erased: nothing is owed any more.
            with contextlib.suppress(NotFound, LostLease):
                await self.store.commit(scope, Delta(), close=job.id, holder=job.holder)
            job = replace(job, state="done")
        except asyncio.CancelledError:
            await self._put_back(scope, job, self.clock.now(), "")
            raise
        except Conflict as error:  # others wrote at the same time: nothing is wrong with the job
            pause = timedelta(seconds=min(2.0**job.attempts, _MOST_PAUSE))
            job = replace(job, attempts=min(job.attempts, _MOST_ATTEMPTS - 1))  # they alone never park it
            await self.store.settle(scope, job, retry_at=self.clock.now() + pause, error=str(error)[:500])
        except Exception as error:  # noqa: BLE001 - the job runner: any failure stays with its job
            await self._failed(scope, job, error)
        finally:
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewing
        return job

    async def _renew(self, scope: Scope, job: Job) -> None:
        """Hold the lease while the work runs, however long a model takes."""
        while True:
            await asyncio.sleep(self.renew_seconds)
            with contextlib.suppress(StoreError):  # the next try may succeed before the lease ends
                if not await self.store.renew(scope, job, self.clock.now(), _LEASE_SECONDS):
                    return

    async def _put_back(self, scope: Scope, job: Job, retry: datetime, error: str) -> None:
        """Put a job back without counting the attempt."""
        await self.store.settle(scope, replace(job, attempts=job.attempts - 1), retry_at=retry, error=error[:500])

    async def _failed(self, scope: Scope, job: Job, error: Exception) -> None:
        text = str(error) if isinstance(error, NyimaError) else f"{type(error).__name__}: {error}"
        now = self.clock.now()
        if isinstance(error, ModelError) and job.attempts < _MOST_UNREACHABLE:
            retry = now + timedelta(seconds=_UNREACHABLE_SECONDS * job.attempts)
        elif job.attempts < _MOST_ATTEMPTS:
            retry = now + timedelta(seconds=_BACKOFF_SECONDS[min(job.attempts, len(_BACKOFF_SECONDS)) - 1])
        else:
            retry = None
        await self.store.settle(scope, job, retry_at=retry, error=text[:500])

    async def _do(self, scope: Scope, job: Job) -> None:
        writer = self.registry.writer(job.kind)
        recipe = self.registry.recipe(job.recipe)
        undone, revision = await asyncio.gather(
            self.store.events(scope, UNDONE, ref=job.subject, limit=1), self.store.revision(scope)
        )
        if writer.when is When.TURN and undone:
            # The user took back what was noted of it.
            await self.store.commit(scope, Delta(), close=job.id, holder=job.holder)
            return
        assert writer.write is not None
        for attempt in range(5):
            written = _checked(await writer.write(self.desk(recipe), scope, job), writer, job.subject)
            try:
                written = await Cascade(self.store, self.clock, recipe, self.registry).follow(scope, written)
                await self.store.commit(
                    scope,
                    written.delta,
                    expect=revision if written.expect is None else written.expect,
                    jobs=written.jobs,
                    events=written.events,
                    close=job.id,
                    holder=job.holder,
                )
            except Conflict:
                if attempt == 4:
                    raise
                revision = await self.store.revision(scope)
            else:
                return

    async def drain(
        self,
        scope: Scope,
        worker: str,
        progress: JobProgress | None = None,
        kinds: Sequence[str] = (),
        *,
        most: int | None = None,
        vectors: bool = True,
    ) -> Mapping[str, int]:
        """Work until no job (of these kinds) is due or ``most`` were done, then make the missing
        ``vectors``. Returns how many jobs were done, are waiting for a retry, and are parked."""
        tried = done = 0
        while most is None or tried < most:
            if progress is not None:
                due = await self.store.jobs(scope, ("queued", "leased"))
                progress(due[0].kind if due else "", len(due))
            job = await self.work(scope, worker, kinds)
            if job is None:
                break
            tried += 1
            done += job.state == "done"
        if vectors:
            with contextlib.suppress(ModelError):  # they are derived: the next recall tries again, and says so
                await self.index(scope)
        left = await self.store.jobs(scope, ("queued", "leased", "parked"))
        parked = sum(job.state == "parked" for job in left)
        return {"done": done, "waiting": len(left) - parked, "parked": parked}

    async def index(self, scope: Scope) -> int:
        """Make the vectors that are missing."""
        return 0 if self.embedder is None else await index_pending(self.store, self.embedder, scope)
