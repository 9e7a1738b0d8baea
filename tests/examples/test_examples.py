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
from nyima.domain.mechanism import Mechanism, Registry, When, Writer
from nyima.domain.storage import Store
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
async def test_the_environment_chooses_a_recipe(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NYIMA_RECIPE", "diary")
    async with Memory.open(db, embedder="none") as memory:
        assert memory.recipe.name == "diary"


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
    fact = await other.set("city", "Porto")
    assert store.committed["user"] >= 1
    assert fact.id in {record.id for record in await other.records()}


BROKEN = """[nyima.commands]
broken = no_such_module:add_to

[nyima.mechanisms]
nothing = newest:NewestFirst
"""


def test_what_cannot_be_loaded_is_named_and_costs_no_other_command(distribution: Path) -> None:
    (distribution / "nyima_examples-1.0.dist-info" / "entry_points.txt").write_text(BROKEN)
    path = os.pathsep.join([str(distribution), str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "NYIMA_EMBEDDER": "none"}
    nyima = [sys.executable, "-m", "nyima"]
    version = subprocess.run([*nyima, "--version"], capture_output=True, text=True, env=environment, check=False)
    assert version.returncode == 0
    assert "the command 'broken' (no_such_module:add_to) is left out" in version.stderr
    recall = subprocess.run([*nyima, "recall", "cat"], capture_output=True, text=True, env=environment, check=False)
    assert "the mechanism 'nothing' (newest:NewestFirst) cannot be loaded" in recall.stderr
    assert "Traceback" not in recall.stderr


def test_a_name_is_given_once() -> None:
    twice = Mechanism("mine", "", judges={"scores": lambda kit: None})
    with pytest.raises(ConfigError, match="the judge 'scores' is given twice, by 'judge' and 'mine'"):
        Registry((*registry().mechanisms, twice))


def test_a_writer_of_jobs_has_something_to_do() -> None:
    with pytest.raises(ConfigError, match="give write="):
        Writer("idle", When.TURN)


def test_an_unknown_recipe_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    environment = {**os.environ, "NYIMA_CACHE": str(tmp_path / "cache"), "NYIMA_DB": str(tmp_path / "m.db")}
    ran = subprocess.run(
        [sys.executable, "-m", "nyima", "chat", "--recipe", "nosuch"],
        capture_output=True,
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert "there is no recipe 'nosuch'" in ran.stderr
    assert not (tmp_path / "cache").exists()
