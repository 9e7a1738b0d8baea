"""``/v1/chat/completions``."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nyima.domain.evidence import Usage
from nyima.errors import ModelUnreachable
from nyima.program import ProgramReply
from nyima.server.proxy.wires import (
    CUT,
    DialogueLines,
    Wire,
    WireStream,
    added,
    messages_of,
    role_of,
    text_in,
    usage_of,
)
from nyima.server.sse import DONE, SseEvent, rendered

__all__ = ["CHAT"]


class _ChatWire:
    """``/v1/chat/completions``."""

    path = "/chat/completions"
    drops: tuple[str, ...] = ()
    _FORMS = ("tools", "functions", "stop", "logprobs", "top_logprobs", "audio")

    def lines(self, body: Mapping[str, Any]) -> DialogueLines:
        return [(role_of(m), text_in(m.get("content"))) for m in messages_of(body.get("messages"), "messages")]

    def refers(self, body: Mapping[str, Any]) -> list[str]:
        return []

    def ids(self, answer: Mapping[str, Any]) -> set[str]:
        return set()

    def unsaid(self, answer: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        return answer

    def plain(self, body: Mapping[str, Any]) -> bool:
        form = body.get("response_format")
        other = isinstance(form, dict) and form.get("type") != "text"
        several = body.get("n") not in {None, 1} if isinstance(body.get("n"), int | None) else True
        spoken = body.get("modalities") not in (None, ["text"])
        return not (other or several or spoken or any(body.get(name) for name in self._FORMS))

    def with_system(self, body: Mapping[str, Any], text: str) -> dict[str, Any]:
        messages = list(body["messages"])
        if role_of(messages[0]) in {"system", "developer"}:
            messages[0] = {**messages[0], "content": added(messages[0].get("content"), text, "text")}
        else:
            messages.insert(0, {"role": "system", "content": text})
        return {**body, "messages": messages}

    def text(self, answer: Mapping[str, Any]) -> str:
        message = _first_choice(answer).get("message")
        return text_in(message.get("content")) if isinstance(message, dict) else ""

    def with_text(self, answer: Mapping[str, Any], text: str) -> dict[str, Any]:
        found: dict[str, Any] = copy.deepcopy(dict(answer))
        message = _first_choice(found).get("message")
        if isinstance(message, dict) and isinstance(message.get("content"), str):
            message["content"] = text
        elif isinstance(message, dict) and isinstance(message.get("content"), list):
            message["content"] = [{"type": "text", "text": text}]
        return found

    def usage(self, answer: Mapping[str, Any]) -> Usage:
        names = ("prompt_tokens", "completion_tokens", "prompt_tokens_details")
        return usage_of(answer.get("usage"), names)

    def stream(self, exchange: ProgramReply | None, body: Mapping[str, Any], *, notes: bool) -> WireStream:
        return _ChatStream(exchange if notes else None)


def _first_choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    choices = answer.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


@dataclass(slots=True)
class _ChatStream:
    """``exchange`` takes the notes out; without one every event goes on as it came."""

    exchange: ProgramReply | None
    complete: bool = False
    usage: Usage = Usage(calls=1)
    text: str = ""
    ids: set[str] = field(default_factory=set[str])
    _ended: bool = False
    _finished: bool = False
    _failed: bool = False

    def take(self, event: SseEvent) -> Iterator[bytes]:
        if event.done or event.data is None or event.data.get("error"):
            self.complete = event.done and not self._failed
            self._failed = self._failed or not (event.done or event.data is None)
            yield event.sent()
            return
        if event.data.get("usage"):
            self.usage = CHAT.usage(event.data)
        choice = _first_choice(event.data)
        delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else {}
        piece = delta.get("content") if isinstance(delta, dict) and not choice.get("index") else None
        self.text += piece if isinstance(piece, str) else ""
        self._finished = self._finished or choice.get("finish_reason") is not None
        if self.exchange is None or not choice:
            yield event.sent()
            return
        said = piece if isinstance(piece, str) else ""
        yield from self._shown(self.exchange, event.data, choice, dict(delta or {}), said)

    def end(self) -> Iterator[bytes]:
        if not (self.complete or self._failed):
            if not self._finished:
                raise ModelUnreachable(CUT)
            self.complete = True
            yield DONE

    def _shown(
        self,
        exchange: ProgramReply,
        data: Mapping[str, Any],
        choice: Mapping[str, Any],
        delta: dict[str, Any],
        piece: str,
    ) -> Iterator[bytes]:
        """The event without notes; the reply's end is told where they begin."""

        def made(delta: Mapping[str, Any], finish: str | None) -> bytes:
            return rendered({**data, "choices": [{**choice, "delta": dict(delta), "finish_reason": finish}]})

        visible = exchange.feed(piece) if piece else ""
        if self._ended:
            if data.get("usage"):
                yield rendered({**data, "choices": []})
            return
        finish = choice.get("finish_reason")
        if finish is not None:
            visible += exchange.finish()
        if piece or visible:
            delta["content"] = visible
        if visible or (finish is None and (set(delta) - {"content"} or not piece)):
            yield made(delta, None)
            delta = {}
        if exchange.noting or finish is not None:
            self._ended = True
            yield made({}, "stop" if exchange.noting else finish)


CHAT: Wire = _ChatWire()
