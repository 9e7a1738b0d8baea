"""A value of the type that a field asks for, or none."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.services.known import Stated
from nyima.services.values import Field, value_for
from nyima.testing.contract import claim

NOW = datetime(2026, 5, 10, 12, tzinfo=UTC)
LISBON = ZoneInfo("Europe/Lisbon")


def value(field: Field, tail: str, label: str = "thing", note: str = "") -> Any:
    return value_for(field, Stated("user", label, tail, note, claim("r")), NOW, LISBON)


@given(st.integers(0, 10**6))
def test_a_whole_number_is_read_with_and_without_separators(number: int) -> None:
    for text in (f"{number}", f"{number:,}", f"{number:,}".replace(",", " "), f"about {number} km"):
        assert value(Field("n", type="integer"), text) == number
        assert value(Field("n", type="number"), text) == float(number)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("number", "1,72 m", 1.72),
        ("number", "1.72 m", 1.72),
        ("number", "-3.5 degrees", -3.5),
        ("integer", "1.5 litres", None),
        ("integer", "2.0", 2),
        ("integer", "room B12", None),
        ("integer", "none", None),
        ("number", "1,200.50 euros", 1200.5),
    ],
)
def test_numbers_as_people_write_them(kind: str, text: str, expected: float | None) -> None:
    found = value(Field("n", type=kind), text)
    assert found == expected
    assert found is None or isinstance(found, int if kind == "integer" else float)


def test_the_year_of_a_day_answers_for_a_year() -> None:
    assert value(Field("birth_year", type="integer"), "1990-04-03") == 1990


@given(st.dates(date(1900, 1, 1), date(2100, 12, 31)))
def test_a_day_is_written_as_forms_want_it(day: date) -> None:
    assert value(Field("d", format="date"), day.isoformat()) == day.isoformat()
    assert value(Field("d", format="date-time"), day.isoformat()) is None, "a time of day is not made up"


@pytest.mark.parametrize(
    ("format", "tail", "note", "expected"),
    [
        ("date-time", "2026-05-12 01:40", "", "2026-05-12T01:40:00"),
        ("date", "2026-05-12 01:40", "", "2026-05-12"),
        ("time", "2026-05-12 01:40", "", "01:40"),
        ("time", "01:40", "", "01:40"),
        ("date", "01:40", "", None),
        ("time", "2026-05-12", "", None),
        ("date", "2026-05-12/2026-05-20", "", None),
        ("date", "the dentist", "My appointment is on 12 May 2026.", "2026-05-12"),
        ("date", "the dentist", "My appointment is on 12 May.", None),
        ("date", "31 February 2026", "", None),
    ],
)
def test_days_and_times(format: str, tail: str, note: str, expected: str | None) -> None:
    assert value(Field("d", format=format), tail, note=note) == expected


def test_a_field_called_time_wants_a_time() -> None:
    assert value(Field("t", title="Arrival time"), "2026-05-12 18:05") == "18:05"
    assert value(Field("t", title="Times visited"), "often") == "often"


@pytest.mark.parametrize(
    ("tail", "note", "expected"),
    [
        ("marta@example.pt", "", "marta@example.pt"),
        ("write to m.o+x@mail.example.co.uk.", "", "m.o+x@mail.example.co.uk"),
        ("the usual one", "Her email is a@b.pt, she said.", "a@b.pt"),
        ("marta at example", "", None),
    ],
)
def test_an_address_of_mail_is_found_in_a_sentence(tail: str, note: str, expected: str | None) -> None:
    assert value(Field("e", format="email"), tail, note=note) == expected


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("+351 913 555 210", "+351 913 555 210"),
        ("call 020 7946-0958 please", "020 7946-0958"),
        ("112", None),
        ("none", None),
    ],
)
def test_a_number_to_call(tail: str, expected: str | None) -> None:
    assert value(Field("p", title="Phone"), tail) == expected


def test_a_number_to_call_keeps_both_brackets() -> None:
    assert value(Field("p", title="Phone"), "(020) 7946 0958") == "(020) 7946 0958"


@pytest.mark.parametrize(
    ("tail", "note", "expected"),
    [
        ("yes", "", True),
        ("No", "", False),
        ("true", "", True),
        ("false", "The user smokes.", False),
        ("cigarettes", "The user does not smoke cigarettes.", False),
        ("cigarettes", "The user doesn't smoke cigarettes.", False),
        ("cigarettes", "The user never smokes.", False),
        ("cigarettes", "The user smokes cigarettes.", True),
    ],
)
def test_yes_and_no(tail: str, note: str, expected: bool) -> None:
    assert value(Field("b", type="boolean"), tail, note=note) is expected


@pytest.mark.parametrize(
    ("options", "tail", "note", "expected"),
    [
        (("single", "married"), "Married", "", "married"),
        (("A", "B", "AB"), "blood group A", "", "A"),
        (("Economy", "Business"), "prefers business class", "", "Business"),
        ((1, 2, 3), "2", "", 2),
        (("S", "M"), "small", "", None),
        (("tea", "coffee"), "tea and coffee", "", None),
        (("tea", "coffee"), "water", "The user drinks tea.", "tea"),
        (("tea",), "water", "", None),
    ],
)
def test_one_of_the_options_when_only_one_is_said(
    options: tuple[Any, ...], tail: str, note: str, expected: Any
) -> None:
    assert value(Field("o", options=options), tail, note=note) == expected


@pytest.mark.parametrize(
    ("pattern", "tail", "note", "expected"),
    [
        ("^[0-9]{4}-[0-9]{3}$", "4100-118 Porto", "", "4100-118"),
        ("^[0-9]{4}-[0-9]{3}$", "24100-1189", "", None),
        ("^(?:[A-Z]{2}|[0-9]{2})$", "PT", "", "PT"),
        ("^[A-Z]{2}$", "portugal", "The country is PT.", "PT"),
        ("[A-Z]{2}", "APT", "", None),
    ],
)
def test_the_part_that_fits_a_pattern(pattern: str, tail: str, note: str, expected: str | None) -> None:
    assert value(Field("x", pattern=pattern), tail, note=note) == expected


def test_a_plain_field_takes_what_was_said_without_its_owner_and_no_date() -> None:
    assert value(Field("x"), "user's sister Ana") == "sister Ana"
    assert value(Field("x"), "2026-05-12") is None
    assert value(Field("x"), "x" * 201) is None


fields = st.builds(
    Field,
    st.just("f"),
    type=st.sampled_from(["string", "integer", "number", "boolean", "object"]),
    format=st.sampled_from(["", "date", "date-time", "time", "email", "uri"]),
    pattern=st.sampled_from(["", "^[0-9]{2,4}$", "[A-Z]+"]),
    options=st.sampled_from([(), ("yes", "no"), (1, 2)]),
)
texts = st.text("0123456789.,:-/@+ abcXé", max_size=20)


@given(fields, texts, texts)
def test_whatever_is_said_a_value_has_the_form_of_its_field(field: Field, tail: str, note: str) -> None:
    found = value(field, tail, note=note)
    if found is None:
        return
    if field.options:
        assert found in field.options
    elif field.type in {"integer", "number", "boolean"}:
        assert type(found) is {"integer": int, "number": float, "boolean": bool}[field.type]
    elif field.format in {"date", "date-time"}:
        datetime.fromisoformat(found)
    elif field.format == "time":
        assert re.fullmatch(r"\d\d:\d\d", found)
    elif field.format == "email":
        assert "@" in found
    elif field.pattern:
        assert re.search(field.pattern, found)
