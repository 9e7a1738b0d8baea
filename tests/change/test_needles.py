"""Pieces of what was erased, looked for in the journal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nyima.change.needles import Needles

words = st.text("ab c", min_size=1, max_size=12)


@given(st.lists(words, max_size=30), st.lists(words, max_size=8))
def test_needles_are_found_like_one_by_one(needles: list[str], texts: list[str]) -> None:
    sought = Needles(needles)
    for text in texts:
        assert sought.within(text) == any(n in text for n in needles)
    body = {"turn": 1, "facts": [["key", t] for t in texts], "none": None}
    assert sought.within(body) == any(n in t for n in needles for t in (*texts, "turn", "facts", "key", "none"))
