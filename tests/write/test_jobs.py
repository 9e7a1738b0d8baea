"""Work that is owed, when workers die, come late or get in each other's way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from nyima.app.registry import registry
from nyima.domain.changes import Add, Delta, Erase
from nyima.domain.conversation import Role, Session
from nyima.domain.mechanism import Mechanism, Registry, When, Writer
from nyima.domain.ports import Job, RecordFilter, Vector
from nyima.domain.records import Provenance
from nyima.domain.roles import Written
from nyima.errors import Conflict
from nyima.memory import Memory, Said
from nyima.testing import FixedClock, HashEmbedder, MemoryStore
from nyima.testing.contract import ME, T0, leased, note, turn
from nyima.write.desk import Desk
from nyima.write.jobs import Ingest

OWED = Job("gate-t1", "gate", "t1")


class Writes:
    """A writer that does what it is told."""

    def __init__(self, work: Callable[[], Written]) -> None:
        self.work = work

    async def write(self, scope: object, job: Job) -> Written:
        del scope, job
        return self.work()


def with_writer(writer: Any) -> Registry:
    """The mechanisms, with this writer in the place of the gate's."""
    gate = Writer("gate", When.TURN, lambda desk, scope, job: writer.write(scope, job))
    others = tuple(m for m in registry().mechanisms if m.name != "gate")
    return Registry((Mechanism("gate", "", writers=(gate,)), *others))


async def ingest(work: Callable[[], Written]) -> tuple[Ingest, MemoryStore, FixedClock]:
    store, clock = MemoryStore(), FixedClock(T0)
    await store.append(ME, Session("s1", T0), [turn("t1")], jobs=[OWED])
    return Ingest(store, clock, with_writer(Writes(work)), lambda recipe: Desk(store, None, clock)), store, clock


async def test_conflicts_never_park_a_job() -> None:
    def busy() -> Written:
        raise Conflict("the memory is at revision 451, not 450")

    at_work, store, clock = await ingest(busy)
    for _ in range(30):
        await at_work.work(ME, "w")
        clock.forward(minutes=5)
    (job,) = await store.jobs(ME)
    assert (job.state, job.attempts) == ("queued", 4), "one failure of its own is still allowed"
    at_work = replace(at_work, registry=with_writer(Writes(lambda: Written(Delta()))))
    assert await at_work.work(ME, "w") is not None
    assert [j.state for j in await store.jobs(ME)] == ["done"]


async def test_a_job_that_kills_its_workers_is_given_up() -> None:
    at_work, store, clock = await ingest(lambda: Written(Delta()))
    for _ in range(5):  # five workers take it and never come back
        assert await leased(store, ME, "dead", clock.now(), 60) is not None
        clock.forward(minutes=2)
    await at_work.work(ME, "w")
    (job,) = await store.jobs(ME)
    assert job.state == "parked"
    assert "ended before" in job.error


async def test_what_a_late_worker_made_is_dropped() -> None:
    at_work, store, clock = await ingest(lambda: Written(Delta()))

    def slow() -> Written:
        async def other() -> None:
            clock.forward(minutes=2)
            taken = await leased(store, ME, "other", clock.now(), 60)
            assert taken is not None
            await store.commit(ME, Delta(), close=taken.id, holder=taken.holder)

        coroutine = other()
        with contextlib.suppress(StopIteration):
            coroutine.send(None)
        return Written(Delta((Add(note("n1", "tea", turns=("t1",))),)))

    late = replace(at_work, registry=with_writer(Writes(slow)))
    await late.work(ME, "w")
    assert [j.state for j in await store.jobs(ME)] == ["done"]
    assert await store.records(ME, RecordFilter()) == [], "the other worker has done it"


class Counts(HashEmbedder):
    """Counts the texts that it embeds, and lets others run meanwhile."""

    texts = 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        Counts.texts += len(texts)
        await asyncio.sleep(0.01)
        return await super().embed(texts)


async def test_many_recalls_at_once_embed_each_text_once(tmp_path: object) -> None:
    Counts.texts = 0
    async with Memory.open(f"{tmp_path}/m.db", embedder=Counts(), clock=FixedClock()) as memory:
        await memory.remember([Said(f"I bought lamp number {i}.", Role.USER) for i in range(200)], owed=False)
        await asyncio.gather(*(memory.recall(f"lamp {i}") for i in range(30)))
    assert Counts.texts <= 200 + 30


class Slow:
    """A writer that works for minutes."""

    def __init__(self, store: MemoryStore, clock: FixedClock) -> None:
        self.store, self.clock = store, clock

    async def write(self, scope: object, job: Job) -> Written:
        for _ in range(5):
            self.clock.forward(seconds=50)
            await asyncio.sleep(0.05)
            assert await leased(self.store, ME, "other", self.clock.now(), 60) is None
        return Written(Delta((Add(note("n1", "tea", turns=("t1",))),)))


async def test_a_lease_is_renewed_while_the_work_runs() -> None:
    at_work, store, clock = await ingest(lambda: Written(Delta()))
    slow = Slow(store, clock)
    await replace(at_work, registry=with_writer(slow), renew_seconds=0.001).work(ME, "w")
    assert [j.state for j in await store.jobs(ME)] == ["done"]
    assert [r.id for r in await store.records(ME, RecordFilter())] == ["n1"]


async def test_a_record_that_does_not_say_what_it_was_made_of_is_refused() -> None:
    secret = replace(note("n1", "The code is 4711."), provenance=Provenance(writer="gate"))
    at_work, store, _ = await ingest(lambda: Written(Delta((Add(secret),))))
    tried = await at_work.drain(ME, "w", vectors=False)
    (job,) = await store.jobs(ME)
    assert "no erase would find it" in job.error
    assert tried == {"done": 0, "waiting": 1, "parked": 0}, "what failed was not done"
    assert not await store.records(ME, RecordFilter(retired=True))


async def test_a_writer_that_returns_something_else_is_told_so() -> None:
    at_work, store, _ = await ingest(lambda: None)  # type: ignore[arg-type, return-value]
    await at_work.work(ME, "w")
    assert "the writer 'gate' returned NoneType: return a Written" in (await store.jobs(ME))[0].error


async def test_what_was_made_of_something_that_was_erased_meanwhile_is_made_again() -> None:
    made: list[str] = []

    class Reads:
        async def write(self, scope: object, job: Job) -> Written:
            made.append(job.subject)
            if len(made) == 1:
                await store.commit(ME, Delta((Erase("t9", "turn"),), "forget"))
            return Written(Delta((Add(note(f"n{len(made)}", "tea", turns=("t1",))),)))

    at_work, store, _ = await ingest(lambda: Written(Delta()))
    job = await replace(at_work, registry=with_writer(Reads())).work(ME, "w")
    assert job is not None
    assert job.state == "done"
    assert len(made) == 2
    assert [r.id for r in await store.records(ME, RecordFilter())] == ["n2"]
