"""What follows from a change, and what an erase would take."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from made import claim, edge, entity, note, put, summary
from nyima.app.registry import registry
from nyima.change.cascade import Cascade
from nyima.domain.changes import Add, Change, Delta, Retire, Revise
from nyima.domain.conversation import Role
from nyima.domain.records import MemoryRecord, Status
from nyima.domain.roles import Written
from nyima.memory import Memory, Said
from nyima.testing import FixedClock


@pytest.fixture
async def graph(db: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    async with Memory.open(db, embedder="none", clock=clock) as memory:
        await put(
            memory, entity("user", "user"), *(entity(i, n) for i, n in (("x", "Moab"), ("y", "Porto"), ("o", "Otto")))
        )
        clock.forward(days=1)
        yield memory


async def followed(memory: Memory, *changes: Change) -> Written:
    cascade = Cascade(memory.store, memory.clock, memory.recipe, registry())
    return await cascade.follow(memory.scope, Written(Delta(changes, "user")))


async def what_follows(memory: Memory, *changes: Change) -> dict[str, Change]:
    made = (await followed(memory, *changes)).delta.changes
    assert made[: len(changes)] == changes, "what was asked for stays, and first"
    return {c.id: c for c in made[len(changes) :] if isinstance(c, Revise | Retire)}


HOME = edge("r1", "user", "lives in", "x", "Moab")
NEAR = edge("r2", "o", "visits", "user", "the user", depends_on=("r1",))
CALLS = edge("r3", "o", "likes", "y", "it", depends_on=("r2",))


def retire(record: MemoryRecord, memory: Memory) -> Retire:
    return Retire(record.id, memory.clock.now(), "ended")


async def test_from_an_addition_nothing_follows(graph: Memory) -> None:
    written = Written(Delta((Add(note("n", "x")),)))
    assert await Cascade(graph.store, graph.clock, graph.recipe, registry()).follow(graph.scope, written) is written
    assert await what_follows(graph, retire(note("n", "x"), graph)) == {}


async def test_what_rests_on_what_ended_is_uncertain_to_the_end(graph: Memory) -> None:
    await put(graph, HOME, NEAR, CALLS)
    after = await what_follows(graph, retire(HOME, graph))
    assert set(after) == {"r2", "r3"}
    change = after["r2"]
    assert isinstance(change, Revise)
    assert change.successor.stale
    assert (change.successor.supersedes, change.successor.valid, change.successor.text) == ("r2", NEAR.valid, NEAR.text)
    assert change.successor.id.startswith("r2~")


async def test_a_circle_of_what_rests_on_each_other_ends(graph: Memory) -> None:
    await put(graph, replace(HOME, depends_on=("r3",)), NEAR, CALLS)
    assert set(await what_follows(graph, retire(HOME, graph))) == {"r2", "r3"}


async def test_what_is_uncertain_already_is_left_alone(graph: Memory) -> None:
    await put(graph, HOME, replace(NEAR, stale=True), CALLS)
    assert await what_follows(graph, retire(HOME, graph)) == {}


@pytest.mark.parametrize(
    ("more", "follows"),
    [({"value": "MOAB "}, False), ({"stale": True, "value": "Porto"}, False), ({"value": "Porto"}, True)],
)
async def test_what_says_the_same_in_other_words_changes_nothing(
    graph: Memory, more: dict[str, Any], follows: bool
) -> None:
    await put(graph, HOME, NEAR)
    new = replace(HOME, id="r1~2", supersedes="r1", **more)
    assert bool(await what_follows(graph, Revise("r1", new))) is follows


async def test_what_rests_on_an_earlier_telling_rests_on_the_later_too(graph: Memory) -> None:
    again = replace(HOME, id="r9", supersedes="r1")
    await put(graph, HOME, NEAR)
    await graph.store.commit(graph.scope, Delta((Revise("r1", again),)))
    assert set(await what_follows(graph, retire(again, graph))) == {"r2"}


async def test_what_ended_long_ago_or_was_denied_changes_nothing(graph: Memory) -> None:
    await put(graph, replace(HOME, status=Status.ENDED), NEAR)
    assert await what_follows(graph, retire(HOME, graph)) == {}


FACT = claim("f1", "lives in", "moab")


# --- texts that stand for now ---


@pytest.mark.parametrize(
    ("text", "stale"),
    [
        (summary("s", "The user is a nurse. The user lives in Moab."), True),
        (summary("s", "The user lives in Porto."), False),
        (summary("s", "The user lives in Moab.", "session"), False),
        (summary("s", "The user lives in Moab.", stale=True), False),
        (summary("s", "The user lives in Moab.", "portrait"), True),
    ],
)
async def test_a_text_that_states_what_ended_is_mended_by_a_job(graph: Memory, text: MemoryRecord, stale: bool) -> None:
    await put(graph, FACT, text)
    written = await followed(graph, retire(FACT, graph))
    assert ("s" in {c.id for c in written.delta.changes if isinstance(c, Revise)}) is stale
    assert [j.kind for j in written.jobs] == ["mend"] * stale
    made = [c.successor for c in written.delta.changes if isinstance(c, Revise)]
    assert [j.subject for j in written.jobs] == [r.id for r in made]


async def test_a_value_of_two_letters_is_in_every_text_and_mends_none(graph: Memory) -> None:
    await put(graph, claim("f", "flat", "2b"), summary("s", "The user lives in 2b."))
    assert await what_follows(graph, retire(claim("f", "flat", "2b"), graph)) == {}


async def test_a_text_is_mended_once_however_much_of_it_changes(graph: Memory) -> None:
    await put(graph, FACT, claim("f2", "job", "nurse"), summary("s", "A nurse in Moab."))
    written = await followed(graph, retire(FACT, graph), Retire("f2", graph.clock.now()))
    assert len(written.jobs) == 1


# --- what an erase would take ---


async def test_nothing_changes_when_it_is_only_asked_what_would_go(memory: Memory, clock: FixedClock) -> None:
    talk = [
        Said("I have a walnut allergy."),
        Said("Walnuts! I will mind your walnut allergy.", Role.ASSISTANT),
        Said("Nice."),
    ]
    await memory.remember(talk, session="s")
    clock.forward(minutes=1)
    await memory.remember([Said("I like tea, too."), Said("It rains.", Role.ASSISTANT)], session="t")
    (episode,) = [r for r in await memory.records(kinds=("episode",)) if r.text == "User: I have a walnut allergy."]
    before = (await memory.records(retired=True), await memory.turns(), await memory.store.revision(memory.scope))
    going = await memory.would_forget(episode.id)
    assert before == (
        await memory.records(retired=True),
        await memory.turns(),
        await memory.store.revision(memory.scope),
    )
    assert [t.text for t in going.turns] == [s.text for s in talk[:2]], "the reply that repeats it goes too"
    receipt = await memory.forget(episode.id)
    assert (receipt.turns, sum(receipt.erased.values())) == (len(going.turns), len(going.records))
    assert [t.text for t in await memory.turns()] == ["Nice.", "I like tea, too.", "It rains."]


async def test_the_reply_goes_only_where_it_repeats_what_was_said(memory: Memory) -> None:
    await memory.remember([Said("I have a walnut allergy."), Said("Shall we go on?", Role.ASSISTANT)], session="s")
    (episode,) = [r for r in await memory.records(kinds=("episode",)) if "walnut" in r.text]
    assert [t.text for t in (await memory.would_forget(episode.id)).turns] == ["I have a walnut allergy."]


async def test_a_record_alone_leaves_its_turn_and_says_so(memory: Memory) -> None:
    await memory.remember("I have a walnut allergy.", session="s")
    (made,) = await memory.records(kinds=("note",))
    going = await memory.would_forget(made.id, only=True)
    assert (going.turns, [t.text for t in going.kept]) == ((), ["I have a walnut allergy."])
    assert [r.id for r in going.records] == [made.id]
    receipt = await memory.forget(made.id, only=True)
    assert (receipt.turns, receipt.still_said) == (0, tuple(t.id for t in going.kept))


async def test_an_entity_goes_with_the_last_that_speaks_of_it(graph: Memory) -> None:
    await put(graph, HOME, edge("r7", "o", "lives in", "x", "Moab"))
    first = await graph.forget("r1")
    assert first.erased == {"claim": 1}, "Moab is still spoken of, and the user stays in any case"
    assert (await graph.forget("r7")).erased == {"claim": 1, "entity": 2}
    assert {r.id for r in await graph.records(kinds=("entity",))} == {"user", "y"}


async def test_a_summary_that_is_named_goes_alone(memory: Memory) -> None:
    stored = await memory.remember([Said("I live in Moab.")], session="s")
    await put(memory, summary("m", "The user lives in Moab.", "session", turns=(stored.turns[0].id,)))
    receipt = await memory.forget("m")
    assert (receipt.erased, receipt.turns, len(await memory.turns())) == ({"summary": 1}, 0, 1)


async def test_everything_is_everything_and_is_counted(memory: Memory) -> None:
    await memory.remember("I live in Moab.", session="s")
    await memory.recall("Moab")
    receipt = await memory.forget(everything=True)
    assert (receipt.turns, receipt.erased, receipt.bytes_found) == (1, {"episode": 1, "note": 1}, 0)
    assert (receipt.also["traces"], receipt.also["sessions"]) == (1, 1)
    assert await memory.records(retired=True) == []
