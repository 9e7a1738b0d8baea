"""The merge of a session's facts into the profile."""

from __future__ import annotations

from typing import Any

import pytest

from made import desk, fact, put
from nyima.domain.changes import Add, Retire, Revise
from nyima.domain.conversation import Origin, Role
from nyima.domain.ports import Job
from nyima.domain.records import ProfileFact
from nyima.domain.roles import Written
from nyima.mechanisms.profile import ProfileWriter
from nyima.memory import Memory, Said
from nyima.write.desk import notes_event


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
