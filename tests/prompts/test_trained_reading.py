"""The form in which a trained reader is asked, and in which it answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.domain.evidence import Noted
from nyima.errors import ModelGarbled
from nyima.prompts.trained_reading import claims_answer, claims_question, read_claims_answer

MOVED = Noted("user", "lives in", "Porto")


def test_a_message_is_asked_about_with_numbered_claims() -> None:
    system, asked = claims_question(["user lives in: Leeds", "user cat:\nLuna"], "Where to?", " To Porto! ")
    assert system.role == "system"
    assert asked.content == (
        "Known:\n1. user lives in: Leeds\n2. user cat: Luna\nBefore: Where to?\nMessage: To Porto!"
    )


def test_what_is_not_there_is_a_dash() -> None:
    assert claims_question([], "", "Hi")[1].content == "Known:\n-\nBefore: -\nMessage: Hi"


@pytest.mark.parametrize(
    ("text", "claims", "over"),
    [
        ("user | lives in | Porto | holds\nover: 2", (MOVED,), (2,)),
        ("over: none", (), ()),
        ("over: 1, 3", (), (1, 3)),
        ("user | lives in | Porto | holds\nuser | works", (MOVED,), ()),
        ("user | lives in | Porto | holds\nLet me explain.\nOVER: 1", (MOVED,), (1,)),
        ("user | lives in | Porto | perhaps\nover: none", (MOVED,), ()),
    ],
)
def test_an_answer_is_read(text: str, claims: tuple[Noted, ...], over: tuple[int, ...]) -> None:
    assert read_claims_answer(text) == (claims, over)


@pytest.mark.parametrize("text", ["", "I cannot do that.", "user | lives in", "{}"])
def test_an_answer_of_another_form_is_garbled(text: str) -> None:
    with pytest.raises(ModelGarbled, match="cannot be read"):
        read_claims_answer(text)


_WORD = st.text(st.characters(categories=("Lu", "Ll", "Nd")), min_size=1, max_size=8).filter(
    lambda w: w.casefold() not in {"none", "null", "unknown", "na", "n"}
)


@given(
    st.lists(st.integers(1, 20), unique=True, max_size=4),
    st.lists(
        st.builds(Noted, _WORD, _WORD, st.just("Porto"), st.sampled_from(["holds", "ended"])), unique=True, max_size=3
    ),
)
def test_a_perfect_answer_is_read_as_it_was_meant(over: list[int], stated: list[Noted]) -> None:
    assert read_claims_answer(claims_answer(over, stated)) == (tuple(stated), tuple(over))
