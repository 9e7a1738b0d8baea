"""The writers of one turn and of the profile: gate, note, merge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from made import asks, fact, put
from nyima.domain.changes import Add, Retire, Revise
from nyima.domain.conversation import Origin, Role
from nyima.domain.ports import Job
from nyima.domain.recipe import Recipe
from nyima.domain.records import Note, ProfileFact
from nyima.domain.roles import Written
from nyima.errors import NotFound
from nyima.mechanisms.conditional import NoteWriter, passive_note
from nyima.mechanisms.gate import GateWriter
from nyima.mechanisms.profile import ProfileWriter
from nyima.memory import Memory, Said
from nyima.testing import FixedClock, ScriptedModel
from nyima.write.desk import Desk, notes_event

KEEPS = Recipe("r", "", ("conditional", "profile", "graph"), gate="reply")


def desk(memory: Memory, *answers: object, lane: str, recipe: Recipe = KEEPS) -> Desk:
    caller = asks(*answers, lane=lane)[0] if answers else None
    return Desk(
        memory.store, caller, memory.clock, recipe=recipe, follow_ups=lambda n: [("note", "")] if n.remember else []
    )


async def last_turn(memory: Memory, *what: Said) -> Job:
    stored = await memory.remember(list(what), session="s1", owed=False)
    return Job("j", "x", stored.turns[-1].id, recipe="r")


async def outcomes(caller_of: Desk, memory: Memory) -> list[str]:
    assert caller_of.caller is not None
    return [e.body["outcome"] for e in await caller_of.caller.store.events(memory.scope, "call")]


# --- the gate ---


async def gated(memory: Memory, text: str, *answers: object, **more: Any) -> Written:
    job = await last_turn(memory, Said("Where do you live?", Role.ASSISTANT), Said(text, **more))
    return await GateWriter(desk(memory, *answers, lane="gate")).write(memory.scope, job)


async def test_what_the_model_says_of_a_turn_is_noted_and_its_record_is_owed(memory: Memory) -> None:
    written = await gated(memory, "I live in Moab.", {"remember": True, "facts": {"city": "Moab"}})
    (event,) = written.events
    assert (event.body["remember"], event.body["facts"], event.body["model"]) == (True, [["city", "Moab"]], True)
    assert event.body["by"].startswith("gate@")
    assert [j.kind for j in written.jobs] == ["note"]
    assert not written.delta


@pytest.mark.parametrize("answers", [(), ("what?", "no")])
async def test_without_a_usable_answer_the_rule_decides_and_says_so(
    memory: Memory, answers: tuple[object, ...]
) -> None:
    (event,) = (await gated(memory, "I am allergic to walnuts and I live in Moab.", *answers)).events
    assert (event.body["remember"], event.body["by"], event.body["model"], event.body["facts"]) == (
        True,
        "rule",
        None,
        [],
    )
    (event,) = (await gated(memory, "hm, ok", *answers)).events
    assert event.body["remember"] is False


async def test_what_the_user_did_not_say_is_no_matter_for_the_model(memory: Memory) -> None:
    for more in ({"role": Role.ASSISTANT}, {"origin": Origin.DOCUMENT}):
        job = await last_turn(memory, Said("I live in Moab.", **more))
        caller, model = asks({"remember": True, "facts": {"city": "Moab"}}, lane="gate")
        (event,) = (await GateWriter(Desk(memory.store, caller, memory.clock)).write(memory.scope, job)).events
        assert event.body["facts"] == []
        assert not model.requests


async def test_facts_that_come_after_the_merge_are_merged_again(db: Path, clock: FixedClock) -> None:
    answer = {"remember": False, "facts": {"city": "Moab"}}
    async with Memory.open(db, model=ScriptedModel(), embedder="none", clock=clock) as memory:
        assert [j.kind for j in (await gated(memory, "I live in Moab.", answer)).jobs] == ["note"]
        await memory.end_session("s1")
        await memory.drain()
        jobs = (await gated(memory, "I live in Moab.", answer)).jobs
        assert [(j.kind, j.subject) for j in jobs[1:]] == [("profile", "s1")]
        without = (await gated(memory, "I live in Moab.", {**answer, "facts": {}})).jobs
        assert "profile" not in [j.kind for j in without]


# --- the note of one turn ---


async def noted(
    memory: Memory, *answers: object, recipe: Recipe = KEEPS, before: str = "Tell me!"
) -> tuple[Note, Written]:
    job = await last_turn(memory, Said(before, Role.ASSISTANT), Said("I live in Moab with my cat."))
    written = await NoteWriter(desk(memory, *answers, lane="note", recipe=recipe)).write(memory.scope, job)
    (change,) = written.delta.changes
    assert isinstance(change, Add)
    assert isinstance(change.record, Note)
    return change.record, written


GOOD = {
    "context": "The user said where they live with the cat.",
    "knowledge": "The user lives in Moab with a cat.",
    "facts": {},
}


async def test_a_note_has_context_knowledge_and_the_turns_around_it(memory: Memory) -> None:
    made, written = await noted(memory, GOOD)
    assert (made.context, made.knowledge) == (GOOD["context"], GOOD["knowledge"])
    own, other = made.provenance.turns
    assert made.id == f"n-{own}"
    assert other != own
    assert made.provenance.prompt.startswith("note@")
    assert [j.kind for j in written.jobs] == ["graph"], "the graph reads it too"


async def test_what_is_invented_is_left_out(memory: Memory) -> None:
    knowledge = "The user lives in Moab. The user is married to Bob. The user has a cat."
    made, _ = await noted(memory, {**GOOD, "knowledge": knowledge, "context": "Bob asked about Lisbon."})
    assert made.knowledge == "The user lives in Moab. The user has a cat."
    assert made.context == ""


@pytest.mark.parametrize("answers", [(), ("what?", "no"), ({**GOOD, "knowledge": "Bob is in Lisbon."},)])
async def test_else_the_users_own_words_are_kept(memory: Memory, answers: tuple[object, ...]) -> None:
    made, written = await noted(memory, *answers)
    assert made.knowledge == "I live in Moab with my cat."
    assert bool(written.jobs) == (made.provenance.model != ""), "without a model there is nothing new for the graph"


async def test_a_question_explains_its_answer(memory: Memory) -> None:
    assert (await noted(memory, before="Where do you live?"))[0].context == "Assistant: Where do you live?"
    assert (await noted(memory, before="Nice."))[0].context == ""


@pytest.mark.parametrize(
    ("parts", "text"), [(("context",), GOOD["context"]), (("knowledge",), GOOD["knowledge"]), ((), "")]
)
async def test_an_ablation_leaves_a_part_out(memory: Memory, parts: tuple[str, ...], text: str) -> None:
    assert (await noted(memory, GOOD, recipe=Recipe("r", "", parts=parts)))[0].text == text


async def test_the_facts_of_a_note_go_into_the_journal(memory: Memory) -> None:
    _, written = await noted(memory, {**GOOD, "facts": {"city": "Moab"}})
    assert [e.body["facts"] for e in written.events] == [[["city", "Moab"]]]
    assert (await noted(memory, GOOD))[1].events == ()


async def test_a_turn_that_is_gone_is_named(memory: Memory) -> None:
    for writer in (NoteWriter(desk(memory, lane="note")), GateWriter(desk(memory, lane="gate"))):
        with pytest.raises(NotFound, match="'gone' is gone"):
            await writer.write(memory.scope, Job("j", "x", "gone"))


async def test_what_the_user_asks_to_remember_is_kept_word_for_word(memory: Memory) -> None:
    turn = (await memory.remember([Said("the code is 4711")], session="s1", owed=False)).turns[0]
    made = passive_note(turn, desk(memory, lane="note"))
    assert (made.text, made.provenance.turns, made.provenance.model) == ("the code is 4711", (turn.id,), "")


# --- the merge into the profile ---


async def merged(
    memory: Memory, *told: tuple[str, dict[str, str]], answers: tuple[object, ...] = (), **more: Any
) -> Written:
    stored = await memory.remember([Said(text, **more) for text, _ in told], session="s1", owed=False)
    for turn, (_, facts) in zip(stored.turns, told, strict=True):
        body: dict[str, object] = {"remember": True, "facts": [list(p) for p in facts.items()]}
        await memory.store.log(memory.scope, notes_event(turn, body, memory.clock))
    return await ProfileWriter(desk(memory, *answers, lane="merge")).write(memory.scope, Job("j", "profile", "s1"))


def steps(written: Written) -> list[tuple[str, str]]:
    def step(change: object) -> tuple[str, str]:
        match change:
            case Add(record) | Revise(_, record):
                assert isinstance(record, ProfileFact)
                return type(change).__name__, f"{record.key}={record.value}"
            case Retire(id):
                return "Retire", id
        raise AssertionError(change)

    return [step(c) for c in written.delta.changes]


async def test_what_a_turn_states_is_added_with_the_turn(memory: Memory) -> None:
    written = await merged(memory, ("My name is Karen.", {"name": "Karen", "job": "pilot"}))
    assert steps(written) == [("Add", "name=Karen")], "nobody said that she is a pilot"
    (change,) = written.delta.changes
    assert isinstance(change, Add)
    (turn,) = await memory.turns("s1")
    assert change.record.provenance.turns == (turn.id,)
    assert written.expect == await memory.store.revision(memory.scope)


async def test_within_one_session_the_last_word_counts(memory: Memory) -> None:
    told = [(f"I live in {city} now.", {"city": city}) for city in ("Moab", "Porto", "Faro")]
    written = await merged(memory, *told)
    assert steps(written) == [("Add", "location=Moab"), ("Revise", "location=Porto"), ("Revise", "location=Faro")]
    await memory.store.commit(memory.scope, written.delta)
    assert (await memory.profile()).as_dict() == {"location": "Faro"}


async def test_several_values_are_gathered_and_equal_ones_are_one(memory: Memory) -> None:
    await put(memory, fact("f", "pet", "cat"))
    told = (("I have a cat.", {"pet": "Cat"}), ("I have a dog.", {"pet": "dog"}), ("My dog is old.", {"pet": "dog"}))
    assert steps(await merged(memory, *told)) == [("Add", "pet=dog")]


async def test_what_is_denied_is_closed_and_what_was_never_known_is_not(memory: Memory) -> None:
    await put(memory, fact("f", "pet", "cat"), fact("g", "pet", "dog"))
    written = await merged(memory, ("I have no pet any more, and no car.", {"pet": "none", "car": "none"}))
    assert steps(written) == [("Retire", "f"), ("Retire", "g")]


async def test_merging_again_changes_nothing(memory: Memory) -> None:
    written = await merged(memory, ("My name is Karen.", {"name": "Karen"}))
    await memory.store.commit(memory.scope, written.delta)
    again = await ProfileWriter(desk(memory, lane="merge")).write(memory.scope, Job("j", "profile", "s1"))
    assert not again.delta


async def test_what_was_taken_back_is_not_merged_again(memory: Memory) -> None:
    written = await merged(memory, ("My name is Karen.", {"name": "Karen"}))
    await memory.store.commit(memory.scope, written.delta)
    (made,) = await memory.records(kinds=("fact",))
    await memory.retire(made.id)
    again = await ProfileWriter(desk(memory, lane="merge")).write(memory.scope, Job("j", "profile", "s1"))
    assert not again.delta


async def test_what_others_say_is_no_fact_of_the_users(memory: Memory) -> None:
    for more in ({"role": Role.ASSISTANT}, {"origin": Origin.DOCUMENT}):
        assert not (await merged(memory, ("My name is Bob.", {"name": "Bob"}), **more)).delta


@pytest.mark.parametrize(
    ("answers", "wanted"),
    [
        (({"action": "replace"},), [("Revise", "motto=work hard")]),
        (({"action": "add"},), [("Add", "motto=work hard")]),
        (({"action": "ignore"},), []),
        (("what?", "no"), [("Add", "motto=work hard")]),
        (({"action": "delete"},), [("Add", "motto=work hard")]),
        ((), [("Add", "motto=work hard")]),
    ],
)
async def test_a_model_is_asked_only_where_the_rules_cannot_tell(
    memory: Memory, answers: tuple[object, ...], wanted: list[tuple[str, str]]
) -> None:
    await put(memory, fact("f", "motto", "carpe diem"))
    assert steps(await merged(memory, ("My motto is work hard.", {"motto": "work hard"}), answers=answers)) == wanted
