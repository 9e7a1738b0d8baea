"""The values of the read path."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from made import T0, note, piece
from nyima.domain.evidence import Answer, Query, Recall, Usage

counts = st.integers(0, 10_000)
usages = st.builds(Usage, counts, counts, counts, counts)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_relevance_is_a_tenth_between_nought_and_one(score: float) -> None:
    relevance = piece(note("n", "x"), score).relevance
    assert relevance in [i / 10 for i in range(11)]
    if math.isfinite(score) and 0 <= score <= 1:
        assert abs(relevance - score) <= 0.05 + 1e-9


@given(st.floats(-1, 2), st.floats(-1, 2))
def test_a_better_score_is_never_less_relevant(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert piece(note("n", "x"), low).relevance <= piece(note("n", "x"), high).relevance


def test_the_words_of_a_query_have_the_keywords_after_the_text() -> None:
    assert Query("where is it", T0, keywords=("cat", "sofa")).words() == "where is it cat sofa"
    assert Query("where is it", T0).words() == "where is it"


def test_the_lines_end_with_what_is_asked() -> None:
    query = Query("and then?", T0, dialogue=(("user", "I fell."), ("assistant", "Oh!")))
    assert query.lines == (("user", "I fell."), ("assistant", "Oh!"), ("user", "and then?"))


def test_the_dialogue_stays_out_of_what_is_printed() -> None:
    assert "secret" not in repr(Query("q", T0, dialogue=(("user", "secret"),)))


@given(st.lists(st.booleans(), max_size=6))
def test_what_was_dropped_is_what_was_found_and_not_kept_in_order(chosen: list[bool]) -> None:
    found = [piece(note(str(i), str(i)), 1 - i / 10) for i in range(len(chosen))]
    kept = tuple(e for e, keep in zip(found, chosen, strict=True) if keep)
    recall = Recall(Query("q", T0), found=tuple(found), kept=kept)
    assert [e.record_id for e in recall.dropped] == [str(i) for i, keep in enumerate(chosen) if not keep]


@given(usages, usages, usages)
def test_costs_add_up_in_any_order(a: Usage, b: Usage, c: Usage) -> None:
    assert (a + b) + c == a + (b + c) == c + b + a
    assert a + Usage() == a


def test_every_count_is_added_to_its_own() -> None:
    assert Usage(1, 20, 300, 4_000) + Usage(5, 60, 700, 8_000) == Usage(6, 80, 1_000, 12_000)


def test_an_answer_reads_as_its_text() -> None:
    assert str(Answer("Hello.", "t1", Recall(Query("q", T0)))) == "Hello."
