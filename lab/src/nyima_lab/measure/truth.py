"""Does what is believed stay true? Cases by others, scored from claims and from recall.

One case is one JSON line::

    {"id": "T001", "lang": "en", "cat": "change", "turns": [{"date": "2024-01-06", "text": "…", "role": "user"}],
     "cur": ["…"], "stale": ["…"], "keep": ["…"], "never": ["…"], "q": "…"}

``cur``, ``stale``, ``keep`` and ``never`` are regular expressions without case, searched in "subject attribute
value" of claims. A claim holds when its status is ``holds`` and it is open at the last turn; its label is
``uncertain`` when it is marked so.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

from nyima.domain.conversation import Role
from nyima.domain.evidence import Budget, Evidence
from nyima.domain.ports import ChatModel, Embedder, Verifier
from nyima.domain.records import ME, Claim, Status
from nyima.errors import InputError
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory, Said
from nyima.read.outdating import Outdating
from nyima.read.trace import label_of
from nyima.testing import FixedClock
from nyima_lab.measure.stats import interval

__all__ = ["RATES", "TruthCase", "read_truth", "run_truth", "score"]

RATES = (
    "stale", "missed", "wrongly_retired", "wrongly_labelled", "invented", "right", "newest_first", "valid_first",
)  # fmt: skip
_LISTS = ("cur", "stale", "keep", "never")
_NOT_NEWEST = frozenset({"plan", "third", "irony", "temporary", "hypo", "negation"})
"""Categories whose newest turn is not the answer: there the valid statement must come first."""
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class TruthCase:
    """A case with its patterns compiled."""

    id: str
    lang: str
    cat: str
    turns: tuple[tuple[datetime, Role, str], ...]
    patterns: Mapping[str, tuple[re.Pattern[str], ...]]
    question: str


@dataclass(frozen=True, slots=True)
class Marked:
    """The marks of one case: 1.0 or 0.0 for each rate that it counts in."""

    case: TruthCase
    marks: Mapping[str, float]
    claims: tuple[str, ...] = ()
    wrong: Mapping[str, list[str]] = field(default_factory=dict[str, list[str]])


def read_truth(path: Path) -> list[TruthCase]:
    """Read a file of cases. Raises InputError with the line that cannot be read."""
    found: list[TruthCase] = []
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            start = [datetime.combine(datetime.fromisoformat(t["date"]).date(), time(9), UTC) for t in row["turns"]]
            turns: list[tuple[datetime, Role, str]] = []
            for at, turn in zip(start, row["turns"], strict=True):
                later = max(at, turns[-1][0] + timedelta(minutes=5)) if turns else at
                turns.append((later, Role(turn.get("role", "user")), str(turn["text"])))
            patterns = {name: tuple(re.compile(p, re.IGNORECASE) for p in row.get(name, ())) for name in _LISTS}
            found.append(
                TruthCase(
                    row["id"], row.get("lang", "en"), row.get("cat", ""), tuple(turns), patterns, row.get("q", "")
                )
            )
        except (ValueError, LookupError, TypeError, AttributeError, re.error) as error:
            raise InputError(
                f"{path}, line {number}: {error!r}: give id, turns with date and text, and patterns"
            ) from error
    if not found:
        raise InputError(f"{path} has no case")
    return found


def _said(claim: Claim) -> str:
    return f"{claim.name} {claim.attribute} {claim.value}"


def _hits(patterns: Sequence[re.Pattern[str]], texts: Sequence[str]) -> list[str]:
    return [p.pattern for p in patterns if any(p.search(text) for text in texts)]


def score(case: TruthCase, claims: Sequence[Claim], kept: Sequence[Evidence]) -> Marked:
    """Score a case from all claims that there ever were, and from what its question recalls."""
    open_now = [c for c in claims if c.recorded.until is None and c.status is Status.HOLDS]
    sure = [_said(c) for c in open_now if not c.stale]
    every = [_said(c) for c in open_now]
    closed = [_said(c) for c in claims if c.recorded.until is not None and c.status is Status.HOLDS]
    mine = [_said(c) for c in open_now if not c.stale and c.subject == ME]
    p = case.patterns
    wrong: dict[str, list[str]] = {}
    marks: dict[str, float] = {}

    def mark(name: str, of: Sequence[re.Pattern[str]], found: list[str]) -> None:
        if of:
            wrong[name] = found
            marks[name] = float(bool(found))

    mark("stale", p["stale"], _hits(p["stale"], sure))
    held_once = set(_hits(p["keep"], [*every, *closed]))
    lost = [k for k in held_once if k not in _hits(p["keep"], every)]
    missing = [c.pattern for c in p["cur"] if c.pattern not in _hits(p["cur"], every)]
    missing += [k.pattern for k in p["keep"] if k.pattern not in held_once]
    mark("missed", (*p["cur"], *p["keep"]), missing)
    mark("wrongly_retired", p["keep"], lost)
    wanted = (*p["keep"], *p["cur"])
    mark("wrongly_labelled", wanted, [x for x in _hits(wanted, every) if x not in _hits(wanted, sure)])
    mark("invented", p["never"], _hits(p["never"], mine))
    marks["right"] = float(not any(wrong.values()))
    first = _first_is_right(case, kept)
    if first is not None:
        marks["valid_first" if case.cat in _NOT_NEWEST else "newest_first"] = float(first)
    return Marked(
        case,
        marks,
        tuple(f"{_said(c)} [{label_of(c) or 'holds'}]" for c in claims),
        {k: v for k, v in wrong.items() if v},
    )


def _first_is_right(case: TruthCase, kept: Sequence[Evidence]) -> bool | None:
    """Return whether a piece with what is valid comes before any with what is not, or that one is
    labelled. None for a case that has not both."""
    good = case.patterns["cur"] or case.patterns["keep"]
    bad = (*case.patterns["stale"], *case.patterns["never"])
    if not (good and bad and case.question):
        return None
    texts = [(e.text, _labelled(e)) for e in kept]
    first = next((n for n, (text, _) in enumerate(texts) if _hits(good, [text])), None)
    before = [text for text, labelled in texts[:first] if not labelled and _hits(bad, [text])]
    return first is not None and not before


def _labelled(piece: Evidence) -> bool:
    return bool(piece.label or label_of(piece.record) or piece.stale is not None or piece.superseded is not None)


async def run_truth(
    cases: Sequence[TruthCase],
    embedder: Embedder | None,
    *,
    recipe: str = "default",
    model: ChatModel | None = None,
    verifier: Verifier | None = None,
    outdating: Outdating | None = None,
    among: int = 0,
    note: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Play each case through ``Memory.remember``, its writers' jobs, and ``Memory.recall``; with ``among``
    inside a life of so many other claims."""
    scored: list[Marked] = []
    others = _other_claims(among)
    for done, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            clock = FixedClock(case.turns[0][0] - timedelta(days=400))
            async with Memory.open(
                Path(folder) / "case.db", user="eval", recipe=recipe, model=model or "none", embedder=embedder or "none",
                clock=clock, verifier=verifier, outdating=outdating,
            ) as memory:  # fmt: skip
                for said in others:
                    await memory.state(said)
                    clock.forward(minutes=1)
                there = {c.id for c in await memory.claims(every=True)}
                for number, (at, role, text) in enumerate(case.turns):
                    clock.at = max(at, clock.at)
                    await memory.remember([Said(text, role, at, id=f"{number}")], session=f"s{at:%Y%m%d}")
                    await memory.drain()
                clock.forward(hours=1)
                claims = [c for c in await memory.claims(every=True) if c.id.partition("~")[0] not in there]
                kept = (await memory.recall(case.question, Budget(10, 100_000))).kept if case.question else ()
                scored.append(score(case, claims, kept))
        note(done, len(cases))
    return report_of(scored)


def report_of(scored: Sequence[Marked]) -> dict[str, Any]:
    """The rates with their intervals and counts, and a row a case."""
    rates: dict[str, float] = {}
    counts: dict[str, int] = {}
    intervals: dict[str, list[float]] = {}
    for name in RATES:
        values = [s.marks[name] for s in scored if name in s.marks]
        found = interval(values)
        rates[name], counts[name] = round(found.mean, 4), len(values)
        intervals[name] = [round(found.low, 4), round(found.high, 4)]
    rows = [
        {
            "id": s.case.id,
            "lang": s.case.lang,
            "cat": s.case.cat,
            "marks": dict(s.marks),
            "wrong": dict(s.wrong),
            "claims": list(s.claims),
        }
        for s in scored
    ]
    return {"cases": len(scored), **rates, "n": counts, "intervals": intervals, "rows": rows}


def _other_claims(count: int) -> list[Statement]:
    """Claims of other people's lives, written for the development of the second look."""
    if count <= 0:
        return []
    lines = files("nyima_lab.measure").joinpath("other_claims.tsv").read_text("utf-8").splitlines()
    if count > len(lines):
        raise InputError(f"there are {len(lines)} other claims, not {count}: give fewer")
    rows = [line.split("\t") for line in lines[:count]]
    return [Statement(subject, attribute, value) for subject, attribute, value in rows]
