"""Benchmarks of long memory: LoCoMo, LongMemEval, RealMem, BEAM, PrefEval."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from nyima.domain.conversation import Role
from nyima.errors import InputError
from nyima.memory import Said
from nyima_lab.measure.cases import Case, Question, load_json, located

__all__ = ["read_beam", "read_locomo", "read_locomo_corrected", "read_longmemeval", "read_prefeval", "read_realmem"]

_LOCOMO_DATE = "%I:%M %p on %d %B, %Y"


_CORRECTIONS = "audit_errors*.json"


def read_locomo(path: Path) -> Iterator[Case]:
    """``locomo10.json``, or the folder that holds it. Category 5 must be answered "not
    mentioned"."""
    yield from _locomo(path, {})


def read_locomo_corrected(path: Path) -> Iterator[Case]:
    """The same with the published label corrections, an ``audit_errors*.json`` beside it."""
    folder = path if path.is_dir() else path.parent
    found: list[Any] = []
    for file in sorted(folder.glob(_CORRECTIONS)):
        with located(str(file)):
            found += [row for row in load_json(file) if row["question_id"]]
    if not found:
        raise InputError(f"{folder} holds no {_CORRECTIONS}: put the corrections there, or read it as locomo")
    yield from _locomo(path, {row["question_id"]: row for row in found})


def _locomo(path: Path, fixes: Mapping[str, Mapping[str, Any]]) -> Iterator[Case]:
    files = [p for p in sorted(path.glob("*.json")) if not p.match(_CORRECTIONS)] if path.is_dir() else [path]
    number = 0
    for file in files:
        for item in load_json(file):
            with located(f"{file}, conversation {number}"):
                yield _locomo_case(item, number, fixes)
            number += 1


def _locomo_case(item: Mapping[str, Any], number: int, fixes: Mapping[str, Mapping[str, Any]]) -> Case:
    talk = item["conversation"]
    sessions: list[tuple[str, tuple[Said, ...]]] = []
    for n in sorted(int(k.split("_")[1]) for k in talk if re.fullmatch(r"session_\d+", k)):
        start = datetime.strptime(talk[f"session_{n}_date_time"].upper(), _LOCOMO_DATE).replace(tzinfo=UTC)
        turns: list[Said] = []
        for i, turn in enumerate(talk[f"session_{n}"]):
            picture = f" [shares a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            role = Role.USER if turn["speaker"] == talk["speaker_a"] else Role.ASSISTANT
            at = start + timedelta(seconds=30 * i)
            turns.append(Said(turn["text"] + picture, role, at, turn["speaker"], id=turn["dia_id"]))
        sessions.append((f"{n}", tuple(turns)))
    known = {t.id for _, turns in sessions for t in turns}
    questions: list[Question] = []
    for i, qa in enumerate(item["qa"]):
        fix = fixes.get(f"locomo_{number}_qa{i}", {})
        given = fix.get("correct_evidence") or qa.get("evidence") or []
        gold = frozenset(re.findall(r"D\d+:\d+", " ".join(given))) & known
        absent = "not mentioned" if qa["category"] == 5 else ""
        answer = str(fix.get("correct_answer") or absent or qa.get("answer", ""))
        questions.append(Question(str(qa["question"]), gold, f"category {qa['category']}", answer=answer, id=f"{i}"))
    return Case(str(item.get("sample_id", number)), tuple(sessions), tuple(questions), "en")


def read_longmemeval(path: Path) -> Iterator[Case]:
    """``longmemeval_s.json`` or ``_oracle.json``; ids that end in ``_abs`` must be answered
    with "unknown". The publisher's session ids tell which are gold and are not kept."""
    for number, item in enumerate(load_json(path)):
        with located(f"{path}, question {number}"):
            yield _longmemeval_case(item)


def _longmemeval_case(item: Mapping[str, Any]) -> Case:
    sessions: list[tuple[str, tuple[Said, ...]]] = []
    gold: set[str] = set()
    dated = zip(item["haystack_dates"], item["haystack_session_ids"], item["haystack_sessions"], strict=True)
    for n, (date, id, turns) in enumerate(sorted(dated, key=lambda d: d[0])):
        start = _longmemeval_date(date)
        said = tuple(
            Said(t["content"], Role(t["role"]), start + timedelta(seconds=30 * i), id=f"{n}:{i}")
            for i, t in enumerate(turns)
            if t["content"].strip()
        )
        sessions.append((f"{n}", said))
        if id in item["answer_session_ids"]:
            gold.add(f"{n}")
    at = _longmemeval_date(item["question_date"])
    question = Question(
        item["question"], frozenset(gold), item["question_type"], at, answer=str(item.get("answer", "")), id="0"
    )
    return Case(item["question_id"], tuple(sessions), (question,), "en")


def _longmemeval_date(text: str) -> datetime:
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def read_realmem(path: Path) -> Iterator[Case]:
    """A folder of ``*_dialogues_*.json``, or one of them. It asks in the middle of a
    history: only the sessions before count."""
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        with located(str(file)):
            yield _realmem_case(file.stem, load_json(file)["dialogues"])


def _realmem_case(name: str, dialogues: list[Any]) -> Case:
    place = {d["session_uuid"]: f"{n}" for n, d in enumerate(dialogues)}
    sessions: list[tuple[str, tuple[Said, ...]]] = []
    questions: list[Question] = []
    for n, dialogue in enumerate(dialogues):
        day = datetime.strptime(dialogue["current_time"][:10], "%Y-%m-%d").replace(tzinfo=UTC)
        start = day + timedelta(minutes=n)
        turns = dialogue["dialogue_turns"]
        said = tuple(
            Said(t["content"], Role(t["speaker"].lower()), start + timedelta(seconds=i), id=f"{n}:{i}")
            for i, t in enumerate(turns)
            if (t["content"] or "").strip()
        )
        sessions.append((f"{n}", said))
        for i, turn in enumerate(turns[:-1]):
            if turn.get("is_query"):
                used = turns[i + 1].get("memory_session_uuids") or []
                gold = frozenset(place[u] for u in used if u in place)
                kind, answer = str(turn.get("category_name", "query")), str(turns[i + 1]["content"] or "")
                before = tuple(t for t in said if int(t.id.split(":")[1]) < i)
                questions.append(Question(turn["content"], gold, kind, start, f"{n}", answer, before, f"{n}:{i}"))
    return Case(name, tuple(sessions), tuple(questions), "en")


_BEAM_ANSWERS = ("answer", "ideal_response", "ideal_answer", "ideal_summary", "expected_compliance")


def read_beam(path: Path) -> Iterator[Case]:
    """A folder with ``chat.json`` and ``probing_questions/``, or a folder of such."""
    for folder in [path] if (path / "chat.json").exists() else sorted(p.parent for p in path.glob("*/chat.json")):
        yield _beam_case(folder)


def _beam_case(folder: Path) -> Case:
    sessions: list[tuple[str, tuple[Said, ...]]] = []
    start = datetime(2024, 1, 1, tzinfo=UTC)
    chat, probes = folder / "chat.json", folder / "probing_questions" / "probing_questions.json"
    with located(str(chat)):
        for batch in load_json(chat):
            for group in batch["turns"]:
                said: list[Said] = []
                for turn in group:
                    start = _beam_date(turn.get("time_anchor")) or start + timedelta(seconds=30)
                    said.append(Said(turn["content"], Role(turn["role"]), start, id=str(turn["id"])))
                sessions.append((f"{len(sessions)}", tuple(said)))
    questions: list[Question] = []
    with located(str(probes)):
        for kind, items in load_json(probes).items():
            for probe in items:
                gold = frozenset(str(i) for i in _numbers(probe.get("source_chat_ids")))
                ideal = (probe[name] for name in _BEAM_ANSWERS if probe.get(name))
                answer = str(next(ideal, " ".join(probe.get("rubric") or [])))
                questions.append(Question(probe["question"], gold, kind, answer=answer, id=f"{len(questions)}"))
    return Case(folder.name, tuple(sessions), tuple(questions), "en")


def _beam_date(text: str | None) -> datetime | None:
    try:
        return datetime.strptime(text or "", "%B-%d-%Y").replace(tzinfo=UTC)
    except ValueError:
        return None


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict):
        for inner in cast("dict[str, Any]", value).values():
            yield from _numbers(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner)


def read_prefeval(path: Path) -> Iterator[Case]:
    """``explicit_preference/*.json`` with ``filtered_inter_turns.json`` as distractors: a
    preference, turns about other things, then a question; the reference says how an
    answer follows the preference."""
    folder = path / "explicit_preference"
    files = sorted((folder if folder.is_dir() else path).glob("*.json")) if path.is_dir() else [path]
    distractors = path / "filtered_inter_turns.json"
    between = load_json(distractors) if path.is_dir() and distractors.exists() else []
    start = datetime(2026, 1, 5, 9, tzinfo=UTC)
    count = 0
    for file in files:
        if file == distractors:
            continue
        for number, row in enumerate(load_json(file)):
            with located(f"{file}, item {number}"):
                first = Said(row["preference"], Role.USER, start, id="0:0")
                sessions: list[tuple[str, tuple[Said, ...]]] = [("0", (first,))]
                for n, other in enumerate(between[count % max(1, len(between)) :][:3], 1):
                    at = start + timedelta(days=n)
                    turns = [
                        Said(t["content"], Role(t["role"]), at + timedelta(seconds=30 * i), id=f"{n}:{i}")
                        for i, t in enumerate(other["conversation"])
                    ]
                    sessions.append((f"{n}", tuple(turns)))
                at = start + timedelta(days=len(sessions))
                question = Question(
                    row["question"], frozenset({"0:0"}), file.stem, at, None, row["explanation"], (), "0"
                )
                yield Case(f"{file.stem}-{number}", tuple(sessions), (question,), "en")
            count += 1
