"""Assistant: a companion that replies with its memory and keeps what matters."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

from nyima.app.opening import parts_for, read_shots
from nyima.app.registry import recipe_named
from nyima.app.tools import Tool, load_tools, use_tool
from nyima.change.cascade import Receipt
from nyima.change.undo import LoggedChange
from nyima.domain.conversation import Session, Turn, clean_text
from nyima.domain.evidence import Answer, Budget, Notes, Query, Recall
from nyima.domain.mechanism import Source
from nyima.domain.ports import ChatModel, Clock, Embedder, Event, Lines, Message, Verifier
from nyima.domain.recipe import Recipe
from nyima.domain.roles import Reply, ReplyRequest
from nyima.errors import InputError, NoModel, NotFound
from nyima.language.intent import is_goodbye
from nyima.mechanisms.reading import noted_in
from nyima.memory import BlockingMemory, Explanation, Memory, Said
from nyima.prompts.prompt import sections
from nyima.read.outdating import Outdating
from nyima.read.prompting import Known, PromptBuilder, Shot
from nyima.read.recall import Recaller
from nyima.read.trace import trace_event
from nyima.sync import Opening, Twin, blocking, iterating
from nyima.turn import Exchange, hear, known_of, recalls, said_by_user, spoken
from nyima.write.desk import notes_of
from nyima.write.jobs import turn_id

__all__ = ["AnswerStream", "Assistant", "BlockingAnswerStream", "BlockingAssistant", "ModelOf"]

ModelOf: TypeAlias = ChatModel | str | None

_IDLE_SECONDS = 0.8
_LINES = 8


class AnswerStream:
    """A reply, piece by piece (``async for``); at its end the ``answer``, with what it rests on.
    Closed before its end, what was shown is kept as a reply that broke off."""

    def __init__(self, pieces: AsyncGenerator[str | Answer, None]) -> None:
        self._pieces = pieces
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """The whole reply. Raises InputError before the last piece was read."""
        if self._answer is None:
            raise InputError("the reply has not ended yet: read all pieces of its stream first")
        return self._answer

    def __aiter__(self) -> AnswerStream:
        return self

    async def __anext__(self) -> str:
        async for piece in self._pieces:
            if not isinstance(piece, Answer):
                return piece
            self._answer = piece
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Break the reply off."""
        await self._pieces.aclose()


class Assistant:
    """Replies, remembers, and works off in the background what its turns owe."""

    def __init__(
        self,
        memory: Memory,
        *,
        tools: Mapping[str, Tool] | None = None,
        shots: Sequence[Shot] = (),
        private: bool = False,
        works: bool = True,
    ) -> None:
        """A companion over ``memory``. With ``private`` this conversation reads the memory and
        never writes it; other conversations over the same memory are not concerned."""
        self._shared = memory
        self._private = private
        self.memory = memory.reading() if private else memory
        self.recipe: Recipe = memory.recipe
        self.tools = dict(tools or {})
        self._shots = tuple(shots)
        self._session: Session | None = None
        self._own: list[Turn] = []
        self._known: Known | None = None
        self._background: asyncio.Task[None] | None = None
        self._started = False
        self._works = works

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        user: str | None = None,
        model: ModelOf = None,
        recipe: str | None = None,
        embedder: Embedder | str | None = None,
        tools: Sequence[Callable[..., Any] | str] | None = None,
        clock: Clock | None = None,
        verifier: Verifier | None = None,
        outdating: Outdating | None = None,
    ) -> Opening[Assistant, BlockingAssistant]:
        """Open a companion on a memory file.

        ``model`` is an object, a model's name, a pack's name, or None for what the
        settings say. ``tools`` are Python functions that the assistant may call; None
        takes the settings' (a calculator and the clock). Sessions that fell silent are
        ended when the first session begins. Raises StoreError, PackError, NoModel or ConfigError.
        """

        async def start() -> Assistant:
            parts = parts_for(path, user, recipe, model, embedder, clock, verifier, outdating)
            memory = Memory(parts)
            chosen = load_tools(parts.settings.tools if tools is None else tools)
            return cls(memory, tools=chosen, shots=read_shots(parts))

        return Opening(start, BlockingAssistant)

    @property
    def private(self) -> bool:
        """Return whether this conversation reads the memory and never writes it. A new value
        begins a new conversation."""
        return self._private

    @private.setter
    def private(self, value: bool) -> None:
        self._private = value
        self.memory = self._shared.reading() if value else self._shared
        self._session, self._own, self._known = None, [], None

    @property
    def session(self) -> str:
        """The id of the running session; empty when there is none."""
        return "" if self._session is None else self._session.id

    # --- talking ---

    async def reply(self, text: str) -> Answer:
        """The reply to a message, with what it rests on."""
        stream = self.stream(text)
        async for _ in stream:
            pass
        return stream.answer

    def stream(self, text: str) -> AnswerStream:
        """The reply piece by piece; when it has ended, the ``answer`` of the stream is what
        ``reply`` returns.

        The message is durable before the model is called: when the model fails, the
        error is raised and the message stays.
        """
        return AnswerStream(self._talk(text))

    async def _talk(self, text: str) -> AsyncGenerator[str | Answer, None]:
        """The reply piece by piece, and at the end the Answer."""
        if not text.strip():
            raise InputError("an empty message has no answer: write something")
        if self.memory.parts.chat is None:
            raise NoModel
        await self._quiet()
        session, before = await self._current()
        said = await hear(self.memory, self.recipe, session, said_by_user(text, session, self.memory))
        exchange, request = await self._asked(session, before, said)
        shown, first, reply = list[str](), 0.0, None
        calls: list[Event] = []
        try:
            async for piece in self.memory.parts.reader(self.recipe, calls).read(self.memory.scope, request):
                if isinstance(piece, Reply):
                    reply = piece
                else:
                    first = first or time.perf_counter()
                    shown.append(piece)
                    yield piece
        finally:
            kept = reply or Reply("".join(shown).strip(), exchange.recall)
            turn = spoken(kept.text, session, self.memory)
            answer = await exchange.keep(kept, turn, complete=reply is not None, first=first, calls=calls)
            if self.private:
                self._own += [said, turn]
        if is_goodbye(text):
            await self.end_session()
        self._later()
        yield answer

    async def greet(self) -> AsyncIterator[str]:
        """Open the session: to a stranger with a fixed question, to somebody who is
        known with a sentence of the model's own. What an earlier session still owes and needs
        no model call is done first, so that its facts are known."""
        session, _ = await self._current()
        if not self.private:
            await self.memory.catch_up()
            self.refresh()
        known = await self._knowledge()
        if not known.profile.claims and not known.texts:
            strange = not await self.memory.turns()
            hello = (
                "Hello! I don't think we have met. What should I call you?"
                if strange
                else "Hello again! What is on your mind?"
            )
            yield hello
            await self._store_greeting(session, hello, known)
            return
        builder = self._builder()
        messages = [Message("system", builder.system(known)), Message("user", sections("reply")["hello"])]
        request = self._request(Recall(Query("", self.memory.clock.now())), (), lambda found: messages)
        reader = self.memory.parts.reader(replace(self.recipe, reader="model", critic=""))
        async for piece in reader.read(self.memory.scope, request):
            if isinstance(piece, Reply):
                await self._store_greeting(session, piece.text, known)
            else:
                yield piece

    async def _store_greeting(self, session: Session, text: str, known: Known) -> None:
        turn = spoken(text, session, self.memory)
        if self.private:
            self._own.append(turn)
        elif text:
            now = self.memory.clock.now()
            trace = trace_event(
                Recall(Query("", now)), now, Answer(text, turn.id, Recall(Query("", now))), known=known.refs
            )
            await self.memory.store.append(self.memory.scope, session, [turn], events=[trace])

    async def _asked(self, session: Session, before: Sequence[Turn], said: Turn) -> tuple[Exchange, ReplyRequest]:
        """Recall for a message, and build the request to its reader."""
        builder = self._builder()
        past = [t for t in await self.memory.turns() if t.session != session.id] if self.recipe.past else []
        lines = tuple((t.role.value, t.text) for t in before[-_LINES:])
        notes, known, recaller = await asyncio.gather(
            self._noted([] if self.private else before), self._knowledge(), self._recaller(said)
        )
        dialogue, shown = builder.dialogue([*past, *before], notes)
        whole = session.id if len(shown) == len(before) else None
        query = Query(said.text, self.memory.clock.now(), session=whole, dialogue=lines)
        visible = {t.id for t in shown}
        exchange = await Exchange.begin(self.memory, self.recipe, session, said, known, query, visible, recaller)
        system = Message("system", builder.system(known))

        def messages(found: Recall) -> list[Message]:
            return [system, *dialogue, Message("user", builder.last(said.text, found.kept, found.claims))]

        return exchange, self._request(exchange.recall, (*lines, ("user", said.text)), messages)

    async def _recaller(self, said: Turn) -> Recaller | None:
        return await self.memory.recaller(self.recipe) if recalls(self.recipe, said.text) else None

    def _request(self, recall: Recall, lines: Lines, messages: Callable[[Recall], Sequence[Message]]) -> ReplyRequest:
        use = functools.partial(use_tool, self.tools) if self.tools else None
        return ReplyRequest(recall, lines, messages, self._notes, use)

    @property
    def _notes(self) -> bool:
        """Return whether the reply's call takes notes. In a private chat it takes none, and none where another
        call reads the claims."""
        return not self.private and self.memory.parts.notes_in_reply(self.recipe)

    def _builder(self, style: str | None = None) -> PromptBuilder:
        chat = self.memory.parts.chat
        assert chat is not None
        if style is None:
            bound = chat.grammars or not self.tools
            style = ("json" if bound else "lines") if self._notes else "talk" if chat.grammars else "plain"
        about = {name: tool.about for name, tool in self.tools.items()}
        return PromptBuilder(self.recipe, self.memory.persona, style, chat.window, about, self._shots)

    async def _noted(self, turns: Sequence[Turn]) -> dict[str, Notes]:
        events = (
            await notes_of(self.memory.store, self.memory.scope, turns) if turns and self.recipe.takes_notes else {}
        )
        return {id: Notes(bool(e.body["remember"]), noted_in(e)[0], complete=True) for id, e in events.items()}

    async def _knowledge(self) -> Known:
        """Profile and running memory, the same for a whole session."""
        if self._known is None:
            self._known = await known_of(self.memory)
        return self._known

    # --- sessions and work ---

    async def _current(self) -> tuple[Session, list[Turn]]:
        """The running session with its turns; a new one after a silence."""
        await self._end_silent()
        now = self.memory.clock.now()
        turns = list(self._own)
        if self._session is not None and not self.private:
            turns = await self.memory.turns(self._session.id)
            if turns and now - turns[-1].at >= self.memory.parts.silence:
                await self.end_session()
        if self._session is None:
            self._session, turns = Session("s-" + uuid.uuid4().hex[:16], now), []
        return self._session, turns

    async def _end_silent(self) -> None:
        """Once, end the sessions that fell silent before this start."""
        if not self._started and not self.private:
            self._started = True
            await self.memory.ingest.end_silent(self.memory.scope, self.memory.recipe)

    async def resume(self, session: str | None = None, turns: Sequence[Said] = ()) -> None:
        """Go on with an open session of the memory; in a private chat, from ``turns``, which
        only this chat sees. Raises NotFound, or InputError for turns outside a private chat."""
        if turns and not self.private:
            raise InputError("only a private chat takes turns that are not stored: remember them first")
        self._known = None
        if self.private:
            now = self.memory.clock.now()
            self._session = Session(session or "s-" + uuid.uuid4().hex[:16], turns[0].at or now if turns else now)
            self._own = [
                Turn(
                    turn_id(), self._session.id, said.role, clean_text(said.text), said.at or now, speaker=said.speaker
                )
                for said in turns
            ]
            return
        found = await self.memory.store.sessions(self.memory.scope, ids=(session or "",))
        if not found or found[0].ended is not None:
            raise NotFound(f"there is no open session {session!r}: `nyima sessions` lists them")
        self._session = found[0]

    async def end_session(self) -> None:
        """End the session: summary and profile become jobs. The next message begins a
        new one. Where this is cancelled before it is done, the session is still there to be
        ended: a terminal that closes ends its input and sends a signal at once."""
        session = self._session
        if session is not None and not self.private:
            found = await self.memory.store.sessions(self.memory.scope, ids=(session.id,))
            if found:
                await self.memory.ingest.end(self.memory.scope, found[0], self.recipe)
        self._session, self._own, self._known = None, [], None

    async def recall(self, query: str, budget: Budget | None = None, *, as_of: datetime | None = None) -> Recall:
        """What the memory has on a query (see ``Memory.recall``)."""
        return await self.memory.recall(query, budget, as_of=as_of)

    async def forget(self, *ids: str, query: str | None = None, session: str | None = None) -> Receipt:
        """Erase for good (see ``Memory.forget``)."""
        await self._quiet()
        receipt = await self.memory.forget(*ids, query=query, session=session)
        self.refresh()
        return receipt

    async def log(self, limit: int | None = None) -> list[LoggedChange]:
        """What was learned and changed, newest first (see ``Memory.log``)."""
        return await self.memory.log(limit)

    async def undo(self, id: str | None = None) -> LoggedChange:
        """Take back one change (see ``Memory.undo``)."""
        await self._quiet()
        done = await self.memory.undo(id)
        self.refresh()
        return done

    async def explain(self, what: str = "last") -> Explanation:
        """Why (see ``Memory.explain``)."""
        return await self.memory.explain(what)

    def refresh(self) -> None:
        """Read profile and summary again, after they were changed from outside."""
        self._known = None

    def use(self, *sources: Source) -> None:
        """Ask these sources of your own, too, from the next message on (see ``Source``).
        Raises ConfigError for two of one name, a dependency that is not there, a circle."""
        self._shared.use(*sources)
        if self._private:
            self.memory = self._shared.reading()

    def choose(self, recipe: str) -> None:
        """Use another recipe from the next message on. Raises ConfigError."""
        self.recipe = recipe_named(recipe)

    async def drain(self, progress: Callable[[str, int], None] | None = None) -> Mapping[str, int]:
        """Do all work that is due; nothing in a private chat."""
        await self._quiet()
        if self.private:
            return {"done": 0, "waiting": 0, "parked": 0}
        await self._end_silent()
        done = await self.memory.drain(progress)
        self._known = None if self._session is None else self._known
        return done

    def _later(self) -> None:
        """Work in the background when the user is silent for a moment."""
        if self._works and not self.private and (self._background is None or self._background.done()):
            self._background = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        await asyncio.sleep(_IDLE_SECONDS)
        await self.memory.drain()

    async def _quiet(self) -> None:
        """Stop background work while the user talks; a broken-off job stays queued."""
        task, self._background = self._background, None
        if task is not None and not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def close(self) -> None:
        """Stop background work and close the memory. An open session stays open; the
        next start ends it when it fell silent."""
        await self._quiet()
        await self.memory.close()


class BlockingAnswerStream:
    """An AnswerStream for ``for``."""

    def __init__(self, twin: BlockingAssistant, stream: AnswerStream) -> None:
        self._stream = stream
        self._pieces = twin.iterate(stream)

    @property
    def answer(self) -> Answer:
        """The whole reply. Raises InputError before the last piece was read."""
        return self._stream.answer

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def close(self) -> None:
        """Break the reply off; what was shown of it is kept."""
        self._pieces.close()


class BlockingAssistant(Twin[Assistant]):
    """An Assistant whose methods block (``Assistant.open(…).sync``)."""

    reply = blocking(Assistant.reply)
    greet = iterating(Assistant.greet)
    resume = blocking(Assistant.resume)
    end_session = blocking(Assistant.end_session)
    recall = blocking(Assistant.recall)
    forget = blocking(Assistant.forget)
    log = blocking(Assistant.log)
    undo = blocking(Assistant.undo)
    explain = blocking(Assistant.explain)
    drain = blocking(Assistant.drain)

    @property
    def memory(self) -> BlockingMemory:
        """The memory of the conversation, with methods that block."""

        async def there() -> Memory:
            return self.inner.memory

        return BlockingMemory(there, beside=self)

    @property
    def private(self) -> bool:
        """Return whether this conversation reads the memory and never writes it."""
        return self.inner.private

    @private.setter
    def private(self, value: bool) -> None:
        self.inner.private = value

    @property
    def session(self) -> str:
        """The id of the running session; empty when there is none."""
        return self.inner.session

    @property
    def recipe(self) -> Recipe:
        """The recipe of the replies."""
        return self.inner.recipe

    def stream(self, text: str) -> BlockingAnswerStream:
        """The reply piece by piece, and at its end the answer (see ``Assistant.stream``)."""
        return BlockingAnswerStream(self, self.inner.stream(text))

    def refresh(self) -> None:
        """Read profile and summary again, after they were changed from outside."""
        self.inner.refresh()

    def use(self, *sources: Source) -> None:
        """Ask these sources of your own, too (see ``Assistant.use``)."""
        self.inner.use(*sources)

    def choose(self, recipe: str) -> None:
        """Use another recipe from the next message on. Raises ConfigError."""
        self.inner.choose(recipe)
