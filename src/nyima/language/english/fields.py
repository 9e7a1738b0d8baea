"""Words of form fields in English, and of the sentences that fill them."""

from __future__ import annotations

import re

__all__ = ["AFFIX", "ATTRIBUTE", "FILLER", "HAPPENED", "NAMING", "NO", "ROLES", "SAME", "SELF", "THEIRS", "WEEKLY"]

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
