"""The log of changes, undo and redo."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from made import T0
from nyima.change.undo import LoggedChange, log_of, logged, noted_again, withdrawn
from nyima.domain.changes import Add, Delta
from nyima.domain.conversation import Scope
from nyima.domain.documents import Document, Part
from nyima.domain.records import Interval, Note, Provenance
from nyima.errors import InputError, NotFound
from nyima.mechanisms.documents.shelf import add_document, remove_documents
from nyima.memory import Memory, Said
from nyima.testing import FixedClock, MemoryStore
from nyima.write.desk import notes_event


def line(**more: Any) -> LoggedChange:
    given = {"id": "7", "at": T0, "by": "user", "what": "pet", "before": "", "after": "", "undoable": True, **more}
    return LoggedChange(**given)


# --- in words ---


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [("cat", "dog", "pet: cat → dog"), ("", "dog", "pet: dog"), ("cat", "", "pet: cat"), ("", "", "pet")],
)
def test_a_line_reads_from_what_was_to_what_is(before: str, after: str, text: str) -> None:
    assert str(line(before=before, after=after)) == text


async def words(memory: Memory) -> list[str]:
    return [str(c) for c in await memory.log()]


async def test_every_kind_of_change_is_told_in_words(memory: Memory, clock: FixedClock) -> None:
    async def later(change: Any) -> Any:
        made = await change
        clock.forward(minutes=1)
        return made

    pet = await later(memory.set("cat name", "Rex"))
    pet = await later(memory.revise(pet.id, "Luna"))
    await later(memory.retire(pet.id))
    await later(memory.undo())
    await later(memory.redo())
    await later(add_document(memory, Document("m.md", (Part("", "Rinse the filter weekly."),))))
    await later(add_document(memory, Document("m.md", (Part("", "Rinse the filter daily."),))))
    await later(remove_documents(memory, ["m.md"]))
    assert await words(memory) == [
        "erased for good: 2 pieces", "documents", "documents", "done again, cat name: Luna", "taken back, cat name: Luna",
        "cat name: Luna", "cat name: Rex → Luna", "cat name: Rex",
    ]  # fmt: skip


async def test_what_was_erased_is_in_no_line(memory: Memory) -> None:
    made = await memory.set("code", "4711")
    await memory.forget(made.id)
    lines = await memory.log()
    assert not [c for c in lines if "4711" in f"{c} {c.before} {c.after}"]
    assert [c.undoable for c in lines] == [False] * len(lines)
    with pytest.raises(NotFound, match="no change left to undo"):
        await memory.undo()


async def test_each_line_has_its_own_id_newest_first(memory: Memory, clock: FixedClock) -> None:
    for number in range(5):
        await memory.set("pet", f"cat {number}")
        clock.forward(minutes=1)
    lines = await memory.log()
    assert len({c.id for c in lines}) == 5
    assert [c.at for c in lines] == sorted((c.at for c in lines), reverse=True)
    assert await memory.log(2) == lines[:2]


async def test_a_change_that_is_not_there_or_cannot_be_undone_is_named(memory: Memory) -> None:
    await memory.set("pet", "cat")
    (first,) = await memory.log()
    await memory.undo(first.id)
    with pytest.raises(InputError, match=f"change '{first.id}' .* cannot be undone"):
        await memory.undo(first.id)
    with pytest.raises(NotFound, match="there is no change '999'"):
        await memory.undo("999")
    with pytest.raises(NotFound, match="no turn 't-nothing'"):
        await memory.undo("t-nothing")


# --- there and back ---


actions = st.lists(
    st.tuples(st.sampled_from(["set", "revise", "retire"]), st.sampled_from("abc")), min_size=1, max_size=5
)


async def act(memory: Memory, clock: FixedClock, what: str, value: str) -> bool:
    facts = (await memory.profile()).claims
    clock.forward(minutes=1)
    if what == "set":
        await memory.set("pet", value)
    elif not facts:
        return False
    elif what == "revise":
        return (await memory.revise(facts[-1].id, value)).id != facts[-1].id
    else:
        await memory.retire(facts[-1].id)
    return True


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions)
async def test_undo_leads_back_one_step_and_redo_forth(tmp_path: Path, given: list[tuple[str, str]]) -> None:
    clock, path = FixedClock(), tmp_path / uuid.uuid4().hex
    async with Memory.open(path, embedder="none", clock=clock) as memory:
        states = [(await memory.profile()).as_dict()]
        for what, value in given:
            if await act(memory, clock, what, value):
                states.append((await memory.profile()).as_dict())
        if len(states) > 1:
            clock.forward(minutes=1)
            await memory.undo()
            assert (await memory.profile()).as_dict() == states[-2]
            clock.forward(minutes=1)
            await memory.redo()
            assert (await memory.profile()).as_dict() == states[-1]


async def set_and_undone(memory: Memory, clock: FixedClock, key: str, values: str) -> dict[str, Any]:
    for value in values:
        await memory.set(key, value)
        clock.forward(minutes=1)
    for _ in values:
        await memory.undo()
        clock.forward(minutes=1)
    return (await memory.profile()).as_dict()


async def test_two_values_of_a_key_are_taken_back_one_after_the_other(memory: Memory, clock: FixedClock) -> None:
    assert await set_and_undone(memory, clock, "pet", "ab") == {}


async def test_three_values_of_a_key_are_taken_back_one_after_the_other(memory: Memory, clock: FixedClock) -> None:
    assert await set_and_undone(memory, clock, "pet", "abc") == {}


async def test_when_everything_was_taken_back_there_is_nothing_left_to_undo(memory: Memory, clock: FixedClock) -> None:
    assert await set_and_undone(memory, clock, "pet", "ab") == {}
    with pytest.raises(NotFound, match="no change left to undo"):
        await memory.undo()


async def test_undo_of_a_fact_with_one_value_brings_the_old_value_back(memory: Memory, clock: FixedClock) -> None:
    await memory.set("location", "Moab")
    clock.forward(minutes=1)
    await memory.set("location", "Porto")
    clock.forward(minutes=1)
    await memory.undo()
    assert (await memory.profile()).as_dict() == {"location": "Moab"}


async def test_the_past_stays_as_it_was_when_something_is_taken_back(memory: Memory, clock: FixedClock) -> None:
    await memory.set("pet", "cat")
    noon = clock.forward(hours=1)
    await memory.set("pet", "dog")
    clock.forward(hours=1)
    await memory.undo()
    assert (await memory.profile()).as_dict() == {"pet": "cat"}
    then = await memory.records(kinds=("claim",), as_of=noon)
    assert [r.text for r in then] == ["user pet: dog"]


# --- the notes of a turn ---


async def noted(memory: Memory) -> str:
    (turn,) = (await memory.remember([Said("I live in Moab.")], session="s", owed=False)).turns
    body: dict[str, object] = {"remember": True, "claims": [["user", "city", "Moab", "holds"]]}
    await memory.store.log(memory.scope, notes_event(turn, body, memory.clock))
    return turn.id


async def test_withdrawing_the_notes_of_a_turn_leaves_that_nothing_is_to_be_kept(memory: Memory) -> None:
    turn = await noted(memory)
    gone, instead = await withdrawn(memory.store, memory.scope, turn, T0, "7")
    (empty, mark) = instead
    assert [(c.id, c.what) for c in gone] == [(f"notes-{turn}", "event")]  # type: ignore[union-attr]
    assert (empty.body["claims"], empty.body["remember"]) == ([], False)
    assert (mark.kind, mark.refs, mark.body["change"]) == ("undone", (turn,), "7")
    json.dumps(dict(mark.body))


async def test_what_was_withdrawn_is_noted_again_as_it_was(memory: Memory) -> None:
    turn = await noted(memory)
    (before,) = await memory.store.events(memory.scope, "notes")
    gone, instead = await withdrawn(memory.store, memory.scope, turn, T0)
    for event in instead:
        await memory.store.log(memory.scope, event)
    back, events = await noted_again(memory.store, memory.scope, turn, T0)
    assert [(e.id, e.kind, dict(e.body)) for e in events] == [(before.id, "notes", dict(before.body))]
    assert {c.id for c in back} == {e.id for e in instead}  # type: ignore[union-attr]
    assert gone


async def test_a_turn_that_is_not_there_cannot_be_undone(memory: Memory) -> None:
    with pytest.raises(NotFound, match="no turn 'nowhere'"):
        await withdrawn(memory.store, memory.scope, "nowhere", T0)
    assert await noted_again(memory.store, memory.scope, "nowhere", T0) == ([], [])


async def test_a_short_log_has_the_lines_and_ids_of_the_whole_one() -> None:
    store, scope, at = MemoryStore(), Scope(), T0

    def noted(id: str, turn: str) -> Add:
        made = Provenance((turn,), (), "conditional")
        return Add(Note(id=id, provenance=made, valid=Interval(at), recorded=Interval(at), context="", knowledge=id))

    await store.commit(scope, Delta((noted("c1", "tC"),), "conditional"))
    await store.commit(scope, Delta((noted("c2", "tC"), noted("d1", "tD")), "conditional"))
    for number in range(2, 9):
        await store.commit(scope, Delta((noted(f"d{number}", "tD"),), "conditional"))
    whole = {line.id: line.turn for line in await log_of(store, scope)}
    short = {line.id: line.turn for line in await log_of(store, scope, 1)}
    assert short == whole
    assert {id: line.turn for id in whole if (line := await logged(store, scope, id))} == whole
