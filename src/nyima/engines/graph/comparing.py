"""How a statement and a relation are compared: by the words that they share."""

from __future__ import annotations

import re
from datetime import timedelta

from nyima.domain.memory import Entity, Relation
from nyima.domain.text import fold
from nyima.engines.graph.resolve import ME, stems
from nyima.engines.graph.schema import LABELS
from nyima.engines.moments import read_moment

__all__ = ["OVER", "called", "measure", "overlap", "standard_note"]

OVER = re.compile(
    r"\b(?:died|passed away|ran away|(?:was|were|is|are|has been|got) (?:cancell?ed|called off|over|closed|stolen|gone)|fell through)\b",
    re.IGNORECASE,
)
_POINTING = frozenset("it he she they this that his her its their".split())
_PRONOUN = re.compile(r"^(?:(It|He|She|They|This|That)|(His|Her|Its|Their) .+?)(?= (?:is|are|was|has|now|\w+s)\b)")


def standard_note(note: str, said: str, head: Entity, tail: Entity) -> str:
    """One standard statement: a pronoun gives way to what it stands for, and a date that
    was told in passing is written out."""
    if said.split(" ", maxsplit=1)[0].lower() in _POINTING and head.id != ME:
        name = head.name.replace("user's", "the user's", 1) if head.name.startswith("user's") else head.name
        note = _PRONOUN.sub(lambda _: name[:1].upper() + name[1:], note, count=1)
    moment = read_moment(tail.name)
    if moment is not None and moment.dated and f"{moment.start.year}" not in note:
        last = moment.end if moment.clock else moment.end - timedelta(days=1)
        when = f"{moment.start.day} {moment.start:%B %Y}"
        when += f" to {last.day} {last:%B %Y}" if last.date() > moment.start.date() else ""
        note = (
            f"{note.rstrip('.')} ({when}{moment.start:, %H:%M})." if moment.clock else f"{note.rstrip('.')} ({when})."
        )
    return note


def overlap(relation: Relation, said: frozenset[str], names: dict[str, Entity]) -> float:
    """How far the words of an ending point to a relation: by its value, its thing, or what
    the relation is called ("my job", "the car")."""
    head, tail = names.get(relation.head), names.get(relation.tail)
    value = stems(tail.name) if tail is not None and tail.id != ME else frozenset()
    thing = stems(head.name) if head is not None and head.id != ME else frozenset()
    names_it = called(relation)
    score = 0.0
    if value & said:
        score += 0.5 + 0.5 * len(value & said) / len(value)
    if thing & said:
        score += 0.4 + 0.4 * len(thing & said) / len(thing)
    if names_it & said and (relation.head == ME or thing & said):
        score += 0.5
    note = stems(relation.note)
    return score + 0.3 * len(note & said) / max(1, len(said)) if score else 0.0


def called(relation: Relation) -> frozenset[str]:
    """What a relation may be called: its own words, and those of its label."""
    label = LABELS.get(relation.label)
    return stems(" ".join((relation.label, *(label.words if label is not None else ()))).replace("_", " "))


def measure(note: str) -> str:
    """A note with its numbers taken out: equal for two readings of one thing."""
    words = fold(note).split()
    return " ".join("#" if any(c.isdigit() for c in w) else w for w in words) if any(c.isdigit() for c in note) else ""
