"""One turn of a conversation: hear, know, recall, prompt, reply, keep.

It is the same whoever writes the reply: our chat model, a trained one, or another program's
(``nyima.program``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nyima.app.telemetry import span
from nyima.domain.conversation import Origin, Role, Session, Turn, clean_text
from nyima.domain.evidence import Answer, Evidence, Notes, Query, Recall
from nyima.domain.ports import Event
from nyima.domain.recipe import Recipe
from nyima.domain.records import Claim
from nyima.domain.roles import Reply
from nyima.errors import InputError
from nyima.language.intent import is_goodbye
from nyima.mechanisms.pins import pinned
from nyima.mechanisms.summaries import standing
from nyima.memory import Memory
from nyima.prompts.prompt import version
from nyima.read.embedding import QueryEmbedder
from nyima.read.prompting import Known
from nyima.read.prompting import shown as shown_evidence
from nyima.read.recall import Recaller
from nyima.read.touching import touching
from nyima.read.trace import trace_event
from nyima.write.desk import Desk
from nyima.write.jobs import settled, turn_id

__all__ = ["Exchange", "hear", "known_of", "recalls", "said_by_user", "spoken"]


def said_by_user(text: str, session: Session, memory: Memory, id: str = "") -> Turn:
    """The user's turn. Raises InputError for an empty message."""
    cleaned = clean_text(text)
    if not cleaned.strip():
        raise InputError("an empty message has no answer: write something")
    return Turn(id or turn_id(), session.id, Role.USER, cleaned, memory.clock.now())


def spoken(text: str, session: Session, memory: Memory, id: str = "") -> Turn:
    """The assistant's turn."""
    now = memory.clock.now()
    return Turn(id or turn_id(), session.id, Role.ASSISTANT, clean_text(text), now, Origin.ASSISTANT)


async def hear(memory: Memory, recipe: Recipe, session: Session, said: Turn) -> Turn:
    """Store the user's turn, with the jobs that it owes; nothing in a private chat. Raises
    StoreError when it cannot be stored."""
    if memory.parts.private:
        return said
    with span(memory.parts, "remember") as spanned:
        (heard,) = await memory.ingest.hear(memory.scope, session, [said], recipe)
        spanned.found(1)
    return heard


async def known_of(memory: Memory) -> Known:
    """Profile, pinned records and running memory, as the system message says them."""
    parts = memory.parts
    texts = await standing(Desk(parts.store, None, parts.clock), parts.scope)
    profile = await memory.profile()
    shown = {claim.id for claim in profile.claims}
    kept = [r for r in await pinned(memory) if r.id not in shown]
    lines = (*((r.id, " ".join(r.text.split())) for r in kept), *((t.id, t.body) for t in texts))
    return Known(profile, lines, frozenset(t.id for t in texts))


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message that was heard, with what is known and what was recalled for it. ``started`` is
    the moment (of ``time.perf_counter``) from which the seconds of the answer count."""

    memory: Memory
    recipe: Recipe
    session: Session
    said: Turn
    known: Known
    recall: Recall
    started: float

    @classmethod
    async def begin(
        cls,
        memory: Memory,
        recipe: Recipe,
        session: Session,
        said: Turn,
        known: Known,
        query: Query,
        visible: set[str],
        recaller: Recaller | None = None,
    ) -> Exchange:
        """Recall what the memory has on the message, without what the system message shows whole
        or the dialogue (the turns in ``visible``) shows anyway."""
        started = time.perf_counter()
        recall = await _recalled(memory, recipe, query, known, visible | {said.id}, recaller)
        return cls(memory, recipe, session, said, known, recall, started)

    async def keep(
        self, reply: Reply, turn: Turn, *, complete: bool, first: float = 0.0, calls: Sequence[Event] = ()
    ) -> Answer:
        """Store the reply (``turn``) with its notes, its trace and the lines of the ledger (``calls``);
        nothing of it in a private chat. One that broke off is marked as not complete. ``first`` is
        the moment of the first piece that was shown."""
        memory, recall = self.memory, reply.recall
        noted = reply.notes if complete else Notes()
        noted = settled(self.said, noted) if noted.complete else noted
        now = time.perf_counter()
        seconds = {"first": round(max(0.0, first - self.started), 3), "total": round(now - self.started, 3)}
        cited = tuple(e.record.id for e in shown_evidence(recall.kept, self.recipe.evidence.tokens))
        told = replace(recall, prompts=(version("reply"), *recall.prompts), shown=cited)
        answer = Answer(turn.text, turn.id, told, noted, reply.usage, seconds)
        if not memory.parts.private and (turn.text or complete):
            trace = trace_event(told, memory.clock.now(), answer, self.said.id, self.known.refs, complete=complete)
            events = (trace, *calls)
            kept = memory.ingest.answered(
                memory.scope, self.session, self.said, turn, noted, self.recipe, events, recall.claims
            )
            await asyncio.shield(kept)
        else:
            for call in calls:
                await memory.store.log(memory.scope, call)
        return answer


def recalls(recipe: Recipe, text: str) -> bool:
    """Return whether anything is looked up for a message."""
    return bool(recipe.sources) and not is_goodbye(text)


async def _recalled(
    memory: Memory, recipe: Recipe, query: Query, known: Known, visible: set[str], recaller: Recaller | None
) -> Recall:
    parts = memory.parts
    claims = touched(memory, recipe, query)
    if not recalls(recipe, query.text):
        return Recall(query, planner="rules", claims=await claims)
    with span(parts, "recall") as spanned:
        recaller = recaller or await memory.recaller(recipe)
        found, shown = await asyncio.gather(recaller.recall(memory.scope, query, recipe.evidence), claims)
        spanned.found(len(found.kept), query.text)
    there = set(known.fitting(recipe).refs)

    def new(piece: Evidence) -> bool:
        return piece.record.id not in there and not visible & set(piece.record.provenance.turns[:1])

    kept = tuple(filter(new, found.kept))
    return replace(found, found=tuple(filter(new, found.found)), kept=kept, claims=shown)


async def touched(memory: Memory, recipe: Recipe, query: Query) -> tuple[Claim, ...]:
    """Return the current claims that a message may touch; none where the reply's call takes no notes,
    or the recipe makes no claims."""
    parts = memory.parts
    if not parts.notes_in_reply(recipe) or "claims" not in recipe.writers:
        return ()
    vectors = QueryEmbedder(parts.queries or parts.embedder)
    return tuple(await touching(memory.store, memory.scope, vectors, query.text, query.at))
