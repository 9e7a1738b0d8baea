"""Cases: conversations with questions, references and gold evidence; their own format.

One JSON document a line::

    {"name": "karen", "language": "en",
     "sessions": [{"id": "1", "turns": [{"role": "user", "text": "…", "at": "2026-03-01T09:00:00Z",
                                         "speaker": "Karen", "id": "1:0"}]}],
     "questions": [{"id": "1", "text": "…", "answer": "…", "gold": ["1:0"], "kind": "pets",
                    "at": "2026-03-08T09:00:00Z", "context": [{"role": "user", "text": "…"}]}],
     "gold_memory": [{"text": "…", "role": "user", "session": "1", "turn": "1:0"}]}

Only ``name``, ``sessions`` with ``turns``, and a question's ``text`` are needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from nyima.domain.conversation import Role
from nyima.errors import InputError
from nyima.memory import Said

__all__ = ["Case", "Gold", "Question", "case_to_json", "json_lines", "load_json", "located", "read_own", "write_cases"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question. ``gold`` are ids of turns, or of sessions, that hold the evidence;
    ``answer`` is the reference; ``before`` the session before which it is asked;
    ``context`` the turns of the running session ahead of it."""

    text: str
    gold: frozenset[str] = frozenset()
    kind: str = ""
    at: datetime | None = None
    before: str | None = None
    answer: str = ""
    context: tuple[Said, ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class Gold:
    """A sentence of memory that people wrote: whose, from which session and turn."""

    text: str
    role: Role = Role.USER
    session: str = ""
    turn: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One memory to build, and the questions to ask it. ``sessions`` are in order."""

    name: str
    sessions: tuple[tuple[str, tuple[Said, ...]], ...]
    questions: tuple[Question, ...] = ()
    language: str = ""
    gold_memory: tuple[Gold, ...] = ()

    @property
    def turns(self) -> int:
        """How many turns the sessions have."""
        return sum(len(turns) for _, turns in self.sessions)


def load_json(path: Path) -> Any:
    """A JSON file. Raises InputError with file and line."""
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}: give the publisher's file") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: no JSON: {error.msg}: download it again") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no UTF-8 text: {error.reason}: download it again") from error


def json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    """The documents of a JSON Lines file, each with its ``file:line``."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}: give the publisher's file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no UTF-8 text: {error.reason}: download it again") from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"{path}:{number}"
            with located(place):
                yield place, json.loads(line)


@contextmanager
def located(place: str) -> Iterator[None]:
    """What is wrong with the data in this block is an InputError that names the place."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise InputError(f"{place}: no JSON: {error.msg}: download it again, or leave the line out") from error
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise InputError(
            f"{place} is not in the publisher's format ({type(error).__name__}: {error}): give the publisher's file"
        ) from error


class _Turn(BaseModel):
    model_config = ConfigDict(extra="forbid")
    role: Role
    text: str
    at: datetime | None = None
    speaker: str = ""
    id: str = ""

    def said(self) -> Said:
        at = self.at if self.at is None or self.at.tzinfo else self.at.replace(tzinfo=UTC)
        return Said(self.text, self.role, at, self.speaker, id=self.id)


class _Session(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: str = ""
    turns: list[_Turn]


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: str
    id: str = ""
    answer: str = ""
    gold: list[str] = []
    kind: str = ""
    at: datetime | None = None
    before: str | None = None
    context: list[_Turn] = []


class _Gold(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: str
    role: Role = Role.USER
    session: str = ""
    turn: str = ""


class _Case(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    sessions: list[_Session]
    questions: list[_Question] = []
    language: str = ""
    gold_memory: list[_Gold] = []

    def case(self) -> Case:
        sessions: list[tuple[str, tuple[Said, ...]]] = []
        for n, session in enumerate(self.sessions):
            key = session.id or f"{n}"
            turns = (t.said() for t in session.turns)
            sessions.append((key, tuple(replace(t, id=t.id or f"{key}:{i}") for i, t in enumerate(turns))))
        questions = tuple(
            Question(
                q.text,
                frozenset(q.gold),
                q.kind,
                q.at if q.at is None or q.at.tzinfo else q.at.replace(tzinfo=UTC),
                q.before,
                q.answer,
                tuple(t.said() for t in q.context),
                q.id or f"{i}",
            )
            for i, q in enumerate(self.questions)
        )
        names = {key for key, _ in sessions}
        for question in questions:
            if question.before is not None and question.before not in names:
                raise InputError(
                    f"question {question.id!r} is asked before session {question.before!r}, which is not there"
                )
        if len({q.id for q in questions}) < len(questions):
            raise InputError("two questions have the same id: give each its own")
        gold = tuple(Gold(g.text, g.role, g.session, g.turn) for g in self.gold_memory)
        return Case(self.name, tuple(sessions), questions, self.language, gold)


def read_own(path: Path) -> Iterator[Case]:
    """The cases of a file in the format above."""
    seen: set[str] = set()
    for place, row in json_lines(path):
        try:
            case = _Case.model_validate(row).case()
            if case.name in seen:
                raise InputError(f"a second case is called {case.name!r}: give each its own name")
            seen.add(case.name)
            yield case
        except InputError as error:
            raise InputError(f"{place}: {error}") from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InputError(f"{place}: {where}: {first['msg']}: see docs/how-to/evaluate.md for the format") from error


def case_to_json(case: Case) -> dict[str, Any]:
    """A case in its own format."""
    return {
        "name": case.name,
        "language": case.language,
        "sessions": [{"id": id, "turns": [_turn(t) for t in turns]} for id, turns in case.sessions],
        "questions": [
            {
                "id": q.id,
                "text": q.text,
                "answer": q.answer,
                "gold": sorted(q.gold),
                "kind": q.kind,
                "at": q.at.isoformat() if q.at else None,
                "before": q.before,
                "context": [_turn(t) for t in q.context],
            }
            for q in case.questions
        ],
        "gold_memory": [
            {"text": g.text, "role": g.role.value, "session": g.session, "turn": g.turn} for g in case.gold_memory
        ],
    }


def _turn(said: Said) -> dict[str, Any]:
    row: dict[str, Any] = {"role": said.role.value, "text": said.text}
    if said.at:
        row["at"] = said.at.isoformat()
    return {**row, **({"speaker": said.speaker} if said.speaker else {}), **({"id": said.id} if said.id else {})}


def write_cases(path: Path, cases: Sequence[Case]) -> None:
    """Write cases, a line each, in place of what the file held."""
    part = path.with_suffix(path.suffix + ".part")
    lines = (json.dumps(case_to_json(case), ensure_ascii=False) for case in cases)
    part.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    part.replace(path)
