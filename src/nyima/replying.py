"""From a recall to a reply: the call, tools in between, drafts that a critic reviews."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nyima.domain.evidence import Recall, Usage
from nyima.domain.ports import Completion, Lines, Message
from nyima.engines.notes import ReplyStream
from nyima.engines.prompts import version
from nyima.engines.reading import GRAMMAR, reply_schema
from nyima.engines.recipes import Recipe
from nyima.errors import ModelGarbled
from nyima.parts import Parts
from nyima.tools import Tool, use_tool

__all__ = ["Draft", "Replies"]

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

    def reply(self) -> str:
        """What is said to the user."""
        return self.stream.reply() if self.text is None else self.text


@dataclass(frozen=True, slots=True)
class Replies:
    """Makes replies with the parts of a memory. ``notes``: the call also takes notes."""

    parts: Parts
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
