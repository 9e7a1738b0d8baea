"""Personas with knowledge (KBP, DuLeMon), and the seeds of instructions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nyima.domain.conversation import Role
from nyima.language.words import tight
from nyima.memory import Said
from nyima_lab.measure.cases import Case, Gold, Question, json_lines, load_json, located

__all__ = ["read_dulemon", "read_kbp", "read_seeds"]

_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)


def _parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def read_kbp(path: Path) -> Iterator[Case]:
    """Knowledge Behind Persona (Wang et al. 2023, SAFARI), Chinese: the assistant's persona
    with five documents a sentence. A question a turn; ``kind`` is NULL, PERSONA or BOTH,
    ``gold`` the ids of the sentences and documents that the reply rests on."""
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        for number, row in enumerate(load_json(file)):
            with located(f"{file}, dialogue {number}"):
                yield _kbp_case(f"{file.stem}-{number}", row)


def _kbp_case(name: str, row: Mapping[str, Any]) -> Case:
    persona, documents = _parsed(row["persona"]), _parsed(row["persona_kg"])
    gold = [Gold(tight(text), Role.ASSISTANT, "persona", key) for key, text in persona.items()]
    gold += [
        Gold(text, Role.ASSISTANT, "document", f"{key}-{k}") for key, kg in documents.items() for k, text in kg.items()
    ]
    said: list[Said] = []
    questions: list[Question] = []
    for i, turn in enumerate(_parsed(row["conversation"])):
        used = [id for group in turn["P-K"] for id in group]
        kind = "NULL" if not used else "BOTH" if len(turn["P-K"]) > 1 else "PERSONA"
        at = _START + 2 * i * _MINUTE
        questions.append(Question(turn["U"], frozenset(used), kind, at, None, turn["S"], tuple(said), f"{i}"))
        said.append(Said(turn["U"], Role.USER, at, id=f"{2 * i}"))
        said.append(Said(turn["S"], Role.ASSISTANT, at + _MINUTE, id=f"{2 * i + 1}"))
    return Case(name, (), tuple(questions), "zh", tuple(gold))


def read_dulemon(path: Path) -> Iterator[Case]:
    """DuLeMon (Xu et al. 2022), Chinese: both personas, and a turn's grounding after a tab."""
    for file in sorted(path.glob("*.json*")) if path.is_dir() else [path]:
        for number, (place, row) in enumerate(json_lines(file)):
            with located(place):
                yield _dulemon_case(f"{file.stem}-{number}", row)


def _dulemon_case(name: str, row: Mapping[str, Any]) -> Case:
    gold: list[Gold] = []
    for key, role in (
        ("bot_persona", Role.ASSISTANT),
        ("user_said_persona", Role.USER),
        ("user_no_said_persona", Role.USER),
    ):
        for line in row[key]:
            id, text = line.split(":", 1)
            gold.append(Gold(tight(text), role, "unsaid" if "no_said" in key else "persona", id.strip()))
    said: list[Said] = []
    questions: list[Question] = []
    for i, line in enumerate(row["conversation"]):
        words, _, ground = line.partition("\t")
        speaker, text = words.split(":", 1)
        role = Role.USER if speaker.strip() == "Usr" else Role.ASSISTANT
        turn = Said(tight(text), role, _START + i * _MINUTE, id=f"{i}")
        if role is Role.ASSISTANT and said:
            used = frozenset(re.findall(r"[UB]\d+", ground))
            kind = "PERSONA" if used else "NULL"
            questions.append(Question(said[-1].text, used, kind, turn.at, None, turn.text, tuple(said[:-1]), f"{i}"))
        said.append(turn)
    return Case(name, (), tuple(questions), "zh", tuple(gold))


def read_seeds(path: Path) -> Iterator[Case]:
    """The seed instructions of self-instruct (Wang et al. 2022): a question a task, with its
    first input, and the first output as the reference."""
    for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
        for place, row in json_lines(file):
            with located(place):
                first = row["instances"][0]
                text = "\n".join(part for part in (row["instruction"].strip(), first["input"].strip()) if part)
                question = Question(
                    text, answer=first["output"], kind=row.get("name") or row.get("motivation_app", ""), id="0"
                )
                yield Case(row["id"], (), (question,), "en")
