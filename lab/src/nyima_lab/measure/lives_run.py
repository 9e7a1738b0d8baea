"""Measures what a message does to the claims of a life, through ``Memory.remember``: it counts the claims
that are closed, those that are labelled, and those that are added."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nyima.domain.conversation import Role
from nyima.domain.evidence import Noted
from nyima.domain.ports import ChatModel, Embedder, Verifier
from nyima.domain.records import ME, Claim
from nyima.language.words import content_words, fold
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory, Said
from nyima.testing import FixedClock
from nyima_lab.measure.stats import interval
from nyima_lab.readers.lives import AnnotatedLife, LifeMessage

__all__ = ["agrees", "report_of_lives", "run_lives"]

_START = datetime(2026, 3, 2, 9, tzinfo=UTC)
_ALIKE = 0.5
_NOW = {"holds", "planned"}


@dataclass(frozen=True, slots=True)
class _Came:
    """The result of one message. ``over``, ``closed`` and ``labelled`` are ids of claims. ``found`` of the
    ``stated`` claims were read, and ``right`` of the ``read`` claims were stated."""

    life: str
    lang: str
    text: str
    over: tuple[str, ...]
    closed: tuple[str, ...]
    labelled: tuple[str, ...]
    stated: int
    found: int
    read: int
    right: int
    claims: tuple[str, ...] = field(default=())


def agrees(read: Claim, gold: Noted) -> bool:
    """Return whether a claim that was read says what an annotated one says: of the user or of somebody
    else, now or not. The values, or else the claims as a whole, must share half of their words (F1)."""
    if (read.subject == ME) != (fold(gold.who) == ME):
        return False
    if (read.status.value in _NOW) != (gold.status in _NOW):
        return False
    ours, theirs = _said(read.name, read.attribute, read.value), _said(gold.who, gold.what, gold.value)
    value, other = set(content_words(read.value)), set(content_words(gold.value))
    return _f1(value, other) >= _ALIKE or _f1(ours, theirs) >= _ALIKE


def _said(who: str, what: str, value: str) -> set[str]:
    return set(content_words(f"{who} {what} {value}")) - {ME}


def _f1(one: set[str], other: set[str]) -> float:
    both = len(one & other)
    return 2 * both / (len(one) + len(other)) if both else 0.0


async def run_lives(
    lives: Sequence[AnnotatedLife], embedder: Embedder | None, model: ChatModel, *, verifier: Verifier | None = None,
    note: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:  # fmt: skip
    """Give each message to a memory that has the life's claims and nothing else. Returns the figures by
    language (see ``report_of_lives``), and a row for each message."""
    rows: list[dict[str, Any]] = []
    total = sum(len(life.messages) for life in lives)
    for life in lives:
        for message in life.messages:
            rows.append(asdict(await _came(life, message, embedder, model, verifier)))
            note(len(rows), total)
    return {**report_of_lives(rows), "rows": rows}


async def _came(
    life: AnnotatedLife, message: LifeMessage, embedder: Embedder | None, model: ChatModel, verifier: Verifier | None
) -> _Came:
    clock = FixedClock(_START)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        async with Memory.open(
            Path(folder) / "life.db",
            user="eval",
            model=model,
            embedder=embedder or "none",
            clock=clock,
            verifier=verifier,
        ) as memory:
            stated = {
                id: await memory.state(Statement(claim.who, claim.what, claim.value))
                for id, claim in life.claims.items()
            }
            clock.forward(days=30)
            before = [Said(message.before, Role.ASSISTANT, clock.now(), id="0")] if message.before else []
            clock.forward(minutes=1)
            await memory.remember([*before, Said(message.text, Role.USER, clock.now(), id="1")], session="s")
            await memory.drain()
            now = await memory.claims()
    held = {id: next((c for c in now if c.says_the_same(old)), None) for id, old in stated.items()}
    old = {c.id for c in held.values() if c is not None}
    read = [c for c in now if c.id not in old]
    return _Came(
        life.id,
        life.lang,
        message.text,
        tuple(sorted(message.over)),
        tuple(sorted(id for id, c in held.items() if c is None)),
        tuple(sorted(id for id, c in held.items() if c is not None and c.stale)),
        len(message.said),
        sum(any(agrees(c, gold) for c in read) for gold in message.said),
        len(read),
        sum(any(agrees(c, gold) for gold in message.said) for c in read),
        tuple(c.text for c in read),
    )


def report_of_lives(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of all rows, and of each language: of the claims that were over, how many were closed and
    how many at least labelled; of those closed, how many were over; precision and recall of what was read.
    Intervals are over messages of one life drawn together."""
    parts: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        parts["all"].append(row)
        parts[row["lang"]].append(row)
    return {name: _figures(of) for name, of in parts.items()}


def _figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    marks: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for row in rows:
        closed, noticed = set(row["closed"]), {*row["closed"], *row["labelled"]}
        for id in row["over"]:
            marks["over_closed"].append((float(id in closed), row["life"]))
            marks["over_noticed"].append((float(id in noticed), row["life"]))
        for id in closed:
            marks["closed_right"].append((float(id in row["over"]), row["life"]))
        for id in noticed:
            marks["noticed_right"].append((float(id in row["over"]), row["life"]))
        marks["recall"] += [(float(n < row["found"]), row["life"]) for n in range(row["stated"])]
        marks["precision"] += [(float(n < row["right"]), row["life"]) for n in range(row["read"])]
    found: dict[str, Any] = {"messages": len(rows)}
    for name, values in marks.items():
        of = interval([v for v, _ in values], [life for _, life in values])
        found[name] = {"mean": round(of.mean, 4), "low": round(of.low, 4), "high": round(of.high, 4), "n": of.n}
    return found
