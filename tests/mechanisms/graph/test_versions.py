"""Versions of learned weights, and what a step rests on."""

from __future__ import annotations

import numpy as np
import pytest

from made import T0, pieces_of
from nyima.domain.evidence import Query, Recall, Visit
from nyima.errors import NotFound
from nyima.mechanisms.graph.online import learn_from_answer, learn_from_thumb
from nyima.mechanisms.graph.policy import Policy, RulePolicy, fresh_policy
from nyima.mechanisms.graph.versions import current, keep, roll_back, versions
from nyima.memory import Memory
from nyima.testing import FixedClock


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
    for kind in ("policy", "partition-policy"):
        assert (await current(memory, kind)).number == 0
        assert (await keep(memory, fresh_policy(1), {}, kind=kind)).number == 1
        assert (await current(memory, kind)).number == 1


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
