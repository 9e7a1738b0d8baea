"""Sentences with "is": names, places, roles, ages, dates and what else something can be."""

from __future__ import annotations

import re
from dataclasses import replace

from nyima.language.english.phrases import ARTICLES, at_preposition, bare_noun, owned, value_of, without_moment
from nyima.language.english.statement import Statement
from nyima.language.relations import LABELS, label_of, single
from nyima.language.words import content_words

__all__ = ["WEEKDAY", "copula", "exists_there"]

_PEOPLE = frozenset({"Spouse", "Colleague/Friends", "Teacher/Student"})
_JOB = re.compile(
    r"(?:er|or|ist|ian|nurse|chef|cook|pilot|guard|clerk|judge|vet|student|monk|nun|maid|smith|ary|ect|man|woman|agent)s?$"
)
_NOT_A_JOB = frozenset(
    "mother father sister brother daughter grandmother grandfather stepmother stepfather smoker beginner member teenager"
    " eater drinker sleeper riser lover owner survivor believer foreigner newcomer vegetarian pescatarian pedestrian"
    " introvert swimmer runner cyclist".split()
)
_THINGS = frozenset({"car", "phone", "phone_model", "pet", "own"})
_COLOURS = frozenset(
    "red blue green yellow black white grey gray brown orange purple pink silver beige turquoise golden".split()
)
WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"


def exists_there(base: Statement, rest: str) -> list[Statement]:
    """``there is an Epson in the study now``."""
    thing, preposition, place = at_preposition(rest, {"in", "on", "at", "behind", "near", "under"})
    if preposition:
        return [replace(base, head=thing, label="location", tail=value_of(place), single=False)]
    return [replace(base, label="own", tail=value_of(rest))]


def copula(base: Statement, subject: str, rest: str) -> list[Statement]:
    """What a clause with a form of "be" states; ``rest`` stands behind the verb."""
    valid = re.search(r"(?:^|\b(?:that|which) (?:is|are) )(?:valid|good|open) (?:until|till|through)\b", rest)
    if valid and base.moment is not None:
        thing = subject if valid.start() == 0 else f"my {bare_noun(rest[: valid.start()])}"
        return [replace(base, head=thing, label="expires", tail=base.moment.name, single=True)]
    owner, noun = owned(subject)
    role = re.match(r"^(?:my|our) ([\w ]{2,30})$", value_of(rest))
    if role and noun is None and subject[:1].isupper():
        name = role[1].replace(" ", "_")
        return [replace(base, label=label_of(name), tail=subject, single=True)]
    first = rest.split(" ", 1)[0].lower()
    value = value_of(rest)
    called = re.match(r"^(?:called|named) (.+)$", value)
    if called:
        known = LABELS.get(label_of(noun.lower().replace(" ", "_"))) if noun is not None else None
        if known is not None and known.single and known.subclass in _PEOPLE:
            return [replace(base, head=owner, label=known.name, tail=called[1], single=True)]
        return [replace(base, head=subject, label="name", tail=called[1], single=True)]
    if re.match(r"^born\b", rest):
        return _born(base, subject, rest)
    citizen = re.match(r"^(?:an? )?([A-Z]\w+) (?:citizen|national)\b", value)
    if citizen:
        return [replace(base, head=subject, label="from", tail=citizen[1], single=True)]
    age = re.match(r"^(?:about |almost )?(\d{1,3})(?: years? old)?$", value)
    if age and (subject.lower() in {"user", "he", "she"} or "old" in rest):
        return [replace(base, head=subject, label="age", tail=age[1], single=True)]
    yearly = noun is not None and re.search(r"birthday|anniversary", noun)
    if yearly and noun is not None and owner:
        label = "birthday" if "birthday" in noun else "anniversary"
        return [replace(base, head=owner, label=label, tail=re.sub(r"^(?:on|the) ", "", value), single=True)]
    if base.moment is not None and not without_moment(rest, base.moment):
        return [replace(base, head=subject, label="takes_place", tail=base.moment.name, single=True, event=True)]
    if first in {"in", "at", "on", "near", "behind", "under", "with", "from", "off", "by"}:
        return _placed(base, subject, first, value)
    prepositional = re.match(r"^(\w+) (to|in|of|for|with|on|from|at|by) (.+)$", value)
    if prepositional and prepositional[1].lower() not in ARTICLES and not prepositional[1][0].isupper():
        label = label_of(f"be_{prepositional[1].lower()}_{prepositional[2]}")
        return [replace(base, head=subject, label=label, tail=value_of(prepositional[3]), single=single(label))]
    if owner and noun is not None and not re.search(r"^(?:not|very|so|quite|too) ", value):
        return _attribute(base, owner, noun, subject, value)
    bare = re.sub(r"^(?:a|an|the) ", "", value)
    label = "is"
    if (
        subject == "user"
        and first in {"a", "an"}
        and not bare[:1].isupper()
        and bare.rsplit(" ", 1)[-1] not in _NOT_A_JOB
        and _JOB.search(bare.split(" ")[-1] if " at " not in bare else bare.split(" at ")[0])
    ):
        label = "job"
    elif bare.lower() in {"vegan", "vegetarian", "pescatarian"}:
        label = "diet"
    return [replace(base, head=subject, label=label, tail=bare, single=label != "is" or subject != "user")]


def _attribute(base: Statement, owner: str, noun: str, subject: str, value: str) -> list[Statement]:
    """``my doctor is Dr. Weber``, ``my phone is a Pixel``: the owner's doctor, the owner's phone."""
    name = noun.lower().replace(" ", "_").replace("-", "_")
    label = label_of(name)
    if label == "phone" and sum(c.isdigit() for c in value) < 5:
        label = "phone_model"
    adjective = (
        value.islower()
        and " " not in value
        and not any(c.isdigit() for c in value)
        and (label in _THINGS or (label == name and name not in LABELS))
    )
    if adjective and value in _COLOURS and name not in {"colour", "color"} and not name.startswith("favo"):
        return [replace(base, head=subject, label="colour", tail=value, single=True)]
    if adjective and name not in {"diet", "colour", "color"} and not name.startswith(("favourite", "favorite")):
        return [replace(base, head=subject, label="is", tail=value, single=True)]
    return [replace(base, head=owner, label=label, tail=re.sub(r"^(?:a|an) ", "", value), single=True)]


def _born(base: Statement, subject: str, rest: str) -> list[Statement]:
    if base.moment is not None and base.moment.dated:
        return [replace(base, head=subject, label="birthday", tail=base.moment.name, single=True)]
    place = re.match(r"^born in (.+)$", value_of(rest))
    return [replace(base, head=subject, label="birth_place", tail=place[1], single=True)] if place else []


def _placed(base: Statement, subject: str, preposition: str, value: str) -> list[Statement]:
    tail = value.split(" ", 1)[1] if " " in value else value
    if re.match(WEEKDAY, tail.lower()) and base.moment is None:
        return [replace(base, head=subject, label="takes_place", tail=tail, single=True)]
    if re.match(r"^(?:my|our) (?:home|house|flat|apartment)$", subject, re.IGNORECASE):
        return [replace(base, head="user", label="location", tail=tail, single=True)]
    diet = re.match(r"^(?:a|an|the) ([\w-]+) diet$", tail)
    if diet:
        return [replace(base, head=subject, label="diet", tail=diet[1], single=True)]
    if subject == "user" or preposition not in {"in", "at", "on", "near", "behind", "under"}:
        label = label_of(f"be_{preposition}") if preposition == "from" else f"be_{preposition}"
        return [replace(base, head=subject, label=label, tail=tail, single=preposition == "from")]
    if base.moment is not None and base.moment.dated and len(content_words(without_moment(tail, base.moment))) == 0:
        return [replace(base, head=subject, label="takes_place", tail=base.moment.name, single=True, event=True)]
    made = [
        replace(
            base, head=subject, label="location", tail=value_of(without_moment(tail, base.moment)) or tail, single=True
        )
    ]
    if base.moment is not None and base.moment.dated:
        made.append(replace(base, head=subject, label="takes_place", tail=base.moment.name, single=True, event=True))
    return made
