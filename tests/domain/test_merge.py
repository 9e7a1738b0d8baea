"""Deltas that become one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from made import T0, note
from nyima.domain.changes import Add, Delta, Erase, Retire, Revise, merge

ids = st.sampled_from(["a", "b", "c"])
changes = st.one_of(
    ids.map(lambda name: Add(note(name, "text"))),
    ids.map(lambda name: Retire(name, T0)),
    st.tuples(ids, ids).map(lambda p: Revise(p[0], note(f"{p[1]}2", "text"))),
    ids.map(Erase),
    ids.map(lambda name: Erase(name, "turn")),
)
deltas = st.lists(changes, max_size=6).map(lambda found: Delta(tuple(found)))


def test_an_empty_delta_is_nothing() -> None:
    assert not Delta(by="somebody")
    assert Delta((Erase("a"),))


def test_the_first_of_two_additions_of_one_id_counts() -> None:
    first, second = Add(note("a", "first")), Add(note("a", "second"))
    assert merge([Delta((first,)), Delta((second,))]).changes == (first,)


def test_the_last_of_several_closings_counts_in_its_own_place() -> None:
    early, other, late = Retire("a", T0, "early"), Retire("b", T0), Revise("a", note("a2", "late"))
    assert merge([Delta((early, other)), Delta((late,))]).changes == (other, late)


def test_an_erase_takes_the_addition_and_the_closing_of_its_id() -> None:
    made = merge([Delta((Add(note("a", "x")), Retire("b", T0), Erase("a"))), Delta((Retire("a", T0),))])
    assert made.changes == (Retire("b", T0), Erase("a"))


def test_an_erased_successor_is_not_opened() -> None:
    made = merge([Delta((Revise("a", note("b", "x")),)), Delta((Erase("b"),))])
    assert made.changes == (Erase("b"),)


def test_the_erase_of_a_turn_leaves_a_record_of_the_same_id() -> None:
    kept, gone = Add(note("a", "x")), Erase("a", "turn")
    assert merge([Delta((kept, gone))]).changes == (kept, gone)


def test_it_is_signed_by_the_first_that_signs() -> None:
    assert merge([Delta(), Delta(by="graph"), Delta(by="profile")]).by == "graph"
    assert merge([]).by == ""


@given(st.lists(deltas, max_size=3))
def test_a_merged_delta_stays_as_it_is(parts: list[Delta]) -> None:
    assert merge([merge(parts)]) == merge(parts)


@given(st.lists(deltas, max_size=3))
def test_merging_invents_nothing_and_loses_no_erase(parts: list[Delta]) -> None:
    given = [change for part in parts for change in part.changes]
    made = merge(parts).changes
    assert all(change in given for change in made)
    assert {c for c in made if isinstance(c, Erase)} == {c for c in given if isinstance(c, Erase)}


@given(st.lists(deltas, max_size=3))
def test_additions_stand_before_what_closes_and_that_before_what_is_erased(parts: list[Delta]) -> None:
    kinds = [0 if isinstance(c, Add) else 2 if isinstance(c, Erase) else 1 for c in merge(parts).changes]
    assert kinds == sorted(kinds)
