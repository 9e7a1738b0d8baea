"""The two shapes of a chat request, chat completions and responses: where their texts
stand, how the memory enters, how the notes leave."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nyima.domain.evidence import Usage
from nyima.exchange import Exchange
from nyima.interfaces.server.problems import Problem
from nyima.interfaces.server.sse import SseEvent, rendered

__all__ = ["CHAT", "RESPONSES", "Stream", "Wire", "text_in"]

Lines = list[tuple[str, str]]
_ROLES = {"user", "assistant", "system", "developer", "tool"}


class Stream(Protocol):
    """Turns the upstream's events into the client's. ``complete`` once the reply's end was
    seen; ``usage`` when it was told; ``text`` is all that the model wrote."""

    complete: bool
    usage: Usage
    text: str
    id: str

    def take(self, event: SseEvent) -> Iterator[bytes]:
        """What the client gets for an event."""
        ...


class Wire(Protocol):
    """One API's shapes."""

    path: str

    def lines(self, body: Mapping[str, Any]) -> Lines:
        """The dialogue as (role, text). Raises Problem 400 for what is none."""
        ...

    def plain(self, body: Mapping[str, Any]) -> bool:
        """Whether memory and notes may enter: no tools, no form, one answer."""
        ...

    def with_system(self, body: Mapping[str, Any], text: str) -> dict[str, Any]:
        """The request with a text added to what the system says."""
        ...

    def text(self, answer: Mapping[str, Any]) -> str:
        """The reply in a whole answer."""
        ...

    def with_text(self, answer: Mapping[str, Any], text: str) -> dict[str, Any]:
        """A whole answer with another reply."""
        ...

    def usage(self, answer: Mapping[str, Any]) -> Usage:
        """What an answer took."""
        ...

    def stream(self, exchange: Exchange, *, notes: bool) -> Stream:
        """For an answer that is streamed; without ``notes`` every event goes on as it came."""
        ...


def text_in(content: Any) -> str:
    """The text of a message's content: a text, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list) else ()
    texts = [p["text"] for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str)]
    return "\n".join(texts)


def _messages(found: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not found or not all(isinstance(m, dict) for m in found):
        raise Problem(400, f"{name} must be a list of one message or more", param=name)
    return found


def _role(message: Mapping[str, Any]) -> str:
    role = message.get("role")
    return role if isinstance(role, str) and role in _ROLES else ""


def _added(content: Any, text: str, kind: str) -> Any:
    """Content with a text at its end."""
    if isinstance(content, list):
        return [*content, {"type": kind, "text": text}]
    return f"{content}\n\n{text}" if content else text


def _tokens(usage: Any, names: tuple[str, str, str]) -> Usage:
    if not isinstance(usage, dict):
        return Usage(calls=1)
    prompt, completion, details = (usage.get(n) for n in names)
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    prompt, completion, cached = (max(0, v) if isinstance(v, int) else 0 for v in (prompt, completion, cached))
    return Usage(1, prompt, cached, completion)


class _ChatWire:
    """``/v1/chat/completions``."""

    path = "/chat/completions"
    _FORMS = ("tools", "functions", "stop", "logprobs", "top_logprobs", "audio")

    def lines(self, body: Mapping[str, Any]) -> Lines:
        return [(_role(m), text_in(m.get("content"))) for m in _messages(body.get("messages"), "messages")]

    def plain(self, body: Mapping[str, Any]) -> bool:
        form = body.get("response_format")
        other = isinstance(form, dict) and form.get("type") != "text"
        several = body.get("n") not in {None, 1} if isinstance(body.get("n"), int | None) else True
        spoken = body.get("modalities") not in (None, ["text"])
        return not (other or several or spoken or any(body.get(name) for name in self._FORMS))

    def with_system(self, body: Mapping[str, Any], text: str) -> dict[str, Any]:
        messages = list(body["messages"])
        if _role(messages[0]) in {"system", "developer"}:
            messages[0] = {**messages[0], "content": _added(messages[0].get("content"), text, "text")}
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
        return _tokens(answer.get("usage"), names)

    def stream(self, exchange: Exchange, *, notes: bool) -> Stream:
        return _ChatStream(exchange, notes)


def _first_choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    choices = answer.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


@dataclass(slots=True)
class _ChatStream:
    exchange: Exchange
    notes: bool
    complete: bool = False
    usage: Usage = Usage(calls=1)
    text: str = ""
    id: str = ""
    _ended: bool = False

    def take(self, event: SseEvent) -> Iterator[bytes]:
        if event.done:
            self.complete = True
            yield f"data: {event.text}\n\n".encode()
            return
        if event.data is None or "error" in event.data:
            yield f"data: {event.text}\n\n".encode("utf-8", "replace")
            return
        self.id = str(event.data.get("id") or self.id)
        if event.data.get("usage"):
            self.usage = CHAT.usage(event.data)
        choice = _first_choice(event.data)
        delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else {}
        piece = delta.get("content") if isinstance(delta, dict) and not choice.get("index") else None
        self.text += piece if isinstance(piece, str) else ""
        if not self.notes or not choice:
            yield rendered(event.data)
            return
        yield from self._shown(event.data, choice, dict(delta or {}), piece if isinstance(piece, str) else "")

    def _shown(
        self, data: Mapping[str, Any], choice: Mapping[str, Any], delta: dict[str, Any], piece: str
    ) -> Iterator[bytes]:
        """The event without notes; the reply's end is told where they begin."""

        def made(delta: Mapping[str, Any], finish: str | None) -> bytes:
            return rendered({**data, "choices": [{**choice, "delta": dict(delta), "finish_reason": finish}]})

        visible = self.exchange.feed(piece) if piece else ""
        if self._ended:
            return
        finish = choice.get("finish_reason")
        if finish is not None:
            visible += self.exchange.finish()
        if piece or visible:
            delta["content"] = visible
        if visible or (finish is None and (set(delta) - {"content"} or not piece)):
            yield made(delta, None)
            delta = {}
        if self.exchange.noting or finish is not None:
            self._ended = True
            yield made({}, "stop" if self.exchange.noting else finish)


class _ResponsesWire:
    """``/v1/responses``."""

    path = "/responses"

    def lines(self, body: Mapping[str, Any]) -> Lines:
        given = body.get("input")
        first: Lines = [("system", body["instructions"])] if isinstance(body.get("instructions"), str) else []
        if isinstance(given, str):
            return [*first, ("user", given)]
        items = _messages(given, "input")
        return [
            *first,
            *((_role(m), text_in(m.get("content"))) for m in items if m.get("type", "message") == "message"),
        ]

    def plain(self, body: Mapping[str, Any]) -> bool:
        form = body.get("text")
        shape = form.get("format") if isinstance(form, dict) else None
        other = isinstance(shape, dict) and shape.get("type") != "text"
        return not (other or body.get("tools") or body.get("top_logprobs") or body.get("background"))

    def with_system(self, body: Mapping[str, Any], text: str) -> dict[str, Any]:
        return {**body, "instructions": _added(body.get("instructions"), text, "input_text")}

    def text(self, answer: Mapping[str, Any]) -> str:
        return "\n".join(part["text"] for part in _texts(answer))

    def with_text(self, answer: Mapping[str, Any], text: str) -> dict[str, Any]:
        found: dict[str, Any] = copy.deepcopy(dict(answer))
        for number, part in enumerate(_texts(found)):
            part["text"] = "" if number else text
        if isinstance(found.get("output_text"), str):
            found["output_text"] = text
        return found

    def usage(self, answer: Mapping[str, Any]) -> Usage:
        return _tokens(answer.get("usage"), ("input_tokens", "output_tokens", "input_tokens_details"))

    def stream(self, exchange: Exchange, *, notes: bool) -> Stream:
        return _ResponsesStream(exchange, notes)


def _texts(answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The text parts of a response's messages."""
    output = answer.get("output")
    for item in output if isinstance(output, list) else ():
        content = item.get("content") if isinstance(item, dict) else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == "output_text" and isinstance(part.get("text"), str):
                yield part


@dataclass(slots=True)
class _ResponsesStream:
    exchange: Exchange
    notes: bool
    complete: bool = False
    usage: Usage = Usage(calls=1)
    text: str = ""
    id: str = ""
    _shown: str = ""
    _number: int = field(default=0)

    def take(self, event: SseEvent) -> Iterator[bytes]:
        data = event.data
        if data is None:
            yield f"data: {event.text}\n\n".encode("utf-8", "replace")
            return
        kind = str(data.get("type") or event.name)
        whole = data.get("response")
        if isinstance(whole, dict):
            self.id = str(whole.get("id") or self.id)
        if kind == "response.completed" and isinstance(whole, dict):
            self.complete = True
            self.usage = RESPONSES.usage(whole)
        if kind == "response.output_text.delta" and isinstance(data.get("delta"), str):
            self.text += data["delta"]
            if self.notes:
                data = {**data, "delta": self._seen(self.exchange.feed(data["delta"]))}
                if not data["delta"]:
                    return
        elif self.notes:
            if kind == "response.output_text.done" and (rest := self._seen(self.exchange.finish())):
                yield self._sent({**data, "type": "response.output_text.delta", "delta": rest}, "", drop="text")
            data = self._clean(data)
        yield self._sent(data, event.name)

    def _seen(self, piece: str) -> str:
        self._shown += piece
        return piece

    def _sent(self, data: Mapping[str, Any], name: str, drop: str = "") -> bytes:
        """An event with its number in the stream that the client sees."""
        kept = {k: v for k, v in data.items() if k != drop}
        if "sequence_number" in kept:
            kept["sequence_number"] = self._number
            self._number += 1
        return rendered(kept, str(kept.get("type") or name))

    def _clean(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """An event whose texts are what was shown."""
        found: dict[str, Any] = copy.deepcopy(dict(data))
        if found.get("type") == "response.output_text.done":
            found["text"] = self._shown
        part = found.get("part")
        if isinstance(part, dict) and part.get("type") == "output_text" and part.get("text"):
            part["text"] = self._shown
        items = [found["item"]] if isinstance(found.get("item"), dict) else []
        whole = found.get("response")
        outputs: list[Mapping[str, Any]] = [{"output": items}, *([whole] if isinstance(whole, dict) else [])]
        for part in (p for output in outputs for p in _texts(output)):
            part["text"] = self._shown if part["text"] else ""
        return found


CHAT: Wire = _ChatWire()
RESPONSES: Wire = _ResponsesWire()
