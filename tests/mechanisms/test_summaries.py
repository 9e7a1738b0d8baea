"""Summaries: bounds, what is invented, and the rule where no model answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import T0, asks, put, summary
from nyima.domain.changes import Add, Change, Retire, Revise
from nyima.domain.conversation import Origin, Role
from nyima.domain.ports import Job
from nyima.domain.records import Summary
from nyima.domain.roles import Written
from nyima.errors import NotFound
from nyima.language.words import sentences
from nyima.mechanisms.summaries import MendWriter, RecursiveWriter, SummaryWriter, bounded, running, standing
from nyima.memory import Memory, Said
from nyima.read.calls import Caller
from nyima.testing import FixedClock
from nyima.write.desk import Desk, notes_event

TALK = [Said("I live in Moab with my cat."), Said("How nice!", Role.ASSISTANT), Said("I work as a nurse there.")]


def desk(memory: Memory, *answers: object, lane: str = "summary", **more: Any) -> Desk:
    caller: Caller | None = asks(*answers, lane=lane)[0] if answers else None
    return Desk(memory.store, caller, memory.clock, **more)


async def told(memory: Memory, what: list[Said] = TALK, session: str = "s1") -> Job:
    await memory.remember(what, session=session, owed=False)
    return Job("j", "summary", session)


def body(written: Written) -> str:
    return made(written).body


def made(written: Written) -> Summary:
    (change,) = written.delta.changes
    record = change.record if isinstance(change, Add) else change.successor  # type: ignore[union-attr]
    assert isinstance(record, Summary)
    return record


# --- the bound ---


texts = st.lists(
    st.sampled_from(["The cat is grey.", "The dog barks!", "Who knows?", "Tea.", "猫。", "no stop"]), max_size=12
)


@given(texts, st.integers(0, 6), st.sampled_from(["", "The cat is grey and the dog barks."]))
def test_no_more_sentences_stay_than_are_allowed_and_none_is_new(given: list[str], most: int, recent: str) -> None:
    kept = bounded("\n".join(given), most, [recent])
    assert len(sentences(kept)) <= most
    assert kept == " ".join(part for part in dict.fromkeys(given) if part in kept), "in order, each once"


def test_what_fits_stays_in_order_and_each_sentence_once() -> None:
    assert bounded("A b.\nC d. A b.", 5, []) == "A b. C d."
    assert bounded("", 5, []) == ""


def test_what_was_spoken_of_lately_stays_and_the_last_of_the_others_goes_first() -> None:
    text = "The cat is grey. The dog barks. The bus is late. The house is red."
    assert bounded(text, 3, ["my dog barks"]) == "The cat is grey. The dog barks. The bus is late."
    assert bounded(text, 1, ["my dog barks"]) == "The dog barks."
    assert bounded(text, 1, ["the cat is grey, the dog barks"]) == "The cat is grey.", "of what was, the last goes"


async def test_without_a_model_the_running_memory_is_bounded_too(memory: Memory, clock: FixedClock) -> None:
    for number in range(6):
        lines = [Said(f"I really do like the thing number {number}{i}.") for i in range(4)]
        job = await told(memory, lines, f"s{number}")
        written = await RecursiveWriter(desk(memory), most=6).write(memory.scope, job)
        await memory.store.commit(memory.scope, written.delta)
        clock.forward(days=1)
    last = await running(desk(memory), memory.scope)
    assert last is not None
    assert last.body.count("The user said") <= 6


# --- a summary of each session ---


async def test_a_summary_keeps_what_the_dialogue_supports(memory: Memory) -> None:
    job = await told(memory)
    answer = {"text": "The user lives in Moab. The user was born in Lisbon. The user works as a nurse."}
    record = made(await SummaryWriter(desk(memory, answer)).write(memory.scope, job))
    assert record.body == "The user lives in Moab. The user works as a nurse."
    assert (record.id, record.level, record.covers) == ("s-session-s1", "session", ("s1",))
    assert (record.provenance.writer, record.provenance.model) == ("summary", "scripted")
    assert len(record.provenance.turns) == 3


@pytest.mark.parametrize("answers", [(), ("what?", "no"), ({"text": "Everything was invented in Lisbon by Bob."},)])
async def test_else_it_is_what_the_user_stated(memory: Memory, answers: tuple[object, ...]) -> None:
    job = await told(memory, [*TALK, Said("And what is the weather like today over there?"), Said("ok")])
    found = body(await SummaryWriter(desk(memory, *answers)).write(memory.scope, job))
    assert found.splitlines() == [
        "The user said: “I live in Moab with my cat.”",
        "The user said: “I work as a nurse there.”",
    ]


async def test_where_nothing_was_stated_the_beginning_stands_for_it(memory: Memory) -> None:
    job = await told(memory, [Said("hm?"), Said("Yes?", Role.ASSISTANT)])
    assert body(await SummaryWriter(desk(memory)).write(memory.scope, job)) == "User: hm?\nAssistant: Yes?"


async def test_a_session_without_the_user_has_no_summary(memory: Memory) -> None:
    job = await told(memory, [Said("Hello!", Role.ASSISTANT)])
    for writer in (SummaryWriter(desk(memory, {"text": "Hello."})), RecursiveWriter(desk(memory, {"text": "Hello."}))):
        assert await writer.write(memory.scope, job) == Written()


async def test_a_long_session_is_summarised_in_windows(memory: Memory) -> None:
    job = await told(memory, [Said(f"My cat number {i} is grey and sleeps all day. " * 5) for i in range(8)])
    written = await SummaryWriter(desk(memory, {"text": "The cat is grey."}, room=150)).write(memory.scope, job)
    assert body(written).count("The cat is grey.") > 2


async def test_a_summary_is_trusted_like_the_least_of_what_it_covers(memory: Memory) -> None:
    job = await told(memory, [*TALK, Said("The page says so.", Role.TOOL, origin=Origin.DOCUMENT)])
    assert made(await SummaryWriter(desk(memory)).write(memory.scope, job)).provenance.origin is Origin.DOCUMENT


async def test_a_session_that_is_gone_is_named(memory: Memory) -> None:
    with pytest.raises(NotFound, match="'nowhere' is gone"):
        await SummaryWriter(desk(memory)).write(memory.scope, Job("j", "summary", "nowhere"))


# --- the running memory ---


FIRST = summary("s-running-s0", "The user has a dog.", covers=("s0",))
FOLDED = {"text": "The user has a dog. The user lives in Moab. The user is a pilot."}


async def fold(memory: Memory, *answers: object, job: Job | None = None) -> Written:
    return await RecursiveWriter(desk(memory, *answers, lane="fold")).write(memory.scope, job or await told(memory))


async def test_the_first_one_is_added_and_the_next_takes_its_place(memory: Memory) -> None:
    first = await fold(memory, FOLDED)
    assert isinstance(first.delta.changes[0], Add)
    assert first.expect == await memory.store.revision(memory.scope)
    await put(memory, FIRST)
    written = await fold(memory, FOLDED, job=await told(memory))
    (change,) = written.delta.changes
    assert isinstance(change, Revise)
    new = made(written)
    assert change.id == new.supersedes == FIRST.id
    assert (new.covers, new.provenance.records) == (("s0", "s1"), (FIRST.id,))
    assert new.body == "The user has a dog. The user lives in Moab.", "nobody said that they are a pilot"


async def test_a_session_is_folded_in_once(memory: Memory) -> None:
    await put(memory, replace(FIRST, covers=("s0", "s1")))
    assert await fold(memory, FOLDED) == Written()


async def test_its_trust_never_rises_again(memory: Memory) -> None:
    await put(memory, replace(FIRST, provenance=replace(FIRST.provenance, origin=Origin.DOCUMENT)))
    assert made(await fold(memory, FOLDED)).provenance.origin is Origin.DOCUMENT


async def test_an_answer_that_cannot_be_used_leaves_memory_and_statements(memory: Memory) -> None:
    await put(memory, FIRST)
    new = made(await fold(memory, {"text": "All invented by Bob."}))
    assert "The user has a dog." in new.body
    assert "I live in Moab" in new.body
    assert (new.provenance.prompt, new.provenance.model) == ("", "")


async def test_only_what_was_worth_keeping_is_folded_with_the_question_before_it(memory: Memory) -> None:
    job = await told(
        memory, [Said("So boring."), Said("Where do you live?", Role.ASSISTANT), Said("In Moab, since May.")]
    )
    turns = await memory.turns("s1")
    for turn, remember in ((turns[0], False), (turns[2], True)):
        await memory.store.log(memory.scope, notes_event(turn, {"remember": remember, "facts": []}, memory.clock))
    caller, model = asks({"text": "The user lives in Moab since May."}, lane="fold")
    await RecursiveWriter(Desk(memory.store, caller, memory.clock)).write(memory.scope, job)
    (asked,) = model.requests
    assert "Where do you live?" in asked.last
    assert "In Moab, since May." in asked.last
    assert "boring" not in asked.last


async def test_a_session_of_which_nothing_is_kept_changes_nothing(memory: Memory) -> None:
    await put(memory, FIRST)
    job = await told(memory)
    for turn in await memory.turns("s1"):
        await memory.store.log(memory.scope, notes_event(turn, {"remember": False, "facts": []}, memory.clock))
    assert await fold(memory, FOLDED, job=job) == Written()


async def test_what_stands_in_every_prompt_is_the_newest_of_each_level(memory: Memory, clock: FixedClock) -> None:
    at = clock.now()
    await put(
        memory, summary("a", "old", "running", at=at), summary("d", "day", "day", at=at), summary("p", "portrait", "portrait", at=at),
        summary("x", "wrong", "overall", at=at, stale=True),
    )  # fmt: skip
    clock.forward(days=1)
    await put(memory, summary("b", "new", "running", at=clock.now()))
    assert [s.id for s in await standing(desk(memory), memory.scope)] == ["b", "p"]


# --- mending ---


STALE = summary("m", "The user lives in Moab. The user has a cat.", stale=True)


async def mended(memory: Memory, record: Summary = STALE) -> tuple[Change, ...]:
    await put(memory, record)
    return (await MendWriter(desk(memory)).write(memory.scope, Job("j", "mend", record.id))).delta.changes


async def test_the_new_value_takes_the_place_of_the_old(memory: Memory, clock: FixedClock) -> None:
    old = await memory.set("lives in", "Moab")
    clock.forward(days=1)
    await memory.revise(old.id, "Porto")
    (change,) = await mended(memory)
    assert isinstance(change, Revise)
    assert isinstance(change.successor, Summary)
    assert change.successor.body == "The user lives in Porto. The user has a cat."
    assert (change.successor.stale, change.successor.supersedes, change.successor.valid.since) == (False, "m", T0)


async def test_a_value_that_ended_takes_its_sentence_with_it(memory: Memory, clock: FixedClock) -> None:
    old = await memory.set("lives in", "Moab")
    clock.forward(days=1)
    await memory.retire(old.id)
    (change,) = await mended(memory)
    assert isinstance(change, Revise)
    assert change.successor.text == "The user has a cat."
    (change,) = await mended(memory, replace(STALE, id="n", body="The user lives in Moab."))
    assert isinstance(change, Retire), "nothing of it holds"


@pytest.mark.parametrize("record", [replace(STALE, stale=False), replace(STALE, id="other")])
async def test_what_is_not_stale_or_not_there_needs_no_mending(memory: Memory, record: Summary) -> None:
    await put(memory, record)
    assert await MendWriter(desk(memory)).write(memory.scope, Job("j", "mend", "m")) == Written()
