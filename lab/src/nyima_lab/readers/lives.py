"""Lives: claims about a person, and messages with what each states and makes untrue.

One life is one JSON line::

    {"life": "K1-01", "lang": "en", "claims": [{"id": "c1", "subject": "user", "attribute": "lives in", "value": "Leeds"}],
     "messages": [{"before": "", "text": "…", "over": ["c1"],
                   "said": [{"subject": "user", "attribute": "lives in", "value": "Manchester", "status": "holds"}]}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nyima.domain.evidence import Noted
from nyima.errors import InputError

__all__ = ["AnnotatedLife", "LifeMessage", "read_lives"]


@dataclass(frozen=True, slots=True)
class LifeMessage:
    """A message, what was said to the user before it, the ids of the claims that it makes untrue, and the
    claims that it states. ``unsaid`` are claims that its words suggest and that it does not state."""

    text: str
    before: str
    over: frozenset[str]
    said: tuple[Noted, ...]
    unsaid: tuple[Noted, ...] = ()


@dataclass(frozen=True, slots=True)
class AnnotatedLife:
    """One person's claims by id, and messages that are each judged against these claims alone."""

    id: str
    lang: str
    claims: Mapping[str, Noted]
    messages: tuple[LifeMessage, ...]


def read_lives(paths: Iterable[Path]) -> list[AnnotatedLife]:
    """Read files of lives. Raises InputError with the line that cannot be read."""
    found: list[AnnotatedLife] = []
    for path in paths:
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
            if not line.strip():
                continue
            try:
                found.append(_life(json.loads(line)))
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise InputError(f"{path}, line {number}: {error!r}: give life, claims and messages") from error
    if not found:
        raise InputError("the files hold no life: give at least one")
    return found


def _life(row: Mapping[str, Any]) -> AnnotatedLife:
    claims = {c["id"]: _noted(c) for c in row["claims"]}
    messages = tuple(
        LifeMessage(
            m["text"],
            m.get("before") or "",
            frozenset(m["over"]),
            tuple(map(_noted, m["said"])),
            tuple(map(_noted, m.get("unsaid", ()))),
        )
        for m in row["messages"]
    )
    unknown = {id for m in messages for id in m.over} - set(claims)
    if unknown:
        raise ValueError(f"there is no claim {min(unknown)}")
    return AnnotatedLife(row["life"], row.get("lang", "en"), claims, messages)


def _noted(row: Mapping[str, str]) -> Noted:
    return Noted(row["subject"], row["attribute"], row["value"], row.get("status", "holds"))
