"""Recall where nothing can be written, and where not everything fits a prompt."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from nyima.domain.changes import Add, Delta
from nyima.domain.records import Claim, Interval, Provenance
from nyima.domain.storage import Batched
from nyima.errors import StoreReadOnly
from nyima.memory import Memory
from nyima.stores.sqlite.store import SqliteStore
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from support import answer, companion

NOBODY = 65_534


async def test_a_full_disk_recalls_without_a_trace_and_says_so(memory: Memory) -> None:
    await memory.remember("I like green tea.")
    await memory.drain()
    assert isinstance(memory.store, Batched)
    assert isinstance(memory.store.inner, SqliteStore)
    (pages,) = memory.store.inner._db.execute("PRAGMA page_count").fetchone()
    memory.store.inner._db.execute(f"PRAGMA max_page_count = {pages}")
    found = await memory.recall("green tea " * 2_000)
    assert "green tea" in found.kept[0].text
    assert "disk" in found.failed["trace"]


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's right to write anything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def medium() -> Iterator[Path]:
    """A folder that anybody may read and, when it is locked, nobody may write."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


async def test_a_medium_that_cannot_be_written_is_read(
    medium: Path, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(medium))
    path = medium / "memory.db"
    async with Memory.open(path, embedder=embedder) as memory:
        await memory.remember("I like green tea.")
        await memory.drain()
    path.chmod(0o444)
    medium.chmod(0o555)
    with as_nobody():
        async with Memory.open(path, embedder=embedder) as memory:
            found = await memory.recall("green tea")
            assert "green tea" in found.kept[0].text
            assert "cannot be written" in found.failed["trace"]
            with pytest.raises(StoreReadOnly):
                await memory.remember("I like coffee.")


async def test_of_forty_facts_each_is_in_the_prompt_or_can_be_recalled(db: Path, clock: FixedClock) -> None:
    """Of 40 facts 14 were nowhere: cut from the system message, and kept out of the recall."""
    model = ScriptedModel({"chat": [answer("ok")]})
    things = [f"word{i:02d}" for i in range(40)]
    async with companion(db, model, clock=clock) as nyima:
        memory = nyima.memory
        facts = [
            Claim(
                id=f"f-{thing}", provenance=Provenance(writer="user"),
                valid=Interval(clock.now() + timedelta(seconds=i)), recorded=Interval(clock.now()),
                subject="user", attribute=f"thing {thing}", value=f"the {thing} of my collection",
            )
            for i, thing in enumerate(things)
        ]  # fmt: skip
        await memory.store.commit(memory.scope, Delta(tuple(map(Add, facts)), "user"))
        clock.forward(minutes=5)
        nowhere = []
        for thing in things:
            await nyima.reply(f"What is thing {thing}?")
            request = model.asked("chat")[-1]
            if f"the {thing} of" not in request.system and f"the {thing} of" not in request.last:
                nowhere.append(thing)
        system = model.asked("chat")[0].system
    assert nowhere == []
    assert "the word00 of my collection" in system, "the oldest stand first: a name, a home"
    assert "[…]" not in system, "no fact is cut in its middle"
