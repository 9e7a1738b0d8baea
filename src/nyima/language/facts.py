"""Profile facts: canonical keys, support in the source turn, and the merge rules.

A model proposes; these rules decide. A value is kept only when the user's own words
hold it (or the assistant's question, when the user says yes), so that examples of a
prompt and older memories never come back as new facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from nyima.language.intent import first_person, wish_of
from nyima.language.words import content_words, fold, words

__all__ = ["Action", "Proposal", "canonical_key", "decide", "is_placeholder", "proposals", "supported", "supports_text"]

_KEY = re.compile(r"[^\w]+")
_ALIASES = {
    alias: key
    for key, aliases in {
        "name": "user_name username first_name full_name user my_name nickname",
        "location": "living_location living_place home_location city town home_city hometown_now residence current_city current_location lives_in living_in home"
        " place_of_residence home_town_now address_city",
        "job": "occupation profession work job_title position role career employment",
        "style": "answer_style reply_style response_style answer_length reply_length response_length preference_answers"
        " communication_style answers answer replies preferred_answer_length preferred_style tone",
        "age": "user_age",
        "allergy": "allergies allergic_to allergen food_allergy",
        "pet": "pets animal",
        "hobby": "hobbies interest interests",
        "language": "languages spoken_language",
    }.items()
    for alias in aliases.split()
}  # fmt: skip
_ADDITIVE = frozenset(
    "allergy pet hobby language child children sibling friend like dislike food sport instrument skill style goal"
    " favorite favourite preference wish instruction".split()
)
_SINGULAR = frozenset(
    "name age location job birthday birth_date gender height weight nationality employer school spouse partner"
    " marital_status timezone time_zone email phone address".split()
)
_ANSWER_WORDS = 3
_KNOWN = _ADDITIVE | _SINGULAR
_SOMEBODY_ELSE = re.compile(r"^\W*(?:and |but |so )?(?:she|he|they|her|his|their|it)\b", re.IGNORECASE)
_PLACEHOLDERS = frozenset(
    "unknown unspecified n/a na null undefined not_specified not_mentioned not_given not_stated not_provided"
    " no_information tbd yes no true false ? - … ... value key string".split()
)
_DELETIONS = frozenset({"none", "null", "nothing", "no longer", "deleted", "removed"})
_CHANGE = re.compile(
    r"\b(?:actually|now|moved?|moving|changed?|switch(?:ed)?|instead|no longer|any ?more|not .{1,40} but|new|used to|"
    r"became|become|turned|correct(?:ion)?|i meant|renamed|left|quit|started|since last|these days|"
    r"agora|mudei|ahora|ya no|cambi[eé]|jetzt|nicht mehr|umgezogen|maintenant|d[ée]m[ée]nag[ée]|plus)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|don'?t|doesn'?t|didn'?t|isn'?t|aren'?t|died|dead|gone|passed away|forget|stopped|without|"
    r"any ?more|longer|gave up|sold|broke up|ya no|nunca|murió|não|nunca mais|nicht|kein\w*|gestorben|ne .{1,20} (?:pas|plus)|mort)\b",
    re.IGNORECASE,
)
_ABOUT = frozenset("user users assistant usuario usuaria utilizador nutzer nutzerin utilisateur utente".split())
_YES = re.compile(
    r"^\W*(?:yes|yeah|yep|yup|sure|exactly|right|correct|indeed|that'?s right|of course|sim|s[ií]|oui|ja|genau|claro|はい|是的?|对)\b",
    re.IGNORECASE,
)
_SELF = {
    "name": re.compile(
        r"\b(?:my name|i'?m|i am|call me|name'?s|this is|meu nome|me chamo|me llamo|mi nombre|ich bin|ich hei(?:ß|ss)e|"
        r"je m'appelle|je suis|eu sou|soy|sou)\b|叫|名前|です",
        re.IGNORECASE,
    ),
    "age": re.compile(
        r"\b(?:i'?m|i am|my age|i (?:just )?turned|years old|tengo|tenho|ich bin|j'ai)\b.{0,20}\d|歳|岁", re.IGNORECASE
    ),
}  # fmt: skip
_LIVES = re.compile(
    r"\b(?:i|we|i'?m|i'?ve|we'?re|my|our)\b.{0,40}\b(?:live|lives|living|lived|home|based|moved?|moving|reside|settled|"
    r"relocated|from|flat|house|apartment|here in|staying)\b|\b(?:moro|vivo|wohne|habite|mudei|umgezogen)\b",
    re.IGNORECASE,
)


class Action(StrEnum):
    """What a proposed fact does to the profile."""

    ADD = "add"
    REPLACE = "replace"
    DELETE = "delete"
    IGNORE = "ignore"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A key and a value that a turn proposes."""

    key: str
    value: str
    turn: str
    said: str


def canonical_key(key: str) -> str:
    """A key in one spelling: ``Cat's name`` and ``cats_name`` become ``cat_name``."""
    plain = _KEY.sub("_", fold(key).replace("'s ", " ").replace("’s ", " ")).strip("_")[:60]
    plain = re.sub(r"^(?:users?|my|the|their|his|her)_(?=\w)", "", plain)
    plain = _ALIASES.get(plain, plain)
    plain = re.sub(r"s_(name|age|breed|color|colour|birthday)$", r"_\1", plain)
    return _ALIASES.get(plain, plain)


def is_placeholder(value: str) -> bool:
    """Whether a value says nothing, such as "unknown"."""
    plain = fold(value).strip(" .\"'")
    return not plain or plain.replace(" ", "_") in _PLACEHOLDERS or plain in _PLACEHOLDERS


def _there(word: str, bag: set[str]) -> bool:
    if word in bag:
        return True
    stem = word[: max(4, len(word) - 3)]
    return len(word) > 4 and any(other.startswith(stem) for other in bag)


def supports_text(claim: str, sources: Iterable[str], share: float) -> bool:
    """Whether at least ``share`` of a claim's words, and all its numbers and names,
    are in the sources. Names are words with a capital letter inside a sentence."""
    text = "\n".join(sources)
    bag = set(words(text))
    wanted = [w for w in words(claim) if w not in _ABOUT]
    if not wanted:
        return False
    names = {fold(w) for w in re.findall(r"(?<=[\w,;:] )[A-Z]\w+", claim)} - {"i", "the", "user", "assistant"}
    exact = {w for w in wanted if any(c.isdigit() for c in w)} | {w for n in names for w in words(n)}
    if any(not _there(w, bag) for w in exact):
        return False
    content = [w for w in content_words(claim) if w not in _ABOUT] or wanted
    return sum(_there(w, bag) for w in content) >= share * len(content)


def supported(value: str, said: str, before: str) -> bool:
    """Whether a fact's value is in the user's words, or in the assistant's question
    before them when the user says yes."""
    if supports_text(value, (said,), 0.75):
        return True
    return bool(_YES.match(said)) and "?" in before and supports_text(value, (said, before), 0.75)


def proposals(facts: Iterable[tuple[str, str]], turn: str, said: str, before: str) -> list[Proposal]:
    """The facts of a turn that may enter the profile, with canonical keys. A turn
    about somebody else ("She plays the cello") gives only facts whose key says whose."""
    wish = wish_of(said)
    kept = [Proposal("style", wish, turn, said)] if wish else list[Proposal]()
    for raw_key, value in facts:
        key, value = canonical_key(raw_key), value.strip()
        if not key or len(key) < 2:
            continue
        if fold(value) in _DELETIONS:
            if _NEGATION.search(said):
                kept.append(Proposal(key, "None", turn, said))
            continue
        if is_placeholder(value) or not supported(value, said, before):
            continue
        if key.endswith("_name") and value.isascii() and value.islower():
            key = canonical_key(key.removesuffix("_name"))
        if fold(key).replace("_", " ") == fold(value) or (wish and key == "style"):
            continue
        own = _SELF.get(key)
        if own is not None and not own.search(said) and len(said.split()) > _ANSWER_WORDS:
            continue
        if not _SOMEBODY_ELSE.search(said) or first_person(said) or "_" in key:
            kept.append(Proposal(key, value, turn, said))
    return _once(kept)


def _once(kept: list[Proposal]) -> list[Proposal]:
    """Each value of a turn once, under the best known of its keys; parts of another
    value ("orange" beside "orange tabby") left out."""
    whole = [fold(p.value) for p in kept]
    chosen: dict[str, Proposal] = {}
    for proposal in kept:
        value = fold(proposal.value)
        if any(value in other and value != other for other in whole) and proposal.key not in _SINGULAR:
            continue
        before = chosen.get(value)
        if before is None or (before.key not in _KNOWN and proposal.key in _KNOWN):
            chosen[value] = proposal
    return list(chosen.values())


def decide(proposal: Proposal, current: tuple[str, ...]) -> Action:
    """What the rules say; ASK where only a model can tell.

    Singular facts are replaced, additive ones gathered, "None" deletes, and what the
    profile has already changes nothing.
    """
    key, value, said = proposal.key, proposal.value, proposal.said
    if value == "None":
        return Action.DELETE if current else Action.IGNORE
    if any(fold(value) == fold(old) for old in current):
        return Action.IGNORE
    own = _SELF.get(key)
    if own is not None and not own.search(said) and (current or key == "age"):
        return Action.IGNORE
    if key == "location" and said.isascii() and not _LIVES.search(said) and current:
        return Action.ASK
    if not current:
        return Action.ADD
    if additive(key):
        return Action.ADD
    if key in _SINGULAR or _CHANGE.search(said):
        return Action.REPLACE
    if any(fold(old) in fold(value) for old in current):
        return Action.REPLACE
    return Action.ASK


def additive(key: str) -> bool:
    """Whether several values of a key are true at once."""
    base = key.split("_", maxsplit=1)[0]
    return (
        key in _ADDITIVE
        or base in {"favorite", "favourite", "likes", "dislikes"}
        or (key.endswith("s") and not key.endswith("ss") and key not in _SINGULAR)
    )
