"""The store of LangGraph, as its own operations have it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.errors import InputError
from nyima.memory import Memory
from nyima.testing import FixedClock, HashEmbedder

pytest.importorskip("langgraph.store.base")
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from nyima.frameworks.langgraph import NyimaStore, _fits, _matches

PEOPLE = ("people",)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def store(db: Path, clock: FixedClock) -> Iterator[NyimaStore]:
    opened = NyimaStore(Memory.open(db, embedder=HashEmbedder(), clock=clock))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ({}, True),
        (None, True),
        ({"age": 11}, True),
        ({"age": 12}, False),
        ({"age": {"$gte": 11, "$lt": 12}}, True),
        ({"age": {"$gt": 11}}, False),
        ({"age": {"$lte": 10}}, False),
        ({"age": {"$ne": 12}}, True),
        ({"none": {"$ne": 12}}, True),
        ({"none": None}, True),
        ({"none": {"$gt": 1}}, False),
        ({"name": {"$gt": 1}}, False),
        ({"tags": {"a": 1}}, True),
        ({"tags": {}}, False),
        ({"age": 11, "name": "Rex"}, False),
    ],
)
def test_a_filter_compares_each_field(wanted: dict[str, Any] | None, fits: bool) -> None:
    assert _fits({"age": 11, "name": "Nyima", "tags": {"a": 1}}, wanted) is fits


@given(st.integers(), st.integers())
def test_comparisons_are_those_of_numbers(have: int, want: int) -> None:
    found = {how: _fits({"n": have}, {"n": {how: want}}) for how in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")}
    assert found == {
        "$eq": have == want, "$ne": have != want, "$gt": have > want, "$gte": have >= want, "$lt": have < want,
        "$lte": have <= want,
    }  # fmt: skip


def test_a_filter_that_does_not_exist_is_answered_with_those_that_do(store: NyimaStore) -> None:
    store.put(PEOPLE, "a", {"n": 1})
    with pytest.raises(InputError, match=r"there is no filter '\$in': give one of \$eq, \$ne"):
        store.search(PEOPLE, filter={"n": {"$in": [1]}})


@pytest.mark.parametrize(
    ("kind", "path", "matches"),
    [
        ("prefix", ("a",), True),
        ("prefix", ("a", "*"), True),
        ("prefix", ("*", "b"), True),
        ("prefix", ("b",), False),
        ("suffix", ("c",), True),
        ("suffix", ("b", "*"), True),
        ("suffix", ("a",), False),
        ("suffix", ("a", "b", "c"), True),
        ("prefix", ("a", "b", "c", "d"), False),
        ("prefix", (), True),
    ],
)
def test_a_namespace_matches_by_its_whole_parts(kind: Any, path: Any, matches: bool) -> None:
    assert _matches(("a", "b", "c"), MatchCondition(kind, path)) is matches


def test_namespaces_are_listed_once_in_order_and_by_pages(store: NyimaStore) -> None:
    for namespace in (("b", "x"), ("a", "y"), ("a", "x"), ("a", "x")):
        store.put(namespace, "k", {"v": 1})
    assert store.list_namespaces() == [("a", "x"), ("a", "y"), ("b", "x")]
    assert store.list_namespaces(suffix=("x",)) == [("a", "x"), ("b", "x")]
    assert store.list_namespaces(max_depth=1, limit=1, offset=1) == [("b",)]
    store.delete(("b", "x"), "k")
    assert store.batch([ListNamespacesOp(match_conditions=None)]) == [[("a", "x"), ("a", "y")]]


def test_without_words_the_newest_come_first_by_pages(store: NyimaStore, clock: FixedClock) -> None:
    for n in range(5):
        store.put(PEOPLE, f"k{n}", {"n": n})
        clock.forward(minutes=1)
    assert [i.key for i in store.search(PEOPLE, limit=2)] == ["k4", "k3"]
    assert [i.key for i in store.search(PEOPLE, limit=2, offset=2)] == ["k2", "k1"]
    assert [(i.key, i.score) for i in store.search(PEOPLE, filter={"n": {"$lt": 2}})] == [("k1", None), ("k0", None)]


def test_with_words_pages_go_on_where_they_ended(store: NyimaStore) -> None:
    for n in range(6):
        store.put(PEOPLE, f"k{n}", {"text": "green tea " * (n + 1)})
    whole = [i.key for i in store.search(PEOPLE, query="green tea", limit=6)]
    paged = [i.key for at in (0, 2, 4) for i in store.search(PEOPLE, query="green tea", limit=2, offset=at)]
    assert paged == whole
    assert all(0.0 <= (i.score or 0.0) <= 1.0 for i in store.search(PEOPLE, query="green tea"))


@pytest.mark.parametrize("value", [{"a": {1, 2}}, {"a": b"x"}, {"a": object()}])
def test_a_value_that_is_no_json_is_refused_and_the_old_one_stays(store: NyimaStore, value: dict[str, Any]) -> None:
    store.put(PEOPLE, "a", {"n": 1})
    with pytest.raises(InputError, match="the value of 'a' is no JSON object"):
        store.put(PEOPLE, "a", value)
    found = store.get(PEOPLE, "a")
    assert found is not None
    assert found.value == {"n": 1}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text("abc", max_size=3), json_values, max_size=3))
def test_any_value_comes_back(tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any]) -> None:
    store = NyimaStore(Memory.open(tmp_path_factory.mktemp("lg") / "m.db", embedder="none", clock=FixedClock()))
    place = ("[weird]", 'quo"ted', "猫")
    done = store.batch([PutOp(place, "k", value), GetOp(place, "k"), SearchOp(place[:1]), GetOp(place, "other")])
    store.close()
    assert done[0] is done[3] is None
    assert (done[1].value, done[1].namespace, done[1].key) == (value, place, "k")  # type: ignore[union-attr]
    assert [i.key for i in done[2]] == ["k"]  # type: ignore[union-attr]
