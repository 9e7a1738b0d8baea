"""A private conversation is a value: no other conversation over the same memory changes it."""

from __future__ import annotations

from pathlib import Path

from nyima import Assistant
from nyima.memory import Memory
from nyima.testing import HashEmbedder, ScriptedModel
from support import answer


async def opened(db: Path) -> Memory:
    model = ScriptedModel({"chat": [answer("ok", remember=True)]})
    return await Memory.open(db, model=model, embedder=HashEmbedder())


async def test_a_second_conversation_leaves_the_first_one_private(db: Path) -> None:
    memory = await opened(db)
    one = Assistant(memory, private=True)
    await one.reply("my secret is zebrafish")
    two = Assistant(memory)
    await one.reply("and my pin is 4711")
    assert one.private
    assert not two.private
    assert await memory.turns() == []
    await two.reply("I live in Porto.")
    assert [t.text for t in await memory.turns()] == ["I live in Porto.", "ok"]
    await memory.close()
    assert not [p for p in db.parent.iterdir() if b"4711" in p.read_bytes() or b"zebrafish" in p.read_bytes()]


async def test_the_open_conversation_goes_on_being_kept_beside_a_private_one(db: Path) -> None:
    memory = await opened(db)
    kept = Assistant(memory)
    hidden = Assistant(memory, private=True)
    await hidden.reply("nothing of this")
    await kept.reply("I live in Porto.")
    hidden.private = False
    await hidden.reply("I like tea.")
    assert [t.text for t in await memory.turns() if t.role.value == "user"] == ["I live in Porto.", "I like tea."]
    await memory.close()
