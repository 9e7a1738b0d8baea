"""What the records promise: intervals, texts, regions, parents, the profile."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import T0, entity, episode, fact, note, passage, relation, summary
from nyima.domain.records import KINDS, Interval, MemoryRecord, Profile, Provenance, partition, profile_of

moments = st.integers(-1000, 1000).map(lambda minutes: T0 + timedelta(minutes=minutes))
RECORDS: list[MemoryRecord] = [
    episode("e", "hello"), note("n", "k"), summary("s", "b"), fact("f", "name", "Karen"), entity("x", "Rex"),
    relation("r", "user", "pet", "x"), passage("p", "text"),
]  # fmt: skip


@given(moments, moments, moments)
def test_an_interval_has_its_beginning_and_not_its_end(since: datetime, until: datetime, moment: datetime) -> None:
    assert Interval(since, until).contains(moment) == (since <= moment < until)
    assert Interval(since).contains(moment) == (since <= moment)


@given(moments, moments, moments, moments)
def test_two_intervals_that_meet_share_no_moment(a: datetime, b: datetime, c: datetime, moment: datetime) -> None:
    first, middle, last = sorted((a, b, c))
    held = [Interval(first, middle).contains(moment), Interval(middle, last).contains(moment)]
    assert sum(held) == (first <= moment < last)


def test_every_kind_stands_under_its_own_name() -> None:
    assert {name: cls.kind for name, cls in KINDS.items()} == {name: name for name in KINDS}
    assert {type(r) for r in RECORDS} == set(KINDS.values())


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.kind)
def test_a_record_cannot_be_changed(record: Any) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.stale = True
    assert hash(record) == hash(dataclasses.replace(record))


def test_an_episode_says_who_spoke_and_stands_in_its_session() -> None:
    told = episode("e", "I like tea.", session="monday")
    assert (told.text, told.region) == ("User: I like tea.", "monday")


@pytest.mark.parametrize(
    ("context", "knowledge", "text"),
    [("why", "what", "why what"), ("", "what", "what"), ("why", "", "why"), ("", "", "")],
)
def test_a_note_has_no_gap_where_a_part_is_missing(context: str, knowledge: str, text: str) -> None:
    assert note("n", knowledge, context).text == text


def test_the_words_of_a_key_are_read_without_underscores() -> None:
    assert fact("f", "cat_name", "Nyima").text == "cat name: Nyima"


def test_an_entity_is_searched_by_its_aliases_too() -> None:
    assert entity("x", "Rex", ("the dog", "Rexy")).text == "Rex, the dog, Rexy"


def test_a_relation_without_a_sentence_is_its_label() -> None:
    assert relation("r", "user", "lives_in", "x").text == "lives in"
    assert relation("r", "user", "lives_in", "x", "The user lives in Moab.").text == "The user lives in Moab."


def test_a_relation_stands_in_the_partition_of_its_subclass() -> None:
    assert relation("r", "user", "pet", "x", subclass="Address").region == partition("Address")
    assert partition("Address") != partition("Occupation")


def test_a_relation_goes_with_what_it_joins_and_what_it_rests_on() -> None:
    made = Provenance(("t1", "t2"), ("n1",))
    joined = relation("r", "a", "pet", "b", provenance=made, rests=("r1", "r2"))
    assert joined.parents == ("t1", "t2", "n1", "a", "b", "r1", "r2")
    assert note("n", "k", provenance=made).parents == ("t1", "t2", "n1")


def test_what_belongs_nowhere_has_no_region() -> None:
    assert [r.region for r in (note("n", "k"), summary("s", "b"), fact("f", "k", "v"), entity("x", "n"))] == [""] * 4
    assert passage("p", "b", "manual.pdf").region == "manual.pdf"


pairs = st.lists(st.tuples(st.sampled_from("abc"), st.text("xyz", min_size=1, max_size=3), moments), max_size=8)


@given(pairs)
def test_the_profile_has_every_value_in_the_order_in_which_it_became_true(
    given: list[tuple[str, str, datetime]],
) -> None:
    facts = [fact(f"f{i}", key, value, at=at, recorded=Interval(T0)) for i, (key, value, at) in enumerate(given)]
    profile = profile_of(facts)
    for key in "abcd":
        wanted = [f.value for f in sorted(facts, key=lambda f: (f.valid.since, f.id)) if f.key == key]
        assert profile.get(key) == tuple(wanted)
    assert profile_of(facts[::-1]) == profile


def test_one_value_is_a_text_and_several_are_a_list() -> None:
    profile = Profile((fact("1", "pet", "cat"), fact("2", "pet", "dog"), fact("3", "name", "Karen")))
    assert profile.as_dict() == {"pet": ["cat", "dog"], "name": "Karen"}
    assert Profile().as_dict() == {}


def test_two_profiles_share_no_values() -> None:
    assert Profile((fact("1", "name", "Karen"),)).get("name") == ("Karen",)
    assert Profile().get("name") == ()
