"""Which memory answers which field: whom the field is about, what it asks for, and how
surely a memory says that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nyima.domain.records import ME
from nyima.language.english.fields import (
    AFFIX,
    ATTRIBUTE,
    FILLER,
    NAMING,
    ROLES,
    SAME,
    SELF,
    THEIRS,
    attribute_of,
    is_person,
)
from nyima.language.words import fold, stems
from nyima.services.known import Stated, related
from nyima.services.values import Field

__all__ = ["FieldQuestion", "asked_of", "score"]

_OWNED = frozenset({"car", "own", "pet", "phone_model", "booked", "travel", "employer"})
_SELF_NAMES = {"guest_name", "patient_name", "policy_holder", "parent_name", "card_holder", "applicant", "passenger"}
_CONTACT = frozenset({"email", "phone", "address", "location", "postcode", "name"})
_OF_ALL = frozenset({"name", "age", "birthday", "phone", "email"})


@dataclass(frozen=True, slots=True)
class FieldQuestion:
    """What a field asks: of whom (names), in which words, and ``needed`` words without
    which nothing answers it. ``labels`` are relations that it may name outright."""

    owners: frozenset[str]
    words: frozenset[str]
    needed: frozenset[str]
    labels: frozenset[str]
    belongings: frozenset[str] = frozenset()


def _plain(text: str) -> str:
    text = re.sub(r"\bcheck(?:s|ed)?[ -_]?(in|out)\b", r"check\1", fold(text))
    return text.replace("-", " ").replace("_", " ")


def _meaning(text: str) -> frozenset[str]:
    """Words of forms in the words that people use."""
    return frozenset(SAME.get(w, w) for w in stems(_plain(text)) if len(w) > 1)


def asked_of(field: Field, everything: Sequence[Stated]) -> FieldQuestion:
    """What a field asks; no owners when it is about somebody who is not known."""
    name = field.name.rsplit(".", maxsplit=1)[-1]
    text = _plain(field.words)
    owners, rest = frozenset({ME}), SELF.sub(" ", text)
    for role, kinds in ROLES.items():
        if _speaks_of(role, SELF.sub(" ", text)):
            owners = frozenset(_of_role(role, kinds, everything))
            rest = re.sub(rf"\b{role}(?:'s)?\b|\bsecond\b|\bemergency\b|\bcontact\b", " ", rest)
            break
    plain = AFFIX.sub("", name.lower())
    directions = ({"destin"} if plain.startswith("to_") else set()) | (
        {"depart"} if plain.startswith("from_") else set()
    )
    words = (_meaning(rest) - FILLER) | directions
    asks_name = not words or name in _SELF_NAMES or plain in {"name", "full_name"}
    needed = (
        frozenset()
        if field.options or asks_name
        else (_meaning(SELF.sub(" ", plain.replace("_", " "))) - FILLER) | directions
    )
    labels = {attribute_of(n) for n in (plain, (field.title or "").lower().replace(" ", "_").replace("-", "_"))}
    labels |= {"name"} if asks_name else set()
    labels |= {"nickname"} if re.search(r"\bcall you\b|display name|nick ?name", text) else set()
    mine = frozenset(k.tail for k in everything if k.mine and k.label in _OWNED)
    return FieldQuestion(owners, words or frozenset({"name"}), needed & words, frozenset(labels), mine)


def _speaks_of(role: str, plain: str) -> bool:
    """Whether a field asks about somebody of a role: "mother's name", "child birth date"."""
    if role == "second contact":
        return "second contact" in plain or "second emergency" in plain
    if " " in role:
        return role in plain
    return bool(
        re.search(
            rf"\b{role}'s\b|\bthe {role}\b|\b{role} {ATTRIBUTE}|\bname of (?:the |your )?{role}\b|\bmay {role}\b",
            plain,
        )
    )


def _of_role(role: str, kinds: str, everything: Sequence[Stated]) -> list[str]:
    if " " in role:
        wanted = stems(kinds)
        found = [k for k in everything if wanted <= stems(f"{k.label.replace('_', ' ')} {k.note}")]
        return [k.tail if k.mine else k.head for k in found][:1]
    return list(dict.fromkeys(n for kind in kinds.split() for n in related(everything, kind)))


def score(field: Field, title: str, item: Stated, asked: FieldQuestion, near: float) -> float:
    """How surely an item answers a field, 0..1: its relation's name, the words that both
    share, and how near the two are in meaning (``near``)."""
    thing = ""
    owner = THEIRS.search(_plain(field.words))
    if owner and item.label in _CONTACT and not stems(owner[1]) & stems(item.head):
        return 0.0
    if item.head not in asked.owners:
        if ME not in asked.owners or not (_mine(item, title) or item.head in asked.belongings):
            return 0.0
        thing = item.head
        named = _meaning(thing) & (_meaning(field.words) | _meaning(title)) or thing in asked.belongings
        if item.label in _OF_ALL and not named:
            return 0.0  # everything has a name: whose is asked for, the field or the form says
    if NAMING.search(_plain(field.words)) and item.label not in asked.labels and not _gives_a_name(item):
        return 0.0
    if item.label.startswith(("old_", "was_")) and "old" not in asked.words:
        return 0.0
    if item.label == "location" and "address" in asked.labels and re.search(r"\d", item.tail):
        return 0.0 if thing else 0.9
    if item.label in asked.labels:
        return 0.7 if thing else 0.95
    there = _meaning(f"{item.label} {thing}")
    said = there | _meaning(item.note) | _meaning(item.tail)
    if asked.needed and not asked.needed <= said:
        return 0.0
    shared = len(asked.words & said) / max(1, len(asked.words))
    close = len(asked.words & there) / max(1, len(there))
    exact = any(fold(str(o)) == fold(item.tail) for o in field.options)
    named = any(stems(str(o)) and stems(str(o)) <= stems(item.tail) for o in field.options)
    chosen = 0.5 if exact else 0.3 if named else 0.0
    whole = 0.15 if asked.needed else 0.0
    return min(1.0, 0.4 * shared + 0.2 * close + 0.4 * near + whole + chosen * bool(exact or shared or near > 0.25))


def _gives_a_name(item: Stated) -> bool:
    """Whether an item can answer a field for a name: it says what something is called."""
    return item.label.endswith("name") or (item.tail[:1].isupper() and not any(c.isdigit() for c in item.tail))


def _mine(item: Stated, title: str) -> bool:
    """Whether a thing is the user's own: "my car", "my Porto hotel stay"; or an event or
    booking that the form is about."""
    return not is_person(item.head) and bool(stems(item.head) & stems(title))
