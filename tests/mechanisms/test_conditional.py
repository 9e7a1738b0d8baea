"""The note of one turn."""

from __future__ import annotations

import pytest

from made import KEEPS, desk, last_turn
from nyima.domain.changes import Add
from nyima.domain.conversation import Role
from nyima.domain.ports import Job
from nyima.domain.recipe import Recipe
from nyima.domain.records import Note
from nyima.domain.roles import Written
from nyima.errors import NotFound
from nyima.mechanisms.conditional import NoteWriter, passive_note
from nyima.mechanisms.reading import ClaimWriter
from nyima.memory import Memory, Said


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
}


async def test_a_note_has_context_knowledge_and_the_turns_around_it(memory: Memory) -> None:
    made, written = await noted(memory, GOOD)
    assert (made.context, made.knowledge) == (GOOD["context"], GOOD["knowledge"])
    own, other = made.provenance.turns
    assert made.id == f"n-{own}"
    assert other != own
    assert made.provenance.prompt.startswith("note@")
    assert (written.jobs, written.events) == ((), ())


async def test_what_is_invented_is_left_out(memory: Memory) -> None:
    knowledge = "The user lives in Moab. The user is married to Bob. The user has a cat."
    made, _ = await noted(memory, {**GOOD, "knowledge": knowledge, "context": "Bob asked about Lisbon."})
    assert made.knowledge == "The user lives in Moab. The user has a cat."
    assert made.context == ""


@pytest.mark.parametrize("answers", [(), ("what?", "no"), ({**GOOD, "knowledge": "Bob is in Lisbon."},)])
async def test_else_the_users_own_words_are_kept(memory: Memory, answers: tuple[object, ...]) -> None:
    made, written = await noted(memory, *answers)
    assert made.knowledge == "I live in Moab with my cat."
    assert written.jobs == ()


async def test_a_question_explains_its_answer(memory: Memory) -> None:
    assert (await noted(memory, before="Where do you live?"))[0].context == "Assistant: Where do you live?"
    assert (await noted(memory, before="Nice."))[0].context == ""


@pytest.mark.parametrize(
    ("parts", "text"), [(("context",), GOOD["context"]), (("knowledge",), GOOD["knowledge"]), ((), "")]
)
async def test_an_ablation_leaves_a_part_out(memory: Memory, parts: tuple[str, ...], text: str) -> None:
    assert (await noted(memory, GOOD, recipe=Recipe("r", "", parts=parts)))[0].text == text


async def test_a_turn_that_is_gone_is_named(memory: Memory) -> None:
    for writer in (NoteWriter(desk(memory, lane="note")), ClaimWriter(desk(memory, lane="read"))):
        with pytest.raises(NotFound, match="'gone' is gone"):
            await writer.write(memory.scope, Job("j", "x", "gone"))


async def test_what_the_user_asks_to_remember_is_kept_word_for_word(memory: Memory) -> None:
    turn = (await memory.remember([Said("the code is 4711")], session="s1", owed=False)).turns[0]
    made = passive_note(turn, desk(memory, lane="note"))
    assert (made.text, made.provenance.turns, made.provenance.model) == ("the code is 4711", (turn.id,), "")
