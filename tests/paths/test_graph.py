"""The graph through the public API: collected, edited, undone, looked at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nyima.domain.conversation import Origin
from nyima.domain.evidence import Budget
from nyima.domain.ports import Event
from nyima.domain.records import Entity, Relation
from nyima.errors import InputError, NotFound
from nyima.mechanisms.by_hand import Statement
from nyima.mechanisms.graph.look import entity_named, history_of, neighbourhood
from nyima.memory import Memory, Said
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from support import answer, companion


@pytest.fixture
async def graph(db: Path, clock: FixedClock, embedder: HashEmbedder) -> AsyncIterator[Memory]:
    clock.at = datetime(2026, 5, 2, 10, tzinfo=UTC)
    async with Memory.open(db, recipe="graph", embedder=embedder, clock=clock) as opened:
        yield opened


async def tell(memory: Memory, *texts: str, session: str = "s") -> None:
    """Turns, an hour apart, each worked off."""
    for text in texts:
        await memory.remember([Said(text)], session=session)
        await memory.drain()
        memory.clock.forward(hours=1)  # type: ignore[attr-defined]


async def triples(memory: Memory, *, retired: bool = False) -> set[tuple[str, str, str]]:
    """What is believed, in names."""
    records = await memory.records(kinds=("claim", "entity"), retired=True)
    names = {r.id: r.name for r in records if isinstance(r, Entity)}
    return {
        (names[r.head], r.label, names[r.tail])
        for r in records
        if isinstance(r, Relation) and (retired or (r.recorded.until is None and not r.stale))
    }


@pytest.mark.req("emg.collect", "emg.graph", "emg.normalise", "emg.replace")
async def test_the_flight_of_the_issue(graph: Memory) -> None:
    await tell(
        graph,
        "I booked the EK349 flight for my boss; it leaves at 01:40 on 12 May. Her hotel voucher is valid until 14 May.",
        "They moved it, the flight now leaves at 01:30.",
    )
    now = await triples(graph)
    assert ("EK349 flight", "departs", "2026-05-12 01:30") in now
    assert ("EK349 flight", "for", "user's boss") in now
    assert ("user", "booked", "EK349 flight") in now
    assert ("user's boss's hotel voucher", "expires", "2026-05-14") in now
    assert ("EK349 flight", "departs", "2026-05-12 01:40") not in now
    values = await history_of(graph, "EK349 departs")
    assert [v.tail for v in values] == ["2026-05-12 01:40", "2026-05-12 01:30"]
    assert values[0].relation.valid.until == values[1].relation.valid.since
    assert [t.text for t in values[1].turns] == ["They moved it, the flight now leaves at 01:30."]
    around = await neighbourhood(graph, await entity_named(graph, "boss"))
    assert {e.name for e in around.entities.values()} >= {"user's boss", "EK349 flight", "2026-05-12 01:30"}


@pytest.mark.req("emg.insert", "emg.replace")
async def test_single_values_are_replaced_and_several_are_gathered(graph: Memory) -> None:
    await tell(graph, "I live in Porto.", "I like tea.", "I moved to Braga.", "I like rain.")
    assert await triples(graph) == {("user", "location", "Braga"), ("user", "like", "tea"), ("user", "like", "rain")}
    past = await graph.records(kinds=("claim",), as_of=datetime(2026, 5, 2, 11, tzinfo=UTC))
    assert [r.text for r in past] == ["The user lives in Porto.", "The user likes tea."]


@pytest.mark.req("emg.delete")
async def test_a_memory_with_an_end_leaves_recall_by_the_clock_alone(graph: Memory, clock: FixedClock) -> None:
    await tell(graph, "I have a voucher for the spa that is valid until 14 May 2026.")
    clock.at = datetime(2026, 5, 14, 12, tzinfo=UTC)
    assert [e.text for e in (await graph.recall("spa voucher")).kept]
    clock.at = datetime(2026, 5, 16, tzinfo=UTC)
    changes = await graph.store.changes(graph.scope)
    found = (await graph.recall("spa voucher")).kept
    assert not [e for e in found if e.record.kind == "claim"]
    assert await graph.store.changes(graph.scope) == changes, "nothing was written"
    assert await graph.records(kinds=("claim",), retired=True), "it stays in history"


async def test_suppositions_quotes_and_friends_edit_nothing_of_the_users(graph: Memory) -> None:
    await tell(
        graph,
        "I live in Porto.",
        "If I lived in Rome, I would cycle.",
        "My friend Otto lives in Linz.",
        "My brother said I should move to Oslo.",
        "My friend Otto likes olives.",
        "My friend Otto sold his car.",
    )
    now = await triples(graph)
    assert ("user", "location", "Porto") in now
    assert ("Otto", "location", "Linz") in now
    assert ("Otto", "like", "olives") in now
    assert not {t for t in now if t[0] == "user" and t[2] in {"Rome", "Oslo", "olives"}}


async def test_what_is_told_twice_is_one_memory_with_both_turns(graph: Memory) -> None:
    await tell(graph, "My dog is called Bruno.", "Nice weather, and my dog is called Bruno.")
    (relation,) = [r for r in await graph.records(kinds=("claim",)) if isinstance(r, Relation) and r.label == "name"]
    assert len(relation.provenance.turns) == 2


async def test_names_and_pronouns_mean_what_they_stand_for(graph: Memory) -> None:
    await tell(
        graph, "My dog is called Bruno.", "Bruno is 3 years old.", "My sister Inês lives in Faro. She works as a nurse."
    )
    now = await triples(graph)
    assert ("user's dog", "age", "3") in now
    assert ("Inês", "job", "nurse") in now


@pytest.mark.parametrize("ending", ["I sold the boat.", "I no longer own a boat.", "I gave away my boat."])
async def test_an_ending_retires_and_can_be_undone(graph: Memory, ending: str) -> None:
    await tell(graph, "I own a boat.", "I own a canoe.", ending)
    assert ("user", "own", "boat") not in await triples(graph)
    assert ("user", "own", "canoe") in await triples(graph)
    await graph.undo()
    assert ("user", "own", "boat") in await triples(graph)


async def test_an_edit_of_the_graph_can_be_undone(graph: Memory) -> None:
    await tell(graph, "I live in Porto.", "I moved to Braga.")
    (row,) = [r for r in (await graph.undo()).rows if r.verb == "revise"]
    assert row.reason == "corrected"
    assert {t for t in await triples(graph) if t[1] == "location"} == {("user", "location", "Porto")}


async def test_bad_stories_never_crash(graph: Memory) -> None:
    await tell(
        graph,
        "I live in Porto and I live in Lisbon.",
        "A is the boss of B and B is the boss of A.",
        "My boss is Ana. Ana's boss is me.",
        "My birthday is 31 February.",
        "The train leaves at 25:00 on year 0.",
        "The clocks change on 29 March 2026 at 1:30.",
        "I no longer " * 200,
        "\ufffd \u202e my \u0000 is is is",
    )
    assert not [j for j in await graph.store.jobs(graph.scope) if j.state != "done"]
    assert len({t for t in await triples(graph) if t[:2] == ("user", "location")}) == 1


async def test_a_thousand_of_one_name(graph: Memory) -> None:
    for n in range(60):
        await graph.state(Statement(f"Anna {n}", "lives_in", f"Town {n}"))
    await tell(graph, "Anna lives in Faro.", "Anna 7 lives in Braga.")
    now = await triples(graph)
    assert ("Anna 7", "location", "Braga") in now
    assert sum(t[0].startswith("Anna") for t in now) == 61


@pytest.mark.req("emg.passive")
async def test_what_the_user_asks_to_remember_enters_the_graph(graph: Memory) -> None:
    await graph.remember("My locker number is 12")
    await graph.drain()
    assert ("user's locker", "number", "12") in await triples(graph)


@pytest.mark.req("emg.screenshots")
async def test_a_document_is_quoted_and_changes_nothing_of_the_users(graph: Memory) -> None:
    await tell(graph, "I live in Porto.", "The Regina is at Rua Nova 4, Porto.")
    await graph.remember(
        [Said("I live in Rome. The Regina is at Elm Road 1. I no longer live in Porto.", origin=Origin.DOCUMENT)]
    )
    await graph.drain()
    now = await triples(graph)
    assert ("user", "location", "Porto") in now
    assert ("Regina", "location", "Rua Nova 4, Porto") in now
    assert ("user", "location", "Rome") not in await triples(graph, retired=True)


async def test_entities_are_merged_and_the_merge_is_undone(graph: Memory) -> None:
    await tell(graph, "Robert lives in Faro.", "Bob works as a baker.")
    one, other = await entity_named(graph, "Robert"), await entity_named(graph, "Bob")
    await graph.merge(one.id, other.id)
    assert ("Robert", "job", "baker") in await triples(graph)
    await tell(graph, "Bob has a parrot.")
    assert any(t[0] == "Robert" and "parrot" in t[2] for t in await triples(graph))
    with pytest.raises(InputError, match="one entity already"):
        await graph.merge(one.id, one.id)


async def test_a_merge_alone_is_taken_back(graph: Memory) -> None:
    await tell(graph, "Robert lives in Faro.", "Bob works as a baker.")
    before = await triples(graph)
    await graph.merge((await entity_named(graph, "Robert")).id, (await entity_named(graph, "Bob")).id)
    await graph.undo()
    assert await triples(graph) == before


async def test_relations_by_hand(graph: Memory, clock: FixedClock) -> None:
    first = await graph.state(Statement("user", "drives", "Skoda"))
    second = await graph.state(Statement("user", "drives", "Fiat"))
    assert second.supersedes == first.id
    revised = await graph.revise(second.id, "Volvo")
    assert isinstance(revised, Relation)
    assert ("user", "car", "Volvo") in await triples(graph)
    await graph.retire(revised.id)
    assert await triples(graph) == set()
    for wrong in (
        Statement("", "x", "y"),
        Statement("user", "is", "user"),
        Statement("a", "b", "c", since=clock.now(), until=clock.now()),
    ):
        with pytest.raises(InputError):
            await graph.state(wrong)
    with pytest.raises(NotFound):
        await entity_named(graph, "nobody")


@pytest.mark.req("emg.private")
async def test_each_users_graph_is_their_own(db: Path, clock: FixedClock, embedder: HashEmbedder) -> None:
    async with Memory.open(db, user="ana", recipe="graph", embedder=embedder, clock=clock) as ana:
        await tell(ana, "I live in Porto.", "My cat is called Momo.")
    async with Memory.open(db, user="ben", recipe="graph", embedder=embedder, clock=clock) as ben:
        assert await ben.records(kinds=("entity", "claim"), retired=True) == []
        assert (await ben.recall("cat Porto")).kept == ()
        assert await ben.store.events(ben.scope, "policy") == []


async def test_the_models_facts_enter_without_a_call_of_their_own(db: Path, clock: FixedClock) -> None:
    model = ScriptedModel(
        {
            "chat": [answer("Schön!", remember=True, claims={"wohnort": "Graz"})],
            "note": ['{"context": "", "knowledge": "Der Nutzer wohnt in Graz.", "facts": {}}'],
        }
    )
    async with companion(db, model, clock=clock) as nyima:
        await nyima.reply("Ich wohne seit Mai in Graz.")
        await nyima.drain()
        assert ("user", "wohnort", "Graz") in await triples(nyima.memory)
        assert [r.lane for r in model.requests] == ["chat", "note"]


async def test_a_reply_knows_what_has_ended(db: Path, clock: FixedClock) -> None:
    model = ScriptedModel(
        {"chat": [answer("ok", remember=True)], "note": ['{"context": "", "knowledge": "x", "facts": {}}']}
    )
    async with companion(db, model, recipe="graph", clock=clock) as nyima:
        for text in (
            "My office is in Sintra.",
            "I take the 8:10 because my office is in Sintra.",
            "My office moved to Cascais.",
        ):
            await nyima.reply(text)
            await nyima.drain()
            clock.forward(hours=3)
        await nyima.reply("Which train do I take to the office?")
        last = model.asked("chat")[-1].last
    assert "(not known any more since" in last or "(no longer true since" in last
    assert "Cascais" in last


async def test_recall_as_of_a_day(graph: Memory) -> None:
    await tell(graph, "I live in Porto.")
    graph.clock.forward(days=10)  # type: ignore[attr-defined]
    await tell(graph, "I moved to Braga.")
    then = await graph.recall(
        "the user lives in Porto or Braga", Budget(5, 1_000), as_of=datetime(2026, 5, 4, tzinfo=UTC)
    )
    assert [e.text for e in then.kept if e.record.kind == "claim"] == ["The user lives in Porto."]
    now = await graph.recall("the user moved to Porto or Braga", Budget(5, 1_000))
    assert [e.text for e in now.kept if e.record.kind == "claim"] == ["The user moved to Braga."]


async def test_a_merge_leaves_one_value_where_one_holds(graph: Memory) -> None:
    await tell(graph, "My brother lives in Faro.", "Rui lives in Braga.")
    await graph.merge((await entity_named(graph, "user's brother")).id, (await entity_named(graph, "Rui")).id)
    assert {(label, tail) for _, label, tail in await triples(graph) if label == "location"} == {("location", "Braga")}


async def test_a_question_about_another_town_moves_nobody(graph: Memory) -> None:
    await tell(graph, "I live in Porto.")
    (asked,) = (await graph.remember([Said("What is the weather in Paris?")], session="s")).turns
    body = {"turn": asked.id, "remember": False, "facts": [["city", "Paris"], ["weather", "unknown"]]}
    await graph.store.log(graph.scope, Event(f"notes-{asked.id}", "notes", asked.at, (asked.id,), body))
    await graph.drain()
    assert await triples(graph) == {("user", "location", "Porto")}


async def test_where_somebody_lives_with_a_cat_is_a_place_and_her_name_is_the_cats(graph: Memory) -> None:
    await tell(
        graph, "I'm Karen, I live in Moab with my cat.", "Her name is Luna and she is eleven.", "I moved to Porto."
    )
    now = await triples(graph)
    assert ("user", "location", "Porto") in now
    assert ("user's cat", "name", "Luna") in now or ("user", "cat", "Luna") in now
    assert not [t for t in now if t[0].startswith("Karen") or "with" in t[2]]
