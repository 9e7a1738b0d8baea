"""What comes up: appointments, trips, ends of validity, and birthdays and anniversaries
every year (Wang et al. 2024, section 4.4); as iCalendar for any calendar."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from nyima.domain.records import MemoryRecord
from nyima.errors import ConfigError, InputError
from nyima.language.english.fields import WEEKLY, is_person
from nyima.language.times.moment import Moment, read_moment, yearly_of
from nyima.language.times.vocabulary import DAYS
from nyima.language.words import stems
from nyima.memory import Memory
from nyima.services.known import Stated, known

__all__ = ["Reminder", "calendar", "upcoming"]

_YEARLY = frozenset({"birthday", "anniversary"})
_VERB = {"departs": "departs", "arrives": "arrives", "ends": "ends", "expires": "expires"}


@dataclass(frozen=True, slots=True)
class Reminder:
    """An event. ``start`` and ``end`` are aware; ``whole_day`` events have no time of day;
    ``every`` is empty, ``year`` or ``week``."""

    title: str
    start: datetime
    end: datetime
    whole_day: bool
    evidence: MemoryRecord
    every: str = ""


async def upcoming(memory: Memory, days: int = 14) -> list[Reminder]:
    """What begins within the next ``days`` days, or still lasts, soonest first. What is past
    or was called off is not among it."""
    if not 0 < days <= 3_660:
        raise InputError(f"{days} days cannot be looked ahead: give 1 to 3660")
    zone = memory.zone
    now = memory.clock.now()
    found: list[Reminder] = []
    for item in await known(memory):
        reminder = _reminder(item, now, zone)
        if reminder is not None and reminder.end > now and reminder.start < now + timedelta(days=days):
            found.append(reminder)
    found.sort(key=lambda r: (r.start, r.title, r.evidence.id))
    return _once(found)


def _once(found: list[Reminder]) -> list[Reminder]:
    """One event once, however often it was told."""
    kept: list[Reminder] = []
    for reminder in found:
        if not any(k.start == reminder.start and _same_event(k.title, reminder.title) for k in kept):
            kept.append(reminder)
    return kept


def _same_event(one: str, other: str) -> bool:
    """Whether two titles name one event: one says all that the other does."""
    a, b = stems(one), stems(other)
    return bool(a and b) and (a <= b or b <= a)


def _reminder(item: Stated, now: datetime, zone: tzinfo) -> Reminder | None:
    if item.label in _YEARLY:
        return _yearly(item, now, zone)
    if not item.mine and is_person(item.head):
        return None  # somebody's own appointment is not the user's
    weekly = WEEKLY.search(item.tail)
    if weekly:
        return _weekly(item, DAYS[weekly[1].lower()], now, zone)
    moment = read_moment(item.record.when) or read_moment(item.tail)
    if moment is None or not moment.dated or _aware(moment.end, zone) <= item.record.valid.since:
        return None  # it had happened when it was told
    return _once_only(item, moment, zone)


def _title(item: Stated) -> str:
    """The event in words: of the user's own the value, or the attribute where the value is only a date."""
    verb = _VERB.get(item.label, "")
    name = item.head if not item.mine else item.record.attribute if read_moment(item.tail) else item.tail
    name = name[:1].upper() + name[1:]
    return f"{name} {verb}".strip()


def _aware(moment: datetime, zone: tzinfo) -> datetime:
    return moment.replace(tzinfo=zone)


def _once_only(item: Stated, moment: Moment, zone: tzinfo) -> Reminder:
    start, end = _aware(moment.start, zone), _aware(moment.end, zone)
    if moment.clock and end <= start:
        end = start + timedelta(hours=1)
    return Reminder(_title(item), start, end, not moment.clock, item.record)


def _yearly(item: Stated, now: datetime, zone: tzinfo) -> Reminder | None:
    comes = yearly_of(item.tail)
    if comes is None:
        return None
    today = now.astimezone(zone).date()
    for year in (today.year, today.year + 1):
        month, day = comes if comes != (2, 29) or year % 4 == 0 else (2, 28)
        start = datetime.combine(date(year, month, day), time())
        if start.date() >= today:
            break
    else:
        return None
    title = f"My {item.label}" if item.mine else f"{item.head}'s {item.label}"
    return Reminder(title, _aware(start, zone), _aware(start + timedelta(days=1), zone), True, item.record, "year")


def _weekly(item: Stated, weekday: int, now: datetime, zone: tzinfo) -> Reminder:
    today = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    start = today + timedelta(days=(weekday - today.weekday()) % 7)
    return Reminder(
        _title(item), _aware(start, zone), _aware(start + timedelta(days=1), zone), True, item.record, "week"
    )


def calendar(reminders: list[Reminder], at: datetime) -> bytes:
    """The events as an iCalendar file (RFC 5545), times in UTC, days as days. Raises
    ConfigError when the icalendar package is missing."""
    try:
        import icalendar
    except ImportError as error:
        raise ConfigError("calendars need the icalendar package: pip install 'nyima[skills]'") from error
    out = icalendar.Calendar()
    out.add("prodid", "-//Nyima//reminders//EN")
    out.add("version", "2.0")
    for reminder in reminders:
        event = icalendar.Event()
        event.add("uid", f"{uuid.uuid5(uuid.NAMESPACE_URL, reminder.evidence.id)}@nyima")
        event.add("dtstamp", at.astimezone(UTC))
        event.add("summary", reminder.title)
        if reminder.whole_day:
            event.add("dtstart", reminder.start.date())
            event.add("dtend", reminder.end.date())
        else:
            event.add("dtstart", reminder.start.astimezone(UTC))
            event.add("dtend", reminder.end.astimezone(UTC))
        if reminder.every:
            event.add("rrule", {"freq": "yearly" if reminder.every == "year" else "weekly"})
        event.add("description", reminder.evidence.text)
        out.add_component(event)
    return bytes(out.to_ical())
