"""MemoryBank and MemoChat on the shipped paths, and the recipes of the papers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.app.registry import recipe_named, registry
from nyima.domain.conversation import Role
from nyima.domain.ports import RecordFilter
from nyima.domain.records import Summary
from nyima.errors import ConfigError, InputError, NotFound
from nyima.memory import Said
from nyima.testing import FixedClock, ScriptedModel
from nyima_lab.baselines.sessions import retention
from support import answer, companion

TALK = (Said("My parrot Coco is ill."), Said("I am sorry. What is wrong?", Role.ASSISTANT), Said("I also booked Rome."))


@given(st.floats(0, 400), st.integers(1, 20))
def test_retention_falls_with_time_and_a_stronger_memory_fades_more_slowly(days: float, strength: int) -> None:
    assert 0 <= retention(days, strength) <= 1
    assert retention(0, strength) == 1
    assert retention(days + 1, strength) <= retention(days, strength)
    assert retention(days, strength + 1) >= retention(days, strength)


def bank() -> ScriptedModel:
    day = ['{"text": "Coco the parrot was ill."}', '{"text": "They spoke of Rome."}']
    overall = ['{"text": "Coco was ill."}', '{"text": "Coco was ill, then Rome."}']
    portrait = ['{"text": "The user loves birds."}']
    return ScriptedModel({"day": day, "overall": overall, "portrait": portrait, "chat": ["Hello."]})  # type: ignore[dict-item]


@pytest.mark.req("rsum.memorybank")
async def test_memorybank_keeps_dated_days_an_overall_summary_and_a_portrait(db: Path, clock: FixedClock) -> None:
    model = bank()
    async with companion(db, model, recipe="memorybank", clock=clock) as nyima:
        for n in range(2):
            told = TALK[:2] if n == 0 else TALK[2:]
            await nyima.memory.remember([Said(t.text, t.role, id=str(i)) for i, t in enumerate(told)], session=f"s{n}")
            await nyima.memory.end_session(f"s{n}")
            await nyima.drain()
            clock.forward(days=1)
        live = {r.level: r for r in await nyima.memory.records(kinds=("summary",)) if isinstance(r, Summary)}
        assert live["day"].body.startswith("2026-03-03: ")
        assert live["overall"].body == "Coco was ill, then Rome."
        assert live["overall"].covers == ("s0", "s1")
        assert "Coco was ill." in model.asked("overall")[1].last
        await nyima.reply("They spoke of Rome, when was it?")
        system = model.asked("chat")[-1].system
        assert "then Rome" in system
        assert "loves birds" in system
        assert "2026-03-03: They spoke of Rome." in model.asked("chat")[-1].last  # a day's summary is found
        receipt = await nyima.forget(query="parrot Coco ill")
        assert receipt.bytes_found == 0
        assert receipt.rederived >= 1
        left = await nyima.memory.store.records(nyima.memory.scope, RecordFilter(kinds=("summary",), retired=True))
        assert not [r for r in left if "Coco" in r.text]


async def test_an_erase_in_memorybank_leaves_no_trace_and_loses_no_other_day(db: Path, clock: FixedClock) -> None:
    model = ScriptedModel(
        {
            "day": [lambda r: json.dumps({"text": "Coco the parrot." if "Coco" in r.last else "Rome was booked."})],
            "overall": [lambda r: json.dumps({"text": r.last})],
            "portrait": [lambda r: json.dumps({"text": "Loves Coco." if "Coco" in r.last else "Travels."})],
        }
    )
    async with companion(db, model, recipe="memorybank", clock=clock) as nyima:
        memory = nyima.memory
        for n, text in enumerate(("My parrot Coco is ill.", "I booked Rome.", "I like figs.")):
            await memory.remember([Said(text, id="0")], session=f"s{n}")
            await memory.end_session(f"s{n}")
            await nyima.drain()
            clock.forward(days=1)
        await memory.forget(session="s2")  # the newest overall summary and portrait stood on it
        await nyima.drain()
        live = {r.level: r.text for r in await memory.records(kinds=("summary",)) if isinstance(r, Summary)}
        assert "Coco" in live["overall"]
        assert "portrait" in live
        clock.forward(seconds=1)
        await memory.forget(session="s0")
        await nyima.drain()
        left = await memory.store.records(memory.scope, RecordFilter(retired=True))
        assert not [r for r in left if "Coco" in r.text]
        assert {"day", "overall", "portrait"} <= {r.level for r in left if isinstance(r, Summary)}


@pytest.mark.req("rsum.memorybank")
async def test_memorybank_forgets_what_is_not_recalled(db: Path, clock: FixedClock) -> None:
    model = bank()
    async with companion(db, model, recipe="memorybank", clock=clock) as nyima:
        await nyima.memory.remember([Said(f"fact number {i} about parrots", id=str(i)) for i in range(40)], session="s")
        fresh = await nyima.recall("parrots fact")
        kept = {e.record.id for e in fresh.kept}
        assert kept
        clock.forward(days=12)
        for _ in range(6):
            await nyima.recall("parrots fact")
        recaller = nyima.memory.parts.recaller(registry().recipes["memorybank"], k=40)
        from nyima.domain.evidence import Budget, Query

        later = await recaller.recall(nyima.memory.scope, Query("parrots fact", clock.now()), Budget(40, 10_000))
        assert 0 < len(later.kept) < 40
        assert all(0 < e.scores["retention"] <= 1 for e in later.kept)


@pytest.mark.req("rsum.memochat")
async def test_memochat_writes_memos_chooses_and_replies(db: Path, clock: FixedClock) -> None:
    memos = '{"memos": ["the parrot (1-2): Coco is ill.", "travel (3-3): Rome is booked.", "no lines at all"]}'
    model = ScriptedModel(
        {"memo": [memos], "choose": ['{"useful": [2, 9]}', '{"useful": []}', "nonsense"], "chat": ["Rome!"]}
    )
    async with companion(db, model, recipe="memochat", clock=clock) as nyima:
        await nyima.memory.remember([Said(t.text, t.role, id=str(i)) for i, t in enumerate(TALK)], session="s")
        await nyima.memory.end_session("s")
        await nyima.drain()
        made = [r for r in await nyima.memory.records(kinds=("summary",)) if isinstance(r, Summary)]
        assert [(r.level, r.covers[1]) for r in made] == [("topic", "1-2"), ("topic", "3-3"), ("topic", "1-3")]
        assert {len(r.provenance.turns) for r in made} == {3}  # the model saw all of it
        clock.forward(days=1)
        reply = await nyima.reply("Where do I travel?")
        (piece,) = reply.recall.kept
        assert "travel: Rome is booked. Dialogue: User: I also booked Rome." in piece.text
        assert "I also booked Rome" in model.asked("chat")[-1].last
        assert (await nyima.reply("And then?")).recall.kept == ()
        assert (await nyima.reply("Nonsense?")).recall.kept == ()
        receipt = await nyima.forget(query="parrot Coco ill")
        assert receipt.bytes_found == 0
        live = await nyima.memory.store.records(nyima.memory.scope, RecordFilter(kinds=("summary",), retired=True))
        assert not [r for r in live if "Coco" in r.text]


@pytest.mark.req("rsum.dpr", "rsum.plus-long-context", "rsum.gold-memory", "cond.k-study")
def test_each_baseline_is_a_recipe_and_k_can_be_chosen() -> None:
    names = {
        "none", "context-only", "bm25", "two-encoder", "history", "summary", "conditional", "conditional+history",
        "conditional+summary", "history+reflection", "summary+reflection", "conditional+reflection", "no-selection",
        "no-context", "no-knowledge", "recursive", "recursive+bm25", "recursive+two-encoder", "recursive+context",
        "gold-memory", "memorybank", "memochat",
    }  # fmt: skip
    assert names <= set(registry().recipes)
    assert registry().recipes["recursive+context"].past
    five = recipe_named("two-encoder@5")
    assert (five.name, [s.k for s in five.sources], five.evidence.records) == ("two-encoder@5", [5], 5)
    assert five.evidence.tokens > registry().recipes["two-encoder"].evidence.tokens
    for wrong in ("bm25@", "bm25@0", "bm25@x", "nothing@3", "bm25@1000"):
        with pytest.raises(ConfigError, match="name@k"):
            recipe_named(wrong)


@pytest.mark.req("rsum.dpr")
async def test_queries_have_an_encoder_of_their_own(db: Path, clock: FixedClock) -> None:
    from dataclasses import replace

    from nyima.testing import HashEmbedder

    queries = HashEmbedder(name="questions")
    async with companion(db, ScriptedModel(), recipe="two-encoder", clock=clock) as nyima:
        nyima.memory.parts = replace(nyima.memory.parts, queries=queries)
        await nyima.memory.remember([Said("I like figs")], session="s")
        assert queries.calls == 0
        assert (await nyima.recall("figs")).kept
        assert queries.calls == 1


async def test_a_private_chat_goes_on_from_turns_that_are_not_stored(db: Path, clock: FixedClock) -> None:
    model = ScriptedModel({"chat": [answer("Rome it is.")]})
    async with companion(db, model, clock=clock) as nyima:
        with pytest.raises(InputError, match="private"):
            await nyima.resume(turns=TALK)
        with pytest.raises(NotFound, match="no open session"):
            await nyima.resume("s-unknown")
        nyima.private = True
        await nyima.resume(turns=TALK)
        await nyima.reply("So where do I go?")
        contents = [m.content for m in model.asked("chat")[-1].messages]
        assert any("parrot Coco" in c for c in contents)
        nyima.private = False
        assert await nyima.memory.turns() == []


async def test_an_open_session_goes_on(db: Path, clock: FixedClock) -> None:
    model = ScriptedModel({"chat": [answer("Fine.")]})
    async with companion(db, model, clock=clock) as nyima:
        await nyima.memory.remember([Said("I am at the station")], session="mine")
        await nyima.resume("mine")
        await nyima.reply("Still here")
        assert [t.session for t in await nyima.memory.turns()] == ["mine"] * 3


async def test_a_private_chat_without_tools_is_not_asked_for_notes(db: Path, clock: FixedClock) -> None:
    model = ScriptedModel(
        {"chat": ["Your cat is called Momo.", answer("Noted.", remember=True, claims={"name": "Ann"})]}
    )
    async with companion(db, model, recipe="conditional", clock=clock) as nyima:
        nyima.private = True
        assert (await nyima.reply("What is my cat called?")).text == "Your cat is called Momo."
        nyima.private = False
        assert (await nyima.reply("I am Ann, I work at night.")).notes.remember
        private, ordinary = model.asked("chat")
        assert private.grammar is None
        assert '"remember"' not in private.system
        assert ordinary.grammar is not None
        assert '"remember"' in ordinary.system


async def test_memorybank_hears_nothing_of_what_is_pasted(db: Path, clock: FixedClock) -> None:
    model = bank()
    async with companion(db, model, recipe="memorybank", clock=clock) as nyima:
        pasted = "Please summarise this mail:\n\nMy name is Gwendolyn and I am leaving for Lund on Tuesday."
        await nyima.memory.remember([Said(pasted, id="1"), Said("I like figs.", id="2")], session="s")
        await nyima.memory.end_session("s")
        await nyima.drain()
    told = [r.last for lane in ("day", "portrait") for r in model.asked(lane)]
    assert len(told) == 2
    assert not [t for t in told if "Gwendolyn" in t]
    assert all("figs" in t for t in told)
