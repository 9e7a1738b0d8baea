"""The grammar of time on phrases that other people wrote, told and asked, in three zones."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nyima.language.times.grammar import find_time, find_times
from nyima.language.times.moment import asked_period, find_moment, without_times

CASES = Path(__file__).parents[2] / "judged" / "times.jsonl"
TOKYO = ZoneInfo("Asia/Tokyo")
MORNING = datetime(2026, 11, 22, 23, 30, tzinfo=UTC)  # Monday, half past eight in Tokyo


def right(case: dict[str, Any]) -> bool:
    """Whether every moment that is surely meant lies in the span, and none that is surely not."""
    zone = ZoneInfo(case["zone"])

    def moment(text: str) -> datetime:
        return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)

    at = moment(case["at"])
    found = find_time(case["text"], at, zone, asked=case["use"] == "asked")
    if found is None or case.get("none"):
        return found is None and bool(case.get("none"))
    limits = found.limits(at, zone)
    until = limits.until
    if until is not None and until <= limits.since:
        until = limits.since + timedelta(minutes=1)

    def within(text: str) -> bool:
        return limits.since <= moment(text) and (until is None or moment(text) < until)

    return all(map(within, case["inside"])) and not any(map(within, case["outside"]))


def test_phrases_of_time_are_understood_told_and_asked_in_every_zone(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    counts, hits = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for case in cases:
        good = right(case)
        for what in ("all", case["use"], case["zone"]):
            counts[case["part"], what] += 1
            hits[case["part"], what] += good
    shares = {key: hits[key] / counts[key] for key in counts}
    with capsys.disabled():
        print("\n" + "  ".join(f"{part} {what} {share:.2f}" for (part, what), share in sorted(shares.items())))
    assert len(cases) >= 300
    assert shares["dev", "all"] >= 0.95
    assert min(share for (part, _), share in shares.items() if part == "report") >= 0.85


@pytest.mark.parametrize(
    ("asked", "since", "until"),
    [
        ("what did I buy yesterday", "2026-11-22", "2026-11-23"),
        ("what did I say seven days ago", "2026-11-16", "2026-11-17"),
        ("what did we do on Monday", "2026-11-16", "2026-11-17"),
        ("what did we do on the 3rd", "2026-11-03", "2026-11-04"),
        ("what happened in the first week of March", "2026-03-01", "2026-03-08"),
    ],
)
def test_a_question_is_about_days_of_the_users_zone(asked: str, since: str, until: str) -> None:
    found = asked_period(asked, MORNING, TOKYO)
    assert found is not None
    assert found.until is not None
    days = [moment.astimezone(TOKYO).strftime("%Y-%m-%d %H:%M") for moment in (found.since, found.until)]
    assert days == [f"{since} 00:00", f"{until} 00:00"]


@pytest.mark.parametrize(
    "phrase", ["yesterday", "three days ago", "last Friday", "last week", "in March", "on 5 May 2024"]
)
def test_a_phrase_means_the_same_told_and_asked(phrase: str) -> None:
    told = find_moment(f"We went to Porto {phrase}.", MORNING, TOKYO)
    asked = find_time(f"Where did we go {phrase}?", MORNING, TOKYO, asked=True)
    assert told is not None
    assert asked is not None
    assert (told.start, told.end) == (asked.start, asked.end)


def test_an_hour_that_the_clocks_skip_has_passed_all_the_same() -> None:
    zone = ZoneInfo("Europe/Lisbon")
    at = datetime(2026, 3, 29, 2, 30, tzinfo=zone)  # the clocks went from one to two
    found = find_time("It rang two hours ago.", at, zone)
    assert found is not None
    assert found.start == datetime(2026, 3, 28, 23, 30)


def test_a_text_loses_its_phrases_of_time_and_nothing_else() -> None:
    assert without_times("The dentist on 12 May at 3:30 pm in Porto") == "The dentist in Porto"
    assert without_times("My friend April may march in second place") == "My friend April may march in second place"


@settings(deadline=None)
@given(st.text(max_size=200), st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)))
def test_any_text_at_any_time_has_spans_in_order_or_none(text: str, at: datetime) -> None:
    found = list(find_times(text + " next week until 5pm tomorrow", at.replace(tzinfo=UTC), TOKYO))
    assert all(0 <= a.begin < a.stop <= b.begin for a, b in itertools.pairwise(found))
    for span in found:
        limits = span.limits(at.replace(tzinfo=UTC), TOKYO)
        assert limits.until is None or limits.since <= limits.until


def test_the_names_of_other_languages_are_those_of_the_library() -> None:
    import importlib.util

    tool = Path(__file__).parents[3] / "tools" / "date_names.py"
    spec = importlib.util.spec_from_file_location("date_names", tool)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.TARGET.read_text("utf-8") == module.rendered()
