"""The doubles do what they promise to anybody's tests."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.domain.ports import Completion, Message
from nyima.errors import ModelUnreachable
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel

texts = st.text(st.characters(codec="utf-8"), max_size=60)
ASK = [Message("system", "be brief"), Message("user", "hello there")]


async def floats(text: str, size: int = 64) -> tuple[float, ...]:
    (vector,) = await HashEmbedder(size=size).embed([text])
    return struct.unpack(f"<{size}f", vector)


@given(texts, st.sampled_from([1, 8, 64, 256]))
async def test_a_vector_has_its_size_and_unit_length_or_is_nothing(text: str, size: int) -> None:
    found = await floats(text, size)
    length = math.sqrt(sum(v * v for v in found))
    assert length == pytest.approx(1.0, abs=1e-5) or length == 0.0


@pytest.mark.parametrize("word", ["bun", "cub", "dun"])
async def test_every_word_has_a_unit_vector(word: str) -> None:
    assert sum(v * v for v in await floats(word)) == pytest.approx(1.0)


@given(texts)
async def test_equal_texts_have_equal_vectors_whatever_stands_beside_them(text: str) -> None:
    first, second = HashEmbedder(), HashEmbedder()
    assert (await first.embed(["other", text]))[1] == (await second.embed([text]))[0]
    assert (first.calls, second.calls) == (1, 1)


@pytest.mark.parametrize("text", ["", "!", "the and of", "猫"])
async def test_a_text_without_words_has_a_vector_of_its_own(text: str) -> None:
    assert sum(v * v for v in await floats(text)) == pytest.approx(1.0)


async def test_texts_that_share_words_are_nearer() -> None:
    async def near(one: str, other: str) -> float:
        return sum(a * b for a, b in zip(await floats(one), await floats(other), strict=True))

    assert (
        await near("my cat is called Luna", "Luna the cat")
        > await near("my cat is called Luna", "train to Porto") + 0.3
    )
    assert await near("my cat is called Luna", "my CAT is called luna!") == pytest.approx(1.0)


def test_a_clock_stands_still_until_it_is_told() -> None:
    clock = FixedClock()
    assert clock.now() == clock.now() == datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert clock.forward(days=1, minutes=2) == clock.now() == datetime(2026, 3, 3, 9, 2, tzinfo=UTC)
    assert FixedClock().now() == clock.now() - timedelta(days=1, minutes=2), "each has a time of its own"


async def said(model: ScriptedModel, lane: str = "chat") -> list[str | Completion]:
    return [p async for p in model.stream(ASK, max_tokens=1, lane=lane)]


@given(texts, st.integers(1, 9))
async def test_a_script_comes_in_pieces_and_then_whole(text: str, size: int) -> None:
    found = await said(ScriptedModel({"chat": [text]}, piece=size))
    pieces, done = [p for p in found if isinstance(p, str)], found[-1]
    assert isinstance(done, Completion)
    assert "".join(pieces) == done.text == text
    assert all(len(p) == size for p in pieces[:-1])
    assert (done.finish, done.usage.calls) == ("stop", 1)


async def test_the_last_entry_of_a_lane_is_repeated_and_lanes_are_apart() -> None:
    model = ScriptedModel({"chat": ["a", "b"], "note": ["n"]})
    answers = [(await said(model, lane))[-1] for lane in ("chat", "note", "chat", "chat", "note", "else")]
    assert [a.text for a in answers if isinstance(a, Completion)] == ["a", "n", "b", "b", "n", "{}"]
    assert [len(model.asked(lane)) for lane in ("chat", "note", "else")] == [3, 2, 1]


async def test_an_entry_may_raise_or_answer_what_was_asked() -> None:
    model = ScriptedModel({"chat": [ModelUnreachable("away"), lambda request: f"{request.system}, {request.last}!"]})
    with pytest.raises(ModelUnreachable):
        await said(model)
    done = (await said(model))[-1]
    assert isinstance(done, Completion)
    assert done.text == "be brief, hello there!"
    assert len(model.requests) == 2, "what failed was asked, too"
    assert not model.closed
    await model.close()
    assert model.closed
