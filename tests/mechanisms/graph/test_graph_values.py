"""Policies, training and versions: what is refused, and what stays true whatever the weights."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import T0, piece, relation
from nyima.domain.evidence import Budget, Evidence, Query, Recall, Visit
from nyima.errors import InputError, NotFound
from nyima.mechanisms.graph.learning import Adam, Example, Gradient, backward, reinforce, through, warm_start
from nyima.mechanisms.graph.online import learn_from_answer, learn_from_thumb
from nyima.mechanisms.graph.policy import Policy, RulePolicy, fresh_policy, policy_from, policy_of
from nyima.mechanisms.graph.versions import current, keep, roll_back, versions
from nyima.mechanisms.graph.walk import WalkSelector, question_parts, walk
from nyima.memory import Memory
from nyima.testing import FixedClock

cosines = st.tuples(*[st.floats(-1, 1)] * 3)
edges = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"), st.floats(0, 1), st.booleans()), max_size=12
)


def pieces_of(given: list[tuple[str, str, float, bool]]) -> list[Evidence]:
    return [
        piece(
            relation(f"r{i}", head, "near", tail, f"memory {i}"), memory, "graph",
            scores={"node": memory, "edge": memory, "memory": memory} | ({"activated": float(i)} if active else {}),
        )
        for i, (head, tail, memory, active) in enumerate(given)
    ]  # fmt: skip


class Says:
    def __init__(self, chance: float) -> None:
        self.chance = chance

    def include(self, state: object) -> float:
        return self.chance


# --- the policy ---


@given(cosines, st.integers(0, 50))
def test_a_policy_gives_a_probability_and_the_other_action_has_the_rest(state: tuple[float, ...], seed: int) -> None:
    policy = fresh_policy(seed)
    chances = policy.forward(np.asarray([state]))[1][0]
    assert chances.sum() == pytest.approx(1.0)
    assert policy.include(state) == pytest.approx(float(chances[1]))
    assert 0 < RulePolicy().include(state) < 1


@given(cosines, cosines)
def test_the_rule_includes_what_is_nearer_rather_than_what_is_farther(
    one: tuple[float, ...], other: tuple[float, ...]
) -> None:
    nearer = tuple(map(max, one, other))
    assert RulePolicy().include(nearer) >= RulePolicy().include(one)


@given(st.integers(0, 1_000))
def test_weights_survive_json(seed: int) -> None:
    policy = fresh_policy(seed)
    again = policy_from(json.loads(json.dumps(policy.to_dict())))
    assert all(np.array_equal(a, b) for a, b in zip(policy.arrays(), again.arrays(), strict=True))


@pytest.mark.parametrize(
    "wrong",
    [{}, {"weights": None}, {"weights": []}, {"weights": [[1], [2], [3], [4]]}, {"weights": "abcd"}, [], None,
     {"weights": [["x"] * 60, [0] * 20, [0] * 40, [0, 0]]}, {"weights": [[0] * 60, [0] * 20, [0] * 40, [0, 0], [0]]}],
)  # fmt: skip
def test_what_are_no_weights_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="these are no weights of the policy"):
        policy_from(wrong)


@pytest.mark.xfail(strict=True, reason="NaN passes for a weight; every branch of a walk then stops")
def test_what_is_no_number_is_no_weight() -> None:
    weights = fresh_policy().to_dict()
    weights["weights"][3] = [float("nan"), 0.0]
    with pytest.raises(InputError):
        policy_from(weights)


def test_without_learned_weights_the_rule_decides() -> None:
    assert isinstance(policy_of({}), RulePolicy)
    assert isinstance(policy_of({"weights": None}), RulePolicy)
    assert isinstance(policy_of({"weights": fresh_policy().to_dict()}), Policy)


# --- the walk ---


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
    notes = [piece(relation(f"n{i}", "u", "l", "v", f"note {i}"), s) for i, s in enumerate((0.9, 0.3, 0.8))]
    limited = WalkSelector(Says(1.0), limits={"notes": 1, "graph": 0})
    made = limited.select(Query("q", T0), [*near, *notes], Budget())
    assert [e.record_id for e in made.kept] == ["n0", "r0"], "the walk has no limit of its own"
    assert [v.record for v in made.walk] == ["r0"]
    shared = WalkSelector(Says(1.0), share=0.5).select(Query("q", T0), [*near, *notes], Budget())
    assert [e.record_id for e in shared.kept] == ["n0", "n2", "r0"]
    below = WalkSelector(Says(1.0), floor=0.95).select(Query("q", T0), [*near, *notes], Budget())
    assert (below.kept, len(below.walk)) == ((), 1), "what was walked is told although nothing is kept"


# --- learning ---


def test_a_gradient_of_no_weight_changes_nothing() -> None:
    policy = fresh_policy(1)
    states, actions = np.asarray([[0.1, 0.2, 0.3]]), np.asarray([1])
    loss, gradients = backward(policy, states, actions, np.zeros(1))
    assert loss == 0.0
    assert all((g == 0).all() for g in gradients)
    made = Adam().step(policy, gradients)
    assert all(np.array_equal(a, b) for a, b in zip(made.arrays(), policy.arrays(), strict=True))


@given(cosines, st.sampled_from([0, 1]))
def test_a_step_makes_what_was_done_likelier(state: tuple[float, ...], action: int) -> None:
    policy = fresh_policy(2)
    states = np.asarray([state])
    _, gradients = backward(policy, states, np.asarray([action]), np.ones(1))
    after = Adam(0.001).step(policy, gradients).forward(states)[1][0, action]
    assert after > policy.forward(states)[1][0, action]


def test_gradients_have_the_shapes_of_the_weights() -> None:
    policy = fresh_policy(0)
    hidden, _ = policy.forward(np.zeros((5, 3)))
    made = through(policy, np.zeros((5, 3)), hidden, np.ones((5, 2)))
    assert [g.shape for g in made] == [a.shape for a in policy.arrays()]


def test_without_an_example_that_reaches_what_it_requires_nothing_is_learned() -> None:
    for examples in ([], [Example("q", tuple(pieces_of([("a", "b", 0.5, True)])), frozenset({"other"}))]):
        with pytest.raises(InputError, match="give other examples"):
            warm_start(fresh_policy(), examples, episodes=1)


async def test_without_questions_there_is_nothing_to_reinforce() -> None:
    async def reward(example: Example, kept: object) -> float:
        return 1.0

    with pytest.raises(InputError, match="give examples"):
        await reinforce(fresh_policy(), [], reward, Gradient())
    still = Example("q", tuple(pieces_of([("a", "b", 0.5, False)])), frozenset())
    policy = fresh_policy()
    assert await reinforce(policy, [still], reward, Gradient(episodes=3)) is policy, "nobody walked"


def test_equal_seeds_learn_the_same() -> None:
    example = Example("q", tuple(pieces_of([("a", "b", 0.9, True), ("b", "c", 0.1, False)])), frozenset({"r0"}))
    losses: list[float] = []
    one, two = (
        warm_start(fresh_policy(0), [example], episodes=60, seed=3, note=lambda n, loss: losses.append(loss))
        for _ in (0, 1)
    )
    assert np.array_equal(one.w1, two.w1)
    assert losses[:60] == losses[60:]
    assert losses[59] < losses[0]


# --- versions ---


async def test_versions_are_taken_back_one_after_the_other_to_the_rule(memory: Memory, clock: FixedClock) -> None:
    for number in range(3):
        made = await keep(memory, fresh_policy(number), {"after": number}, ["b", "a", "b"])
        assert (made.number, made.sources) == (number + 1, ("a", "b"))
        clock.forward(minutes=1)
    backs = []
    for _ in range(3):
        backs.append(await roll_back(memory))
        clock.forward(minutes=1)
    assert [(v.number, v.report["back_to"]) for v in backs] == [(4, 2), (5, 1), (6, 0)]
    assert isinstance(backs[0].policy, Policy)
    assert np.array_equal(backs[0].policy.w1, fresh_policy(1).w1)
    assert isinstance((await current(memory)).policy, RulePolicy)
    with pytest.raises(NotFound, match="nothing to take back"):
        await roll_back(memory)
    assert [v.number for v in await versions(memory)] == [6, 5, 4, 3, 2, 1]


async def test_two_kinds_of_weights_are_kept_apart(memory: Memory) -> None:
    await keep(memory, fresh_policy(1), {}, kind="partition-policy")
    assert (await current(memory)).number == 0
    assert (await keep(memory, fresh_policy(2), {})).number == 1
    assert (await current(memory, "partition-policy")).number == 1


async def test_a_step_rests_on_all_that_was_walked_over(memory: Memory) -> None:
    pieces = pieces_of([("a", "b", 0.5, True), ("b", "c", 0.4, False)])
    walked = tuple(Visit(p.record_id, (0.1, 0.1, 0.2), 1, 0.0) for p in pieces)
    made = await learn_from_thumb(memory, Recall(Query("q", T0), found=tuple(pieces), walk=walked), good=True)
    assert made is not None
    assert (made.sources, made.report) == (("r0", "r1"), {"after": 0, "online": "a thumb"})
    assert await learn_from_answer(memory, Recall(Query("q", T0)), "an answer") is None


async def test_a_memory_without_a_word_of_the_right_answer_becomes_unlikely(memory: Memory, clock: FixedClock) -> None:
    useful, useless = pieces_of([("a", "b", 0.5, True), ("b", "c", 0.4, False)])
    state = (0.1, 0.1, 0.21)
    chances = []
    for found in (useful, useless):
        recall = Recall(Query("q", T0), found=(found,), walk=(Visit(found.record_id, state, 1, 0.0),))
        made = await learn_from_answer(memory, recall, "memory 0")
        assert made is not None
        chances.append(made.policy.include(state))
        await roll_back(memory)
        clock.forward(minutes=1)
    assert chances[0] > chances[1]
