"""The roles as protocols over values; the models that fill some are in ``ports``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from nyima.domain.changes import Delta
from nyima.domain.conversation import Scope
from nyima.domain.evidence import Budget, Evidence, Notes, Plan, Query, Recall, Selection, Step, Usage
from nyima.domain.ports import Event, Job, Lines, Message

__all__ = [
    "Critic",
    "Judge",
    "Judgement",
    "Planned",
    "Planner",
    "Reader",
    "Reply",
    "ReplyRequest",
    "Retriever",
    "Selector",
    "Written",
]


@dataclass(frozen=True, slots=True)
class Written:
    """What a writer proposes: a delta, follow-up jobs and events. ``expect`` is the
    revision that it was worked out from, where that matters."""

    delta: Delta = Delta()
    jobs: tuple[Job, ...] = ()
    events: tuple[Event, ...] = ()
    expect: int | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """The steps, empty for NULL: nothing is asked. ``by`` names the planner, ``prompt``
    the prompt's version where a model decided."""

    steps: Plan = ()
    by: str = "all"
    prompt: str = ""


class Planner(Protocol):
    """Decides which sources to ask, in which order; possibly none."""

    async def plan(self, scope: Scope, query: Query) -> Planned:
        """The plan."""
        ...


class Retriever(Protocol):
    """Gets evidence from one source."""

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        """Evidence, best first, with scores in 0..1."""
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """Scored evidence, and whether it is enough; if not, words to search for."""

    evidence: tuple[Evidence, ...]
    enough: bool = True
    keywords: tuple[str, ...] = ()
    prompt: str = ""


class Judge(Protocol):
    """Scores evidence and says whether it suffices."""

    async def judge(self, scope: Scope, query: Query, evidence: Sequence[Evidence], *, last: bool) -> Judgement:
        """The judgement; in the ``last`` round there is no further search."""
        ...


class Selector(Protocol):
    """Cuts evidence to a budget, by a rule or by walking over it."""

    def select(self, query: Query, evidence: Sequence[Evidence], budget: Budget) -> Selection:
        """What is kept, best first."""
        ...


@dataclass(frozen=True, slots=True)
class ReplyRequest:
    """What a reader is asked for a reply with.

    ``recall`` is what was found, ``lines`` the dialogue (role, text) with the user's message
    last; ``messages`` makes a chat model's prompt from what is to be shown. With ``notes`` the
    reader also notes what to keep. ``use`` takes a tool's name and arguments and returns its
    result; it is None where there are no tools."""

    recall: Recall
    lines: Lines
    messages: Callable[[Recall], Sequence[Message]]
    notes: bool = False
    use: Callable[[str, Mapping[str, Any]], Awaitable[str]] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply, and what it was written from. ``notes`` are not complete where a job has to
    make them."""

    text: str
    recall: Recall
    notes: Notes = Notes()
    usage: Usage = Usage()


class Reader(Protocol):
    """Writes a reply from a dialogue and what was recalled for it."""

    def read(self, scope: Scope, request: ReplyRequest) -> AsyncIterator[str | Reply]:
        """The reply piece by piece, as it may be shown, and at the end the whole Reply. Raises
        ModelError."""
        ...


class Critic(Protocol):
    """Says how consistent a draft is with what it may rest on."""

    async def consistency(self, scope: Scope, evidence: Sequence[Evidence], draft: str) -> list[float]:
        """The consistency of the draft with each piece, 0..1, each piece by itself. Raises
        ModelError."""
        ...
