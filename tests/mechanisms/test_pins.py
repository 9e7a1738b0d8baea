"""Pinned records."""

from __future__ import annotations

import pytest

from nyima.errors import NotFound
from nyima.mechanisms.pins import pin, pinned
from nyima.memory import Memory
from nyima.testing import FixedClock


async def ids(memory: Memory) -> list[str]:
    return [r.id for r in await pinned(memory)]


async def test_nothing_is_pinned_at_first(memory: Memory) -> None:
    await memory.set("pet", "cat")
    assert await pinned(memory) == []


async def test_what_is_pinned_comes_oldest_first_and_can_be_let_go(memory: Memory, clock: FixedClock) -> None:
    made = []
    for value in ("cat", "dog", "hen"):
        made.append((await memory.set(f"pet_{value}", value)).id)
        clock.forward(minutes=1)
    for id in (made[2], made[0]):
        await pin(memory, id)
        clock.forward(minutes=1)
    assert await ids(memory) == [made[0], made[2]]
    await pin(memory, made[0], on=False)
    assert await ids(memory) == [made[2]]
    clock.forward(minutes=1)
    await pin(memory, made[0])
    assert await ids(memory) == [made[0], made[2]], "the last word counts"


async def test_it_stays_pinned_through_every_revision(memory: Memory, clock: FixedClock) -> None:
    record = (await memory.set("pet", "cat")).id
    await pin(memory, record)
    for value in ("dog", "hen", "cow"):
        clock.forward(minutes=1)
        record = (await memory.revise(record, value)).id
    assert await ids(memory) == [record]
    clock.forward(minutes=1)
    await pin(memory, record, on=False)
    assert await ids(memory) == []


async def test_what_was_let_go_by_its_old_id_stays_free_when_revised(memory: Memory, clock: FixedClock) -> None:
    record = (await memory.set("pet", "cat")).id
    await pin(memory, record)
    clock.forward(minutes=1)
    await pin(memory, record, on=False)
    clock.forward(minutes=1)
    await memory.revise(record, "dog")
    assert await ids(memory) == []


async def test_what_holds_no_more_is_not_in_mind_and_what_is_erased_is_gone(memory: Memory, clock: FixedClock) -> None:
    one, two = (await memory.set("pet", "cat")).id, (await memory.set("car", "Skoda")).id
    for id in (one, two):
        await pin(memory, id)
        clock.forward(minutes=1)
    await memory.retire(one)
    assert await ids(memory) == [two]
    await memory.forget(two)
    assert await ids(memory) == []
    assert [e.refs for e in await memory.store.events(memory.scope, "pin")] == [(one,)]


async def test_what_does_not_exist_cannot_be_pinned(memory: Memory) -> None:
    with pytest.raises(NotFound):
        await pin(memory, "nothing")
    assert await memory.store.events(memory.scope, "pin") == []
