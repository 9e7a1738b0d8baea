"""One of each that can be added in one file: loaded from outside ``src``, as another
distribution's are."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nyima.app.registry import registry
from nyima.domain.ports import Store
from nyima.errors import ConfigError
from nyima.memory import Memory
from nyima.testing import FixedClock, HashEmbedder
from nyima.testing.contract import StoreContract

HERE = Path(__file__).parent
ENTRY_POINTS = """[nyima.mechanisms]
diary = diary:MECHANISM
newest = newest:MECHANISM

[nyima.commands]
hello = hello_command:add_to
"""


@pytest.fixture
def distribution(tmp_path: Path) -> Path:
    """A folder with what an installed distribution has, which names the modules beside this test."""
    info = tmp_path / "packages" / "nyima_examples-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nyima-examples\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return info.parent


@pytest.fixture
def installed(distribution: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(distribution))
    monkeypatch.syspath_prepend(str(HERE))
    registry.cache_clear()
    yield
    registry.cache_clear()


def test_without_the_distribution_its_recipes_are_unknown(db: Path) -> None:
    with pytest.raises(ConfigError, match="no recipe 'diary'"), Memory.open(db, recipe="diary").sync:
        pass


@pytest.mark.usefixtures("installed")
async def test_a_writer_works_when_a_session_ends_and_its_source_finds_the_line(db: Path, clock: FixedClock) -> None:
    async with Memory.open(db, recipe="diary", embedder="none", clock=clock) as memory:
        await memory.remember("We adopted a cat called Miso.", session="monday")
        assert not (await memory.recall("Miso")).kept
        await memory.end_session("monday")
        await memory.drain()
        (found,) = (await memory.recall("Miso")).kept
        assert found.record.id == "diary-monday"
        assert found.record.text.endswith("We adopted a cat called Miso.")


@pytest.mark.usefixtures("installed")
async def test_an_erase_owes_the_writer_another_line(db: Path, clock: FixedClock) -> None:
    async with Memory.open(db, recipe="diary", embedder="none", clock=clock) as memory:
        first = await memory.remember("The code of the door is 4711.", session="monday")
        await memory.remember("We adopted a cat called Miso.", session="monday")
        await memory.end_session("monday")
        await memory.drain()
        await memory.forget(*first.records)
        await memory.drain()
        (found,) = (await memory.recall("Miso")).kept
        assert "4711" not in found.record.text


@pytest.mark.usefixtures("installed")
async def test_a_judge_decides_what_comes_first(db: Path, clock: FixedClock) -> None:
    async with Memory.open(db, recipe="newest", embedder="none", clock=clock) as memory:
        for day, place in enumerate(("Bern", "Turin", "Porto")):
            await memory.remember(f"We moved to {place}, into a house.", session=f"s{day}")
            clock.at = clock.at.replace(day=clock.at.day + 1)
        found = (await memory.recall("Which place, Bern, into a house?")).kept
        assert "Porto" in found[0].text


async def test_a_source_of_the_users_own_is_asked(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    from weather import WEATHER

    async with Memory.open(db, embedder="none") as memory:
        memory.use(WEATHER)
        found = (await memory.recall("What is the weather in Moab?")).kept
        assert [piece.text for piece in found] == ["Today in Moab: dry and hot."]


def test_a_command_is_one_of_nyimas(distribution: Path) -> None:
    path = os.pathsep.join([str(distribution), str(HERE), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "-m", "nyima", "hello"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )
    assert ran.stdout == "hello from another distribution\n"


class TestCountedStore(StoreContract):
    @pytest.fixture
    async def store(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
        monkeypatch.syspath_prepend(str(HERE))
        from counted_store import CountedStore

        return CountedStore()


async def test_a_memory_works_on_another_store(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    from counted_store import CountedStore

    store = CountedStore()
    other = Memory(replace(memory.parts, store=store, embedder=HashEmbedder()))
    fact = await other.set_fact("city", "Porto")
    assert store.committed["user"] >= 1
    assert fact.id in {record.id for record in await other.records()}
