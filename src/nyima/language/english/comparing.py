"""How a statement and a relation are compared: by the words that they share."""

from __future__ import annotations

import re
from datetime import timedelta

from nyima.domain.records import ME, Entity, Relation
from nyima.language.english.mentions import stems
from nyima.language.relations import LABELS
from nyima.language.times.moment import read_moment
from nyima.language.words import fold

__all__ = ["OVER", "called", "ended_thing", "measure", "once_only", "overlap", "shared_matter", "standard_note"]

_OBJECT = re.compile(
    r"\b(?:sold|(?:got|getting) rid of|cancell?ed|lost|threw away|donated|returned|gave away|dropped|unsubscribed from)\s+"
    r"(?:(?:my|our|the|his|her|their|a|an|that|this|all)\s+)*(?!(?:for|in|on|at|by|because|due|last|again|yesterday|today)\b)([\w' -]+?)"
    r"(?=\s+(?:with|at|in|on|for|from|to|last|this|next|yesterday|today|because|after|before|when|since|and|of|as|by|again)\b"
    r"|[,.;:]|$)",
    re.IGNORECASE,
)
_HOLDERS = frozenset(
    "membership subscription lesson lessons class classes course contract booking reservation account".split()
)
_SHARED = re.compile(r"\b(?:cancell?ed|called off|my|our|us|me)\b", re.IGNORECASE)
_EVERY = re.compile(r"\b(?:every|each|weekly|(?:mon|tues|wednes|thurs|fri|satur|sun)days)\b", re.IGNORECASE)

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


def ended_thing(clause: str) -> frozenset[str]:
    """What a clause gives up, by its last noun: of "I sold my bike helmet" the helmet."""
    found = _OBJECT.search(clause)
    nouns = found[1].split() if found else []
    while len(nouns) > 1 and nouns[-1].lower() in _HOLDERS:
        nouns.pop()
    return stems(nouns[-1]) if nouns else frozenset()


def shared_matter(said: str) -> bool:
    """Whether what another person ends is the user's matter too: "Ana cancelled our dinner"."""
    return _SHARED.search(said) is not None


def once_only(clause: str, relation: Relation) -> bool:
    """Whether one occurrence is called off of what goes on: "tennis this Monday" of every Monday."""
    return bool(re.search(r"\b(?:cancell?ed|called off)\b", clause)) and bool(_EVERY.search(relation.note))


def measure(note: str) -> str:
    """A note with its numbers taken out: equal for two readings of one thing."""
    words = fold(note).split()
    return " ".join("#" if any(c.isdigit() for c in w) else w for w in words) if any(c.isdigit() for c in note) else ""
