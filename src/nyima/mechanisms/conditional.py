"""Writer ``conditional``: decide what is worth keeping, keep it as context and
knowledge (Yuan et al. 2023, section 3.1).

The decision comes with the reply (see ``reader``), or with the reading of the turn (see ``claims``)
where there was no reply, or where the reply's notes were lost. ``NoteWriter`` builds the record of
a turn that is to be kept.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pydantic import BaseModel, Field

from nyima.domain.changes import Add, Delta
from nyima.domain.conversation import Scope, Turn, dialogue_lines
from nyima.domain.mechanism import Mechanism, Source, When, Writer
from nyima.domain.ports import Job, RecordFilter
from nyima.domain.records import Interval, Note, Provenance
from nyima.domain.roles import Written
from nyima.errors import ModelGarbled
from nyima.language.words import cut_tokens, sentences, supports
from nyima.prompts.prompt import Prompt
from nyima.write.desk import Desk

__all__ = ["MECHANISM", "NoteWriter", "passive_note"]


@dataclass(frozen=True, slots=True)
class NoteIn:
    """A message with the dialogue around it."""

    dialogue: str
    message: str


class NoteOut(BaseModel):
    """Why it was said, and what to keep."""

    context: str
    knowledge: str = Field(min_length=1)


NOTE: Prompt[NoteIn, NoteOut] = Prompt("note", NoteOut, 180)


_CONTEXT_TURNS = 4
_SUPPORT = 0.6
_ANSWER_WORDS = 6
_SUPPORT_CONTEXT = 0.5


def _build(turn: Turn, before: list[Turn], parts: tuple[str, str], made: tuple[str, str], desk: Desk) -> Note:
    context, knowledge = parts
    return Note(
        id=f"n-{turn.id}",
        provenance=Provenance(
            turns=(turn.id, *(t.id for t in before)),
            writer="conditional",
            prompt=made[0],
            model=made[1],
            origin=turn.origin,
        ),
        valid=Interval(turn.at),
        recorded=Interval(desk.clock.now()),
        context=context,
        knowledge=knowledge,
    )


def passive_note(turn: Turn, desk: Desk) -> Note:
    """What the user asked to remember, in their own words, without a model."""
    return _build(turn, [], ("", turn.text), ("", ""), desk)


@dataclass(frozen=True, slots=True)
class NoteWriter:
    """Builds the record of one turn; the recipe's ``parts`` leave one out for the ablations
    (section 5.4, table 6)."""

    desk: Desk

    async def write(self, scope: Scope, job: Job) -> Written:
        """One Note. What the turn and its neighbours do not support is replaced by the
        user's own words."""
        store = self.desk.store
        (turn, before), there = await asyncio.gather(
            self.desk.around(scope, job.subject, _CONTEXT_TURNS),
            store.records(scope, RecordFilter(ids=(f"n-{job.subject}",))),
        )
        if there:
            return Written()  # the user asked to remember it: it is kept word for word
        context, knowledge, made = "", turn.text, ("", "")
        caller = self.desk.caller
        if caller is not None:
            lines = [cut_tokens(line, 60) for line in dialogue_lines([*before, turn])]
            given = NoteIn("\n".join(lines), cut_tokens(turn.text, self.desk.room // 2))
            try:
                out, asked = await caller.ask(scope, NOTE, given)
                made = (asked.prompt, asked.model)
                around = [turn.text, *(t.text for t in before)]
                context = next((x for x in sentences(out.context) if supports(x, around, _SUPPORT_CONTEXT)), "")
                short = len(turn.text.split()) <= _ANSWER_WORDS
                asked_for = [t.text for t in before[-1:] if short and "?" in t.text]
                stated = [x for x in sentences(out.knowledge) if supports(x, (turn.text, *asked_for), _SUPPORT)]
                knowledge = " ".join(dict.fromkeys(stated)) or turn.text
                if not stated:
                    await caller.fallback(scope, NOTE.version)
            except ModelGarbled:
                await caller.fallback(scope, NOTE.version)
        if not context and before and "?" in before[-1].text:
            # A question explains what it was answered with; another remark before would only blur the search.
            context = cut_tokens(dialogue_lines(before[-1:])[0], 60)
        kept = (
            context if "context" in self.desk.recipe.parts else "",
            knowledge if "knowledge" in self.desk.recipe.parts else "",
        )
        return Written(Delta((Add(_build(turn, before, kept, made, self.desk)),), by="conditional"))


MECHANISM = Mechanism(
    "conditional",
    "notes of what is worth keeping: context and knowledge (Yuan et al. 2023, section 3.1)",
    writers=(
        Writer(
            "note",
            When.TURN,
            lambda desk, scope, job: NoteWriter(desk).write(scope, job),
            owed=lambda recipe: recipe.gate == "all",
            makes="conditional",
            again=lambda record: record.provenance.turns[:1],
            noted=lambda notes: notes.remember,
        ),
    ),
    sources=(Source("notes", "what the user said that is worth keeping, with why it was said", kinds=("note",)),),
)
