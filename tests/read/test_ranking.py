"""Fusion, context, diversity and the budget."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.domain.evidence import Budget, Evidence
from nyima.domain.ports import Hit
from nyima.domain.recipe import Weights
from nyima.domain.records import Interval
from nyima.language.times.moment import asked_period
from nyima.language.words import tokens
from nyima.read.ranking import coverage, deduplicate, fuse, reciprocal, select, spread
from nyima.testing.contract import T0, note


def hit(id: str, score: float, session: str = "", position: int = -1, since: datetime = T0) -> Hit:
    return Hit(id, score, "episode", session, position, since)


def evidence(id: str, text: str, score: float, source: str = "history") -> Evidence:
    return Evidence(text, source, score, note(id, text), T0)


def test_the_union_of_both_arms_is_ranked() -> None:
    fused = fuse([hit("a", 9.0), hit("b", 3.0)], [hit("c", 0.9), hit("b", 0.8)], Weights(words=1.0, vector=1.0))
    assert [f.id for f in fused] == ["b", "a", "c"]
    assert fused[0].parts == {"words": 3.0, "vector": 0.8}


def test_a_hit_of_words_alone_can_win() -> None:
    assert fuse([hit("only-words", 2.0)], [hit("x", 0.1)], Weights(vector=0.7))[0].id == "only-words"


def test_a_named_period_is_a_soft_filter() -> None:
    march = Interval(T0, T0 + timedelta(days=30))
    hits = [hit("old", 1.0, since=T0 - timedelta(days=90)), hit("new", 0.9, since=T0)]
    assert [f.id for f in fuse(hits, [], Weights(period=0.5), march)] == ["new", "old"]


def test_neighbours_of_a_hit_become_candidates() -> None:
    fused = spread(fuse([hit("a", 1.0, "s", 4)], [], Weights()), Weights(near=(0.3,), session=0.0))
    assert [(f.id, f.position, round(f.score, 2)) for f in fused] == [("a", 4, 1.0), ("", 3, 0.3), ("", 5, 0.3)]


def test_a_session_lifts_its_turns() -> None:
    hits = [hit("a", 1.0, "s1", 0), hit("b", 0.5, "s1", 9), hit("c", 0.55, "s2", 9)]
    assert [f.id for f in spread(fuse(hits, [], Weights()), Weights(near=(), session=0.5))] == ["a", "b", "c"]


def test_reciprocal_rank_fusion() -> None:
    fused = reciprocal([hit("a", 5), hit("b", 4)], [hit("b", 0.2), hit("c", 0.1)])
    assert [f.id for f in fused] == ["b", "a", "c"]
    assert fused[0].score == pytest.approx(1 / 62 + 1 / 61)


def test_near_copies_are_dropped() -> None:
    pieces = [
        evidence("a", "She likes green tea", 0.9),
        evidence("b", "she likes GREEN tea!", 0.8),
        evidence("c", "other", 0.7),
    ]
    assert [e.record.id for e in deduplicate(pieces)] == ["a", "c"]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.text("ab ", min_size=1, max_size=40), st.floats(0, 1)), max_size=20),
    st.integers(1, 5),
    st.integers(1, 30),
)
def test_the_budget_holds(items: list[tuple[int, str, float]], records: int, room: int) -> None:
    kept = select([evidence(f"{i}-{n}", t, s) for n, (i, t, s) in enumerate(items)], Budget(records, room))
    assert len(kept) <= records
    assert sum(tokens(e.text) for e in kept[1:]) <= room
    assert [e.score for e in kept] == sorted((e.score for e in kept), reverse=True)


def test_sources_have_limits() -> None:
    pieces = [evidence(str(i), f"text {i}", 1 - i / 10, "history" if i < 3 else "notes") for i in range(5)]
    assert [e.record.id for e in select(pieces, Budget(4, 1000), {"history": 1})] == ["0", "3", "4"]


def test_coverage_counts_content_words_in_any_form() -> None:
    assert coverage("Where is my cat?", "the cat sleeps") == 1.0
    assert coverage("walnut cake", "no walnuts in cakes") >= 0.5
    assert coverage("", "x") == 0.0


NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("what did I say yesterday?", "2026-11-20", "2026-11-21"),
        ("last week", "2026-11-09", "2026-11-16"),
        ("in March", "2026-03-01", "2026-04-01"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("back in March 2024", "2024-03-01", "2024-04-01"),
        ("on 5 May", "2026-05-05", "2026-05-06"),
        ("on December 24th, 2025", "2025-12-24", "2025-12-25"),
        ("2026-02-28", "2026-02-28", "2026-03-01"),
        ("three days ago", "2026-11-18", "2026-11-19"),
        ("two months ago", "2026-09-01", "2026-10-01"),
        ("last summer", "2026-06-01", "2026-09-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("last Friday", "2026-11-20", "2026-11-21"),
        ("this month", "2026-11-01", "2026-12-01"),
    ],
)
def test_time_expressions(text: str, since: str, until: str) -> None:
    found = asked_period(text, NOW, UTC)
    assert found is not None
    assert (found.since.date().isoformat(), found.until and found.until.date().isoformat()) == (since, until)


@pytest.mark.parametrize("text", ["my cat", "I may go", "the march of time", "99 99 9999", "in 0000", "on 31 February"])
def test_no_time_expression_is_no_filter(text: str) -> None:
    assert asked_period(text, NOW, UTC) is None


@given(st.text(max_size=300), st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)))
def test_any_text_has_a_period_or_none(text: str, at: datetime) -> None:
    found = asked_period(text + " last week in May 3 years ago", at.replace(tzinfo=UTC), UTC)
    assert found is None or found.until is None or found.since < found.until
