"""How often the store is called: over a network each call is a wait."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from nyima import Assistant, Memory
from nyima.app.opening import parts_for
from nyima.domain.storage import Batched
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from support import answer


class Counted:
    """A store whose calls are written down."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self.inner, name)


def opened(db: Path) -> tuple[Memory, Counted]:
    notes = [answer("I see."), answer("I see."), answer("In Braga."), answer("In Braga.")]
    model = ScriptedModel({"chat": notes, "note": ['{"context": "", "knowledge": "k"}'] * 9})
    parts = parts_for(db, "me", None, model, HashEmbedder(), FixedClock())
    assert isinstance(parts.store, Batched)
    counted = Counted(parts.store.inner)
    return Memory(replace(parts, store=Batched(counted))), counted  # type: ignore[arg-type]


# The graph's rules read the memory statement by statement; the reader of claims takes their place.
async def test_a_reply_a_recall_and_a_job_call_the_store_a_few_times(db: Path) -> None:
    memory, counted = opened(db)
    nyima = Assistant(memory, works=False)
    await nyima.reply("My sister Ana lives in Braga.")
    await nyima.reply("My cat is called Nyima, and I work at Acme.")

    counted.calls.clear()
    await nyima.reply("Where does my sister live?")
    assert len(counted.calls) <= 8, counted.calls
    assert counted.calls.count("append") == 2

    for _ in range(2):  # the vectors of what was just said are made, and nothing is left to do
        await memory.recall("Where does my sister live?")
    counted.calls.clear()
    found = await memory.recall("Where does my sister live?")
    assert found.kept
    assert len(counted.calls) <= 4, counted.calls

    counted.calls.clear()
    job = await memory.ingest.work(memory.scope, "w", ("note",))
    assert job is not None
    assert job.state == "done"
    assert len(counted.calls) <= 6, counted.calls
    await nyima.close()


async def test_what_another_process_wrote_is_found_by_the_second_recall_at_the_latest(db: Path) -> None:
    memory, _ = opened(db)
    await memory.remember("My cat is called Nyima.")
    await memory.recall("cat")
    async with Memory.open(db, embedder=HashEmbedder()) as other:
        await other.remember("My dog is called Rex.")
    await memory.recall("dog")
    found = await memory.recall("dog")
    assert any("vector" in e.scores for e in found.kept if "Rex" in e.text)
    await memory.close()
