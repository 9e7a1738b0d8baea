"""What is remembered: a closed union of records with two time axes.

``valid`` says when something holds in the user's world, ``recorded`` when the
system believed it. Nothing is overwritten: a change closes one record and opens
the next (see ``changes``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, TypeAlias

from nyima.domain.conversation import Origin

__all__ = [
    "KINDS",
    "ME",
    "Claim",
    "Entity",
    "Episode",
    "Interval",
    "MemoryRecord",
    "Note",
    "Passage",
    "Profile",
    "Provenance",
    "Quote",
    "Slot",
    "Status",
    "Summary",
    "partition",
    "profile_of",
]


ME = "user"
"""The id and the name of the entity that is the user."""


def partition(subclass: str) -> str:
    """The place of the claims of a subclass."""
    return f"partition {subclass}"


@dataclass(frozen=True, slots=True)
class Interval:
    """From ``since`` (included) to ``until`` (excluded); open when ``until`` is None."""

    since: datetime
    until: datetime | None = None

    def contains(self, moment: datetime) -> bool:
        """Whether the moment lies inside."""
        return self.since <= moment and (self.until is None or moment < self.until)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Which turns and records a record came from, and what made it.

    ``writer`` is the mechanism, ``prompt`` is ``name@hash`` and ``model`` the model's
    name; both are empty where a rule made the record.
    """

    turns: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    writer: str = ""
    prompt: str = ""
    model: str = ""
    origin: Origin = Origin.USER


@dataclass(frozen=True, slots=True)
class Slot:
    """An attribute of a subject. Several claims of one slot may hold side by side."""

    subject: str
    attribute: str


@dataclass(frozen=True, slots=True)
class Quote:
    """The words that a claim rests on: characters ``start`` to ``end`` (excluded) of a turn's text."""

    turn: str
    start: int
    end: int


class Status(StrEnum):
    """How a claim stands to the present."""

    HOLDS = "holds"
    PLANNED = "planned"
    """Intended: it does not begin to hold because its date has passed."""
    ENDED = "ended"
    """It was so, and is no longer."""
    DENIED = "denied"
    """It is said not to be so."""
    PENDING = "pending"
    """The words were not surely the owner's: it waits for a confirmation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    id: str
    provenance: Provenance
    valid: Interval
    recorded: Interval
    stale: bool = False
    supersedes: str | None = None

    kind: ClassVar[str]

    @property
    def region(self) -> str:
        """The session of an episode, the partition of a claim, or the document of a passage;
        empty for other records."""
        return ""

    @property
    def slot(self) -> Slot | None:
        """The slot of a claim; None for other records."""
        return None

    @property
    def parents(self) -> tuple[str, ...]:
        """The ids of the turns and records that it came from."""
        return (*self.provenance.turns, *self.provenance.records)


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode(_Record):
    """A raw turn as it is indexed: history memory (Yuan et al. 2023, section 3.1)."""

    kind: ClassVar[str] = "episode"
    session: str
    position: int
    speaker: str
    said: str

    @property
    def text(self) -> str:
        """``speaker: what was said``."""
        return f"{self.speaker}: {self.said}"

    @property
    def region(self) -> str:
        """The session."""
        return self.session


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(_Record):
    """Conditional memory: why something was said, and what to keep of it
    (Yuan et al. 2023, section 3.1)."""

    kind: ClassVar[str] = "note"
    context: str
    knowledge: str

    @property
    def text(self) -> str:
        """Context and knowledge, the parts that are there."""
        return " ".join(part for part in (self.context, self.knowledge) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(_Record):
    """A text that stands for sessions: ``level`` is ``session``, ``running``, ``day``,
    ``overall``, ``portrait`` or ``topic``."""

    kind: ClassVar[str] = "summary"
    level: str
    covers: tuple[str, ...]
    body: str

    @property
    def text(self) -> str:
        """The summary."""
        return self.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity(_Record):
    """A node of the memory graph: a person, a thing, or a value such as a date. The user
    is the node ``user``."""

    kind: ClassVar[str] = "entity"
    name: str
    subclass: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The name and the aliases."""
        return ", ".join((self.name, *self.aliases))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(_Record):
    """One statement about the user's world, and an edge of the memory graph (Wang et al. 2024,
    section 4.2): ``subject`` and ``object`` are ids of entities, ``name`` is the subject's name.

    ``value`` stands as it was said, and ``when`` is the time phrase as it was said. ``stale`` marks a
    claim that is uncertain: it rests on something that has changed, or another claim may contradict it.
    ``subclass`` is the partition, ``depends_on`` are the claims without which it does not hold.
    """

    kind: ClassVar[str] = "claim"
    subject: str
    attribute: str
    value: str
    name: str = ME
    object: str = ""
    status: Status = Status.HOLDS
    quote: Quote | None = None
    when: str = ""
    subclass: str = ""
    depends_on: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """``subject attribute: value``, with the status where it does not simply hold."""
        said = f"{self.name} {self.attribute}: {self.value}"
        return said if self.status is Status.HOLDS else f"{said} ({_IN_WORDS[self.status]})"

    @property
    def region(self) -> str:
        """The partition."""
        return partition(self.subclass)

    @property
    def slot(self) -> Slot:
        """The attribute of the subject, without case."""
        return Slot(self.subject, self.attribute.casefold())

    @property
    def parents(self) -> tuple[str, ...]:
        """What it came from, the entities that it joins, and what it depends on."""
        made = self.provenance
        ends = tuple(id for id in (self.subject, self.object) if id)
        return (*made.turns, *made.records, *ends, *self.depends_on)

    def says_the_same(self, other: MemoryRecord) -> bool:
        """Return whether another record states the same, whatever it rests on."""
        return (
            isinstance(other, Claim)
            and self.slot == other.slot
            and self.status is other.status
            and " ".join(self.value.casefold().split()) == " ".join(other.value.casefold().split())
        )


_IN_WORDS = {
    Status.PLANNED: "planned, not confirmed",
    Status.ENDED: "ended",
    Status.DENIED: "denied",
    Status.PENDING: "not confirmed by the user",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage(_Record):
    """A piece of a document that the user gave: its ``place`` (page or heading) and the
    ``offset`` in characters of its beginning there."""

    kind: ClassVar[str] = "passage"
    document: str
    place: str
    body: str
    offset: int = 0

    @property
    def text(self) -> str:
        """The passage."""
        return self.body

    @property
    def region(self) -> str:
        """The document."""
        return self.document


MemoryRecord: TypeAlias = Episode | Note | Summary | Claim | Entity | Passage

KINDS: Mapping[str, type[MemoryRecord]] = {
    "episode": Episode,
    "note": Note,
    "summary": Summary,
    "claim": Claim,
    "entity": Entity,
    "passage": Passage,
}


@dataclass(frozen=True, slots=True)
class Profile:
    """The claims about the user that hold, by their attributes; several values make a tuple."""

    claims: tuple[Claim, ...] = ()
    _values: dict[str, tuple[str, ...]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        names: dict[str, str] = {}
        for claim in self.claims:
            name = names.setdefault(claim.attribute.casefold(), claim.attribute)
            self._values[name] = (*self._values.get(name, ()), claim.value)

    def get(self, attribute: str) -> tuple[str, ...]:
        """The values of an attribute, oldest first; empty when it is not known."""
        wanted = attribute.casefold()
        return next((values for name, values in self._values.items() if name.casefold() == wanted), ())

    def as_dict(self) -> dict[str, str | list[str]]:
        """``{attribute: value}``, with a list where an attribute has several values."""
        return {k: v[0] if len(v) == 1 else list(v) for k, v in self._values.items()}


def profile_of(records: Iterable[MemoryRecord]) -> Profile:
    """Return the profile: of the records the claims about the user that hold and are not uncertain, in
    the order in which they became true."""
    held = [
        r for r in records
        if isinstance(r, Claim) and r.subject == ME and r.status is Status.HOLDS and not r.stale
    ]  # fmt: skip
    return Profile(tuple(sorted(held, key=lambda c: (c.valid.since, c.recorded.since, c.id))))
