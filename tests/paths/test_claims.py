"""What is believed, through the public API: read by a model, looked at again, closed, confirmed, undone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import claim, entity, put
from nyima.domain.conversation import Origin, Role
from nyima.domain.evidence import Budget
from nyima.domain.ports import Looked, Verifier
from nyima.domain.records import Claim, Status
from nyima.memory import Memory, Said
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from nyima.transfer.restore import restore
from support import Agrees, SaysNo, answer, companion, reading

T0 = datetime(2026, 5, 2, 10, tzinfo=UTC)
PORTO, BRAGA = ("user", "lives in", "Porto"), ("user", "lives in", "Braga")
HOME = reading(Porto=[PORTO], Braga=[BRAGA, ("outdated", "1")])


@asynccontextmanager
async def memory_that_reads(
    db: Path, clock: FixedClock, read: Any, verifier: Verifier | None = None, **more: Any
) -> AsyncIterator[Memory]:
    clock.at = T0
    model = ScriptedModel({"read": [read], "note": ['{"context": "", "knowledge": "Something."}'], **more})
    async with Memory.open(
        db, recipe="graph", embedder=HashEmbedder(), clock=clock, model=model, verifier=verifier or Agrees()
    ) as memory:
        yield memory


async def tell(memory: Memory, *texts: str | Said) -> None:
    """Messages, an hour apart, each read before the next."""
    for text in texts:
        await memory.remember([text if isinstance(text, Said) else Said(text)], session="s")
        await memory.drain()
        memory.clock.forward(hours=1)  # type: ignore[attr-defined]


async def holding(memory: Memory) -> set[tuple[str, str, str]]:
    return {(c.name, c.attribute, c.value) for c in await memory.claims() if c.status is Status.HOLDS and not c.stale}


# --- without a model ---


async def test_without_a_model_nothing_is_claimed_and_what_waits_is_counted(memory: Memory) -> None:
    for text in ("I live in Porto.", "I moved to Braga.", "My boss is Karen."):
        await memory.remember([Said(text)], session="s")
        await memory.drain()
    await memory.remember("My locker number is 12")
    assert await memory.claims(every=True) == []
    assert (await memory.profile()).as_dict() == {}
    assert await memory.unread() == 4
    assert (await memory.recall("where do I live?")).kept != (), "the words are found all the same"


@pytest.mark.req("emg.collect", "emg.active")
async def test_what_waited_is_read_when_a_model_comes_in_few_calls(db: Path, clock: FixedClock) -> None:
    async with Memory.open(db, embedder="none", clock=clock) as memory:
        for n in range(6):
            await memory.remember([Said(f"I like tea number {n}.")], session="s")
    model = ScriptedModel(
        {"read": [reading(number_3=[("user", "likes", "tea number 3")])], "note": ['{"context": "", "knowledge": "x"}']}
    )
    async with Memory.open(db, embedder="none", clock=clock, model=model, verifier=Agrees()) as memory:
        await memory.drain()
        assert await memory.unread() == 0
        assert await holding(memory) == {("user", "likes", "tea number 3")}
    assert len(model.asked("read")) == 1, "six messages in one call"


# --- stating and ending ---


@pytest.mark.req("emg.graph", "emg.replace", "emg.normalise", "prof.merge")
async def test_what_both_say_is_over_is_closed_with_reason_quote_and_history(db: Path, clock: FixedClock) -> None:
    async with memory_that_reads(db, clock, HOME) as memory:
        await tell(memory, "I live in Porto.", "So that's us out of here. Unpacking in Braga!")
        assert await holding(memory) == {BRAGA}
        old, new = await memory.claims(every=True)
        assert (old.valid.until, new.supersedes) == (new.valid.since, old.id)
        assert new.quote is not None
        (_, second) = await memory.turns()
        assert second.text[new.quote.start : new.quote.end] == "Unpacking in Braga!"
        (change, _) = await memory.log()
        assert str(change) == "lives in: Porto → Braga"
        then = await memory.claims(as_of=T0 + timedelta(minutes=30))
        assert [c.value for c in then] == ["Porto"]
        await memory.undo()
        assert await holding(memory) == {PORTO}
        await memory.redo()
        assert await holding(memory) == {BRAGA}


@pytest.mark.req("emg.insert")
async def test_two_values_hold_side_by_side_where_neither_is_over(db: Path, clock: FixedClock) -> None:
    read = reading(Rex=[("user", "has dog", "Rex")], Max=[("user", "has dog", "Max")])
    async with memory_that_reads(db, clock, read, Agrees("nothing")) as memory:
        await tell(memory, "I have a dog, Rex.", "We got a second dog, Max!")
        assert await holding(memory) == {("user", "has dog", "Rex"), ("user", "has dog", "Max")}
        assert not [c for c in await memory.claims() if c.stale]
        assert (await memory.profile()).get("has dog") == ("Rex", "Max")


@pytest.mark.parametrize(
    ("read", "verifier"),
    [(HOME, Agrees("nothing")), (reading(Porto=[PORTO], Braga=[BRAGA]), Agrees())],
    ids=["the reader alone", "the second look alone"],
)
async def test_what_one_of_the_two_says_leaves_both_and_what_they_say_is_weighed(
    db: Path, clock: FixedClock, read: Any, verifier: Verifier
) -> None:
    """The reader's number against a sure no changes nothing; a sure yes against the reader labels both."""
    async with memory_that_reads(db, clock, read, verifier) as memory:
        await tell(memory, "I live in Porto.", "I moved to Braga.")
        claims = {c.value: c for c in await memory.claims()}
        assert set(claims) == {"Porto", "Braga"}
        labelled = {v for v, c in claims.items() if c.stale}
        assert labelled == (set() if isinstance(verifier, Agrees) and verifier.over else {"Porto", "Braga"})


class Unsure:
    """A second look that is sure of nothing."""

    looks_further = True

    async def look(self, scope: object, message: str, known: Sequence[Claim], new: Sequence[Claim]) -> Looked:
        del scope, message
        return Looked.unsure(known, new)


async def test_where_the_second_look_is_unsure_both_stand_labelled_and_nothing_is_closed(
    db: Path, clock: FixedClock
) -> None:
    async with memory_that_reads(db, clock, HOME, Unsure()) as memory:
        await tell(memory, "I live in Porto.", "I moved to Braga.")
        assert {(c.value, c.stale) for c in await memory.claims()} == {("Porto", True), ("Braga", True)}
        assert (await memory.profile()).as_dict() == {}
        found = (await memory.recall("lives in", Budget(9, 9_000))).kept
        assert {e.record.stale for e in found if e.record.kind == "claim"} == {True}


@pytest.mark.parametrize(("window", "looks"), [(4_096, 0), (32_000, 2)])
async def test_a_small_local_model_is_not_asked_again_and_closes_nothing(
    db: Path, clock: FixedClock, window: int, looks: int
) -> None:
    clock.at = T0
    model = ScriptedModel(
        {"read": [HOME], "look": [lambda _: '{"over": [1], "said": [1]}'], "note": ['{"context": "", "knowledge": "Something."}']},
        window=window,
    )  # fmt: skip
    async with Memory.open(db, recipe="graph", embedder=HashEmbedder(), clock=clock, model=model) as memory:
        await tell(memory, "I live in Porto.", "Moved to Braga.")
        assert sum(r.lane == "look" for r in model.requests) == looks
        stand = {(c.value, c.stale) for c in await memory.claims()}
        assert stand == ({("Braga", False)} if looks else {("Porto", True), ("Braga", True)})


async def test_numbers_of_a_turn_that_states_nothing_label_nothing_where_nobody_looks_again(
    db: Path, clock: FixedClock
) -> None:
    clock.at = T0
    read = reading(Porto=[PORTO], tired=[("outdated", "1")])
    model = ScriptedModel({"read": [read], "note": ['{"context": "", "knowledge": "Something."}']})
    async with Memory.open(db, recipe="graph", embedder=HashEmbedder(), clock=clock, model=model) as memory:
        await tell(memory, "I live in Porto.", "I am so tired of everything today.")
        assert await holding(memory) == {PORTO}


async def test_what_the_message_does_not_assert_is_not_kept(db: Path, clock: FixedClock) -> None:
    read = reading(Rome=[("user", "lives in", "Rome")])
    async with memory_that_reads(db, clock, read, SaysNo()) as memory:
        await tell(memory, "If I ever moved to Rome I'd learn Italian.")
        assert await memory.claims(every=True) == []
        assert await memory.records(kinds=("entity",)) == [], "no node of what is not believed"


async def test_a_value_that_the_message_does_not_say_is_not_kept(db: Path, clock: FixedClock) -> None:
    read = reading(Porto=[PORTO, ("user", "job", "nurse in Leeds"), ("dog Max", "age", "3")])
    async with memory_that_reads(db, clock, read) as memory:
        await tell(memory, "I live in Porto.")
        assert await holding(memory) == {PORTO}


async def test_what_ended_or_was_denied_is_kept_as_such_and_closes_what_it_names(db: Path, clock: FixedClock) -> None:
    read = reading(
        sold=[("user", "owns", "boat", "ended")],
        a_boat=[("user", "owns", "boat")],
        nuts=[("user", "allergic to", "nuts", "denied")],
    )
    async with memory_that_reads(db, clock, read, Agrees("boat")) as memory:
        await tell(memory, "I own a boat.", "We sold the boat.", "I'm not allergic to nuts.")
        assert await holding(memory) == set()
        assert {(c.value, c.status) for c in await memory.claims()} == {("boat", Status.ENDED), ("nuts", Status.DENIED)}


async def test_what_is_planned_does_not_hold_when_its_day_has_come(db: Path, clock: FixedClock) -> None:
    read = reading(DHL=[("user", "works for", "DHL", "planned")])
    async with memory_that_reads(db, clock, read) as memory:
        await tell(memory, "I'm starting at DHL next month.")
        clock.forward(days=90)
        assert await holding(memory) == set()
        (planned,) = await memory.claims()
        assert planned.text == "user works for: DHL (planned, not confirmed)"
        await memory.confirm(planned.id)
        assert await holding(memory) == {("user", "works for", "DHL")}


async def test_what_is_told_again_is_one_memory_with_both_turns_and_certain_again(db: Path, clock: FixedClock) -> None:
    async with memory_that_reads(db, clock, HOME) as memory:
        await tell(memory, "I live in Porto.", "Still in Porto, and happy.")
        (home,) = await memory.claims()
        assert len(home.provenance.turns) == 2


async def test_an_older_message_that_comes_late_closes_nothing_newer(db: Path, clock: FixedClock) -> None:
    read = reading(Porto=[PORTO], Berlin=[("user", "lives in", "Berlin"), ("outdated", "1")])
    async with memory_that_reads(db, clock, read) as memory:
        await tell(memory, "I live in Porto.", Said("I live in Berlin.", at=datetime(2020, 1, 1, tzinfo=UTC)))
        assert PORTO in await holding(memory)


async def test_entities_are_named_once_and_a_name_finds_who_has_it(db: Path, clock: FixedClock) -> None:
    read = reading(
        Faro=[("sister Inês", "lives in", "Faro")],
        nurse=[("Inês", "works as", "nurse")],
        Rui=[("brother", "name", "Rui")],
    )
    async with memory_that_reads(db, clock, read) as memory:
        await tell(memory, "My sister Inês lives in Faro.", "Inês works as a nurse.", "My brother is called Rui.")
        subjects = {c.value: c.subject for c in await memory.claims()}
        assert subjects["Faro"] == subjects["nurse"] != subjects["Rui"]


# --- a reply's own notes ---


async def test_the_model_that_replies_states_and_ends_in_its_one_call(db: Path, clock: FixedClock) -> None:
    model = ScriptedModel({
        "chat": [
            answer("Nice town!", claims=[PORTO]), answer("Good luck!", claims=[BRAGA], outdated=[1]), answer("ok"),
        ],
        "note": ['{"context": "", "knowledge": "Something."}'],
    })  # fmt: skip
    async with companion(db, model, clock=clock, verifier=Agrees()) as nyima:
        for text in ("I live in Porto.", "I moved to Braga last week.", "Where do I live?"):
            await nyima.reply(text)
            await nyima.drain()
            clock.forward(hours=3)
        assert (await nyima.memory.profile()).as_dict() == {"lives in": "Braga"}
    assert "(1) user lives in: Porto" in model.asked("chat")[1].last
    assert "Braga" in model.asked("chat")[2].last + model.asked("chat")[2].system
    assert model.asked("read") == [], "no call but the reply's"


async def test_a_number_that_was_not_shown_ends_nothing(db: Path, clock: FixedClock) -> None:
    model = ScriptedModel({"chat": [answer("ok", claims=[PORTO]), answer("ok", remember=True, outdated=[2, 7, 99])]})
    async with companion(db, model, recipe="graph", clock=clock, verifier=Agrees()) as nyima:
        for text in ("I live in Porto.", "Rainy again."):
            await nyima.reply(text)
            await nyima.drain()
            clock.forward(minutes=5)
        assert await holding(nyima.memory) == {PORTO}
        assert not [j for j in await nyima.memory.store.jobs(nyima.memory.scope) if j.state == "parked"]


@pytest.mark.parametrize(
    "reads",
    ["no idea", "{}", '{"turns": "none"}', '{"turns": [{"n": 7, "claims": [{"who": "user"}]}]}',
     json.dumps({"turns": [{"n": 1, "remember": True, "claims": [["x"] * 9, 4, None], "outdated": [1, 2, 3, -4]}]})],
)  # fmt: skip
async def test_an_answer_that_makes_no_sense_loses_nothing_and_invents_nothing(
    db: Path, clock: FixedClock, reads: str
) -> None:
    async with memory_that_reads(db, clock, lambda r: HOME(r) if "Porto" in r.last else reads) as memory:
        await tell(memory, "I live in Porto.", "Some words of the day.")
        assert await holding(memory) == {PORTO}
        assert len(await memory.turns()) == 2
        assert not [j for j in await memory.store.jobs(memory.scope) if j.state == "parked"]


# --- whose words ---


@pytest.mark.req("emg.screenshots")
@pytest.mark.parametrize("origin", [Origin.DOCUMENT, Origin.TOOL])
async def test_what_is_not_the_owners_own_word_waits_and_ends_nothing(
    db: Path, clock: FixedClock, origin: Origin
) -> None:
    async with memory_that_reads(db, clock, HOME) as memory:
        await tell(memory, "I live in Porto.", Said("I live in Braga.", Role.USER, origin=origin))
        assert await holding(memory) == {PORTO}
        (waits,) = [c for c in await memory.claims() if c.status is Status.PENDING]
        assert waits.value == "Braga"
        assert waits.text == "user lives in: Braga (not confirmed by the user)"


async def test_what_the_assistant_says_is_never_claimed(db: Path, clock: FixedClock) -> None:
    async with memory_that_reads(db, clock, HOME) as memory:
        await tell(memory, Said("You live in Braga.", Role.ASSISTANT))
        assert await memory.claims(every=True) == []


@pytest.mark.req("emg.passive")
async def test_what_the_user_asks_to_remember_is_kept_at_once_and_read(db: Path, clock: FixedClock) -> None:
    async with memory_that_reads(db, clock, reading(locker=[("user", "locker number", "12")])) as memory:
        await memory.remember("My locker number is 12")
        await memory.drain()
        assert await holding(memory) == {("user", "locker number", "12")}


# --- ends in time, several users, files of the first edition ---


@pytest.mark.req("emg.delete")
async def test_a_claim_with_an_end_leaves_recall_by_the_clock_alone(memory: Memory, clock: FixedClock) -> None:
    from nyima.mechanisms.by_hand import Statement

    await memory.state(Statement("user", "has spa voucher", "Aqua", until=clock.now() + timedelta(days=10)))
    assert [e for e in (await memory.recall("spa voucher")).kept if e.record.kind == "claim"]
    clock.forward(days=11)
    changes = await memory.store.changes(memory.scope)
    assert not [e for e in (await memory.recall("spa voucher")).kept if e.record.kind == "claim"]
    assert await memory.store.changes(memory.scope) == changes, "nothing was written"
    assert len(await memory.claims(every=True)) == 1, "it stays in history"


@pytest.mark.req("emg.private")
async def test_each_users_claims_are_their_own(db: Path, clock: FixedClock) -> None:
    async with Memory.open(db, user="ana", embedder="none", clock=clock) as ana:
        await ana.set("lives in", "Porto")
    async with Memory.open(db, user="ben", embedder="none", clock=clock) as ben:
        assert await ben.records(retired=True) == []
        assert (await ben.recall("Porto")).kept == ()


async def test_an_export_of_the_first_edition_comes_back_as_claims(memory: Memory) -> None:
    made = {"turns": [], "records": [], "writer": "graph", "prompt": "", "model": "", "origin": "user"}
    base = {"provenance": made, "valid": [0, None], "recorded": [0, None], "stale": False, "supersedes": None}
    rows: list[dict[str, Any]] = [
        {**base, "id": "x1", "kind": "entity", "name": "Porto", "subclass": "", "aliases": [], "claim": None},
        {**base, "id": "f1", "kind": "fact", "key": "cat_name", "value": "Luna", "claim": ["user", "cat_name"]},
        {**base, "id": "r1", "kind": "relation", "head": "user", "label": "lives_in", "tail": "x1", "rests": ["f1"],
         "note": "The user lives in Porto.", "subclass": "Address", "claim": ["user", "lives_in"]},
    ]  # fmt: skip
    await restore(memory, [json.dumps({"record": row}) for row in rows], "old.jsonl")
    assert (await memory.profile()).as_dict() == {"cat name": "Luna", "lives in": "Porto"}
    home = await memory.record("r1")
    assert isinstance(home, Claim)
    assert (home.object, home.depends_on, home.subclass) == ("x1", ("f1",), "Address")


@given(st.lists(st.sampled_from(["set", "revise", "retire", "confirm"]), min_size=1, max_size=6))
async def test_undoing_every_change_restores_every_state(steps: list[str]) -> None:
    import tempfile

    clock = FixedClock()
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(Path(folder) / "m.db", embedder="none", clock=clock) as memory:
            await put(memory, entity("user", "user"), claim("c1", "lives in", "Porto", stale=True))
            states = [await state_of(memory)]
            for number, step in enumerate(steps):
                clock.forward(minutes=1)
                held = [c for c in await memory.claims() if c.status is Status.HOLDS]
                if step == "set" or not held:
                    await memory.set("lives in", f"town {number}")
                elif step == "revise":
                    await memory.revise(held[-1].id, f"city {number}")
                elif step == "confirm":
                    await memory.confirm(held[-1].id)
                else:
                    await memory.retire(held[-1].id)
                states.append(await state_of(memory))
            for before in states[-2::-1]:
                clock.forward(minutes=1)
                await memory.undo()
                assert await state_of(memory) == before


async def state_of(memory: Memory) -> set[tuple[str, str, str, bool]]:
    return {(c.subject, c.attribute, c.value, c.stale) for c in await memory.claims()}
