"""Vectors: the question once, the records that have none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from made import note, put
from nyima.domain.ports import Vector
from nyima.errors import EmbedderMismatch, ModelUnreachable
from nyima.memory import Memory
from nyima.read.embedding import QueryEmbedder, index_pending
from nyima.testing import HashEmbedder


class Broken(HashEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.calls += 1
        raise ModelUnreachable("no answer")


async def test_a_question_is_embedded_once_however_many_ask() -> None:
    embedder = HashEmbedder()
    query = QueryEmbedder(embedder)
    found = await asyncio.gather(*(query("the cat") for _ in range(9)))
    assert len(set(found)) == 1
    assert found[0] == (await HashEmbedder().embed(["the cat"]))[0]
    assert embedder.calls == 1


async def test_other_words_have_another_vector() -> None:
    query = QueryEmbedder(HashEmbedder())
    assert await query("the cat") != await query("the dog")


async def test_without_an_embedder_there_is_no_vector_and_no_failure() -> None:
    query = QueryEmbedder(None)
    assert await query("the cat") is None
    assert query.failed == ""


async def test_an_embedder_that_failed_is_not_asked_again_and_says_why() -> None:
    embedder = Broken()
    query = QueryEmbedder(embedder)
    assert [await query(text) for text in ("the cat", "the dog")] == [None, None]
    assert (embedder.calls, query.failed) == (1, "no answer")


async def test_what_has_no_vector_gets_one_in_batches(memory: Memory) -> None:
    await put(memory, *(note(f"n{i:03}", f"text {i}") for i in range(150)))
    embedder = HashEmbedder()
    assert await index_pending(memory.store, embedder, memory.scope) == 150
    assert embedder.calls == 3
    assert await index_pending(memory.store, embedder, memory.scope) == 0
    assert embedder.calls == 3


async def test_as_many_as_asked_for_are_made_and_no_batch_is_begun_beyond(memory: Memory) -> None:
    await put(memory, *(note(f"n{i:03}", f"text {i}") for i in range(150)))
    assert await index_pending(memory.store, HashEmbedder(), memory.scope, 1) == 64
    assert await index_pending(memory.store, HashEmbedder(), memory.scope, 0) == 0
    assert await index_pending(memory.store, HashEmbedder(), memory.scope) == 86


async def test_vectors_of_two_models_are_never_mixed(memory: Memory) -> None:
    await put(memory, note("a", "one"))
    await index_pending(memory.store, HashEmbedder(), memory.scope)
    await put(memory, note("b", "two"))
    other = HashEmbedder("other")
    with pytest.raises(EmbedderMismatch, match="'hash-64', not of 'other'.*nyima reindex --vectors"):
        await index_pending(memory.store, other, memory.scope)
    assert other.calls == 0, "nothing was embedded in vain"


async def test_an_embedder_that_fails_leaves_what_it_made(memory: Memory) -> None:
    await put(memory, note("a", "one"))
    with pytest.raises(ModelUnreachable):
        await index_pending(memory.store, Broken(), memory.scope)
    assert await index_pending(memory.store, HashEmbedder(), memory.scope) == 1
