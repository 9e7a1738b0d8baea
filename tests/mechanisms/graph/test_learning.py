"""Steps of learning: what they change, and what there is nothing to learn from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import pieces_of
from nyima.errors import InputError
from nyima.mechanisms.graph.learning import Adam, Example, Gradient, backward, reinforce, through, warm_start
from nyima.mechanisms.graph.policy import fresh_policy

cosines = st.tuples(*[st.floats(-1, 1)] * 3)


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
