"""A clock, an embedder and a chat model for tests."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from nyima.domain.evidence import Usage
from nyima.domain.ports import Completion, Message, Vector
from nyima.errors import NyimaError
from nyima.language.words import content_words, tokens

__all__ = ["FixedClock", "HashEmbedder", "Request", "ScriptedModel"]


@dataclass(slots=True)
class FixedClock:
    """A clock that moves only when it is told to."""

    at: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        """The time it was set to."""
        return self.at

    def forward(self, **by: float) -> datetime:
        """Move on, with the arguments of ``timedelta``."""
        self.at += timedelta(**by)
        return self.at


@dataclass(slots=True)
class HashEmbedder:
    """Vectors from the words of a text: equal words, near vectors. Deterministic."""

    name: str = "hash-64"
    size: int = 64
    calls: int = 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector a text."""
        self.calls += 1
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Vector:
        values = [0.0] * self.size
        for word in content_words(text) or [text]:
            digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
            values[digest[0] % self.size] += 1.0 if digest[1] & 1 else -1.0
            place = digest[2] % self.size
            if place == digest[0] % self.size and (digest[1] ^ digest[3]) & 1:  # the two would cancel each other
                place = (place + 1) % self.size
            values[place] += 1.0 if digest[3] & 1 else -1.0
        norm = math.sqrt(sum(v * v for v in values)) or 1.0
        return struct.pack(f"<{self.size}f", *(v / norm for v in values))


@dataclass(frozen=True, slots=True)
class Request:
    """What a ScriptedModel was asked."""

    messages: tuple[Message, ...]
    lane: str
    schema: Mapping[str, Any] | None
    grammar: str | None

    @property
    def system(self) -> str:
        """The system message."""
        return self.messages[0].content

    @property
    def last(self) -> str:
        """The last message."""
        return self.messages[-1].content


Answer: TypeAlias = str | NyimaError | Callable[["Request"], str]


@dataclass(slots=True)
class ScriptedModel:
    """Answers from a script by lane (``chat`` or a job's name); keeps every request.

    An entry is a text, an error to raise, or a function of the request. The last entry
    of a lane is repeated. ``piece`` is the length of the pieces that a text comes in.
    """

    script: dict[str, list[Answer]] = field(default_factory=dict[str, list[Answer]])
    name: str = "scripted"
    window: int = 4_096
    grammars: bool = True
    trained: frozenset[str] = frozenset()
    piece: int = 7
    requests: list[Request] = field(default_factory=list[Request])
    closed: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.script, dict):
            raise TypeError(f"a script is a dict of lanes, such as {{'chat': ['Hello!']}}, not {self.script!r:.80}")

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
        grammar: str | None = None,
        lane: str = "",
    ) -> AsyncIterator[str | Completion]:
        """The script's next answer."""
        del max_tokens, temperature
        request = Request(tuple(messages), lane, schema, grammar)
        self.requests.append(request)
        entries = self.script.get(lane) or ["{}"]
        entry = entries.pop(0) if len(entries) > 1 else entries[0]
        if isinstance(entry, NyimaError):
            raise entry
        text = entry if isinstance(entry, str) else entry(request)
        for start in range(0, len(text), self.piece):
            yield text[start : start + self.piece]
        prompt = sum(tokens(m.content) for m in messages)
        yield Completion(text, "stop", Usage(1, prompt, 0, tokens(text)))

    async def close(self) -> None:
        """Note that it was closed."""
        self.closed = True

    def asked(self, lane: str) -> list[Request]:
        """The requests of a lane."""
        return [r for r in self.requests if r.lane == lane]
