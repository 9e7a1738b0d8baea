"""Fusion, context, diversity and the budget."""

from __future__ import annotations

from dataclasses import replace
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
from nyima.read.ranking import Fused, coverage, deduplicate, fuse, reciprocal, select, spread, within
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


scores = st.lists(st.integers(-100, 1_000).map(lambda n: n / 100), max_size=8)


def arm(values: list[float], start: int = 0) -> list[Hit]:
    return [hit(f"h{start + i}", value) for i, value in enumerate(values)]


@given(scores, scores, st.floats(0.01, 100))
def test_the_scale_of_an_arm_does_not_matter(lexical: list[float], dense: list[float], scale: float) -> None:
    plain = {f.id: f.score for f in fuse(arm(lexical), arm(dense, 3), Weights())}
    scaled = {f.id: f.score for f in fuse(arm([v * scale for v in lexical]), arm(dense, 3), Weights())}
    assert scaled == pytest.approx(plain)


@given(scores, scores)
def test_a_hit_without_a_positive_score_is_none(lexical: list[float], dense: list[float]) -> None:
    fused = fuse(arm(lexical), arm(dense, 3), Weights())
    good = {h.id for h in (*arm(lexical), *arm(dense, 3)) if h.score > 0}
    assert {f.id for f in fused} == good
    assert all(0 < f.score <= 1.7 + 1e-9 for f in fused)
    assert [f.score for f in fused] == sorted((f.score for f in fused), reverse=True)


def test_an_arm_without_weight_finds_nothing() -> None:
    assert fuse(arm([1.0]), arm([1.0], 5), Weights(words=0.0))[0].id == "h5"
    assert fuse(arm([1.0]), [], Weights(words=0.0)) == []


def test_a_period_counts_once_for_a_hit_of_both_arms() -> None:
    both = [hit("a", 1.0)]
    (found,) = fuse(both, both, Weights(1.0, 1.0, period=0.5), Interval(T0))
    assert found.score == pytest.approx(2.5)


def test_ties_are_ordered_by_place_and_id() -> None:
    hits = [hit("b", 1.0), hit("a", 1.0), hit("c", 1.0, "s", 2), hit("d", 1.0, "s", 1)]
    assert [f.id for f in fuse(hits, [], Weights())] == [f.id for f in fuse(hits[::-1], [], Weights())]
    assert [f.id for f in reciprocal(hits[:1], hits[1:2])] == ["a", "b"]


places = st.lists(st.tuples(st.sampled_from("st"), st.integers(-1, 6), st.floats(0.01, 1)), max_size=10)


@given(places)
def test_context_takes_nothing_from_a_candidate(given: list[tuple[str, int, float]]) -> None:
    def found() -> list[Fused]:
        return fuse([hit(f"h{i}", v, s, p) for i, (s, p, v) in enumerate(given)], [], Weights())

    before = {(f.session, f.position, f.id): f.score for f in found()}
    after = {(f.session, f.position, f.id): f.score for f in spread(found(), Weights())}
    assert all(after[key] >= score for key, score in before.items())
    assert all(position >= -1 for _, position, _ in after)
    for key, score in before.items():
        assert key[1] >= 0 or after[key] == score, "what stands in no conversation has no neighbours"


@given(places)
def test_neighbours_stand_within_reach_in_the_same_session(given: list[tuple[str, int, float]]) -> None:
    hits = [hit(f"h{i}", v, s, p) for i, (s, p, v) in enumerate(given)]
    there = {(h.session, h.position) for h in hits if h.position >= 0}
    for f in spread(fuse(hits, [], Weights()), Weights(near=(0.3, 0.1))):
        if not f.id:
            assert any(s == f.session and 0 < abs(p - f.position) <= 2 for s, p in there)


def test_two_hits_give_to_what_stands_between_them() -> None:
    hits = [hit("a", 1.0, "s", 0), hit("b", 1.0, "s", 2)]
    found = {f.position: f.score for f in spread(fuse(hits, [], Weights()), Weights(near=(0.3,), session=0.0))}
    assert found == pytest.approx({0: 1.0, 1: 0.6, 2: 1.0, 3: 0.3})


def test_only_the_best_candidates_give_to_their_neighbours() -> None:
    hits = [hit(f"h{i}", 1 - i / 1000, f"s{i}", 4) for i in range(130)]
    spreaded = spread(fuse(hits, [], Weights()), Weights(near=(0.3,), session=0.0))
    assert len({f.session for f in spreaded if not f.id}) == 120


@given(st.text("ab cé", max_size=30), st.text("ab cé", max_size=30))
def test_coverage_is_a_share(query: str, text: str) -> None:
    assert 0.0 <= coverage(query, text) <= 1.0
    assert coverage(query, text) <= coverage(query, f"{text} {query}")


@pytest.mark.parametrize(("text", "share"), [("my garden", 1.0), ("GARDENERS", 1.0), ("gar", 0.0), ("the guard", 0.0)])
def test_long_words_are_compared_by_their_beginning(text: str, share: float) -> None:
    assert coverage("gardening", text) == share


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.sampled_from("abcd"), max_size=5)), max_size=8))
def test_what_is_left_has_no_copies_and_the_first_stays(given: list[tuple[int, list[str]]]) -> None:
    pieces = [evidence(str(id), " ".join(bag), 0.5) for id, bag in given]
    left = deduplicate(pieces)
    assert left[:1] == pieces[:1]
    assert len({e.record.id for e in left}) == len(left)
    bags = [frozenset(e.text.split()) for e in left if e.text]
    assert len(set(bags)) == len(bags)
    assert deduplicate(left) == left


def test_texts_that_share_a_little_less_are_kept() -> None:
    ten, nine = "a b c d e f g h i j", "a b c d e f g h i x"
    assert len(deduplicate([evidence("1", ten, 1), evidence("2", nine, 1)])) == 2
    assert len(deduplicate([evidence("1", ten, 1), evidence("2", ten[:-2], 1)])) == 1, "nine of ten are nearly the same"


def test_empty_pieces_are_no_copies_of_each_other() -> None:
    assert len(deduplicate([evidence("1", "", 1), evidence("2", "...", 1)])) == 2


def test_a_first_piece_that_is_too_long_is_kept_alone() -> None:
    long, short = evidence("1", "word " * 100, 0.9), evidence("2", "word", 0.8)
    assert [e.record.id for e in select([long, short], Budget(5, 20))] == ["1"]


def test_a_piece_that_does_not_fit_leaves_room_for_a_smaller_one() -> None:
    pieces = [evidence("1", "a" * 40, 0.9), evidence("2", "b" * 400, 0.8), evidence("3", "c" * 40, 0.7)]
    assert [e.record.id for e in select(pieces, Budget(5, 30))] == ["1", "3"]


def test_no_records_in_the_budget_is_nothing() -> None:
    assert select([evidence("1", "a", 0.9)], Budget(0, 100)) == []
    assert select([evidence("1", "a", 0.9)], Budget(5, 100), {"history": 0}) == []


def test_among_equal_scores_the_judge_decides_then_the_retriever() -> None:
    pieces = [
        replace(evidence(i, i, 0.5), scores=s)
        for i, s in (("a", {}), ("b", {"retriever": 0.9}), ("c", {"judge": 0.51}))
    ]
    assert [e.record.id for e in select(pieces, Budget(5, 100))] == ["c", "b", "a"]


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


@pytest.mark.parametrize(("records", "room", "count"), [(2, 100, 2), (9, 8, 2), (9, 1, 1), (9, 100, 3)])
def test_what_the_budget_has_no_room_for_is_left_out_in_order(records: int, room: int, count: int) -> None:
    pieces = [evidence(str(n), "User: one two", n / 10) for n in range(3)]
    assert tokens(pieces[0].text) == 4
    assert [e.record.id for e in within(pieces, Budget(records, room))] == ["0", "1", "2"][:count]
