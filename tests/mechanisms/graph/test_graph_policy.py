"""The policy of the walk: probabilities, and weights that are none."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.errors import InputError
from nyima.mechanisms.graph.policy import Policy, RulePolicy, fresh_policy, policy_from, policy_of

cosines = st.tuples(*[st.floats(-1, 1)] * 3)


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


def test_what_is_no_number_is_no_weight() -> None:
    weights = fresh_policy().to_dict()
    weights["weights"][3] = [float("nan"), 0.0]
    with pytest.raises(InputError):
        policy_from(weights)


def test_without_learned_weights_the_rule_decides() -> None:
    assert isinstance(policy_of({}), RulePolicy)
    assert isinstance(policy_of({"weights": None}), RulePolicy)
    assert isinstance(policy_of({"weights": fresh_policy().to_dict()}), Policy)
