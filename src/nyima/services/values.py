"""A value of the type that a field asks for, out of what is known; None when it does not
say one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TypeAlias

from nyima.language.english.fields import NO
from nyima.language.times.moment import Moment, find_moment, read_moment
from nyima.language.words import fold, stems
from nyima.services.known import Stated

__all__ = ["Field", "FieldValue", "value_for"]

FieldValue: TypeAlias = str | int | float | bool | None
"""What a form takes: None where nothing is known."""

_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE = re.compile(r"[+(]?\d[\d ()/-]{5,}\d")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)?(?![\w-]*\d)")


@dataclass(frozen=True, slots=True)
class Field:
    """One field: ``type`` is string, integer, number or boolean; ``options`` the values
    that it takes, when they are given."""

    name: str
    title: str = ""
    about: str = ""
    type: str = "string"
    format: str = ""
    pattern: str = ""
    options: tuple[FieldValue, ...] = ()
    least: float | None = None
    most: float | None = None
    longest: int | None = None
    required: bool = False

    @property
    def words(self) -> str:
        """All that the form says of it."""
        return " ".join((self.name.replace("_", " ").replace(".", " "), self.title, self.about))


def value_for(field: Field, item: Stated, at: datetime, zone: tzinfo) -> FieldValue:
    """The value for a field, of its type."""
    tail = re.sub(r"^(?:user's|my) ", "", item.tail)
    if field.options:
        return _option(field, item, tail)
    if field.type == "boolean":
        return _yes_or_no(item, tail)
    if field.type in {"integer", "number"}:
        return _number(field, item, tail)
    if field.format in {"date", "date-time"}:
        moment = _moment(item, at, zone)
        return None if moment is None else _dated(field, moment)
    if field.format == "time" or re.search(r"\btime\b", fold(field.title)):
        moment = _moment(item, at, zone)
        return f"{moment.start:%H:%M}" if moment is not None and moment.clock else None
    if field.format == "email":
        found = _EMAIL.search(tail) or _EMAIL.search(item.note)
        return found[0].rstrip(".") if found else None
    if re.search(r"\b(?:phone|mobile|telephone)\b", fold(field.words)) or item.label == "phone":
        found = _PHONE.search(tail) or _PHONE.search(item.note)
        return found[0].strip() if found else None
    if field.pattern:
        return _matching(field.pattern, (tail, item.note))
    return None if read_moment(tail) is not None or len(tail) > 200 else tail


def _option(field: Field, item: Stated, tail: str) -> FieldValue:
    for text in (tail, item.note):
        there = stems(text)
        exact = [o for o in field.options if fold(str(o)) == fold(text)]
        said = [o for o in field.options if stems(str(o)) and stems(str(o)) <= there]
        signs = [
            o for o in field.options if not stems(str(o)) - {fold(str(o))[:1]} and str(o) in re.split(r"[\s,.]+", text)
        ]
        found = exact or [o for o in field.options if str(o) in re.split(r"\s+|[,.](?:\s|$)", text)] or said or signs
        if len(found) == 1:
            return found[0]
    return None


def _yes_or_no(item: Stated, tail: str) -> bool | None:
    plain = fold(tail)
    if plain in {"yes", "true"} or plain in {"no", "false"}:
        return plain in {"yes", "true"}
    return not NO.search(item.note)


def _number(field: Field, item: Stated, tail: str) -> int | float | None:
    moment = read_moment(tail)
    if moment is not None and re.search(r"\byear\b", fold(field.words)):
        return moment.start.year
    for text in (tail, item.note):
        plain = re.sub(r"(?<=\d)[, ](?=\d{3}(?!\d))", "", text)
        for found in _NUMBER.finditer(plain):
            value = float(found[0].replace(",", "."))
            if field.type == "number" or value.is_integer():
                return value if field.type == "number" else int(value)
    return None


def _moment(item: Stated, at: datetime, zone: tzinfo) -> Moment | None:
    """The moment that an item names with its year; a day without one is not made up."""
    named = read_moment(item.tail)
    if named is not None:
        return named if named.dated or named.clock else None
    for text in (item.tail, item.note):
        if re.search(r"\b(?:19|20)\d\d\b", text):
            found = find_moment(text, at, zone)
            if found is not None and found.dated:
                return found
    return None


def _dated(field: Field, moment: Moment) -> str | None:
    if not moment.dated or (moment.end - moment.start).days > 1:
        return None
    if field.format == "date":
        return f"{moment.start:%Y-%m-%d}"
    return f"{moment.start:%Y-%m-%dT%H:%M:%S}" if moment.clock else None


def _matching(pattern: str, texts: tuple[str, ...]) -> str | None:
    inner = pattern.removeprefix("^").removesuffix("$")
    for text in texts:
        found = re.search(rf"(?<![\w-])(?:{inner})(?![\w-])", text)
        if found:
            return found[0]
    return None
