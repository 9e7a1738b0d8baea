"""Partitions, by words and by vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from made import edge, put
from nyima.language.subclasses import SUBCLASSES, Subclass
from nyima.memory import Memory
from nyima.testing import HashEmbedder
from nyima.write.partitions import Partitions, floats

PETS = (Subclass("Attribute", "Pets", ("cat cat", "dog dog")), Subclass("Event", "Trips", ("train", "plane")))


def places(memory: Memory, embedder: HashEmbedder | None, subclasses: Sequence[Subclass] = PETS) -> Partitions:
    embed = embedder.embed if embedder else None
    return Partitions(memory.store, memory.scope, memory.clock.now(), embed, tuple(subclasses))


def test_a_packed_vector_is_its_numbers() -> None:
    assert floats(np.asarray([0.5, -1.0], "<f4").tobytes()).tolist() == [0.5, -1.0]


async def test_before_anything_was_remembered_a_centre_is_the_mean_of_its_examples(memory: Memory) -> None:
    embedder = HashEmbedder()
    made = places(memory, embedder)
    centres = await made.centres()
    cat, dog = (floats(v) for v in await HashEmbedder().embed(["cat cat", "dog dog"]))
    assert centres["Pets"] == pytest.approx((cat + dog) / 2)
    await made.centres()
    assert embedder.calls == 1, "the examples are embedded once"


async def test_memories_count_twice_as_much_as_examples(memory: Memory) -> None:
    await put(memory, edge("r", "user", "pet", "x", "a parrot", subclass="Pets"))
    await memory.ingest.index(memory.scope)
    (own,) = [floats(v) for v in await HashEmbedder().embed(["user pet: a parrot"])]
    made = places(memory, HashEmbedder())
    prior = (await made.prior())["Pets"]
    found = await made.centres()
    assert found["Pets"] == pytest.approx(prior / 3 + own * 2 / 3, abs=1e-6)
    assert found["Trips"] == pytest.approx((await made.prior())["Trips"])


async def test_the_nearest_centre_decides_or_words(memory: Memory) -> None:
    near, blind = places(memory, HashEmbedder()), places(memory, None)
    assert await near.of("the dog dog") == "Pets"
    assert await near.of("train") == "Trips"
    assert await blind.of("the plane was late") == "Trips"
    assert await blind.of("something else") == ""
    assert await blind.prior() == {}


async def test_a_text_is_embedded_once(memory: Memory) -> None:
    embedder = HashEmbedder()
    made = places(memory, embedder, SUBCLASSES)
    await made.of("a plane")
    calls = embedder.calls
    await made.nearest("a plane", None, 3)
    assert embedder.calls == calls


async def test_words_find_what_vectors_do_not(graph: Memory) -> None:
    blind = places(graph, None)
    assert [r.text for r in await blind.nearest("Skoda", None, 5)] == ["user drives: Skoda"]
    assert await blind.nearest("Skoda", "Address", 5) == []
    assert await blind.nearest("zebra", None, 5) == []
    (old,) = await blind.nearest("Skoda", None, 5)
    await graph.retire(old.id)
    assert await places(graph, None).nearest("Skoda", None, 5) == []
