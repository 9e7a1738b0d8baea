"""From a message to a reply: what it rests on, the call, tools in between, drafts that a
critic reviews, and what is kept of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nyima.app.services import Services
from nyima.app.telemetry import span
from nyima.app.tools import Tool, use_tool
from nyima.domain.conversation import Origin, Session, Turn
from nyima.domain.evidence import Answer, Evidence, Notes, Query, Recall, Usage
from nyima.domain.ports import Completion, Lines, Message
from nyima.domain.recipe import Recipe
from nyima.domain.records import ProfileFact
from nyima.errors import ModelError, ModelGarbled, StoreFull, StoreReadOnly
from nyima.language.intent import is_goodbye
from nyima.mechanisms.pins import pinned
from nyima.mechanisms.summaries import standing
from nyima.memory import Memory
from nyima.prompts.notes import ReplyStream
from nyima.prompts.prompt import version
from nyima.read.prompting import GRAMMAR, Known, reply_schema
from nyima.read.prompting import shown as shown_evidence
from nyima.read.trace import trace_event
from nyima.write.desk import Desk
from nyima.write.jobs import settled

__all__ = ["Draft", "Replies", "concluded", "known_of", "recalled"]

_MOST_TOOL_CALLS = 3


@dataclass(slots=True)
class Draft:
    """What a reply's calls gave. ``text`` is what is said when it is not the stream's own;
    ``recall`` what it was written from."""

    recall: Recall
    stream: ReplyStream = field(default_factory=ReplyStream)
    usage: Usage = Usage()
    first: float = 0.0
    finish: str = ""
    text: str | None = None
    started: float = field(default_factory=time.perf_counter)

    def reply(self) -> str:
        """What is said to the user."""
        return self.stream.reply() if self.text is None else self.text


@dataclass(frozen=True, slots=True)
class Replies:
    """Makes replies with the parts of a memory. ``notes``: the call also takes notes."""

    parts: Services
    recipe: Recipe
    tools: Mapping[str, Tool]
    notes: bool

    async def respond(
        self, draft: Draft, prompt: Callable[[Recall], list[Message]], lines: Lines, started: float
    ) -> AsyncIterator[str]:
        """The reply piece by piece; ``prompt`` makes the messages for what was recalled.

        With a critic, a draft that rests on something is reviewed, and written again when it
        does not agree, before any of it is shown."""
        refiner = self.parts.refiner(self.recipe) if draft.recall.kept else None
        if refiner is None:
            async for piece in self._written(draft, prompt, lines, started):
                yield piece
            return
        draft.text = ""  # until something is shown
        first = Draft(draft.recall)
        said = "".join([piece async for piece in self._written(first, prompt, lines, started)])
        draft.stream, draft.usage, draft.finish = first.stream, first.usage, first.finish

        async def again(recall: Recall) -> str:
            other = Draft(recall)
            text = "".join([piece async for piece in self._written(other, prompt, lines, started)])
            draft.usage += other.usage
            return text

        draft.text, draft.recall = await refiner.refine(self.parts.scope, draft.recall, said, again)
        draft.first = time.perf_counter() - started
        yield draft.text

    async def _written(
        self, draft: Draft, prompt: Callable[[Recall], list[Message]], lines: Lines, started: float
    ) -> AsyncIterator[str]:
        reader = self.parts.reader(self.recipe)
        if reader is None:
            async for piece in self.calls(prompt(draft.recall), draft, started):
                yield piece
            return
        draft.text, draft.finish = "", "trained"
        async for piece in reader.read(lines, draft.recall.plan, draft.recall.kept):
            draft.first = draft.first or time.perf_counter() - started
            draft.text += piece
            yield piece

    async def calls(self, messages: list[Message], draft: Draft, started: float) -> AsyncIterator[str]:
        """The reply call; while the model asks for a tool, the tool's result and another."""
        caller = self.parts.caller(self.parts.chat)
        assert caller is not None
        model, silent = caller.model, False
        for turn in range(_MOST_TOOL_CALLS + 1):
            tools = bool(self.tools) and turn < _MOST_TOOL_CALLS
            options: dict[str, Any] = {
                "max_tokens": 320 if model.grammars else 1_500,
                "temperature": 0.0,
                "grammar": GRAMMAR(tools=tools) if self.notes and model.grammars else None,
                "schema": reply_schema() if self.notes and not model.grammars and not self.tools else None,
                "lane": "chat",
            }
            async for piece in caller.stream(self.parts.scope, version("reply"), messages, **options):
                if isinstance(piece, Completion):
                    draft.usage, draft.finish = draft.usage + piece.usage, piece.finish
                    visible = draft.stream.finish()
                else:
                    visible = draft.stream.feed(piece)
                if visible:
                    draft.first = draft.first or time.perf_counter() - started
                    yield visible
            wish = draft.stream.call()
            if wish is None and draft.stream.reply():
                return
            if wish is None:
                if silent:
                    raise ModelGarbled("the model gave no answer, twice: say it in other words, or use a larger model")
                silent, draft.stream = True, ReplyStream()
                continue
            result = await use_tool(self.tools, *wish)
            raw = draft.stream.raw.strip()
            messages = [*messages, Message("assistant", raw), Message("user", f"[tool result] {result}")]
            draft.stream = ReplyStream()


async def known_of(memory: Memory) -> Known:
    """Profile, pinned records and running memory, as the system message says them."""
    parts = memory.parts
    texts = await standing(Desk(parts.store, None, parts.clock), parts.scope)
    profile = await memory.profile()
    kept = [r for r in await pinned(memory) if not isinstance(r, ProfileFact)]
    return Known(profile, (*((r.id, " ".join(r.text.split())) for r in kept), *((t.id, t.body) for t in texts)))


async def recalled(memory: Memory, recipe: Recipe, query: Query, known: Known, visible: set[str]) -> Recall:
    """What the memory has on a message, without what the system message shows whole or the
    dialogue (the turns in ``visible``) shows anyway."""
    parts = memory.parts
    if not recipe.sources or is_goodbye(query.text):
        return Recall(query, planner="rules")
    with span(parts, "recall") as spanned:
        if not parts.private:
            with contextlib.suppress(
                ModelError, StoreFull, StoreReadOnly
            ):  # then the recall is by words, and its trace says so
                await memory.ingest.index(memory.scope)
        recaller = parts.recaller(recipe, learned=await parts.learned())
        found = await recaller.recall(memory.scope, query, recipe.evidence)
        spanned.found(len(found.kept), query.text)
    there = set(known.fitting(recipe).refs)

    def new(piece: Evidence) -> bool:
        return piece.record.id not in there and not visible & set(piece.record.provenance.turns[:1])

    return replace(found, found=tuple(filter(new, found.found)), kept=tuple(filter(new, found.kept)))


async def concluded(
    memory: Memory, recipe: Recipe, session: Session, turns: tuple[Turn, Turn], draft: Draft, *,
    complete: bool, known: Known,
) -> Answer:  # fmt: skip
    """Store a reply (``turns`` are the user's and the reply's) with its notes and its trace;
    nothing of it in a private chat. One that broke off is marked as not complete."""
    said, reply = turns
    noted = draft.stream.notes() if complete and draft.finish not in {"cut", "trained"} else Notes()
    quoted = [e.text for e in draft.recall.kept if e.record.provenance.origin is not Origin.USER]
    noted = settled(said, noted, quoted) if noted.complete else noted
    seconds = {"first": round(draft.first, 3), "total": round(time.perf_counter() - draft.started, 3)}
    cited = tuple(e.record.id for e in shown_evidence(draft.recall.kept, recipe.evidence.tokens))
    told = replace(draft.recall, prompts=(version("reply"), *draft.recall.prompts), shown=cited)
    answer = Answer(reply.text, reply.id, told, noted, draft.usage, seconds)
    if not memory.parts.private and (reply.text or complete):
        trace = trace_event(told, memory.clock.now(), answer, said.id, known.refs, complete=complete)
        await asyncio.shield(memory.ingest.answered(memory.scope, session, said, reply, noted, recipe, trace))
    return answer
