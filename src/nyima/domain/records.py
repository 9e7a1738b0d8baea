"""What is remembered: a closed union of records with two time axes.

``valid`` says when something holds in the user's world, ``recorded`` when the
system believed it. Nothing is overwritten: a change closes one record and opens
the next (see ``changes``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
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
    "ProfileFact",
    "Provenance",
    "Relation",
    "Summary",
    "partition",
    "profile_of",
]


ME = "user"
"""The id and the name of the entity that is the user."""


def partition(subclass: str) -> str:
    """The place of the relations of a subclass."""
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
class Claim:
    """What a record states something about; equal keys are siblings."""

    subject: str
    relation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    id: str
    provenance: Provenance
    valid: Interval
    recorded: Interval
    claim: Claim | None = None
    stale: bool = False
    supersedes: str | None = None

    kind: ClassVar[str]

    @property
    def region(self) -> str:
        """Where it stands: an episode's session, a relation's partition, a passage's document,
        else nowhere."""
        return ""

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
class ProfileFact(_Record):
    """One value of one key of the user's profile; an additive key has several."""

    kind: ClassVar[str] = "fact"
    key: str
    value: str

    @property
    def text(self) -> str:
        """``key words: value``."""
        return f"{self.key.replace('_', ' ')}: {self.value}"


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
class Relation(_Record):
    """A typed edge between two entities (their ids) with the memory that it stands for, in
    the partition of its subclass (Wang et al. 2024, section 4.2). ``rests`` are the
    relations without which it does not hold."""

    kind: ClassVar[str] = "relation"
    head: str
    label: str
    tail: str
    note: str = ""
    subclass: str = ""
    rests: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The note, else the label."""
        return self.note or self.label.replace("_", " ")

    @property
    def region(self) -> str:
        """The partition."""
        return partition(self.subclass)

    @property
    def parents(self) -> tuple[str, ...]:
        """What it came from, the entities that it joins, and what it rests on."""
        made = self.provenance
        return (*made.turns, *made.records, self.head, self.tail, *self.rests)


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


MemoryRecord: TypeAlias = Episode | Note | Summary | ProfileFact | Entity | Relation | Passage

KINDS: Mapping[str, type[MemoryRecord]] = {
    "episode": Episode,
    "note": Note,
    "summary": Summary,
    "fact": ProfileFact,
    "entity": Entity,
    "relation": Relation,
    "passage": Passage,
}


@dataclass(frozen=True, slots=True)
class Profile:
    """The mapping of the facts that are now valid; several values make a tuple."""

    facts: tuple[ProfileFact, ...] = ()
    _values: dict[str, tuple[str, ...]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for fact in self.facts:
            self._values[fact.key] = (*self._values.get(fact.key, ()), fact.value)

    def get(self, key: str) -> tuple[str, ...]:
        """The values of a key, oldest first; empty when it is not known."""
        return self._values.get(key, ())

    def as_dict(self) -> dict[str, str | list[str]]:
        """``{key: value}``, with a list where a key has several values."""
        return {k: v[0] if len(v) == 1 else list(v) for k, v in self._values.items()}


def profile_of(facts: list[ProfileFact]) -> Profile:
    """The profile, in the order in which the facts became true."""
    return Profile(tuple(sorted(facts, key=lambda f: (f.valid.since, f.recorded.since, f.id))))
