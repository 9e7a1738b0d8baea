"""What is asked, what was found, what was kept: the read path's values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from nyima.domain.records import Claim, Interval, MemoryRecord

__all__ = [
    "Answer",
    "Budget",
    "Evidence",
    "Noted",
    "Notes",
    "Plan",
    "Query",
    "Recall",
    "Review",
    "Selection",
    "Step",
    "Usage",
    "Visit",
]


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked. ``at`` is the clock's time, ``as_of`` looks into the past,
    ``session`` is the running session, whose turns the reader sees anyway; ``within`` are the
    only regions (documents, sessions) to look in; ``dialogue`` are the session's last utterances as (role, text), for planners and judges that read them."""

    text: str
    at: datetime
    keywords: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    as_of: datetime | None = None
    period: Interval | None = None
    session: str | None = None
    within: tuple[str, ...] = ()
    dialogue: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The dialogue with the text as its last line."""
        return (*self.dialogue, ("user", self.text))

    def words(self) -> str:
        """The text with the keywords that a reflection added."""
        return " ".join((self.text, *self.keywords))


@dataclass(frozen=True, slots=True)
class Evidence:
    """A text from a source, with scores in 0..1 (higher is better). ``ended`` are values in
    it that no longer hold, since ``superseded``; ``stale`` says since when it rests on
    something that has changed. ``label`` is ``earlier`` where a newer piece, which stands before it, says
    something else of the same thing."""

    text: str
    source: str
    score: float
    record: MemoryRecord
    at: datetime
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    superseded: datetime | None = None
    ended: tuple[str, ...] = ()
    stale: datetime | None = None
    label: str = ""

    @property
    def record_id(self) -> str:
        """The id to revise or forget it by."""
        return self.record.id

    @property
    def relevance(self) -> float:
        """The score on the scale of readers and critics: 0.0 to 1.0 in steps of 0.1
        (Wang et al. 2024, table 1)."""
        return round(min(1.0, max(0.0, self.score)), 1)


@dataclass(frozen=True, slots=True)
class Step:
    """One retrieval from one source. ``after`` are the sources that it depends on,
    ``given`` what those brought, which narrows it."""

    source: str
    query: Query
    k: int
    after: tuple[str, ...] = ()
    given: tuple[Evidence, ...] = ()


Plan: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Visit:
    """A step of a walk over the graph: the state (three cosines), what was done (1 include
    and go on, 0 stop this branch) and the logarithm of its probability."""

    record: str
    state: tuple[float, ...]
    action: int
    log_probability: float


@dataclass(frozen=True, slots=True)
class Selection:
    """What a selector kept, and how it walked there when it walked."""

    kept: tuple[Evidence, ...]
    walk: tuple[Visit, ...] = ()


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may enter a prompt: ``records`` pieces and ``tokens`` tokens."""

    records: int = 10
    tokens: int = 2_000


@dataclass(frozen=True, slots=True)
class Review:
    """A draft beside what it may rest on: the consistency of each piece (by record id), of
    the draft as a whole, and the pieces that were replaced before the next draft."""

    draft: str
    scores: tuple[tuple[str, float], ...]
    consistency: float
    consistent: bool
    replaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recall:
    """The result of a recall and its trace. ``ms`` has ``plan``, ``embed``, ``search`` and
    ``total``. An empty ``plan`` is NULL: nothing was retrieved; ``planner`` says who
    decided, ``skipped`` which sources were not asked. ``shown`` are the record ids of what
    stood in the reply's prompt, in the order of the numbers that a reply may cite. ``claims`` are the
    current claims that the message may touch, in the order of their numbers in the prompt."""

    query: Query
    plan: Plan = ()
    found: tuple[Evidence, ...] = ()
    kept: tuple[Evidence, ...] = ()
    rounds: int = 0
    keywords: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])
    prompts: tuple[str, ...] = ()
    walk: tuple[Visit, ...] = ()
    ms: Mapping[str, float] = field(default_factory=dict[str, float])
    planner: str = ""
    skipped: tuple[str, ...] = ()
    reviews: tuple[Review, ...] = ()
    shown: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()

    @property
    def dropped(self) -> tuple[Evidence, ...]:
        """What was found and not kept, best first."""
        kept = {e.record.id for e in self.kept}
        return tuple(e for e in self.found if e.record.id not in kept)


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls and tokens, retries counted. ``cached`` prompt tokens came from a prefix cache."""

    calls: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.completion + other.completion,
        )


@dataclass(frozen=True, slots=True)
class Noted:
    """A claim as a model noted it: of whom or what (``user`` is the user), which attribute, the value
    as said, and a status (see ``nyima.domain.records.Status``)."""

    who: str
    what: str
    value: str
    status: str = "holds"


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes of the reply's own call about the user's turn: whether to keep the turn, the claims that it
    states, and the numbers of the shown claims that it makes untrue. ``complete`` is False when the
    notes were missing or cut off; a job then makes them."""

    remember: bool = False
    claims: tuple[Noted, ...] = ()
    outdated: tuple[int, ...] = ()
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply with what it rests on. ``seconds`` has ``first`` (first token) and ``total``."""

    text: str
    turn: str
    recall: Recall
    notes: Notes = field(default_factory=Notes)
    usage: Usage = field(default_factory=Usage)
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    def __str__(self) -> str:
        return self.text
