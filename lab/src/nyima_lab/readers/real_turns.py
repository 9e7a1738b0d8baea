"""Annotated turns of public data sets: the annotations are here, the texts stay with their publishers.

A line of annotations names the turn (``set``, ``file``, ``where``) and has the first twelve hex digits of
its text's SHA-256, so that a text that has changed is noticed.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nyima.domain.evidence import Noted
from nyima.errors import InputError
from nyima_lab.readers.lives import AnnotatedLife, LifeMessage

__all__ = ["read_real_turns", "turn_text"]

_Found = Callable[[Any, Mapping[str, Any]], str]
_JSON_LINES = ("valid.txt", "dulemon_samples/samples.json")
_SPEAKER = re.compile(r"^(?:Usr|Bot):\s?")


def read_real_turns(root: Path, annotations: Path) -> list[AnnotatedLife]:
    """Return each annotated turn as a life without claims and with one message. Raises InputError where the
    data are not under ``root``, or are not those that were annotated."""
    found: list[AnnotatedLife] = []
    for number, line in enumerate(annotations.read_text("utf-8").split("\n"), 1):
        if not line.strip():
            continue
        row = json.loads(line)
        text = turn_text(root, row)
        if hashlib.sha256(text.encode()).hexdigest()[:12] != row["sha"]:
            raise InputError(f"{annotations}, line {number}: the text under {root} is another one than was annotated")
        said = tuple(Noted(c["subject"], c["attribute"], c["value"], c["status"]) for c in row["claims"])
        message = LifeMessage(text, "", frozenset(), said)
        found.append(AnnotatedLife(f"{row['set']}-{number}", row["lang"], {}, (message,)))
    return found


def turn_text(root: Path, row: Mapping[str, Any]) -> str:
    """Return the text of an annotated turn. Raises InputError when it cannot be found."""
    file = root / row["file"]
    path = file if file.is_file() else root / row["set"] / row["file"]
    try:
        return _TURNS[row["set"]](_loaded(path), row["where"])
    except (OSError, LookupError, StopIteration, TypeError, ValueError) as error:
        raise InputError(f"{path} has no turn {row['where']} ({error!r}): give the folder of the data") from error


@functools.lru_cache(maxsize=4)
def _loaded(path: Path) -> Any:
    text = path.read_text("utf-8")
    if str(path).endswith(_JSON_LINES):
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    return json.loads(text)


def _msc(data: Any, where: Mapping[str, Any]) -> str:
    return str(data[where["episode"]]["dialog"][where["turn"]]["text"])


def _locomo(data: Any, where: Mapping[str, Any]) -> str:
    talk = next(c["conversation"] for c in data if c["sample_id"] == where["conversation"])
    session = talk["session_" + where["turn"].partition(":")[0][1:]]
    return next(str(t["text"]) for t in session if t["dia_id"] == where["turn"])


def _longmemeval(data: Any, where: Mapping[str, Any]) -> str:
    item = next(q for q in data if q["question_id"] == where["question"])
    return str(item["haystack_sessions"][where["session"]][where["turn"]]["content"])


def _beam(data: Any, where: Mapping[str, Any]) -> str:
    batch = next(b for b in data if b["batch_number"] == where["batch"])
    turns = (t for group in batch["turns"] for t in group)
    return next(str(t["content"]) for t in turns if t["id"] == where["id"] and t["role"] == "user")


def _realmem(data: Any, where: Mapping[str, Any]) -> str:
    return str(data["dialogues"][where["session"]]["dialogue_turns"][where["turn"]]["content"])


def _prefeval(data: Any, where: Mapping[str, Any]) -> str:
    if "item" in where:
        return str(data[where["item"]][where["field"]])
    return str(data[where["conversation"]]["conversation"][where["turn"]]["content"])


def _carecall(data: Any, where: Mapping[str, Any]) -> str:
    sessions = (session for episode in data for session in episode)
    return next(str(s["dialogue"][where["turn"]]["text"]) for s in sessions if s["guid"] == where["guid"])


def _dulemon(data: Any, where: Mapping[str, Any]) -> str:
    return _SPEAKER.sub("", data[where["line"]]["conversation"][where["turn"]].partition("\t")[0])


def _kbp(data: Any, where: Mapping[str, Any]) -> str:
    return str(data[where["dialogue"]]["conversation"][where["turn"]][where["speaker"]])


def _memorybank(data: Any, where: Mapping[str, Any]) -> str:
    return str(data[where["user"]]["history"][where["date"]][where["turn"]]["query"])


_TURNS: Mapping[str, _Found] = {
    "msc": _msc, "locomo": _locomo, "longmemeval": _longmemeval, "beam": _beam, "realmem": _realmem,
    "prefeval": _prefeval, "carecall": _carecall, "dulemon": _dulemon, "kbp": _kbp, "memorybank_cn": _memorybank,
}  # fmt: skip
