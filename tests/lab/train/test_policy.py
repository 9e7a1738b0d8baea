"""Training of the walk: gradients, warm start, REINFORCE, versions, learning on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from made import edge
from nyima.cli.feedback import feedback
from nyima.domain.evidence import Evidence, Recall, Visit
from nyima.errors import InputError, NotFound
from nyima.mechanisms.by_hand import Statement
from nyima.mechanisms.graph.learning import Adam, Example, Gradient, backward, reinforce, warm_start
from nyima.mechanisms.graph.online import learn_from_answer, learn_from_thumb
from nyima.mechanisms.graph.policy import Policy, RulePolicy, fresh_policy, policy_of
from nyima.mechanisms.graph.versions import current, keep, roll_back, versions
from nyima.mechanisms.graph.walk import walk
from nyima.memory import Memory
from nyima.testing import FixedClock, ScriptedModel
from nyima_lab.measure.selection import compare_policies, selection_rows
from nyima_lab.train.rewards import AnswerReward, QuoteReward
from nyima_lab.train.run import TrainingPlan, split, train_policy
from nyima_lab.train.samples import TrainingQuestion
from nyima_lab.train.selection_report import selection_table
from support import answer, companion

T0 = datetime(2026, 3, 2, tzinfo=UTC)


def piece(
    id: str, memory: float, *, head: str = "a", tail: str = "b", rank: int | None = None, text: str = ""
) -> Evidence:
    claim = edge(id, head, "l", tail, text or id)
    scores = {"node": memory / 2, "edge": 0.1, "memory": memory} | ({} if rank is None else {"activated": float(rank)})
    return Evidence(text or id, "graph", memory, claim, T0, scores)


def example(n: int) -> Example:
    """What is required is near to the question; one thing beside it is nearer still by rank."""
    pieces = (
        piece(f"{n}r", 0.55, head=f"x{n}", tail=f"y{n}", rank=0, text="the answer is blue"),
        piece(f"{n}s", 0.5, head=f"y{n}", tail=f"z{n}", text="and also green"),
        piece(f"{n}t", 0.1, head=f"y{n}", tail=f"w{n}", text="something else entirely that is long"),
    )
    return Example(f"q{n}", pieces, frozenset({f"{n}r", f"{n}s"}), "blue green", f"g{n % 5}")


EXAMPLES = [example(n) for n in range(20)]


@pytest.mark.req("emg.policy")
def test_gradients_agree_with_finite_differences() -> None:
    draw = np.random.default_rng(0)
    policy = fresh_policy(1)
    states, actions, weights = draw.uniform(0, 1, (7, 3)), draw.integers(0, 2, 7), draw.normal(0, 1, 7)
    _, gradients = backward(policy, states, actions, weights)
    for which, gradient in enumerate(gradients):
        for place in np.ndindex(gradient.shape):
            up, down = ([a.copy() for a in policy.arrays()] for _ in (0, 1))
            up[which][place] += 1e-6
            down[which][place] -= 1e-6
            rise = (
                backward(Policy(*up), states, actions, weights)[0]
                - backward(Policy(*down), states, actions, weights)[0]
            )
            assert gradient[place] == pytest.approx(rise / 2e-6, rel=1e-4, abs=1e-7)


def test_adam_takes_the_papers_first_step() -> None:
    policy = fresh_policy(0)
    ones = tuple(np.ones_like(a) for a in policy.arrays())
    moved = Adam(0.001).step(policy, ones)
    assert policy.w1 - moved.w1 == pytest.approx(np.full((20, 3), 0.001), rel=1e-4)


@pytest.mark.req("emg.warm-start")
def test_the_warm_start_learns_what_is_required() -> None:
    before = fresh_policy(0)
    losses: list[float] = []
    learned = warm_start(before, EXAMPLES, episodes=1_000, note=lambda _, loss: losses.append(loss))
    assert np.mean(losses[-50:]) < np.mean(losses[:50])
    kept, _ = walk(EXAMPLES[0].pieces, learned)
    assert {e.record.id for e in kept} == {"0r", "0s"}
    again = warm_start(before, EXAMPLES, episodes=1_000)
    assert all(np.array_equal(a, b) for a, b in zip(learned.arrays(), again.arrays(), strict=True))
    with pytest.raises(InputError, match="other examples"):
        warm_start(before, [Example("q", EXAMPLES[0].pieces, frozenset({"nowhere"}))])


@pytest.mark.req("emg.reinforce")
async def test_reinforce_raises_the_return() -> None:
    async def reward(example: Example, chosen: Sequence[Evidence]) -> float:
        ids = {e.record.id for e in chosen}
        return len(ids & example.required) - 0.7 * len(ids - example.required)

    totals: list[float] = []
    learned = await reinforce(
        fresh_policy(2), EXAMPLES, reward, Gradient(2_000, 0.005), lambda _, total: totals.append(total)
    )
    assert np.mean(totals[-200:]) > np.mean(totals[:200])
    kept, _ = walk(EXAMPLES[3].pieces, learned)
    assert {e.record.id for e in kept} == {"3r", "3s"}
    assert Gradient() == Gradient(100, 0.001, 0.99)
    with pytest.raises(InputError):
        await reinforce(learned, [], reward, Gradient())


@pytest.mark.req("emg.reinforce", "emg.metrics")
async def test_answers_of_the_frozen_model_are_cached() -> None:
    model = ScriptedModel({"answer-short": ["blue green", "red"]})
    reward = AnswerReward(model)
    assert await reward(EXAMPLES[0], EXAMPLES[0].pieces[:1]) == pytest.approx(1.0)
    assert await reward(EXAMPLES[0], EXAMPLES[0].pieces[:1]) == pytest.approx(1.0)
    assert (reward.asked, reward.cached) == (1, 1)
    assert await reward(EXAMPLES[0], ()) == 0.0
    assert await AnswerReward(ScriptedModel({"answer-short": ["blue green"]}), "bleu")(EXAMPLES[0], ()) > 0.9
    assert "- the answer is blue" in model.asked("answer-short")[0].last
    quote = QuoteReward()
    assert await quote(EXAMPLES[0], EXAMPLES[0].pieces[:2]) > await quote(EXAMPLES[0], EXAMPLES[0].pieces[:1]) > 0


def asked(examples: Sequence[Example]) -> list[TrainingQuestion]:
    return [TrainingQuestion(e, tuple(sorted(e.pieces, key=lambda p: -p.score))) for e in examples]


@pytest.mark.req("emg.ab", "emg.k-study", "emg.ablation", "emg.significance")
async def test_the_report_has_each_k_the_ablations_and_the_comparison() -> None:
    found = {k: asked(EXAMPLES) for k in (1, 3)}
    report = await selection_table(found, seed=0)
    assert report["learned_from"] + report["reported"] == 20
    names = {(r["k"], r["policy"]) for r in report["rows"]}
    assert names == {(k, p) for k in (1, 3) for p in ("rule", "warm start", "policy gradient")} | {
        (3, "gradient alone")
    }
    warm = next(r for r in report["rows"] if r["policy"] == "warm start")
    assert warm["share"] == 1.0
    assert 0 <= warm["p"] <= 1
    assert set(report["a_b"]) >= {"A", "B", "gap", "low", "high", "p", "questions"}
    ab = compare_policies(asked(EXAMPLES), RulePolicy(threshold=2.0), RulePolicy(threshold=-1.0))
    assert (ab["A"], ab["B"]) == (0.0, 0.8)
    assert ab["p"] < 0.05
    (row,) = selection_rows(asked(EXAMPLES), {"all": RulePolicy(threshold=-1.0)})
    assert (row["share"], row["precision"]) == (1.0, pytest.approx(2 / 3, abs=1e-3))


def test_whole_persons_are_held_out() -> None:
    train, test = split(asked(EXAMPLES), 0)
    assert not {a.example.group for a in train} & {a.example.group for a in test}
    alone = [a for a in asked(EXAMPLES) if a.example.group == "g0"]
    train, test = split(alone, 0)
    assert train
    assert test


@pytest.mark.req("emg.online", "emg.private")
async def test_versions_are_kept_used_taken_back_and_erased(db: Path, clock: FixedClock) -> None:
    async with Memory.open(db, recipe="graph", embedder="none", clock=clock) as memory:
        assert isinstance((await current(memory)).policy, RulePolicy)
        with pytest.raises(NotFound, match="nothing to take back"):
            await roll_back(memory)
        made = await memory.state(Statement("user", "drives", "Skoda"))
        note: list[tuple[str, int, int]] = []
        version, report = await train_policy(
            memory, asked(EXAMPLES), TrainingPlan(warm=50, gradient=5), None, lambda *a: note.append(a)
        )
        assert version.number == 1
        assert {r["policy"] for r in report["table"]} == {"rule", "warm start", "policy gradient"}
        assert note[-1] == ("policy gradient", 5, 5)
        await memory.recall("Skoda")
        assert isinstance(policy_of((await memory.parts.learned(memory.recipe))["policy"]), Policy)
        second = await keep(memory, fresh_policy(7), {"after": 1}, [made.id])
        assert [v.number for v in await versions(memory)] == [2, 1]
        back = await roll_back(memory)
        assert (back.number, back.report["back_to"]) == (3, 1)
        assert np.array_equal(back.policy.w1, version.policy.w1)  # type: ignore[attr-defined]
        await memory.forget(made.id)
        assert second.number not in {v.number for v in await versions(memory)}, (
            "weights go with what they were learned from"
        )
        with pytest.raises(InputError, match="too few"):
            await train_policy(memory, asked(EXAMPLES[:3]), TrainingPlan(), None, lambda *a: None)
        with pytest.raises(InputError, match="chat model"):
            await train_policy(memory, asked(EXAMPLES), TrainingPlan(answers="model"), None, lambda *a: None)


@pytest.mark.req("emg.online")
async def test_it_learns_on_from_thumbs_and_corrected_answers(db: Path, clock: FixedClock) -> None:
    pieces = EXAMPLES[0].pieces
    from nyima.domain.evidence import Query

    states = ((0.1, 0.1, 0.24), (0.1, 0.1, 0.22), (0.05, 0.05, 0.15))  # near to where the rule is undecided
    visits = tuple(Visit(p.record.id, state, 1, 0.0) for p, state in zip(pieces, states, strict=True))
    recall = Recall(Query("q", T0), found=pieces, walk=visits)
    async with Memory.open(db, embedder="none", clock=clock) as memory:
        good = await learn_from_thumb(memory, recall, good=True)
        assert good is not None
        bad = await learn_from_thumb(memory, recall, good=False)
        assert bad is not None
        state = visits[2].state
        assert bad.policy.include(state) < good.policy.include(state)
        right = await learn_from_answer(memory, recall, "blue")
        assert right is not None
        assert right.policy.include(visits[0].state) > bad.policy.include(visits[0].state)
        assert await learn_from_thumb(memory, Recall(Query("q", T0)), good=True) is None
        assert (await roll_back(memory)).report["back_to"] == 2


async def test_what_was_learned_from_goes_with_all_that_was_learned_after(db: Path, clock: FixedClock) -> None:
    from nyima.domain.evidence import Query

    async with Memory.open(db, embedder="none", clock=clock) as memory:
        ida = await memory.state(Statement("user's sister", "name", "Ida"))
        tea = await memory.state(Statement("user", "likes", "tea"))
        for record in (ida, tea):
            walk = (Visit(record.id, (0.1, 0.1, 0.24), 1, 0.0),)
            await learn_from_thumb(memory, Recall(Query("q", T0), walk=walk), good=True)
        assert len(await versions(memory)) == 2
        await memory.forget(ida.id)
        assert await versions(memory) == []


@pytest.mark.req("emg.online")
async def test_feedback_in_the_chat_teaches_only_when_it_may(
    db: Path, clock: FixedClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel({"chat": [answer("In Sintra.")]})
    async with companion(db, model, clock=clock) as nyima:
        assert "no reply yet" in await feedback(nyima, None, "/good", "")
        await nyima.memory.state(Statement("office", "located in", "Sintra"))
        said = await nyima.reply("Where is the user's office in Sintra?")
        assert "off" in await feedback(nyima, said, "/good", "")
        assert await versions(nyima.memory) == []
        assert (await nyima.memory.store.events(nyima.memory.scope, "feedback"))[0].body["kind"] == "good"
    config = tmp_path / "config.toml"
    config.write_text("learn = true\n")
    monkeypatch.setenv("NYIMA_CONFIG", str(config))
    async with companion(db, model, clock=clock) as nyima:
        said = await nyima.reply("Where is the user's office in Sintra?")
        assert "policy version 1" in await feedback(nyima, said, "/bad", "")
        assert "policy version 2" in await feedback(nyima, said, "/correct", "It is in Sintra")
        nyima.private = True
        assert "nothing" in await feedback(nyima, said, "/good", "")
