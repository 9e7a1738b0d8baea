"""Saving a memory as it stands changes nothing, whichever way it is saved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nyima.domain.records import Claim
from nyima.errors import InputError
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from support import NOTE, answer, companion

FOLD = '{"text": "The user is Karen. The user lives in Moab."}'


@pytest.fixture
async def full(db: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    """A memory with every kind of record."""
    facts = {"name": "Karen", "location": "Moab"}
    model = ScriptedModel({"chat": [answer("Hi!", remember=True, claims=facts)], "note": [NOTE], "fold": [FOLD]})
    async with companion(db, model, clock=clock) as nyima:
        await nyima.reply("I'm Karen, I live in Moab. My cat is called Luna.")
        await nyima.end_session()
        await nyima.drain()
        await nyima.memory.state(Statement("user", "lives in", "Braga"))
        yield nyima.memory


async def test_every_kind_saved_with_its_own_text_or_value_is_unchanged(full: Memory) -> None:
    before = await full.records(retired=True)
    assert {r.kind for r in before} >= {"episode", "note", "claim", "entity", "summary"}
    revision = await full.store.revision(full.scope)
    for record in await full.records():
        for text in (record.text, await full.value(record), f"  {record.text}\n"):
            assert await full.revise(record.id, text) == record
    assert await full.records(retired=True) == before
    assert await full.store.revision(full.scope) == revision


async def test_a_sentence_with_another_value_is_that_value(full: Memory) -> None:
    (home,) = [r for r in await full.records(kinds=("claim",)) if "Braga" in r.text]
    new = await full.revise(home.id, "user lives in: Porto")
    assert isinstance(new, Claim)
    assert (new.text, await full.value(new)) == ("user lives in: Porto", "Porto")
    again = await full.revise(new.id, "Lives in: Faro")  # another case, without the subject
    assert (again.text, await full.value(again)) == ("user lives in: Faro", "Faro")
    (fact,) = [r for r in await full.records(kinds=("claim",)) if "name" in r.text]
    assert (await full.revise(fact.id, "Name:Clara")).text == "user name: Clara"
    (note,) = await full.records(kinds=("note",))
    changed = await full.revise(note.id, note.text.replace("something", "something else"))
    assert changed.text == note.text.replace("something", "something else")


async def test_a_value_is_not_taken_away_by_an_edit(full: Memory) -> None:
    (home,) = [r for r in await full.records(kinds=("claim",)) if "Braga" in r.text]
    with pytest.raises(InputError, match="empty"):
        await full.revise(home.id, "user lives in:  .")
    assert (await full.record(home.id)).recorded.until is None


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tail=st.text(st.characters(codec="utf-8", categories=("L", "N", "Zs", "P")), min_size=1, max_size=30))
async def test_any_value_saved_again_is_unchanged(tmp_path: Path, tail: str) -> None:
    async with Memory.open(tmp_path / "p.db", embedder=HashEmbedder(), clock=FixedClock()) as memory:
        try:
            made = await memory.state(Statement("user", "lives in", tail))
        except InputError:
            return  # it names nothing
        revision = await memory.store.revision(memory.scope)
        for text in (made.text, await memory.value(made)):
            if text.strip():
                assert await memory.revise(made.id, text) == made
        assert await memory.store.revision(memory.scope) == revision
        await memory.forget(everything=True)
