"""The reference and SQLite keep one contract, and a random walk cannot tell them apart."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nyima.domain.changes import Add, Delta, Erase, Retire, Revise
from nyima.domain.conversation import Scope
from nyima.domain.ports import Probe, RecordFilter
from nyima.domain.storage import Store
from nyima.errors import Conflict, NotFound
from nyima.stores.sqlite.store import SqliteStore
from nyima.testing import HashEmbedder, MemoryStore
from nyima.testing.contract import ME, SESSION, T0, YOU, StoreContract, note, turn


class TestReference(StoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        return MemoryStore()


class TestSqlite(StoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        opened = SqliteStore(tmp_path / "contract.db")
        yield opened
        await opened.close()


class Walk(RuleBasedStateMachine):
    """Random writes against the reference and SQLite; after each, both must agree."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.pair: list[Store] = [MemoryStore(), SqliteStore(Path(self.folder.name) / "walk.db")]
        self.now = T0

    def both(self, work: object) -> None:
        outcomes = []
        for store in self.pair:
            try:
                outcomes.append(self.loop.run_until_complete(work(store)))  # type: ignore[operator]
            except (Conflict, NotFound) as error:
                outcomes.append(type(error).__name__)
        assert outcomes[0] == outcomes[1]

    scopes = st.sampled_from([ME, YOU])
    ids = st.sampled_from(["n1", "n2", "n3"])
    words = st.text("abc 猫ó", min_size=1, max_size=8)

    @rule(scope=scopes, id=st.sampled_from(["t1", "t2", "t3"]), text=words)
    def append(self, scope: Scope, id: str, text: str) -> None:
        self.now += timedelta(minutes=1)
        delta = Delta((Add(note(f"of-{id}", text, self.now, turns=(id,))),))
        self.both(lambda s: s.append(scope, SESSION, [turn(id, text, at=self.now)], delta=delta))

    @rule(scope=scopes, id=ids, text=words)
    def add(self, scope: Scope, id: str, text: str) -> None:
        self.now += timedelta(minutes=1)
        self.both(lambda s: s.commit(scope, Delta((Add(note(id, text, self.now)),))))

    @rule(scope=scopes, id=ids, new=st.sampled_from(["m1", "m2"]), text=words)
    def revise(self, scope: Scope, id: str, new: str, text: str) -> None:
        self.now += timedelta(minutes=1)
        self.both(lambda s: s.commit(scope, Delta((Revise(id, note(new, text, self.now), "x"),))))

    @rule(scope=scopes, id=ids)
    def retire(self, scope: Scope, id: str) -> None:
        self.now += timedelta(minutes=1)
        self.both(lambda s: s.commit(scope, Delta((Retire(id, self.now),))))

    @rule(scope=scopes, id=ids)
    def erase(self, scope: Scope, id: str) -> None:
        self.both(lambda s: s.commit(scope, Delta((Erase(id), Erase(f"of-{id}")))))

    @rule(scope=scopes)
    def embed(self, scope: Scope) -> None:
        async def work(store: Store) -> None:
            for record in await store.unindexed(scope, 100):
                (vector,) = await HashEmbedder().embed([record.text])
                await store.index(scope, {record.id: vector}, "hash")

        self.both(work)

    @invariant()
    def agree(self) -> None:
        for scope in (ME, YOU):
            self.both(lambda s, scope=scope: s.revision(scope))
            self.both(lambda s, scope=scope: s.turns(scope))
            self.both(lambda s, scope=scope: s.records(scope, RecordFilter(retired=True)))
            self.both(lambda s, scope=scope: s.records(scope, RecordFilter(as_of=T0 + timedelta(minutes=4))))
            self.both(lambda s, scope=scope: self._found(s, scope))

    async def _found(self, store: Store, scope: Scope) -> tuple[set[str], dict[str, float]]:
        lexical = {h.id for h in await store.search(scope, Probe(words="a abc 猫ó cab"))}
        (vector,) = await HashEmbedder().embed(["abc"])
        return lexical, {h.id: round(h.score, 4) for h in await store.search(scope, Probe(vector=vector))}

    def teardown(self) -> None:
        for store in self.pair:
            self.loop.run_until_complete(store.close())
        self.loop.close()
        self.folder.cleanup()


Walk.TestCase.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestWalk = Walk.TestCase

_WRITER = """
import asyncio, sys
from pathlib import Path
from nyima.stores.sqlite.store import SqliteStore
from nyima.domain.changes import Add, Delta
from nyima.testing.contract import ME, SESSION, note, turn
async def main():
    store = SqliteStore(Path(sys.argv[1]))
    start = len(await store.turns(ME))
    for i in range(start, start + 100000):
        id = f"t{i:06d}"
        await store.append(ME, SESSION, [turn(id, f"words {i}")], delta=Delta((Add(note("n" + id, f"words {i}")),)))
        print(id, flush=True)
asyncio.run(main())
"""


async def test_what_was_acknowledged_survives_kill_minus_nine(tmp_path: Path) -> None:
    path = tmp_path / "killed.db"
    acknowledged: list[str] = []
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        acknowledged.append(child.stdout.readline().strip())
        time.sleep(0.15)
        os.kill(child.pid, signal.SIGKILL)
        rest = child.stdout.read()
        acknowledged += [line for line in rest.split("\n")[:-1] if line]
        child.wait()
        child.stdout.close()
    store = SqliteStore(path)
    turns = {t.id for t in await store.turns(ME)}
    records = {r.id for r in await store.records(ME, RecordFilter())}
    assert await store.check() == "ok"
    await store.close()
    assert len(acknowledged) > 4
    assert set(acknowledged) <= turns
    assert records == {"n" + t for t in turns}


async def test_several_processes_may_write_one_file(tmp_path: Path) -> None:
    first, second = SqliteStore(tmp_path / "shared.db"), SqliteStore(tmp_path / "shared.db")

    async def write(store: Store, name: str) -> None:
        for i in range(20):
            await store.append(ME, SESSION, [turn(f"{name}{i}")])

    await asyncio.gather(write(first, "a"), write(second, "b"))
    turns = await first.turns(ME)
    assert sorted(t.position for t in turns) == list(range(40))
    (vector,) = await HashEmbedder().embed(["tea"])
    await first.commit(ME, Delta((Add(note("n1", "tea")),)))
    await first.index(ME, {"n1": vector}, "hash")
    assert [h.id for h in await second.search(ME, Probe(vector=vector))] == ["n1"]
    await second.commit(ME, Delta((Retire("n1", T0),)))
    assert await first.search(ME, Probe(vector=vector)) == []
    await first.close()
    await second.close()


async def test_reopening_finds_everything(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "again.db")
    (stored,) = await store.append(ME, SESSION, [turn("t1", "tea")], delta=Delta((Add(note("n1", "tea")),)))
    await store.close()
    store = SqliteStore(tmp_path / "again.db")
    assert await store.turns(ME) == [stored]
    assert [h.id for h in await store.search(ME, Probe(words="tea"))] == ["n1"]
    assert (await store.sessions(ME))[0] == replace(SESSION)
    await store.close()
