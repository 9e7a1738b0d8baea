"""Changes by the user's own hand: what is refused, and what it takes the place of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from made import note, passage, put
from nyima.domain.records import Claim, Entity, Relation
from nyima.errors import InputError, NotFound
from nyima.mechanisms.by_hand import Link
from nyima.memory import Memory
from nyima.testing import FixedClock


@pytest.fixture
async def graph(db: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    async with Memory.open(db, recipe="graph", embedder="none", clock=clock) as memory:
        yield memory


async def open_texts(memory: Memory) -> set[str]:
    return {r.text for r in await memory.records(kinds=("relation",))}


async def node(memory: Memory, name: str) -> Entity:
    (found,) = [r for r in await memory.records(kinds=("entity",)) if isinstance(r, Entity) and r.name == name]
    return found


# --- a fact ---


async def test_a_fact_takes_the_place_of_every_value_of_its_key(memory: Memory, clock: FixedClock) -> None:
    await memory.set_fact("job", "nurse")
    first = await memory.set_fact("Cat's name", " Rex ")
    assert (first.key, first.value, first.claim) == ("cat_name", "Rex", Claim("user", "cat_name"))
    clock.forward(minutes=1)
    second = await memory.set_fact("cat_name", "Luna")
    assert second.supersedes == first.id
    assert (await memory.profile()).as_dict() == {"job": "nurse", "cat_name": "Luna"}


@pytest.mark.parametrize(("key", "value"), [("", "x"), ("  ", "x"), ("!!", "x"), ("key", ""), ("key", " \n")])
async def test_a_fact_needs_a_key_and_a_value(memory: Memory, key: str, value: str) -> None:
    with pytest.raises(InputError, match="needs a key and a value"):
        await memory.set_fact(key, value)
    assert await memory.records(retired=True) == []


# --- a relation ---


@pytest.mark.parametrize("link", [Link("", "likes", "tea"), Link("user", " ", "tea"), Link("user", "likes", "\n")])
async def test_a_relation_needs_all_three(graph: Memory, link: Link) -> None:
    with pytest.raises(InputError, match="name all three"):
        await graph.relate(link)


async def test_nothing_is_related_to_itself(graph: Memory) -> None:
    with pytest.raises(InputError, match="cannot be related to itself"):
        await graph.relate(Link("user", "likes", "me"))
    assert await graph.records(retired=True) == []


async def test_it_cannot_end_before_it_begins(graph: Memory, clock: FixedClock) -> None:
    now = clock.now()
    for until in (now, now - timedelta(days=1)):
        with pytest.raises(InputError, match="before it begins on 2026-03-02"):
            await graph.relate(Link("user", "drives", "Skoda", until=until))
    with pytest.raises(InputError, match="has no time zone"):
        await graph.relate(Link("user", "drives", "Skoda", since=datetime(2026, 1, 1)))
    made = await graph.relate(
        Link("user", "drives", "Skoda", since=now - timedelta(days=9), until=now + timedelta(days=1))
    )
    assert (made.valid.since, made.valid.until) == (now - timedelta(days=9), now + timedelta(days=1))


async def test_a_relation_without_a_sentence_gets_one(graph: Memory) -> None:
    assert (await graph.relate(Link("user", "lives in", "Moab"))).text == "user location: Moab."
    assert (await graph.relate(Link("Otto", "Best Enemy", "Ida"))).label == "best_enemy"


@pytest.mark.parametrize(
    ("label", "several"),
    [("lives_in", False), ("likes", True), ("allergic_to", True), ("favourite_colour", False), ("plays_with", True)],
)
async def test_of_what_has_one_value_the_new_one_takes_the_place(graph: Memory, label: str, several: bool) -> None:
    await graph.relate(Link("user", label, "Moab", "First."))
    new = await graph.relate(Link("user", label, "Porto", "Second."))
    assert await open_texts(graph) == ({"First.", "Second."} if several else {"Second."})
    assert (new.supersedes is None) is several


async def test_a_relation_may_take_the_place_of_any_open_record(graph: Memory) -> None:
    old = await graph.relate(Link("user", "likes", "tea", "The user likes tea."))
    new = await graph.relate(Link("user", "likes", "coffee", "The user likes coffee."), replaces=old.id)
    assert (new.supersedes, await open_texts(graph)) == (old.id, {"The user likes coffee."})
    for id in (old.id, "nothing"):
        with pytest.raises(NotFound, match=f"no open record '{id}' to replace"):
            await graph.relate(Link("user", "likes", "milk"), replaces=id)
    assert await open_texts(graph) == {"The user likes coffee."}


async def test_an_end_of_a_value_lies_not_before_its_beginning(graph: Memory, clock: FixedClock) -> None:
    later = clock.now() + timedelta(days=9)
    old = await graph.relate(Link("user", "lives_in", "Moab", since=later))
    await graph.relate(Link("user", "lives_in", "Porto", since=later + timedelta(days=1)))
    for record in await graph.records(kinds=("relation",), retired=True):
        assert record.valid.until is None or record.valid.until >= record.valid.since, old


# --- revising and ending ---


async def test_a_revised_relation_says_its_sentence_with_the_new_value(graph: Memory) -> None:
    old = await graph.relate(Link("user", "drives", "Skoda", "The user drives a Skoda to work."))
    new = await graph.revise(old.id, "Volvo")
    assert isinstance(new, Relation)
    assert (new.text, new.supersedes, new.provenance.records) == ("The user drives a Volvo to work.", old.id, (old.id,))
    unclear = await graph.relate(Link("user", "likes", "tea", "At tea the user likes tea."))
    assert (await graph.revise(unclear.id, "milk")).text == "At tea the user likes tea. Now: milk."


@pytest.mark.parametrize("text", ["", "  ", "\n"])
async def test_a_new_text_is_not_empty(memory: Memory, text: str) -> None:
    made = await memory.set_fact("pet", "cat")
    with pytest.raises(InputError, match="the new text is empty"):
        await memory.revise(made.id, text)


async def test_what_is_retired_is_neither_revised_nor_retired_again(memory: Memory) -> None:
    made = await memory.set_fact("pet", "cat")
    await memory.retire(made.id)
    with pytest.raises(InputError, match="revise the one that took its place"):
        await memory.revise(made.id, "dog")
    with pytest.raises(InputError, match="is retired already"):
        await memory.retire(made.id)
    assert (await memory.revise(made.id, "cat")).id == made.id, "its own value again changes nothing"


async def test_what_was_said_or_given_is_forgotten_not_revised(memory: Memory) -> None:
    await put(memory, passage("p", "Rinse it."), note("n", "tea"))
    with pytest.raises(InputError, match="kind 'passage' is what was said and cannot be revised: forget it"):
        await memory.revise("p", "Boil it.")
    assert (await memory.revise("n", "coffee")).text == "coffee"


# --- one person under two names ---


async def test_what_is_said_of_the_other_is_said_of_the_one_and_can_be_taken_back(
    graph: Memory, clock: FixedClock
) -> None:
    await graph.relate(Link("Bob", "lives_in", "Moab", "Bob lives in Moab."))
    await graph.relate(Link("Robert", "likes", "tea", "Robert likes tea."))
    bob, robert = await node(graph, "Bob"), await node(graph, "Robert")
    clock.forward(minutes=1)
    same = await graph.merge(bob.id, robert.id)
    assert same.text == "Bob is the same as Robert."
    heads = {r.text: r.head for r in await graph.records(kinds=("relation",)) if isinstance(r, Relation)}
    assert heads["Robert likes tea."] == bob.id
    clock.forward(minutes=1)
    await graph.undo()
    heads = {r.text: r.head for r in await graph.records(kinds=("relation",)) if isinstance(r, Relation)}
    assert heads == {"Bob lives in Moab.": bob.id, "Robert likes tea.": robert.id}


@pytest.mark.parametrize("older", ["Bob", "Robert"])
async def test_of_two_single_values_the_newer_one_stays(graph: Memory, clock: FixedClock, older: str) -> None:
    names = {"Bob", "Robert"}
    for name in (older, *(names - {older})):
        await graph.relate(Link(name, "lives_in", f"{name} City", f"{name} lives there."))
        clock.forward(days=1)
    await graph.merge((await node(graph, "Bob")).id, (await node(graph, "Robert")).id)
    (newer,) = names - {older}
    assert await open_texts(graph) == {f"{newer} lives there.", "Bob is the same as Robert."}


async def test_nobody_is_merged_with_themselves_or_with_what_is_no_entity(graph: Memory) -> None:
    made = await graph.relate(Link("Bob", "likes", "tea"))
    bob = await node(graph, "Bob")
    with pytest.raises(InputError, match="'Bob' is one entity already"):
        await graph.merge(bob.id, bob.id)
    with pytest.raises(InputError, match="only entities can be merged"):
        await graph.merge(bob.id, made.id)
