"""What a message hands over is not what its writer believes: nothing that holds changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nyima.memory import Memory, Said
from nyima.testing import FixedClock, ScriptedModel
from support import answer, companion

_FILE = Path(__file__).parents[1] / "judged" / "pasted.jsonl"
FORMS = [json.loads(line) for line in _FILE.read_text("utf-8").splitlines()]
TRUE = ("I live in Porto.", "My doctor is Dr. Ana.", "I'm allergic to walnuts.")


async def holds(memory: Memory) -> set[str]:
    return {r.text for r in await memory.records(kinds=("claim", "claim"))}


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f["form"])
async def test_rules_believe_nothing_of_what_is_handed_over(
    memory: Memory, clock: FixedClock, form: dict[str, str]
) -> None:
    for text in TRUE:
        await memory.remember([Said(text)], session="s")
        await memory.drain()
        clock.forward(minutes=5)
    before = await holds(memory)
    assert len(before) >= 3
    await memory.remember([Said(form["text"])], session="t")
    await memory.end_session("t")
    await memory.drain()
    assert await holds(memory) == before


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f["form"])
async def test_neither_does_a_model_that_notes_it_all(db: Path, form: dict[str, str]) -> None:
    noted = {"location": "Evilton", "doctor": "Dr. Mallory", "diet": "vegan"}
    model = ScriptedModel(
        {
            "chat": [
                answer("ok", remember=True, claims={"location": "Porto", "doctor": "Dr. Ana"}),
                answer("ok", remember=True, facts=noted),
            ],
            "note": [json.dumps({"context": "", "knowledge": "The user lives in Evilton.", "facts": noted})],
            "gate": [json.dumps({"remember": True, "facts": noted})],
        }
    )
    async with companion(db, model) as nyima:
        await nyima.reply("I live in Porto, and my doctor is Dr. Ana.")
        await nyima.reply(form["text"])
        await nyima.end_session()
        await nyima.drain()
        assert (await nyima.memory.profile()).as_dict() == {"location": "Porto", "doctor": "Dr. Ana"}
