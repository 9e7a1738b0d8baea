"""Reminders and ways at the edges of days, years and zones."""

from __future__ import annotations

import urllib.parse
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import icalendar
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.app.environment import build, load_settings
from nyima.errors import InputError
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory
from nyima.services import Place, calendar, destination, upcoming
from nyima.services.reminders import Reminder
from nyima.testing import FixedClock
from nyima.testing.contract import claim

At = Callable[..., Any]


@asynccontextmanager
async def memory_at(db: Path, now: datetime, zone: str = "UTC") -> AsyncIterator[Memory]:
    memory = Memory(build(load_settings(db=db, zone=zone), chat=None, embedder=None, clock=FixedClock(now)))
    yield memory
    await memory.close()


@pytest.mark.parametrize(
    ("today", "said", "next_one"),
    [
        (date(2026, 5, 10), "10 May", date(2026, 5, 10)),
        (date(2026, 5, 10), "9 May", date(2027, 5, 9)),
        (date(2026, 5, 10), "1980-05-14", date(2026, 5, 14)),
        (date(2026, 2, 1), "29 February", date(2026, 2, 28)),
        (date(2027, 12, 31), "29 February", date(2028, 2, 29)),
        (date(2026, 12, 31), "1 January", date(2027, 1, 1)),
    ],
)
async def test_a_birthday_comes_every_year(db: Path, today: date, said: str, next_one: date) -> None:
    async with memory_at(db, datetime(today.year, today.month, today.day, 12, tzinfo=UTC)) as memory:
        await memory.state(Statement("user's mother", "birthday", said))
        (found,) = await upcoming(memory, 366)
    assert (found.title, found.start.date(), found.whole_day, found.every) == (
        "mother's birthday",
        next_one,
        True,
        "year",
    )
    assert found.end - found.start == timedelta(days=1)


async def test_the_users_own_birthday_is_theirs(db: Path) -> None:
    async with memory_at(db, datetime(2026, 5, 10, tzinfo=UTC)) as memory:
        await memory.state(Statement("user", "birthday", "14 May"))
        await memory.state(Statement("Ida", "birthday", "not told"))
        assert [r.title for r in await upcoming(memory, 30)] == ["My birthday"]


@pytest.mark.parametrize(("hours", "seen"), [(-25, False), (-23, True), (0, True), (13 * 24, True), (15 * 24, False)])
async def test_what_still_lasts_or_begins_within_the_days_comes_up(db: Path, hours: int, seen: bool) -> None:
    now = datetime(2026, 5, 10, 12, tzinfo=UTC)
    start = now + timedelta(hours=hours)
    async with memory_at(db, now) as memory:
        whole = f"{start:%Y-%m-%d %H:%M}/{start + timedelta(hours=24):%Y-%m-%d %H:%M}"
        await memory.state(Statement("user's trip", "takes_place", whole))
        assert bool(await upcoming(memory, 14)) is seen


async def test_a_time_is_of_the_users_zone_also_when_clocks_change(db: Path) -> None:
    async with memory_at(db, datetime(2026, 3, 27, 12, tzinfo=UTC), "Europe/Lisbon") as memory:
        await memory.state(Statement("user's dentist appointment", "takes_place", "2026-03-28 09:00"))
        await memory.state(Statement("user's haircut", "takes_place", "2026-03-30 09:00"))
        found = [(r.title, r.start.astimezone(UTC)) for r in await upcoming(memory)]
    assert found == [
        ("Dentist appointment", datetime(2026, 3, 28, 9, tzinfo=UTC)),
        ("Haircut", datetime(2026, 3, 30, 8, tzinfo=UTC)),
    ]


async def test_a_point_in_time_lasts_an_hour_and_a_day_a_day(db: Path) -> None:
    async with memory_at(db, datetime(2026, 5, 10, tzinfo=UTC)) as memory:
        await memory.state(Statement("EK349 flight", "departs", "2026-05-12 01:40"))
        await memory.state(Statement("user's passport", "expires", "2026-05-13"))
        flight, passport = await upcoming(memory)
    assert (flight.title, flight.end - flight.start, flight.whole_day) == (
        "EK349 flight departs",
        timedelta(hours=1),
        False,
    )
    assert (passport.title, passport.end - passport.start) == ("Passport expires", timedelta(days=1))


async def test_what_somebody_else_does_is_no_reminder(db: Path) -> None:
    async with memory_at(db, datetime(2026, 5, 10, tzinfo=UTC)) as memory:
        await memory.state(Statement("Rui", "departs", "2026-05-12"))
        assert await upcoming(memory) == []


async def test_one_event_told_twice_is_one(db: Path) -> None:
    async with memory_at(db, datetime(2026, 5, 10, tzinfo=UTC)) as memory:
        for name in ("user's dentist appointment", "yearly dentist appointment", "user's haircut"):
            await memory.state(Statement(name, "takes_place", "2026-05-12 10:00"))
        assert sorted(r.title for r in await upcoming(memory))[1:] == ["Haircut"]


odd = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=80).filter(
    lambda text: r"\N" not in text  # icalendar takes these two characters for a line break
)


@given(odd.filter(str.strip), odd, st.sampled_from(["", "year", "week"]), st.booleans())
def test_a_calendar_says_again_what_it_was_given(title: str, note: str, every: str, whole: bool) -> None:
    start = datetime(2026, 5, 12, 1, 40, tzinfo=UTC)
    made = Reminder(title, start, start + timedelta(hours=30), whole, claim("r", object=note), every)
    (event,) = icalendar.Calendar.from_ical(calendar([made], start)).walk("VEVENT")
    assert str(event["summary"]) == title
    assert str(event["description"]) == made.evidence.text
    assert event.decoded("dtstart") == (start.date() if whole else start)
    assert event.decoded("dtend") == ((start + timedelta(hours=30)).date() if whole else start + timedelta(hours=30))
    assert (event["rrule"].to_ical() if every else b"") == {"": b"", "year": b"FREQ=YEARLY", "week": b"FREQ=WEEKLY"}[
        every
    ]


def test_an_empty_calendar_is_one() -> None:
    data = calendar([], datetime(2026, 5, 10, tzinfo=UTC))
    assert data.startswith(b"BEGIN:VCALENDAR")
    assert b"VEVENT" not in data


# --- ways ---

Asked = Callable[[Memory], Coroutine[Any, Any, Any]]


@pytest.mark.parametrize(
    ("address", "geo"),
    [
        ("38.7223, -9.1393", "geo:38.7223,-9.1393"),
        ("at 61.22340,8.11120 by the lake", "geo:61.22340,8.11120"),
        ("Rua 1.5, 2.555", "geo:0,0?q=Rua%201.5%2C%202.555"),
        ("Rua <b>&x=1#y", "geo:0,0?q=Rua%20%3Cb%3E%26x%3D1%23y"),
    ],
)
def test_a_link_holds_the_address_and_nothing_more(address: str, geo: str) -> None:
    place = Place("x", address, claim("r"))
    assert place.geo == geo
    assert urllib.parse.parse_qs(urllib.parse.urlsplit(place.link).query) == {"query": [address]}
    assert "#" not in place.link


@pytest.mark.parametrize("asked", ["", " ", "\t\n"])
async def test_nothing_leads_nowhere(memory: Memory, asked: str) -> None:
    with pytest.raises(InputError, match="say where to: a place, a person or a booking"):
        await destination(memory, asked)


async def test_a_word_is_no_address(memory: Memory) -> None:
    await memory.state(Statement("user's gym", "location", "downtown"))
    assert (await destination(memory, "the gym")).place is None
    await memory.state(Statement("user's gym", "location", "Rua Nova 1"))
    found = (await destination(memory, "the gym")).place
    assert found is not None
    assert (found.name, found.address) == ("gym", "Rua Nova 1")


async def test_home_is_where_the_user_lives(memory: Memory) -> None:
    await memory.state(Statement("user", "location", "Rua da Prata 80, Lisbon"))
    await memory.state(Statement("user's office", "address", "Rua Nova 1, Sintra"))
    for asked in ("home", "take me to my house", "directions to my flat"):
        found = (await destination(memory, asked)).place
        assert found is not None, asked
        assert found.address == "Rua da Prata 80, Lisbon"


async def test_an_address_that_is_not_believed_any_more_is_not_given(memory: Memory) -> None:
    said = await memory.state(Statement("user's dentist", "address", "Rua do Sol 45, Lisbon"))
    await memory.retire(said.id)
    assert (await destination(memory, "my dentist")).place is None
