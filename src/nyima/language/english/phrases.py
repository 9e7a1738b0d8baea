"""Pieces of clauses: subjects, owners, things, and what is left without its times."""

from __future__ import annotations

import re

from nyima.language.english.clauses import base_form
from nyima.language.intent import first_person
from nyima.language.relations import label_of
from nyima.language.times.moment import Moment, without_times
from nyima.language.words import content_words, words

__all__ = [
    "ARTICLES",
    "PREPOSITIONS",
    "at_preposition",
    "bare_noun",
    "bare_thing",
    "event_name",
    "owned",
    "possessive",
    "subject_of",
    "value_of",
    "without_moment",
    "worth_a_note",
]

PREPOSITIONS = frozenset(
    "in on at to for with from by about of into under over near as up off out through behind around after".split()
)


ARTICLES = frozenset("a an the my our his her their its some this that these those your".split())


_PRONOUNS = frozenset("i we he she they it this that there who".split())


_ATTRIBUTES = frozenset("password number name code colour color size pin plate".split())
_TRAIL = re.compile(
    r"[\s,]*\b(?:now|instead|these days|nowadays|any ?more|any longer|at the moment|too|as well|by the way|again|yet again|"
    r"from now on|after all|already|still|though|for now|anyway|currently)\b[\s,.]*$",
    re.IGNORECASE,
)


def subject_of(text: str) -> tuple[str, str]:
    """The subject of a clause and the rest behind it."""
    tokens = text.split()
    first = tokens[0].lower().strip(",") if tokens else ""
    if first in _PRONOUNS:
        return ("user" if first in {"i", "we"} else first), " ".join(tokens[1:])
    for i in range(1, min(len(tokens), 10)):
        word, before = tokens[i].lower().strip(","), tokens[i - 1].lower()
        if before in ARTICLES or (before in PREPOSITIONS and i > 1) or tokens[i][0].isupper():
            continue
        if word.endswith("ing"):
            continue
        if word in {"is", "are", "was", "were", "has", "have", "will", "had"} or (
            base_form(word) and _verb_like(word, tokens, i)
        ):
            return " ".join(tokens[:i]).strip(" ,"), " ".join(tokens[i:])
    return "", text


def _verb_like(word: str, tokens: list[str], i: int) -> bool:
    """Whether a word that may be a noun too is the verb: something stands behind it, and a
    noun before it."""
    if word.endswith(("s", "ed")) or i + 1 < len(tokens):
        following = tokens[i + 1].lower().strip(",") if i + 1 < len(tokens) else ""
        return not (base_form(following) and following.endswith("s") and base_form(word) == word) and following not in {
            "is",
            "are",
            "was",
            "has",
            "will",
        }
    return True


def event_name(subject: str, verb: str, preposition: str, tail: str) -> str:
    """What an event is called: the thing that one has, else what one does."""
    thing = bare_noun(tail)
    who = "" if subject in {"user", "it", "they", "there"} else f"{subject} "
    if verb in {"have", "get"} and thing:
        return f"{possessive(subject)} {thing}"
    return f"{who}{verb} {preposition + ' ' if preposition else ''}{thing}".strip()


def bare_noun(text: str) -> str:
    """A thing without its article."""
    return re.sub(r"^(?:a|an|the|my|our|some|another|one|to)\s+", "", text.strip(" ,"), flags=re.IGNORECASE)


def bare_thing(thing: str, moment: Moment | None) -> str:
    """A thing without its times."""
    return re.sub(r"\s+(?:from|on|at|of)?\s*$", "", without_moment(thing, moment)) or thing


def possessive(subject: str) -> str:
    """What stands before a thing that belongs to somebody."""
    return "my" if subject == "user" else f"{subject}'s"


def owned(subject: str) -> tuple[str, str | None]:
    """``my dog's name`` → (my dog, name); ``my dog`` → (user, dog); ``Ana's car`` → (Ana, car);
    ``her name`` → (her, name)."""
    match = re.match(r"^(his|her) (name|age|birthday|job|breed)$", subject, re.IGNORECASE)
    if match:
        return match[1].lower(), match[2].lower()
    match = re.match(r"^(.+?)'s? ([\w -]+)$", subject) if "'" in subject else None
    if match:
        return match[1], match[2]
    match = re.match(r"^(?:my|our) ([\w -]+?)$", subject, re.IGNORECASE)
    if match:
        parts = match[1].rsplit(" ", 1)
        compound = len(parts) == 2 and parts[1].lower() in _ATTRIBUTES
        if compound and label_of(match[1].lower().replace(" ", "_")) == match[1].lower().replace(" ", "_"):
            return f"my {parts[0]}", parts[1]
        of = re.match(r"^([\w -]+?) of (?:my|our|the) ([\w -]+)$", match[1])
        return (f"my {of[2]}", of[1]) if of else ("user", match[1])
    match = re.match(
        r"^the ([\w -]+?) (?:of|for|at|in) ((?:my|our|the) [\w' -]+|[A-Z][\w' -]+|home)$", subject, re.IGNORECASE
    )
    return ("user" if match[2].lower() == "home" else match[2], match[1]) if match else ("", None)


def at_preposition(text: str, chosen: set[str]) -> tuple[str, str, str]:
    """What stands before and behind the first of some prepositions."""
    tokens = value_of(text).split()
    for i in range(1, len(tokens) - 1):
        if tokens[i].lower() in chosen:
            return " ".join(tokens[:i]), tokens[i], " ".join(tokens[i + 1 :])
    return text, "", ""


def value_of(text: str) -> str:
    """An object without what trails behind it."""
    before = ""
    text = re.sub(r",? (?:if|in case|when) (?:you|i|we|they|anyone)\b.*$", "", text, flags=re.IGNORECASE)
    text = text.strip(" ,.;:!")
    while before != text:
        before, text = text, _TRAIL.sub("", text).strip(" ,.;:!")
    return text


def without_moment(text: str, moment: Moment | None) -> str:
    """The text without its phrases of time, where it has a moment."""
    return text if moment is None else without_times(text)


def worth_a_note(text: str) -> bool:
    """Whether a clause of no known shape says enough of the user to be kept."""
    return first_person(text) and len(content_words(text)) >= 3 and any(len(w) > 3 for w in words(text))
