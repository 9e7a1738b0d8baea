"""Readers of the publishers' own formats: conversations and questions with evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from nyima.domain.conversation import Role
from nyima.errors import InputError
from nyima.memory import Said

__all__ = ["DATASETS", "Case", "Question", "read_cases"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its gold evidence: ids of turns, or of sessions."""

    text: str
    gold: frozenset[str]
    kind: str
    at: datetime | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One memory to build, and the questions to ask it. ``sessions`` are in order."""

    name: str
    sessions: tuple[tuple[str, tuple[Said, ...]], ...]
    questions: tuple[Question, ...]
    left_out: int = 0


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}: give the publisher's file") from error
    except ValueError as error:
        raise InputError(f"{path} is no JSON: {error}: download it again") from error


_LOCOMO_DATE = "%I:%M %p on %d %B, %Y"


def _locomo(path: Path) -> Iterator[Case]:
    for number, item in enumerate(_load(path)):
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
        left_out = 0
        for qa in item["qa"]:
            gold = frozenset(re.findall(r"D\d+:\d+", " ".join(qa.get("evidence") or []))) & known
            left_out += not gold
            if gold:
                questions.append(Question(str(qa["question"]), gold, f"category {qa['category']}"))
        yield Case(str(item.get("sample_id", number)), tuple(sessions), tuple(questions), left_out)


def _longmemeval(path: Path) -> Iterator[Case]:
    for item in _load(path):
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
        question = Question(item["question"], frozenset(gold), item["question_type"], at)
        yield Case(item["question_id"], tuple(sessions), (question,) if gold else (), int(not gold))


def _longmemeval_date(text: str) -> datetime:
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def _realmem(path: Path) -> Iterator[Case]:
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    for file in files:
        dialogues = _load(file)["dialogues"]
        place = {d["session_uuid"]: f"{n}" for n, d in enumerate(dialogues)}
        sessions: list[tuple[str, tuple[Said, ...]]] = []
        questions: list[Question] = []
        left_out = 0
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
                    left_out += not gold
                    if gold:
                        kind = str(turn.get("category_name", "query"))
                        questions.append(Question(turn["content"], gold, kind, start, before=f"{n}"))
        yield Case(file.stem, tuple(sessions), tuple(questions), left_out)


def _beam(path: Path) -> Iterator[Case]:
    folders = [path] if (path / "chat.json").exists() else sorted(p.parent for p in path.glob("*/chat.json"))
    for folder in folders:
        sessions: list[tuple[str, tuple[Said, ...]]] = []
        start = datetime(2024, 1, 1, tzinfo=UTC)
        for batch in _load(folder / "chat.json"):
            for group in batch["turns"]:
                said: list[Said] = []
                for turn in group:
                    start = _beam_date(turn.get("time_anchor")) or start + timedelta(seconds=30)
                    said.append(Said(turn["content"], Role(turn["role"]), start, id=str(turn["id"])))
                sessions.append((f"{len(sessions)}", tuple(said)))
        probes = _load(folder / "probing_questions" / "probing_questions.json")
        questions: list[Question] = []
        left_out = 0
        for kind, items in probes.items():
            for probe in items:
                gold = frozenset(str(i) for i in _numbers(probe.get("source_chat_ids")))
                left_out += not gold
                if gold:
                    questions.append(Question(probe["question"], gold, kind))
        yield Case(folder.name, tuple(sessions), tuple(questions), left_out)


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


DATASETS = {"locomo": _locomo, "longmemeval": _longmemeval, "realmem": _realmem, "beam": _beam}


def read_cases(dataset: str, path: Path) -> list[Case]:
    """The cases of a publisher's file or folder. Raises InputError naming the file."""
    if dataset not in DATASETS:
        raise InputError(f"there is no data set {dataset!r}: choose one of {', '.join(DATASETS)}")
    if not path.exists():
        raise InputError(f"{path} does not exist: give the publisher's file or folder")
    try:
        cases = list(DATASETS[dataset](path))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path} is not in the format of {dataset}: {error!r}: give the publisher's file") from error
    if not cases:
        raise InputError(f"{path} holds nothing of {dataset}: give the publisher's file or folder")
    return cases
