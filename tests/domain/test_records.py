"""What the records promise: intervals, texts, regions, parents, the profile."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import T0, claim, edge, entity, episode, note, passage, summary
from nyima.domain.records import (
    KINDS,
    Interval,
    MemoryRecord,
    Profile,
    Provenance,
    Slot,
    Status,
    partition,
    profile_of,
)

moments = st.integers(-1000, 1000).map(lambda minutes: T0 + timedelta(minutes=minutes))
RECORDS: list[MemoryRecord] = [
    episode("e", "hello"), note("n", "k"), summary("s", "b"), claim("f", "name", "Karen"), entity("x", "Rex"),
    edge("r", "user", "pet", "x"), passage("p", "text"),
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


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status.HOLDS, "user lives in: Porto"),
        (Status.PLANNED, "user lives in: Porto (planned, not confirmed)"),
        (Status.ENDED, "user lives in: Porto (ended)"),
        (Status.DENIED, "user lives in: Porto (denied)"),
        (Status.PENDING, "user lives in: Porto (not confirmed by the user)"),
    ],
)
def test_a_claim_says_whether_it_holds(status: Status, text: str) -> None:
    assert claim("c", "lives in", "Porto", status=status).text == text


def test_claims_of_one_slot_may_hold_side_by_side() -> None:
    one, other = claim("a", "Likes", "tea"), claim("b", "likes", "TEA ", status=Status.HOLDS)
    assert one.slot == other.slot == Slot("user", "likes")
    assert one.says_the_same(other)
    assert not one.says_the_same(claim("c", "likes", "milk"))
    assert not one.says_the_same(claim("c", "likes", "tea", status=Status.DENIED))
    assert not one.says_the_same(note("n", "tea"))


def test_an_entity_is_searched_by_its_aliases_too() -> None:
    assert entity("x", "Rex", ("the dog", "Rexy")).text == "Rex, the dog, Rexy"


def test_a_claim_stands_in_the_partition_of_its_subclass() -> None:
    assert edge("r", "user", "pet", "x", subclass="Address").region == partition("Address")
    assert partition("Address") != partition("Occupation")


def test_a_claim_goes_with_what_it_joins_and_what_it_depends_on() -> None:
    made = Provenance(("t1", "t2"), ("n1",))
    joined = edge("r", "a", "pet", "b", provenance=made, depends_on=("r1", "r2"))
    assert joined.parents == ("t1", "t2", "n1", "a", "b", "r1", "r2")
    assert note("n", "k", provenance=made).parents == ("t1", "t2", "n1")


def test_what_belongs_nowhere_has_no_region() -> None:
    assert [r.region for r in (note("n", "k"), summary("s", "b"), entity("x", "n"))] == [""] * 3
    assert passage("p", "b", "manual.pdf").region == "manual.pdf"


pairs = st.lists(st.tuples(st.sampled_from("abc"), st.text("xyz", min_size=1, max_size=3), moments), max_size=8)


@given(pairs)
def test_the_profile_has_every_value_in_the_order_in_which_it_became_true(
    given: list[tuple[str, str, datetime]],
) -> None:
    facts = [claim(f"f{i}", key, value, at=at, recorded=Interval(T0)) for i, (key, value, at) in enumerate(given)]
    profile = profile_of(facts)
    for key in "abcd":
        wanted = [f.value for f in sorted(facts, key=lambda f: (f.valid.since, f.id)) if f.attribute == key]
        assert profile.get(key) == tuple(wanted)
    assert profile_of(facts[::-1]) == profile


def test_one_value_is_a_text_and_several_are_a_list() -> None:
    profile = Profile((claim("1", "pet", "cat"), claim("2", "pet", "dog"), claim("3", "name", "Karen")))
    assert profile.as_dict() == {"pet": ["cat", "dog"], "name": "Karen"}
    assert Profile().as_dict() == {}


@pytest.mark.parametrize(
    "other",
    [
        claim("2", "name", "Ola", status=Status.PLANNED), claim("2", "name", "Ola", status=Status.PENDING),
        claim("2", "name", "Ola", stale=True), edge("2", "x", "name", "y", "Ola"), note("2", "Ola"),
    ],
)  # fmt: skip
def test_the_profile_is_what_surely_holds_of_the_user(other: MemoryRecord) -> None:
    assert profile_of([claim("1", "name", "Karen"), other]).as_dict() == {"name": "Karen"}


def test_two_profiles_share_no_values() -> None:
    assert Profile((claim("1", "name", "Karen"),)).get("name") == ("Karen",)
    assert Profile().get("name") == ()
