"""Cascades: something changes or is given up, and what rests on it must follow.

A case is a short story with a question. It is handled when no memory that the question
finds gives a stale value as true: it is closed, left out, or labelled (the turn that says
that it is over may name it); when the value that holds now is found; and when other facts
of the story are still there. After an erase the value must not be found at all.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from nyima.assistant import Assistant
from nyima.domain.conversation import Role
from nyima.domain.evidence import Budget, Evidence
from nyima.domain.ports import ChatModel, Embedder, RecordFilter
from nyima.domain.records import MemoryRecord
from nyima.errors import InputError
from nyima.language.words import fold
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory, Said
from nyima.testing import FixedClock
from nyima.write.jobs import turn_id
from nyima_lab.measure.cases import located
from nyima_lab.measure.stats import interval

__all__ = ["CascadeCase", "Outcome", "read_cascades", "run_cascades"]


@dataclass(frozen=True, slots=True)
class CascadeCase:
    """A case. ``records`` are its facts by hand, for runs without a model's reading."""

    id: str
    kind: str
    turns: tuple[tuple[datetime, str], ...]
    forget: str
    ask: str
    stale: tuple[str, ...]
    now: tuple[str, ...]
    keep: tuple[str, ...]
    records: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case: ``stale`` values given as true, ``missed`` ones that hold now,
    ``lost`` facts of the same story."""

    case: str
    kind: str
    stale: tuple[str, ...]
    missed: tuple[str, ...]
    lost: tuple[str, ...]
    answer: str = ""

    @property
    def handled(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.stale or self.missed or self.lost)


def read_cascades(path: Path) -> list[CascadeCase]:
    """A file of JSON lines. Raises InputError with the line."""
    cases: list[CascadeCase] = []
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if not line.strip():
            continue
        with located(f"{path}, line {number}"):
            row = json.loads(line)
            turns = tuple((datetime.fromisoformat(t["day"] + "T10:00:00+00:00"), str(t["text"])) for t in row["turns"])
            lists = {k: tuple(map(str, row[k])) for k in ("stale", "now", "keep")}
            cases.append(
                CascadeCase(
                    row["id"],
                    row["kind"],
                    turns,
                    row.get("forget") or "",
                    row["ask"],
                    **lists,
                    records=tuple(row["records"]),
                )
            )
    if not cases:
        raise InputError(f"{path} has no cases: give JSON lines")
    return cases


async def run_cascades(
    cases: Sequence[CascadeCase],
    embedder: Embedder | None,
    *,
    by_hand: bool,
    recipe: str = "default",
    models: tuple[ChatModel | None, ChatModel | None] = (None, None),
    note: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Play each case through the shipped path and judge what the question finds.

    ``by_hand`` states the facts through ``Memory.state``; else the turns are read, with a
    model when there is one. ``models`` answer the question, and write the notes."""
    outcomes: list[Outcome] = []
    for done, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            clock = FixedClock(case.turns[0][0])
            db = Path(folder) / "case.db"
            async with Memory.open(
                db, user="eval", recipe=recipe, model=models[0] or "none", embedder=embedder or "none", clock=clock
            ) as memory:
                memory.parts = replace(memory.parts, writer_chat=models[1])
                await _tell(memory, case, clock, by_hand=by_hand)
                outcomes.append(await _judge(memory, case))
        note(done, len(cases))
    kinds = ["all", *dict.fromkeys(o.kind for o in outcomes)]
    shares = {}
    for kind in kinds:
        values = [float(o.handled) for o in outcomes if kind in {"all", o.kind}]
        found = interval(values)
        shares[kind] = {"cases": len(values), "handled": found.mean, "low": found.low, "high": found.high}
    failed = [
        {"case": o.case, "stale": list(o.stale), "missed": list(o.missed), "lost": list(o.lost), "answer": o.answer}
        for o in outcomes
        if not o.handled
    ]
    return {"recipe": recipe, "by_hand": by_hand, "shares": shares, "failed": failed}


async def _tell(memory: Memory, case: CascadeCase, clock: FixedClock, *, by_hand: bool) -> None:
    """The story, a session a turn."""
    made: list[str | None] = []
    for number, (at, text) in enumerate(case.turns):
        clock.at = at
        stored = await memory.remember(
            [Said(text, Role.USER, at, id=f"{number}")], session=f"s{number}", owed=not by_hand
        )
        if by_hand:
            for row in (r for r in case.records if r["turn"] == number):
                clock.forward(seconds=1)
                made.append(await _by_hand(memory, row, made, stored.turns[0].id))
        await memory.drain()
    clock.forward(days=1)
    if case.forget:
        for _ in range(2):
            if await memory.meant(case.forget):
                await memory.forget(query=case.forget)
    await memory.drain()


async def _by_hand(memory: Memory, row: Mapping[str, Any], made: Sequence[str | None], turn: str) -> str | None:
    if "retires" in row:
        old = await _current(memory, made[row["retires"]])
        if old is not None:
            await memory.retire(old.id)
        return None
    rests = tuple(i for r in row.get("rests_on") or () if (i := made[r]))
    said = Statement(row["head"], row["label"].replace("_", " "), row["tail"], depends_on=rests, turn=turn)
    old = await _current(memory, made[row["replaces"]]) if row.get("replaces") is not None else None
    return (await memory.state(said, replaces=[old.id] if old else [])).id


async def _current(memory: Memory, id: str | None) -> MemoryRecord | None:
    """The open record that a record has become."""
    where = RecordFilter(kinds=("claim",))
    live = {r.id: r for r in await memory.store.records(memory.scope, where)}
    return live.get(id or "") or next((r for r in live.values() if r.supersedes == id), None)


async def _judge(memory: Memory, case: CascadeCase) -> Outcome:
    found = (await memory.recall(case.ask, Budget(10, 10_000))).kept
    ending = {r["turn"] for r in case.records if "retires" in r or r.get("replaces") is not None}
    tells = {turn_id(f"s{n}", f"{n}") for n in ending}
    before = [e for e in found if not {*e.record.provenance.turns} or {*e.record.provenance.turns} - tells]
    stale = tuple(v for v in case.stale if any(_given(e, v) for e in before))
    if case.forget:
        every = [t.text for t in await memory.turns()] + [r.text for r in await memory.records(retired=True)]
        stale += tuple(v for v in case.stale if any(fold(v) in fold(text) for text in every))
    missed = tuple(v for v in case.now if not any(_given(e, v) for e in found))
    lost: list[str] = []
    for value in case.keep:
        kept = (await memory.recall(value, Budget(10, 10_000), log=False)).kept
        if not any(_given(e, value) for e in kept):
            lost.append(value)
    answer = await _answer(memory, case.ask) if memory.parts.chat is not None else ""
    return Outcome(case.id, case.kind, stale, missed, tuple(lost), answer)


def _given(piece: Evidence, value: str) -> bool:
    """Whether a piece gives a value as true now."""
    if fold(value) not in fold(piece.text) or piece.stale is not None:
        return False
    value = re.sub(r"^(?:the|a|an|my) ", "", value, flags=re.IGNORECASE)
    ended = {fold(e) for e in piece.ended}
    return not any(fold(value) in e or e in fold(value) for e in ended) if ended else True


async def _answer(memory: Memory, ask: str) -> str:
    assistant = Assistant(memory, private=True)
    try:
        return (await assistant.reply(ask)).text
    finally:
        assistant.private = False
