"""Quotes, and the names of entities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import said
from nyima.domain.conversation import Origin, Role
from nyima.domain.records import ME, Interval, Provenance
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory
from nyima.write.claims import claim_id, is_owners, quote_of
from nyima.write.entities import Entities, plain_name

TEXT = "It rains. We moved to Porto in May! The cat is fine."


@pytest.mark.parametrize(
    ("value", "quote"),
    [
        ("Porto", "We moved to Porto in May!"),
        ("porto, in MAY", "We moved to Porto in May!"),
        ("a fine cat", "The cat is fine."),
        ("Lisbon", None),
        ("nurse in Leeds", None),
        ("3 cats", None),
        ("", None),
    ],
)
def test_a_quote_is_the_sentence_that_has_the_value(value: str, quote: str | None) -> None:
    found = quote_of(value, said("t", TEXT))
    assert (TEXT[found.start : found.end] if found else None) == quote


@given(st.text("ab .!?\n猫は1", max_size=60), st.text("ab 猫1", min_size=1, max_size=12))
def test_a_quote_lies_within_its_turn(text: str, value: str) -> None:
    found = quote_of(value, said("t", text))
    assert found is None or (0 <= found.start <= found.end <= len(text) and found.turn == "t")


@pytest.mark.parametrize(
    ("role", "origin", "own"),
    [
        (Role.USER, Origin.USER, True), (Role.USER, Origin.IMPORT, True), (Role.ASSISTANT, Origin.ASSISTANT, False),
        (Role.USER, Origin.DOCUMENT, False), (Role.USER, Origin.TOOL, False), (Role.TOOL, Origin.USER, False),
    ],
)  # fmt: skip
def test_only_the_owners_own_words_state_and_end(role: Role, origin: Origin, own: bool) -> None:
    assert is_owners(said("t", "x", role, origin=origin)) is own


def test_writing_twice_adds_once() -> None:
    assert claim_id("t", ME, "Lives in", "PORTO") == claim_id("t", ME, "lives in", "porto")
    assert len({claim_id(t, ME, "lives in", v) for t in "ab" for v in ("Porto", "Rome")}) == 4


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("user's dog", "dog"), ("the user’s sister Ana", "sister Ana"), ("user", ME), ("User", ME), ("the user", ME),
        ("  Ana. ", "Ana"), ("", ME), ("username", "username"), ("用户的猫", "用户的猫"),
    ],
)  # fmt: skip
def test_a_name_is_as_entities_have_it(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def entities(memory: Memory) -> Entities:
    return Entities(memory.store, memory.scope, Provenance(("t",), writer="claims"), Interval(memory.clock.now()))


@pytest.mark.parametrize(
    ("there", "named", "same"),
    [
        ("sister Ana", "Ana", True), ("Ana", "sister Ana", True), ("sister Ana", "SISTER ANA", True),
        ("dentist", "Rui's dentist", False), ("dentist", "dentist Dr. Reis", False), ("brother", "brother Tom", False),
        ("Ana", "Anabel", False), ("Ana's dog", "Ana", False),
    ],
)  # fmt: skip
async def test_a_name_of_its_own_finds_who_has_it(memory: Memory, there: str, named: str, same: bool) -> None:
    made = await memory.state(Statement(there, "likes", "tea"))
    found = await entities(memory).named(named)
    assert (found.id == made.subject) is same


async def test_a_name_that_two_have_is_neither(memory: Memory) -> None:
    one = await memory.state(Statement("sister Ana", "likes", "tea"))
    other = await memory.state(Statement("boss Ana", "likes", "tea"))
    found = await entities(memory).named("Ana")
    assert found.id not in {one.subject, other.subject}
    assert (await entities(memory).named("boss Ana")).id == other.subject
