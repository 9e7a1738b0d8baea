"""Writer ``conditional``: decide what is worth keeping, keep it as context and
knowledge (Yuan et al. 2023, section 3.1).

The decision comes with the reply (see ``reader``). ``GateWriter`` makes it in a call of
its own where there was no reply, or where the reply's notes were lost. ``NoteWriter``
builds the record of a turn that is to be kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from nyima.domain.changes import Add, Delta
from nyima.domain.conversation import Scope, Turn, dialogue_lines
from nyima.domain.memory import Interval, Note, Provenance
from nyima.domain.ports import Job, follow_up
from nyima.domain.roles import Written
from nyima.errors import ModelGarbled
from nyima.language.facts import proposals, supports_text
from nyima.language.intent import worth_keeping
from nyima.language.words import cut_tokens, sentences
from nyima.prompts.notes import parse_facts
from nyima.prompts.prompt import GATE, NOTE, GateIn, NoteIn
from nyima.write.desk import Desk, facts_event, is_users, notes_event

__all__ = ["GateWriter", "NoteWriter", "passive_note"]

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
class GateWriter:
    """Decides and extracts for one user turn, and queues what follows."""

    desk: Desk
    writers: tuple[str, ...]

    async def write(self, scope: Scope, job: Job) -> Written:
        """The turn's notes as a journal line; a job for its record; a merge when the
        session has ended already. Without a usable answer the rule decides."""
        turn, before = await self.desk.around(scope, job.subject, 1)
        remember, by = worth_keeping(turn.text, None, 0), "rule"
        facts: tuple[tuple[str, str], ...] = ()
        word: bool | None = None
        caller = self.desk.caller
        if caller is not None and is_users(turn):
            said = before[-1].text if before and before[-1].role is not turn.role else ""
            given = GateIn(cut_tokens(said, 60) or "-", cut_tokens(turn.text, self.desk.room // 2))
            try:
                out, asked = await caller.ask(scope, GATE, given)
                facts, by, word = parse_facts(out.facts), asked.prompt, out.remember
                supported = len(proposals(facts, turn.id, turn.text, said))
                remember = worth_keeping(turn.text, out.remember, supported)
            except ModelGarbled:
                await caller.fallback(scope, GATE.version)
        body: dict[str, object] = {"remember": remember, "facts": [list(f) for f in facts], "by": by, "model": word}
        jobs = [follow_up("note", turn.id, job.recipe)] if remember and "conditional" in self.writers else []
        if facts and "graph" in self.writers:
            jobs.append(follow_up("graph", turn.id, job.recipe, "-noted"))
        if facts and "profile" in self.writers:
            jobs += await _merge_again(self.desk, scope, turn, job)
        return Written(jobs=tuple(jobs), events=(notes_event(turn, body, self.desk.clock),))


@dataclass(frozen=True, slots=True)
class NoteWriter:
    """Builds the record of one turn; ``parts`` leaves one out for the ablations
    (section 5.4, table 6)."""

    desk: Desk
    parts: tuple[str, ...] = ("context", "knowledge")
    graph: bool = False

    async def write(self, scope: Scope, job: Job) -> Written:
        """One Note. What the turn and its neighbours do not support is replaced by the
        user's own words."""
        turn, before = await self.desk.around(scope, job.subject, _CONTEXT_TURNS)
        context, knowledge, made = "", turn.text, ("", "")
        facts: tuple[tuple[str, str], ...] = ()
        caller = self.desk.caller
        if caller is not None:
            lines = [cut_tokens(line, 60) for line in dialogue_lines([*before, turn])]
            given = NoteIn("\n".join(lines), cut_tokens(turn.text, self.desk.room // 2))
            try:
                out, asked = await caller.ask(scope, NOTE, given)
                made, facts = (asked.prompt, asked.model), parse_facts(out.facts)
                around = [turn.text, *(t.text for t in before)]
                context = next((x for x in sentences(out.context) if supports_text(x, around, _SUPPORT_CONTEXT)), "")
                short = len(turn.text.split()) <= _ANSWER_WORDS
                asked_for = [t.text for t in before[-1:] if short and "?" in t.text]
                stated = [x for x in sentences(out.knowledge) if supports_text(x, (turn.text, *asked_for), _SUPPORT)]
                knowledge = " ".join(dict.fromkeys(stated)) or turn.text
                if not stated:
                    await caller.fallback(scope, NOTE.version)
            except ModelGarbled:
                await caller.fallback(scope, NOTE.version)
        if not context and before and "?" in before[-1].text:
            # A question explains what it was answered with; another remark before would only blur the search.
            context = cut_tokens(dialogue_lines(before[-1:])[0], 60)
        kept = (context if "context" in self.parts else "", knowledge if "knowledge" in self.parts else "")
        delta = Delta((Add(_build(turn, before, kept, made, self.desk)),), by="conditional")
        again = [follow_up("graph", turn.id, job.recipe, "-kept")] if self.graph and made[0] else []
        if not facts or not is_users(turn):
            return Written(delta, tuple(again))
        again += await _merge_again(self.desk, scope, turn, job)
        return Written(delta, tuple(again), (facts_event(turn, facts, self.desk.clock),))


async def _merge_again(desk: Desk, scope: Scope, turn: Turn, job: Job) -> list[Job]:
    """Another merge when the session's profile was merged before these facts came."""
    merged = f"profile-{turn.session}"
    done = any(j.id == merged and j.state == "done" for j in await desk.store.jobs(scope, ("done",)))
    return [follow_up("profile", turn.session, job.recipe, f"-after-{job.id}")] if done else []
