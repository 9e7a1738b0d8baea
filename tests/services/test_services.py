"""Forms, reminders and ways, from what was told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import icalendar
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nyima.app.environment import build, load_settings
from nyima.domain.records import Status
from nyima.errors import InputError, NyimaError
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory
from nyima.services import calendar, destination, fill, read_form, upcoming
from nyima.testing import FixedClock, HashEmbedder

NOW = datetime(2026, 5, 10, 12, tzinfo=UTC)
LISBON = ZoneInfo("Europe/Lisbon")
JUDGED = Path(__file__).parents[1] / "judged"


@pytest.fixture
async def told(db: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    clock.at = NOW
    parts = build(load_settings(db=db, zone="Europe/Lisbon"), chat=None, embedder=HashEmbedder(size=256), clock=clock)
    memory = Memory(parts)
    yield memory
    await memory.close()


async def tell(memory: Memory, *said: tuple[str, str, str]) -> None:
    for subject, attribute, value in said:
        await memory.state(Statement(subject, attribute, value))
        memory.clock.forward(minutes=5)  # type: ignore[attr-defined]


def form(**fields: dict[str, object]) -> str:
    return json.dumps({"title": "Booking", "type": "object", "properties": fields, "required": list(fields)[:1]})


@pytest.mark.req("emg.forms")
async def test_each_field_has_its_value_evidence_and_confidence(told: Memory) -> None:
    await tell(
        told,
        ("user", "name", "Marta Oliveira"),
        ("user", "email address", "marta@example.pt"),
        ("user", "born on", "3 April 1990"),
        ("friend Rui", "phone number", "+351 913 555 210"),
        ("daughter", "name", "Beatriz"),
        ("user", "marital status", "married"),
        ("user", "height", "1.72 m"),
    )
    filled = await fill(
        told,
        read_form(
            form(
                name={"type": "string", "title": "Full name"},
                email={"type": "string", "format": "email"},
                birth_date={"type": "string", "format": "date", "title": "Date of birth"},
                phone={"type": "string", "title": "Phone number"},
                child_name={"type": "string", "title": "Child's name"},
                marital_status={"type": "string", "enum": ["single", "married"]},
                height={"type": "number", "title": "Height in metres"},
                passport_number={"type": "string", "title": "Passport number"},
            )
        ),
    )
    values = {f.field.name: f.value for f in filled}
    assert values == {
        "name": "Marta Oliveira", "email": "marta@example.pt", "birth_date": "1990-04-03", "phone": None,
        "child_name": "Beatriz", "marital_status": "married", "height": 1.72, "passport_number": None,
    }  # fmt: skip
    for one in filled:
        assert (one.evidence is None) == (one.value is None)
        assert 0.0 <= one.confidence <= 1.0
        assert one.value is None or one.confidence >= 0.5
    assert filled[0].field.required


@pytest.mark.req("emg.forms")
async def test_what_a_field_asks_is_kept(told: Memory) -> None:
    await tell(told, ("user", "postcode", "4100-118"), ("user", "age", "36"), ("user", "born on", "3 April"))
    asked = form(
        postcode={"type": "string", "pattern": "^[0-9]{4}-[0-9]{3}$"},
        other_postcode={"type": "string", "title": "Postcode", "pattern": "^[A-Z]{2}$"},
        age={"type": "integer", "minimum": 0, "maximum": 20},
        short={"type": "string", "title": "Postcode", "maxLength": 3},
    )
    values = {f.field.name: f.value for f in await fill(told, read_form(asked))}
    assert values == {"postcode": "4100-118", "other_postcode": None, "age": None, "short": None}


@pytest.mark.req("emg.forms")
async def test_an_html_form_is_read_and_its_scripts_are_not(told: Memory) -> None:
    await tell(told, ("user", "email", "marta@example.pt"), ("user", "diet", "vegan"))
    page = """<html><head><title>Sign up</title><script>document.write('<input name=evil>')</script></head><body>
    <form><label for=e>E-mail</label><input id=e name=mail type=email required>
    <label>Diet <select name=diet><option value=''>-</option><option value=vegan>Vegan</option><option value=other>Other</option></select></label>
    <input type=hidden name=token value=1><input type=password name=secret><textarea name=comments></textarea>
    <input type=submit></form></body></html>"""
    read = read_form(page)
    assert [f.name for f in read.fields] == ["mail", "diet", "comments"]
    assert read.title == "Sign up"
    assert {f.field.name: f.value for f in await fill(told, read)} == {
        "mail": "marta@example.pt",
        "diet": "vegan",
        "comments": None,
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "neither HTML nor JSON"),
        ("{]", "neither HTML nor JSON"),
        ("[]", "no properties"),
        ('{"type": "object"}', "no properties"),
        ('{"properties": {}}', "no field"),
        ('{"properties": {"a": {"pattern": "("}}}', "pattern"),
        ('{"properties": {"a": {"$ref": "#/nowhere"}}}', r"\$ref"),
        ('{"properties": {"a": {"enum": 5}}}', "enum must be a list"),
        ('{"properties": {"a": {"type": "number", "minimum": "5"}}}', "numbers"),
        ("<html><script>1</script></html>", "no field"),
    ],
)
def test_what_is_no_form_is_explained(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_form(text)


async def test_what_is_not_the_users_or_not_said_fills_nothing(told: Memory) -> None:
    await tell(
        told,
        ("sister", "phone number", "912 000 111"),
        ("user", "email", "a@b.pt"),
        ("user", "rent", "1,200.50 euros"),
        ("user", "flight departs", "12 May 2026"),
    )
    asked = form(
        phone={"title": "Phone number"},
        email={"title": "Employer email"},
        rent={"title": "Rent", "type": "number"},
        departure={"title": "Flight departure", "format": "date-time"},
        day={"title": "Flight departure", "format": "date"},
    )
    assert {f.field.name: f.value for f in await fill(told, read_form(asked))} == {
        "phone": None,
        "email": None,
        "rent": 1200.5,
        "departure": None,
        "day": "2026-05-12",
    }


def test_required_may_be_written_at_the_field() -> None:
    (field,) = read_form('{"properties": {"a": {"required": true}}, "required": true}').fields
    assert field.required


async def test_two_events_at_one_time_are_two(told: Memory) -> None:
    await tell(
        told,
        ("user", "dentist appointment", "2026-05-20 10:00"),
        ("user", "haircut appointment", "2026-05-20 10:00"),
        ("Ida", "birthday", "21 May"),
        ("Rui", "birthday", "21 May"),
    )
    assert len(await upcoming(told)) == 4


def test_recursion_and_large_choices_end() -> None:
    schema = {
        "properties": {
            "name": {"type": "string"},
            "child": {"$ref": "#"},
            "code": {"enum": [f"v{i}" for i in range(10_000)]},
        },
    }
    read = read_form(json.dumps(schema))
    assert len(read.fields) <= 500
    assert {len(f.options) for f in read.fields} == {0, 10_000}
    assert (
        read_form('{"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": ["integer", "null"]}}}')
        .fields[0]
        .type
        == "integer"
    )


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_a_form_or_a_clear_error(text: str) -> None:
    for given_text in (text, f"<form>{text}<input name=a></form>"):
        with contextlib.suppress(InputError):
            assert read_form(given_text).fields


@pytest.mark.req("emg.reminders")
async def test_what_comes_up_and_not_what_is_past_or_called_off(told: Memory) -> None:
    await tell(
        told,
        ("user", "haircut", "2026-05-05 13:00"),
        ("user", "dinner with Joana", "2026-05-15 18:00"),
        ("mother", "birthday", "14 May"),
        ("user", "wedding anniversary", "2 January"),
        ("user", "dentist appointment", "2026-05-13 09:00"),
        ("Choir practice", "takes place", "on Tuesdays"),
        ("brother Tom", "dentist appointment", "2026-05-13 11:00"),
    )
    off = await told.state(Statement("user", "dermatologist appointment", "2026-05-14 11:00"))
    await told.retire(off.id)
    await told.state(Statement("user", "meeting", "2026-05-14 15:00", status=Status.DENIED))
    found = [
        (r.title, r.start.astimezone(LISBON).replace(tzinfo=None), r.whole_day, r.every)
        for r in await upcoming(told, 14)
    ]
    assert found == [
        ("Choir practice", datetime(2026, 5, 12), True, "week"),
        ("Dentist appointment", datetime(2026, 5, 13, 9), False, ""),
        ("mother's birthday", datetime(2026, 5, 14), True, "year"),
        ("Dinner with Joana", datetime(2026, 5, 15, 18), False, ""),
    ]
    assert [r.title for r in await upcoming(told, 300)][-1] == "My anniversary"
    for wrong in (0, -1, 100_000):
        with pytest.raises(InputError):
            await upcoming(told, wrong)


@pytest.mark.req("emg.reminders")
async def test_the_calendar_file_is_right_about_zones_and_years(told: Memory) -> None:
    await tell(told, ("user", "dentist appointment", "2026-05-12 15:30"), ("mother", "birthday", "14 May"))
    read = icalendar.Calendar.from_ical(calendar(await upcoming(told), NOW))
    one, other = read.walk("VEVENT")
    assert one.decoded("dtstart") == datetime(2026, 5, 12, 14, 30, tzinfo=UTC), "summer time in Lisbon"
    assert str(one["summary"]) == "Dentist appointment"
    assert other.decoded("dtstart") == datetime(2026, 5, 14).date()
    assert other.decoded("dtend") - other.decoded("dtstart") == timedelta(days=1)
    assert other["rrule"].to_ical() == b"FREQ=YEARLY"
    assert one["uid"] != other["uid"]
    again = icalendar.Calendar.from_ical(calendar(await upcoming(told), NOW)).walk("VEVENT")
    assert again[0]["uid"] == one["uid"], "importing twice adds nothing twice"


@pytest.mark.req("emg.travel")
async def test_the_address_that_is_meant(told: Memory) -> None:
    await tell(
        told,
        ("dentist", "address", "Rua do Sol 45, Lisbon"),
        ("user", "lives at", "Avenida da Boavista 310, Porto"),
        ("user", "sister", "Inês"),
        ("Inês", "lives at", "Rua de São Bento 233, Lisbon"),
        ("pharmacy near the flat", "address", "Rua Garrett 15, Lisbon"),
        ("pharmacy near the office", "address", "Rua Castilho 39, Lisbon"),
    )
    for asked, address in (
        ("my dentist", "Rua do Sol 45, Lisbon"),
        ("home", "Avenida da Boavista 310, Porto"),
        ("my sister's place", "Rua de São Bento 233, Lisbon"),
    ):
        found = await destination(told, asked)
        assert found.place is not None, asked
        assert found.place.address == address
    assert found.place is not None
    assert found.place.geo == "geo:0,0?q=Rua%20de%20S%C3%A3o%20Bento%20233%2C%20Lisbon"
    assert found.place.link.startswith("https://www.openstreetmap.org/search?query=Rua%20de")
    both = await destination(told, "the pharmacy")
    assert both.place is None
    assert [p.address for p in both.choices] == ["Rua Castilho 39, Lisbon", "Rua Garrett 15, Lisbon"]
    nowhere = await destination(told, "the airport")
    assert (nowhere.place, nowhere.choices) == (None, ())
    with pytest.raises(InputError):
        await destination(told, " ")


async def test_coordinates_make_an_exact_geo_uri(told: Memory) -> None:
    await told.state(Statement("user's cabin", "address", "61.22340, 8.11120"))
    found = await destination(told, "the cabin")
    assert found.place is not None
    assert found.place.geo == "geo:61.22340,8.11120"


async def test_what_is_uncertain_fills_nothing(told: Memory) -> None:
    office = await told.state(Statement("user's office", "address", "Rua Nova 1, Sintra"))
    await told.state(Statement("user", "phone", "+351 900 000 001", depends_on=(office.id,)))
    await told.retire(office.id)
    (filled,) = await fill(told, read_form(form(phone={"type": "string"})))
    assert filled.value is None


@pytest.mark.req("emg.metrics")
async def test_the_committed_cases_by_exact_match() -> None:
    from nyima_lab.measure.exact_match import read_skill_cases, run_skill

    least = {"reminders": (40, 0.8), "travel": (20, 0.8)}
    for skill in least:
        cases = read_skill_cases(JUDGED / f"{skill}.jsonl")
        report = await run_skill(skill, cases, HashEmbedder(size=256), by_hand=True)
        assert report["items"] >= least[skill][0]
        assert report["exact"] >= least[skill][1], report["wrong"]
    with pytest.raises(NyimaError):
        await run_skill("cooking", [], None, by_hand=True)
