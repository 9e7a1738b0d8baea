"""When something that was said happens, in the user's zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nyima.language.times.moment import asked_period, find_moment, read_moment, yearly_of

AT = datetime(2026, 5, 10, 9, tzinfo=UTC)  # a Sunday
LISBON = ZoneInfo("Europe/Lisbon")


@pytest.mark.req("emg.normalise")
@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("it leaves at 01:40 on 12 May", "2026-05-12 01:40"),
        ("the voucher is valid until 14 May", "2026-05-14"),
        ("next Friday evening", "2026-05-15 18:00/2026-05-15 23:00"),
        ("the first week of October", "2026-10-01/2026-10-07"),
        ("last week", "2026-04-27/2026-05-03"),
        ("in three days", "2026-05-13"),
        ("tomorrow at 9", "2026-05-11 09:00"),
        ("dentist on 12 May at 3:30 pm", "2026-05-12 15:30"),
        ("from 3 June to 9 June", "2026-06-03/2026-06-09"),
        ("open 9am to 5pm on Thursday", "2026-05-14 09:00/2026-05-14 17:00"),
        ("I was born on 3 April 1990", "1990-04-03"),
        ("next month's fifth", "2026-06-05"),
        ("in May 2027", "2027-05-01/2027-05-31"),
        ("at 7 in the evening on Tuesday", "2026-05-12 19:00"),
        ("on 29 February", "2028-02-29"),
        ("the flight now leaves at 01:30", "01:30"),
        ("2026-06-01", "2026-06-01"),
    ],
)
def test_what_people_say_becomes_absolute(said: str, name: str) -> None:
    found = find_moment(said, AT, LISBON)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("said", ["31 February", "year 0", "I have 3 dogs", "the May report", "at 99:99", ""])
def test_what_does_not_exist_is_no_moment(said: str) -> None:
    assert find_moment(said, AT, LISBON) is None


def test_an_impossible_time_leaves_the_day() -> None:
    found = find_moment("at 25:00 on 3 June", AT, LISBON)
    assert found is not None
    assert (found.name, found.clock) == ("2026-06-03", False)


def test_a_day_is_a_day_of_the_users_zone() -> None:
    late = datetime(2026, 5, 10, 23, 30, tzinfo=UTC)  # half past midnight in Lisbon
    found = find_moment("tomorrow", late, LISBON)
    assert found is not None
    assert found.name == "2026-05-12"
    assert found.interval(LISBON).since == datetime(2026, 5, 11, 23, tzinfo=UTC)


def test_daylight_saving_is_kept() -> None:
    winter, summer = (find_moment(f"at 9:00 on {day} 2026", AT, LISBON) for day in ("28 March", "29 March"))
    assert winter is not None
    assert summer is not None
    assert summer.interval(LISBON).since - winter.interval(LISBON).since == timedelta(hours=23)


@pytest.mark.parametrize(
    ("text", "date"), [("14 May", (5, 14)), ("May 3rd", (5, 3)), ("1990-04-03", (4, 3)), ("31 June", None)]
)
def test_dates_that_come_every_year(text: str, date: tuple[int, int] | None) -> None:
    assert yearly_of(text) == date


@settings(deadline=None)
@given(st.text(max_size=80), st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)))
def test_any_text_gives_a_moment_that_can_be_read_again_or_none(text: str, at: datetime) -> None:
    found = find_moment(text, at.replace(tzinfo=UTC), LISBON)
    assert found is None or read_moment(found.name) is not None


@settings(deadline=None)
@given(st.dates(datetime(2000, 1, 1).date(), datetime(2080, 1, 1).date()), st.integers(0, 23), st.integers(0, 59))
def test_a_written_date_is_found_as_it_is(day: object, hour: int, minute: int) -> None:
    found = find_moment(f"the train leaves on {day:%Y-%m-%d} at {hour:02}:{minute:02}", AT, LISBON)
    assert found is not None
    assert found.name == f"{day:%Y-%m-%d} {hour:02}:{minute:02}"


@pytest.mark.parametrize(
    "text", ["until three weeks ago", "before two weeks ago", "since two weeks ago", "after 31 December 9998"]
)
def test_a_period_at_the_ends_of_the_calendar_is_one(text: str) -> None:
    for at in (AT, datetime(1, 2, 1, tzinfo=UTC), datetime(9999, 12, 1, tzinfo=UTC)):
        found = asked_period(f"Where did I eat {text}?", at, LISBON)
        assert found is None or found.until is None or found.since <= found.until
