"""Statements out of the user's words, without a model."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nyima.errors import ConfigError
from nyima.language.english.clauses import third_person
from nyima.language.english.extract import statements
from nyima.language.english.statement import from_fact
from nyima.language.relations import SUBCLASSES, read_subclasses, subclass_of

AT = datetime(2026, 5, 10, 9, tzinfo=UTC)
ZONE = ZoneInfo("Europe/Lisbon")


def said(text: str) -> list[tuple[str, str, str]]:
    return [(s.head, s.label, s.tail) for s in statements(text, AT, ZONE)]


@pytest.mark.req("emg.collect")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I live in Porto.", [("user", "location", "Porto")]),
        ("My office moved to Cascais.", [("My office", "location", "Cascais")]),
        ("My dog is called Bruno.", [("My dog", "name", "Bruno")]),
        ("My partner is called Ines.", [("user", "partner", "Ines")]),
        ("Henrike is my line manager.", [("user", "boss", "Henrike")]),
        ("I drive a Skoda.", [("user", "car", "a Skoda")]),
        ("I drive about 12000 km a year.", [("user", "drive_about", "12000 km a year")]),
        ("My favourite drink is kefir.", [("user", "favourite_drink", "kefir")]),
        ("I'm allergic to latex.", [("user", "allergy", "latex")]),
        ("My wifi password is plum77.", [("my wifi", "password", "plum77")]),
        ("They've relocated the October conference to Gdańsk.", [("the October conference", "location", "Gdańsk")]),
        ("My friend Otto lives in Linz.", [("My friend Otto", "location", "Linz")]),
        ("I don't like olives.", [("user", "dislike", "olives")]),
        ("You can call me Leo.", [("user", "nickname", "Leo")]),
    ],
)
def test_the_commonest_shapes(text: str, found: list[tuple[str, str, str]]) -> None:
    assert said(text) == found


@pytest.mark.req("emg.active")
@pytest.mark.parametrize(
    "text",
    [
        "What time is it?",
        "If I lived in Rome, I would cycle.",
        "Imagine I worked as a spy.",
        "My brother said I should move to Oslo.",
        'Pedro wrote: "I have a meeting on Wednesday."',
        "I might buy a boat next year.",
        "Would you order cider for me?",
        "haha, good one",
        "thanks!",
    ],
)
def test_noise_suppositions_and_quotes_state_nothing(text: str) -> None:
    assert said(text) == []


@pytest.mark.req("emg.active", "emg.types")
def test_each_statement_belongs_to_a_subclass() -> None:
    assert list(dict.fromkeys(s.type for s in SUBCLASSES)) == [
        "Relationship",
        "Preference",
        "Event",
        "Attribute",
    ]
    assert len(SUBCLASSES) == 21
    for text, subclass in (
        ("I live in Porto.", "Address"),
        ("I work as a baker.", "Occupation"),
        ("I'm engaged to Ines.", "Spouse"),
        ("I'm allergic to nuts.", "Diet preference"),
        ("I drive a Fiat.", "Car preference"),
        ("The flight leaves at 9:00 on 3 June.", "Arrangement"),
        ("Our wedding anniversary is 20 May.", "Anniversary"),
    ):
        (statement,) = statements(text, AT, ZONE)
        assert subclass_of(statement.label, statement.note) == subclass


@pytest.mark.req("emg.types")
def test_a_user_adds_types_and_subclasses_without_code() -> None:
    more = read_subclasses(["Health/Medication: I take ibuprofen for my back; My tablets are in the blue box"])
    assert (more[-1].type, more[-1].name) == ("Health", "Medication")
    assert subclass_of("take", "The user takes ibuprofen tablets.", more) == "Medication"
    for wrong in ("Medication", "Health/: x", "Health/Medication", "Health/Medication:"):
        with pytest.raises(ConfigError, match="Type/Subclass"):
            read_subclasses([wrong])


def test_what_rests_on_what() -> None:
    for text in (
        "I take the 8:10 because my office is in Sintra.",
        "Since my office is in Sintra, I take the 8:10.",
        "My office is in Sintra, so I take the 8:10.",
        "My office is in Sintra. That's why I take the 8:10.",
    ):
        found = statements(text, AT, ZONE)
        assert [(s.label, s.rests) for s in found] == [("location", ()), ("take", (0,))], text


@pytest.mark.parametrize(
    "text",
    [
        "I sold the boat.",
        "I no longer play the oboe.",
        "We broke up.",
        "I cancelled the flight.",
        "Bruno died last week.",
    ],
)
def test_endings(text: str) -> None:
    (found,) = statements(text, AT, ZONE)
    assert found.ends


def test_a_correction_is_a_change() -> None:
    (found,) = statements("No, I meant my cat is called Momo.", AT, ZONE)
    assert (found.head, found.label, found.tail, found.changes) == ("my cat", "name", "Momo", True)


@pytest.mark.req("emg.normalise")
def test_an_event_has_its_time() -> None:
    (found,) = statements("The bank meeting on 14 May is not at 10 am any more but at 2:30 pm.", AT, ZONE)
    assert (found.label, found.tail, found.changes) == ("takes_place", "2026-05-14 14:30", True)


def test_the_first_person_becomes_the_user() -> None:
    assert third_person("I take my dog to the vet") == "The user takes the user's dog to the vet."
    assert third_person("I'm allergic to nuts") == "The user is allergic to nuts."


def test_a_models_fact_is_a_statement_too() -> None:
    made = from_fact("dog_name", "Rex", "Rex is a good dog")
    assert (made.head, made.label, made.tail) == ("my dog", "name", "Rex")


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=200))
def test_any_text_can_be_read_and_nothing_is_invented(text: str) -> None:
    letters = {c for c in text.lower() if c.isalpha()}
    for statement in statements(text, AT, ZONE):
        if statement.moment is None:
            assert {c for c in statement.tail.lower() if c.isalpha()} <= letters | set("iwamouldhvenruse")


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            "I live in moved to Porto because my dog Ana's is was no longer at 9 on 12 May , . and so it the if".split()
        ),
        max_size=25,
    )
)
def test_any_order_of_common_words_can_be_read(words: list[str]) -> None:
    found = statements(" ".join(words), AT, ZONE)
    assert all(s.label and s.note for s in found)
    assert all(-1 <= r < i for i, s in enumerate(found) for r in s.rests)
