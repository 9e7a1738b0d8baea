"""A moment as records name it: a day, days or a time of day, as canonical text."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from nyima.domain.records import Interval
from nyima.language.times.grammar import find_time, find_times
from nyima.language.times.span import Bound
from nyima.language.times.vocabulary import MONTHS

__all__ = ["Moment", "asked_period", "find_moment", "read_moment", "without_times", "yearly_of"]

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_MOST_TEXT = 600
_ENDING = re.compile(
    r"\b(?:expires?|ends?|valid|good|open|runs?|lasts?)(?: on| until| till| through)?\s*$", re.IGNORECASE
)
_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Moment:
    """Local days and times. ``start`` and ``end`` (excluded) are naive wall times in the
    user's zone; ``clock`` tells whether a time of day is known, ``dated`` whether a day is;
    ``until`` that the text names an end."""

    start: datetime
    end: datetime
    clock: bool = False
    dated: bool = True
    until: bool = False

    @property
    def name(self) -> str:
        """The canonical text: ``2026-05-12``, ``2026-05-12 01:40``, ``01:40`` or two with a
        slash, the last day included."""
        if not self.dated:
            return f"{self.start:%H:%M}"
        if self.clock:
            first = f"{self.start:%Y-%m-%d %H:%M}"
            return first if self.end <= self.start + timedelta(minutes=1) else f"{first}/{self.end:%Y-%m-%d %H:%M}"
        last = self.end - timedelta(days=1)
        first = f"{self.start:%Y-%m-%d}"
        return first if last.date() <= self.start.date() else f"{first}/{last:%Y-%m-%d}"

    def interval(self, zone: tzinfo) -> Interval:
        """The same as aware times in UTC; wall times that a clock change skips are read as
        before the change."""
        return Interval(self.start.replace(tzinfo=zone).astimezone(UTC), self.end.replace(tzinfo=zone).astimezone(UTC))


_NAME = re.compile(r"^(?:(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d))?)(?:/(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d))?)?$")


def read_moment(name: str) -> Moment | None:
    """The moment that a canonical text names, None for any other text."""
    match = _NAME.match(name)
    if match is None:
        if re.fullmatch(r"[0-2]\d:[0-5]\d", name) and name < "24:00":
            start = datetime.combine(date.min, time.fromisoformat(name))
            return Moment(start, start, clock=True, dated=False)
        return None
    try:
        start = datetime.fromisoformat(f"{match[1]} {match[2] or '00:00'}")
        last = datetime.fromisoformat(f"{match[3]} {match[4] or '00:00'}") if match[3] else start
        return Moment(start, last if match[2] else last + timedelta(days=1), clock=bool(match[2]))
    except (ValueError, OverflowError):
        return None


def yearly_of(text: str) -> tuple[int, int] | None:
    """Month and day of a date that comes every year, whatever year stands with it."""
    moment = read_moment(text)
    if moment is not None and moment.dated:
        return moment.start.month, moment.start.day
    for match in re.finditer(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b", text.lower()):
        if _exists(2024, MONTHS[match[2]], int(match[1])):
            return MONTHS[match[2]], int(match[1])
    for match in re.finditer(rf"\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b", text.lower()):
        if _exists(2024, MONTHS[match[1]], int(match[2])):
            return MONTHS[match[1]], int(match[2])
    return None


def _exists(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def find_moment(text: str, at: datetime, zone: tzinfo, *, ahead: bool | None = None) -> Moment | None:
    """Return when the text says that something is, or None. ``ahead`` says whether a date without
    a year lies ahead; None reads it off the tense."""
    text = text[:_MOST_TEXT]
    found = find_time(text, at, zone, ahead=ahead)
    if found is None:
        return None
    until = found.bound in {Bound.UNTIL, Bound.BEFORE} or _ENDING.search(text[: found.begin]) is not None
    start, end = found.start, found.end
    if not found.dated:
        start = end = datetime.combine(date.min, start.time())
    return Moment(start, end, found.clock, found.dated, until)


def asked_period(text: str, at: datetime, zone: tzinfo) -> Interval | None:
    """Return the period that a question asks about, as wide as its words are vague; None where it
    names none."""
    found = find_time(text, at, zone, asked=True)
    if found is None:
        return None
    whole = found.limits(at, zone)
    since, until = whole.since, whole.until
    with contextlib.suppress(OverflowError):  # at the ends of the calendar there is nothing beside
        since -= found.about
    if until is not None:
        until = max(until, whole.since + timedelta(minutes=1))
        with contextlib.suppress(OverflowError):
            until += found.about
    return Interval(since, until)


def without_times(text: str) -> str:
    """Return the text without its phrases of time and the prepositions before them."""
    kept, place = list[str](), 0
    for span in find_times(text, _ANY_TIME, UTC):
        kept.append(text[place : span.begin])
        place = span.stop
    return " ".join("".join([*(piece + " " for piece in kept), text[place:]]).split()).strip(" ,")
