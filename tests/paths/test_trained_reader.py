"""A local model that was trained to read claims reads each message in a call of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from nyima import Memory
from nyima.domain.conversation import Role
from nyima.domain.ports import READS_CLAIMS
from nyima.domain.records import Status
from nyima.memory import Said
from nyima.read.prompting import CALL_OR_TEXT
from nyima.testing import FixedClock, HashEmbedder, Request, ScriptedModel
from support import Agrees, companion

TRAINED = frozenset({READS_CLAIMS})


def reader(*answers: str, **lanes: list[str]) -> ScriptedModel:
    return ScriptedModel({READS_CLAIMS: [*answers], **lanes}, trained=TRAINED)


async def test_a_turn_is_read_after_the_reply_whose_prompt_is_short(tmp_path: Path) -> None:
    model = reader("user | lives in | Porto | holds\nover: none", chat=["Nice!"])
    async with companion(tmp_path / "n.db", model) as chat:
        await chat.reply("I have just moved to Porto.")
        assert await chat.memory.unread() == 1
        await chat.memory.drain()
        (claim,) = await chat.memory.claims()
        assert (claim.text, claim.quote is not None) == ("user lives in: Porto", True)
        assert await chat.memory.unread() == 0
        assert (await chat.reply("Where do I live?")).text == "Nice!"
    for request in model.asked("chat"):
        assert request.grammar is None
        assert not any(word in request.system for word in ("outdated", "claims"))
        assert "[known]" not in request.last


async def test_each_turn_is_read_alone_with_the_question_before_it(tmp_path: Path) -> None:
    model = reader("user | dog | Bo | holds\nover: none", "over: none", "over: none")
    async with Memory.open(tmp_path / "n.db", model=model, embedder="none", clock=FixedClock()) as memory:
        await memory.remember(
            [Said("Hello there!"), Said("What is your dog called?", Role.ASSISTANT), Said("He's Bo.")]
        )
        await memory.drain()
    asked = [request.last for request in model.asked(READS_CLAIMS)]
    assert sorted(a.partition("Before: ")[2] for a in asked) == [
        "-\nMessage: Hello there!", "Hello there! What is your dog called?\nMessage: He's Bo.",
    ]  # fmt: skip


async def test_what_the_reader_numbers_is_closed_when_a_second_look_agrees(tmp_path: Path) -> None:
    def moved(request: Request) -> str:
        shown = request.last.splitlines()
        number = next(line.partition(".")[0] for line in shown if line.endswith("lives in: Leeds"))
        return f"user | lives in | Manchester | holds\nover: {number}"

    model = ScriptedModel({READS_CLAIMS: [moved]}, trained=TRAINED)
    async with Memory.open(
        tmp_path / "n.db", model=model, embedder=HashEmbedder(), clock=FixedClock(), verifier=Agrees()
    ) as memory:
        await memory.set("lives in", "Leeds")
        await memory.set("works as", "a nurse")
        await memory.remember([Said("That's us out of Leeds. Unpacking in Manchester!")])
        await memory.drain()
        held = {c.text for c in await memory.claims() if c.status is Status.HOLDS}
    assert held == {"user lives in: Manchester", "user works as: a nurse"}


@pytest.mark.parametrize(
    "answer", ["", "I'd rather not say.", "{}", "over: 7", "user | lives in | Rome | holds\nover: 1"]
)
async def test_an_answer_that_nobody_can_use_changes_nothing(tmp_path: Path, answer: str) -> None:
    """It is no answer, numbers what was not shown, or states what the message does not say."""
    async with Memory.open(
        tmp_path / "n.db", model=reader(answer), embedder="none", clock=FixedClock(), verifier=Agrees()
    ) as memory:
        await memory.set("lives in", "Leeds")
        await memory.remember([Said("What a day it was in the end, I tell you.")])
        await memory.drain()
        assert [c.text for c in await memory.claims()] == ["user lives in: Leeds"]
        assert await memory.unread() == 0
        assert len(await memory.turns()) == 1


async def test_the_reader_is_shown_a_claim_that_has_no_vector_yet(tmp_path: Path) -> None:
    """The vector is made before claims are looked for: message and claim share no word."""
    model = reader("over: none")
    async with Memory.open(tmp_path / "n.db", model=model, embedder=HashEmbedder(), clock=FixedClock()) as memory:
        await memory.set("lives in", "Leeds")
        await memory.remember([Said("Boxes everywhere!")])
        await memory.drain()
    assert "1. user lives in: Leeds" in model.asked(READS_CLAIMS)[-1].last


async def test_what_was_stated_by_hand_can_be_doubted_told_again_and_outlives_the_message(tmp_path: Path) -> None:
    """It has no turn to rest on: the job of the doubt was put back for ever."""
    model = reader("user | town | Bath | holds\nover: 1", "user | lives in | Leeds | holds\nover: none")
    async with Memory.open(tmp_path / "n.db", model=model, embedder=HashEmbedder(), clock=FixedClock()) as memory:
        await memory.set("lives in", "Leeds")
        doubt = await memory.remember([Said("The town I see most is Bath.")])
        assert (await memory.drain())["done"] > 0
        assert [c.stale for c in await memory.claims() if c.value == "Leeds"] == [True]
        again = await memory.remember([Said("I live in Leeds, to be plain.")])
        await memory.drain()
        assert [c.stale for c in await memory.claims() if c.value == "Leeds"] == [False]
        await memory.forget(*doubt.records, *again.records)
        assert (await memory.turns(), [c.text for c in await memory.claims()]) == ([], ["user lives in: Leeds"])


@pytest.mark.parametrize(("again", "labels"), [("over: 1", {}), ("over: none", {"Leeds": True, "Bath": True})])
async def test_the_reader_reads_again_what_it_called_over(tmp_path: Path, again: str, labels: dict[str, bool]) -> None:
    """Twice over: closed. Once: both stand, labelled."""

    def read(request: Request) -> str:
        shown = [line for line in request.last.splitlines() if line[:1].isdigit()]
        if len(shown) == 1:
            assert shown == ["1. user lives in: Leeds"]
            return again
        number = next(line[0] for line in shown if line.endswith("Leeds"))
        return f"user | lives in | Bath | holds\nover: {number}"

    model = ScriptedModel({READS_CLAIMS: [read]}, trained=TRAINED)
    async with Memory.open(tmp_path / "n.db", model=model, embedder=HashEmbedder(), clock=FixedClock()) as memory:
        await memory.set("lives in", "Leeds")
        await memory.set("cat", "Luna")
        await memory.remember([Said("Bath it is, Leeds is behind us.")])
        await memory.drain()
        held = {c.value: c.stale for c in await memory.claims()}
    assert held == {"Luna": False, **(labels or {"Bath": False})}
    assert len(model.asked(READS_CLAIMS)) == 2


async def test_what_is_not_called_over_is_not_read_again(tmp_path: Path) -> None:
    model = reader("user | has | a bike | holds\nover: none")
    async with Memory.open(tmp_path / "n.db", model=model, embedder=HashEmbedder(), clock=FixedClock()) as memory:
        await memory.set("lives in", "Leeds")
        await memory.remember([Said("I have a bike now.")])
        await memory.drain()
    assert len(model.asked(READS_CLAIMS)) == 1


async def test_a_tool_can_be_asked_for_in_a_reply_without_notes(tmp_path: Path) -> None:
    def double(number: str) -> str:
        """Twice a number."""
        return str(2 * int(number))

    model = reader("over: none", chat=['{"call": "double", "input": {"number": "21"}}', "It is 42."])
    async with companion(tmp_path / "n.db", model, tools=[double]) as chat:
        assert (await chat.reply("What is twice 21?")).text == "It is 42."
    first, second = model.asked("chat")
    assert "double" in first.system
    assert first.grammar == second.grammar == CALL_OR_TEXT
    assert second.last == "[tool result] 42"


async def test_a_number_beside_which_nothing_is_stated_casts_no_doubt(tmp_path: Path) -> None:
    model = reader("over: 1", "over: none")
    async with Memory.open(tmp_path / "n.db", model=model, embedder=HashEmbedder(), clock=FixedClock()) as memory:
        await memory.set("lives in", "Leeds")
        await memory.remember([Said("Where do I live now, I wonder.")])
        await memory.drain()
        assert [c.stale for c in await memory.claims()] == [False]
