"""Retrievers: from hits to evidence."""

from __future__ import annotations

from datetime import timedelta

import pytest

from made import T0, episode, note, passage, put
from nyima.domain.evidence import Evidence, Query, Step
from nyima.domain.ports import Vector
from nyima.domain.recipe import Weights
from nyima.memory import Memory
from nyima.read.search import SearchRetriever, spoken
from nyima.testing import HashEmbedder

LINES = (("user", "I have a cat."), ("assistant", "How sweet!"), ("user", "She is grey."))


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        (0, "[U] and now?"),
        (1, "[U] She is grey. [U] and now?"),
        (2, "[A] How sweet! [U] She is grey. [U] and now?"),
        (9, "[U] I have a cat. [A] How sweet! [U] She is grey. [U] and now?"),
    ],
)
def test_a_query_is_spoken_with_marks_for_who_says_it(turns: int, said: str) -> None:
    assert spoken(Query("and now?", T0, dialogue=LINES), turns) == said


async def search(memory: Memory, words: str, how: str = "words", k: int = 9, **more: object) -> list[Evidence]:
    embedder = HashEmbedder()

    async def embed(text: str) -> Vector | None:
        return (await embedder.embed([text]))[0]

    kinds, weights = more.pop("kinds", ("episode",)), more.pop("weights", Weights())
    made = SearchRetriever(memory.store, embed, kinds, how, weights, **{n: more.pop(n) for n in ("turns", "region") if n in more})  # type: ignore[arg-type]  # fmt: skip
    query = Query(words, memory.clock.now(), **more)  # type: ignore[arg-type]
    return await made.retrieve(memory.scope, Step("history", query, k))


PLAIN = Weights(near=(), session=0.0)


async def test_scores_lie_between_nought_and_one_and_go_down(memory: Memory) -> None:
    await put(memory, *(episode(f"e{i}", f"cat {'and dog ' * i}", position=i) for i in range(6)))
    await memory.ingest.index(memory.scope)
    for how in ("words", "vector", "hybrid", "reciprocal"):
        found = await search(memory, "cat dog", how)
        assert found, how
        scores = [e.score for e in found]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= s <= 1 for s in scores)
        assert {e.source for e in found} == {"history"}


async def test_a_source_without_anything_to_the_point_scores_low(memory: Memory) -> None:
    await put(memory, episode("e", "The bus to Porto leaves at nine and the cat sleeps."))
    (whole,) = await search(memory, "bus to Porto", weights=PLAIN)
    (part,) = await search(memory, "bus between Lisbon, Faro, Évora, Braga", weights=PLAIN)
    assert whole.score == pytest.approx(0.8)
    assert part.score < whole.score / 2


async def test_words_alone_ask_for_no_vector_and_vectors_for_no_words(memory: Memory) -> None:
    await put(memory, episode("e", "cat"))
    assert [e.scores.keys() for e in await search(memory, "cat", "words", weights=PLAIN)] == [{"words"}]
    assert await search(memory, "cat", "vector", weights=PLAIN) == [], "it has no vector yet"
    await memory.ingest.index(memory.scope)
    assert [e.scores.keys() for e in await search(memory, "cat", "vector", weights=PLAIN)] == [{"vector"}]
    assert [e.scores.keys() for e in await search(memory, "cat", "hybrid", weights=PLAIN)] == [{"words", "vector"}]


async def test_the_neighbours_of_a_hit_are_found_as_what_was_said_there(memory: Memory) -> None:
    lines = ["hello", "where is my passport?", "in the drawer", "thanks", "bye", "well"]
    await put(memory, *(episode(f"e{i}", line, position=i) for i, line in enumerate(lines)))
    found = await search(memory, "passport", weights=Weights(near=(0.3,), session=0.0))
    assert [e.record_id for e in found] == ["e1", "e0", "e2"]
    assert "near" in found[1].scores


async def test_a_place_where_nothing_was_said_brings_nothing(memory: Memory) -> None:
    await put(memory, episode("e", "my passport", position=5))
    assert [e.record_id for e in await search(memory, "passport")] == ["e"]


async def test_it_brings_no_more_than_asked_for(memory: Memory) -> None:
    await put(memory, *(note(f"n{i}", f"cat {i}") for i in range(9)))
    assert len(await search(memory, "cat", k=4, kinds=("note",))) == 4
    assert await search(memory, "zebra", k=4, kinds=("note",)) == []


async def test_it_looks_in_its_region_else_where_the_query_says(memory: Memory) -> None:
    await put(memory, passage("a", "clean the filter", "m.pdf"), passage("b", "clean the filter now", "n.pdf"))
    kinds = ("passage",)
    assert len(await search(memory, "filter", kinds=kinds)) == 2
    assert [e.record_id for e in await search(memory, "filter", kinds=kinds, region="n.pdf")] == ["b"]
    assert [e.record_id for e in await search(memory, "filter", kinds=kinds, within=("m.pdf",))] == ["a"]
    both = await search(memory, "filter", kinds=kinds, region="n.pdf", within=("m.pdf",))
    assert [e.record_id for e in both] == ["b"]


async def test_the_running_session_is_left_to_the_reader(memory: Memory) -> None:
    await put(memory, episode("now", "my cat", session="s9"), episode("old", "the cat", session="s1"))
    assert [e.record_id for e in await search(memory, "cat", session="s9")] == ["old"]


async def test_the_lines_before_are_searched_with_where_a_source_reads_them(memory: Memory) -> None:
    await put(memory, note("n", "the cat is grey"))
    asked = {"kinds": ("note",), "dialogue": (("user", "my cat"), ("user", "hm"))}
    assert await search(memory, "colour?", **asked) == []  # type: ignore[arg-type]
    assert await search(memory, "colour?", turns=1, **asked) == []  # type: ignore[arg-type]
    assert len(await search(memory, "colour?", turns=2, **asked)) == 1  # type: ignore[arg-type]


async def test_a_piece_stands_at_the_time_at_which_it_became_true(memory: Memory) -> None:
    await put(memory, note("n", "cat", at=T0 - timedelta(days=3)))
    assert [e.at for e in await search(memory, "cat", kinds=("note",))] == [T0 - timedelta(days=3)]
