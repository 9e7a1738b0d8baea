"""The roles as protocols over values; the models that fill some are in ``ports``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from nyima.domain.changes import Delta
from nyima.domain.conversation import Scope
from nyima.domain.evidence import Budget, Evidence, Plan, Query, Selection, Step
from nyima.domain.ports import Event, Job, Lines

__all__ = [
    "Critic",
    "Judge",
    "Judgement",
    "Planned",
    "Planner",
    "Reader",
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


class Reader(Protocol):
    """Writes a reply from a dialogue and what was kept for it, without a chat model's prompt."""

    def read(self, lines: Lines, plan: Plan, kept: Sequence[Evidence]) -> AsyncIterator[str]:
        """The reply, piece by piece. Raises ModelError."""
        ...


class Critic(Protocol):
    """Says how consistent a draft is with what it may rest on."""

    async def consistency(self, scope: Scope, evidence: Sequence[Evidence], draft: str) -> list[float]:
        """The consistency of the draft with each piece, 0..1, each piece by itself. Raises
        ModelError."""
        ...
