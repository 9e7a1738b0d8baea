"""``/v1/responses``."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
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
from nyima.server.sse import SseEvent, rendered

__all__ = ["RESPONSES"]


class _ResponsesWire:
    """``/v1/responses``."""

    path = "/responses"
    drops: tuple[str, ...] = ("conversation",)  # made elsewhere, if at all, so that nobody knows whose it is

    def lines(self, body: Mapping[str, Any]) -> DialogueLines:
        given = body.get("input")
        first: DialogueLines = [("system", body["instructions"])] if isinstance(body.get("instructions"), str) else []
        if isinstance(given, str):
            return [*first, ("user", given)]
        if given is None and (body.get("prompt") or body.get("previous_response_id")):
            return first
        return [*first, *(_line(item) for item in messages_of(given, "input"))]

    def refers(self, body: Mapping[str, Any]) -> list[str]:
        earlier, given = body.get("previous_response_id"), body.get("input")
        items: Sequence[Any] = given if isinstance(given, list) else ()
        found = [i.get("id") for i in items if isinstance(i, dict) and _is_reference(i)]
        return [id for id in (earlier, *found) if isinstance(id, str)]

    def ids(self, answer: Mapping[str, Any]) -> set[str]:
        output = answer.get("output")
        items = [i for i in output if isinstance(i, dict)] if isinstance(output, list) else []
        return {i["id"] for i in (answer, *items) if isinstance(i.get("id"), str)}

    def unsaid(self, answer: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        return {**answer, "instructions": body.get("instructions")} if answer.get("instructions") else answer

    def plain(self, body: Mapping[str, Any]) -> bool:
        form = body.get("text")
        shape = form.get("format") if isinstance(form, dict) else None
        other = isinstance(shape, dict) and shape.get("type") != "text"
        return not (other or body.get("tools") or body.get("top_logprobs") or body.get("background"))

    def with_system(self, body: Mapping[str, Any], text: str) -> dict[str, Any]:
        return {**body, "instructions": added(body.get("instructions"), text, "input_text")}

    def text(self, answer: Mapping[str, Any]) -> str:
        return "\n".join(part["text"] for part in _texts(answer))

    def with_text(self, answer: Mapping[str, Any], text: str) -> dict[str, Any]:
        found: dict[str, Any] = copy.deepcopy(dict(answer))
        left = text
        for part in _texts(found):  # whole, until the one in which the notes begin
            whole = left.startswith(part["text"])
            part["text"], left = (part["text"], left[len(part["text"]) :].removeprefix("\n")) if whole else (left, "")
        if isinstance(found.get("output_text"), str):
            found["output_text"] = text
        return found

    def usage(self, answer: Mapping[str, Any]) -> Usage:
        return usage_of(answer.get("usage"), ("input_tokens", "output_tokens", "input_tokens_details"))

    def stream(self, exchange: ProgramReply | None, body: Mapping[str, Any], *, notes: bool) -> WireStream:
        return _ResponsesStream(exchange if notes else None, body)


def _line(item: Mapping[str, Any]) -> tuple[str, str]:
    """What an item of the input says; calls of tools and their results are the tools'."""
    kind = item.get("type", "message")
    if kind == "message":
        return role_of(item), text_in(item.get("content"))
    tool = isinstance(kind, str) and kind.endswith(("_call", "_call_output"))
    return ("tool", text_in(item.get("output"))) if tool else ("", "")


def _is_reference(item: Mapping[str, Any]) -> bool:
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "role" not in item)


def _texts(answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The text parts of a response's messages."""
    output = answer.get("output")
    for item in output if isinstance(output, list) else ():
        content = item.get("content") if isinstance(item, dict) else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == "output_text" and isinstance(part.get("text"), str):
                yield part


_Place = tuple[int, int]


@dataclass(slots=True)
class _ResponsesStream:
    """``exchange`` takes the notes out; without one every event goes on as it came."""

    exchange: ProgramReply | None
    body: Mapping[str, Any]
    complete: bool = False
    usage: Usage = Usage(calls=1)
    text: str = ""
    ids: set[str] = field(default_factory=set[str])
    _shown: dict[_Place, str] = field(default_factory=dict[_Place, str])
    _number: int = 0
    _failed: bool = False
    _last: _Place = (-1, -1)

    def take(self, event: SseEvent) -> Iterator[bytes]:
        data = event.data
        if data is None:
            yield event.sent()
            return
        kind = str(data.get("type") or event.name)
        self._heard(kind, data)
        repeats = isinstance(data.get("response"), dict) and data["response"].get("instructions")
        if repeats:
            data = {**data, "response": RESPONSES.unsaid(data["response"], self.body)}
        piece = data.get("delta") if kind == "response.output_text.delta" else None
        if self.exchange is None:
            self.text += self._between(_place(data)) + piece if isinstance(piece, str) else ""
            yield self._sent(data, event.name, number=False) if repeats else event.sent()
            return
        if isinstance(piece, str):
            data = {**data, "delta": self._fed(self.exchange, piece, _place(data))}
            if not data["delta"]:
                return
        else:
            if kind == "response.output_text.done" and (rest := self._seen(self.exchange.finish(), _place(data))):
                yield self._sent({**data, "type": "response.output_text.delta", "delta": rest}, "", drop="text")
            data = self._clean(data)
        yield self._sent(data, event.name)

    def _heard(self, kind: str, data: Mapping[str, Any]) -> None:
        """What an event says about the whole answer."""
        whole, item = data.get("response"), data.get("item")
        self.ids |= RESPONSES.ids({"output": [item]}) | (RESPONSES.ids(whole) if isinstance(whole, dict) else set())
        self._failed = self._failed or kind in {"error", "response.failed"}
        if kind in {"response.completed", "response.incomplete"} and isinstance(whole, dict):
            self.complete = not self._failed
            self.usage = RESPONSES.usage(whole)

    def _between(self, place: _Place) -> str:
        """What stands between two parts of a reply."""
        first, self._last = self._last == (-1, -1) or self._last == place, place
        return "" if first else "\n"

    def _fed(self, exchange: ProgramReply, piece: str, place: _Place) -> str:
        """What of a piece is shown; what stands between the parts is not."""
        between = self._between(place)
        self.text += between + piece
        if between:
            exchange.feed(between)
        seen = exchange.feed(piece)
        return self._seen(seen if place in self._shown else seen.lstrip("\n"), place)

    def end(self) -> Iterator[bytes]:
        if not (self.complete or self._failed):
            raise ModelUnreachable(CUT)
        yield from ()

    def _seen(self, piece: str, place: _Place) -> str:
        self._shown[place] = self._shown.get(place, "") + piece
        return piece

    def _sent(self, data: Mapping[str, Any], name: str, drop: str = "", *, number: bool = True) -> bytes:
        """An event, with its number in the stream that the client sees."""
        kept = {k: v for k, v in data.items() if k != drop}
        if number and "sequence_number" in kept:
            kept["sequence_number"] = self._number
            self._number += 1
        return rendered(kept, str(kept.get("type") or name))

    def _clean(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """An event whose texts are what was shown."""
        found: dict[str, Any] = copy.deepcopy(dict(data))
        output, content = _place(found)
        if found.get("type") == "response.output_text.done":
            found["text"] = self._shown.get((output, content), "")
        part, item, whole = found.get("part"), found.get("item"), found.get("response")
        if isinstance(part, dict) and part.get("type") == "output_text" and part.get("text"):
            part["text"] = self._shown.get((output, content), "")
        if isinstance(item, dict):
            self._clean_item(item, output)
        items = whole.get("output") if isinstance(whole, dict) else None
        for number, each in enumerate(items if isinstance(items, list) else ()):
            self._clean_item(each, number)
        return found

    def _clean_item(self, item: Any, output: int) -> None:
        content = item.get("content") if isinstance(item, dict) else None
        for number, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict) and part.get("type") == "output_text" and part.get("text"):
                part["text"] = self._shown.get((output, number), "")


def _place(data: Mapping[str, Any]) -> _Place:
    output, content = data.get("output_index"), data.get("content_index")
    return output if isinstance(output, int) else 0, content if isinstance(content, int) else 0


RESPONSES: Wire = _ResponsesWire()
