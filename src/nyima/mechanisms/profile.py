"""Writer ``profile``: when a session ends, the facts that its turns noted are merged
into the profile. Rules decide; a model is asked only where they cannot tell."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pydantic import BaseModel, Field

from nyima.domain.changes import Add, Change, Delta, Retire, Revise
from nyima.domain.conversation import Scope, Turn
from nyima.domain.mechanism import Mechanism, Source, When, Writer
from nyima.domain.ports import Job, RecordFilter
from nyima.domain.records import Claim, Interval, ProfileFact, Provenance, profile_of
from nyima.domain.roles import Written
from nyima.errors import ModelGarbled
from nyima.language.facts import Action, Proposal, additive, decide, proposals
from nyima.language.words import cut_tokens, fold
from nyima.prompts.prompt import Prompt
from nyima.write.desk import Desk, is_users, notes_of

__all__ = ["MECHANISM", "ProfileWriter"]


@dataclass(frozen=True, slots=True)
class MergeIn:
    """A fact that differs from the profile."""

    key: str
    old: str
    new: str
    message: str


class MergeOut(BaseModel):
    """``replace``, ``add`` or ``ignore``."""

    action: str = Field(pattern="^(replace|add|ignore)$")


MERGE: Prompt[MergeIn, MergeOut] = Prompt("merge", MergeOut, 20)


@dataclass(slots=True)
class _Merge:
    """The profile while it is being merged: what is open, and the changes so far."""

    open: dict[str, list[ProfileFact]]
    changes: list[Change]

    def values(self, key: str) -> tuple[str, ...]:
        return tuple(f.value for f in self.open.get(key, []))


@dataclass(frozen=True, slots=True)
class ProfileWriter:
    """Merges a session's noted facts."""

    desk: Desk

    async def write(self, scope: Scope, job: Job) -> Written:
        """The changes of the profile, each with the turn it came from."""
        revision = await self.desk.store.revision(scope)
        _, turns = await self.desk.session(scope, job.subject)
        notes = await notes_of(self.desk.store, scope, turns)
        more = await notes_of(self.desk.store, scope, turns, "facts")
        found = await self.desk.store.records(scope, RecordFilter(kinds=("fact",), retired=True))
        facts = [r for r in found if isinstance(r, ProfileFact)]
        known = {f.id for f in facts}
        merge = _Merge({}, [])
        for fact in profile_of([f for f in facts if f.recorded.until is None]).facts:
            merge.open.setdefault(fact.key, []).append(fact)
        before = ""
        for turn in turns:
            events = [e for e in (notes.get(turn.id), more.get(turn.id)) if e is not None]
            if events and is_users(turn):
                pairs = list(dict.fromkeys((k, v) for e in events for k, v in e.body["facts"]))
                for proposal in proposals(pairs, turn.id, turn.text, before):
                    await self._apply(scope, merge, proposal, turn, known)
            before = turn.text
        return Written(Delta(tuple(merge.changes), by="profile"), expect=revision)

    async def _apply(self, scope: Scope, merge: _Merge, proposal: Proposal, turn: Turn, known: set[str]) -> None:
        fact = self._fact(proposal, turn)
        if fact.id in known:
            return
        current = merge.open.get(proposal.key, [])
        action = decide(proposal, merge.values(proposal.key))
        if action is Action.ASK:
            action = await self._ask(scope, proposal, merge.values(proposal.key))
        now = self.desk.clock.now()
        if action is Action.DELETE:
            merge.changes += [Retire(f.id, now, "deleted by the user") for f in current]
            merge.open.pop(proposal.key, None)
        elif action is Action.REPLACE and current:
            merge.changes += [Retire(f.id, now, "replaced") for f in current[:-1]]
            merge.changes.append(Revise(current[-1].id, self._fact(proposal, turn, current[-1].id), "replaced"))
            merge.open[proposal.key] = [fact]
        elif action in {Action.ADD, Action.REPLACE}:
            merge.changes.append(Add(fact))
            merge.open.setdefault(proposal.key, []).append(fact)
        known.add(fact.id)

    async def _ask(self, scope: Scope, proposal: Proposal, current: tuple[str, ...]) -> Action:
        fallback = Action.IGNORE if not additive(proposal.key) and proposal.key == "location" else Action.ADD
        caller = self.desk.caller
        if caller is None:
            return fallback
        given = MergeIn(proposal.key, ", ".join(current), proposal.value, cut_tokens(proposal.said, 120))
        try:
            out, _ = await caller.ask(scope, MERGE, given)
        except ModelGarbled:
            await caller.fallback(scope, MERGE.version)
            return fallback
        return Action(out.action)

    def _fact(self, proposal: Proposal, turn: Turn, supersedes: str | None = None) -> ProfileFact:
        content = f"{turn.id}\x1f{proposal.key}\x1f{fold(proposal.value)}"
        return ProfileFact(
            id="f-" + hashlib.sha256(content.encode()).hexdigest()[:16],
            provenance=Provenance(turns=(turn.id,), writer="profile", origin=turn.origin),
            valid=Interval(turn.at),
            recorded=Interval(self.desk.clock.now()),
            claim=Claim("user", proposal.key),
            supersedes=supersedes,
            key=proposal.key,
            value=proposal.value,
        )


MECHANISM = Mechanism(
    "profile",
    "lasting facts about the user, merged when a session ends",
    writers=(
        Writer(
            "profile",
            When.SESSION_END,
            lambda desk, scope, job: ProfileWriter(desk).write(scope, job),
            quick=True,
        ),
    ),
    sources=(
        Source("profile", "lasting facts about the user: name, job, place, family, health, wishes", kinds=("fact",)),
    ),
)
