"""The gate: whether a turn is worth keeping, and which facts it states, where the reply's own call
did not say so."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, Field

from nyima.domain.conversation import Scope, Turn
from nyima.domain.evidence import Notes
from nyima.domain.mechanism import Mechanism, When, Writer
from nyima.domain.ports import Job, follow_up
from nyima.domain.roles import Written
from nyima.errors import ModelGarbled
from nyima.language.facts import proposals
from nyima.language.intent import worth_keeping
from nyima.language.words import cut_tokens
from nyima.prompts.notes import parse_facts
from nyima.prompts.prompt import Prompt
from nyima.write.desk import Desk, is_users, notes_event

__all__ = ["MECHANISM", "GateWriter", "merge_again"]


@dataclass(frozen=True, slots=True)
class GateIn:
    """A message with the assistant's words before it."""

    before: str
    message: str


class GateOut(BaseModel):
    """Whether to remember, and the facts."""

    remember: bool
    facts: dict[str, str] = Field(default_factory=dict)


GATE: Prompt[GateIn, GateOut] = Prompt("gate", GateOut, 140)


@dataclass(frozen=True, slots=True)
class GateWriter:
    """Decides and extracts for one user turn, and queues what follows."""

    desk: Desk

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
        asked_for = self.desk.follow_ups(Notes(remember, facts, complete=True))
        jobs = [follow_up(name, turn.id, job.recipe, suffix) for name, suffix in asked_for]
        if facts:
            jobs += await merge_again(self.desk, scope, turn, job)
        return Written(jobs=tuple(jobs), events=(notes_event(turn, body, self.desk.clock),))


async def merge_again(desk: Desk, scope: Scope, turn: Turn, job: Job) -> list[Job]:
    """Another merge when the session's profile was merged before these facts came."""
    if "profile" not in desk.recipe.writers:
        return []
    merged = f"profile-{turn.session}"
    done = any(j.id == merged and j.state == "done" for j in await desk.store.jobs(scope, ("done",)))
    return [follow_up("profile", turn.session, job.recipe, f"-after-{job.id}")] if done else []


MECHANISM = Mechanism(
    "gate",
    "whether a turn is worth keeping",
    writers=(
        Writer(
            "gate",
            When.TURN,
            lambda desk, scope, job: GateWriter(desk).write(scope, job),
            owed=lambda recipe: recipe.gate == "reply",
        ),
    ),
)
