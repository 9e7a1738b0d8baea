"""Changes by the user's own hand: what is refused, and what it takes the place of."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from made import T0, claim, note, passage, put
from nyima.domain.records import Claim, Entity, Status
from nyima.errors import InputError, NotFound
from nyima.mechanisms.by_hand import Statement, value_in
from nyima.memory import Memory
from nyima.testing import FixedClock


async def open_texts(memory: Memory) -> set[str]:
    return {c.text for c in await memory.claims()}


async def node(memory: Memory, name: str) -> Entity:
    (found,) = [r for r in await memory.records(kinds=("entity",)) if isinstance(r, Entity) and r.name == name]
    return found


# --- stating ---


async def test_a_value_takes_the_place_of_every_value_of_its_attribute(memory: Memory, clock: FixedClock) -> None:
    await memory.set("job", "nurse")
    first = await memory.set("Cat's name", " Rex ")
    assert (first.attribute, first.value, first.subject, first.quote) == ("Cat's name", "Rex", "user", None)
    await memory.state(Statement("user", "cat's name", "Kit"))
    clock.forward(minutes=1)
    second = await memory.set("cat's NAME", "Luna")
    assert second.supersedes is not None
    assert (await memory.profile()).as_dict() == {"job": "nurse", "cat's NAME": "Luna"}


@pytest.mark.parametrize("said", [("", "likes", "tea"), ("user", " ", "tea"), ("user", "likes", "\n")])
async def test_a_claim_needs_all_three(memory: Memory, said: tuple[str, str, str]) -> None:
    with pytest.raises(InputError, match="name all three"):
        await memory.state(Statement(*said))
    assert await memory.records(retired=True) == []


async def test_nothing_is_related_to_itself(memory: Memory) -> None:
    with pytest.raises(InputError, match="cannot be related to itself"):
        await memory.state(Statement("user", "likes", "user"))
    assert await memory.records(retired=True) == []


async def test_it_cannot_end_before_it_begins(memory: Memory, clock: FixedClock) -> None:
    now = clock.now()
    for until in (now, now - timedelta(days=1)):
        with pytest.raises(InputError, match="before it begins on 2026-03-02"):
            await memory.state(Statement("user", "drives", "Skoda", until=until))
    with pytest.raises(InputError, match="has no time zone"):
        await memory.state(Statement("user", "drives", "Skoda", since=datetime(2026, 1, 1)))
    made = await memory.state(
        Statement("user", "drives", "Skoda", since=now - timedelta(days=9), until=now + timedelta(days=1))
    )
    assert (made.valid.since, made.valid.until) == (now - timedelta(days=9), now + timedelta(days=1))


async def test_a_second_value_stands_beside_the_first_unless_it_takes_its_place(memory: Memory) -> None:
    old = await memory.state(Statement("user", "likes", "tea"))
    await memory.state(Statement("user", "likes", "milk"))
    assert await open_texts(memory) == {"user likes: tea", "user likes: milk"}
    new = await memory.state(Statement("user", "likes", "coffee"), replaces=[old.id])
    assert (new.supersedes, await open_texts(memory)) == (old.id, {"user likes: coffee", "user likes: milk"})
    for id in (old.id, "nothing"):
        with pytest.raises(NotFound, match=f"no open record '{id}' to replace"):
            await memory.state(Statement("user", "likes", "water"), replaces=[id])
    assert await open_texts(memory) == {"user likes: coffee", "user likes: milk"}


async def test_an_end_of_a_value_lies_not_before_its_beginning(memory: Memory, clock: FixedClock) -> None:
    later = clock.now() + timedelta(days=9)
    old = await memory.state(Statement("user", "lives in", "Moab", since=later))
    new = Statement("user", "lives in", "Porto", since=later + timedelta(days=1))
    await memory.state(new, replaces=[old.id])
    for record in await memory.claims(every=True):
        assert record.valid.until is None or record.valid.until >= record.valid.since, old


async def test_what_holds_only_for_a_time_is_over_when_the_time_is(memory: Memory, clock: FixedClock) -> None:
    await memory.state(Statement("user", "parks at", "level 3", until=clock.now() + timedelta(days=1)))
    assert await open_texts(memory) == {"user parks at: level 3"}
    clock.forward(days=2)
    assert await open_texts(memory) == set()
    assert [c.value for c in await memory.claims(every=True)] == ["level 3"]


# --- confirming ---


async def test_what_waits_is_confirmed_one_by_one_or_all_at_once(memory: Memory) -> None:
    waits = [claim(f"c{n}", "likes", f"tea {n}", status=Status.PENDING) for n in range(3)]
    await put(memory, *waits)
    assert (await memory.profile()).as_dict() == {}
    (one,) = await memory.confirm("c0")
    assert (one.status, one.supersedes, one.provenance.writer) == (Status.HOLDS, "c0", "user")
    assert (await memory.profile()).get("likes") == ("tea 0",)
    assert len(await memory.confirm()) == 2
    assert set((await memory.profile()).get("likes")) == {"tea 0", "tea 1", "tea 2"}
    assert await memory.confirm() == []
    await memory.undo()
    assert len((await memory.profile()).claims) == 1


async def test_what_is_uncertain_or_planned_is_confirmed(memory: Memory) -> None:
    await put(
        memory, claim("c1", "lives in", "Moab", stale=True), claim("c2", "moves to", "Rome", status=Status.PLANNED)
    )
    done = await memory.confirm("c1", "c2")
    assert [(c.stale, c.status) for c in done] == [(False, Status.HOLDS)] * 2
    assert (await memory.profile()).as_dict() == {"lives in": "Moab", "moves to": "Rome"}


async def test_only_an_open_claim_can_be_confirmed(memory: Memory) -> None:
    await put(memory, note("n1", "tea"), claim("c1", "likes", "tea"))
    with pytest.raises(InputError, match="only claims can be confirmed"):
        await memory.confirm("n1")
    await memory.retire("c1")
    with pytest.raises(InputError, match="is retired: there is nothing to confirm"):
        await memory.confirm("c1")


# --- revising and ending ---


@pytest.mark.parametrize("text", ["Volvo", "user drives: Volvo", "Drives: Volvo"])
async def test_a_revised_claim_has_the_new_value(memory: Memory, text: str) -> None:
    old = await memory.state(Statement("user", "drives", "Skoda"))
    new = await memory.revise(old.id, text)
    assert isinstance(new, Claim)
    assert (new.text, new.supersedes, new.provenance.records) == ("user drives: Volvo", old.id, (old.id,))
    assert (new.object, new.quote) != (old.object, old.quote)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
async def test_a_new_text_is_not_empty(memory: Memory, text: str) -> None:
    made = await memory.set("pet", "cat")
    with pytest.raises(InputError, match="the new text is empty"):
        await memory.revise(made.id, text)


async def test_what_is_retired_is_neither_revised_nor_retired_again(memory: Memory) -> None:
    made = await memory.set("pet", "cat")
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


@pytest.mark.parametrize(
    "record", [claim("c", "pet", "a cat"), note("n", "The user has a cat."), note("m", "tea", "why")]
)
async def test_saving_what_is_there_changes_nothing(memory: Memory, record: Claim) -> None:
    await put(memory, record)
    before = await memory.records(retired=True)
    for text in (record.text, f" {value_in(record)} ", value_in(record).replace(" ", "  ")):
        assert await memory.revise(record.id, text) == record
    assert await memory.records(retired=True) == before


# --- one person under two names ---


async def test_what_is_said_of_the_other_is_said_of_the_one_and_can_be_taken_back(
    memory: Memory, clock: FixedClock
) -> None:
    await memory.state(Statement("Bob", "lives in", "Moab"))
    await memory.state(Statement("Robert", "likes", "tea"))
    bob, robert = await node(memory, "Bob"), await node(memory, "Robert")
    clock.forward(minutes=1)
    same = await memory.merge(bob.id, robert.id)
    assert same.text == "Bob same as: Robert"
    assert {c.attribute: (c.subject, c.name) for c in await memory.claims()}["likes"] == (bob.id, "Bob")
    made = await memory.state(Statement("Robert", "plays", "chess"))
    assert made.subject == bob.id, "the other name means the one"
    clock.forward(minutes=1)
    await memory.undo()
    await memory.undo()
    assert {c.attribute: c.subject for c in await memory.claims()} == {"lives in": bob.id, "likes": robert.id}


async def test_nobody_is_merged_with_themselves_or_with_what_is_no_entity(memory: Memory) -> None:
    made = await memory.state(Statement("Bob", "likes", "tea"))
    bob = await node(memory, "Bob")
    with pytest.raises(InputError, match="'Bob' is one entity already"):
        await memory.merge(bob.id, bob.id)
    with pytest.raises(InputError, match="only entities can be merged"):
        await memory.merge(bob.id, made.id)


async def test_claims_are_asked_for_by_their_subject(memory: Memory) -> None:
    await memory.state(Statement("sister Ana", "lives in", "Rome"))
    await memory.set("lives in", "Porto")
    for about in ("sister Ana", "user's sister Ana", "ana", "sister"):
        assert [c.value for c in await memory.claims(about)] == ["Rome"]
    assert [c.value for c in await memory.claims("user")] == ["Porto"]
    assert memory.clock.now() == T0
