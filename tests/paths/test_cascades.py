"""What rests on a change follows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nyima.domain.changes import Add, Delta
from nyima.domain.evidence import Budget
from nyima.domain.records import Claim, Interval, Provenance, Summary
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory, Said
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from support import Agrees, reading

T0 = datetime(2026, 5, 2, 10, tzinfo=UTC)


@pytest.fixture
async def memory(db: Path, clock: FixedClock, embedder: HashEmbedder) -> AsyncIterator[Memory]:
    clock.at = T0
    async with Memory.open(db, embedder=embedder, clock=clock) as opened:
        yield opened


async def say(memory: Memory, clock: FixedClock, *texts: str) -> list[str]:
    turns: list[str] = []
    for text in texts:
        stored = await memory.remember([Said(text)], session="s", owed=False)
        turns.append(stored.turns[0].id)
        clock.forward(hours=1)
    return turns


async def story(memory: Memory, clock: FixedClock) -> tuple[Claim, Claim, Claim]:
    """The office, the train that rests on it, and the coffee that rests on the train."""
    office, train, coffee = await say(
        memory, clock, "My office is in Sintra.", "I take the 8:10.", "I drink coffee at 7:50."
    )
    a = await memory.state(Statement("office", "located in", "Sintra", turn=office))
    b = await memory.state(Statement("user", "takes", "8:10 train", depends_on=(a.id,), turn=train))
    c = await memory.state(Statement("user", "drinks coffee at", "7:50", depends_on=(b.id,), turn=coffee))
    return a, b, c


async def stale(memory: Memory) -> set[str]:
    return {r.text for r in await memory.records(kinds=("claim",)) if r.stale}


async def test_a_change_makes_what_rests_on_it_uncertain_to_the_end(memory: Memory, clock: FixedClock) -> None:
    a, _, _ = await story(memory, clock)
    await memory.revise(a.id, "Cascais")
    assert await stale(memory) == {"user takes: 8:10 train", "user drinks coffee at: 7:50"}
    found = {e.text: e for e in (await memory.recall("train coffee office", Budget(10, 1_000))).kept}
    assert found["user takes: 8:10 train"].stale is not None
    assert found["User: I take the 8:10."].stale is not None
    assert found["User: My office is in Sintra."].ended == ("Sintra",)
    assert any("Cascais" in text and e.stale is None for text, e in found.items())


async def test_undo_makes_it_certain_again(memory: Memory, clock: FixedClock) -> None:
    a, _, _ = await story(memory, clock)
    await memory.retire(a.id)
    assert len(await stale(memory)) == 2
    clock.forward(minutes=1)
    await memory.undo()
    assert await stale(memory) == set()
    clock.forward(minutes=1)
    (again,) = [r for r in await memory.records(kinds=("claim",)) if "office" in r.text]
    await memory.revise(again.id, "Almada")
    assert len(await stale(memory)) == 2, "what came back is still what the rest rests on"


async def test_before_the_change_it_was_certain(memory: Memory, clock: FixedClock) -> None:
    a, _, _ = await story(memory, clock)
    before = clock.now()
    clock.forward(days=1)
    await memory.retire(a.id)
    found = (await memory.recall("8:10 train", Budget(10, 1_000), as_of=before)).kept
    assert not [e for e in found if e.stale is not None or e.ended]


async def test_a_new_value_makes_an_uncertain_one_certain(memory: Memory, clock: FixedClock) -> None:
    a, b, _ = await story(memory, clock)
    await memory.revise(a.id, "Cascais")
    (now,) = [r for r in await memory.records(kinds=("claim",)) if r.supersedes == b.id]
    await memory.revise(now.id, "9:05 train")
    assert "user takes: 9:05 train" not in await stale(memory)
    assert any(r.text == "user takes: 9:05 train" for r in await memory.records(kinds=("claim",)))


async def test_a_running_summary_is_derived_again(memory: Memory, clock: FixedClock) -> None:
    made = Provenance(turns=("t",), writer="recursive")
    body = "The user lives in Porto. The user drives a Skoda. The user has a cat."
    text = Summary(
        id="s1", provenance=made, valid=Interval(T0), recorded=Interval(T0), level="running", covers=("s",), body=body
    )
    await memory.store.commit(memory.scope, Delta((Add(text),)))
    city = await memory.state(Statement("user", "lives in", "Porto"))
    car = await memory.state(Statement("user", "drives", "Skoda"))
    clock.forward(hours=1)
    await memory.revise(city.id, "Braga")
    (uncertain,) = await memory.records(kinds=("summary",))
    assert uncertain.stale
    await memory.drain()
    (mended,) = await memory.records(kinds=("summary",))
    assert mended.text == "The user lives in Braga. The user drives a Skoda. The user has a cat."
    clock.forward(hours=1)
    await memory.retire(car.id)
    await memory.drain()
    (mended,) = await memory.records(kinds=("summary",))
    assert mended.text == "The user lives in Braga. The user has a cat."
    assert not mended.stale


async def test_an_erase_takes_what_rests_on_it_and_leaves_the_rest(memory: Memory, clock: FixedClock) -> None:
    a, _, _ = await story(memory, clock)
    await memory.state(Statement("user", "has", "cat"))
    receipt = await memory.forget(a.id)
    assert receipt.erased["claim"] == 3
    assert receipt.bytes_found == 0
    left = [r.text for r in await memory.records(kinds=("claim",), retired=True)]
    assert left == ["user has: cat"]
    names = {r.text for r in await memory.records(kinds=("entity",), retired=True)}
    assert not {n for n in names if "Sintra" in n}


READ = reading(
    Bruno=[("dog", "name", "Bruno")], Otto=[("friend Otto", "lives in", "Linz")], Porto=[("user", "lives in", "Porto")]
)


@pytest.fixture
async def reader(db: Path, clock: FixedClock, embedder: HashEmbedder) -> AsyncIterator[Memory]:
    clock.at = T0
    model = ScriptedModel({"read": [READ], "note": ['{"context": "", "knowledge": "Something was said."}']})
    async with Memory.open(db, embedder=embedder, clock=clock, model=model, verifier=Agrees("x")) as opened:
        yield opened


async def test_what_another_turn_still_says_is_derived_again(reader: Memory, clock: FixedClock) -> None:
    first = await reader.remember([Said("My dog is called Bruno.")], session="s")
    await reader.drain()
    clock.forward(hours=1)
    await reader.remember([Said("By the way, my dog is called Bruno, he likes snow.")], session="s")
    await reader.drain()
    episode = f"e-{first.turns[0].id}"
    clock.forward(hours=1)
    receipt = await reader.forget(episode)
    assert receipt.rederived >= 1
    await reader.drain()
    now = [r.text for r in await reader.records(kinds=("claim",))]
    assert any("Bruno" in text for text in now)
    assert all(first.turns[0].id not in r.provenance.turns for r in await reader.records(retired=True))


async def test_forgetting_a_person_takes_what_is_said_of_them(reader: Memory, clock: FixedClock) -> None:
    for text in ("My friend Otto lives in Linz.", "I live in Porto."):
        await reader.remember([Said(text)], session="s")
        await reader.drain()
        clock.forward(hours=1)
    (otto,) = [r for r in await reader.records(kinds=("entity",)) if "Otto" in r.text]
    receipt = await reader.forget(otto.id)
    assert receipt.bytes_found == 0
    every = " ".join([r.text for r in await reader.records(retired=True)] + [t.text for t in await reader.turns()])
    assert "Otto" not in every
    assert "Linz" not in every
    assert "Porto" in every


async def test_mending_a_summary_invents_nothing(memory: Memory, clock: FixedClock) -> None:
    made = Provenance(turns=("t",), writer="recursive")
    body = "The user lives in Porto. The user was born in Porto. The user's sister Ida lives in Porto."
    text = Summary(
        id="s1", provenance=made, valid=Interval(T0), recorded=Interval(T0), level="running", covers=("s",), body=body
    )
    await memory.store.commit(memory.scope, Delta((Add(text),)))
    city = await memory.state(Statement("user", "lives in", "Porto"))
    await memory.state(Statement("sister Ida", "lives in", "Porto"))
    clock.forward(hours=1)
    await memory.revise(city.id, "Lisbon")
    await memory.drain()
    (mended,) = await memory.records(kinds=("summary",))
    assert mended.text == body.replace("lives in Porto", "lives in Lisbon", 1)


async def test_what_the_user_stated_stays_when_its_ground_is_erased(memory: Memory, clock: FixedClock) -> None:
    (office,) = await say(memory, clock, "My office is in Sintra.")
    ground = await memory.state(Statement("office", "located in", "Sintra", turn=office))
    own = await memory.state(Statement("user", "commutes by", "train", depends_on=(ground.id,)))
    clock.forward(hours=1)
    receipt = await memory.forget(ground.id)
    assert receipt.bytes_found == 0
    (left,) = await memory.records(kinds=("claim",))
    assert isinstance(left, Claim)
    assert (left.text, left.stale, left.depends_on) == (own.text, True, ())


@pytest.mark.parametrize(
    ("told", "query", "stays"),
    [
        (("My PIN for the gym locker is 4471.", "My locker is number 12."), "PIN for the gym locker", "number 12"),
        (
            ("My old phone number was 0664 555 0172.", "Dad's phone number ends in 0110."),
            "my old phone number",
            "0110",
        ),
    ],
)
async def test_a_query_forgets_what_says_all_of_it(
    memory: Memory, clock: FixedClock, told: tuple[str, str], query: str, stays: str
) -> None:
    for text in told:
        await memory.remember([Said(text)], session="s")
        clock.forward(hours=1)
    await memory.drain()
    await memory.forget(query=query)
    (left,) = await memory.records(kinds=("episode",))
    assert stays in left.text


async def test_a_query_with_a_name_forgets_all_of_that_name(memory: Memory, clock: FixedClock) -> None:
    for text in ("My sister Ida lives in Faro.", "Ida bought a boat.", "My sister's cat is black."):
        await memory.remember([Said(text)], session="s")
        clock.forward(hours=1)
    await memory.drain()
    await memory.forget(query="my sister Ida")
    left = [r.text for r in await memory.records(kinds=("episode",))]
    assert not [text for text in left if "Faro" in text]
