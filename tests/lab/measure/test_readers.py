"""The publishers' formats in small; wrong files name their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nyima.domain.conversation import Role
from nyima.errors import InputError
from nyima_lab.measure.cases import case_to_json, read_own, write_cases
from nyima_lab.readers import DATASETS, read_cases

SHARED = Path(__file__).parents[4] / "shared" / "data"


def save(path: Path, data: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, ensure_ascii=False), "utf-8")
    return path


def lines(path: Path, rows: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), "utf-8")
    return path


def msc(folder: Path) -> Path:
    first = ["I bake bread on Sundays.", "Nice, which kind?", "Rye, mostly.", "I sail a little boat."]
    second = ["My rye starter died.", "Oh no! How old was it?", "Four years.", "Mine lives in a jar."]
    third = ["I bought a new oven.", "Then you can bake again!"]
    talk = {
        "dialog": [{"text": t, "id": f"Speaker {i % 2 + 1}"} for i, t in enumerate(second)],
        "previous_dialogs": [{"dialog": [{"text": t} for t in first], "time_num": 3, "time_unit": "days"}],
        "metadata": {"initial_data_id": "valid_1", "session_id": 1},
        "personas": [[], []],
    }
    lines(folder / "msc_dialogue" / "session_2" / "valid.txt", [talk])
    for number, said, facts in (
        (1, first, {0: "I bake bread.", 3: "I sail."}),
        (2, second, {2: "My starter was four."}),
        (3, third, {}),
    ):
        dialog = [{"text": t, **({"persona_text": facts[i]} if i in facts else {})} for i, t in enumerate(said)]
        persona = {"init_personas": [["I am a baker.", "I own a parrot."], ["I am a sailor."]]}
        row = {"dialog": repr(dialog), "init_personachat": json.dumps(persona), "initial_data_id": "valid_1"}
        lines(folder / "msc_personasummary" / f"session_{number}" / "valid.txt", [row])
    return folder


@pytest.mark.req("rsum.sessions")
def test_msc_has_sessions_dates_questions_by_session_and_gold_sentences(tmp_path: Path) -> None:
    (case,) = read_cases("msc", msc(tmp_path))
    assert [(id, len(turns)) for id, turns in case.sessions] == [("1", 4), ("2", 4), ("3", 2)]
    starts = [turns[0].at for _, turns in case.sessions]
    assert all(starts)
    assert (starts[1] - starts[0]).days == 3  # type: ignore[operator]
    assert (starts[2] - starts[1]).days == 7  # type: ignore[operator]
    assert [t.role for t in case.sessions[0][1]] == [Role.USER, Role.ASSISTANT] * 2
    gold = [(g.text, g.role, g.turn) for g in case.gold_memory if g.turn]
    assert gold == [
        ("I bake bread.", Role.USER, "1:0"),
        ("I sail.", Role.ASSISTANT, "1:3"),
        ("My starter was four.", Role.USER, "2:2"),
    ]
    assert [g.text for g in case.gold_memory if g.session == "persona" and g.role is Role.USER] == [
        "I am a baker.",
        "I own a parrot.",
    ]
    asked = [(q.kind, q.text, q.answer, len(q.context), q.before) for q in case.questions]
    assert asked[0] == ("session 2", "My rye starter died.", "Oh no! How old was it?", 0, "2")
    assert asked[1] == ("session 2", "Four years.", "Mine lives in a jar.", 2, "2")
    assert asked[2][0] == "session 3"


def test_msc_gaps_lie_between_neighbouring_sessions(tmp_path: Path) -> None:
    def talk(text: str, number: int, unit: str) -> dict[str, Any]:
        return {"dialog": [{"text": text}, {"text": "ok"}], "time_num": number, "time_unit": unit}

    row = {
        "dialog": [{"text": "third"}, {"text": "ok"}], "metadata": {"initial_data_id": "v"},
        "previous_dialogs": [talk("first", 4, "hours"), talk("second", 5, "days")],
    }  # fmt: skip
    lines(tmp_path / "msc_dialogue" / "session_3" / "valid.txt", [row])
    (case,) = read_cases("msc", tmp_path)
    first, second, third = (turns[0].at for _, turns in case.sessions)
    assert first
    assert second
    assert third
    assert (second - first).total_seconds() == 4 * 3_600
    assert (third - second).days == 5


def test_carecall_keeps_korean_and_what_each_session_adds(tmp_path: Path) -> None:
    talk = [
        {"role": "system", "text": "안녕하세요?"},
        {"role": "user", "text": "빵을 구워요"},
        {"role": "system", "text": "좋네요"},
    ]
    episode = [
        {"guid": f"interactive-1-S{n}", "dialogue": talk, "memory": [], "summary": ["빵을 구움"]} for n in (1, 2)
    ]
    (case,) = read_cases("carecall", save(tmp_path / "c.json", [episode]))
    assert case.language == "ko"
    assert [g.session for g in case.gold_memory] == ["1", "2"]
    assert [(q.text, q.answer, q.kind) for q in case.questions] == [("빵을 구워요", "좋네요", "session 2")]


def test_label_corrections_of_locomo_are_an_option(tmp_path: Path) -> None:
    turns = [{"speaker": "Ana", "dia_id": f"D1:{i}", "text": f"word {i}"} for i in (1, 2)]
    talk = {"speaker_a": "Ana", "speaker_b": "Ben", "session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    qa = [
        {"question": "which?", "answer": "old", "evidence": ["D1:1"], "category": 4},
        {"question": "what?", "category": 5},
    ]
    save(tmp_path / "locomo10.json", [{"sample_id": "c", "conversation": talk, "qa": qa}])
    fix = {"question_id": "locomo_0_qa0", "correct_answer": "new", "correct_evidence": ["D1:2"]}
    with pytest.raises(InputError, match="audit_errors"):
        read_cases("locomo-corrected", tmp_path / "locomo10.json")
    save(tmp_path / "audit_errors.json", [fix])
    (plain,) = read_cases("locomo", tmp_path)
    (mended,) = read_cases("locomo-corrected", tmp_path)
    assert (plain.questions[0].answer, plain.questions[0].gold) == ("old", frozenset({"D1:1"}))
    assert (mended.questions[0].answer, mended.questions[0].gold) == ("new", frozenset({"D1:2"}))
    assert plain.questions[1].answer == "not mentioned"


def test_the_other_formats(tmp_path: Path) -> None:
    save(
        tmp_path / "p" / "explicit_preference" / "food.json",
        [{"preference": "I hate figs.", "question": "A cake?", "explanation": "no figs"}],
    )
    save(tmp_path / "p" / "filtered_inter_turns.json", [{"conversation": [{"role": "user", "content": "sum?"}]}])
    (case,) = read_cases("prefeval", tmp_path / "p")
    assert (case.questions[0].gold, case.questions[0].answer, len(case.sessions)) == (frozenset({"0:0"}), "no figs", 2)
    history = {"2023-05-01": [{"query": "I like tea", "response": "Nice"}]}
    save(tmp_path / "m" / "en" / "memory_bank_en.json", {"Ivy": {"name": "Ivy", "history": history}})
    lines(tmp_path / "m" / "en" / "probing_questions_en.jsonl", [{"Ivy": ["What do I like?"]}])
    (case,) = read_cases("memorybank", tmp_path / "m")
    assert (case.name, case.questions[0].text, case.sessions[0][1][0].at.day) == ("en-Ivy", "What do I like?", 1)  # type: ignore[union-attr]
    row = {
        "persona": '{"B0": "我 喜欢 猫"}', "persona_kg": {"B0": {"K0": "猫是动物"}},
        "conversation": json.dumps([{"U": "你好", "S": "好", "P-K": []}, {"U": "猫?", "S": "是", "P-K": [["B0"], ["B0-K0"]]}]),
    }  # fmt: skip
    (case,) = read_cases("kbp", save(tmp_path / "kbp.json", [row]))
    assert [(q.kind, sorted(q.gold), len(q.context)) for q in case.questions] == [
        ("NULL", [], 0),
        ("BOTH", ["B0", "B0-K0"], 2),
    ]
    assert case.gold_memory[0].text == "我喜欢猫"
    talk = {
        "bot_persona": ["B1: 我 爱吃 肉"],
        "user_said_persona": ["U1: 我 打球"],
        "user_no_said_persona": [],
        "conversation": ["Usr: 打球 吗\tU1", "Bot: 好\tB1"],
    }
    (case,) = read_cases("dulemon", lines(tmp_path / "d.json", [talk]))
    assert [(q.text, q.kind, q.gold) for q in case.questions] == [("打球吗", "PERSONA", frozenset({"B1"}))]
    seed = {"id": "s1", "instruction": "Add.", "name": "sums", "instances": [{"input": "1 2", "output": "3"}]}
    (case,) = read_cases("seeds", lines(tmp_path / "s.jsonl", [seed]))
    assert (case.questions[0].text, case.questions[0].answer) == ("Add.\n1 2", "3")


def test_the_own_format_survives_a_round_trip(tmp_path: Path) -> None:
    (case,) = read_cases("msc", msc(tmp_path / "msc"))
    write_cases(tmp_path / "own.jsonl", [case])
    (again,) = read_own(tmp_path / "own.jsonl")
    assert case_to_json(again) == case_to_json(case)


@pytest.mark.parametrize(
    ("dataset", "name", "text", "place"),
    [
        ("jsonl", "a.jsonl", '{"name": "x", "sessions": []}\n{"name": "y"}\n', "a.jsonl:2: sessions"),
        ("jsonl", "a.jsonl", '{"name": "x", "sessions": []}\n{"name":\n', "a.jsonl:2: no JSON"),
        ("locomo", "l.json", '[\n{"sample_id": \n', "l.json:3: no JSON"),
        ("jsonl", "a.jsonl", '{"name": "x", "sessions": []}\n' * 2, "a.jsonl:2: a second case is called 'x'"),
        (
            "jsonl",
            "a.jsonl",
            '{"name": "x", "sessions": [], "questions": [{"text": "q", "before": "9"}]}',
            "session '9'",
        ),
        ("locomo", "l.json", '[{"sample_id": "c"}]', "l.json, conversation 0"),
        ("longmemeval", "l.json", '[{"question_id": "q"}]', "l.json, question 0"),
        ("kbp", "k.json", '[{"persona": "{}"}]', "k.json, dialogue 0"),
        ("seeds", "s.jsonl", '{"id": "a"}\n', "s.jsonl:1"),
        ("dulemon", "d.jsonl", "[1]\n", "d.jsonl:1"),
        ("realmem", "r.json", '{"talks": []}', "r.json is not in"),
        ("carecall", "c.json", "[[{}]]", "c.json, episode 0"),
    ],
)
def test_a_wrong_file_is_named_with_its_place(tmp_path: Path, dataset: str, name: str, text: str, place: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(InputError) as caught:
        read_cases(dataset, path)
    assert place in str(caught.value)


def test_a_folder_that_is_not_msc_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="msc_dialogue"):
        read_cases("msc", tmp_path)
    (tmp_path / "x.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_cases("jsonl", tmp_path / "x.jsonl")
    with pytest.raises(InputError, match="choose one of"):
        read_cases("nonsense", tmp_path)


def test_a_part_of_a_folder_is_named(tmp_path: Path) -> None:
    save(tmp_path / "1" / "chat.json", [{"turns": [[{"role": "user", "content": "hi", "id": 1}]]}])
    save(tmp_path / "1" / "probing_questions" / "probing_questions.json", {"kind": [{"no": "question"}]})
    with pytest.raises(InputError, match=r"probing_questions\.json is not in"):
        read_cases("beam", tmp_path)
    save(tmp_path / "m" / "memory_bank_en.json", [1])
    with pytest.raises(InputError, match=r"memory_bank_en\.json is not in"):
        read_cases("memorybank", tmp_path / "m")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the publishers' files are not here")
@pytest.mark.parametrize(
    ("dataset", "path", "cases", "questions"),
    [
        ("msc", "msc", 500, 8_818),
        ("carecall", "carecall/carecall-memory-sample.json", 10, 386),
        ("locomo", "locomo", 5, 999),
        ("prefeval", "prefeval", 505, 505),
        ("memorybank", "memorybank", 30, 200),
        ("kbp", "kbp/dev.json", 248, 1_227),
        ("dulemon", "dulemon_samples", 20, 163),
        ("seeds", "self_instruct_seeds", 427, 427),
    ],
)
def test_real_files(dataset: str, path: str, cases: int, questions: int) -> None:
    found = read_cases(dataset, SHARED / path)
    assert (len(found), sum(len(c.questions) for c in found)) == (cases, questions)
    assert set(DATASETS) >= {dataset}
