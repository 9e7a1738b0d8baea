"""One grammar of time, for what is told and for what is asked, in the user's zone.

A phrase is resolved against the moment and the zone in which it was said, to a span of local
time; where it cannot be resolved ("soon", "ages ago"), there is none. English, dates in figures
in any language, and dates with names of months and weekdays in the languages of the CLDR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TypeAlias, TypeVar

from nyima.language.times.span import (
    Bound,
    Days,
    Hours,
    TimeSpan,
    month_of,
    on_day,
    season_of,
    shifted,
    week_of,
    year_of,
)
from nyima.language.times.tense import Tenses
from nyima.language.times.tokens import Token, tokenized
from nyima.language.times.vocabulary import (
    DAYS,
    FUNCTION_WORDS,
    HOLIDAYS,
    MONTHS,
    PARTS,
    SEASONS,
    UNIT_ALIASES,
    foreign_names,
)

__all__ = ["find_time", "find_times"]

_MOST_TEXT = 2_000
_STEPS = {
    "last": -1,
    "past": -1,
    "previous": -1,
    "this": 0,
    "current": 0,
    "next": 1,
    "nxt": 1,
    "coming": 1,
    "following": 1,
}
_TODAY = {"today": 0, "tdy": 0, "tomorrow": 1, "tmrw": 1, "tmr": 1, "tomoz": 1, "yesterday": -1, "yest": -1}
_BEFORE_MONTH = frozenset("in of during since until till by before after from to through and between last".split())
_BEFORE_YEAR = frozenset("in of during since until till by before after from to through and between year".split())
_STARTS = frozenset("start begin beginning early first".split())
_MIDDLES = frozenset("mid middle".split())
_ENDS = frozenset("end late last".split())
_BOUNDS = {
    "since": Bound.SINCE, "until": Bound.UNTIL, "till": Bound.UNTIL, "til": Bound.UNTIL, "by": Bound.UNTIL, "before": Bound.BEFORE,
    "after": Bound.AFTER,
}  # fmt: skip
_TO = frozenset("to until till through and - – —".split())
_ROUND = frozenset("about around roughly approximately circa ish nearly almost maybe like".split())

T = TypeVar("T")
Parsed: TypeAlias = tuple[T, int] | None
"""What was read, and the number of the token after it."""


def find_time(
    text: str, at: datetime, zone: tzinfo, *, ahead: bool | None = None, asked: bool = False
) -> TimeSpan | None:
    """Return the span that a sentence names, said at ``at`` (aware) in ``zone``; None where it
    names none that can be resolved. ``ahead`` says whether "on Friday" is the coming one; None
    reads it off the tense, and where that does not show it, a question (``asked``) is about the
    past and a statement about what is to come."""
    found = list(find_times(text, at, zone, ahead=ahead, asked=asked))
    dated = next((span for span in found if span.dated), None)
    if dated is None:
        return found[0] if found else None
    if dated.clock or dated.bound is not Bound.AT or dated.end - dated.start != timedelta(days=1):
        return dated
    clock = next((span for span in found if not span.dated), None)
    if clock is None:
        return dated
    start, end = (
        datetime.combine(dated.start.date(), time()) + (moment - datetime.combine(clock.start.date(), time()))
        for moment in (clock.start, clock.end)
    )
    return replace(dated, start=start, end=end, clock=True)


def find_times(
    text: str, at: datetime, zone: tzinfo, *, ahead: bool | None = None, asked: bool = False
) -> Iterator[TimeSpan]:
    """Return every span that a text names, in order (see ``find_time``)."""
    text = text[:_MOST_TEXT]
    tokens = tokenized(text)
    tenses = Tenses(tokens)
    reader = _Reader(tokens, at.astimezone(zone), zone, asked if ahead is None else not ahead)
    at_token = 0
    while at_token < len(tokens):
        back = tenses.at(tokens[at_token].begin) if ahead is None else None
        try:
            found = replace(reader, back=reader.back if back is None else back).span(at_token)
        except (ValueError, OverflowError):  # a year that the calendar does not have
            found = None
        if found is None:
            at_token += 1
            continue
        span, after = found
        yield replace(span, begin=tokens[at_token].begin, stop=tokens[after - 1].stop)
        at_token = after


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads phrases from tokens. Each method tries one kind of phrase at a token."""

    tokens: list[Token]
    now: datetime
    zone: tzinfo
    back: bool

    @property
    def today(self) -> date:
        return self.now.date()

    def word(self, i: int) -> str:
        """The text of a token; empty where there is none."""
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def kind(self, i: int) -> str:
        return self.tokens[i].kind if 0 <= i < len(self.tokens) else ""

    def number(self, i: int) -> int:
        return self.tokens[i].number if 0 <= i < len(self.tokens) else -1

    def ends(self, i: int) -> bool:
        """Whether a phrase may end before this token: a name or a noun may not follow."""
        return self.kind(i) in {"", "mark", "clock"} or self.word(i) in FUNCTION_WORDS

    def skip(self, i: int, *words: str) -> int:
        """The number of the token after those of these words that stand here."""
        while self.word(i) in words and self.word(i):
            i += 1
        return i

    # --- spans ---

    def span(self, i: int) -> Parsed[TimeSpan]:
        """A phrase with what goes before it: "since", "from … to …", "before …"."""
        word = self.word(i)
        if word == "prior" and self.word(i + 1) == "to" and (inner := self.point(i + 2)):
            return replace(inner[0], bound=Bound.BEFORE), inner[1]
        if word in {"from", "between"} and (found := self._range(self.skip(i + 1, "the"))):
            return found
        if word in _BOUNDS:
            reader = replace(self, back=True) if word == "since" else self
            inner = reader.point(self.skip(i + 1, "then", "around", "about"))
            if inner is not None:
                return replace(inner[0], bound=_BOUNDS[word]), inner[1]
            return None
        if word == "up" and self.word(i + 1) in {"to", "until", "till"}:
            inner = self.point(i + 2)
            return None if inner is None else (replace(inner[0], bound=Bound.UNTIL), inner[1])
        first = self.point(i)
        if first is None:
            return None
        if self.word(first[1]) in _TO - {"and"} and (joined := self._joined(first)):
            return joined
        return first

    def _range(self, i: int) -> Parsed[TimeSpan]:
        """ "Monday to Thursday", "March and May 2023", "9 to 5 on Friday"."""
        first = self._half_range(i) or self.point(i)
        if first is None:
            return None
        joined = self._joined(first)
        if joined is None and self.word(i - 1) == "from" and first[0].start <= self.now.replace(tzinfo=None):
            return replace(first[0], bound=Bound.SINCE), first[1]
        return joined or first

    def _half_range(self, i: int) -> Parsed[TimeSpan]:
        """The first of two, which the second completes: "from 3 to 9 June", "between March and May 2023"."""
        if self.kind(i) in {"number", "ordinal"} and self.word(i + 1) in _TO:
            second = self.point(self.skip(i + 2, "the"))
            if second is not None and second[0].dated and not second[0].clock:
                start = second[0].start.replace(day=self.number(i))
                return replace(second[0], start=start, end=start + timedelta(days=1)), i + 1
            if self.kind(i + 2) == "number" and 0 <= self.number(i) <= 24:  # "from 9 to 5"
                minutes = 60 * self.number(i)
                return self._clock_alone(Hours(minutes, minutes)), i + 1
            return None
        if self.word(i) in MONTHS and self.word(i + 1) in _TO:
            days = self._month_near(MONTHS[self.word(i)])
            return _whole(days), i + 1
        return None

    def _joined(self, first: tuple[TimeSpan, int]) -> Parsed[TimeSpan]:
        span, after = first
        if self.word(after) not in _TO:
            return None
        place = self.skip(after + 1, "the")
        second = self.point(place) or self._month_after(place)
        if second is None and span.clock and (hours := self.hours(place, led="at")) is not None:
            days = self.days(self.skip(hours[1], "on", ","))
            on = days is not None and days[0].single
            second = (
                (self._timed(days[0], hours[0]), days[1]) if days and on else (self._clock_alone(hours[0]), hours[1])
            )
        if second is None:
            return None
        if second[0].dated and span.clock and not span.dated:  # "9am to 5pm on Thursday"
            span = replace(span, start=datetime.combine(second[0].start.date(), span.start.time()))
        start, end = span.start, max(second[0].start, second[0].end)
        if second[0].clock and not second[0].dated and span.clock:
            end = datetime.combine(span.start.date(), end.time())
        if (
            span.end - span.start > timedelta(days=1)
            and self.year(second[1] - 1) is not None
            and self.year(after - 1) is None
        ):
            # "between March and May 2023": the year is that of both, "November and February 2024" of the second
            start = start.replace(year=second[0].start.year - (start.month > second[0].start.month))
        elif end <= start and second[0].dated and not second[0].clock:
            end += timedelta(weeks=1)
        if end <= start:
            return None
        dated = span.dated or second[0].dated
        return TimeSpan(start, end, clock=span.clock or second[0].clock, dated=dated), second[1]

    def _month_after(self, i: int) -> Parsed[TimeSpan]:
        if self.word(i) in MONTHS:
            return _whole(self._month_near(MONTHS[self.word(i)])), i + 1
        return None

    # --- points ---

    def point(self, i: int) -> Parsed[TimeSpan]:
        """A day, days or a time of day, in one phrase."""
        start = i
        i = self.skip(i, "on", "at", "in", "over", "around", "about", "for", "during", "towards", "of", *_ROUND)
        i = self.skip(i, "just", "exactly", "only")
        if (ago := self._hours_away(i)) is not None:
            return ago
        if (rolling := self._rolling(i)) is not None:
            return rolling
        if (beside := self._part_of_today(i)) is not None:
            return beside
        hours = self.hours(i, led=self.word(i - 1) if i > start else "")
        if hours is not None:
            j = self.skip(hours[1], "on", "of", "the", ",")
            if hours[0].start == hours[0].end and (part := self._part_of_today(j)) is not None:
                return self._timed(_one(part[0].start.date()), self._in_part(hours[0], _hours_of(part[0]))), part[1]
            days = self.days(j)
            if days is not None and days[0].single:
                return self._timed(days[0], hours[0]), days[1]
            return self._clock_alone(hours[0]), hours[1]
        days = self.days(i)
        if days is None:
            return None
        found, after = days
        if found.single:
            j = self.skip(after, "at", "around", "about", "in", "the", ",", "from", "between", "by")
            more = self.hours(j, led=self.word(j - 1))
            if more is not None:
                return self._second_hour(found, more[0], more[1])
        return _whole(found), after

    def _second_hour(self, day: Days, hours: Hours, after: int) -> Parsed[TimeSpan]:
        """A day with its time, and with the end of that: "Thursday 9am to 5pm"."""
        start = self._timed(day, hours)
        if self.word(after) in _TO and (end := self.hours(after + 1, led="to")) is not None:
            return replace(start, end=self._timed(day, end[0]).start), end[1]
        return start, after

    def _timed(self, day: Days, hours: Hours) -> TimeSpan:
        start, end = on_day(day.first, hours)
        return TimeSpan(start, end, clock=True, about=timedelta(days=day.about))

    def _clock_alone(self, hours: Hours) -> TimeSpan:
        """A time of day without a day: today's, or the nearest one on the side that the tense shows."""
        start, end = on_day(self.today, hours)
        wall = self.now.replace(tzinfo=None)
        if self.back and start > wall:
            start, end = start - timedelta(days=1), end - timedelta(days=1)
        elif not self.back and max(start, end) <= wall - timedelta(minutes=1):
            start, end = start + timedelta(days=1), end + timedelta(days=1)
        return TimeSpan(start, end, clock=True, dated=False)

    def _hours_away(self, i: int) -> Parsed[TimeSpan]:
        """ "two hours ago", "half an hour ago", "in 20 minutes": time that passes, whatever the clocks do."""
        led_in = self.word(i - 1) == "in"
        count = self.count(i)
        if count is None:
            return None
        j = self.skip(count[1], "of", "an", "a") if count[0] < 1 else count[1]
        unit = UNIT_ALIASES.get(self.word(j), "")
        if unit not in {"hour", "minute"}:
            return None
        amount, j = count[0], j + 1
        if self.word(j) == "and" and self.word(j + 1) == "a" and self.word(j + 2) == "half":
            amount, j = amount + 0.5, j + 3
        length = timedelta(hours=amount) if unit == "hour" else timedelta(minutes=amount)
        if self.word(j) in {"ago", "back", "earlier"}:
            moment, j = self._passed(-length), j + 1
        elif self.word(j) == "from" and self.word(j + 1) == "now":
            moment, j = self._passed(length), j + 2
        elif led_in and not self.back:
            moment, j = self._passed(length), self.skip(j, "time")
        else:
            return None
        about = timedelta(minutes=30) if unit == "hour" else timedelta(minutes=5)
        return TimeSpan(moment, moment, clock=True, about=about), j

    def _passed(self, length: timedelta) -> datetime:
        return (self.now.astimezone(UTC) + length).astimezone(self.zone).replace(tzinfo=None, second=0, microsecond=0)

    def _rolling(self, i: int) -> Parsed[TimeSpan]:
        """ "the last three days", "the next two weeks", "the past month": from or until now."""
        j = self.skip(i, "the", "these", "within")
        step = {"last": -1, "past": -1, "next": 1, "coming": 1}.get(self.word(j), 0)
        if not step:
            return None
        count = self.count(j + 1)
        after = count[1] if count is not None else j + 1
        unit = UNIT_ALIASES.get(self.word(after), "")
        alone = count is None and self.word(j) == "past" and j > i
        if not unit or (count is None and not alone):
            return None
        amount = 1 if count is None else round(count[0])
        wall = self.now.replace(tzinfo=None, second=0, microsecond=0)
        if unit in {"hour", "minute"}:
            edge = self._passed(step * (timedelta(hours=amount) if unit == "hour" else timedelta(minutes=amount)))
            return TimeSpan(min(edge, wall), max(edge, wall), clock=True), after + 1
        far = self._far(step * amount, unit)
        edge = datetime.combine(far, wall.time())
        return TimeSpan(min(edge, wall), max(edge, wall)), after + 1

    def _far(self, count: int, unit: str) -> date:
        if unit in {"day", "week"}:
            return self.today + timedelta(days=count * (7 if unit == "week" else 1))
        month = month_of(self.today, count * {"month": 1, "year": 12, "decade": 120}[unit])
        return month.first + timedelta(days=min(self.today.day, (month.last - month.first).days) - 1)

    # --- numbers ---

    def count(self, i: int) -> Parsed[float]:
        """ "three", "a", "a couple of", "two and a half", "half"."""
        i = self.skip(i, *_ROUND)
        word = self.word(i)
        if word == "half":
            return 0.5, i + 1
        if word in {"a", "an", "one", "the"} and self.word(i + 1) in {"couple", "few"}:
            return (2.0 if self.word(i + 1) == "couple" else 3.0), self.skip(i + 2, "of")
        if word == "couple":
            return 2.0, self.skip(i + 1, "of")
        if word in {"a", "an"}:
            return 1.0, i + 1
        whole = self.whole(i)
        if whole is None:
            return None
        amount, i = float(whole[0]), whole[1]
        if self.word(i) == "and" and self.word(i + 1) == "a" and self.word(i + 2) == "half":
            return amount + 0.5, i + 3
        return amount, i

    def whole(self, i: int) -> Parsed[int]:
        """A whole number in digits or words, below a hundred in words."""
        if self.kind(i) != "number":
            return None
        number = self.number(i)
        if not self.word(i).isdecimal() and number >= 20 and self.kind(i + 1) == "number":
            one = self.number(i + 1)
            if not self.word(i + 1).isdecimal() and 0 < one < 10:
                return number + one, i + 2
        return number, i + 1

    def ordinal(self, i: int) -> Parsed[int]:
        """ "3rd", "third", "twenty first"."""
        if self.kind(i) == "ordinal":
            return self.number(i), i + 1
        if self.kind(i) == "number" and self.number(i) in {20, 30} and self.kind(i + 1) == "ordinal":
            one = self.number(i + 1)
            return (self.number(i) + one, i + 2) if 0 < one < 10 and not self.word(i + 1)[:1].isdecimal() else None
        return None

    def year(self, i: int) -> Parsed[int]:
        """ "2019", "nineteen eighty four", "twenty nineteen"."""
        if self.kind(i) != "number":
            return None
        number = self.number(i)
        if number == 2 and self.word(i + 1) == "thousand":
            j = self.skip(i + 2, "and")
            rest = self.whole(j)
            return (2000 + rest[0], rest[1]) if rest is not None and rest[0] < 100 else (2000, i + 2)
        if self.word(i).isdecimal():
            return (number, i + 1) if 1900 <= number <= 2199 and len(self.word(i)) == 4 else None
        if number in {19, 20} and (rest := self.whole(i + 1)) is not None and 10 <= rest[0] <= 99:
            return 100 * number + rest[0], rest[1]
        return None

    # --- times of day ---

    def hours(self, i: int, led: str = "") -> Parsed[Hours]:
        """A time of day. ``led`` is the word before it: "at 5" is one, "5" alone is not."""
        i = self.skip(i, *_ROUND)
        exact = self._exact_hours(i, led)
        part = self._part(exact[1] if exact is not None else i, after_clock=exact is not None)
        if exact is None:
            return part
        hours, after = exact
        if part is not None and not hours.half:
            return self._in_part(hours, part[0]), part[1]
        return hours, after

    def _in_part(self, hours: Hours, part: Hours) -> Hours:
        if part.start >= 12 * 60 and hours.start < 12 * 60:
            later = hours.start + 12 * 60
            if not (part.end > 24 * 60 and hours.start < 5 * 60):  # "two at night" is past midnight
                return replace(hours, start=later, end=later + hours.end - hours.start)
        return hours

    def _exact_hours(self, i: int, led: str) -> Parsed[Hours]:
        kind = self.kind(i)
        if self.word(i) in {"noon", "midday"}:
            return Hours(720, 720, half=True), i + 1
        if self.word(i) == "midnight":
            return Hours(0, 0, half=True), i + 1
        if kind == "clock":
            hour, minute = self.number(i), self.tokens[i].minute
            half, after = self._half(i + 1)
            plain = ":" in self.word(i) or "h" in self.word(i)
            if hour > 23 or minute > 59 or not (plain or half or led in {"at", "by", "until", "till", "from", "to"}):
                return None
            return self._hour(hour, minute, half), after
        if (spoken := self._spoken(i)) is not None:
            return spoken
        whole = self.whole(i)
        if whole is None or not 0 <= whole[0] <= 24:
            return None
        half, after = self._half(whole[1])
        minute = 0
        if not half and (more := self.whole(whole[1])) is not None and 10 <= more[0] <= 59 and self._half(more[1])[0]:
            minute = more[0]  # "five thirty pm"
            half, after = self._half(more[1])
        if half:
            return (self._hour(whole[0], minute, half), after) if 1 <= whole[0] <= 12 else None
        if self.word(after) in {"o'clock", "oclock"}:
            return self._hour(whole[0], 0, ""), after + 1
        tonight = self.word(after) in {"tonight", "this", "tomorrow"} or (
            self.word(after) == "in" and self.word(after + 1) == "the" and self.word(after + 2) in PARTS
        )
        if led in {"at", "around", "about"} or (led in {"from", "until", "till", "to", "by"} and whole[0] <= 24):
            return (self._hour(whole[0], 0, ""), after) if self.ends(after) or tonight else None
        return (self._hour(whole[0], 0, ""), after) if tonight and whole[0] <= 12 else None

    def _hour(self, hour: int, minute: int, half: str) -> Hours:
        hour = hour % 12 + (12 if half == "p" else 0) if half else hour % 24
        return Hours(60 * hour + minute, 60 * hour + minute, half=bool(half))

    def _half(self, i: int) -> tuple[str, int]:
        """ "am" or "p.m." as a letter, and the token after it."""
        if self.word(i) in {"am", "pm"}:
            return self.word(i)[0], i + 1
        if self.word(i) in {"a", "p"} and self.word(i + 1) == "." and self.word(i + 2) == "m":
            return self.word(i), self.skip(i + 3, ".")
        return "", i

    def _spoken(self, i: int) -> Parsed[Hours]:
        """ "half past six", "quarter to nine", "ten past four", "half six"."""
        j = self.skip(i, "a")
        if self.word(j) == "half":
            minutes, j = 30, j + 1
        elif self.word(j) == "quarter":
            minutes, j = 15, j + 1
        elif (whole := self.whole(j)) is not None and 1 <= whole[0] <= 29 and self.word(whole[1]) in {"past", "to"}:
            minutes, j = whole[0], whole[1]
        else:
            return None
        sign = {"past": 1, "gone": 1, "to": -1, "til": -1}.get(self.word(j), 0)
        if not sign and minutes == 30 and self.word(j - 1) == "half":
            j -= 1  # British: "half six" is half past six
            sign = 1
        if not sign:
            return None
        hour = self.whole(j + 1)
        if hour is None or not 1 <= hour[0] <= 12:
            return None
        start = 60 * hour[0] + sign * minutes
        half, after = self._half(hour[1])
        start = start % 720 + (720 if half == "p" else 0) if half else start
        return Hours(start, start, half=bool(half)), after

    def _part(self, i: int, *, after_clock: bool = False) -> Parsed[Hours]:
        """A part of a day: "evening", "early morning", and of today: "this morning", "tonight" (read as days)."""
        j = self.skip(i, "in", "at", "the") if after_clock else i
        early = self.word(j) in {"early", "late", "mid"}
        name = self.word(j + 1 if early else j).removesuffix("s")
        if name not in PARTS or (not after_clock and not self._part_allowed(i)):
            if after_clock and self.word(i) in _TODAY and self.word(i + 1) in PARTS:
                first, last = PARTS[self.word(i + 1)]
                return Hours(first * 60, last * 60), i
            return None
        first, last = PARTS[name]
        return Hours(first * 60, last * 60), j + 1 + early

    def _part_allowed(self, i: int) -> bool:
        """Whether a part of a day without a clock may begin here: only beside a day."""
        before = self.word(i - 1)
        return (
            before in _TODAY
            or before in DAYS
            or (before == "the" and self.word(i - 2) == "in" and self._day_before(i - 3))
            or self.word(i + 1) in {"of", "on"}
            or self.kind(i - 1) in {"date", "ordinal", "number"}
            or before in MONTHS
            or before == "in"
            or before == ","
        )

    def _day_before(self, i: int) -> bool:
        return self.word(i) in DAYS or self.word(i) in _TODAY or self.kind(i) in {"date", "ordinal"}

    # --- days ---

    def days(self, i: int) -> Parsed[Days]:
        """A day or days, however they are named."""
        i = self.skip(i, "on")
        return self.day_beside(i) or self._plain_days(i)

    def _plain_days(self, i: int) -> Parsed[Days]:
        """A day or days that are not counted from others, so that no phrase nests in itself."""
        for rule in _DAY_RULES:
            found = rule(self, i)
            if found is not None:
                return found
        return None

    def date_in_figures(self, i: int) -> Parsed[Days]:
        token = self.tokens[i] if i < len(self.tokens) else None
        if token is None or token.kind not in {"date", "month"} or token.day is None:
            return None
        return (_one(token.day) if token.kind == "date" else month_of(token.day)), i + 1

    def named_day(self, i: int) -> Parsed[Days]:
        token, word = (self.tokens[i], self.word(i)) if i < len(self.tokens) else (None, "")
        if token is None or (token.capital and self.word(i - 1) not in {"on", "since", "until", "for", "from"}):
            return None
        if word in _TODAY:
            return _one(self.today + timedelta(days=_TODAY[word])), i + 1
        return None

    def day_beside(self, i: int) -> Parsed[Days]:
        """ "the day before yesterday", "two days after Christmas", "a week from Tuesday", "the Monday before"."""
        j = self.skip(i, "the")
        count = self.count(j)
        amount, after = (round(count[0]), count[1]) if count is not None else (1, j)
        unit = UNIT_ALIASES.get(self.word(after), "")
        if self.word(after) in {"fortnight", "fortnights"}:
            unit, amount = "week", 2 * amount
        if unit in {"day", "week", "month", "year"}:
            side = self.word(after + 1)
            sign = {"before": -1, "after": 1, "from": 1, "on": 1}.get(side, 0)
            if sign and (count is not None or (j > i and unit == "day")):
                base = self._plain_days(after + 2)
                if base is not None and (side != "on" or unit == "week"):
                    return shifted(base[0].first, sign * amount, unit), base[1]
                if side == "from" and self.word(after + 2) == "now":
                    return shifted(self.today, amount, unit), after + 3
        weekday = DAYS.get(self.word(j))
        if weekday is not None and j > i and self.word(j + 1) in {"before", "after"}:
            if self.word(j + 2) == "last":
                return _one(self._past_weekday(weekday) - timedelta(weeks=1)), j + 3
            if self.word(j + 2) == "next":
                return _one(self._weekday(weekday, 1) + timedelta(weeks=1)), j + 3
            base = self._plain_days(j + 2)
            if base is not None:
                gap = (base[0].first.weekday() - weekday) % 7 or 7
                away = timedelta(days=gap) if self.word(j + 1) == "before" else timedelta(days=gap - 7 or -7)
                return _one(base[0].first - away), base[1]
        return None

    def days_away(self, i: int) -> Parsed[Days]:
        """ "three days ago", "a fortnight ago", "in two weeks' time", "three Sundays ago"."""
        led_in = self.word(i - 1) == "in" or self.word(i) == "in"
        j = i + 1 if self.word(i) == "in" else i
        count = self.count(j)
        if count is None:
            return None
        amount, after = count
        name = self.word(after)
        if name.removesuffix("s") in DAYS and self.word(after + 1) == "ago":
            latest = self._past_weekday(DAYS[name.removesuffix("s")])
            return _one(latest - timedelta(weeks=round(amount) - 1)), after + 2
        unit = "week" if name in {"fortnight", "fortnights"} else UNIT_ALIASES.get(name, "")
        if unit not in {"day", "week", "month", "year", "decade"}:
            return None
        steps = round(amount * (2 if name.startswith("fortnight") else 1))
        if amount == 0.5:
            return None
        vague = 2 if self.word(after - 1) == "few" or self.word(after - 2) == "few" else 0
        beyond = (
            self.skip(after + 1, "or") if self.word(after + 1) == "or" and self.word(after + 2) == "so" else after + 1
        )
        beyond = beyond + 1 if self.word(beyond) == "so" else beyond
        if self.word(beyond) in {"ago", "back", "earlier"}:
            days = shifted(self.today, -steps, unit)
            if self.word(beyond + 1) in DAYS | _TODAY.keys() and unit == "week":  # "a week ago Tuesday"
                base = self.weekday_named(beyond + 1)
                if base is not None:
                    return _one(base[0].first - timedelta(weeks=steps)), base[1]
            return replace(days, about=days.about + vague), beyond + 1
        if self.word(beyond) == "from" and self.word(beyond + 1) in {"now", "today"}:
            return shifted(self.today, steps, unit), beyond + 2
        if led_in and not self.back:
            days = shifted(self.today, steps, unit)
            return replace(days, about=0 if unit in {"day", "week"} else days.about), self.skip(beyond, "time")
        return None

    def weekday_named(self, i: int) -> Parsed[Days]:
        """ "Friday", "last Friday", "next Tuesday", "Thursday week", "Tuesday past", "Monday last week"."""
        j = self.skip(i, "the")
        step, led = _STEPS.get(self.word(j)), j
        j = j + 1 if step is not None else j
        token = self.tokens[j] if j < len(self.tokens) else None
        if (
            token is None
            or token.text not in DAYS
            or (token.text in {"sun", "sat", "wed", "mon"} and not self._short(j))
        ):
            return self._week_then_day(i)
        weekday, after = DAYS[token.text], j + 1
        if step is None and not self._plain_weekday(i, j):
            return None
        if self.word(after) == "last" or (self.word(after) in {"past", "gone"} and self.kind(after + 1) != "number"):
            k = after + 1
            if self.word(after) == "last" and self.word(k) == "week":
                return _one(week_of(self.today, -1).first + timedelta(days=weekday)), k + 1
            return _one(self._past_weekday(weekday)), k
        if self.word(after) == "week" and led == j:
            return _one(self._coming_weekday(weekday) + timedelta(weeks=1)), after + 1
        k = self.skip(after, "of")
        if self.word(k) in {"this", "next"} and self.word(k + 1) == "week":
            return _one(week_of(self.today, _STEPS[self.word(k)]).first + timedelta(days=weekday)), k + 2
        if step is None:
            return _one(self._near_weekday(weekday)), after
        return _one(self._weekday(weekday, step)), after

    def _short(self, j: int) -> bool:
        """Whether a short name that is also a word is a weekday here."""
        return self.word(j - 1) in {"on", "last", "next", "this", "by", "until", "till", "since", "from", "to"}

    def _plain_weekday(self, i: int, j: int) -> bool:
        """Whether a weekday stands for a day: not for a club, a paper or a habit."""
        before, after = self.word(i - 1), self.tokens[j + 1] if j + 1 < len(self.tokens) else None
        led = self.word(i - 1 if j > i else i - 2)
        if (
            (j > i or before == "the")
            and led in {"in", "on", "by", "since", "until", "for", "from"}
            and self.ends(j + 1)
        ):
            return True
        if before in {"every", "each", "most", "alternate", "black", "good", "the", "a", "any"} or j > i:
            return self._beside_week(j) or (j > i and self.word(j + 1) in {"before", "after", "of", "just"})
        if self.word(j - 1) == "'" or (i > 0 and self.tokens[i - 1].capital and before not in FUNCTION_WORDS):
            return False
        named = after is not None and after.capital and after.kind == "word" and after.text not in DAYS
        return (
            not named
            or before in {"on", "by", "since", "until", "from"}
            or (after is not None and after.text in {*FUNCTION_WORDS, *MONTHS, *PARTS})
        )

    def _beside_week(self, j: int) -> bool:
        return self.word(j + 1) == "week" or (
            self.word(j + 1) in {"last", "this", "next", "of"} and self.word(j + 2) == "week"
        )

    def _week_then_day(self, i: int) -> Parsed[Days]:
        """ "last week Tuesday", "next week on Friday"."""
        j = self.skip(i, "the")
        step = _STEPS.get(self.word(j))
        if step is None or self.word(j + 1) != "week":
            return None
        k = self.skip(j + 2, "on", ",")
        if self.word(k) not in DAYS:
            return None
        return _one(week_of(self.today, step).first + timedelta(days=DAYS[self.word(k)])), k + 1

    def _past_weekday(self, weekday: int) -> date:
        return self.today - timedelta(days=(self.today.weekday() - weekday) % 7 or 7)

    def _coming_weekday(self, weekday: int) -> date:
        return self.today + timedelta(days=(weekday - self.today.weekday()) % 7 or 7)

    def _near_weekday(self, weekday: int) -> date:
        return self._past_weekday(weekday) if self.back else self._coming_weekday(weekday)

    def _weekday(self, weekday: int, step: int) -> date:
        if step < 0:
            return self._past_weekday(weekday)
        if step > 0:
            return week_of(self.today, 1).first + timedelta(days=weekday)
        this = week_of(self.today).first + timedelta(days=weekday)
        return this + timedelta(weeks=1) if this < self.today and not self.back else this

    def _part_of_today(self, i: int) -> Parsed[TimeSpan]:
        """ "this morning", "last night", "tonight", with a time of day after it ("tonight at 8")."""
        if self.word(i) in {"tonight", "tonite"}:
            part, day, after = "night", self.today, i + 1
        else:
            j = self.skip(i + 1, "early", "late")
            part, after = self.word(j), j + 1
            if part not in PARTS or self.word(i) not in {"this", "last"}:
                return None
            day = self.today - timedelta(days=self.word(i) == "last")
        first, last = PARTS[part]
        hours = Hours(60 * (first - (part == "night")), 60 * last)
        led = self.skip(after, "at", "around", "about")
        exact = self._exact_hours(led, led=self.word(led - 1))
        if exact is not None:
            return self._timed(_one(day), self._in_part(exact[0], hours)), exact[1]
        return self._timed(_one(day), hours), after

    def nth_weekday(self, i: int) -> Parsed[Days]:
        """ "the first Monday of March", "the last Friday of the month"."""
        j = self.skip(i, "the")
        number = (-1, j + 1) if self.word(j) == "last" else self.ordinal(j)
        if number is None or not (number[0] == -1 or 1 <= number[0] <= 5) or self.word(number[1]) not in DAYS:
            return None
        if self.word(number[1] + 1) not in {"of", "in"}:
            return None
        month = self._a_month(number[1] + 2)
        if month is None:
            return None
        days = [
            d for n in range((month[0].last - month[0].first).days)
            if (d := month[0].first + timedelta(days=n)).weekday() == DAYS[self.word(number[1])]
        ]  # fmt: skip
        at = number[0] if number[0] < 0 else number[0] - 1
        return (_one(days[at]), month[1]) if at < len(days) else None

    def _a_month(self, i: int) -> Parsed[Days]:
        """ "March", "March 2024", "the month", "last month", "next month"."""
        j = self.skip(i, "the", "this") if self.word(i) == "the" else i
        if self.word(j) == "month":
            return month_of(self.today), j + 1
        if self.word(j) in _STEPS and self.word(j + 1) in {"month", "month's"}:
            return month_of(self.today, _STEPS[self.word(j)]), j + 2
        step = _STEPS.get(self.word(j))
        name = j + 1 if step is not None else j
        if self.word(name) not in MONTHS:
            return None
        year = self.year(self.skip(name + 1, ",", "of", "in"))
        if year is not None:
            return month_of(date(year[0], MONTHS[self.word(name)], 1)), year[1]
        return self._month_near(MONTHS[self.word(name)], step), name + 1

    def _month_near(self, number: int, step: int | None = None) -> Days:
        """The month of that number that is meant: by "last" and "next", else by the tense."""
        now = self.today.month
        if step is None:
            year = self.today.year - (number > now) if self.back else self.today.year + (number < now)
        elif step == 0:
            year = self.today.year
        else:
            year = self.today.year - (number >= now) if step < 0 else self.today.year + (number <= now)
        return month_of(date(year, number, 1))

    def day_of_month(self, i: int) -> Parsed[Days]:
        """ "3 March", "March 3rd, 2024", "the 3rd of next month", "next month's 3rd"."""
        j = self.skip(i, "the")
        if DAYS.get(self.word(j)) is not None and self.kind(self.skip(j + 1, ",", "the")) in {"number", "ordinal"}:
            inner = self.day_of_month(self.skip(j + 1, ",", "the"))  # "Tuesday 3 March"
            if inner is not None:
                return inner
        number = self.ordinal(j) or self.whole(j)
        if number is not None and 1 <= number[0] <= 31:
            k = self.skip(number[1], "of", "day", ".")
            named = self._a_month(k) if self.word(k) in MONTHS or number[1] < k else None
            if named is not None and (self.word(k) not in MONTHS or not self.word(number[1] - 1).startswith("a")):
                dated = self.year(self.skip(k + 1, ",", "of")) is not None or self.word(k) not in MONTHS
                return self._dated(number[0], named, fixed=dated)
        month = self.word(j)
        if month in MONTHS:
            k = self.skip(j + 1, "the", ".")
            day = self.ordinal(k) or self.whole(k)
            if day is not None and 1 <= day[0] <= 31 and not self.word(day[1]).startswith(("%", "year")):
                year = self.year(self.skip(day[1], ","))
                near = month_of(date(year[0], MONTHS[month], 1)) if year else self._month_near(MONTHS[month])
                return self._dated(day[0], (near, year[1] if year else day[1]), fixed=year is not None)
        if self.word(j) in _STEPS and self.word(j + 1) == "month's":
            day = self.ordinal(j + 2) or self.whole(j + 2)
            if day is not None:
                return self._dated(day[0], (month_of(self.today, _STEPS[self.word(j)]), day[1]), fixed=True)
        return None

    def _dated(self, day: int, month: tuple[Days, int], *, fixed: bool) -> Parsed[Days]:
        """A day of a month; without a year the nearest one on the side that the tense shows."""
        days = month[0]
        if fixed:
            found = _exists(days.first.year, days.first.month, day)
            return None if found is None else (_one(found), month[1])
        every = [d for y in range(-8, 9) if (d := _exists(self.today.year + y, days.first.month, day))]
        ahead = min((d for d in every if d >= self.today), default=None)
        behind = max((d for d in every if d <= self.today), default=None)
        if ahead is None or behind is None:
            return None
        # Of the past, unless that is very far and the coming one near: "it was moved to 13 May".
        back = self.back and (ahead - self.today) * 3 >= self.today - behind
        return _one(behind if back else ahead), month[1]

    def ordinal_alone(self, i: int) -> Parsed[Days]:
        """ "the 3rd": of this month or the nearest one that has it."""
        if self.word(i) != "the":
            return None
        number = self.ordinal(i + 1)
        if number is None or not self.ends(number[1]) or not 1 <= number[0] <= 31 or self.word(number[1]) == "of":
            return None
        if not self.word(i + 1)[:1].isdecimal() and self.word(i - 1) not in {
            "on",
            "until",
            "till",
            "by",
            "since",
            "before",
        }:
            return None
        for step in range(13):
            month = month_of(self.today, -step if self.back else step).first
            found = _exists(month.year, month.month, number[0])
            if found and (found <= self.today if self.back else found >= self.today):
                return _one(found), number[1]
        return None

    def week_or_month(self, i: int) -> Parsed[Days]:
        """ "last week", "next weekend", "this month", "the year before last", "the week after next"."""
        j = self.skip(i, "the")
        step = _STEPS.get(self.word(j))
        unit = self.word(j + 1) if step is not None else self.word(j)
        if step is None:
            side = (self.word(j + 1), self.word(j + 2))
            step = {("before", "last"): -2, ("after", "next"): 2}.get(side)
            if step is not None and unit in {"week", "weekend", "month", "year"}:
                return self._stepped(unit, step), j + 3
            if unit == "weekend" and (j > i or self.word(i - 1) in {"at", "over", "on", "the"}):
                return self._weekend(-1 if self.back else 0), j + 1
            return None
        if unit.endswith("'s"):
            return None
        if unit in {"week", "weekend", "month", "year", "decade"}:
            return self._stepped(unit, step), j + 2
        if unit == "quarter":
            first = month_of(self.today.replace(month=(self.today.month - 1) // 3 * 3 + 1, day=1), 3 * step).first
            return season_of(first.year, first.month), j + 2
        return None

    def _stepped(self, unit: str, step: int) -> Days:
        if unit == "week":
            return week_of(self.today, step)
        if unit == "weekend":
            return self._weekend(step)
        if unit == "month":
            return month_of(self.today, step)
        if unit == "decade":
            return year_of(self.today.year // 10 * 10 + 10 * step, 10)
        return year_of(self.today.year + step)

    def _weekend(self, step: int) -> Days:
        """The weekend of this week, of the one after, or the last that has begun and ended."""
        saturday = week_of(self.today, step).first + timedelta(days=5)
        if step == 0 and self.back and self.today.weekday() < 4:
            saturday -= timedelta(weeks=1)  # "what did we do this weekend?", asked on a Monday
        return Days(saturday, saturday + timedelta(days=2))

    def season(self, i: int) -> Parsed[Days]:
        """ "last summer", "this winter", "in the spring", "summer 2023"."""
        j = self.skip(i, "the")
        step = _STEPS.get(self.word(j))
        name = j + 1 if step is not None else j
        if self.word(name) not in SEASONS:
            return None
        month = SEASONS[self.word(name)]
        year = self.year(self.skip(name + 1, "of", ","))
        if year is not None:
            return season_of(year[0], month), year[1]
        if self.word(name + 1) == "before" and self.word(name + 2) == "last":
            return self._season(month, -2), name + 3
        if step is None:
            before = self.word(i - 1)
            if before not in {"in", "during", "over", "since", "until", "by", "for"} or not self.ends(name + 1):
                return None
            if self.word(name) in {"spring", "fall"} and j == i and before != "in":
                return None
            step = -1 if self.back else 1
            current = self._season(month, 0)
            if current.first <= self.today < current.last:
                return current, name + 1
        return self._season(month, step), name + 1

    def _season(self, month: int, step: int) -> Days:
        every = [season_of(self.today.year + y, month) for y in range(-3, 4)]
        over = [s for s in every if s.last <= self.today]
        coming = [s for s in every if s.first > self.today]
        current = [s for s in every if s.first <= self.today < s.last]
        if step < 0:
            return over[step]
        if step > 0:
            return coming[0]
        return current[0] if current else over[-1] if self.back else coming[0]

    def part_of(self, i: int) -> Parsed[Days]:
        """ "early May", "mid-June", "the first week of March", "the end of next month", "the start of 2024"."""
        j = self.skip(i, "the", "very")
        which, after = self.word(j), j + 1
        weeks = self.ordinal(j)
        if (weeks is not None or which == "last") and self.word(after) in {"day", "week", "weekend", "half", "few"}:
            return self._piece_of(weeks[0] if weeks else -1, self.word(after), after + 1)
        if which not in _STARTS | _MIDDLES | _ENDS or which in {"first", "last"}:
            return None
        k = self.skip(after, "of", "in", "-")
        whole = (
            self._a_month(k)
            or self.week_or_month(k)
            or self._this_unit(k)
            or self.year_alone(k, free=True)
            or self.decade(k)
        )
        if whole is None or (self.word(k) == "the" and self.word(k + 1) == "day"):
            return None
        return _third(whole[0], 0 if which in _STARTS else 1 if which in _MIDDLES else 2), whole[1]

    def _piece_of(self, number: int, unit: str, i: int) -> Parsed[Days]:
        k = self.skip(i, "of", "in", "days")
        month = self._a_month(k) if k > i else None
        if month is None:
            return None
        days = month[0]
        if unit == "day":
            day = days.last - timedelta(days=1) if number < 0 else days.first + timedelta(days=number - 1)
            return (_one(day), month[1]) if day < days.last else None
        if unit == "half":
            middle = days.first + timedelta(days=15)
            return (Days(days.first, middle) if number == 1 else Days(middle, days.last)), month[1]
        if unit == "weekend":
            saturdays = [
                d for n in range((days.last - days.first).days) if (d := days.first + timedelta(days=n)).weekday() == 5
            ]
            first = saturdays[number if number < 0 else min(number, len(saturdays)) - 1]
            return Days(first, first + timedelta(days=2)), month[1]
        if number < 0:
            return Days(days.last - timedelta(weeks=1), days.last), month[1]
        first = days.first + timedelta(weeks=number - 1)
        return Days(first, first + timedelta(weeks=1)), month[1]

    def _this_unit(self, i: int) -> Parsed[Days]:
        """ "the week", "the month", "the year" after "the end of"; "the day" is an idiom."""
        j = self.skip(i, "the", "this")
        if j > i and self.word(j) in {"week", "month", "year"}:
            return self._stepped(self.word(j), 0), j + 1
        return None

    def month_alone(self, i: int) -> Parsed[Days]:
        """ "in March", "March 2024", "last April": a name alone may be a person's, or another word."""
        step = _STEPS.get(self.word(i))
        name = i + 1 if step is not None else i
        if self.word(name) not in MONTHS or self.word(name + 1) == "'":
            return None
        month = self._a_month(i)
        if month is None:
            return None
        dated = self.year(month[1] - 1) is not None
        if step is not None or dated:
            return month
        before = self.word(i - 1)
        if before not in _BEFORE_MONTH or (len(self.word(name)) == 3 and self.word(name) != "may" and before == "to"):
            return None
        if self.word(name) in {"may", "march", "mar", "sep", "dec", "jan"} and before in {"to", "and", "of", "last"}:
            return None
        return month if self.ends(month[1]) or before in {"in", "since", "during"} else None

    def year_alone(self, i: int, *, free: bool = False) -> Parsed[Days]:
        """ "in 2019", "nineteen eighty four" after such a word."""
        year = self.year(i)
        if year is None or not (free or self.word(i - 1) in _BEFORE_YEAR):
            return None
        follows = self.word(year[1])
        if follows.endswith("s") and follows not in FUNCTION_WORDS and not follows.endswith(("'s", "ss")):
            return None  # "in 2000 pieces"
        if self.word(i - 1) in {"of", "to", "and", "from", "by"} and not free and not self.ends(year[1]):
            return None
        return year_of(year[0]), year[1]

    def decade(self, i: int) -> Parsed[Days]:
        """ "the nineties", "the 1980s", "the early 2000s"."""
        j = self.skip(i, "the")
        if self.kind(j) == "decade" and (j > i or self.word(i - 1) in {"in", "since", "during"}):
            number = self.number(j)
            if number < 100:
                number += 1900 if number >= 30 else 2000
            return year_of(number, 10), j + 1
        words = {"twenties": 2020, "thirties": 1930, "forties": 1940, "fifties": 1950, "sixties": 1960, "seventies": 1970,
                 "eighties": 1980, "nineties": 1990, "noughties": 2000}  # fmt: skip
        if j > i and self.word(j) in words and self.word(j - 1) == "the":
            return year_of(words[self.word(j)], 10), j + 1
        return None

    def quarter(self, i: int) -> Parsed[Days]:
        """ "Q1 2025", "the first quarter of 2025", "H2"."""
        j = self.skip(i, "the")
        length, number, after = 3, -1, j
        if self.kind(j) == "quarter":
            number, after = self.number(j), j + 1
            length = 3 if self.word(j)[0] == "q" else 6
        elif (which := self.ordinal(j)) is not None and self.word(which[1]) in {"quarter", "half"}:
            number, after = which[0], which[1] + 1
            length = 3 if self.word(which[1]) == "quarter" else 6
        if number < 1 or number * length > 12:
            return None
        k = self.skip(after, "of", "in", ",")
        year = self.year(k)
        stepped = self.week_or_month(k)
        if year is not None:
            base, after = year[0], year[1]
        elif stepped is not None and self.word(stepped[1] - 1) == "year":
            base, after = stepped[0].first.year, stepped[1]
        elif self.kind(j) == "quarter":
            month = (number - 1) * length + 1
            base = self.today.year - (self.back and month > self.today.month)
        else:
            return None
        first = date(base, (number - 1) * length + 1, 1)
        return Days(first, month_of(first, length).first), after

    def feast(self, i: int) -> Parsed[Days]:
        """A feast with a fixed date: "Christmas", "last Halloween", "New Year's Eve 2023"."""
        j = self.skip(i, "the")
        step = _STEPS.get(self.word(j))
        name = j + 1 if step is not None else j
        for length in (3, 2, 1):
            text = " ".join(self.word(k) for k in range(name, name + length))
            if text in HOLIDAYS and name + length <= len(self.tokens):
                break
        else:
            return None
        month, day = HOLIDAYS[text]
        after = name + length
        year = self.year(self.skip(after, "of", "in", ","))
        if year is not None:
            return _one(date(year[0], month, day)), year[1]
        if length == 1 and step is None and self.word(i - 1) in {"a", "an", "my", "our", "your", "this"} and j == i:
            return None  # "a Christmas jumper"
        if step is None and length == 1 and not self.ends(after):
            return None
        this = date(self.today.year, month, day)
        back = self.back if step is None or step == 0 else step < 0
        if back:
            this = (
                this if this < self.today or (step is None and this == self.today) else this.replace(year=this.year - 1)
            )
        else:
            this = this if this >= self.today else this.replace(year=this.year + 1)
        return _one(this), after

    def foreign_date(self, i: int) -> Parsed[Days]:
        """A date or weekday with its name in another language: "am 3. März 2024", "12 de mayo", "el lunes"."""
        months, days = foreign_names()
        number = self.ordinal(i) or self.whole(i)
        if number is not None and 1 <= number[0] <= 31:
            k = self.skip(number[1], ".", "de", "of", "d", "di")
            if self.word(k) in months:
                year = self._foreign_year(k + 1)
                base = date(year[0] if year else self.today.year, months[self.word(k)], 1)
                return self._dated(number[0], (month_of(base), year[1] if year else k + 1), fixed=year is not None)
        if self.word(i) in months and (year := self._foreign_year(i + 1)) is not None:
            return month_of(date(year[0], months[self.word(i)], 1)), year[1]
        if self.word(i) in days and self.word(i) not in DAYS:
            inner = self.foreign_date(self.skip(i + 1, ",", "dem", "den", "le", "el", "il", "o", "dia", "día", "der"))
            if inner is not None:
                return inner
            return _one(self._near_weekday(days[self.word(i)])), i + 1
        return None

    def _foreign_year(self, i: int) -> Parsed[int]:
        return self.year(self.skip(i, "de", "del", "d", ",", "do", "van", "von"))

    def numbered_week(self, i: int) -> Parsed[Days]:
        """ "week 15 of 2024", "week 15": weeks as ISO 8601 counts them."""
        if self.word(i) not in {"week", "wk"} or self.kind(i + 1) != "number" or not 1 <= self.number(i + 1) <= 53:
            return None
        year = self.year(self.skip(i + 2, "of", "in", ","))
        first = date.fromisocalendar(year[0] if year else self.today.year, self.number(i + 1), 1)
        return Days(first, first + timedelta(weeks=1)), year[1] if year else i + 2

    def tomorrow_week(self, i: int) -> Parsed[Days]:
        """ "today week", "tomorrow fortnight"."""
        if self.word(i) in {"today", "tomorrow"} and self.word(i + 1) in {"week", "fortnight"}:
            away = 7 if self.word(i + 1) == "week" else 14
            return _one(self.today + timedelta(days=_TODAY[self.word(i)] + away)), i + 2
        return None


_DAY_RULES: tuple[Callable[[_Reader, int], Parsed[Days]], ...] = (
    _Reader.date_in_figures,
    _Reader.days_away,
    _Reader.tomorrow_week,
    _Reader.numbered_week,
    _Reader.named_day,
    _Reader.part_of,
    _Reader.nth_weekday,
    _Reader.day_of_month,
    _Reader.weekday_named,
    _Reader.feast,
    _Reader.season,
    _Reader.quarter,
    _Reader.week_or_month,
    _Reader.month_alone,
    _Reader.ordinal_alone,
    _Reader.decade,
    _Reader.year_alone,
    _Reader.foreign_date,
)


def _hours_of(span: TimeSpan) -> Hours:
    """The hours of a span within the day that it begins on."""
    midnight = datetime.combine(span.start.date(), time())
    start, end = ((moment - midnight) // timedelta(minutes=1) for moment in (span.start, span.end))
    return Hours(start, end)


def _one(day: date) -> Days:
    return Days(day, day + timedelta(days=1))


def _whole(days: Days) -> TimeSpan:
    return TimeSpan(
        datetime.combine(days.first, time()), datetime.combine(days.last, time()), about=timedelta(days=days.about)
    )


def _third(days: Days, which: int) -> Days:
    length = (days.last - days.first).days
    first = days.first + timedelta(days=length * which // 3)
    return Days(first, days.last if which == 2 else days.first + timedelta(days=length * (which + 1) // 3))


def _exists(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
