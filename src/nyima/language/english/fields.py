"""Words of form fields in English, and of the sentences that fill them."""

from __future__ import annotations

import re

__all__ = [
    "AFFIX",
    "ATTRIBUTE",
    "FILLER",
    "HAPPENED",
    "NAMING",
    "NO",
    "ROLES",
    "SAME",
    "SELF",
    "THEIRS",
    "WEEKLY",
    "attribute_of",
    "is_person",
]

SELF = re.compile(
    r"\b(?:your|my|the|guest|patient|passenger|applicant|customer|policy ?holder|card ?holder|holder|person booking|you|"
    r"parent filling in this sheet|parent|own|traveller|member|user)(?:'s|’s)?(?= |$)",
    re.IGNORECASE,
)

ROLES = {
    "child": "daughter son child kid", "mother": "mother mum mom", "father": "father dad",
    "spouse": "spouse wife husband partner", "partner": "partner wife husband spouse", "sister": "sister",
    "brother": "brother", "second contact": "second emergency contact", "emergency contact": "emergency contact",
}  # fmt: skip

ATTRIBUTE = "(?:name|birth|date|phone|mobile|email|e mail|address|age|allerg|class|doctor|job|number)"

SAME = {
    "arriva": "destin", "arrive": "destin", "outbou": "depart", "leave": "depart", "fly": "flight", "luggag": "bag",
    "suitca": "bag", "valid": "expire", "expiry": "expire", "issued": "issue", "enter": "entry", "tall": "height",
    "petrol": "fuel", "diesel": "fuel", "litre": "engine", "kilome": "km", "driven": "drive", "town": "city",
    "street": "address", "prefer": "favour", "seat": "seat", "display": "call", "mail": "email", "marita": "marrie",
}  # fmt: skip

FILLER = frozenset(
    "please enter current known plan expect full number type first what where how should we you may agree name date year"
    " time day of per size make and".split()
) | {"planne", "expect", "prefer", "curren"}  # fmt: skip

THEIRS = re.compile(
    r"\b(employer|company|school|landlord|landlady|bank|doctor|gp|insurer|hotel|clinic|manager|supervisor|referee|vet|dentist)"
    r"(?:'s)? (?:e ?mail|phone|mobile|telephone|address|number|postcode)\b"
)

NAMING = re.compile(r"\bname\b")

AFFIX = re.compile(r"^(?:child|parent|mother|father|guest|patient|second_contact|home|contact)_")


NO = re.compile(r"\b(?:no|not|never|don'?t|doesn'?t|cannot|without|false|refuse)\b", re.IGNORECASE)


WEEKLY = re.compile(r"\b(?:every |on )?(monday|tuesday|wednesday|thursday|friday|saturday|sunday)s\b", re.IGNORECASE)

HAPPENED = re.compile(
    r"^(?:the user|they|we|i) (?:just |also |finally |recently |already )?"
    r"(?!(?:booked|scheduled|planned|arranged|reserved|moved|postponed|rescheduled|changed|agreed|decided|promised|signed)\b)"
    r"(?:\w+ed|went|had|did|was|were|saw|met|took|ran|flew|drove|ate|gave|left|spent|won|lost)\b",
    re.IGNORECASE,
)
"""A sentence that tells what the user did: its date is past, whatever year it was read as."""


_ATTRIBUTES = {
    "name": "full-name is-called called is-named named first-name is-called",
    "nickname": "go-by call-me",
    "surname": "last-name family-name",
    "age": "years-old turned turn be-years-old",
    "birthday": "birth-date date-of-birth born born-on born-in be-born be-born-on be-born-in",
    "gender": "sex pronouns",
    "location": "live live-in live-at live-on lives-in move move-to move-into home hometown based-in be-based-in reside-in residence settle-in relocate-to city city-of-residence town lives lives-at lives-on where-lives place-of-residence currently-lives home-is",
    "address": "home-address postal-address street-address be-at",
    "phone": "phone-number mobile mobile-number telephone mobile-phone-number",
    "email": "email-address e-mail mail-address",
    "postcode": "postal-code zip zip-code",
    "from": "be-from come-from nationality citizen-of be-citizen-of",
    "job": "occupation profession work-as works-as be-a become train-as role position job-title works-as-a occupation-is does-for-a-living",
    "employer": "work-at work-for works-at works-for work-in join company job-at works-at-the works-with",
    "school": "go-to-school study-at go-to-university attend-school",
    "partner": "husband wife spouse boyfriend girlfriend fiance fiancee married-to engaged-to date be-married-to be-engaged-to marry",
    "boss": "manager line-manager supervisor",
    "landlord": "landlady",
    "doctor": "gp physician",
    "friend": "best-friend be-friend-of colleague neighbour neighbor",
    "allergy": "allergic-to be-allergic-to allergies is-allergic-to has-allergy",
    "diet": "be-vegan be-vegetarian eat-only",
    "car": "drive drives car-model make-and-model",
    "own": "owns has have possess keep got",
    "pet": "dog cat",
    "departs": "leave leaves depart departs-at take-off fly-out set-off departure departure-date departure-time",
    "arrives": "arrive land arrival arrives-at get-in",
    "takes_place": "be start begin is-on is-at be-scheduled be-set-for move-to-date on at date time take-place happen kick-off start-at starts due be-due appointment is-scheduled-for when",
    "ends": "end finish",
    "expires": "valid-until be-valid run-out expire end-on be-valid-until",
    "travel": "travel-to fly-to go-on-trip visit flies-to",
    "booked": "book reserve order booked-hotel",
    "anniversary": "wedding-anniversary",
}  # fmt: skip
_BY_WORDS = {
    words.replace("-", " "): kind for kind, listed in reversed(_ATTRIBUTES.items()) for words in (kind, *listed.split())
}


def attribute_of(words: str) -> str:
    """Return what forms call an attribute, such as ``location`` for "lives in"; the words themselves, with
    underscores, where they have no name of their own."""
    plain = " ".join(words.lower().replace("_", " ").split())
    return _BY_WORDS.get(plain, plain.replace(" ", "_"))


_ROLES_OF_PEOPLE = frozenset(
    "boss manager friend mother father mum mom dad sister brother son daughter wife husband partner girlfriend boyfriend"
    " colleague neighbour neighbor teacher doctor aunt uncle cousin grandma grandmother grandfather grandpa kids parents"
    " therapist secretary client landlord landlady dentist vet student godson niece nephew ex".split()
)


def is_person(name: str) -> bool:
    """Return whether a name reads as somebody's: a role such as ``sister``, or one or two capitalised
    words."""
    names = name.rsplit("'s ", maxsplit=1)[-1].split()
    if names and (
        names[-1].lower() in _ROLES_OF_PEOPLE or (names[0].lower() in _ROLES_OF_PEOPLE and names[-1].istitle())
    ):
        return True
    return 0 < len(names) <= 2 and all(n[:1].isupper() and n.isalpha() for n in names)
