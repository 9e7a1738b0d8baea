"""Memory: remember, recall, revise, forget, explain. No chat model is needed."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from nyima.app.opening import parts_for
from nyima.app.services import Services
from nyima.app.sources_file import checked
from nyima.app.telemetry import span
from nyima.change.cascade import Cascade, Forgetting, Receipt
from nyima.change.undo import UNDONE, LoggedChange, log_of, logged, noted_again, taken_back, withdrawn
from nyima.domain.changes import Add, Delta, merge
from nyima.domain.conversation import Origin, Role, Scope, Session, Turn, as_utc, clean_text
from nyima.domain.evidence import Budget, Evidence, Query, Recall
from nyima.domain.mechanism import Registry, Source, When, Writer
from nyima.domain.ports import ChatModel, Clock, Embedder, Event, RecordFilter, Verifier
from nyima.domain.recipe import Recipe, SourceSpec
from nyima.domain.records import KINDS, ME, Claim, Entity, MemoryRecord, Profile, Status, profile_of
from nyima.errors import InputError, ModelError, NotFound, StoreFull, StoreReadOnly
from nyima.language.subclasses import read_subclasses
from nyima.language.words import content_words, fold, stems
from nyima.mechanisms.by_hand import Hand, Statement, value_in
from nyima.mechanisms.conditional import passive_note
from nyima.read.outdating import Outdating
from nyima.read.plan import PASSAGES
from nyima.read.recall import Recaller
from nyima.read.trace import trace_event
from nyima.sync import Opening, Twin, blocking
from nyima.write.desk import Desk
from nyima.write.entities import plain_name
from nyima.write.jobs import Ingest, JobProgress, turn_id

__all__ = ["BlockingMemory", "Explanation", "Memory", "Remembered", "Said"]

_FEW = 20
_SEARCHES = ("hybrid", "words", "vector", "reciprocal", "walk")
_MEANT = 0.45
_MEANT_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Said:
    """A turn to remember, from anywhere. Equal ``id`` in one session is stored once."""

    text: str
    role: Role = Role.USER
    at: datetime | None = None
    speaker: str = ""
    origin: Origin | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What was stored: the turns, and the records that were made at once."""

    turns: tuple[Turn, ...]
    records: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why something is believed or was answered: the trace of a recall, or a record with
    the turns that it came from and its earlier versions."""

    trace: Mapping[str, Any] | None = None
    record: MemoryRecord | None = None
    turns: tuple[Turn, ...] = ()
    history: tuple[MemoryRecord, ...] = ()


class Memory:
    """A user's memory in a file.

    Everything is async; ``Memory.open(…).sync`` has the same methods that block.
    """

    def __init__(self, parts: Services) -> None:
        self.parts = parts
        self.scope = parts.scope
        self.store = parts.store
        self._name = f"w-{uuid.uuid4().hex[:12]}"
        self._session: Session | None = None

    @property
    def ingest(self) -> Ingest:
        """The write path."""
        parts = self.parts
        return Ingest(parts.store, parts.clock, parts.registry, parts.desk, parts.embedder, parts.silence)

    @property
    def clock(self) -> Clock:
        """The time."""
        return self.parts.clock

    @property
    def embedder(self) -> Embedder | None:
        """Makes vectors; None where memories are found by words alone."""
        return self.parts.embedder

    @property
    def recipe(self) -> Recipe:
        """The composition of the memory."""
        return self.parts.recipe

    @property
    def registry(self) -> Registry:
        """The mechanisms that are installed."""
        return self.parts.registry

    @property
    def own_sources(self) -> tuple[Source, ...]:
        """The user's own sources."""
        return self.parts.sources

    @property
    def persona(self) -> str:
        """The assistant's persona."""
        return self.parts.persona

    @property
    def zone(self) -> tzinfo:
        """The user's time zone."""
        return self.parts.zone

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        user: str | None = None,
        recipe: str | None = None,
        model: ChatModel | str | None = "none",
        embedder: Embedder | str | None = None,
        clock: Clock | None = None,
        verifier: Verifier | None = None,
        outdating: Outdating | None = None,
    ) -> Opening[Memory, BlockingMemory]:
        """Open or create a memory file.

        Without a ``model`` no chat model is ever called: turns are kept and found by
        words and vectors. ``model`` and ``embedder`` take an object, a name, or None for
        what the settings say; ``embedder="none"`` leaves the vectors out. ``verifier`` looks again at
        what was read, before it is believed; ``outdating`` finds what a newer message makes untrue (the
        model that comes with Nyima, unless ``embedder`` is an object).
        Raises StoreError, PackError or ConfigError on opening.
        """

        async def start() -> Memory:
            return cls(parts_for(path, user, recipe, model, embedder, clock, verifier, outdating))

        return Opening(start, BlockingMemory)

    def reading(self) -> Memory:
        """The same memory for a private conversation: recall, a trace or a call leave nothing
        behind. What the user asks for by hand (``forget``, ``revise``) is done all the same."""
        return Memory(replace(self.parts, private=True))

    # --- writing ---

    async def remember(
        self,
        what: str | Said | Sequence[Said],
        *,
        session: str | None = None,
        title: str = "",
        owed: bool | None = None,
    ) -> Remembered:
        """Store a text that the user wants kept, or turns of a conversation.

        A text becomes a turn, an episode and a note at once. Turns become episodes; with
        a chat model the recipe's writers get their jobs (``owed`` forces or forbids
        that); ``drain`` does them. Without one, the messages wait to be read (``unread``). Safe to repeat with the same ids. Raises InputError
        for an empty text.
        """
        if isinstance(what, (str, Said)):
            said = Said(what) if isinstance(what, str) else what
            if not said.text.strip():
                raise InputError("there is nothing to remember in an empty text: give some words")
            turns = [self._turn(said, session or "")]
            note = passive_note(turns[0], Desk(self.store, None, self.clock))
            extra = Delta((Add(note),), "conditional")
        else:
            turns, extra = [self._turn(s, session or "") for s in what], Delta()
            if not turns:
                return Remembered((), ())
        key = clean_text(session) if session else await self._own_session(turns[0].at)
        turns = [replace(t, session=key) for t in turns]
        line = Session(key, turns[0].at, title=clean_text(title))
        with_model = self.parts.chat is not None and not extra if owed is None else owed

        def wanted(writer: Writer) -> bool:
            return owed is not False and (with_model or writer.waits or not writer.needs_model)

        with span(self.parts, "remember") as spanned:
            stored = await self.ingest.hear(self.scope, line, turns, self.parts.recipe, owed=wanted, extra=extra)
            spanned.found(len(stored))
        made = [c.record.id for c in self.ingest.at_once(stored, self.recipe).changes if isinstance(c, Add)]
        made += [c.record.id for c in extra.changes if isinstance(c, Add)]
        return Remembered(tuple(stored), tuple(made))

    def _turn(self, said: Said, session: str) -> Turn:
        origin = said.origin or (
            Origin.USER if said.role is Role.USER else Origin(said.role.value.replace("system", "tool"))
        )
        return Turn(
            id=turn_id(session, said.id) if said.id else turn_id(),
            session=session,
            role=said.role,
            text=clean_text(said.text),
            at=as_utc(said.at) if said.at else self.clock.now(),
            origin=origin,
            speaker=clean_text(said.speaker),
        )

    async def _own_session(self, at: datetime) -> str:
        held = self._session
        if held is None or any(s.ended for s in await self.store.sessions(self.scope, ids=(held.id,))):
            held = self._session = Session("s-" + uuid.uuid4().hex[:16], at)
        return held.id

    async def end_session(self, session: str | None = None) -> None:
        """End a session: its writers become jobs, without a chat model those that need none.
        Without an id, the session of ``remember``."""
        key = clean_text(session) if session else self._session.id if self._session else None
        if key is None:
            return
        found = await self.store.sessions(self.scope, ids=(key,))
        if not found:
            raise NotFound(f"there is no session {key!r}: `nyima sessions` lists them")
        await self.ingest.end(
            self.scope,
            found[0],
            self.parts.recipe,
            owed=lambda writer: self.parts.chat is not None or not writer.needs_model,
        )
        if self._session and self._session.id == key:
            self._session = None

    async def drain(self, progress: JobProgress | None = None) -> Mapping[str, int]:
        """Do all work that is due; counts of jobs ``done``, ``waiting`` and ``parked``.

        Without a chat model only what needs none is done; the rest waits for one."""
        kinds = () if self.parts.writer_chat is not None else self.registry.without_model()
        return await self.ingest.drain(self.scope, self._name, progress, kinds)

    async def catch_up(self) -> None:
        """Do what can be done in a moment: first what ended sessions owe and is noted already, then
        a few jobs that need no model. The rest waits for ``drain``."""
        quick = self.registry.quick()
        ended = tuple(name for name in quick if self.registry.writer(name).when is When.SESSION_END)
        for kinds in (ended, quick):
            await self.ingest.drain(self.scope, self._name, None, kinds, most=_FEW, vectors=False)

    # --- reading ---

    def use(self, *sources: Source) -> None:
        """Look things up in these sources of your own, too (see ``Assistant.use``)."""
        self.parts = replace(self.parts, sources=checked([*self.parts.sources, *sources], self.registry))

    async def recall(
        self,
        query: str,
        budget: Budget | None = None,
        *,
        as_of: datetime | None = None,
        kinds: Sequence[str] = (),
        log: bool = True,
    ) -> Recall:
        """What the memory has on a query, best first, with the whole trace.

        Needs no chat model unless the recipe reflects. ``as_of`` looks at what was true
        then. Vectors that are still missing are made first.
        """
        _known_kinds(kinds)
        with span(self.parts, "recall") as spanned:
            found = await self._recall(query, budget, self.parts.recipe, as_of=as_of, kinds=kinds)
            spanned.found(len(found.kept), query)
        if log and not self.parts.private:
            try:
                await self.store.log(self.scope, trace_event(found, found.query.at))
            except (StoreFull, StoreReadOnly) as error:
                found = replace(found, failed={**found.failed, "trace": f"not kept: {error}"})
        return found

    async def _recall(
        self,
        query: str,
        budget: Budget | None,
        recipe: Recipe,
        *,
        as_of: datetime | None = None,
        kinds: Sequence[str] = (),
    ) -> Recall:
        if not query.strip():
            raise InputError("an empty query finds nothing: give some words")
        budget = budget or Budget(10, 100_000)
        at = self.clock.now()
        asked = Query(clean_text(query), at, kinds=tuple(kinds), as_of=as_utc(as_of) if as_of else None)
        recaller = await self.recaller(recipe, k=budget.records)
        return await recaller.recall(self.scope, asked, budget)

    async def recaller(self, recipe: Recipe, k: int | None = None) -> Recaller:
        """The read path of a recipe, when the vectors that were missing are made (but in a private
        conversation); what it needs to know of the memory is read together."""

        async def indexed() -> None:
            # Without vectors the recall is by words, and says so.
            with contextlib.suppress(ModelError, StoreFull, StoreReadOnly):
                await self.ingest.index(self.scope)

        pending = [] if self.parts.private else [indexed()]
        learned, *_ = await asyncio.gather(
            self.parts.learned(recipe), self.store.standing(self.scope, PASSAGES), *pending
        )
        return self.parts.recaller(recipe, k=k, learned=learned)

    async def records(
        self, *, kinds: Sequence[str] = (), as_of: datetime | None = None, retired: bool = False
    ) -> list[MemoryRecord]:
        """The records that are valid now (or as of a time; or all), oldest first."""
        _known_kinds(kinds)
        moment = as_utc(as_of) if as_of else None
        where = RecordFilter(kinds=tuple(kinds), at=self.clock.now(), as_of=moment, retired=retired)
        return await self.store.records(self.scope, where)

    async def profile(self) -> Profile:
        """The profile: what is claimed of the user and holds now."""
        return profile_of(await self.records(kinds=("claim",)))

    async def claims(
        self, about: str | None = None, *, as_of: datetime | None = None, every: bool = False
    ) -> list[Claim]:
        """The claims that are open now (or were at a time), oldest first; of one subject with ``about``
        (a name or an id), with ``every`` also those that were closed."""
        found = await self.records(kinds=("claim",), as_of=as_of, retired=every)
        wanted = fold(plain_name(about)) if about else ""
        return [
            c for c in found
            if isinstance(c, Claim) and (not wanted or wanted in {fold(c.name), c.subject} or wanted in stated_of(c))
        ]  # fmt: skip

    async def unread(self) -> int:
        """How many messages no model has read yet, so that nothing of them is claimed."""
        jobs = await self.store.jobs(self.scope, ("queued", "leased", "parked"))
        return sum(job.kind == "claims" for job in jobs)

    async def sessions(self) -> list[Session]:
        """The sessions, oldest first."""
        return await self.store.sessions(self.scope)

    async def turns(self, session: str | None = None) -> list[Turn]:
        """The turns of a session, or all, in order."""
        return await self.store.turns(self.scope, session=session)

    async def record(self, id: str) -> MemoryRecord:
        """A record by its id or an unambiguous beginning of it. Raises NotFound."""
        found = await self.store.records(self.scope, RecordFilter(ids=(id,), retired=True))
        if not found and len(id) >= 4:
            found = await self.store.records(self.scope, RecordFilter(prefix=id, retired=True, limit=2))
        if len(found) != 1:
            what = "several records begin with" if found else "there is no record"
            raise NotFound(f"{what} {id!r}: `nyima memories --all` lists every record with its id")
        return found[0]

    async def explain(self, what: str = "last") -> Explanation:
        """Why: the trace of the last recall, of a reply's recall, or a record's origins."""
        if what.lower() == "last":
            events = await self.store.events(self.scope, "recall", limit=1)
            if not events:
                raise NotFound("nothing was recalled yet: ask something first")
            return Explanation(trace=events[0].body)
        events = await self.store.events(self.scope, "recall", ref=what, limit=1)
        if events and what in {events[0].body.get("reply"), events[0].body.get("turn")}:
            return Explanation(trace=events[0].body)
        record = await self.record(what)
        turns = await self.store.turns(self.scope, ids=record.provenance.turns) if record.provenance.turns else []
        history: list[MemoryRecord] = []
        older = record.supersedes
        while older:
            found = await self.store.records(self.scope, RecordFilter(ids=(older,), retired=True))
            history += found
            older = found[0].supersedes if found else None
        return Explanation(record=record, turns=tuple(turns), history=tuple(history))

    # --- changing ---

    async def revise(self, id: str, text: str) -> MemoryRecord:
        """Give a claim another value, or a note or summary another text, by the user's own word. The old one stays in history, and what rests on it becomes
        stale. With its own value or text nothing changes, and the same record comes back.
        Raises NotFound or InputError."""
        with span(self.parts, "revise"):
            return await self._hand.revise(await self.record(id), text)

    async def value(self, record: MemoryRecord) -> str:
        """The part of a record that ``revise`` replaces: the value of a claim, the knowledge of a note,
        else the text."""
        return value_in(record)

    async def set(self, attribute: str, value: str) -> Claim:
        """Claim something of the user by their own word; the attribute's old values are closed."""
        with span(self.parts, "revise"):
            return await self._hand.state(Statement(ME, attribute, value), None)

    async def state(self, statement: Statement, *, replaces: Sequence[str] = ()) -> Claim:
        """State a claim by the user's own word; the claims ``replaces`` (their ids) are closed. Raises
        InputError, or NotFound for an id that is not open."""
        with span(self.parts, "revise"):
            return await self._hand.state(statement, replaces)

    async def confirm(self, *ids: str) -> list[Claim]:
        """Confirm claims that wait for it, that were planned, or that are uncertain; without ids, all
        that wait. Raises NotFound, or InputError for a record that is no claim."""
        with span(self.parts, "revise"):
            found = [await self.record(id) for id in ids] or [
                c for c in await self.claims() if c.status is Status.PENDING
            ]
            claims = [r for r in found if isinstance(r, Claim)]
            if len(claims) < len(found):
                raise InputError("only claims can be confirmed: `nyima claims` lists them with their ids")
            return await self._hand.confirm(claims)

    async def retire(self, id: str, reason: str = "ended by the user") -> None:
        """End the belief in a record; it stays in history, and what rests on it is no
        longer certain."""
        with span(self.parts, "revise"):
            await self._hand.retire(await self.record(id), reason)

    async def merge(self, one: str, other: str) -> Claim:
        """Say that two entities (their ids) are the same; ``undo`` takes it back."""
        first, second = await self.record(one), await self.record(other)
        if not (isinstance(first, Entity) and isinstance(second, Entity)):
            raise InputError("only entities can be merged: `nyima graph show` has their ids")
        return await self._hand.merge(first, second)

    async def forget(
        self,
        *ids: str,
        query: str | None = None,
        session: str | None = None,
        everything: bool = False,
        only: bool = False,
    ) -> Receipt:
        """Erase for good: records with the turns they came from, what a query finds, a
        session, or all; and whatever was derived from that. With ``only`` the turns stay:
        the receipt's ``still_said`` names those that still say it. ``would_forget`` tells
        beforehand what goes."""
        with span(self.parts, "forget") as spanned:
            if everything:
                receipt = await self._cascade.erase_all(self.scope)
            else:
                chosen, sessions = await self._named(ids, query, session)
                receipt = await self._cascade.erase(self.scope, records=chosen, sessions=sessions, only=only)
            spanned.found(sum(receipt.erased.values()))
        return receipt

    async def would_forget(
        self,
        *ids: str,
        query: str | None = None,
        session: str | None = None,
        everything: bool = False,
        only: bool = False,
    ) -> Forgetting:
        """What ``forget`` with the same arguments would take. Nothing is changed."""
        if everything:
            return Forgetting(tuple(await self.turns()), tuple(await self.records(retired=True)))
        chosen, sessions = await self._named(ids, query, session)
        return await self._cascade.foresee(self.scope, records=chosen, sessions=sessions, only=only)

    @property
    def _hand(self) -> Hand:
        subclasses = read_subclasses(self.parts.settings.subclasses)
        return Hand(self.store, self.scope, self.clock, self._cascade, subclasses)

    @property
    def _cascade(self) -> Cascade:
        return Cascade(self.store, self.clock, self.parts.recipe, self.registry)

    async def _named(
        self, ids: Sequence[str], query: str | None, session: str | None
    ) -> tuple[list[MemoryRecord], tuple[str, ...]]:
        """The records and the session that a forget names. Raises NotFound when there are none."""
        if session is not None:
            if not await self.store.sessions(self.scope, ids=(key := clean_text(session),)):
                raise NotFound(f"there is no session {session!r}: `nyima sessions` lists them")
            return [], (key,)
        chosen = [await self.record(id) for id in ids]
        if query is not None:
            chosen += [e.record for e in await self.meant(query)]
        if not chosen:
            raise NotFound("there is nothing to forget: give an id, a query that finds something, or a session")
        return chosen, ()

    async def meant(self, query: str) -> list[Evidence]:
        """What ``forget(query=…)`` would erase: what is clearly to the point, nothing else.
        Where some of it says every word of the query (the names in it, when it has any),
        only that: "my old phone number" is not the new one."""
        recipe = self.parts.recipe
        searched = tuple(s for s in recipe.sources if s.how in _SEARCHES and s.name != "documents") or (
            recipe.sources and (SourceSpec("history"),)
        )
        plain = replace(recipe, sources=tuple(searched), judge="scores", own=False)
        found = await self._recall(query, None, plain)
        kept = [e for e in found.kept if e.source in {s.name for s in searched}]
        best = max((e.score for e in kept), default=0.0)
        clear = [e for e in kept if e.score >= max(_MEANT, _MEANT_SHARE * best)]
        names = " ".join(w for w in query.split() if w[:1].isupper())
        wanted = content_words(names) or content_words(query)
        exact = [e for e in clear if all(w in fold(e.text) or (stems(w) and stems(w) <= stems(e.text)) for w in wanted)]
        return exact or clear

    async def log(self, limit: int | None = None) -> list[LoggedChange]:
        """The changes of the memory in words, newest first: one line an action of the user."""
        return (await log_of(self.store, self.scope, limit))[:limit]

    async def undoable(self, id: str | None = None) -> LoggedChange:
        """The line of the log that ``undo`` would take back. Raises NotFound when there is none."""
        if id is None:
            found = await self._last(lambda c: c.undoable and not c.derived and c.by not in {"undo", "redo"})
            if found is None:
                raise NotFound("there is no change left to undo: `nyima log` lists what was done")
            return found
        found = await logged(self.store, self.scope, id)
        if found is None:
            raise NotFound(f"there is no change {id!r}: `nyima log` lists them with their ids")
        if not found.undoable:
            raise InputError(
                f"change {id!r} ({found}) cannot be undone: it was erased or taken back, or something newer stands there"
            )
        return found

    async def _last(self, wanted: Callable[[LoggedChange], bool]) -> LoggedChange | None:
        """The newest line of the log that is wanted; as little of the log is read as that needs."""
        seen, size = -1, 1
        while True:
            lines = await log_of(self.store, self.scope, size)
            found = next(filter(wanted, lines), None)
            if found is not None or len(lines) == seen:
                return found
            seen, size = len(lines), size * 8

    async def undo(self, id: str | None = None) -> LoggedChange:
        """Take back one action: the one with this id (``log`` lists them), all that was noted of
        a message (the id of the user's turn; also what would still be noted of it), or the
        last one. ``redo`` brings it back. An erase cannot be undone. Raises NotFound when
        there is nothing to undo, InputError for a change that cannot be."""
        now = self.clock.now()
        if id is not None and not id[:1].isdecimal():
            line = await logged(self.store, self.scope, id) or LoggedChange(
                "", now, "", "noted", "", "", undoable=False, turn=id
            )
        else:
            line = await self.undoable(id)
        gone, events = await withdrawn(self.store, self.scope, line.turn, now, line.id) if line.turn else ([], [])
        changes = await taken_back(self.store, self.scope, line, now)
        await self.store.commit(self.scope, merge([Delta((*changes, *gone), "undo")]), events=events)
        return line

    async def redo(self) -> LoggedChange:
        """Take back the last undo. Raises NotFound when nothing was undone, or something newer
        stands in its place."""
        now = self.clock.now()
        line = await self._last(lambda c: c.by == "undo" and c.undoable)
        marks = await self.store.events(self.scope, UNDONE)
        silent = next((m for m in marks if not m.body.get("change")), None)
        if silent is not None and (line is None or silent.at > line.at):  # nothing had been noted of that turn yet
            line = LoggedChange("", silent.at, "undo", "noted", "", "", undoable=True, turn=silent.body["turn"])
        if line is None:
            raise NotFound("there is no undo left to take back: `nyima log` lists what was done")
        undone = {row.reason.removeprefix("undo of ") for row in line.rows}
        turns = [m.body["turn"] for m in marks if m.body.get("change") in undone] or [line.turn]
        changes = await taken_back(self.store, self.scope, line, now)
        events: list[Event] = []
        for turn in filter(None, turns):
            gone, notes = await noted_again(self.store, self.scope, turn, now)
            changes, events = [*changes, *gone], [*events, *notes]
        await self.store.commit(self.scope, merge([Delta(tuple(changes), "redo")]), events=events)
        return line

    async def close(self) -> None:
        """Close the file and the model."""
        for model in {id(m): m for m in (self.parts.chat, self.parts.writer_chat) if m is not None}.values():
            await model.close()
        await self.store.close()


class BlockingMemory(Twin[Memory]):
    """A Memory whose methods block (``Memory.open(…).sync``)."""

    remember = blocking(Memory.remember)
    end_session = blocking(Memory.end_session)
    drain = blocking(Memory.drain)
    catch_up = blocking(Memory.catch_up)
    recall = blocking(Memory.recall)
    records = blocking(Memory.records)
    profile = blocking(Memory.profile)
    claims = blocking(Memory.claims)
    unread = blocking(Memory.unread)
    sessions = blocking(Memory.sessions)
    turns = blocking(Memory.turns)
    record = blocking(Memory.record)
    explain = blocking(Memory.explain)
    revise = blocking(Memory.revise)
    value = blocking(Memory.value)
    set = blocking(Memory.set)
    state = blocking(Memory.state)
    confirm = blocking(Memory.confirm)
    retire = blocking(Memory.retire)
    merge = blocking(Memory.merge)
    forget = blocking(Memory.forget)
    would_forget = blocking(Memory.would_forget)
    meant = blocking(Memory.meant)
    log = blocking(Memory.log)
    undoable = blocking(Memory.undoable)
    undo = blocking(Memory.undo)
    redo = blocking(Memory.redo)

    @property
    def scope(self) -> Scope:
        """Whose memory it is."""
        return self.inner.scope

    @property
    def recipe(self) -> Recipe:
        """The composition of the memory."""
        return self.inner.recipe

    def use(self, *sources: Source) -> None:
        """Look things up in these sources of your own, too (see ``Memory.use``)."""
        self.inner.use(*sources)


def stated_of(claim: Claim) -> set[str]:
    """Return the words of a subject's name, each of which may name it: "sister Ana" is found as Ana."""
    return {fold(word) for word in claim.name.split()}


def _known_kinds(kinds: Sequence[str]) -> None:
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise InputError(f"there is no kind {unknown[0]!r}: choose from {', '.join(KINDS)}")
