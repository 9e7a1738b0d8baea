"""A reply that another program makes: what the memory gives it, and what becomes of it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from nyima.domain.changes import Delta, Erase
from nyima.domain.conversation import Session, Turn, clean_text
from nyima.domain.evidence import Answer, Notes, Query, Recall, Usage
from nyima.domain.ports import RecordFilter
from nyima.domain.roles import Reply
from nyima.memory import Memory
from nyima.prompts.notes import ReplyStream
from nyima.prompts.prompt import fill, sections
from nyima.read.prompting import Known, PromptBuilder, numbered, quoted, shown
from nyima.turn import Exchange, hear, known_of, said_by_user, spoken
from nyima.write.jobs import turn_id

__all__ = ["ProgramReply", "ProgramRequest"]

_LINES = 8
_TAG = "nyima-notes"


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    """What a program is about to ask a model: the user's message, its session, the lines
    (role, text) before it. ``id`` is the message's place: the same text at the same place is
    one turn. With a ``key`` the reply, too, is stored once, however often it is asked for.
    ``reads`` puts the memory in, ``writes`` keeps message and reply; with ``notes`` the model
    is asked to write them after its reply, otherwise a job makes them."""

    text: str
    session: str
    dialogue: tuple[tuple[str, str], ...] = ()
    id: str = ""
    key: str = ""
    reads: bool = True
    writes: bool = True
    notes: bool = True


class ProgramReply:
    """A message that another program asks its model about, and the reply that it gets. ``system``
    is what the system message gets, as data; ``recall`` what was found; ``said`` the user's
    turn, which is stored already."""

    def __init__(self, asked: ProgramRequest, exchange: Exchange) -> None:
        self.asked, self._exchange = asked, exchange
        self._asks = asked.notes and asked.writes and exchange.memory.parts.notes_in_reply(exchange.recipe)
        self._stream, self._first = ReplyStream(_TAG), 0.0
        self.answer: Answer | None = None

    @classmethod
    async def begin(cls, memory: Memory, asked: ProgramRequest, stored: Turn | None = None) -> ProgramReply:
        """Store the message, unless it is there as ``stored``, and look up what the memory has
        on it. Raises InputError for an empty message, StoreError when it cannot be stored."""
        recipe, session = memory.recipe, Session(asked.session, memory.clock.now())
        place = asked.key or asked.id
        key = turn_id(asked.session, place, clean_text(asked.text)) if place else ""
        new = said_by_user(asked.text, session, memory, key)
        said = stored or new
        if asked.writes and stored is None:
            said = await hear(memory, recipe, session, said)
        if not asked.reads:
            nothing = Recall(Query(said.text, said.at))
            return cls(asked, Exchange(memory, recipe, session, said, Known(), nothing, time.perf_counter()))
        known = await known_of(memory)
        shown = {line.strip() for _, line in asked.dialogue}
        before = [t for t in await memory.turns(asked.session) if t.id != said.id]
        seen = {t.id for t in before if t.text.strip() in shown}
        # What the program has left out of its dialogue is looked for like any other memory.
        whole = asked.session if len(seen) == len(before) else None
        query = Query(clean_text(asked.text), memory.clock.now(), session=whole, dialogue=asked.dialogue[-_LINES:])
        return cls(asked, await Exchange.begin(memory, recipe, session, said, known, query, seen))

    @property
    def memory(self) -> Memory:
        """The memory that the reply is kept in."""
        return self._exchange.memory

    @property
    def said(self) -> Turn:
        """The user's turn."""
        return self._exchange.said

    @property
    def recall(self) -> Recall:
        """What was found."""
        return self._exchange.recall

    @property
    def notes(self) -> bool:
        """Whether the model is asked for notes."""
        return self._asks

    @property
    def system(self) -> str:
        """What is known and what was recalled, as data, and how to write notes; empty when
        there is neither."""
        recipe = self.memory.recipe
        builder = PromptBuilder(recipe, "", "lines" if self.notes else "plain", 8_000, {})
        data = builder.standing(self._exchange.known)
        claims, kept, room = self.recall.claims, self.recall.kept, recipe.evidence.tokens
        rest = numbered(claims, {e.record.id for e in shown(kept, room)})
        if rest:
            data.append(fill("reply", "known", {"claims": rest}))
        evidence = quoted(kept, room, scored=recipe.scored, claims=claims) if kept else ""
        if evidence:
            data.append(fill("reply", "found", {"memory": evidence}))
        # What is the same in every request comes first, for the server's prefix cache.
        rules = [sections("reply")["lines"].replace("notes>", f"{_TAG}>")] if self.notes else []
        return "\n\n".join([*rules, *([sections("reply")["others"]] if data else []), *data])

    def feed(self, piece: str) -> str:
        """A piece of the model's text; what of it may be shown, without the notes."""
        visible = self._stream.feed(piece)
        self._first = self._first or time.perf_counter()
        return visible

    @property
    def noting(self) -> bool:
        """Whether the reply has ended and its notes are coming."""
        return self._stream.closed

    @property
    def begun(self) -> bool:
        """Whether something was said that may be shown."""
        return bool(self._stream.shown.strip())

    def again(self) -> None:
        """Forget what was fed, and ask for no notes: for a model that wrote them alone."""
        self._asks = False
        self._stream, self._first = ReplyStream(_TAG), 0.0

    def _reply_id(self, spoken: str, *, complete: bool) -> str:
        """With a key the same request has one whole reply, and one that broke off at most."""
        parts = ("reply",) if complete else ("reply", "incomplete")
        return turn_id(self.said.id, *parts, self.asked.key or spoken)

    async def _drop(self, broken: str) -> None:
        """Take away the reply that broke off when the same request was answered before."""
        store, scope = self.memory.store, self.memory.scope
        if await store.turns(scope, ids=(broken,)):
            made = await store.records(scope, RecordFilter(turns=(broken,), retired=True))
            erased = (*(Erase(r.id) for r in made if r.provenance.turns == (broken,)), Erase(broken, "turn"))
            await store.commit(scope, Delta(erased, "history"))

    def finish(self) -> str:
        """What of the text was held back until its end was known."""
        return self._stream.finish()

    async def close(self, text: str | None = None, *, complete: bool = True, usage: Usage | None = None) -> Answer:
        """Store the reply, once: ``text`` as it stands, or what was fed. One that broke off
        is kept and marked as not complete; its notes are made by a job."""
        if self.answer is not None:
            return self.answer
        said = self._stream.reply() if text is None else text
        noted = self._stream.notes()
        answer = clean_text(said).strip()
        turn = spoken(answer, self._exchange.session, self.memory, self._reply_id(answer, complete=complete))
        if complete and self.asked.writes and self.asked.key:
            await self._drop(self._reply_id(answer, complete=False))
        whole = self._reply_id(answer, complete=True)
        told = not complete and bool(self.asked.key) and await self.memory.store.turns(self.memory.scope, ids=(whole,))
        if told or not self.asked.writes:
            self.answer = Answer(answer, turn.id, self.recall, noted, usage or Usage(), {})
            return self.answer
        # Where nobody was asked for notes, the job makes them.
        notes = noted if text is None and self.notes else Notes()
        reply = Reply(answer, self.recall, notes, usage or Usage())
        self.answer = await self._exchange.keep(reply, turn, complete=complete, first=self._first)
        return self.answer
