"""Pieces that speak of the same thing: the newest first, what it replaces behind it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import episode, piece
from nyima.domain.evidence import Evidence
from nyima.read.conflicts import EARLIER, newest_first

PIECES = [piece(episode(name, f"said {name}"), score=1.0) for name in "abcd"]


def pieces(replaced: Mapping[str, str]) -> dict[str, Evidence]:
    return {old: piece(episode(new, f"said {new}"), score=0.1) for old, new in replaced.items()}


def ids(found: tuple[Evidence, ...]) -> list[str]:
    return [e.record.id for e in found]


@pytest.mark.parametrize(
    ("replaced", "order", "earlier"),
    [
        ({}, "abcd", ""),
        ({"a": "c"}, "cabd", "a"),
        ({"c": "a"}, "abcd", "c"),
        ({"a": "b", "b": "d"}, "dbac", "ab"),
        ({"a": "d", "b": "d"}, "dabc", "ab"),
        ({"a": "x"}, "xabcd", "a"),
        ({"y": "b"}, "abcd", ""),
        ({"a": "a"}, "abcd", ""),
    ],
)
def test_what_is_replaced_stands_behind_what_replaces_it(replaced: Mapping[str, str], order: str, earlier: str) -> None:
    found = newest_first(PIECES, pieces(replaced))
    assert ids(found) == list(order)
    assert {e.record.id for e in found if e.label == EARLIER} == set(earlier)


@given(st.dictionaries(st.sampled_from("abcdx"), st.sampled_from("abcdx")))
def test_nothing_is_lost_and_nothing_doubled(replaced: Mapping[str, str]) -> None:
    """Even where each is said to replace the other."""
    there = ids(newest_first(PIECES, pieces(replaced)))
    assert sorted(set(there) - {"x"}) == ["a", "b", "c", "d"]
    assert len(there) == len(set(there))
