"""A statement: what one clause says, in mentions."""

from __future__ import annotations

from dataclasses import dataclass

from nyima.language.relations import label_of, single
from nyima.language.times.moment import Moment

__all__ = ["Statement", "from_fact"]


@dataclass(frozen=True, slots=True)
class Statement:
    """One memory as said: ``head`` and ``tail`` are mentions, ``note`` is the sentence about
    "the user". ``ends``: something no longer holds. ``changes``: it says that it is new;
    ``swaps``: that it takes the place of something ("instead", "not X but Y").
    ``rests``: numbers of the statements of the same text that it rests on, -1 for what was
    said before it; ``causes`` the words that say so. ``replaces``: what ends is a thing that
    another takes the place of ("I switched phones"), named by what it is. ``noted``: a model
    noted it, and no rule alone."""

    head: str
    label: str
    tail: str
    note: str
    clause: str
    moment: Moment | None = None
    ends: bool = False
    changes: bool = False
    swaps: bool = False
    single: bool = False
    rests: tuple[int, ...] = ()
    causes: tuple[str, ...] = ()
    event: bool = False
    replaces: bool = False
    noted: bool = False


def from_fact(key: str, value: str, said: str) -> Statement:
    """A key and value that a model noted, as a statement: ``dog_name`` is the name of the
    user's dog."""
    thing, _, attribute = key.rpartition("_")
    owned = bool(thing) and attribute in {
        "name",
        "age",
        "breed",
        "birthday",
        "color",
        "colour",
        "job",
        "location",
        "phone",
    }
    note = f"The user's {key.replace('_', ' ')}: {value}."
    label = label_of(attribute if owned else key)
    head = f"my {thing.replace('_', ' ')}" if owned else "user"
    return Statement(head, label, value, note, said, single=single(label) or owned, noted=True)
