"""Planners: which sources are asked."""

from __future__ import annotations

import pytest

from made import SCOPE, T0, asks, passage, put
from nyima.domain.evidence import Query
from nyima.domain.roles import Planned
from nyima.errors import ModelUnreachable
from nyima.memory import Memory
from nyima.read.plan import AllPlanner, ModelPlanner, RulePlanner, sources_there
from nyima.read.sources import SourceChoice

SOURCES = (
    SourceChoice("documents", 3, ("profile",), "manuals", ("passage",)),
    SourceChoice("history", 4, (), "what was said", ("episode",)),
    SourceChoice("profile", 2, (), "lasting facts", ("claim",)),
    SourceChoice("persona", 1, (), "who the assistant is", ("passage",)),
)


def names(planned: Planned) -> list[str]:
    return [step.source for step in planned.steps]


async def test_all_are_asked_each_after_what_it_depends_on() -> None:
    planned = await AllPlanner(SOURCES).plan(SCOPE, Query("hello", T0))
    assert names(planned) == ["history", "profile", "documents", "persona"]
    assert [(s.k, s.after) for s in planned.steps][2] == (3, ("profile",))
    assert (planned.by, planned.prompt) == ("all", "")


async def test_documents_are_asked_only_when_there_are_any(memory: Memory) -> None:
    planner = AllPlanner(SOURCES, memory.store)
    query = Query("filter", memory.clock.now())
    assert "documents" not in names(await planner.plan(memory.scope, query))
    await put(memory, passage("p", "Rinse the filter."))
    assert "documents" in names(await planner.plan(memory.scope, query))


async def test_a_document_that_is_gone_is_not_asked_for(memory: Memory) -> None:
    await put(memory, passage("p", "Rinse the filter."))
    await memory.forget("p")
    assert "documents" not in await sources_there(memory.store, memory.scope, Query("x", memory.clock.now()), SOURCES)


@pytest.mark.parametrize(
    ("kinds", "wanted"),
    [((), 4), (("claim",), 1), (("passage",), 2), (("episode", "claim"), 2), (("entity",), 0)],
)
async def test_only_sources_of_the_wanted_kinds_can_hold_something(kinds: tuple[str, ...], wanted: int) -> None:
    assert len(await sources_there(None, SCOPE, Query("x", T0, kinds=kinds), SOURCES)) == wanted


@pytest.mark.parametrize("text", ["hello!", "thanks a lot", "2 + 2", "bye"])
async def test_the_rules_ask_nothing_for_small_talk(text: str) -> None:
    assert await RulePlanner(SOURCES).plan(SCOPE, Query(text, T0)) == Planned((), "rules")


async def test_an_answer_to_a_question_is_asked_for() -> None:
    planner = RulePlanner(SOURCES)
    after_question = Query("yes please", T0, dialogue=(("assistant", "Shall I look in the manual?"),))
    after_own_words = Query("yes please", T0, dialogue=(("user", "Shall I look in the manual?"),))
    assert names(await planner.plan(SCOPE, after_question))
    assert not names(await planner.plan(SCOPE, after_own_words))


async def test_the_persona_is_asked_when_the_message_is_about_the_assistant() -> None:
    planner = RulePlanner(SOURCES)
    assert "persona" not in names(await planner.plan(SCOPE, Query("Where did I park the car?", T0)))
    assert "persona" in names(await planner.plan(SCOPE, Query("What is your favourite colour?", T0)))


def planner(*answers: object) -> ModelPlanner:
    caller, _ = asks(*answers, lane="plan")
    return ModelPlanner(caller, SOURCES, RulePlanner(SOURCES))


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ([], []),
        (["history"], ["history"]),
        (["persona", "history", "history"], ["history", "persona"]),
        ([" HISTORY ", "Profile"], ["history", "profile"]),
        (["documents"], ["profile", "documents"]),
        (["web", "history; drop"], []),
    ],
)
async def test_the_model_chooses_among_what_exists(answer: list[str], wanted: list[str]) -> None:
    planned = await planner({"sources": answer}).plan(SCOPE, Query("What about the car?", T0))
    assert names(planned) == wanted
    assert planned.by == "model"
    assert planned.prompt.startswith("plan@")


async def test_a_model_that_cannot_be_read_leaves_it_to_the_rules_and_is_named() -> None:
    made = planner("what?", "no idea")
    planned = await made.plan(SCOPE, Query("What about the car?", T0))
    assert names(planned) == ["history", "profile", "documents"]
    assert (planned.by, planned.prompt.partition("@")[0]) == ("rules", "plan")
    calls = await made.caller.store.events(SCOPE, "call")
    assert [e.body["outcome"] for e in calls].count("fallback") == 1


async def test_a_model_that_is_not_there_is_no_reason_to_guess() -> None:
    with pytest.raises(ModelUnreachable):
        await planner(ModelUnreachable("gone")).plan(SCOPE, Query("What about the car?", T0))


async def test_no_source_of_the_wanted_kind_needs_no_call() -> None:
    caller, model = asks({"sources": ["history"]}, lane="plan")
    made = ModelPlanner(caller, SOURCES, RulePlanner(SOURCES))
    assert await made.plan(SCOPE, Query("x", T0, kinds=("entity",))) == Planned((), "model")
    assert not model.requests


async def test_the_model_sees_what_a_source_holds_and_needs_and_the_last_lines() -> None:
    caller, model = asks({"sources": []}, lane="plan")
    lines = tuple(("user", f"line number {i}") for i in range(6))
    await ModelPlanner(caller, SOURCES, RulePlanner(SOURCES), turns=2).plan(
        SCOPE, Query("And now?", T0, dialogue=lines)
    )
    (asked,) = model.requests
    assert "documents: manuals (needs profile)" in asked.last
    assert "line number 4" in asked.last
    assert "line number 3" not in asked.last
