"""Time expressions in a query, resolved against the clock to an interval.

English only, by a small grammar; an expression that it does not know is no filter at
all, so other languages lose nothing. Used as a soft filter: records of the period gain,
others stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from nyima.domain.records import Interval

__all__ = ["DAYS", "MONTHS", "NUMBERS", "period_of"]

MONTHS = {
    name: number
    for number, names in enumerate(
        "jan january|feb february|mar march|apr april|may|jun june|jul july|aug august|"
        "sep sept september|oct october|nov november|dec december".split("|"),
        1,
    )
    for name in names.split()
}
DAYS = {d: i for i, d in enumerate("monday tuesday wednesday thursday friday saturday sunday".split())}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "a couple of": 2,
    "three": 3,
    "a few": 3,
    "four": 4,
    "five": 5,
    "six": 6,
}
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_COUNT = r"(\d{1,3}|" + "|".join(sorted(NUMBERS, key=len, reverse=True)) + ")"


def _midnight(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def _days(start: datetime, count: int) -> Interval:
    return Interval(start, start + timedelta(days=count))


def _month(at: datetime, year: int, month: int) -> Interval:
    start = _midnight(at).replace(year=year, month=month, day=1)
    return Interval(start, (start + timedelta(days=32)).replace(day=1))


def _step_months(at: datetime, count: int) -> tuple[int, int]:
    index = at.year * 12 + at.month - 1 + count
    return index // 12, index % 12 + 1


def _exact(at: datetime, m: re.Match[str]) -> Interval | None:
    try:
        return _days(_midnight(at).replace(year=int(m[1]), month=int(m[2]), day=int(m[3])), 1)
    except ValueError:
        return None


def _named_day(at: datetime, day: str, month: str, year: str | None) -> Interval | None:
    try:
        start = _midnight(at).replace(year=int(year or at.year), month=MONTHS[month], day=int(day))
    except ValueError:
        return None
    if year is None and start > at:
        start = start.replace(year=start.year - 1) if (start.month, start.day) != (2, 29) else start
    return _days(start, 1)


def _named_month(at: datetime, m: re.Match[str]) -> Interval:
    month = MONTHS[m[1]]
    year = int(m[2]) if m[2] else at.year - (month > at.month)
    return _month(at, year, month)


def _ago(at: datetime, m: re.Match[str]) -> Interval:
    count = NUMBERS.get(m[1]) or int(m[1])
    today = _midnight(at)
    if m[2] == "day":
        return _days(today - timedelta(days=count), 1)
    if m[2] == "week":
        return _days(today - timedelta(days=7 * count + 3), 7)
    if m[2] == "month":
        return _month(at, *_step_months(at, -count))
    return Interval(today.replace(year=max(1, at.year - count), month=1, day=1), _year_end(at, at.year - count))


def _year_end(at: datetime, year: int) -> datetime:
    return _midnight(at).replace(year=max(1, year) + 1, month=1, day=1)


def _last(at: datetime, m: re.Match[str]) -> Interval:
    today = _midnight(at)
    which, unit = m[1], m[2]
    back = {"last": 1, "past": 1, "previous": 1, "this": 0, "next": -1}[which]
    if unit in DAYS:
        gap = (today.weekday() - DAYS[unit]) % 7
        return _days(today - timedelta(days=gap or 7) if back == 1 else today + timedelta(days=(7 - gap) % 7), 1)
    if unit in _SEASONS:
        year = at.year - back - (back == 0 and _SEASONS[unit] > at.month)
        if back == 1 and _SEASONS[unit] + 3 <= at.month:
            year = at.year
        start = today.replace(year=year, month=_SEASONS[unit], day=1)
        return Interval(start, (start + timedelta(days=95)).replace(day=1))
    if unit in MONTHS:
        return _month(at, at.year - (back == 1 and MONTHS[unit] >= at.month), MONTHS[unit])
    if unit == "weekend":
        saturday = today - timedelta(days=(today.weekday() - 5) % 7)
        return _days(saturday - timedelta(days=7 * (back == 1 and today.weekday() >= 5)), 2)
    if unit == "week":
        return _days(today - timedelta(days=today.weekday() + 7 * back), 7)
    if unit == "month":
        return _month(at, *_step_months(at, -back))
    return Interval(today.replace(year=at.year - back, month=1, day=1), _year_end(at, at.year - back))


_UNITS = "|".join((*DAYS, *_SEASONS, "weekend", "week", "month", "year", _MONTH))
_RULES: tuple[tuple[re.Pattern[str], Callable[[datetime, re.Match[str]], Interval | None]], ...] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r"\b(\d{4})-(\d{2})-(\d{2})\b", _exact),
        (
            rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b\.?,?(?: (\d{{4}}))?",
            lambda at, m: _named_day(at, m[1], m[2], m[3]),
        ),
        (
            rf"\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}}))?",
            lambda at, m: _named_day(at, m[2], m[1], m[3]),
        ),
        (rf"\b(?:in|during|since|of|early|late|mid)[ -]({_MONTH})\b(?:,? (\d{{4}}))?", _named_month),
        (rf"\b({_MONTH}) (\d{{4}})\b", _named_month),
        (r"\b(?:in|during|since) ([12]\d{3})\b", lambda at, m: Interval(
            _midnight(at).replace(year=max(1, int(m[1])), month=1, day=1), _year_end(at, int(m[1])))
            ),
        (rf"\b{_COUNT} (day|week|month|year)s? ago\b", _ago),
        (rf"\b(last|past|previous|this|next) ({_UNITS})\b", _last),
        (r"\bthe day before yesterday\b", lambda at, _: _days(_midnight(at) - timedelta(days=2), 1)),
        (r"\byesterday\b", lambda at, _: _days(_midnight(at) - timedelta(days=1), 1)),
        (r"\b(?:today|tonight|this morning|this evening)\b", lambda at, _: _days(_midnight(at), 1)),
        (r"\btomorrow\b", lambda at, _: _days(_midnight(at) + timedelta(days=1), 1)),
    )
)  # fmt: skip


def period_of(text: str, at: datetime) -> Interval | None:
    """The period that the first time expression of the text names, or None."""
    lowered = text[:2_000].lower()
    found: list[tuple[int, int, Interval]] = []
    for order, (pattern, rule) in enumerate(_RULES):
        match = pattern.search(lowered)
        if match is not None:
            try:
                interval = rule(at, match)
            except (ValueError, OverflowError):
                continue
            if interval is not None:
                found.append((match.start(), order, interval))
    return min(found)[2] if found else None
