"""Dialogues of several sessions: MSC, CareCall, MemoryBank."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nyima.domain.conversation import Role
from nyima.errors import InputError
from nyima.memory import Said
from nyima_lab.measure.cases import Case, Gold, Question, json_lines, load_json, located

__all__ = ["read_carecall", "read_memorybank", "read_msc"]

_MSC_END = datetime(2026, 3, 2, 18, tzinfo=UTC)
_UNKNOWN_GAP = timedelta(days=7)
_TURN = timedelta(minutes=1)
_UNITS = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.0, "year": 365.0}
_SPEAKERS = (Role.USER, Role.ASSISTANT)


def _literal(value: Any) -> Any:
    """MSC's summary files hold some values as texts, of JSON or of Python."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return ast.literal_eval(value)


def read_msc(path: Path) -> Iterator[Case]:
    """Multi-Session Chat (Xu et al. 2022): a folder with ``msc_dialogue`` and, for the gold
    sentences of memory, ``msc_personasummary``; the split is ``valid`` where it is there.

    Speaker 1 is the user. The last session that has a date in the data ends at a fixed
    day; earlier ones lie before it by the gaps that the data gives. A later session, which only the
    summaries have, follows after a week. Each utterance of the assistant from the second
    session on is a question with its context: the reply is the reference.
    """
    dialogues = _msc_files(path, "msc_dialogue")
    if not dialogues:
        raise InputError(f"{path} has no msc_dialogue/session_N/*.txt: give the folder of the publisher's archive")
    labels: dict[tuple[str, int], Mapping[str, Any]] = {}
    for number, file in _msc_files(path, "msc_personasummary").items():
        for place, row in json_lines(file):
            with located(place):
                labels[row["initial_data_id"], number] = {**row, "dialog": _literal(row["dialog"])}
    last = max(dialogues)
    for place, row in json_lines(dialogues[last]):
        with located(place):
            id = row["metadata"]["initial_data_id"]
            talks = [(p["dialog"], _gap(p)) for p in row["previous_dialogs"]]
            talks.append((row["dialog"], timedelta()))
            # A gap lies between a session and the next one, so the way back adds up.
            talks = [(talk, sum((gap for _, gap in talks[n:]), timedelta())) for n, (talk, _) in enumerate(talks)]
            marked = [labels.get((id, n), {}) for n in range(1, last + 2)]
            yield _msc_case(id, talks, marked)


def _msc_files(path: Path, folder: str) -> dict[int, Path]:
    found: dict[int, Path] = {}
    for sub in sorted((path / folder).glob("session_*")):
        files = [f for name in ("valid.txt", "test.txt", "train.txt") if (f := sub / name).exists()]
        if files:
            found[int(sub.name.split("_")[1])] = files[0]
    return found


def _gap(previous: Mapping[str, Any]) -> timedelta:
    unit = str(previous.get("time_unit", "days")).rstrip("s")
    return timedelta(days=float(previous.get("time_num", 7)) * _UNITS.get(unit, 1.0))


def _msc_case(
    id: str, talks: Sequence[tuple[Sequence[Mapping[str, Any]], timedelta]], marked: Sequence[Mapping[str, Any]]
) -> Case:
    sessions: list[tuple[str, tuple[Said, ...]]] = []
    gold: list[Gold] = []
    questions: list[Question] = []
    extra = [(marked[len(talks)]["dialog"], -_UNKNOWN_GAP)] if marked[-1].get("dialog") else []
    for n, (talk, before) in enumerate([*talks, *extra], 1):
        start = _MSC_END - before
        turns = tuple(
            Said(turn["text"], _SPEAKERS[i % 2], start + i * _TURN, id=f"{n}:{i}") for i, turn in enumerate(talk)
        )
        labelled = marked[n - 1].get("dialog") or ()
        if [t["text"] for t in labelled] == [t.text for t in turns[: len(labelled)]]:
            gold += [
                Gold(" ".join(t["persona_text"].split()), _SPEAKERS[i % 2], f"{n}", f"{n}:{i}")
                for i, t in enumerate(labelled)
                if (t.get("persona_text") or "").strip()
            ]
        for i, turn in enumerate(turns):
            if n > 1 and turn.role is Role.ASSISTANT:
                asked = turns[i - 1]
                questions.append(
                    Question(
                        asked.text, frozenset(), f"session {n}", turn.at, f"{n}", turn.text, turns[: i - 1], turn.id
                    )
                )
        sessions.append((f"{n}", turns))
    persona = marked[0].get("init_personachat")
    if persona:
        for role, lines in zip(_SPEAKERS, _literal(persona)["init_personas"], strict=True):
            gold += [Gold(line, role, "persona") for line in lines]
    return Case(id, tuple(sessions), tuple(questions), "en", tuple(gold))


def read_carecall(path: Path) -> Iterator[Case]:
    """CareCall-Memory (Bae et al. 2022), Korean: lists of sessions with the memory before
    each and what each adds. The assistant calls; sessions lie ten days apart."""
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        for number, episode in enumerate(load_json(file)):
            with located(f"{file}, episode {number}"):
                sessions: list[tuple[str, tuple[Said, ...]]] = []
                gold: list[Gold] = []
                questions: list[Question] = []
                for n, talk in enumerate(episode, 1):
                    start = _MSC_END + timedelta(days=10 * n)
                    turns = tuple(
                        Said(
                            t["text"],
                            Role.USER if t["role"] == "user" else Role.ASSISTANT,
                            start + i * _TURN,
                            id=f"{n}:{i}",
                        )
                        for i, t in enumerate(talk["dialogue"])
                    )
                    gold += [Gold(text, Role.USER, f"{n}") for text in talk.get("summary") or ()]
                    for i, turn in enumerate(turns):
                        if n > 1 and i and turn.role is Role.ASSISTANT and turns[i - 1].role is Role.USER:
                            said, kind = turns[i - 1].text, f"session {n}"
                            questions.append(
                                Question(said, frozenset(), kind, turn.at, f"{n}", turn.text, turns[: i - 1], turn.id)
                            )
                    sessions.append((f"{n}", turns))
                name = str(episode[0]["guid"]).rsplit("-S", 1)[0]
                yield Case(name, tuple(sessions), tuple(questions), "ko", tuple(gold))


def read_memorybank(path: Path) -> Iterator[Case]:
    """MemoryBank's users (Zhong et al. 2023) with their probing questions; there are no
    reference answers. A folder with ``memory_bank_*.json``, or one above (``en``, ``cn``)."""
    for file in sorted(path.rglob("memory_bank_*.json")):
        language = "zh" if file.stem.endswith("cn") else "en"
        probes: dict[str, list[str]] = {}
        for other in file.parent.glob("probing_questions*.jsonl"):
            for place, row in json_lines(other):
                with located(place):
                    probes |= {name.strip(): asked for name, asked in row.items()}
        with located(str(file)):
            users = list(load_json(file).items())
        for name, user in users:
            with located(f"{file}, {name}"):
                sessions: list[tuple[str, tuple[Said, ...]]] = []
                for day, talk in user["history"].items():
                    start = datetime.strptime(day, "%Y-%m-%d").replace(hour=9, tzinfo=UTC)
                    said: list[Said] = []
                    for pair in talk:
                        for role, key in ((Role.USER, "query"), (Role.ASSISTANT, "response")):
                            said.append(Said(pair[key], role, start + len(said) * _TURN, id=f"{day}:{len(said)}"))
                    sessions.append((day, tuple(said)))
                questions = tuple(Question(text, id=f"{i}") for i, text in enumerate(probes.get(name.strip(), ())))
                yield Case(f"{language}-{name.strip()}", tuple(sessions), questions, language)
