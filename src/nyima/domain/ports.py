"""The seams to the world: the Clock and the models as protocols, and the values that a Store takes and gives.

The Store is in ``store``, the nine roles are in ``roles``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Usage
from nyima.domain.records import Claim, Slot

__all__ = [
    "LAPSED",
    "READS_CLAIMS",
    "ChatModel",
    "Clock",
    "Completion",
    "Embedder",
    "Event",
    "Hit",
    "Job",
    "Lines",
    "Looked",
    "Message",
    "PairScorer",
    "Probe",
    "RecordFilter",
    "SourceModel",
    "Vector",
    "Verifier",
    "follow_up",
]

LAPSED = "the worker that had it ended before the work was done"
"""How the error of a job begins whose lease ran out; the number of times in a row follows."""

READS_CLAIMS = "claims"
"""The lane of prompts in which a model that was trained for it reads claims from one message."""

Vector: TypeAlias = bytes
"""A unit vector as packed little-endian float32 numbers."""


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The current time, aware, in UTC."""
        ...


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Which records. Without ``as_of`` and ``retired``: those believed and valid now.

    ``at`` is the moment that "now" means; a record is left out when its validity has
    ended by then. ``as_of`` asks what was believed at that moment. ``turns`` are parents
    of a record (turns, records, entities), ``slots`` what claims give a value of, ``bases``
    the ids that it first had (its versions are ``id~…``), ``prefix`` how its id begins.
    """

    kinds: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    session: str | None = None
    positions: tuple[int, int] | None = None
    at: datetime | None = None
    as_of: datetime | None = None
    retired: bool = False
    limit: int | None = None
    slots: tuple[Slot, ...] = ()
    bases: tuple[str, ...] = ()
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """A search: words (BM25) or a vector (cosine), never both; in some ``regions`` (documents,
    sessions, parts of the graph) or in all."""

    words: str = ""
    vector: Vector | None = None
    kinds: tuple[str, ...] = ()
    k: int = 100
    at: datetime | None = None
    as_of: datetime | None = None
    not_session: str | None = None
    regions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that a search found, with where it stands in its conversation.

    BM25 scores are positive and unbounded; cosines lie in -1..1.
    """

    id: str
    score: float
    kind: str
    session: str
    position: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Job:
    """Work that is owed. ``state`` is queued, leased, done or parked. ``attempts`` counts how often
    it was leased; ``holder`` is the token of the lease that this value came with."""

    id: str
    kind: str
    subject: str
    state: str = "queued"
    attempts: int = 0
    error: str = ""
    recipe: str = "default"
    holder: str = ""

    @property
    def lapses(self) -> int:
        """How often in a row its worker ended before the work was done."""
        number = self.error.rpartition(" ")[2]
        return int(number) if self.error.startswith(LAPSED) and number.isdecimal() else 0


def follow_up(kind: str, subject: str, recipe: str, suffix: str = "") -> Job:
    """A job whose id follows from what it is about, so that it is queued once."""
    return Job(f"{kind}-{subject}{suffix}", kind, subject, recipe=recipe)


@dataclass(frozen=True, slots=True)
class Event:
    """A journal line that is no turn: ``recall``, ``notes``, ``call``, ``import``.

    It goes when anything that ``refs`` names is erased.
    """

    id: str
    kind: str
    at: datetime
    refs: tuple[str, ...] = ()
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat request."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a chat model answered. ``finish`` is the wire's finish reason."""

    text: str
    finish: str = "stop"
    usage: Usage = field(default_factory=lambda: Usage(calls=1))


class ChatModel(Protocol):
    """Messages in; text pieces, then one Completion, out."""

    @property
    def name(self) -> str:
        """The model's name, as provenance records it."""
        ...

    @property
    def window(self) -> int:
        """The context window in tokens."""
        ...

    @property
    def grammars(self) -> bool:
        """Whether the server can be bound to a GBNF grammar."""
        ...

    @property
    def trained(self) -> frozenset[str]:
        """The lanes for whose prompts the model was trained."""
        ...

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
        grammar: str | None = None,
        lane: str = "",
    ) -> AsyncIterator[str | Completion]:
        """Pieces of text as they come, then the Completion, once. ``lane`` names the
        prompt family (``chat`` or a job), so that a server can keep its prefix cache.
        Raises ModelUnreachable or ModelRefused."""
        ...

    async def close(self) -> None:
        """Release the connection or the process."""
        ...


class Embedder(Protocol):
    """Texts to unit vectors."""

    @property
    def name(self) -> str:
        """The model's name; vectors of different names are never mixed."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector a text, in order."""
        ...


class PairScorer(Protocol):
    """A cross-encoder: how far two texts belong together."""

    @property
    def name(self) -> str:
        """The model's name, as a trace records it."""
        ...

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """A score in 0..1 for each pair, in order, each pair by itself."""
        ...


@dataclass(frozen=True, slots=True)
class Looked:
    """The answers of a second look. ``over``: for each known claim, whether the message makes it untrue.
    ``said``: for each new claim, whether the message asserts it. None stands for an unsure answer."""

    over: tuple[bool | None, ...] = ()
    said: tuple[bool | None, ...] = ()

    @classmethod
    def unsure(cls, known: Sequence[Claim], new: Sequence[Claim]) -> Looked:
        """Return the answer that is sure of nothing."""
        return cls((None,) * len(known), (None,) * len(new))


class Verifier(Protocol):
    """Looks again at what was read from a message, before it is believed."""

    @property
    def looks_further(self) -> bool:
        """True when it also judges claims that the reader has not called over."""
        ...

    async def look(self, scope: Scope, message: str, known: Sequence[Claim], new: Sequence[Claim]) -> Looked:
        """Return what the message makes untrue of what is ``known``, and which of the ``new`` claims it
        asserts. Raises ModelError when it cannot be asked."""
        ...


Lines: TypeAlias = Sequence[tuple[str, str]]
"""Utterances as (role, text), oldest first."""


class SourceModel(Protocol):
    """A model that was trained to plan, to score and to reply (Wang et al. 2024)."""

    @property
    def name(self) -> str:
        """The model's name, as a trace records it."""
        ...

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that it knows."""
        ...

    async def plan(self, lines: Lines) -> tuple[str, ...]:
        """The sources to ask, in order; empty for none."""
        ...

    async def score(self, lines: Lines, plan: Sequence[str], pieces: Sequence[tuple[str, str]]) -> list[float]:
        """The relevance of each piece (source, text), 0..1, each by itself."""
        ...

    def reply(self, lines: Lines, plan: Sequence[str], pieces: Sequence[tuple[str, str, float]]) -> AsyncIterator[str]:
        """The reply to the last line, from pieces (source, text, score)."""
        ...
