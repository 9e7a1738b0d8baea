"""The gate: whether a turn is worth keeping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from made import asks, desk, last_turn
from nyima.domain.conversation import Origin, Role
from nyima.domain.roles import Written
from nyima.mechanisms.gate import GateWriter
from nyima.memory import Memory, Said
from nyima.testing import FixedClock, ScriptedModel
from nyima.write.desk import Desk


async def gated(memory: Memory, text: str, *answers: object, **more: Any) -> Written:
    job = await last_turn(memory, Said("Where do you live?", Role.ASSISTANT), Said(text, **more))
    return await GateWriter(desk(memory, *answers, lane="gate")).write(memory.scope, job)


async def test_what_the_model_says_of_a_turn_is_noted_and_its_record_is_owed(memory: Memory) -> None:
    written = await gated(memory, "I live in Moab.", {"remember": True, "facts": {"city": "Moab"}})
    (event,) = written.events
    assert (event.body["remember"], event.body["facts"], event.body["model"]) == (True, [["city", "Moab"]], True)
    assert event.body["by"].startswith("gate@")
    assert [j.kind for j in written.jobs] == ["note"]
    assert not written.delta


@pytest.mark.parametrize("answers", [(), ("what?", "no")])
async def test_without_a_usable_answer_the_rule_decides_and_says_so(
    memory: Memory, answers: tuple[object, ...]
) -> None:
    (event,) = (await gated(memory, "I am allergic to walnuts and I live in Moab.", *answers)).events
    assert (event.body["remember"], event.body["by"], event.body["model"], event.body["facts"]) == (
        True,
        "rule",
        None,
        [],
    )
    (event,) = (await gated(memory, "hm, ok", *answers)).events
    assert event.body["remember"] is False


async def test_what_the_user_did_not_say_is_no_matter_for_the_model(memory: Memory) -> None:
    for more in ({"role": Role.ASSISTANT}, {"origin": Origin.DOCUMENT}):
        job = await last_turn(memory, Said("I live in Moab.", **more))
        caller, model = asks({"remember": True, "facts": {"city": "Moab"}}, lane="gate")
        (event,) = (await GateWriter(Desk(memory.store, caller, memory.clock)).write(memory.scope, job)).events
        assert event.body["facts"] == []
        assert not model.requests


async def test_facts_that_come_after_the_merge_are_merged_again(db: Path, clock: FixedClock) -> None:
    answer = {"remember": False, "facts": {"city": "Moab"}}
    async with Memory.open(db, model=ScriptedModel(), embedder="none", clock=clock) as memory:
        assert [j.kind for j in (await gated(memory, "I live in Moab.", answer)).jobs] == ["note"]
        await memory.end_session("s1")
        await memory.drain()
        jobs = (await gated(memory, "I live in Moab.", answer)).jobs
        assert [(j.kind, j.subject) for j in jobs[1:]] == [("profile", "s1")]
        without = (await gated(memory, "I live in Moab.", {**answer, "facts": {}})).jobs
        assert "profile" not in [j.kind for j in without]
