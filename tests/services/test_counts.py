"""The figures of a memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from nyima.errors import ModelError, ModelUnreachable
from nyima.memory import Memory
from nyima.services.counts import statistics
from nyima.testing import ScriptedModel
from support import answer, companion


async def test_calls_tokens_and_failures_are_counted_by_job(db: Path) -> None:
    note = '{"context": "", "knowledge": "The user likes tea.", "facts": {}}'
    model = ScriptedModel({"chat": [answer("Hi!", remember=True), ModelUnreachable("away")], "note": ["rubbish", note]})
    async with companion(db, model) as nyima:
        await nyima.reply("I like tea and nothing else")
        await nyima.drain()
        with pytest.raises(ModelError):
            await nyima.reply("Are you there?")
        data = await statistics(nyima.memory)
    assert data["calls"]["by_job"]["reply"] == 2
    assert data["calls"]["failed"] == 1
    assert data["calls"]["count"] == sum(data["calls"]["by_job"].values()) == len(model.requests)
    assert data["tokens"]["prompt"] > data["tokens"]["completion"] > 0
    assert data["turns"] == 3


async def test_a_rule_that_had_to_answer_is_counted_apart(db: Path) -> None:
    model = ScriptedModel({"chat": [answer("Hi!", remember=True)], "note": ["rubbish"]})
    async with companion(db, model) as nyima:
        await nyima.reply("I like tea and nothing else")
        await nyima.drain()
        data = await statistics(nyima.memory)
    assert data["calls"]["fallbacks"] >= 1
    assert data["calls"]["failed"] == 0
    assert data["calls"]["count"] == len(model.requests), "a rule is no call"


async def test_an_empty_memory_divides_by_nothing(memory: Memory) -> None:
    data = await statistics(memory)
    assert data == {
        "records": {}, "calls": {"count": 0, "failed": 0, "fallbacks": 0, "by_job": {}},
        "tokens": {"prompt": 0, "cached": 0, "completion": 0}, "jobs": {}, "turns": 0,
    }  # fmt: skip


async def test_unspaced_scripts_count_pairs(memory: Memory) -> None:
    await memory.remember("猫の名前はニマ")
    record = (await statistics(memory))["records"]["note"]
    assert record["count"] == 1
    assert record["mean_words"] >= 6
