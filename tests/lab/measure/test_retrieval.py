"""The publishers' formats, in small, through the shipped path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nyima.errors import InputError
from nyima.testing import HashEmbedder
from nyima_lab.measure.plot import plot_retrieval
from nyima_lab.measure.retrieval import run_retrieval
from nyima_lab.readers import read_cases

TALK = [
    "I adopted a grey parrot",
    "Lovely, how old is it?",
    "We hiked the dunes at noon",
    "Bring water next time",
    "My violin needs strings",
    "Try the shop on Elm Street",
]


def locomo() -> Any:
    turns = [
        {"speaker": "Ana" if i % 2 == 0 else "Ben", "dia_id": f"D1:{i + 1}", "text": t} for i, t in enumerate(TALK)
    ]
    turns[2]["blip_caption"] = "a photo of dunes"
    talk = {"speaker_a": "Ana", "speaker_b": "Ben", "session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    qa = [
        {"question": "Which bird was adopted, a parrot?", "answer": "parrot", "evidence": ["D1:1"], "category": 4},
        {"question": "violin strings and dunes?", "answer": "x", "evidence": ["D1:5; D1:3"], "category": 1},
        {"question": "nothing", "evidence": [], "category": 5},
    ]
    return [{"sample_id": "c1", "conversation": talk, "qa": qa}]


def longmemeval() -> Any:
    sessions = [[{"role": "user", "content": t}, {"role": "assistant", "content": "I see."}] for t in TALK]
    return [
        {
            "question_id": "q1", "question_type": "single", "question": "grey parrot adopted?", "question_date": "2023/11/10 (Fri) 00:38",
            "answer_session_ids": ["answer_0"], "haystack_dates": [f"2023/03/0{i + 1} (Sat) 14:32" for i in range(6)],
            "haystack_session_ids": ["answer_0", *(f"x{i}" for i in range(5))], "haystack_sessions": sessions,
        }
    ]  # fmt: skip


def realmem() -> Any:
    dialogues = [
        {
            "session_uuid": f"u{i}", "current_time": "2025-12-15 (Monday)",
            "dialogue_turns": [{"speaker": "User", "content": t, "is_query": False}, {"speaker": "Assistant", "content": "ok", "is_query": False}],
        }
        for i, t in enumerate(TALK)
    ]  # fmt: skip
    dialogues[5]["dialogue_turns"][0] |= {
        "is_query": True,
        "content": "what about the grey parrot",
        "category_name": "Static",
    }
    dialogues[5]["dialogue_turns"][1]["memory_session_uuids"] = ["u0"]
    return {"dialogues": dialogues}


def beam(folder: Path) -> Path:
    one = folder / "1"
    (one / "probing_questions").mkdir(parents=True)
    turns = [[{"role": "user", "id": i, "content": t, "time_anchor": "March-15-2024"}] for i, t in enumerate(TALK)]
    (one / "chat.json").write_text(json.dumps([{"turns": turns}]))
    probes = {
        "update": [{"question": "grey parrot?", "source_chat_ids": {"a": [0], "b": 0}}],
        "abstention": [{"question": "x"}],
    }
    (one / "probing_questions" / "probing_questions.json").write_text(json.dumps(probes))
    return folder


def write(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize("dataset", ["locomo", "longmemeval", "realmem", "beam"])
async def test_a_small_set_in_each_format(dataset: str, tmp_path: Path) -> None:
    made = {"locomo": locomo, "longmemeval": longmemeval, "realmem": realmem}
    path = beam(tmp_path) if dataset == "beam" else write(tmp_path / "data.json", made[dataset]())
    seen: list[tuple[int, int]] = []
    report = await run_retrieval(
        dataset, path, ("bm25", "default"), HashEmbedder(), progress=lambda d, t: seen.append((d, t))
    )
    assert set(report) == {"dataset", "questions", "left_out", "rows", "by_type", "seconds"}
    assert (report["questions"], report["left_out"]) == {
        "locomo": (2, 1),
        "longmemeval": (1, 0),
        "realmem": (1, 0),
        "beam": (1, 1),
    }[dataset]
    assert {r["recipe"] for r in report["rows"]} == {"bm25", "default", "recall"}
    (asked,) = [r for r in report["rows"] if r["recipe"] == "recall"]
    assert asked["tokens"] > 0, "what users get has a length"
    assert all(r["share"] == 1.0 for r in report["rows"] if r["k"] >= 5 and r is not asked)
    assert seen[-1][0] == seen[-1][1]
    for name in ("plot.png", "plot.svg"):
        plot_retrieval(report, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1_000
    with pytest.raises(InputError, match=r"\.png"):
        plot_retrieval(report, tmp_path / "plot.pdf")


async def test_gold_names_are_never_indexed(tmp_path: Path) -> None:
    (case,) = read_cases("longmemeval", write(tmp_path / "d.json", longmemeval()))
    assert "answer" not in json.dumps([(s, [(t.id, t.text) for t in turns]) for s, turns in case.sessions])


async def test_realmem_looks_only_back(tmp_path: Path) -> None:
    data = realmem()
    data["dialogues"][0], data["dialogues"][5] = data["dialogues"][5], data["dialogues"][0]
    report = await run_retrieval("realmem", write(tmp_path / "d.json", data), ("bm25",), None)
    assert all(row["any"] == 0.0 for row in report["rows"])


@pytest.mark.parametrize(
    ("dataset", "data"),
    [("locomo", {}), ("locomo", [{"qa": []}]), ("beam", []), ("realmem", {"dialogues": 3}), ("nothing", [])],
)
def test_a_wrong_file_is_named(dataset: str, data: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_cases(dataset, write(tmp_path / "d.json", data))
