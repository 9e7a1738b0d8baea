"""Partitions, by words and by vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from made import put, relation
from nyima.language.relations import SUBCLASSES, Subclass
from nyima.write.partitions import Partitions, floats
from nyima.memory import Memory
from nyima.testing import HashEmbedder

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
    await put(memory, relation("r", "user", "pet", "x", "The user has a parrot.", subclass="Pets"))
    await memory.ingest.index(memory.scope)
    (own,) = [floats(v) for v in await HashEmbedder().embed(["The user has a parrot."])]
    made = places(memory, HashEmbedder())
    prior = (await made.prior())["Pets"]
    found = await made.centres()
    assert found["Pets"] == pytest.approx(prior / 3 + own * 2 / 3, abs=1e-6)
    assert found["Trips"] == pytest.approx((await made.prior())["Trips"])


async def test_a_relation_that_tells_decides_else_the_nearest_centre_else_words(memory: Memory) -> None:
    near, blind = places(memory, HashEmbedder()), places(memory, None)
    assert await near.of("birthday", "cat cat") == "Birthday/Age"
    assert await near.of("xyz", "the dog dog") == "Pets"
    assert await near.of("like", "train") == "Trips", "what is liked depends on what it is"
    assert await blind.of("xyz", "the plane was late") == "Trips"
    assert await blind.prior() == {}


async def test_a_text_is_embedded_once(memory: Memory) -> None:
    embedder = HashEmbedder()
    made = places(memory, embedder, SUBCLASSES)
    await made.of("xyz", "a plane")
    calls = embedder.calls
    await made.nearest("a plane", None, 3)
    assert embedder.calls == calls


async def test_words_find_what_vectors_do_not(graph: Memory) -> None:
    blind = places(graph, None)
    assert [r.text for r in await blind.nearest("Skoda", None, 5)] == ["The user drives a Skoda."]
    assert await blind.nearest("Skoda", "Address", 5) == []
    assert await blind.nearest("zebra", None, 5) == []
    (old,) = await blind.nearest("Skoda", None, 5)
    await graph.retire(old.id)
    assert await places(graph, None).nearest("Skoda", None, 5) == []
