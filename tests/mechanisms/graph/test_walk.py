"""Activation, state, policy and walk; partitions; baselines over memories."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from nyima.app.registry import recipe_named
from nyima.domain.evidence import Budget, Query, Step
from nyima.errors import InputError
from nyima.mechanisms.by_hand import Statement
from nyima.mechanisms.graph.policy import Policy, RulePolicy, fresh_policy, policy_from
from nyima.mechanisms.graph.walk import WalkSelector, question_parts, walk
from nyima.memory import Memory, Said
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from nyima.write.partitions import Partitions, floats
from support import answer, companion, reading

FLIGHT = ("user", "booked flight", "EK349")
LEAVES = ("EK349", "flight departs", "01:30 on 12 May")
FOR = ("EK349", "flight carries", "boss")
OTHER = ("user", "likes", "olives")


def text(said: tuple[str, str, str]) -> str:
    return "{} {}: {}".format(*said)


@pytest.fixture
async def memory(db: Path, clock: FixedClock, embedder: HashEmbedder) -> AsyncIterator[Memory]:
    clock.at = datetime(2026, 5, 2, 10, tzinfo=UTC)
    async with Memory.open(db, recipe="graph", embedder=embedder, clock=clock) as opened:
        for said in (FLIGHT, LEAVES, FOR, OTHER):
            await opened.state(Statement(*said))
        await opened.ingest.index(opened.scope)
        yield opened


class Everything:
    """A policy that always goes on."""

    def include(self, state: object) -> float:
        return 1.0


@pytest.mark.req("emg.activate")
async def test_the_best_memories_activate_their_neighbourhood(memory: Memory) -> None:
    query = Query("flight EK349", memory.clock.now())
    retriever = memory.parts.recaller(recipe_named("graph")).retrievers["graph"]
    for k in (1, 2):
        pieces = await retriever.retrieve(memory.scope, Step("graph", query, k))
        active = [p for p in pieces if "activated" in p.scores]
        assert [p.scores["activated"] for p in active] == [float(i) for i in range(k)]
        assert {p.text for p in pieces} == {text(FLIGHT), text(LEAVES), text(FOR)}, "the user's node leads nowhere"
    assert recipe_named("graph").sources[0].k == 3


@pytest.mark.req("emg.state")
async def test_the_state_is_three_cosines(memory: Memory, embedder: HashEmbedder) -> None:
    question = "When does my EK349 leave?"
    entity, relation = question_parts(question)
    assert (entity, relation) == ("my EK349", "leave")
    retriever = memory.parts.recaller(recipe_named("graph")).retrievers["graph"]
    pieces = await retriever.retrieve(memory.scope, Step("graph", Query(question, memory.clock.now()), 3))
    (leaves,) = [p for p in pieces if p.text == text(LEAVES)]
    asked = [floats(v) for v in await embedder.embed([entity, relation, question])]
    there = [floats(v) for v in await embedder.embed([LEAVES[2], LEAVES[1], text(LEAVES)])]
    state = [leaves.scores[name] for name in ("node", "edge", "memory")]
    assert state == pytest.approx([float(a @ b) for a, b in zip(asked, there, strict=True)], abs=1e-3)


async def test_without_vectors_shares_of_words_take_their_place(db: Path, clock: FixedClock) -> None:
    async with Memory.open(db, recipe="graph", embedder="none", clock=clock) as memory:
        await memory.state(Statement(*LEAVES))
        found = await memory.recall("When does flight EK349 leave?")
        assert [e.text for e in found.kept] == [text(LEAVES)]
        assert all(0 <= s <= 1 for v in found.walk for s in v.state)


@pytest.mark.req("emg.policy")
def test_the_policy_is_two_layers_with_twenty_tanh_units() -> None:
    policy = fresh_policy(3)
    assert [a.shape for a in policy.arrays()] == [(20, 3), (20,), (2, 20), (2,)]
    state = np.asarray([[0.2, 0.4, 0.6]])
    hidden = np.tanh(policy.w1 @ state[0] + policy.b1)
    logits = policy.w2 @ hidden + policy.b2
    assert policy.include(state[0]) == pytest.approx(float(np.exp(logits[1]) / np.exp(logits).sum()))
    again = policy_from(json.loads(json.dumps(policy.to_dict())))
    assert all(np.array_equal(a, b) for a, b in zip(policy.arrays(), again.arrays(), strict=True))
    assert np.array_equal(fresh_policy(3).w1, policy.w1)
    for wrong in ({}, {"weights": [[1.0]]}, {"weights": "x"}):
        with pytest.raises(InputError, match="train it again"):
            policy_from(wrong)


async def test_the_walk_goes_depth_first_and_stops_a_branch(memory: Memory) -> None:
    retriever = memory.parts.recaller(recipe_named("graph")).retrievers["graph"]
    pieces = await retriever.retrieve(memory.scope, Step("graph", Query("flight EK349", memory.clock.now()), 1))
    kept, visits = walk(pieces, Everything())
    assert len(kept) == len(visits) == 3
    assert all(v.action == 1 and v.log_probability == 0.0 for v in visits)

    class Nothing:
        def include(self, state: object) -> float:
            return 0.0

    kept, visits = walk(pieces, Nothing())
    assert kept == []
    assert [v.action for v in visits] == [0], "the branch was stopped at its first memory"
    draws = iter((0.1, 0.9, 0.1))
    kept, visits = walk(pieces, RulePolicy(threshold=-9, slope=0.0), lambda: next(draws))
    assert [v.action for v in visits] == [1, 0, 1]
    assert visits[1].log_probability == pytest.approx(math.log(0.5))


async def test_the_trace_has_the_walk(memory: Memory) -> None:
    found = await memory.recall("flight EK349", Budget(10, 1_000))
    assert {v.record for v in found.walk} >= {e.record_id for e in found.kept if e.source == "graph"}
    trace = (await memory.explain("last")).trace
    assert trace is not None
    assert len(trace["walk"][0]) == 5


def test_the_rule_is_a_weighted_mean_against_a_threshold() -> None:
    rule = RulePolicy()
    assert rule.include((0.2, 0.2, 0.2)) == pytest.approx(0.5)
    assert rule.include((0.0, 0.0, 0.9)) > 0.99
    assert rule.include((0.0, 0.0, 0.0)) < 0.1


def test_nothing_is_kept_below_the_floor() -> None:
    selector = WalkSelector(RulePolicy(), floor=0.5)
    assert selector.select(Query("x", datetime(2026, 1, 1, tzinfo=UTC)), (), Budget()).kept == ()


@pytest.mark.req("emg.partitions", "emg.graph")
async def test_partition_centres_are_the_means_of_their_memories(memory: Memory, embedder: HashEmbedder) -> None:
    centres = await memory.store.centres(memory.scope)
    vectors = [floats(v) for v in await embedder.embed([text(FLIGHT), text(LEAVES)])]
    assert floats(centres["partition Arrangement"]) == pytest.approx(np.mean(vectors, axis=0), abs=1e-5)
    await memory.retire(next(r.id for r in await memory.records(kinds=("claim",)) if r.text == text(LEAVES)))
    centres = await memory.store.centres(memory.scope)
    assert floats(centres["partition Arrangement"]) == pytest.approx(vectors[0], abs=1e-5)


@pytest.mark.req("emg.partitions")
async def test_an_edit_looks_into_the_nearest_partition_only(memory: Memory, embedder: HashEmbedder) -> None:
    places = Partitions(memory.store, memory.scope, memory.clock.now(), embedder.embed)
    (there,) = {c.subclass for c in await memory.claims() if c.text == text(LEAVES)}
    assert there == "Arrangement"
    near = await places.nearest("EK349 flight departs later", there, 1)
    assert [r.text for r in near] == [text(LEAVES)]
    everywhere = await places.nearest("The user likes olives", "Arrangement", 5)
    assert text(OTHER) not in {r.text for r in everywhere}
    assert await places.of("I work as a baker.") == "Occupation"


@pytest.mark.req("emg.ablation")
async def test_without_activated_nodes_the_walk_starts_at_the_root(memory: Memory) -> None:
    retriever = memory.parts.recaller(recipe_named("graph-from-root")).retrievers["graph"]
    pieces = await retriever.retrieve(memory.scope, Step("graph", Query("flight EK349", memory.clock.now()), 3))
    active = {p.text for p in pieces if "activated" in p.scores}
    assert active == {text(FLIGHT), text(OTHER)}


# --- baselines ---


READ = reading(
    Porto=[("user", "lives in", "Porto")],
    Braga=[("outdated", "1"), ("user", "lives in", "Braga")],
    olives=[("user", "likes", "olives")],
    Bruno=[("dog", "name", "Bruno")],
)


async def told(db: Path, recipe: str, clock: FixedClock) -> Memory:
    model = ScriptedModel({"read": [READ]})
    memory = await Memory.open(db, recipe=recipe, embedder=HashEmbedder(), clock=clock, model=model)
    for said in ("I live in Porto.", "I moved to Braga.", "I like olives.", "My dog is called Bruno."):
        await memory.remember([Said(said)], session="s")
        await memory.drain()
        clock.forward(hours=1)
    return memory


@pytest.mark.req("emg.niah")
async def test_niah_has_every_memory_unaltered(db: Path, clock: FixedClock) -> None:
    memory = await told(db, "niah", clock)
    found = await memory.recall("where do I live", memory.recipe.evidence)
    assert {e.text for e in found.kept} == {
        "user lives in: Porto", "user lives in: Braga", "user likes: olives", "dog name: Bruno",
    }  # fmt: skip
    await memory.close()


@pytest.mark.req("emg.naive")
async def test_naive_retrieves_by_cosine(db: Path, clock: FixedClock) -> None:
    memory = await told(db, "naive", clock)
    found = await memory.recall("The user likes olives.", Budget(1, 100))
    assert [e.text for e in found.kept] == ["user likes: olives"]
    assert not [r for r in await memory.records(kinds=("claim",), retired=True) if r.recorded.until]
    await memory.close()


async def test_m_rag_searches_the_nearest_partition(db: Path, clock: FixedClock) -> None:
    memory = await told(db, "m-rag", clock)
    await memory.ingest.index(memory.scope)
    source = memory.parts.recaller(recipe_named("m-rag")).retrievers["graph"]
    (question,) = await HashEmbedder().embed(["user lives in: Braga"])
    asked = Query("user lives in: Braga", clock.now())
    (home,) = {c.region for c in await memory.claims() if c.value == "Braga"}
    assert await source.choose(memory.scope, asked, question) == home
    found = await memory.recall("user lives in: Braga", Budget(5, 1_000))
    assert {e.record.region for e in found.kept} == {home}
    await memory.close()


@pytest.mark.req("emg.keqing")
async def test_keqing_answers_sub_questions_first(db: Path, clock: FixedClock) -> None:
    model = ScriptedModel(
        {
            "chat": [answer("ok")],
            "read": [READ],
            "decompose": ['{"questions": ["What is my dog called?", "Where do I live?"]}'],
            "answer-part": [
                lambda r: '{"text": "Bruno"}' if "called" in r.last.split("Question:")[1] else '{"text": "in Braga"}'
            ],
        }
    )
    async with companion(db, model, recipe="keqing", clock=clock) as nyima:
        for text in ("My dog is called Bruno.", "I moved to Braga."):
            await nyima.reply(text)
            await nyima.end_session()
            await nyima.drain()
            clock.forward(hours=2)
        reply = await nyima.reply("Does my dog live in Braga?")
        assert {e.text for e in reply.recall.kept} == {"What is my dog called? Bruno", "Where do I live? in Braga"}
        assert reply.recall.keywords == ("What is my dog called?", "Where do I live?")
        assert "Bruno" in model.asked("chat")[-1].last


def test_a_policy_is_what_the_walk_asks_for() -> None:
    assert isinstance(fresh_policy(), Policy)
