"""Calls of a model: budgets, the ledger, one retry."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from made import SCOPE, asks
from nyima.domain.conversation import Scope
from nyima.domain.evidence import Usage
from nyima.domain.ports import Completion, Event, Message
from nyima.errors import BudgetSpent, ModelGarbled, ModelRefused
from nyima.read.calls import Caller, DailyBudget, usage_of
from nyima.read.judge import CHOOSE, ChooseIn
from nyima.testing import FixedClock, ScriptedModel

ASKED = ChooseIn("1. tea", "what?")
GOOD = {"useful": [1]}


async def ledger(caller: Caller, scope: Scope = SCOPE) -> list[dict[str, Any]]:
    return [dict(e.body) for e in await caller.store.events(scope, "call")][::-1]


@pytest.mark.parametrize(
    ("answers", "repaired", "retried", "calls"),
    [
        ([GOOD], False, False, 1),
        (['```json\n{"useful": [1]'], True, False, 1),
        (["[1, 2", GOOD], False, True, 2),
        (["no", "{useful: [1]}"], True, True, 2),
    ],
)
async def test_an_answer_is_repaired_or_asked_for_once_again(
    answers: list[object], repaired: bool, retried: bool, calls: int
) -> None:
    caller, _ = asks(*answers, lane="choose")
    out, asked = await caller.ask(SCOPE, CHOOSE, ASKED)
    assert out.useful == [1]
    assert (asked.repaired, asked.retried, asked.usage.calls, asked.model) == (repaired, retried, calls, "scripted")
    assert asked.prompt == CHOOSE.version
    assert len(await ledger(caller)) == calls


async def test_a_second_answer_that_cannot_be_read_is_the_end() -> None:
    caller, model = asks("no", "idea", GOOD, lane="choose")
    with pytest.raises(ModelGarbled, match="idea"):
        await caller.ask(SCOPE, CHOOSE, ASKED)
    assert len(model.requests) == 2
    again = model.requests[1].messages
    assert [m.role for m in again][-2:] == ["assistant", "user"]
    assert (again[-2].content, again[-1].content) == ("no", "Answer with the JSON object only.")


async def test_the_ledger_has_costs_and_outcome_and_no_text() -> None:
    caller, _ = asks(GOOD, lane="choose")
    await caller.ask(SCOPE, CHOOSE, ASKED)
    (line,) = await ledger(caller)
    assert (line["job"], line["model"], line["calls"], line["outcome"]) == (CHOOSE.version, "scripted", 1, "stop")
    assert line["prompt"] > 0
    assert line["completion"] > 0
    assert "tea" not in str(line)
    assert usage_of(line) == await caller.spent(SCOPE)


async def test_a_call_that_fails_is_in_the_ledger_too() -> None:
    caller, _ = asks(ModelRefused("no"), lane="choose")
    with pytest.raises(ModelRefused):
        await caller.ask(SCOPE, CHOOSE, ASKED)
    assert [(line["outcome"], line["calls"]) for line in await ledger(caller)] == [("ModelRefused", 1)]


async def test_a_stream_that_is_left_is_in_the_ledger_as_cancelled() -> None:
    caller, _ = asks("a long answer indeed", lane="chat")
    stream = caller.stream(SCOPE, "reply@1", [Message("user", "hi")], max_tokens=5, lane="chat")
    assert await anext(stream) == "a long "
    await stream.aclose()  # type: ignore[attr-defined]
    assert [line["outcome"] for line in await ledger(caller)] == ["cancelled"]


async def test_a_private_call_leaves_no_line() -> None:
    caller, _ = asks("no", "idea", lane="choose")
    caller.private = True
    with pytest.raises(ModelGarbled):
        await caller.ask(SCOPE, CHOOSE, ASKED)
    await caller.fallback(SCOPE, CHOOSE.version)
    assert await ledger(caller) == []


async def test_a_fallback_costs_nothing() -> None:
    caller, _ = asks(GOOD, lane="choose")
    await caller.fallback(SCOPE, "plan@1")
    assert [(line["job"], line["outcome"], line["calls"]) for line in await ledger(caller)] == [
        ("plan@1", "fallback", 0)
    ]
    assert await caller.spent(SCOPE) == Usage()


async def test_the_whole_answer_is_a_text_with_its_costs() -> None:
    caller, _ = asks("a long answer indeed", lane="chat")
    done = await caller.text(SCOPE, "reply@1", [Message("user", "hi")], max_tokens=5, lane="chat")
    assert (done.text, done.usage.calls) == ("a long answer indeed", 1)


async def test_a_stream_that_ends_without_a_completion_is_empty() -> None:
    class Silent(ScriptedModel):
        async def stream(self, *given: Any, **options: Any) -> Any:
            for piece in ("a", "b"):
                yield piece

    caller, _ = asks(lane="chat")
    caller.model = Silent()
    assert await caller.text(SCOPE, "reply@1", []) == Completion("")


# --- the budget of a day ---


async def spend(caller: Caller, *, calls: int = 0, tokens: int = 0, hours: float = 0.0) -> None:
    body = {"calls": calls, "prompt": tokens, "cached": 0, "completion": tokens}
    await caller.store.log(SCOPE, Event(f"c{hours}", "call", caller.clock.now() - timedelta(hours=hours), (), body))


@pytest.mark.parametrize(
    ("limits", "spent", "free"),
    [
        (DailyBudget(), {"calls": 10_000, "tokens": 10**9}, True),
        (DailyBudget(calls=3), {"calls": 2}, True),
        (DailyBudget(calls=3), {"calls": 3}, False),
        (DailyBudget(calls=3), {"tokens": 10**9}, True),
        (DailyBudget(tokens=100), {"tokens": 49}, True),
        (DailyBudget(tokens=100), {"tokens": 50}, False),
        (DailyBudget(calls=3), {"calls": 3, "hours": 23.9}, False),
        (DailyBudget(calls=3), {"calls": 3, "hours": 24.1}, True),
    ],
)
async def test_the_budget_is_of_the_last_24_hours(limits: DailyBudget, spent: dict[str, Any], free: bool) -> None:
    caller, model = asks(GOOD, lane="choose")
    caller.limits = limits
    await spend(caller, **spent)
    if free:
        assert (await caller.ask(SCOPE, CHOOSE, ASKED))[0].useful == [1]
        return
    with pytest.raises(BudgetSpent, match=r"in 24 hours; the limit is .*: raise (calls|tokens)_per_day"):
        await caller.ask(SCOPE, CHOOSE, ASKED)
    assert not model.requests, "nothing is asked any more"


async def test_a_budget_is_free_again_a_day_later_and_of_each_user() -> None:
    caller, _ = asks(GOOD, lane="choose")
    caller.limits = DailyBudget(calls=1)
    await caller.ask(SCOPE, CHOOSE, ASKED)
    with pytest.raises(BudgetSpent):
        await caller.ask(SCOPE, CHOOSE, ASKED)
    assert await caller.ask(Scope(user="ana"), CHOOSE, ASKED)
    assert isinstance(caller.clock, FixedClock)
    caller.clock.forward(hours=24, seconds=1)
    assert await caller.ask(SCOPE, CHOOSE, ASKED)
