"""Writer ``claims``: what the user's turns state becomes claims, and what they end is closed.

Where the reply's own call has noted it, those notes are taken; otherwise a chat model reads the turn,
together with other turns that wait, as many as fit. Without a chat model nothing is claimed: the turn
waits, and is counted as not read yet (``docs/decisions/0015-claims.md``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from nyima.domain.changes import Delta
from nyima.domain.conversation import Role, Scope, Turn
from nyima.domain.evidence import Noted, Notes
from nyima.domain.mechanism import Mechanism, Source, When, Writer
from nyima.domain.ports import READS_CLAIMS, Event, Job, follow_up
from nyima.domain.records import Claim, Provenance
from nyima.domain.roles import Written
from nyima.domain.storage import AskEvents, AskJobs, AskTurns
from nyima.errors import ModelError, ModelGarbled
from nyima.language.intent import worth_keeping
from nyima.language.subclasses import read_subclasses
from nyima.language.words import cut_tokens, tokens
from nyima.prompts.notes import parse_claims, parse_facts, parse_numbers
from nyima.prompts.prompt import Prompt
from nyima.prompts.trained_reading import VERSION as CLAIMS_VERSION
from nyima.prompts.trained_reading import claims_question, read_claims_answer
from nyima.read.calls import Caller
from nyima.read.embedding import QueryEmbedder, index_pending
from nyima.read.prompting import numbered
from nyima.read.touching import touching
from nyima.write.claims import ClaimsOf, is_owners, quote_of
from nyima.write.desk import Desk, notes_event, own_turn
from nyima.write.partitions import Partitions

__all__ = ["MECHANISM", "ClaimWriter", "noted_in"]

_BEFORE = 4
_MOST_TURNS = 12
_MOST_SHOWN = 8
_LOCAL_WINDOW = 8_000
_ROOM_LOCAL, _ROOM_HOSTED = 500, 4_000
"""Tokens of messages that one call reads: of a local model, of a hosted one."""
_A_TURN = 90
"""Tokens that the answer may take for each message."""
_BEFORE_TOKENS, _ANSWER = 40, 160
"""For a model that was trained to read: the most tokens of each earlier turn, and of the answer."""


@dataclass(frozen=True, slots=True)
class ReadIn:
    """Messages with their numbers, what was said before them, and numbered current claims."""

    before: str
    known: str
    messages: str


class ReadTurn(BaseModel):
    """What one message says."""

    n: int
    remember: bool = False
    claims: list[object] | dict[str, object] = Field(default_factory=list[object])
    facts: dict[str, object] = Field(default_factory=dict[str, object])
    outdated: list[int] = Field(default_factory=list[int])


class ReadOut(BaseModel):
    """What the messages say."""

    turns: list[ReadTurn]


@dataclass(frozen=True, slots=True)
class _Heard:
    """The reading of one message. ``remember`` says whether to keep it, and is None where the reader gave no
    answer to that; ``outdated`` are the numbers of shown claims that the message makes untrue."""

    remember: bool | None = None
    claims: tuple[Noted, ...] = ()
    outdated: tuple[int, ...] = ()


def _heard(read: ReadTurn | None) -> _Heard:
    if read is None:
        return _Heard()
    claims = (*parse_claims(read.claims), *parse_facts(read.facts))
    return _Heard(read.remember, claims, parse_numbers(read.outdated))


READ: Prompt[ReadIn, ReadOut] = Prompt("read", ReadOut, _A_TURN)


def noted_in(event: Event) -> tuple[tuple[Noted, ...], tuple[str, ...], tuple[str, ...]]:
    """Return what a journal line has noted of a turn: the claims, the ids of the claims that are over,
    and the ids of those that the reader saw."""
    body = event.body
    claims = (*parse_claims(body.get("claims")), *parse_facts(body.get("facts")))
    return claims, tuple(body.get("outdated", ())), tuple(body.get("known", ()))


@dataclass(frozen=True, slots=True)
class ClaimWriter:
    """Reads one turn into claims. With ``adds_only`` nothing is ever closed, for the baselines."""

    desk: Desk
    adds_only: bool = False

    async def write(self, scope: Scope, job: Job) -> Written:
        """The claims of the turn, with the journal lines and jobs of the turns that were read."""
        desk = self.desk
        revision, (turn, before), events, whole = await asyncio.gather(
            desk.store.revision(scope),
            desk.around(scope, job.subject, _BEFORE),
            desk.store.ask(scope, AskEvents("notes", (job.subject,))),
            desk.store.ask(scope, AskTurns(ids=(job.subject,))),
        )
        if turn.role is not Role.USER or not turn.text.strip():
            return Written()
        noted = next((e for e in events if e.body.get("turn") == turn.id), None)
        made = Written()
        if noted is None:
            noted, made = await self._read(scope, turn, before, job)
        if noted is None or not (self.adds_only or "claims" in desk.recipe.writers):
            return made
        handed = bool(whole) and " ".join(whole[0].text.split()) != " ".join(turn.text.split())
        delta = await self._settled(scope, turn, before, noted, handed=handed)
        return Written(delta, made.jobs, made.events, expect=revision)

    async def _settled(self, scope: Scope, turn: Turn, before: Sequence[Turn], noted: Event, *, handed: bool) -> Delta:
        """The changes for what was noted of a turn."""
        desk = self.desk
        claims, outdated, shown = noted_in(noted)
        if not claims and not outdated:
            return Delta()
        embed = desk.embedder.embed if desk.embedder is not None and await self._indexed(scope) else None
        places = Partitions(
            desk.store, scope, turn.at, embed, read_subclasses(desk.subclasses), desk.shared.setdefault("priors", {})
        )
        by = str(noted.body.get("by", ""))
        made = Provenance((turn.id,), (), "claims", by if "@" in by else "", "", turn.origin)
        asked = before[-1].text if before and before[-1].role is not turn.role and "?" in before[-1].text else ""
        work = ClaimsOf(
            desk.store, scope, turn, desk.clock.now(), desk.zone, places, None if self.adds_only else desk.verifier,
            made, asked, handed, self.adds_only,
        )  # fmt: skip
        return Delta(tuple(await work.changes_of(claims, outdated, shown)), by="claims")

    async def _indexed(self, scope: Scope) -> bool:
        """Make the vectors that are missing; return whether there are vectors now."""
        assert self.desk.embedder is not None
        try:
            await index_pending(self.desk.store, self.desk.embedder, scope)
        except ModelError:
            return False  # vectors are derived: words alone decide this time
        return True

    # --- reading ---

    async def _read(self, scope: Scope, turn: Turn, before: Sequence[Turn], job: Job) -> tuple[Event | None, Written]:
        """Ask the model about a turn and others that wait. An answer that cannot be read leaves the
        turns kept in their own words."""
        caller = self.desk.caller
        if caller is None:
            return None, Written()
        if READS_CLAIMS in caller.model.trained:
            return await self._read_one(scope, caller, turn, before, job)
        turns = await self._waiting(scope, turn, job)
        known = await self._known(scope, turns)
        given = ReadIn(
            " ".join(cut_tokens(f"{t.name}: {t.text}", 40) for t in before[-2:]) or "-",
            numbered(known) or "-",
            "\n".join(f"Message {n}: {cut_tokens(t.text, self._room() // 2)}" for n, t in enumerate(turns, 1)),
        )
        found: dict[int, ReadTurn] = {}
        by = "rule"
        try:
            out, asked = await caller.ask(scope, READ, given, room=_A_TURN * len(turns) + 40)
            found, by = {read.n: read for read in out.turns}, asked.prompt
        except ModelGarbled:
            await caller.fallback(scope, READ.version)
        jobs: list[Job] = []
        events: list[Event] = []
        for number, read_turn in enumerate(turns, 1):
            event, follow = self._noted(read_turn, _heard(found.get(number)), known, by, job)
            events.append(event)
            jobs += follow
        return events[0], Written(jobs=tuple(jobs), events=tuple(events))

    async def _read_one(
        self, scope: Scope, caller: Caller, turn: Turn, before: Sequence[Turn], job: Job
    ) -> tuple[Event, Written]:
        """Ask a model that was trained for it about one turn: its prompt is short, and it was trained on one
        message at a time."""
        known = await self._known(scope, [turn])
        # Whom "her" means stands as often in the user's own words as in the reply to them.
        said_before = " ".join(cut_tokens(" ".join(t.text.split()), _BEFORE_TOKENS) for t in before[-2:])
        asked = claims_question([claim.text for claim in known], said_before, cut_tokens(turn.text, _ROOM_LOCAL))
        heard, by = _Heard(), "rule"
        answer = await caller.text(scope, CLAIMS_VERSION, asked, max_tokens=_ANSWER, lane=READS_CLAIMS)
        try:
            heard, by = _Heard(None, *read_claims_answer(answer.text)), CLAIMS_VERSION
        except ModelGarbled:
            await caller.fallback(scope, CLAIMS_VERSION)
        event, follow = self._noted(turn, heard, known, by, job)
        return event, Written(jobs=tuple(follow), events=(event,))

    def _noted(self, turn: Turn, heard: _Heard, known: Sequence[Claim], by: str, job: Job) -> tuple[Event, list[Job]]:
        """The journal's line for a turn, and the jobs that it asks for."""
        stated = sum(quote_of(claim.value, turn) is not None for claim in heard.claims)
        remember = worth_keeping(turn.text, heard.remember, stated)
        body: dict[str, object] = {
            "remember": remember,
            "model": heard.remember,
            "claims": [[c.who, c.what, c.value, c.status] for c in heard.claims],
            "outdated": [known[n - 1].id for n in heard.outdated if 0 < n <= len(known)],
            "known": [c.id for c in known],
            "by": by,
        }
        asked = self.desk.follow_ups(Notes(remember, heard.claims, heard.outdated, complete=True))
        jobs = [follow_up(name, turn.id, job.recipe, suffix) for name, suffix in asked]
        return notes_event(turn, body, self.desk.clock), jobs

    def _room(self) -> int:
        """How many tokens of messages one call reads."""
        caller = self.desk.caller
        local = caller is None or caller.model.window < _LOCAL_WINDOW
        return _ROOM_LOCAL if local else _ROOM_HOSTED

    async def _waiting(self, scope: Scope, turn: Turn, job: Job) -> list[Turn]:
        """The turn, and the turns of waiting jobs that fit beside it, in the order of their jobs."""
        queued = [j for j in await self.desk.store.ask(scope, AskJobs(("queued",))) if j.kind == job.kind]
        ids = tuple(j.subject for j in queued if j.recipe == job.recipe and j.subject != turn.id)[: _MOST_TURNS - 1]
        if not ids:
            return [turn]
        store = self.desk.store
        others, noted = await store.ask(scope, AskTurns(ids=ids)), await store.ask(scope, AskEvents("notes", ids))
        there = {e.body.get("turn") for e in noted}
        chosen, spent = [turn], tokens(turn.text)
        for other in map(own_turn, others):
            spent += tokens(other.text)
            if spent > self._room():
                break
            if other.id not in there and other.role is Role.USER and other.text.strip():
                chosen.append(other)
        return chosen

    async def _known(self, scope: Scope, turns: Sequence[Turn]) -> list[Claim]:
        """The current claims that any of the turns may touch, those of the first turn first."""
        if "claims" not in self.desk.recipe.writers:
            return []
        # Claims of the last turn may have no vector yet.
        there = self.desk.embedder is not None and await self._indexed(scope)
        vectors = QueryEmbedder(self.desk.embedder if there else None)
        each = [
            await touching(self.desk.store, scope, vectors, t.text, t.at, _MOST_SHOWN)
            for t in turns if is_owners(t)
        ]  # fmt: skip
        ranked = sorted(
            ((rank, number, claim) for number, found in enumerate(each) for rank, claim in enumerate(found)),
            key=lambda item: item[:2],
        )
        return list({claim.id: claim for _, _, claim in ranked}.values())[:_MOST_SHOWN]


MECHANISM = Mechanism(
    "claims",
    "what is believed: who and what there is, how they are related, and what changes",
    writers=(
        Writer(
            "claims",
            When.TURN,
            lambda desk, scope, job: ClaimWriter(desk).write(scope, job),
            again=lambda record: record.provenance.turns,
            waits=True,
        ),
    ),
    sources=(
        Source("profile", "what is known about the user: name, job, place, family, health, wishes", kinds=("claim",)),
    ),
)
