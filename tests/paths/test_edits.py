"""What a statement may and may not change: tenses, several values, other people, denials."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nyima.change.cascade import Cascade
from nyima.domain.records import Entity, Relation
from nyima.memory import Memory, Said
from nyima.services.reminders import upcoming
from nyima.testing import FixedClock, HashEmbedder


@pytest.fixture
async def graph(db: Path, clock: FixedClock, embedder: HashEmbedder) -> AsyncIterator[Memory]:
    clock.at = datetime(2026, 5, 2, 10, tzinfo=UTC)
    async with Memory.open(db, recipe="graph", embedder=embedder, clock=clock) as opened:
        yield opened


async def holds(memory: Memory, clock: FixedClock, *texts: str) -> set[tuple[str, str]]:
    """Label and value of what is believed after these turns, each an hour apart."""
    for text in texts:
        await memory.remember([Said(text)], session="s")
        await memory.drain()
        clock.forward(hours=1)
    records = await memory.records(kinds=("claim", "entity"), retired=True)
    names = {r.id: r.name for r in records if isinstance(r, Entity)}
    return {
        (r.label, names[r.tail])
        for r in records
        if isinstance(r, Relation) and r.recorded.until is None and r.valid.until is None and not r.stale
    }


@pytest.mark.parametrize(
    ("before", "said", "still"),
    [
        ("I live in Porto.", "I lived in Berlin in 2005.", ("location", "Porto")),
        ("I work at Nortec.", "I worked at Siemens in 2010.", ("employer", "Nortec")),
        ("I am a nurse.", "I am a vegetarian.", ("job", "nurse")),
        ("I am a nurse.", "I was a waiter.", ("job", "nurse")),
        ("I am a nurse.", "I am a mother.", ("job", "nurse")),
        ("My car is red.", "My car is dirty.", ("colour", "red")),
    ],
)
async def test_what_was_or_also_is_replaces_nothing(
    graph: Memory, clock: FixedClock, before: str, said: str, still: tuple[str, str]
) -> None:
    assert still in await holds(graph, clock, before, said)


async def test_what_was_is_kept_as_what_was(graph: Memory, clock: FixedClock) -> None:
    assert ("was_location", "Berlin") in await holds(graph, clock, "I lived in Berlin in 2005.")


@pytest.mark.parametrize(
    ("before", "said", "still"),
    [
        ("I am allergic to nuts.", "I am now allergic to shellfish.", "nuts"),
        ("I am allergic to penicillin.", "I own a new car now and I am allergic to cats now.", "penicillin"),
        ("I play the cello.", "I now play the piano too.", "cello"),
        ("I speak Danish.", "I also speak German now.", "Danish"),
    ],
)
async def test_now_and_also_add_to_what_may_have_several_values(
    graph: Memory, clock: FixedClock, before: str, said: str, still: str
) -> None:
    assert still in {value for _, value in await holds(graph, clock, before, said)}


async def test_a_second_dog_is_not_another_first(graph: Memory, clock: FixedClock) -> None:
    found = await holds(graph, clock, "I have a dog called Rex.", "I now have a second dog called Max.")
    assert {("name", "Rex"), ("name", "Max")} <= found
    assert len([1 for label, _ in found if label == "own"]) == 2


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("I speak Danish.", "I no longer speak Danish."),
        ("The team meeting is on Friday.", "The team meeting was cancelled for good."),
        ("I am allergic to nuts.", "Correction: I am allergic to almonds, not nuts."),
    ],
)
async def test_what_is_taken_back_goes(graph: Memory, clock: FixedClock, before: str, said: str) -> None:
    (label, value), *_ = await holds(graph, clock, before)
    assert (label, value) not in await holds(graph, clock, said)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("I work at Nortec.", "My brother quit his job at Nortec."),
        ("I am married to Jonas.", "My sister divorced her husband."),
        ("I have a cat.", "My neighbour's cat died."),
        ("I live in Porto.", "My brother no longer lives in Porto."),
        ("My address is 5 Hill Road.", "My sister no longer lives on Hill Road."),
        ("My sister is called Ida. I live in Porto.", "My sister no longer lives in Porto."),
        ("My sister is called Ida. I am married to Jonas.", "Ida divorced her husband."),
    ],
)
async def test_what_another_person_gave_up_is_theirs(graph: Memory, clock: FixedClock, before: str, said: str) -> None:
    believed = await holds(graph, clock, before)
    assert believed
    assert believed <= await holds(graph, clock, said)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("I drive a Skoda.", "I never sold the Skoda."),
        ("I drink coffee.", "I stopped at the coffee shop."),
        ("My kids go to school in Faro.", "I dropped the kids at school."),
        ("I play tennis every Monday.", "We cancelled tennis this Monday."),
        ("I have a bike.", "I sold my bike helmet."),
        ("I take metformin.", "I lost my metformin prescription."),
        ("My doctor is Dr. Reis.", "I cancelled my appointment with Dr. Reis."),
        ("I work at Nortec.", "I have not quit my job."),
        ("I drive a Skoda.", "I haven't sold my car."),
    ],
)
async def test_what_is_denied_or_something_else_ends_nothing(
    graph: Memory, clock: FixedClock, before: str, said: str
) -> None:
    believed = await holds(graph, clock, before)
    assert believed
    after = await holds(graph, clock, said)
    assert believed <= after
    if " not " in said or "n't" in said:
        assert after == believed


async def test_what_is_sold_is_gone(graph: Memory, clock: FixedClock) -> None:
    before = await holds(graph, clock, "I have a bike.", "I drive a Skoda.")
    after = await holds(graph, clock, "I sold the bike.", "I sold my Skoda.")
    assert not before & after


async def test_it_was_cancelled_means_what_was_spoken_of(graph: Memory, clock: FixedClock) -> None:
    await holds(graph, clock, "My standup is on Monday at 9:00.")
    assert [r.title for r in await upcoming(graph)] == ["Standup"]
    await holds(graph, clock, "It was cancelled.")
    assert await upcoming(graph) == []


async def test_an_older_statement_that_comes_late_is_history(graph: Memory, clock: FixedClock) -> None:
    await holds(graph, clock, "I live in Porto.")
    await graph.remember([Said("I live in Berlin.", at=datetime(2020, 1, 1, tzinfo=UTC))], session="old")
    await graph.drain()
    assert await holds(graph, clock) == {("location", "Porto")}
    records = await graph.records(kinds=("claim",), retired=True)
    (old,) = [r for r in records if "Berlin" in r.text]
    (new,) = [r for r in records if "Porto" in r.text]
    assert (old.valid.since.year, old.valid.until) == (2020, new.valid.since)


async def test_a_date_at_the_end_of_time_parks_nothing(graph: Memory, clock: FixedClock) -> None:
    await holds(graph, clock, "My visa expires on 31 December 9999.", "I live in Porto.")
    assert not [j for j in await graph.store.jobs(graph.scope) if j.state == "parked"]
    assert ("location", "Porto") in await holds(graph, clock)


async def test_forgetting_a_retelling_keeps_what_was_told_first(graph: Memory, clock: FixedClock) -> None:
    await holds(graph, clock, "My dentist is Dr. Salgado.", "My dentist is Dr. Salgado.")
    first, second = await graph.store.turns(graph.scope)
    await Cascade(graph.store, clock, graph.recipe, graph.registry).erase(graph.scope, turns=(second.id,))
    await graph.drain()
    assert ("dentist", "Dr. Salgado") in await holds(graph, clock)
    assert [t.id for t in await graph.store.turns(graph.scope)] == [first.id]
