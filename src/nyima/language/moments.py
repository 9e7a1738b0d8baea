"""When something that was said happens: dates, times, parts of days and ranges, made
absolute against the turn's time in the user's zone.

English, and ISO dates in any language. A date without a year is the next one, unless the
sentence tells of the past. What does not exist (31 February, 25:00) is no moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from nyima.domain.records import Interval
from nyima.language.periods import DAYS, MONTHS, NUMBERS

__all__ = ["Moment", "find_moment", "read_moment", "yearly_of"]

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = "|".join(DAYS)
_COUNT = r"(\d{1,3}|" + "|".join(sorted(NUMBERS, key=len, reverse=True)) + "|seven|eight|nine|ten)"
_WORDED = {**NUMBERS, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "last": -1}
_PARTS = {
    "early morning": (5, 8), "morning": (6, 12), "afternoon": (12, 18), "evening": (18, 23), "night": (20, 24),
    "noon": (12, 12), "midday": (12, 12), "midnight": (0, 0), "lunchtime": (12, 14),
}  # fmt: skip
_PAST = re.compile(
    r"\b(?:was|were|went|had|did|met|flew|took|saw|bought|got|moved|started|visited|ago|last|yesterday|ended|left|came|"
    r"been|born|graduated|married|since|used to)\b",
    re.IGNORECASE,
)
_AHEAD = re.compile(r"\b(?:will|going to|is on|are on|leaves|departs|starts|until|next|booked|by)\b", re.IGNORECASE)


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


@dataclass(frozen=True, slots=True)
class _Now:
    today: date
    past: bool

    def nearest(self, month: int, day: int, year: str | None) -> date | None:
        """The date of that name: of the year that is given, else the next or the last one."""
        if year:
            return _exists(int(year), month, day)
        every = [d for y in range(-8, 9) if (d := _exists(self.today.year + y, month, day))]
        ahead = min((d for d in every if d >= self.today), default=None)
        behind = max((d for d in every if d <= self.today), default=None)
        if ahead is None or behind is None or not self.past:
            return ahead
        return ahead if (ahead - self.today) * 3 < self.today - behind else behind


_Days = tuple[date, int] | None


def _numbered(now: _Now, m: re.Match[str]) -> _Days:
    found = now.nearest(MONTHS[m[2]], int(m[1]), m[3])
    return (found, 1) if found else None


def _named(now: _Now, m: re.Match[str]) -> _Days:
    found = now.nearest(MONTHS[m[1]], int(m[2]), m[3])
    return (found, 1) if found else None


def _iso(now: _Now, m: re.Match[str]) -> _Days:
    del now
    found = _exists(int(m[1]), int(m[2]), int(m[3]))
    return (found, 1) if found else None


def _ordinal_day(now: _Now, m: re.Match[str]) -> _Days:
    first = now.today.replace(day=1)
    for month in range(13):
        start = _month_start(first, -month if now.past else month)
        found = _exists(start.year, start.month, int(m[1]))
        if found and (found <= now.today if now.past else found >= now.today):
            return found, 1
    return None


def _month_start(day: date, step: int) -> date:
    index = day.year * 12 + day.month - 1 + step
    return date(index // 12, index % 12 + 1, 1)


def _weekday(now: _Now, m: re.Match[str]) -> _Days:
    wanted = DAYS[m[2]]
    if (m[1] or "").startswith("last") or (now.past and not m[1]):
        return now.today - timedelta(days=(now.today.weekday() - wanted) % 7 or 7), 1
    ahead = (wanted - now.today.weekday()) % 7
    return now.today + timedelta(days=ahead or (0 if (m[1] or "").startswith("this") else 7)), 1


def _in_units(now: _Now, m: re.Match[str]) -> _Days:
    count = _WORDED.get(m[1]) or int(m[1])
    return _shifted(now.today, count, m[2])


def _units_ago(now: _Now, m: re.Match[str]) -> _Days:
    count = _WORDED.get(m[1]) or int(m[1])
    return _shifted(now.today, -count, m[2])


def _shifted(today: date, count: int, unit: str) -> _Days:
    if unit in {"day", "week"}:
        return today + timedelta(days=count * (1 if unit == "day" else 7)), 1
    start = _month_start(today, count * (1 if unit == "month" else 12))
    return start, (_month_start(start, 1 if unit == "month" else 12) - start).days


def _relative(now: _Now, m: re.Match[str]) -> _Days:
    step = {"last": -1, "past": -1, "this": 0, "next": 1, "coming": 0}[m[1]]
    monday = now.today - timedelta(days=now.today.weekday())
    if m[2] == "week":
        return monday + timedelta(days=7 * step), 7
    if m[2] == "weekend":
        return monday + timedelta(days=5 + 7 * step), 2
    if m[2] in MONTHS:
        start = now.nearest(MONTHS[m[2]], 1, None) or now.today
        return start, (_month_start(start, 1) - start).days
    start = _month_start(now.today, step) if m[2] == "month" else date(now.today.year + step, 1, 1)
    return start, (_month_start(start, 1 if m[2] == "month" else 12) - start).days


def _week_of(now: _Now, m: re.Match[str]) -> _Days:
    start = _whole_month(now, m[2], m[3])
    number = _ORDINALS[m[1]]
    if number < 0:
        end = _month_start(start, 1)
        return end - timedelta(days=7), 7
    return start + timedelta(days=7 * (number - 1)), 7


def _part_of_month(now: _Now, m: re.Match[str]) -> _Days:
    start = _whole_month(now, m[2], m[3])
    length = (_month_start(start, 1) - start).days
    first, days = {"early": (0, 10), "beginning": (0, 10), "mid": (10, 10), "middle": (10, 10)}.get(m[1], (20, 0))
    return start + timedelta(days=first), days or length - 20


def _whole_month(now: _Now, month: str, year: str | None) -> date:
    number = MONTHS[month]
    if year:
        return date(max(1, int(year)), number, 1)
    ahead = now.today.year + (number < now.today.month and not now.past)
    return date(ahead - (number > now.today.month and now.past), number, 1)


def _month_alone(now: _Now, m: re.Match[str]) -> _Days:
    start = _whole_month(now, m[1], m[2])
    return start, (_month_start(start, 1) - start).days


def _year_alone(now: _Now, m: re.Match[str]) -> _Days:
    del now
    return date(int(m[1]), 1, 1), (date(int(m[1]) + 1, 1, 1) - date(int(m[1]), 1, 1)).days


def _next_months_day(now: _Now, m: re.Match[str]) -> _Days:
    start = _month_start(now.today, 1)
    found = _exists(start.year, start.month, _ORDINALS.get(m[1]) or int(m[1]))
    return (found, 1) if found else None


_RULES: tuple[tuple[re.Pattern[str], Callable[[_Now, re.Match[str]], _Days]], ...] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r"\b(\d{4})-(\d\d)-(\d\d)\b", _iso),
        (rf"\b(?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b\.?,?(?: (\d{{4}}))?", _numbered),
        (rf"\b({_MONTH})\.? (?:the )?(\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? (\d{{4}})\b)?", _named),
        (rf"\bthe (first|second|third|fourth|last) week (?:of|in) ({_MONTH})\b(?: (\d{{4}}))?", _week_of),
        (rf"\b(early|beginning|mid|middle|late|end)(?: of|-| in)? ({_MONTH})\b(?: (\d{{4}}))?", _part_of_month),
        (r"\bnext month's (first|second|third|fourth|fifth|\d{1,2})\b", _next_months_day),
        (rf"\b(?:on )?(last |this |next |coming )?({_DAY})\b", _weekday),
        (r"\b(?:on )?the (\d{1,2})(?:st|nd|rd|th)\b", _ordinal_day),
        (rf"\b(last|this|next|coming) (week|weekend|month|year|{_MONTH})\b", _relative),
        (rf"\bin {_COUNT} (day|week|month|year)s?\b", _in_units),
        (rf"\b{_COUNT} (day|week|month|year)s? from now\b", _in_units),
        (rf"\b{_COUNT} (day|week|month|year)s? ago\b", _units_ago),
        (r"\bthe day after tomorrow\b", lambda n, _: (n.today + timedelta(days=2), 1)),
        (r"\bthe day before yesterday\b", lambda n, _: (n.today - timedelta(days=2), 1)),
        (r"\btomorrow\b", lambda n, _: (n.today + timedelta(days=1), 1)),
        (r"\byesterday\b", lambda n, _: (n.today - timedelta(days=1), 1)),
        (r"\b(?:today|tonight|this (?=morning|afternoon|evening))", lambda n, _: (n.today, 1)),
        (rf"\b(?:in|during|since|by|until|till|from|to) ({_MONTH})\b(?: (\d{{4}}))?", _month_alone),
        (rf"\b({_MONTH}) (\d{{4}})\b", _month_alone),
        (r"\b(?:in|since|during|by|until) ((?:19|20)\d\d)\b", _year_alone),
    )
)
_CLOCK = re.compile(
    r"\b(?:at |from |by |until |till |to )?(\d{1,2})[:.h](\d\d)(?:\s?([ap])\.?m\b\.?)?(?!\d)|\b(?:at |from |until |to )?(\d{1,2})\s?([ap])\.?m\b\.?"
    r"|\b(?:at|from|until) (\d{1,2})(?: o'?clock)?(?= |$|[.,;!?])(?! (?:%|per|percent|euros?|years?|months?|days?|weeks?|km|people)\b)",
    re.IGNORECASE,
)
_PART = re.compile(r"\b(?:in the |at |the |this |on )?(" + "|".join(sorted(_PARTS, key=len, reverse=True)) + r")\b")
_UNTIL = re.compile(
    r"\b(?:(?:valid|good|open|runs?|lasts?|here|staying|stays?|only)? ?(?:until|till|through|up to)|expires?(?: on)?|ends?(?: on)?|by)\s*$"
)


def _days_in(text: str, now: _Now) -> Iterator[tuple[int, int, int, date, int]]:
    taken: list[tuple[int, int]] = []
    for order, (pattern, rule) in enumerate(_RULES):
        for match in pattern.finditer(text):
            if any(a < match.end() and match.start() < b for a, b in taken):
                continue
            try:
                found = rule(now, match)
            except (ValueError, OverflowError):
                found = None
            taken.append((match.start(), match.end()))
            if found is not None:
                yield match.start(), match.end(), order, found[0], found[1]


def _clocks_in(text: str) -> Iterator[tuple[int, int, time, time | None]]:
    for match in _CLOCK.finditer(text):
        hour = int(match[1] or match[4] or match[6])
        minute, half = int(match[2] or 0), (match[3] or match[5] or "").lower()
        if half and not 1 <= hour <= 12:
            continue
        hour = hour % 12 + 12 * (half == "p") if half else hour
        if hour > 23 or minute > 59:
            continue
        yield match.start(), match.end(), time(hour, minute), None
    for match in _PART.finditer(text):
        first, last = _PARTS[match[1]]
        yield match.start(), match.end(), time(first), time(last % 24) if last != first else None
    for match in re.finditer(r"\btonight\b", text):
        yield match.start(), match.end(), time(20), time(0)


def find_moment(text: str, at: datetime, zone: tzinfo, *, ahead: bool | None = None) -> Moment | None:
    """When the text says that something is, or None. ``ahead`` tells whether a date without
    a year lies ahead; None reads it off the tense."""
    try:
        return _find(text[:600].lower(), at, zone, ahead)
    except OverflowError:  # a day at the end of the calendar has no day after it
        return None


def _find(lowered: str, at: datetime, zone: tzinfo, ahead: bool | None) -> Moment | None:
    past = bool(_PAST.search(lowered)) and not _AHEAD.search(lowered) if ahead is None else not ahead
    now = _Now(at.astimezone(zone).date(), past)
    days = sorted(_days_in(lowered, now))
    clocks = sorted(
        (c for c in _clocks_in(lowered) if not any(a < c[1] and c[0] < b for a, b, *_ in days)),
        key=lambda c: (c[3] is not None, c[0]),
    )
    if not days and not clocks:
        return None
    until = bool(
        _UNTIL.search(lowered[: (days or clocks)[0][0]])
        or re.match(r"(?:by|until|till) ", lowered[(days or clocks)[0][0] :])
    )
    if not days:
        start = datetime.combine(date.min, clocks[0][2])
        return Moment(start, start, clock=True, dated=False)
    first, length = days[0][3], days[0][4]
    start = datetime.combine(first, time())
    end = start + timedelta(days=length)
    if len(days) > 1 and re.search(
        r"^\s*(?:to|until|till|-|–|and|through)\s*(?:the )?$", lowered[days[0][1] : days[1][0]]
    ):
        later = days[1][3]
        end = datetime.combine(later, time()) + timedelta(days=days[1][4])
        if end > start:
            return Moment(start, end)
        return Moment(start, start + timedelta(days=length))
    return _timed(Moment(start, end, until=until), length, clocks)


def _timed(whole: Moment, length: int, clocks: list[tuple[int, int, time, time | None]]) -> Moment:
    """A day with its time of day."""
    if length != 1 or not clocks:
        return whole
    exact = [c for c in clocks if c[3] is None]
    part = next((c for c in clocks if c[3] is not None), None)
    if exact:
        clock = exact[0][2]
        if part is not None and part[2] >= time(12) and time(1) <= clock < time(12) and clock.hour < part[2].hour:
            clock = clock.replace(hour=clock.hour + 12)
        start = datetime.combine(whole.start.date(), clock)
        end = start
        if len(exact) > 1 and exact[1][2] > clock:
            end = datetime.combine(whole.start.date(), exact[1][2])
        return replace(whole, start=start, end=end, clock=True)
    assert part is not None
    start = datetime.combine(whole.start.date(), part[2])
    close = part[3] or part[2]
    end = datetime.combine(whole.start.date(), close)
    return replace(whole, start=start, end=end if end >= start else end + timedelta(days=1), clock=True)
