"""Examples for training: read from data sets, made with a model, checked."""

from __future__ import annotations

import json
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nyima.errors import InputError
from nyima.mechanisms.by_hand import Statement
from nyima.mechanisms.graph.policy import RulePolicy
from nyima.memory import Memory, Said
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from nyima_lab.measure.selection import selection_rows
from nyima_lab.train.samples import (
    associations,
    data_quality,
    examples_of,
    own_examples,
    synthesise,
)

T0 = datetime(2026, 3, 2, tzinfo=UTC)
SHARED = Path(__file__).parents[4] / "shared" / "data"


def realmem(folder: Path) -> Path:
    """Two sessions of a person; the second asks for what the first told."""
    told = [
        {"content": "【Wine】 User studies for a wine exam.", "session_uuid": "a"},
        {"content": "User has a cat.", "session_uuid": "a"},
    ]
    query = {"speaker": "User", "is_query": True, "content": "What about my wine exam?"}
    reply = {"speaker": "Assistant", "content": "Go on with the flashcards.", "memory_used": [told[0]]}
    dialogues = [
        {"session_uuid": "a", "dialogue_turns": [], "extracted_memory": told},
        {
            "session_uuid": "b",
            "dialogue_turns": [query, reply],
            "extracted_memory": [{"content": "User is tired.", "session_uuid": "b"}],
        },
    ]
    (folder / "Ana_dialogues_1k.json").write_text(json.dumps({"dialogues": dialogues}), "utf-8")
    return folder


async def test_realmem_gives_its_gold_memories(tmp_path: Path, embedder: HashEmbedder) -> None:
    found = [a async for _, a in examples_of("realmem", realmem(tmp_path), embedder, (2,))]
    (asked,) = found
    assert asked.example.question == "What about my wine exam?"
    texts = {p.record.id: p.text for p in asked.example.pieces}
    assert {texts[i] for i in asked.example.required} == {"Wine has note: 【Wine】 User studies for a wine exam."}
    assert "User has note: User is tired." not in {p.text for p in asked.dense}, (
        "only what was told before the question"
    )
    (row,) = selection_rows(found, {"all": RulePolicy(threshold=-2)})
    assert row["share"] == 1.0


async def test_longmemeval_gives_its_evidence_turns(tmp_path: Path, embedder: HashEmbedder) -> None:
    turns = [
        {"role": "user", "content": "I bought a red bicycle. I like tea.", "has_answer": True},
        {"role": "user", "content": "I have a cat."},
    ]
    item = {
        "question_id": "q1", "question": "Which bicycle did I buy?", "answer": "a red one",
        "haystack_sessions": [turns], "haystack_dates": ["2023/05/20 (Sat) 02:21"],
    }  # fmt: skip
    path = tmp_path / "oracle.json"
    path.write_text(
        json.dumps([item, {**item, "haystack_sessions": [[{"role": "user", "content": "Hello?"}]]}]), "utf-8"
    )
    found = [a async for _, a in examples_of("longmemeval", path, embedder, (3,))]
    assert len(found) == 1, "a question without evidence of the user's is left out"
    assert len(found[0].example.required) == 1, "the bicycle, not the cat"
    texts = {p.record.id: p.text for p in found[0].example.pieces}
    assert any("I bought a red bicycle." in (texts.get(i) or "") for i in found[0].example.required)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the publishers' files are not here")
async def test_the_publishers_realmem_file(embedder: HashEmbedder) -> None:
    one = min((SHARED / "realmem").glob("*.json"), key=lambda p: p.stat().st_size)
    async with aclosing(examples_of("realmem", one, embedder, (1,))) as found:
        _, asked = await anext(found)
        assert asked.example.required


@pytest.mark.req("emg.associations", "emg.qa-pairs", "emg.data-quality")
async def test_pairs_are_made_from_a_memory_of_ones_own(db: Path, clock: FixedClock, embedder: HashEmbedder) -> None:
    model = ScriptedModel(
        {
            "build-associations": ['{"groups": ["1|2: both are about the trip", "9|12: no such numbers", "3: alone"]}'],
            "build-pairs": ['{"question": "When does the flight to Oslo leave?", "answer": "On 12 May to Oslo."}'],
            "build-said": ['{"said": true}', '{"said": true}', '{"said": false}', '{"said": true}', '{"said": true}'],
        }
    )
    async with Memory.open(db, recipe="graph", embedder=embedder, clock=clock) as memory:
        with pytest.raises(InputError, match="too few"):
            await own_examples(memory, model)
        for said in (
            ("user", "booked", "flight to Oslo"),
            ("flight to Oslo", "leaves", "at 9:00 on 12 May"),
            ("cat", "name", "Momo"),
            ("user", "likes", "tea"),
        ):
            (turn,) = (await memory.remember([Said(" ".join(said))], session="s")).turns
            await memory.state(Statement(*said, turn=turn.id))
            clock.forward(minutes=1)
        relations = await memory.records(kinds=("claim",))
        groups = await associations([r for r in relations if r.kind == "claim"], model)  # type: ignore[misc]
        assert groups == [((0, 1), "both are about the trip")]
        (made,) = await own_examples(memory, model)
        assert made.answer == "On 12 May to Oslo."
        assert len(made.required) == 2
        assert {p.record.id for p in made.pieces} & made.required
        quality = await data_quality(memory, [made], model)
        assert quality["memories"] == pytest.approx(1 - 1 / len(relations))
        assert quality["pairs"] == 1.0


@pytest.mark.req("emg.synthesise")
async def test_made_up_memories_have_time_and_place_and_no_contradiction() -> None:
    lines = [
        "2026-03-03 | Porto | My uncle is called Ari.",
        "2026-03-03 | Tokyo | I am in Tokyo now.",
        "2026-03-01 | Porto | This is before the first.",
        "2026-03-04 | Porto | My uncle is called Ari.",
        "not a memory",
        "2026-13-40 | Porto | I have a strange day.",
        "2026-03-05 | Lisbon | My uncle lives by the river.",
    ]
    model = ScriptedModel({"build-synthetic": [json.dumps({"memories": lines}), '{"memories": []}']})
    made = await synthesise(model, 10, start=T0)
    assert [(d.day, place, text) for d, place, text in made] == [
        (3, "Porto", "My uncle is called Ari."),
        (5, "Lisbon", "My uncle lives by the river."),
    ]
    assert "2026-03-03 | Porto | My uncle is called Ari." in model.asked("build-synthetic")[1].last
    assert await synthesise(ScriptedModel({"build-synthetic": ["nonsense"]}), 3, start=T0) == []


async def test_a_note_by_hand_is_its_own_memory(db: Path, clock: FixedClock) -> None:
    async with Memory.open(db, embedder="none", clock=clock) as memory:
        for n in range(3):
            await memory.state(Statement("user", "has note", f"thing {n}"))
        assert len(await memory.records(kinds=("claim",))) == 3
