"""What the shapes of a chat request have in common: where their texts stand, how the memory
enters, how the notes leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from nyima.domain.evidence import Usage
from nyima.program import ProgramReply
from nyima.server.problems import Problem
from nyima.server.sse import SseEvent

__all__ = ["CUT", "DialogueLines", "Wire", "WireStream", "added", "messages_of", "role_of", "text_in", "usage_of"]

DialogueLines = list[tuple[str, str]]
_ROLES = {"user", "assistant", "system", "developer", "tool"}
_MOST_TOKENS = 1_000_000_000
CUT = "the upstream's answer broke off before its end"


class WireStream(Protocol):
    """Turns the upstream's events into the client's. ``complete`` once the reply's end was
    seen; ``usage`` when it was told; ``text`` is all that the model wrote; ``ids`` are those
    of the response and its items."""

    complete: bool
    usage: Usage
    text: str
    ids: set[str]

    def take(self, event: SseEvent) -> Iterator[bytes]:
        """What the client gets for an event."""
        ...

    def end(self) -> Iterator[bytes]:
        """What it gets when the upstream has nothing more to say. Raises ModelUnreachable
        where the reply's end was not seen."""
        ...


class Wire(Protocol):
    """One API's shapes. ``drops`` are fields that stay here."""

    path: str
    drops: tuple[str, ...]

    def lines(self, body: Mapping[str, Any]) -> DialogueLines:
        """The dialogue as (role, text). Raises Problem 400 for what is none."""
        ...

    def refers(self, body: Mapping[str, Any]) -> list[str]:
        """The ids of earlier responses and items that the upstream is to look up."""
        ...

    def ids(self, answer: Mapping[str, Any]) -> set[str]:
        """The ids by which later requests may refer to an answer."""
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

    def unsaid(self, answer: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        """An answer that repeats the request's instructions, with those of the program."""
        ...

    def stream(self, exchange: ProgramReply | None, body: Mapping[str, Any], *, notes: bool) -> WireStream:
        """For an answer that is streamed; without ``notes`` every event goes on as it came,
        but for the instructions, which are those of the program's ``body``."""
        ...


def text_in(content: Any) -> str:
    """The text of a message's content: a text, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list) else ()
    texts = [p["text"] for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str)]
    return "\n".join(texts)


def messages_of(found: Any, name: str) -> list[dict[str, Any]]:
    """The messages of a request. Raises Problem 400 for what is no list of some."""
    if not isinstance(found, list) or not found or not all(isinstance(m, dict) for m in found):
        raise Problem(400, f"{name} must be a list of one message or more", param=name)
    return found


def role_of(message: Mapping[str, Any]) -> str:
    """Who says a message; empty for what is no role."""
    role = message.get("role")
    return role if isinstance(role, str) and role in _ROLES else ""


def added(content: Any, text: str, kind: str) -> Any:
    """Content with a text at its end; ``kind`` is that of the API's text parts."""
    if isinstance(content, list):
        return [*content, {"type": kind, "text": text}]
    return f"{content}\n\n{text}" if content else text


def usage_of(usage: Any, names: tuple[str, str, str]) -> Usage:
    """What an answer took, by the names that its API gives the counts; nothing beyond belief."""
    if not isinstance(usage, dict):
        return Usage(calls=1)
    prompt, completion, details = (usage.get(n) for n in names)
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    prompt, completion, cached = (
        min(max(0, v), _MOST_TOKENS) if isinstance(v, int) else 0 for v in (prompt, completion, cached)
    )
    return Usage(1, prompt, cached, completion)
