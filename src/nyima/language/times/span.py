"""A span of local time that a phrase names, and the calendar that it is counted on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum

from nyima.domain.records import Interval

__all__ = ["Bound", "Days", "Hours", "TimeSpan", "month_of", "on_day", "season_of", "shifted", "week_of", "year_of"]

_LONG_AGO = datetime(1, 1, 2, tzinfo=UTC)


class Bound(StrEnum):
    """How a span lies to what its phrase names: it is that, or it begins or ends there."""

    AT = "at"
    SINCE = "since"
    UNTIL = "until"
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Days:
    """Whole days from ``first`` up to, not including, ``last``. ``about`` is how many days
    earlier or later may be meant as well ("two weeks ago"); ``single`` tells a day from a week."""

    first: date
    last: date
    about: int = 0

    @property
    def single(self) -> bool:
        """Return whether it is one day."""
        return self.last - self.first == timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Hours:
    """A time of day: minutes after midnight, the end not included (beyond 1,440 it is on the next
    day), equal for a point in time. ``half`` tells that morning or afternoon is said."""

    start: int
    end: int
    half: bool = False


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """What a phrase of time means: wall times in the user's zone, without a time zone of their own.

    ``start`` and ``end`` (not included) are what the phrase names; ``bound`` says whether the span
    is that, begins there or ends there. ``clock`` tells whether a time of day is said, ``dated``
    whether a day is. ``about`` is how far off may be meant as well. ``begin`` and ``stop`` are
    where the phrase stands in its text.
    """

    start: datetime
    end: datetime
    bound: Bound = Bound.AT
    clock: bool = False
    dated: bool = True
    about: timedelta = timedelta()
    begin: int = 0
    stop: int = 0

    def limits(self, at: datetime, zone: tzinfo) -> Interval:
        """The whole span as aware times in UTC: "since Tuesday" lasts until ``at``, "until the 5th"
        begins now or, where that is over, long ago. A wall time that a clock change skips is read
        as before the change."""
        since, until = _aware(self.start, zone), _aware(self.end, zone)
        match self.bound:
            case Bound.SINCE:
                return Interval(since, max(at, until)) if since <= at else Interval(since, None)
            case Bound.UNTIL:
                return Interval(at if since > at else _LONG_AGO, until)
            case Bound.BEFORE:
                return Interval(at if since > at else _LONG_AGO, since)
            case Bound.AFTER:
                return Interval(until, None)
        return Interval(since, until)


def _aware(wall: datetime, zone: tzinfo) -> datetime:
    try:
        return wall.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:
        return wall.replace(tzinfo=UTC)


def month_of(day: date, step: int = 0) -> Days:
    """The month of a day, or one some months later or earlier."""
    first = _month_start(day, step)
    return Days(first, _month_start(first, 1))


def _month_start(day: date, step: int) -> date:
    index = day.year * 12 + day.month - 1 + step
    return date(index // 12, index % 12 + 1, 1)


def year_of(year: int, years: int = 1) -> Days:
    """A year, or several from that one on."""
    return Days(date(year, 1, 1), date(year + years, 1, 1))


def week_of(day: date, step: int = 0) -> Days:
    """The week (Monday to Sunday) of a day, or one some weeks later or earlier."""
    monday = day - timedelta(days=day.weekday()) + timedelta(weeks=step)
    return Days(monday, monday + timedelta(weeks=1))


def season_of(year: int, month: int) -> Days:
    """The three months from a season's first month on."""
    first = date(year, month, 1)
    return Days(first, _month_start(first, 3))


def shifted(day: date, count: int, unit: str) -> Days:
    """What lies some units before or after a day: a day, the day of another week, a month, a year."""
    if unit == "day":
        first = day + timedelta(days=count)
        return Days(first, first + timedelta(days=1))
    if unit == "week":
        first = day + timedelta(weeks=count)
        return Days(first, first + timedelta(days=1), about=3)
    if unit == "month":
        return month_of(day, count)
    return year_of(day.year + count * (10 if unit == "decade" else 1))


def on_day(day: date, hours: Hours) -> tuple[datetime, datetime]:
    """A time of day on a day."""
    midnight = datetime.combine(day, time())
    return midnight + timedelta(minutes=hours.start), midnight + timedelta(minutes=hours.end)
