"""A stream of edits, week by week, with known truth (Wang et al. 2024, table 3).

Each person tells facts, then changes, corrects or ends them over some weeks, in many
words; friends' facts, suppositions, quotes and small talk stand between. After each week
every change of that week is asked about: is a value that was given up still given as true,
and is the one that holds now found? And is any fact that still holds taken for over?
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any

from nyima.assistant import Assistant
from nyima.domain.conversation import Role
from nyima.domain.evidence import Evidence
from nyima.domain.ports import ChatModel, Embedder
from nyima.language.words import fold
from nyima.memory import Memory, Said
from nyima.testing import FixedClock
from nyima.write.jobs import turn_id
from nyima_lab.measure.stats import interval

__all__ = ["Life", "WeekQuestion", "make_life", "run_weeks"]

_START = datetime(2026, 3, 2, 18, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Topic:
    tell: tuple[str, ...]
    change: tuple[str, ...]
    end: tuple[str, ...]
    ask: tuple[str, ...]
    values: tuple[str, ...]


_DATA = json.loads((resources.files("nyima_lab.measure") / "lives.json").read_text("utf-8"))
_TOPICS = {name: _Topic(**{k: tuple(v) for k, v in row.items()}) for name, row in _DATA["topics"].items()}
_FRIENDS: tuple[str, ...] = tuple(_DATA["friends"])
_FRIEND: dict[str, str] = _DATA["friend"]
_IF: dict[str, str] = _DATA["supposed"]
_IDLE: tuple[str, ...] = tuple(_DATA["idle"])


@dataclass(frozen=True, slots=True)
class WeekQuestion:
    """A question after a week: the topic, the value that holds (empty when it was ended),
    and the values that no longer do. ``turn`` is the one that changed it."""

    topic: str
    week: int
    question: str
    now: str
    stale: tuple[str, ...]
    turn: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Life:
    """One person's weeks: turns, and what is asked after each week."""

    seed: int
    weeks: tuple[tuple[Said, ...], ...]
    asked: tuple[tuple[WeekQuestion, ...], ...]

    @property
    def changes(self) -> int:
        """How many changes it has."""
        return sum(a.changed for week in self.asked for a in week)


def make_life(seed: int, weeks: int = 4, a_week: int = 10) -> Life:
    """A life with ``a_week`` changes a week; equal seeds make equal lives."""
    draw = random.Random(seed)  # noqa: S311 - a generator of tests
    values = {name: draw.sample(t.values, len(t.values)) for name, t in _TOPICS.items()}
    now: dict[str, str] = {}
    past: dict[str, list[str]] = {name: [] for name in _TOPICS}
    told: list[tuple[Said, ...]] = []
    asked: list[tuple[WeekQuestion, ...]] = []
    for week in range(weeks):
        lines: list[tuple[str, str, bool]] = []
        changing = draw.sample(sorted(_TOPICS), min(a_week, len(_TOPICS)))
        if week == 0:
            for name, topic in _TOPICS.items():
                now[name] = values[name].pop()
                lines.append((name, draw.choice(topic.tell).format(now[name]), False))
            draw.shuffle(lines)
        lines += [(name, _changed(name, draw, values, now, past), True) for name in changing]
        turns, last = _week(seed, week, lines, draw, now, past)
        told.append(turns)
        live = [n for n in _TOPICS if n not in changing]
        asked.append(
            tuple(
                WeekQuestion(
                    n,
                    week + 1,
                    draw.choice(_TOPICS[n].ask),
                    now[n],
                    tuple(v for v in past[n] if v != now[n]),
                    last.get(n, ""),
                    n in changing,
                )
                for n in (*changing, *live)
            )
        )
    return Life(seed, tuple(told), tuple(asked))


def _changed(
    name: str, draw: random.Random, values: dict[str, list[str]], now: dict[str, str], past: dict[str, list[str]]
) -> str:
    topic, old = _TOPICS[name], now[name]
    if old:
        past[name].append(old)
    if topic.end and old and draw.random() < 0.2:
        now[name] = ""
        return draw.choice(topic.end).format(old=old)
    if not values[name]:
        values[name] = [v for v in topic.values if v != old]
        draw.shuffle(values[name])
    now[name] = values[name].pop()
    past[name] = [v for v in past[name] if v != now[name]]
    return draw.choice(topic.change if old else topic.tell).format(now[name])


def _week(
    seed: int,
    week: int,
    lines: Sequence[tuple[str, str, bool]],
    draw: random.Random,
    now: dict[str, str],
    past: dict[str, list[str]],
) -> tuple[tuple[Said, ...], dict[str, str]]:
    texts: list[tuple[str, str]] = []
    for name, text, _ in lines:
        texts.append((name, text))
        chance = draw.random()
        other = draw.choice(sorted(_FRIEND))
        free = [v for v in _TOPICS[other].values if v != now.get(other) and v not in past[other]]
        if chance < 0.3 and free:
            texts.append(("", _FRIEND[other].format(f=draw.choice(_FRIENDS), v=draw.choice(free))))
        elif chance < 0.5:
            kind = draw.choice(sorted(_IF))
            topic = kind.rstrip("2")
            free = [v for v in _TOPICS[topic].values if v != now.get(topic) and v not in past[topic]]
            texts.append(("", _IF[kind].format(v=draw.choice(free)) if free else draw.choice(_IDLE)))
        elif chance < 0.7:
            texts.append(("", draw.choice(_IDLE)))
    start = _START + timedelta(days=7 * week)
    said: list[Said] = []
    last: dict[str, str] = {}
    for i, (name, text) in enumerate(texts):
        at = start + timedelta(days=i * 5 // max(1, len(texts)), minutes=3 * i)
        said.append(Said(text, Role.USER, at, id=f"{week}:{i}"))
        if name:
            last[name] = turn_id(f"{seed}-{week}", f"{week}:{i}")
    return tuple(said), last


async def run_weeks(
    seeds: Sequence[int],
    recipe: str,
    embedder: Embedder | None,
    *,
    model: ChatModel | None = None,
    sample: int = 0,
    note: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Play the lives through a recipe, without a model that writes. Rates by week: ``stale``
    (a given-up value stands as true), ``found`` (the one that holds is found), ``retired``
    (a fact that holds is taken for over), ``time`` of an edit in ms. With a ``model`` a
    seeded ``sample`` of the changes is answered."""
    rows: list[dict[str, Any]] = []
    every = [(s, a) for s in seeds for a in [x for w in make_life(s).asked for x in w] if a.changed]
    chosen = set(random.Random(7).sample(range(len(every)), min(sample, len(every)))) if sample else set[int]()  # noqa: S311
    wanted = {(every[i][0], every[i][1].week, every[i][1].topic) for i in chosen}
    for done, seed in enumerate(seeds, 1):
        life = make_life(seed)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            clock = FixedClock(_START)
            async with Memory.open(
                Path(folder) / "m.db",
                user="eval",
                recipe=recipe,
                model=model or "none",
                embedder=embedder or "none",
                clock=clock,
            ) as memory:
                for week, turns in enumerate(life.weeks):
                    for turn in turns:
                        clock.at = turn.at or clock.at
                        await memory.remember([turn], session=f"{seed}-{week}", owed=True)
                        await memory.ingest.drain(memory.scope, "weeks", kinds=_kinds(recipe, model))
                    clock.at = _START + timedelta(days=7 * week + 6)
                    for asked in life.asked[week]:
                        row = await _judged(memory, asked)
                        if model is not None and (seed, asked.week, asked.topic) in wanted and asked.changed:
                            row["answer"] = await _answer(memory, asked.question)
                            row["right"] = _right(row["answer"], asked)
                        rows.append(
                            {"seed": seed, "week": asked.week, "topic": asked.topic, "changed": asked.changed, **row}
                        )
        note(done, len(seeds))
    return {
        "recipe": recipe,
        "lives": len(seeds),
        "changes": sum(r["changed"] for r in rows),
        "weeks": _table(rows),
        "rows": rows,
    }


def _kinds(recipe: str, model: ChatModel | None) -> tuple[str, ...]:
    """Notes are made by the rule here, so that a model only answers."""
    return ("graph", "mend") if model is not None and recipe != "conditional" else ()


def _table(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    weeks = sorted({r["week"] for r in rows})
    out: list[dict[str, Any]] = []
    for week in (*weeks, 0):
        part = [r for r in rows if week in {0, r["week"]}]
        changed = [r for r in part if r["changed"]]
        line: dict[str, Any] = {"week": week or "all", "changes": len(changed)}
        for name, values, groups in (
            ("stale", [r["stale"] for r in changed], changed),
            (
                "found",
                [r["found"] for r in changed if r["found"] is not None],
                [r for r in changed if r["found"] is not None],
            ),
            (
                "retired",
                [r["retired"] for r in part if r["retired"] is not None],
                [r for r in part if r["retired"] is not None],
            ),
            ("right", [r["right"] for r in changed if "right" in r], [r for r in changed if "right" in r]),
        ):
            if values:
                found = interval([float(v) for v in values], [str(r["seed"]) for r in groups])
                numbers = {"mean": found.mean, "low": found.low, "high": found.high}
                line[name] = {**{k: round(v, 4) for k, v in numbers.items()}, "n": len(values)}
        out.append(line)
    return out


async def _judged(memory: Memory, asked: WeekQuestion) -> dict[str, Any]:
    found = (await memory.recall(asked.question, memory.recipe.evidence, log=False)).kept
    before = [e for e in found if asked.turn not in e.record.provenance.turns or len(e.record.provenance.turns) > 1]
    stale = any(_given(e, v) for v in asked.stale for e in before)
    now = any(_given(e, asked.now) for e in found) if asked.now else None
    over = [
        e
        for e in found
        if asked.now
        and fold(asked.now) in fold(e.text)
        and not _given(e, asked.now)
        and asked.turn in e.record.provenance.turns
    ]
    return {"stale": stale, "found": now, "retired": bool(over) if asked.now else None}


def _given(piece: Evidence, value: str) -> bool:
    """Whether a piece gives a value of the user as true now; what is said of a friend or
    only supposed is not the user's."""
    text = fold(piece.text)
    if fold(value) not in text or piece.stale is not None:
        return False
    if any(
        mark in text
        for mark in ("friend", "if i ", "i would", "imagine", "said i should", "would you", "maybe", "i might")
    ):
        return False
    return not any(fold(value) in fold(e) for e in piece.ended)


async def _answer(memory: Memory, question: str) -> str:
    assistant = Assistant(memory, private=True)
    try:
        return (await assistant.reply(question)).text
    finally:
        assistant.private = False


def _right(answer: str, asked: WeekQuestion) -> bool:
    """The value that holds is in the answer and no other of its kind as the present one; for
    what has ended, no old value stands there as true."""
    said = fold(answer)
    old = [v for v in asked.stale if fold(v) in said]
    if asked.now:
        return fold(asked.now) in said and (not old or "no longer" in said or "was" in said or "used to" in said)
    hedged = any(
        w in said
        for w in (
            "no longer",
            "not ",
            "n't",
            "any more",
            "anymore",
            "sold",
            "ended",
            "broke",
            "cancel",
            "lost",
            "quit",
            "stopped",
            "unknown",
        )
    )
    return not old or hedged
