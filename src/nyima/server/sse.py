"""Server-sent events, as OpenAI's API sends them."""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from nyima.errors import ModelUnreachable

__all__ = ["DONE", "SseEvent", "dumped", "events", "parsed", "rendered"]

DONE = b"data: [DONE]\n\n"
_LONGEST = 8_000_000


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event. ``data`` is its JSON object; None for ``[DONE]`` and for what is none. A
    ``comment`` says nothing: servers send it so that nobody takes the connection for dead."""

    name: str
    text: str
    data: dict[str, Any] | None
    comment: bool = False

    @property
    def done(self) -> bool:
        """Whether it ends the stream."""
        return self.text.strip() == "[DONE]"

    def sent(self) -> bytes:
        """The event as it came."""
        if self.comment:
            return f"{self.text}\n\n".encode("utf-8", "replace")
        head = f"event: {self.name}\n" if self.name else ""
        lines = "".join(f"data: {line}\n" for line in self.text.split("\n"))
        return f"{head}{lines}\n".encode("utf-8", "replace")


def parsed(raw: str | bytes) -> Any:
    """JSON that somebody else wrote. Raises ValueError, also where it is nested too deeply."""
    try:
        return json.loads(raw)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def dumped(data: Any) -> bytes:
    """A value as JSON. Half a character stays the escape that it came as."""
    try:
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(data, separators=(",", ":")).encode()


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[SseEvent]:
    """The events in a stream of bytes, wherever it is cut. What comes after the last blank
    line is no event. Raises ModelUnreachable for an event without an end."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    rest, name, lines = "", "", list[str]()
    async for piece in pieces:
        rest += decode(piece)
        if len(rest) > _LONGEST:
            raise ModelUnreachable(f"the upstream sent an event of more than {_LONGEST:,} characters: ask for less")
        held = "\r" if rest.endswith("\r") else ""
        *whole, rest = rest[: len(rest) - len(held)].replace("\r\n", "\n").replace("\r", "\n").split("\n")
        rest += held
        for line in whole:
            if not line:
                if lines:
                    yield _event(name, "\n".join(lines))
                name, lines = "", []
            elif line.startswith(":") and not lines:
                yield SseEvent("", line, None, comment=True)
            elif line.startswith("data:"):
                lines.append(line[5:].removeprefix(" "))
            elif line.startswith("event:"):
                name = line[6:].strip()


def _event(name: str, text: str) -> SseEvent:
    try:
        data = parsed(text)
    except ValueError:
        data = None
    return SseEvent(name, text, data if isinstance(data, dict) else None)


def rendered(data: Mapping[str, Any], name: str = "") -> bytes:
    """An event as bytes."""
    head = f"event: {name}\n" if name else ""
    return head.encode("utf-8", "replace") + b"data: " + dumped(data) + b"\n\n"
