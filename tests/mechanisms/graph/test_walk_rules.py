"""What stays true of a walk whatever the graph."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import T0, edge, piece, pieces_of
from nyima.domain.evidence import Budget, Query
from nyima.mechanisms.graph.walk import WalkSelector, question_parts, walk

edges = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"), st.floats(0, 1), st.booleans()), max_size=12
)


class Says:
    def __init__(self, chance: float) -> None:
        self.chance = chance

    def include(self, state: object) -> float:
        return self.chance


@pytest.mark.parametrize(
    ("question", "entity", "relation"),
    [
        ("Where does Otto live?", "Otto", "live"),
        ("What colour is my car?", "my car", "colour"),
        ("When did I leave?", "When did I leave?", "leave"),
        ("?", "?", "?"),
    ],
)
def test_a_question_is_about_an_entity_and_a_relation(question: str, entity: str, relation: str) -> None:
    assert question_parts(question) == (entity, relation)


@given(st.text(min_size=1, max_size=60))
def test_any_question_has_both_parts(question: str) -> None:
    assert all(question_parts(question))


@given(edges, st.floats(0, 1), st.randoms(use_true_random=False))
def test_a_walk_visits_each_memory_once_and_keeps_what_it_includes(
    given: list[tuple[str, str, float, bool]], chance: float, random: Any
) -> None:
    kept, visits = walk(pieces_of(given), Says(chance), random.random)
    assert len({v.record for v in visits}) == len(visits)
    assert [e.record_id for e in kept] == [v.record for v in visits if v.action]
    assert all(v.log_probability <= 0 for v in visits)
    assert bool(visits) == any(active for *_, active in given)


@given(edges)
def test_who_always_goes_on_reaches_all_that_hangs_together_and_nothing_else(
    given: list[tuple[str, str, float, bool]],
) -> None:
    reached = {end for head, tail, _, active in given if active for end in (head, tail)}
    for _ in given:
        reached |= {end for head, tail, *_ in given if {head, tail} & reached for end in (head, tail)}
    kept, _ = walk(pieces_of(given), Says(1.0))
    assert {e.record_id for e in kept} == {f"r{i}" for i, (h, t, *_) in enumerate(given) if {h, t} & reached}
    assert all(e.scores["policy"] == 1.0 for e in kept)


def test_the_walk_goes_depth_first_from_the_best_and_to_the_nearest_memory() -> None:
    given = [
        ("a", "b", 0.5, True),
        ("x", "y", 0.9, True),
        ("b", "c", 0.3, False),
        ("b", "d", 0.7, False),
        ("d", "e", 0.4, False),
    ]
    _, visits = walk(pieces_of(given), Says(1.0))
    assert [v.record for v in visits] == ["r0", "r3", "r4", "r2", "r1"]
    _, visits = walk(pieces_of(given), Says(0.4))
    assert [(v.record, v.action) for v in visits] == [("r0", 0), ("r1", 0)], "a branch that stops leads nowhere"


def test_nobody_walks_through_the_user() -> None:
    given = [("user", "b", 0.5, True), ("user", "c", 0.9, False)]
    assert len(walk(pieces_of(given), Says(1.0))[1]) == 1


def test_other_sources_are_cut_by_score_and_the_graph_by_the_walk() -> None:
    near = pieces_of([("a", "b", 0.1, True)])
    notes = [piece(edge(f"n{i}", "u", "l", "v", f"note {i}"), s) for i, s in enumerate((0.9, 0.3, 0.8))]
    limited = WalkSelector(Says(1.0), limits={"notes": 1, "graph": 0})
    made = limited.select(Query("q", T0), [*near, *notes], Budget())
    assert [e.record_id for e in made.kept] == ["n0", "r0"], "the walk has no limit of its own"
    assert [v.record for v in made.walk] == ["r0"]
    shared = WalkSelector(Says(1.0), share=0.5).select(Query("q", T0), [*near, *notes], Budget())
    assert [e.record_id for e in shared.kept] == ["n0", "n2", "r0"]
    below = WalkSelector(Says(1.0), floor=0.95).select(Query("q", T0), [*near, *notes], Budget())
    assert (below.kept, len(below.walk)) == ((), 1), "what was walked is told although nothing is kept"
