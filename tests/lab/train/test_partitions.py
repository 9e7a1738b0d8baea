"""The agent that selects a partition learns to, from answers and from what they require."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from train.test_samples import realmem

from nyima.app.registry import recipe_named
from nyima.domain.evidence import Query
from nyima.domain.records import Claim
from nyima.errors import InputError, NotFound
from nyima.mechanisms.by_hand import Statement
from nyima.mechanisms.graph.learning import Example, through
from nyima.mechanisms.graph.policy import fresh_policy
from nyima.mechanisms.graph.versions import current, keep, roll_back
from nyima.memory import Memory
from nyima.testing import FixedClock, HashEmbedder
from nyima_lab.baselines.partition_agent import PARTITION_AGENT, PartitionAgent, learned_agent
from nyima_lab.train.partition_choice import (
    PartitionChoice,
    choices_of,
    partition_rows,
    reinforce_agent,
    train_partitions,
    warm_agent,
)
from nyima_lab.train.rewards import QuoteReward
from nyima_lab.train.run import TrainingPlan

BEST, CENTRE = "partition Best", "partition Centre"


@pytest.fixture
async def memory(db: Path, clock: FixedClock, embedder: HashEmbedder) -> AsyncIterator[Memory]:
    async with Memory.open(db, recipe="graph", embedder=embedder, clock=clock) as opened:
        for said in (("user", "home address", "I live in Porto"), ("user", "diet", "I drink green tea")):
            await opened.state(Statement(*said))
            clock.forward(seconds=1)
        await opened.ingest.index(opened.scope)
        yield opened


@pytest.fixture
async def choices(memory: Memory, clock: FixedClock) -> list[PartitionChoice]:
    """Forty questions whose answer is always in the partition with the one best memory,
    while another has the nearer centre."""
    from nyima.domain.evidence import Evidence

    first, second = [r for r in await memory.records(kinds=("claim",)) if isinstance(r, Claim)]
    home = Evidence(first.text, "graph", 0.0, first, clock.now())
    tea = Evidence(second.text, "graph", 0.0, second, clock.now())
    draw = np.random.default_rng(3)
    found: list[PartitionChoice] = []
    for n in range(40):
        near = float(draw.uniform(0.3, 0.5))
        states = {BEST: (near - 0.2, near + 0.3, 0.1), CENTRE: (near, near + 0.1, 0.8)}
        asked = Example(f"Where do I live, {n}?", (), frozenset({first.id}), "in Porto", f"p{n % 8}")
        found.append(PartitionChoice(asked, states, {BEST: (home,), CENTRE: (tea,)}, CENTRE, (tea, home)))
    return found


def test_the_gradient_is_that_of_the_choice() -> None:
    policy, states = fresh_policy(1), np.asarray([[0.1, 0.4, 0.2], [0.5, 0.2, 0.7], [0.3, 0.3, 0.1]])
    wanted = np.asarray([0.0, 1.0, 0.0])

    def loss() -> float:
        return float(-(wanted * np.log(PartitionAgent(policy).chances(states))).sum())

    hidden, _ = policy.forward(states)
    slope = PartitionAgent(policy).chances(states) - wanted
    found = through(policy, states, hidden, np.stack([-slope, slope], axis=1))
    for weights, gradient in zip(policy.arrays(), found, strict=True):
        for at in np.ndindex(weights.shape):
            before = weights[at]
            weights[at] = before + 1e-6
            above = loss()
            weights[at] = before - 1e-6
            below = loss()
            weights[at] = before
            assert gradient[at] == pytest.approx((above - below) / 2e-6, abs=1e-6)


def test_an_agent_without_partitions_chooses_none() -> None:
    assert PartitionAgent(fresh_policy()).choose({}) == ""


@pytest.mark.req("emg.m-rag")
async def test_both_stages_learn_which_partition_answers(choices: list[PartitionChoice]) -> None:
    start = next(p for p in map(fresh_policy, range(50)) if PartitionAgent(p).choose(choices[0].states) == CENTRE)
    silent = {"note": lambda episode, value: None}
    warm = warm_agent(start, choices, episodes=400, rate=0.01, seed=0, **silent)
    gains: list[float] = []
    alone = await reinforce_agent(
        start, choices, QuoteReward(), TrainingPlan(gradient=600, rate=0.01), lambda episode, value: gains.append(value)
    )
    agents = {"none": PartitionAgent(start), "warm": PartitionAgent(warm), "gradient": PartitionAgent(alone)}
    rows = {r["agent"]: r["share"] for r in partition_rows(choices, agents)}
    assert rows == {
        "nearest centre": 0.0, "none": 0.0, "warm": 1.0, "gradient": 1.0, "best partition": 1.0, "no partitions": 1.0
    }  # fmt: skip
    assert np.mean(gains[-100:]) > np.mean(gains[:20]) + 0.2


async def test_nothing_to_learn_from_is_said(choices: list[PartitionChoice], memory: Memory) -> None:
    with pytest.raises(InputError, match="too few"):
        await train_partitions(memory, choices[:4], TrainingPlan(), None, lambda *_: None)
    with pytest.raises(InputError, match="no partition brings"):
        none = [PartitionChoice(c.example, c.states, dict.fromkeys(c.states, ()), c.nearest, ()) for c in choices]
        warm_agent(fresh_policy(), none, episodes=1, rate=0.1, seed=0, note=lambda *_: None)
    with pytest.raises(InputError, match="NYIMA_MODEL"):
        await choices_of(memory, None, HashEmbedder(), ("own", None), 5, lambda *_: None)


async def test_what_was_learned_chooses_until_it_is_taken_back(memory: Memory, choices: list[PartitionChoice]) -> None:
    source = memory.parts.recaller(recipe_named("m-rag")).retrievers["graph"]
    asked = Query("Where do I live?", memory.clock.now())
    (vector,) = await HashEmbedder().embed([asked.text])
    before = await source.choose(memory.scope, asked, vector)
    assert before.startswith("partition ")
    version, report = await train_partitions(
        memory, choices, TrainingPlan(warm=300, gradient=20), None, lambda *_: None
    )
    assert (version.number, report["examples"], report["tested"]) == (1, 25, 15)
    agent = await learned_agent(memory.store, memory.scope)
    assert agent is not None
    assert agent.choose(choices[0].states) == BEST
    assert (await current(memory)).number == 0, "the walk has weights of its own"
    assert await source.choose(memory.scope, asked, vector) in {
        r.region for r in await memory.records(kinds=("claim",)) if isinstance(r, Claim)
    }
    assert (await roll_back(memory, PARTITION_AGENT)).number == 2
    assert await learned_agent(memory.store, memory.scope) is None
    assert await source.choose(memory.scope, asked, vector) == before
    with pytest.raises(NotFound):
        await roll_back(memory, PARTITION_AGENT)


async def test_what_was_learned_from_ones_own_memory_goes_with_it(memory: Memory) -> None:
    relation, *_ = await memory.records(kinds=("claim",))
    await keep(memory, fresh_policy(), {"after": 0}, [relation.id], PARTITION_AGENT)
    await memory.forget(relation.id)
    assert await learned_agent(memory.store, memory.scope) is None


async def test_choices_are_read_from_realmem(tmp_path: Path, memory: Memory, embedder: HashEmbedder) -> None:
    (choice,) = await choices_of(memory, None, embedder, ("realmem", realmem(tmp_path)), 5, lambda *_: None)
    assert choice.nearest in choice.states
    assert set(choice.states) == set(choice.found)
    assert "User is tired." not in {e.text for some in choice.found.values() for e in some}, "it came later"
    assert max(choice.share(some) for some in choice.found.values()) == 1.0
