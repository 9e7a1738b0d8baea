"""Exact match of forms, reminders and places, with what was told read by the shipped path
or stated by hand (Wang et al. 2024, tables 2 and 3)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from nyima.app.environment import build, load_settings
from nyima.domain.conversation import Role
from nyima.domain.ports import ChatModel, Embedder
from nyima.domain.records import Claim
from nyima.errors import InputError
from nyima.language.times.moment import read_moment
from nyima.language.words import fold
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory, Said
from nyima.services import destination, fill, read_form, upcoming
from nyima.testing import FixedClock
from nyima.write.entities import plain_name
from nyima_lab.measure.cases import located
from nyima_lab.measure.stats import interval

__all__ = ["SKILLS", "read_skill_cases", "run_skill"]

SKILLS = ("forms", "reminders", "travel")
_ZONE = "Europe/Lisbon"
_PLACES = frozenset({"address", "home_address", "name"})


def read_skill_cases(path: Path) -> list[Mapping[str, Any]]:
    """A file of JSON lines: day, statements and what is expected."""
    found: list[Mapping[str, Any]] = []
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if line.strip():
            with located(f"{path}, line {number}"):
                row = json.loads(line)
                found.append({**row, "id": row["id"], "day": row["day"], "statements": row["statements"]})
    if not found:
        raise InputError(f"{path} has no cases: give JSON lines")
    return found


async def run_skill(
    skill: str,
    cases: Sequence[Mapping[str, Any]],
    embedder: Embedder | None,
    *,
    by_hand: bool,
    model: ChatModel | None = None,
    note: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Tell each case to a memory of its own and compare what the skill says."""
    if skill not in SKILLS:
        raise InputError(f"there is no skill {skill!r}: choose one of {', '.join(SKILLS)}")
    right: list[float] = []
    groups: list[str] = []
    wrong: list[dict[str, Any]] = []
    for done, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            clock = FixedClock(datetime.fromisoformat(case["statements"][0]["day"] + "T09:00:00+00:00"))
            settings = load_settings(db=Path(folder) / "case.db", user="eval", zone=_ZONE)
            memory = Memory(build(settings, chat=model, embedder=embedder, clock=clock))
            try:
                for number, statement in enumerate(case["statements"]):
                    await _tell(memory, number, statement, clock, by_hand=by_hand, events=skill == "reminders")
                clock.at = datetime.fromisoformat(case["day"] + "T12:00:00+00:00")
                for name, good, got in await _judged(memory, skill, case):
                    right.append(float(good))
                    groups.append(case["id"])
                    if not good:
                        wrong.append({"case": case["id"], "what": name, "got": got})
            finally:
                await memory.close()
        note(done, len(cases))
    found = interval(right, groups)
    return {
        "skill": skill, "by_hand": by_hand, "items": len(right), "exact": round(found.mean, 4),
        "low": round(found.low, 4), "high": round(found.high, 4), "wrong": wrong,
    }  # fmt: skip


async def _tell(
    memory: Memory, number: int, statement: Mapping[str, Any], clock: FixedClock, *, by_hand: bool, events: bool
) -> None:
    at = datetime.fromisoformat(statement["day"] + "T09:00:00+00:00")
    clock.at = max(at, clock.at + timedelta(seconds=1))
    if not by_hand:
        said = Said(statement["text"], Role.USER, at, id=f"{number}")
        await memory.remember([said], session=f"s{number}", owed=memory.parts.chat is not None or None)
        await memory.drain()
        return
    row = statement["record"]
    label = row["label"]
    stated = await _stated(memory, Statement(row["head"], label.replace("_", " "), row["tail"], since=clock.at))
    when = _when(row)
    if events and "cancel" in f"{label} {row['tail']}":
        live = await memory.claims()
        for claim in [c for c in live if c.attribute == "takes place" and c.id != stated.id][-1:]:
            await memory.retire(claim.id)
    elif events and when and label not in _PLACES:
        thing = row["head"] if row["head"] != "user" else f"user's {label.replace('_', ' ')}"
        await _stated(memory, Statement(thing, "takes place", when, since=clock.at))


async def _stated(memory: Memory, said: Statement) -> Claim:
    """State a claim; in these cases a second one about the same thing is a change of the first."""
    slot = (plain_name(said.subject), said.attribute)
    return await memory.state(said, replaces=[c.id for c in await memory.claims() if (c.name, c.attribute) == slot])


def _when(row: Mapping[str, Any]) -> str:
    """The event time of a hand-made record as the graph names it."""
    if not row.get("from"):
        return ""
    zone = ZoneInfo(_ZONE)
    text = str(row["from"])
    if len(text) <= 10:
        return text
    start = datetime.fromisoformat(text).astimezone(zone)
    end = datetime.fromisoformat(str(row["to"])).astimezone(zone) if row.get("to") else None
    first = f"{start:%Y-%m-%d %H:%M}"
    name = f"{first}/{end:%Y-%m-%d %H:%M}" if end and end > start else first
    return name if read_moment(name) else first


async def _judged(memory: Memory, skill: str, case: Mapping[str, Any]) -> list[tuple[str, bool, Any]]:
    if skill == "forms":
        filled = await fill(memory, read_form(json.dumps(case["form"])))
        return [
            (f.field.name, _same(f.value, case["expect"][f.field.name]), f.value)
            for f in filled
            if f.field.name in case["expect"]
        ]
    if skill == "reminders":
        found = await upcoming(memory, int(case["days"]))
        zone = ZoneInfo(_ZONE)
        got = [
            (
                r.title,
                f"{r.start.astimezone(zone):%Y-%m-%d}" + ("" if r.whole_day else f"T{r.start.astimezone(zone):%H:%M}"),
                r.evidence.text,
            )
            for r in found
        ]
        expected = case["expect"]
        good = len(got) == len(expected) and all(
            any(
                start == e["start"] and all(fold(w) in fold(title + " " + text) for w in e["title_has"])
                for title, start, text in got
            )
            for e in expected
        )
        return [("events", good, [g[:2] for g in got])]
    where = await destination(memory, str(case["ask"]))
    choices = sorted(p.address for p in where.choices)
    if case["expect"] is not None:
        return [
            (
                "place",
                where.place is not None and where.place.address == case["expect"],
                where.place.address if where.place else choices,
            )
        ]
    return [
        (
            "place",
            where.place is None and choices == sorted(case.get("choices") or ()),
            where.place.address if where.place else choices,
        )
    ]


def _same(got: Any, expected: Any) -> bool:
    if isinstance(got, str) and isinstance(expected, str):
        return fold(got.strip()) == fold(expected.strip())
    return bool(got == expected) and isinstance(got, bool) == isinstance(expected, bool)
