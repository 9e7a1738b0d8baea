"""What a message hands over is not what its writer believes: nothing that holds changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nyima.memory import Memory, Said
from nyima.testing import ScriptedModel
from support import Agrees, answer, companion, reading

_FILE = Path(__file__).parents[1] / "judged" / "pasted.jsonl"
FORMS = [json.loads(line) for line in _FILE.read_text("utf-8").splitlines()]


EVIL = reading(
    Evilton=[("user", "lives in", "Evilton"), ("user", "doctor", "Dr. Mallory"), ("user", "diet", "vegan")],
    Porto=[("user", "lives in", "Porto")],
)


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f["form"])
async def test_a_model_that_notes_it_all_changes_nothing_that_holds(db: Path, form: dict[str, str]) -> None:
    noted = {"location": "Evilton", "doctor": "Dr. Mallory", "diet": "vegan"}
    model = ScriptedModel(
        {
            "chat": [
                answer("ok", claims={"location": "Porto", "doctor": "Dr. Ana"}),
                answer("ok", claims=noted, outdated=[1, 2]),
            ],
            "note": [json.dumps({"context": "", "knowledge": "The user lives in Evilton."})],
            "read": [EVIL],
        }
    )
    async with companion(db, model, verifier=Agrees()) as nyima:
        await nyima.reply("I live in Porto, and my doctor is Dr. Ana.")
        await nyima.drain()
        await nyima.reply(form["text"])
        await nyima.end_session()
        await nyima.drain()
        assert (await nyima.memory.profile()).as_dict() == {"location": "Porto", "doctor": "Dr. Ana"}


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f["form"])
async def test_neither_does_a_reading_job(db: Path, form: dict[str, str]) -> None:
    async with Memory.open(db, embedder="none", model=ScriptedModel({"read": [EVIL]}), verifier=Agrees()) as memory:
        for text in ("I live in Porto.", form["text"]):
            await memory.remember([Said(text)], session="s")
            await memory.drain()
        assert (await memory.profile()).as_dict() == {"lives in": "Porto"}
