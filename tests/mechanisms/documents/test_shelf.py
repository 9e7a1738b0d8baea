"""The documents of a memory, and what its sources hold."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nyima.domain.conversation import Origin
from nyima.domain.documents import Document, Part
from nyima.domain.mechanism import Source
from nyima.domain.ports import Vector
from nyima.errors import ModelUnreachable, NotFound
from nyima.mechanisms.documents.shelf import (
    add_document,
    described_sources,
    held_documents,
    index_documents,
    remove_documents,
)
from nyima.memory import Memory
from nyima.testing import FixedClock, HashEmbedder

MANUAL = Document("m.md", (Part("Filter", "Rinse it weekly."), Part("Belt", "Never oil it.")), "page 3 cannot be read")


async def test_what_is_added_is_quoted_with_its_place_and_its_note(memory: Memory) -> None:
    added = await add_document(memory, MANUAL)
    assert (added.name, added.passages, added.state, added.note) == ("m.md", 2, "added", "page 3 cannot be read")
    found = await memory.records(kinds=("passage",))
    assert {(r.region, r.text) for r in found} == {("m.md", "Rinse it weekly."), ("m.md", "Never oil it.")}
    assert {r.provenance.origin for r in found} == {Origin.DOCUMENT}


async def test_a_document_is_known_by_its_name_alone(memory: Memory) -> None:
    await add_document(memory, MANUAL)
    await add_document(memory, Document("n.md", MANUAL.parts))
    await add_document(memory, Document("n.md", MANUAL.parts[:1]))
    assert [(h.name, h.passages, h.words) for h in await held_documents(memory)] == [("m.md", 2, 6), ("n.md", 1, 3)]


async def test_a_passage_that_moved_is_another_one_and_the_others_stay(memory: Memory, clock: FixedClock) -> None:
    await add_document(memory, MANUAL)
    before = {r.text: r.id for r in await memory.records(kinds=("passage",))}
    clock.forward(days=1)
    await add_document(memory, Document("m.md", (MANUAL.parts[0], Part("Straps", "Never oil it."))))
    after = {r.text: r.id for r in await memory.records(kinds=("passage",))}
    assert after["Rinse it weekly."] == before["Rinse it weekly."]
    assert after["Never oil it."] != before["Never oil it."]


async def test_bytes_that_cannot_be_stored_are_marked(memory: Memory) -> None:
    added = await add_document(memory, Document("a\x00.md", (Part("p\x00", "x\x00y"),)))
    (record,) = await memory.records(kinds=("passage",))
    assert (added.name, record.region, record.text) == ("a\ufffd.md", "a\ufffd.md", "x\ufffdy")
    assert (await add_document(memory, Document("a\x00.md", (Part("p\x00", "x\x00y"),)))).state == "unchanged"


async def test_of_several_names_one_that_is_not_there_removes_none(memory: Memory, clock: FixedClock) -> None:
    await add_document(memory, MANUAL)
    with pytest.raises(NotFound, match="no document 'gone'"):
        await remove_documents(memory, ["m.md", "gone"])
    assert len(await held_documents(memory)) == 1
    clock.forward(days=1)
    await add_document(memory, Document("m.md", MANUAL.parts[:1]))
    assert (await remove_documents(memory, ["m.md", "m.md"])).erased == {"passage": 2}, "what was replaced goes too"
    assert await memory.records(kinds=("passage",), retired=True) == []


async def test_vectors_are_made_a_batch_at_a_time(memory: Memory) -> None:
    await add_document(memory, Document("d", tuple(Part(f"p. {i}", f"page number {i}") for i in range(100))))
    told: list[int] = []
    assert await index_documents(memory, told.append) == 100
    assert told == [64, 100]
    assert await index_documents(memory, told.append) == 0


async def test_an_embedder_that_fails_leaves_the_search_by_words(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(self: HashEmbedder, texts: Sequence[str]) -> list[Vector]:
        raise ModelUnreachable("gone")

    await add_document(memory, MANUAL)
    monkeypatch.setattr(HashEmbedder, "embed", fails)
    assert await index_documents(memory) == 0
    found = await memory.recall("rinse the filter weekly")
    assert [e.text for e in found.kept] == ["Rinse it weekly."]
    assert found.failed["vectors"] == "gone"


async def test_sources_come_in_the_order_in_which_they_can_be_asked(memory: Memory) -> None:
    memory.use(Source("prices", "what things cost", lambda question: None, ("documents",)))
    await add_document(memory, MANUAL)
    rows = await described_sources(memory)
    names = [row["name"] for row in rows]
    assert all(need in names[: names.index(row["name"])] for row in rows for need in row["after"])
    by_name = {row["name"]: row for row in rows}
    assert (by_name["documents"]["size"], by_name["prices"]["size"], by_name["history"]["size"]) == (2, None, 0)
    assert by_name["persona"]["size"] == len([line for line in memory.persona.splitlines() if line.strip()])
