"""Profile facts: support, keys and the merge rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.language.facts import (
    Action,
    Proposal,
    canonical_key,
    decide,
    is_placeholder,
    proposals,
    supported,
    supports_text,
)
from nyima.language.intent import wish_of, worth_keeping


def pairs(facts: dict[str, str], said: str, before: str = "") -> list[tuple[str, str]]:
    return [(p.key, p.value) for p in proposals(facts.items(), "t1", said, before)]


@pytest.mark.parametrize(
    ("value", "said", "before", "expected"),
    [
        ("Moab", "I live in Moab.", "", True),
        ("orange tabby", "She is an orange tabby", "", True),
        ("nurse", "I'm Karen, I live in Moab.", "", False),
        ("Leeds", "I live in Moab.", "", False),
        ("11", "I've had her for 11 years", "", True),
        ("12", "I've had her for 11 years", "", False),
        ("vegan", "Yes, I am.", "Are you vegan?", True),
        ("vegan", "No, not at all.", "Are you vegan?", False),
        ("上海", "我住在上海市", "", True),
        ("北京", "我住在上海市", "", False),
    ],
)
def test_a_value_must_be_in_the_users_words(value: str, said: str, before: str, expected: bool) -> None:
    assert supported(value, said, before) is expected


def test_examples_of_a_prompt_never_come_back_as_facts() -> None:
    said = "haha yeah"
    assert pairs({"job": "nurse", "location": "Leeds", "dog_name": "Max"}, said) == []


@pytest.mark.req("prof.unknown")
@pytest.mark.parametrize("value", ["unknown", "Unknown", "n/a", "not specified", "", " ? ", "…", "true", "None"])
def test_placeholders_never_enter(value: str) -> None:
    assert pairs({"cats_name": value}, f"My cat is {value} unknown, no idea what else") in ([], [("cat_name", "None")])
    if value != "None":
        assert is_placeholder(value)
        assert pairs({"cats_name": value}, f"My cat is {value}") == []


def test_keys_have_one_spelling() -> None:
    for key in ("cats_name", "Cat's name", "cat name", "user_cat_name", "my cat's name"):
        assert canonical_key(key) == "cat_name"
    assert canonical_key("City") == canonical_key("current_location") == "location"
    assert canonical_key("Occupation") == "job"


def test_a_kind_of_animal_is_no_name() -> None:
    assert pairs({"pet_name": "cat"}, "I was chilling with my cat") == [("pet", "cat")]


@pytest.mark.req("prof.merge")
@pytest.mark.parametrize(
    ("key", "value", "said", "current", "expected"),
    [
        ("age", "65", "I turned 65 today, so I'm 65 now", ("64",), Action.REPLACE),
        ("pet", "dog", "We have a dog, too", ("cat",), Action.ADD),
        ("hobby", "chess", "I play chess", (), Action.ADD),
        ("dog_name", "None", "Max died last year", ("Max",), Action.DELETE),
        ("dog_name", "None", "I have no dog", (), Action.IGNORE),
        ("location", "Porto", "Actually I moved to Porto", ("Moab",), Action.REPLACE),
        ("location", "Arches", "I work as a ranger at Arches", ("Moab",), Action.ASK),
        ("name", "Nyima", "Nyima, an orange tabby", ("Karen",), Action.IGNORE),
        ("name", "Kari", "Call me Kari", ("Karen",), Action.REPLACE),
        ("age", "11", "I've had her for 11 years", (), Action.IGNORE),
        ("car", "Saab", "I drive a Saab", ("Volvo",), Action.ASK),
        ("car", "Saab", "I drive a Saab now", ("Volvo",), Action.REPLACE),
        ("car", "volvo", "My Volvo is old", ("Volvo",), Action.IGNORE),
    ],
)
def test_merge_rules(key: str, value: str, said: str, current: tuple[str, ...], expected: Action) -> None:
    assert decide(Proposal(key, value, "t1", said), current) is expected


def test_a_deletion_needs_a_negation() -> None:
    assert pairs({"dog_name": "None"}, "My dog is lovely") == []
    assert pairs({"dog_name": "None"}, "Max died last year") == [("dog_name", "None")]


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_checked(value: str, said: str, before: str) -> None:
    proposals([(value, said), ("k", value)], "t1", said, before)
    assert supports_text(value, (said,), 0.5) in {True, False}
    assert worth_keeping(said, None, 0) in {True, False}


@pytest.mark.parametrize(
    ("said", "wish"),
    [
        ("I've had her for 11 years. And please keep your answers short.", "please keep your answers short"),
        ("Call me Kari from now on", ""),
        ("Can you keep your answers short?", ""),
        ("What is the capital of France?", ""),
    ],
)
def test_a_wish_for_the_assistant_is_seen_without_a_model(said: str, wish: str) -> None:
    assert wish_of(said) == wish


@pytest.mark.parametrize(
    ("said", "model", "facts", "kept"),
    [
        ("haha yeah", True, 0, False),
        ("What is the capital of France?", True, 2, False),
        ("Can you feed my cat Rex?", True, 1, True),
        ("I'm allergic to walnuts, so no cake.", False, 0, True),
        ("Tell me a joke about penguins.", False, 0, False),
        ("That list was too long, two are enough.", True, 0, True),
        ("That list was too long, two are enough.", None, 0, True),
        ("我对核桃过敏，请不要推荐核桃蛋糕", None, 0, True),
    ],
)
def test_features_correct_the_models_word(said: str, model: bool | None, facts: int, kept: bool) -> None:
    assert worth_keeping(said, model, facts) is kept
