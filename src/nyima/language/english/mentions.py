"""Mentions of people and things in English: their words without endings, their names as
entities have them, and whether they name a person."""

from __future__ import annotations

import re

from nyima.domain.records import ME
from nyima.language.english.clauses import base_form
from nyima.language.words import fold, words

__all__ = ["NOTHING", "PERSONAL", "ROLE_NAME", "THINGS", "another_person", "canonical_mention", "is_person", "stems"]

_STOP = frozenset(
    "a an the my our his her their its this that some any of for in on at to with and or user s be have own now not new"
    " old is it at from by me i we us one no longer more has had got get are was were will do does did am".split()
)
PERSONAL = frozenset({"he", "she", "him", "her", "his"})
"""Pronouns that stand for one person."""


def _stem(word: str) -> str:
    base = base_form(word)
    if base and word.endswith(("ing", "ed")):
        word = base
    word = word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word
    return word[:6] if len(word) > 6 and word.isascii() and word.isalpha() else word


def stems(text: str) -> frozenset[str]:
    """The words of a mention that tell it from others, with their endings cut."""
    return frozenset(_stem(w) for w in words(text.replace("'s", " ")) if w not in _STOP)


def canonical_mention(mention: str) -> str:
    """A mention as an entity's name: ``my dog`` is ``user's dog``; articles go."""
    text = mention.strip(" ,.;:!\"'").replace("’", "'")
    if fold(text) in {"i", "me", "us", "we", "myself", "user", "the user", ""}:
        return ME
    text = re.sub(r"^(?:my|our)\s+(?:own )?", "user's ", text, flags=re.IGNORECASE)
    text = re.sub(r"^the user's ", "user's ", text, flags=re.IGNORECASE)
    text = re.sub(r"^(?:a|an|the|some|this|that)\s+(?=\S)", "", text, flags=re.IGNORECASE)
    return re.sub(r"\s+", " ", text)[:120] or ME


_ROLES = frozenset(
    {
        "boss", "manager", "friend", "mother", "father", "mum", "mom", "dad", "sister", "brother", "son", "daughter",
        "wife", "husband", "partner", "girlfriend", "boyfriend", "colleague", "neighbour", "neighbor", "teacher", "doctor",
        "aunt", "uncle", "cousin", "grandma", "grandmother", "grandfather", "grandpa", "kids", "parents", "therapist",
        "secretary", "client", "landlord", "landlady", "dentist", "vet", "student", "godson", "niece", "nephew", "ex",
    }
)  # fmt: skip


def is_person(name: str) -> bool:
    """Whether a name reads as somebody's: a role such as ``user's sister``, or one or two
    capitalised words."""
    last = name.rsplit("'s ", maxsplit=1)[-1].split()
    if last and last[-1].lower() in _ROLES:
        return True
    names = name.split()
    return len(names) <= 2 and all(n[:1].isupper() and n.isalpha() for n in names)


def another_person(mention: str) -> bool:
    """Whether a subject is somebody other than the user, or something of theirs: ``he``,
    ``my brother``, ``my neighbour's cat``."""
    name = canonical_mention(mention)
    if name == ME or fold(name) in PERSONAL:
        return name != ME
    first = name.removeprefix("user's ").split("'s ")[0]
    return is_person(first)


THINGS = frozenset({"it", "this", "that", "its", "they", "them", "their"})

ROLE_NAME = re.compile(
    r"^((?:my|our|[A-Z]\w+'s|user's) (?:(?!with|of|for|at|in|to|from|on)[a-z][\w-]* ){0,2}(?!with|of|for|at|in|to|from|on)[a-z][\w-]*)"
    r" ((?:Dr\.? |Mr\.? |Mrs\.? |Ms\.? )?[A-Z]\w+(?: [A-Z]\w+)?)$"
)


NOTHING = frozenset("this that these those there here what everything something nothing".split())
