"""Defects that were found by reading, each with what a user would have lost."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from nyima import Assistant
from nyima.domain.conversation import Role
from nyima.domain.ports import Event, RecordFilter
from nyima.domain.storage import Batched
from nyima.errors import ModelGarbled, ModelUnreachable, NotFound
from nyima.memory import Memory, Said
from nyima.stores.sqlite.store import SqliteStore
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from nyima.testing.contract import T0
from support import NOTE, answer, companion


async def test_a_writer_in_flight_does_not_bring_back_what_was_forgotten(db: Path) -> None:
    model = ScriptedModel({"chat": [answer("I see.", remember=True)]})
    async with companion(db, model) as nyima:
        await nyima.reply("I have a secret parrot called Zorblax.")
        memory = nyima.memory
        (turn, _) = await memory.turns()

        def forgets(request: object) -> str:
            done = asyncio.run_coroutine_threadsafe(memory.forget(f"e-{turn.id}"), loop)
            waiting.append(done)
            return '{"context": "", "knowledge": "The user has a secret parrot called Zorblax.", "facts": {}}'

        loop, waiting = asyncio.get_running_loop(), []  # type: ignore[var-annotated]
        model.script["note"] = [forgets]
        job = asyncio.create_task(memory.drain())
        await asyncio.sleep(0.05)
        await job
        for future in waiting:
            await asyncio.wrap_future(future)
        await memory.drain()
        assert not [r for r in await memory.records(retired=True) if "Zorblax" in r.text]
    assert b"Zorblax" not in b"".join(p.read_bytes() for p in db.parent.glob("memory.db*"))


async def test_forgetting_one_thing_leaves_the_notes_of_another(memory: Memory) -> None:
    a = await memory.remember("alpha is the first letter")
    b = await memory.remember("beta is the second letter")
    await memory.recall("letter alpha beta")
    await memory.forget(a.records[1])
    await memory.store.log(memory.scope, Event("notes-c", "notes", T0, ("c",), {"turn": "c"}))
    await memory.forget(b.records[1])
    assert len(await memory.store.events(memory.scope, "notes")) == 1


async def test_a_greeting_that_names_what_is_forgotten_goes_too(db: Path, clock: FixedClock) -> None:
    facts = {"cat_name": "Zorblax"}
    first = ScriptedModel(
        {"chat": [answer("Lovely!", remember=True, claims=facts)], "note": [NOTE], "fold": ['{"text": "x"}']}
    )
    async with companion(db, first, clock=clock) as nyima:
        await nyima.reply("My cat is called Zorblax.")
        await nyima.end_session()
        await nyima.drain()
    clock.forward(days=1)
    async with companion(
        db, ScriptedModel({"chat": [answer("Hi! How is Zorblax today?"), answer("Greet Zorblax!")]}), clock=clock
    ) as nyima:
        assert "Zorblax" in "".join([p async for p in nyima.greet()])
        await nyima.reply("Good morning!")
        (fact,) = (await nyima.memory.profile()).claims
        receipt = await nyima.forget(fact.id)
        assert receipt.bytes_found == 0
    assert b"Zorblax" not in b"".join(p.read_bytes() for p in db.parent.glob("memory.db*"))


async def test_a_query_that_found_nothing_goes_with_what_it_names(memory: Memory, db: Path) -> None:
    await memory.recall("where does Zorblaxian live")
    fact = await memory.set("cat_name", "Zorblaxian")
    await memory.forget(fact.id)
    assert b"Zorblaxian" not in b"".join(p.read_bytes() for p in db.parent.glob("memory.db*"))
    await memory.recall("another Zorblaxian query")
    await memory.forget(everything=True)
    assert b"Zorblaxian" not in b"".join(p.read_bytes() for p in db.parent.glob("memory.db*"))


async def test_earlier_versions_of_a_revised_fact_go_with_it(memory: Memory) -> None:
    fact = await memory.set("illness", "zebrafever")
    new = await memory.revise(fact.id, "zebrafever, cured")
    await memory.forget(new.id)
    assert [r.kind for r in await memory.records(retired=True)] == ["entity"], "the user alone"


async def test_being_interrupted_is_no_failed_attempt(db: Path) -> None:
    model = ScriptedModel({"chat": [answer("ok", remember=True)], "note": [NOTE]})
    async with companion(db, model) as nyima:
        await nyima.reply("I like green tea a lot.")
        store, scope = nyima.memory.store, nyima.memory.scope

        class Slow(ScriptedModel):
            async def stream(self, messages, **options):  # type: ignore[no-untyped-def, override]
                await asyncio.sleep(30)
                yield ""

        nyima.memory.parts = replace(nyima.memory.parts, writer_chat=Slow())
        for _ in range(6):
            task = asyncio.create_task(nyima.memory.drain())
            await asyncio.sleep(0.03)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        (job,) = await store.jobs(scope, ("queued",))
        assert job.attempts == 0
        nyima.memory.parts = replace(nyima.memory.parts, writer_chat=model)
        assert (await nyima.memory.drain())["done"] >= 1
        assert len(await nyima.memory.records(kinds=("note",))) == 1


async def test_without_a_model_owed_work_waits_for_one(db: Path, clock: FixedClock, embedder: HashEmbedder) -> None:
    async with companion(db, ScriptedModel({"chat": [answer("ok", remember=True)]}), clock=clock) as nyima:
        await nyima.reply("I like green tea a lot.")
    async with Memory.open(db, embedder=embedder, clock=clock) as memory:
        assert await memory.drain() == {"done": 0, "waiting": 1, "parked": 0}


async def test_two_first_folds_make_one_running_memory(db: Path, clock: FixedClock) -> None:
    fold = ['{"text": "The user likes tea."}', '{"text": "The user likes tea. The user likes jazz."}']
    model = ScriptedModel({"chat": ["fine"], "fold": list(fold)})
    async with companion(db, model, recipe="recursive", clock=clock) as nyima:
        for words in ("I like tea", "I like jazz"):
            await nyima.reply(words)
            await nyima.end_session()
            clock.forward(minutes=5)
        await asyncio.gather(
            nyima.memory.ingest.work(nyima.memory.scope, "a"), nyima.memory.ingest.work(nyima.memory.scope, "b")
        )
        await nyima.drain()
        (now,) = await nyima.memory.records(kinds=("summary",))
        assert len(now.covers) == 2  # type: ignore[union-attr]


async def test_undo_after_undo_and_after_forget(memory: Memory, clock: FixedClock) -> None:
    fact = await memory.set("city", "A-town")
    clock.forward(days=1)
    second = await memory.revise(fact.id, "B-town")
    clock.forward(days=1)
    await memory.revise(second.id, "C-town")
    moments = []
    for expected in ("B-town", "A-town"):
        clock.forward(days=1)
        await memory.undo()
        moments.append(clock.at)
        assert (await memory.profile()).as_dict() == {"city": expected}
    assert [r.text for r in await memory.records(kinds=("claim",), as_of=T0)] == ["user city: A-town"]
    other = await memory.set("pet", "cat")
    await memory.forget(other.id)
    await memory.undo()
    assert (await memory.profile()).as_dict() == {}
    with pytest.raises(NotFound):
        await memory.undo()


async def test_what_was_just_remembered_can_be_undone(memory: Memory) -> None:
    await memory.remember("I like green tea")
    await memory.undo()
    assert await memory.records(kinds=("note",)) == []


async def test_a_private_start_writes_nothing(db: Path, clock: FixedClock) -> None:
    async with companion(db, ScriptedModel({"chat": [answer("ok", remember=True)]}), clock=clock) as nyima:
        await nyima.reply("I like green tea a lot.")
    clock.forward(days=1)
    async with companion(db, ScriptedModel({"chat": [answer("tea")]}), clock=clock) as nyima:
        unindexed = len(await nyima.memory.store.unindexed(nyima.memory.scope, 10))
        assert unindexed > 0
        nyima.private = True
        await nyima.reply("What do I like?")
        await nyima.recall("tea")
        await nyima.end_session()
        assert await nyima.drain() == {"done": 0, "waiting": 0, "parked": 0}
        store, scope = nyima.memory.store, nyima.memory.scope
        assert [s.ended for s in await nyima.memory.sessions()] == [None]
        assert len(await store.unindexed(scope, 10)) == unindexed
        assert len(await store.events(scope, "recall")) == 1
        assert len(await nyima.memory.turns()) == 2


@pytest.mark.parametrize("raw", ["", '{"reply":', '{"reply": ""}'])
async def test_a_model_that_says_nothing_is_asked_again_then_named(db: Path, raw: str) -> None:
    model = ScriptedModel({"chat": [raw, raw, raw, answer("There you are.")]})
    async with companion(db, model) as nyima:
        with pytest.raises(ModelGarbled, match="no answer, twice"):
            await nyima.reply("Hello?")
        assert len(model.requests) == 2
        assert [t.role for t in await nyima.memory.turns()] == [Role.USER]
        assert (await nyima.reply("Still there?")).text == "There you are."


async def test_kinds_are_asked_for_before_the_cut(memory: Memory) -> None:
    await memory.set("pet", "cat")
    await memory.remember([Said("cat", id="1"), Said("the cat", id="2")], session="s")
    from nyima import Budget

    found = await memory.recall("cat", Budget(1, 100), kinds=("claim",))
    assert [e.record.kind for e in found.kept] == ["claim"]


@pytest.mark.parametrize(
    "text", ["나는 서울에 산다", "Ich wohne in der Kantstraße", "Ο σκύλος μου", "ДОМ у реки", "İstanbul güzel"]
)
async def test_the_very_words_are_found_in_any_language(memory: Memory, text: str) -> None:
    await memory.remember([Said(text, id="1")], session="s")
    for word in text.split():
        found = await memory.store.search(
            memory.scope, __import__("nyima.domain.ports", fromlist=["Probe"]).Probe(words=word)
        )
        assert [h.kind for h in found] == ["episode"], word


async def test_an_embedder_that_is_down_stops_no_reply(db: Path) -> None:
    class Down(HashEmbedder):
        async def embed(self, texts: object) -> list[bytes]:
            raise ModelUnreachable("the embedder does not answer: start it")

    model = ScriptedModel({"chat": [answer("Hello!")]})
    async with Assistant.open(db, model=model, embedder=Down(), tools=()) as nyima:
        assert (await nyima.reply("I like green tea")).text == "Hello!"
        await nyima.end_session()
        assert (await nyima.drain())["parked"] == 0
        found = await nyima.recall("green tea")
        assert found.kept
        assert "vectors" in found.failed


async def test_lone_surrogates_and_nul_from_a_model_lose_no_reply(db: Path) -> None:
    raw = '{"reply": "Hi \\ud83d\\u0000!", "remember": true, "facts": {"name": "\\ud83d"}}'
    async with companion(db, ScriptedModel({"chat": [raw]})) as nyima:
        answered = await nyima.reply("I am \ud83d")
        assert answered.text.startswith("Hi")
        assert len(await nyima.memory.turns()) == 2


def test_breaking_off_a_synchronous_stream_keeps_the_beginning(db: Path) -> None:
    nyima = companion(db, ScriptedModel({"chat": [answer("one two three four five six seven")]})).sync
    for _ in nyima.stream("count"):
        break
    texts = [t.text for t in nyima.memory.turns()]
    nyima.close()
    assert texts[0] == "count"
    assert "one two three".startswith(texts[1][:7])


async def test_erase_and_what_it_owes_are_one_commit(memory: Memory) -> None:
    before = await memory.store.revision(memory.scope)
    done = await memory.remember("I like green tea")
    await memory.forget(done.records[1])
    rows = await memory.store.changes(memory.scope, since=before)
    assert {r.revision for r in rows if r.verb == "erase"} == {max(r.revision for r in rows)}
    assert await memory.store.records(memory.scope, RecordFilter(retired=True)) == []
    json.dumps([r.id for r in rows])


async def test_a_session_of_any_name_is_forgotten(memory: Memory) -> None:
    for name in ("a\0b", "\u2028", "'; --", "[]"):
        await memory.remember([Said("I have a secret parrot.")], session=name)
        receipt = await memory.forget(session=name)
        assert (receipt.turns, receipt.bytes_found) == (1, 0)
        assert await memory.sessions() == []


async def test_a_long_session_is_read_a_few_times_to_be_forgotten(memory: Memory, db: Path) -> None:
    """It took a minute for 2,000 turns: the session was read again for each of its turns."""
    said = [
        Said(f"Note {n}: parcel {n * 7919} lies on shelf {n % 97}.", Role.USER if n % 2 else Role.ASSISTANT)
        for n in range(1_500)
    ]
    await memory.remember(said)
    await memory.recall("which shelf has parcel 7919")
    (session,) = await memory.sessions()
    statements: list[str] = []
    assert isinstance(memory.store, Batched)
    assert isinstance(memory.store.inner, SqliteStore)
    memory.store.inner._db.set_trace_callback(statements.append)
    receipt = await memory.forget(session=session.id)
    assert sum(" FROM turns t JOIN" in s for s in statements) < 10
    assert (receipt.turns, receipt.bytes_found, receipt.also["traces"]) == (1_500, 0, 1)
    assert b"parcel" not in b"".join(p.read_bytes() for p in db.parent.glob("memory.db*"))
