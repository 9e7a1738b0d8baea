"""Values that programs keep: set, replaced, found, dropped for good."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.domain.records import Passage
from nyima.errors import Conflict
from nyima.frameworks.shelf import Shelf
from nyima.memory import Memory
from nyima.testing import FixedClock, HashEmbedder


@pytest.fixture
def shelf(memory: Memory) -> Shelf:
    return Shelf(memory, "own:")


async def texts(memory: Memory, *, retired: bool = False) -> list[str]:
    return [r.text for r in await memory.records(kinds=("passage",), retired=retired)]


async def test_a_value_that_is_set_again_replaces_and_is_kept_in_history(
    shelf: Shelf, memory: Memory, clock: FixedClock
) -> None:
    await shelf.put("w", "k", "old")
    clock.forward(days=1)
    await shelf.put("w", "k", "new")
    found = await shelf.get("w", "k")
    assert found is not None
    assert (found.body, found.provenance.origin.value) == ("new", "tool")
    assert await texts(memory, retired=True) == ["old", "new"]
    before = await memory.store.revision(memory.scope)
    await shelf.put("w", "k", "new")
    assert await memory.store.revision(memory.scope) == before, "the same value changes nothing"


async def test_a_place_and_a_key_are_both_looked_at(shelf: Shelf, memory: Memory) -> None:
    for where, key in (("a", "b"), ("a", "c"), ("b", "b")):
        await shelf.put(where, key, f"{where}{key}")
    await Shelf(memory, "other:").put("a", "b", "theirs")
    assert sorted(p.body for p in await shelf.all()) == ["ab", "ac", "bb"]
    assert await shelf.get("c", "b") is None


async def test_what_is_dropped_is_gone_with_what_it_was_before(
    shelf: Shelf, memory: Memory, db: Path, clock: FixedClock
) -> None:
    await shelf.put("w", "k", "zebrafish")
    clock.forward(days=1)
    await shelf.put("w", "k", "quagga")
    await shelf.put("w", "other", "stays")
    assert await shelf.drop("w", "k")
    assert not await shelf.drop("w", "k")
    assert await texts(memory, retired=True) == ["stays"]
    data = b"".join(p.read_bytes() for p in db.parent.glob(f"{db.name}*"))
    assert b"zebrafish" not in data
    assert b"quagga" not in data


async def test_of_several_at_once_the_last_stands_alone(shelf: Shelf) -> None:
    await asyncio.gather(*(shelf.put("w", "k", f"value {n}") for n in range(6)))
    assert len(await shelf.all()) == 1


async def test_another_program_that_writes_in_between_is_no_failure(db: Path, clock: FixedClock) -> None:
    async with (
        Memory.open(db, embedder="none", clock=clock) as one,
        Memory.open(db, embedder="none", clock=clock) as two,
    ):
        await asyncio.gather(*(Shelf(m, "own:").put("w", f"k{i}", str(i)) for i in range(4) for m in (one, two)))
        assert sorted(p.body for p in await Shelf(one, "own:").all()) == ["0", "1", "2", "3"]


class Restless:
    """A store in front of which somebody else always writes."""

    def __init__(self, memory: Memory) -> None:
        self.inner, self.tries = memory.store, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    async def commit(self, *_: object, **__: object) -> int:
        self.tries += 1
        raise Conflict("the memory is at another revision: read it again and retry")


async def test_after_five_conflicts_it_is_told(memory: Memory) -> None:
    restless = Restless(memory)
    memory.store = restless  # type: ignore[assignment]
    with pytest.raises(Conflict):
        await Shelf(memory, "own:").put("w", "k", "x")
    assert restless.tries == 5


async def test_what_fits_is_found_however_much_does_not(shelf: Shelf) -> None:
    for i in range(40):
        await shelf.put("tea", str(i), f"green tea, lot {i}")

    def fits(passage: Passage) -> bool:
        return int(passage.place) % 8 == 0

    found = await shelf.search("green tea", 5, fits)
    assert sorted(int(p.place) for p, _ in found) == [0, 8, 16, 24, 32]
    assert all(0.0 <= score <= 1.0 for _, score in found)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert await shelf.search("green tea", 5, lambda p: False) == []


names = st.text(st.characters(codec="utf-8"), max_size=8)


@given(st.dictionaries(st.tuples(names, names), st.text(max_size=10), max_size=5))
async def test_any_name_and_value_come_back(
    tmp_path_factory: pytest.TempPathFactory, held: dict[tuple[str, str], str]
) -> None:
    path = tmp_path_factory.mktemp("shelf") / "m.db"
    async with Memory.open(path, embedder=HashEmbedder(), clock=FixedClock()) as memory:
        shelf = Shelf(memory, "own:")
        seen: dict[tuple[str, str], str] = {}
        for (where, key), text in held.items():
            await shelf.put(where, key, text)
            seen[where.replace("\0", "\ufffd"), key.replace("\0", "\ufffd")] = text.replace("\0", "\ufffd")
        assert {(p.document.removeprefix("own:"), p.place): p.body for p in await shelf.all()} == seen
