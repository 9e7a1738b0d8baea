"""The log of changes: what was done, in words; undo, redo; and what a forget would take."""

from __future__ import annotations

from pathlib import Path

import pytest

from nyima.app.registry import registry
from nyima.domain.records import Claim, Note
from nyima.errors import InputError, NotFound
from nyima.mechanisms.documents.parse import parse_document
from nyima.mechanisms.documents.shelf import add_document, held_documents
from nyima.memory import BlockingMemory, Memory, Said
from nyima.sync import Opening
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from support import Agrees, answer, companion, reading

OTHER = '{"text": "They talked about tea."}'
NOTES = '{"turns": [{"n": 1, "remember": true, "claims": []}], "context": "", "knowledge": "The user likes tea."}'


def reads(db: Path, embedder: HashEmbedder) -> Opening[Memory, BlockingMemory]:
    said = reading(
        Porto=[("user", "lives in", "Porto")], tea=[("user", "likes", "tea")],
        Ana_lives=[("sister Ana", "lives in", "Porto")], Delphi=[("sister Ana", "works at", "Delphi")],
    )  # fmt: skip
    model = ScriptedModel({"read": [said]})
    return Memory.open(db, recipe="graph", embedder=embedder, model=model, verifier=Agrees("nothing is over"))


async def facts(memory: Memory) -> dict[str, object]:
    return dict((await memory.profile()).as_dict())


async def test_the_log_says_in_words_what_was_done(memory: Memory, clock: FixedClock) -> None:
    fact = await memory.set("city", "Leeds")
    clock.forward(days=1)
    await memory.revise(fact.id, "Manchester")
    clock.forward(days=1)
    await memory.remember("My cat is called Luna.")
    await memory.drain()
    newest, change, first = await memory.log()
    assert (first.what, first.before, first.after, first.undoable) == ("city", "", "Leeds", False)
    assert (change.before, change.after, change.undoable) == ("Leeds", "Manchester", True)
    assert str(change) == "city: Leeds → Manchester"
    assert "Luna" in newest.after
    assert newest.undoable
    assert len(await memory.log(1)) == 1


async def test_what_one_message_made_is_one_step(memory: Memory) -> None:
    await memory.remember("My cat is called Luna.")
    await memory.drain()
    await memory.undo()
    assert await memory.records(kinds=("note", "claim")) == []
    with pytest.raises(NotFound, match="no change left"):
        await memory.undo()


async def test_undo_by_id_takes_back_that_change_alone_and_redo_brings_it_back(memory: Memory) -> None:
    await memory.set("pet", "cat")
    await memory.set("job", "nurse")
    pet = next(c for c in await memory.log() if c.after == "cat")
    done = await memory.undo(pet.id)
    assert done.after == "cat"
    assert await facts(memory) == {"job": "nurse"}
    with pytest.raises(InputError, match="cannot be undone"):
        await memory.undo(pet.id)
    await memory.redo()
    assert await facts(memory) == {"job": "nurse", "pet": "cat"}
    with pytest.raises(NotFound):
        await memory.redo()
    with pytest.raises(NotFound, match="no change '99'"):
        await memory.undo("99")
    await memory.undo()
    assert await facts(memory) == {"pet": "cat"}, "after a redo the last change is again the last"


async def test_every_change_taken_back_restores_what_was(memory: Memory, clock: FixedClock) -> None:
    states = [await facts(memory)]
    fact: Claim | None = None
    for value in ("Leeds", "York", "Porto", "Rome"):
        clock.forward(hours=1)
        fact = await memory.set("city", value) if fact is None else await _revised(memory, value)
        states.append(await facts(memory))
    for expected in states[-2::-1]:
        clock.forward(hours=1)
        await memory.undo()
        assert await facts(memory) == expected


async def _revised(memory: Memory, value: str) -> Claim:
    (fact,) = (await memory.profile()).claims
    new = await memory.revise(fact.id, value)
    assert isinstance(new, Claim)
    return new


async def test_undo_names_another_kind_of_thing_before_it_takes_it(memory: Memory, tmp_path: Path) -> None:
    await memory.set("pet", "cat")
    await add_document(memory, parse_document(b"# Manual\n\nPress the red button.", "manual.md"))
    line = await memory.undoable()
    assert (line.what, line.after) == ("added document", "manual.md")
    await memory.undo(next(c.id for c in await memory.log() if c.after == "cat"))
    assert [d.name for d in await held_documents(memory)] == ["manual.md"]


async def test_a_redone_message_has_its_notes_again(db: Path, embedder: HashEmbedder) -> None:
    async with reads(db, embedder) as memory:
        (turn,) = (await memory.remember([Said("I live in Porto.")], session="s")).turns
        await memory.drain()
        await memory.undo(turn.id)
        assert await memory.records(kinds=("claim",)) == []
        await memory.redo()
        assert [r.text for r in await memory.records(kinds=("claim",))] == ["user lives in: Porto"]
        assert await memory.store.events(memory.scope, "undone") == []


async def test_undo_leaves_the_nodes_that_others_name(db: Path, embedder: HashEmbedder) -> None:
    async with reads(db, embedder) as memory:
        (first,) = (await memory.remember([Said("My sister Ana lives in Porto.")], session="s")).turns
        await memory.drain()
        await memory.remember([Said("My sister Ana works at Delphi.")], session="s")
        await memory.drain()
        await memory.undo(first.id)
        entities = {r.id for r in await memory.records(kinds=("entity",))}
        for relation in await memory.records(kinds=("claim",)):
            assert isinstance(relation, Claim)
            assert {relation.subject, relation.object} <= entities
        assert [c for c in await memory.log() if c.turn == first.id and c.undoable] == []


async def test_two_turns_of_one_step_are_two_changes(db: Path, clock: FixedClock) -> None:
    facts = [{"name": "Karen"}, {"pet": "cat"}]
    model = ScriptedModel({"chat": [answer("ok", remember=True, claims=f) for f in facts]})
    async with companion(db, model, recipe="profile", clock=clock) as nyima:
        await nyima.reply("My name is Karen.")
        await nyima.reply("I have a cat.")
        await nyima.end_session()
        await nyima.drain()
        lines = await nyima.memory.log()
        assert len({c.id for c in lines}) == len(lines)
        await nyima.memory.undo(next(c.id for c in lines if c.after == "cat"))
        assert (await nyima.memory.profile()).as_dict() == {"name": "Karen"}


async def test_what_comes_back_never_stands_beside_what_took_its_place(memory: Memory) -> None:
    await memory.set("city", "Braga")
    await memory.undo()
    await memory.set("city", "Porto")
    with pytest.raises(NotFound):
        await memory.redo()
    assert await facts(memory) == {"city": "Porto"}


async def test_an_undo_before_anything_was_noted_can_be_redone(db: Path, embedder: HashEmbedder) -> None:
    async with reads(db, embedder) as memory:
        (one,) = (await memory.remember([Said("I live in Porto.")], session="s")).turns
        await memory.drain()
        (two,) = (await memory.remember([Said("I like tea.")], session="s")).turns
        await memory.undo(one.id)
        await memory.undo(two.id)
        await memory.redo()
        assert [e.body["turn"] for e in await memory.store.events(memory.scope, "undone")] == [one.id]
        await memory.redo()
        assert [r.text for r in await memory.records(kinds=("claim",))] == ["user lives in: Porto"]


# --- forgetting ---


async def test_forget_says_beforehand_what_goes(memory: Memory) -> None:
    done = await memory.remember("Tiago is a sound engineer, and his birthday is on 14 December.")
    await memory.drain()
    note = next(r for r in await memory.records(kinds=("note",)))
    going = await memory.would_forget(note.id)
    assert [t.id for t in going.turns] == [done.turns[0].id]
    assert {r.kind for r in going.records} >= {"note", "episode"}
    assert await memory.records(kinds=("note",)) == [note], "nothing was changed"
    receipt = await memory.forget(note.id)
    assert sum(receipt.erased.values()) == len(going.records)
    assert receipt.turns == len(going.turns)


async def test_one_memory_goes_alone_and_the_receipt_says_that_its_words_stay(memory: Memory, db: Path) -> None:
    done = await memory.remember("Tiago is a sound engineer, and his birthday is on 14 December.")
    await memory.drain()
    note = next(r for r in await memory.records(kinds=("note",)))
    receipt = await memory.forget(note.id, only=True)
    assert receipt.turns == 0
    assert receipt.still_said == (done.turns[0].id,)
    assert [t.text for t in await memory.turns()] == [done.turns[0].text]
    assert await memory.records(kinds=("note",)) == []
    assert (await memory.forget(session=done.turns[0].session)).still_said == ()
    assert b"Tiago" not in b"".join(p.read_bytes() for p in db.parent.glob("memory.db*"))


async def test_what_was_forgotten_alone_is_not_believed_again(db: Path, clock: FixedClock) -> None:
    model = ScriptedModel({"chat": [answer("ok", remember=True, claims={"name": "Karen", "pet": "cat"})]})
    async with companion(db, model, clock=clock) as nyima:
        await nyima.reply("My name is Karen, and I have a cat.")
        await nyima.drain()
        named = [r for r in await nyima.memory.records(kinds=("claim",)) if "Karen" in r.text]
        await nyima.memory.forget(*(r.id for r in named), only=True)
        await nyima.end_session()
        await nyima.drain()
        assert "name" not in (await nyima.memory.profile()).as_dict()
        assert (await nyima.memory.profile()).as_dict()["pet"] == "cat"


@pytest.mark.parametrize("recipe", [name for name in registry().recipes if registry().recipes[name].writers])
async def test_an_erase_derives_again_under_the_memorys_own_recipe(db: Path, clock: FixedClock, recipe: str) -> None:
    """The audit found a note with a context, and a relation, in a memory whose recipe makes neither."""
    lanes = ("read", "note", "fold", "summary", "topics", "day", "overall", "portrait")
    model = ScriptedModel({lane: [OTHER if lane in {"fold", "summary"} else NOTES] for lane in lanes})
    async with Memory.open(db, recipe=recipe, model=model, embedder=HashEmbedder(), clock=clock) as memory:
        texts = ("I like green tea a lot.", "My dog Rex eats walnuts daily.")
        turns = (await memory.remember([Said(t, id=str(i)) for i, t in enumerate(texts)], session="s")).turns
        await memory.end_session("s")
        await memory.drain()
        before = {r.kind for r in await memory.records(retired=True)}
        made = {r.provenance.writer for r in await memory.records(retired=True)}
        context = any(r.context for r in await memory.records() if isinstance(r, Note))
        clock.forward(minutes=5)
        walnuts = [r for r in await memory.records(kinds=("episode",)) if turns[1].id in r.provenance.turns]
        await memory.forget(walnuts[0].id)
        owed = await memory.store.jobs(memory.scope, ("queued",))
        assert {j.recipe for j in owed} <= {recipe}
        await memory.drain()
        after = await memory.records()
        assert {r.kind for r in after} <= before
        assert {r.provenance.writer for r in after} <= made
        assert any(r.context for r in after if isinstance(r, Note)) <= context
        assert "Rex" not in str(after)
