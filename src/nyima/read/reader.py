"""Readers: a chat model with tools and notes, and a reader whose drafts a critic reviews."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Notes, Recall, Usage
from nyima.domain.mechanism import Mechanism
from nyima.domain.ports import Completion, Message
from nyima.domain.roles import Reader, Reply, ReplyRequest
from nyima.errors import ModelGarbled, NoModel
from nyima.prompts.notes import ReplyStream
from nyima.prompts.prompt import version
from nyima.read.calls import Caller
from nyima.read.kit import Kit
from nyima.read.prompting import CALL_OR_TEXT, GRAMMAR, reply_schema
from nyima.read.refine import Refiner

__all__ = ["MECHANISM", "ModelReader", "ReviewedReader", "whole"]

_MOST_TOOL_CALLS = 3


async def whole(reader: Reader, scope: Scope, request: ReplyRequest) -> Reply:
    """The reply without its pieces."""
    async for piece in reader.read(scope, request):
        if isinstance(piece, Reply):
            return piece
    return Reply("", request.recall)


@dataclass(frozen=True, slots=True)
class ModelReader:
    """Asks a chat model. While it asks for a tool, it gets the tool's result and is asked again."""

    caller: Caller

    async def read(self, scope: Scope, request: ReplyRequest) -> AsyncIterator[str | Reply]:
        """The reply. Raises ModelGarbled when the model says nothing twice."""
        model, silent, usage = self.caller.model, False, Usage()
        messages = list(request.messages(request.recall))
        for turn in range(_MOST_TOOL_CALLS + 1):
            tools = request.use is not None and turn < _MOST_TOOL_CALLS
            options: dict[str, Any] = {
                "max_tokens": 320 if model.grammars else 1_500,
                "temperature": 0.0,
                "grammar": _grammar(notes=request.notes, tools=tools) if model.grammars else None,
                "schema": reply_schema() if request.notes and not model.grammars and request.use is None else None,
                "lane": "chat",
            }
            stream, finish = ReplyStream(), ""
            async for piece in self.caller.stream(scope, version("reply"), messages, **options):
                if isinstance(piece, Completion):
                    usage, finish = usage + piece.usage, piece.finish
                    visible = stream.finish()
                else:
                    visible = stream.feed(piece)
                if visible:
                    yield visible
            wish = stream.call()
            if wish is not None and request.use is not None and not tools:
                break  # nobody would read the result
            if wish is not None:
                result = await request.use(*wish) if request.use else f"there is no tool {wish[0]!r}"
                messages += [Message("assistant", stream.raw.strip()), Message("user", f"[tool result] {result}")]
            elif stream.reply():
                notes = stream.notes() if finish != "cut" else Notes()
                yield Reply(stream.reply(), request.recall, notes, usage)
                return
            elif silent:
                raise ModelGarbled("the model gave no answer, twice: say it in other words, or use a larger model")
            else:
                silent = True
        yield Reply("", request.recall, usage=usage)


def _grammar(*, notes: bool, tools: bool) -> str | None:
    """What binds a reply: its form with notes, or a tool's call beside plain text; nothing for text alone."""
    return GRAMMAR(tools=tools) if notes else CALL_OR_TEXT if tools else None


@dataclass(frozen=True, slots=True)
class ReviewedReader:
    """A reader whose drafts are reviewed, and written again when they do not agree with what they
    rest on, before any of it is shown (Wang et al. 2024, section 4.3)."""

    reader: Reader
    refiner: Refiner

    async def read(self, scope: Scope, request: ReplyRequest) -> AsyncIterator[str | Reply]:
        """The best draft. Where nothing was kept there is nothing to agree with: the first one."""
        if not request.recall.kept:
            async for piece in self.reader.read(scope, request):
                yield piece
            return
        first = await whole(self.reader, scope, request)
        usage = [first.usage]

        async def again(recall: Recall) -> str:
            other = await whole(self.reader, scope, replace(request, recall=recall))
            usage.append(other.usage)
            return other.text

        text, recall = await self.refiner.refine(scope, request.recall, first.text, again)
        if text:
            yield text
        yield replace(first, text=text, recall=recall, usage=sum(usage, Usage()))


def _model(kit: Kit) -> Reader:
    if kit.caller is None:
        raise NoModel
    return ModelReader(kit.caller)


MECHANISM = Mechanism("reader", "the chat model writes the reply", readers={"model": _model})
