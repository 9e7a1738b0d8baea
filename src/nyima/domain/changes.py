"""How memory evolves: ``Add | Revise | Retire | Erase``, gathered in a Delta."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from nyima.domain.records import Claim, Entity, MemoryRecord, Passage, Summary

__all__ = ["Add", "Change", "ChangeRow", "Delta", "Erase", "Retire", "Revise", "about", "merge", "touched"]


@dataclass(frozen=True, slots=True)
class Add:
    """A new record. Adding an id that exists changes nothing."""

    record: MemoryRecord


@dataclass(frozen=True, slots=True)
class Revise:
    """Close record ``id`` and open its successor."""

    id: str
    successor: MemoryRecord
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Retire:
    """Close record ``id``: it is no longer believed from ``at`` on."""

    id: str
    at: datetime
    reason: str = ""
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Erase:
    """Remove for good what ``id`` names (``what`` is record, turn, session or event), with
    every trace, queued job and index row that mentions it; ``scope`` is everything."""

    id: str
    what: str = "record"


Change: TypeAlias = Add | Revise | Retire | Erase


@dataclass(frozen=True, slots=True)
class Delta:
    """Changes that are committed together or not at all."""

    changes: tuple[Change, ...] = ()
    by: str = ""

    def __bool__(self) -> bool:
        return bool(self.changes)


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One line of the history of changes; it holds ids only, never text."""

    revision: int
    verb: str
    id: str
    successor: str | None
    at: datetime
    by: str
    reason: str


def merge(deltas: Iterable[Delta]) -> Delta:
    """One delta that does what the given ones do in order.

    An id is added once; of several Revise or Retire of one id the last counts; an
    Erase removes every other change of its id. Associative; ``Delta()`` is neutral.
    """
    added: dict[str, Add] = {}
    closed: dict[str, Revise | Retire] = {}
    erased: dict[tuple[str, str], Erase] = {}
    by = ""
    for delta in deltas:
        by = by or delta.by
        for change in delta.changes:
            match change:
                case Add(record):
                    added.setdefault(record.id, change)
                case Erase(id, what):
                    erased[what, id] = change
                case Revise(id) | Retire(id):
                    closed.pop(id, None)
                    closed[id] = change
    gone = {id for what, id in erased if what == "record"}
    kept = [change for id, change in added.items() if id not in gone]
    ends = [c for id, c in closed.items() if id not in gone and not (isinstance(c, Revise) and c.successor.id in gone)]
    return Delta((*kept, *ends, *erased.values()), by)


def touched(delta: Delta) -> frozenset[str]:
    """Return what a delta is about: the ids of its records (as they first were), what they claim,
    which summary they are, which entity they name, which place of a document they hold. Two deltas that share nothing of it
    can be committed in either order, unless one of them erases."""
    found: set[str] = set()
    for change in delta.changes:
        if not isinstance(change, Add):
            found.add(change.id.partition("~")[0])
        if isinstance(change, Add | Revise):
            record = change.record if isinstance(change, Add) else change.successor
            found |= about(record)
            if isinstance(record, Claim):  # it stands on these: each may have gone meanwhile
                found |= {id.partition("~")[0] for id in (record.subject, record.object, *record.depends_on) if id}
    return frozenset(found)


def about(record: MemoryRecord) -> frozenset[str]:
    """Return what one record is about (see ``touched``)."""
    found = {record.id.partition("~")[0]}
    match record:
        case Summary(level=level):
            found.add(f"summary {level}")
        case Entity(name=name):
            found.add(f"entity {name.casefold()}")
        case Claim(slot=slot):
            found.add(f"claim {slot.subject}\x1f{slot.attribute}")
        case Passage(document=document, place=place):
            found.add(f"passage {document}\x1f{place}")
    return frozenset(found)
