"""Training the agent that selects a partition, for the baseline M-RAG: first to name the
partition that holds most of what an answer requires, then REINFORCE on the answer's metric.
Of the two agents of the paper this is Agent-S (Wang et al. 2024, section 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from nyima.domain.evidence import Evidence, Query
from nyima.domain.ports import ChatModel, Embedder, RecordFilter
from nyima.domain.records import Claim
from nyima.errors import InputError
from nyima.mechanisms.graph.learning import Adam, Example, Reward, through
from nyima.mechanisms.graph.policy import Array, Policy, fresh_policy
from nyima.mechanisms.graph.versions import Version, current, keep
from nyima.memory import Memory
from nyima_lab.baselines.memories import PartitionRetriever
from nyima_lab.baselines.partition_agent import PARTITION_AGENT, PartitionAgent, partition_states, seen_from
from nyima_lab.measure.stats import interval, t_test
from nyima_lab.train.run import RunReport, TrainingPlan, reward_of, split, thinned
from nyima_lab.train.samples import own_examples, questions_of

__all__ = ["PartitionChoice", "choices_of", "partition_rows", "reinforce_agent", "train_partitions", "warm_agent"]

Told = Callable[[int, float], None]


@dataclass(frozen=True, slots=True)
class PartitionChoice:
    """A question, and what each partition would bring to its answer: ``states`` and the best
    ``k`` memories by partition; ``nearest`` is the choice without an agent, ``dense`` the best
    ``k`` memories of all partitions."""

    example: Example
    states: Mapping[str, tuple[float, float, float]]
    found: Mapping[str, tuple[Evidence, ...]]
    nearest: str
    dense: tuple[Evidence, ...]

    def matrix(self) -> Array:
        """The states as (n, 3)."""
        return np.asarray(list(self.states.values()), float)

    def share(self, kept: Sequence[Evidence]) -> float:
        """Which share of the required memories is among these."""
        return len({e.record.id for e in kept} & self.example.required) / len(self.example.required)


async def _choice(
    memory: Memory, embedder: Embedder, at: datetime | None, asked: Example, k: int
) -> PartitionChoice | None:
    """None where there is nothing to choose from."""
    query = Query(asked.question, at or memory.clock.now(), as_of=at)
    (vector,) = await embedder.embed([query.words()])
    hits = await seen_from(memory.store, memory.scope, query, vector)
    states = partition_states(hits)
    if not states:
        return None
    best = {place: [h for h in hits if h.session == place][:k] for place in states}
    ids = tuple({h.id for some in (*best.values(), hits[:k]) for h in some})
    rows = await memory.store.records(memory.scope, RecordFilter(ids=ids, retired=True))
    pieces = {r.id: Evidence(r.text, "graph", 0.0, r, r.valid.since) for r in rows if isinstance(r, Claim)}
    nearest = await PartitionRetriever(memory.store, embedder.embed).nearest(memory.scope, vector, states)
    found = {place: tuple(pieces[h.id] for h in some) for place, some in best.items()}
    return PartitionChoice(asked, states, found, nearest, tuple(pieces[h.id] for h in hits[:k]))


async def choices_of(
    memory: Memory,
    model: ChatModel | None,
    embedder: Embedder,
    source: tuple[str, Path | None],
    k: int,
    note: RunReport,
) -> list[PartitionChoice]:
    """The questions of RealMem or LongMemEval, or, made by a model, about the user's own memory."""
    kind, path = source
    if path is not None:
        async with aclosing(questions_of(kind, path, embedder, lambda done, of: note("examples", done, of))) as told:
            every = [await _choice(m, embedder, at, asked, k) async for m, at, asked in told]
    elif model is None:
        raise InputError("questions about your own memory are made by a chat model: set NYIMA_MODEL, or give --realmem")
    else:
        made = await own_examples(memory, model, k, note=lambda done, total: note("examples", done, total))
        every = [await _choice(memory, embedder, None, asked, k) for asked in made]
    return [c for c in every if c is not None]


def _stepped(policy: Policy, adam: Adam, choice: PartitionChoice, wanted: Array, weight: float) -> Policy:
    """One step that makes the wanted partitions (a distribution) likelier, by so much."""
    states = choice.matrix()
    hidden, _ = policy.forward(states)
    slope = weight * (PartitionAgent(policy).chances(states) - wanted)
    return adam.step(policy, through(policy, states, hidden, np.stack([-slope, slope], axis=1)))


def warm_agent(
    policy: Policy, choices: Sequence[PartitionChoice], *, episodes: int, rate: float, seed: int, note: Told
) -> Policy:
    """Learn to name the partition that brings most of what is required; several where several
    bring as much. An episode is one question. Raises InputError."""
    usable = [c for c in choices if any(c.share(some) for some in c.found.values())]
    if not usable:
        raise InputError("no partition brings a memory that an answer requires: give other examples")
    draw, adam = np.random.default_rng(seed), Adam(rate)
    for episode in range(episodes):
        choice = usable[int(draw.integers(len(usable)))]
        shares = np.asarray([choice.share(choice.found[place]) for place in choice.states])
        wanted = (shares == shares.max()) / np.count_nonzero(shares == shares.max())
        chances = PartitionAgent(policy).chances(choice.matrix())
        note(episode, float(-(wanted * np.log(np.maximum(chances, 1e-12))).sum()))
        policy = _stepped(policy, adam, choice, wanted, 1.0)
    return policy


async def reinforce_agent(
    policy: Policy, choices: Sequence[PartitionChoice], reward: Reward, plan: TrainingPlan, note: Told
) -> Policy:
    """An episode samples one partition for one question; the metric of the answer from its
    memories, less the usual one, says how much likelier that choice becomes."""
    draw, adam = np.random.default_rng(plan.seed), Adam(plan.rate)
    usual: float | None = None
    for episode in range(plan.gradient):
        choice = choices[int(draw.integers(len(choices)))]
        chances = PartitionAgent(policy).chances(choice.matrix())
        taken = int(draw.choice(len(chances), p=chances))
        gained = await reward(choice.example, choice.found[list(choice.states)[taken]])
        usual = gained if usual is None else usual
        policy = _stepped(policy, adam, choice, np.eye(len(chances))[taken], gained - usual)
        usual = 0.9 * usual + 0.1 * gained
        note(episode, gained)
    return policy


def partition_rows(test: Sequence[PartitionChoice], agents: Mapping[str, PartitionAgent]) -> list[dict[str, Any]]:
    """The share of the required memories among the ``k`` that are brought: by the nearest
    centre, by each agent, by the best partition there is, and by cosine over all memories."""
    kept: dict[str, list[float]] = {"nearest centre": [c.share(c.found[c.nearest]) for c in test]}
    for name, agent in agents.items():
        kept[name] = [c.share(c.found[agent.choose(c.states)]) for c in test]
    kept["best partition"] = [max(c.share(some) for some in c.found.values()) for c in test]
    kept["no partitions"] = [c.share(c.dense) for c in test]
    groups = [c.example.group for c in test]
    clusters = groups if len(set(groups)) >= 5 else None
    rows: list[dict[str, Any]] = []
    for name, shares in kept.items():
        share = interval(shares, clusters)
        gap = [a - b for a, b in zip(shares, kept["nearest centre"], strict=True)]
        rows.append(
            {
                "agent": name, "questions": len(test), "share": round(share.mean, 4), "low": round(share.low, 4),
                "high": round(share.high, 4), "gap": round(float(np.mean(gap)), 4),
                "p": round(t_test(shares, kept["nearest centre"]), 4),
            }
        )  # fmt: skip
    return rows


async def train_partitions(
    memory: Memory, choices: Sequence[PartitionChoice], plan: TrainingPlan, model: ChatModel | None, note: RunReport
) -> tuple[Version, dict[str, Any]]:
    """Learn on one part, report another, and use what was learned."""
    if len(choices) < 5:
        raise InputError(f"{len(choices)} examples are too few to learn from: talk some more, or give --realmem")
    train, test = split(choices, plan.seed)
    curves: dict[str, list[float]] = {"warm start": [], "policy gradient": []}

    def told(stage: str, total: int) -> Told:
        def each(episode: int, value: float) -> None:
            curves[stage].append(value)
            note(stage, episode + 1, total)

        return each

    warm = warm_agent(
        fresh_policy(plan.seed), train, episodes=plan.warm, rate=plan.rate, seed=plan.seed,
        note=told("warm start", plan.warm),
    )  # fmt: skip
    last = await reinforce_agent(warm, train, reward_of(plan, model), plan, told("policy gradient", plan.gradient))
    agents = {"warm start": PartitionAgent(warm), "policy gradient": PartitionAgent(last)}
    before = await current(memory, PARTITION_AGENT)
    report = {
        "after": before.number, "examples": len(train), "tested": len(test), "k": plan.k, "seed": plan.seed,
        "answers": plan.answers, "table": partition_rows(test, agents),
        "curve": {name: thinned(values) for name, values in curves.items()},
    }  # fmt: skip
    own = [c for c in train if c.example.group == "own"]
    sources = {e.record.id for c in own for some in c.found.values() for e in some}
    return await keep(memory, last, report, sources, PARTITION_AGENT), report
