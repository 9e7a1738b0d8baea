"""A generated stream of changes whose truth is known, and what a memory makes of it.

Each stream is somebody's life over some weeks: facts are told, then changed, corrected or
given up; a friend's facts and the assistant's own words stand between, and small talk.
What must be live at the end, and what must not be, follows from the script.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nyima.domain.conversation import Role
from nyima.domain.ports import ChatModel, Embedder, RecordFilter
from nyima.domain.records import ME, Claim, Episode, MemoryRecord, Note, Summary
from nyima.language.words import fold
from nyima.memory import Said
from nyima_lab.measure.cases import Case
from nyima_lab.measure.quality import built
from nyima_lab.measure.stats import interval

__all__ = ["Stream", "change_quality", "make_stream", "stream_rates"]

_START = datetime(2026, 1, 12, 18, tzinfo=UTC)
_FIRST = {
    "city": "I live in {}.",
    "job": "I work as a {}.",
    "pet": "My cat is called {}.",
    "drink": "My favourite drink is {}.",
    "car": "I drive a {}.",
    "partner": "My partner's name is {}.",
}
_CHANGE = {
    "city": "I moved, I live in {} now.",
    "job": "I changed jobs, I work as a {} now.",
    "pet": "No, I meant that my cat is called {}.",
    "drink": "My favourite drink is {} now, no longer {}.",
    "car": "I sold the car and drive a {} now.",
    "partner": "We split up. My new partner is called {}.",
}
_VALUES = {
    "city": ("Porto", "Bergen", "Kyoto", "Quito", "Leeds", "Tartu"),
    "job": ("welder", "florist", "surveyor", "dentist", "archivist", "beekeeper"),
    "pet": ("Momo", "Zelda", "Pixel", "Brioche", "Waffle", "Kiwi"),
    "drink": ("cocoa", "espresso", "kombucha", "lemonade", "matcha", "cider"),
    "car": ("Volvo", "Skoda", "Honda", "Citroen", "Mazda", "Subaru"),
    "partner": ("Ines", "Tariq", "Bruno", "Yuki", "Oksana", "Mateo"),
}
_FRIEND = ("My friend {} works as a {}.", "My friend {} lives in {}.")
_NAMES = ("Petra", "Hamid", "Lucia", "Anton")
_OWN = "If I could choose, I would take {} myself, I like that one."
_IDLE = ("How was your day?", "Nice weather today!", "Haha, good one.", "What is the capital of Peru?", "ok, thanks")
_MONTHS = "January February March April May June July August September October November December".split()
_DATES = re.compile(
    r"\b\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december) \d{1,2}\b|\b\d{4}-\d\d-\d\d\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Stream:
    """A case with its truth: ``live`` values of the user's facts, ``gone`` ones that were
    replaced, ``others`` values that belong to a friend or the assistant, ``days`` the
    dates that were said."""

    case: Case
    live: tuple[str, ...]
    gone: tuple[str, ...]
    others: tuple[str, ...]
    days: tuple[str, ...]


def make_stream(seed: int, weeks: int = 4) -> Stream:
    """A stream of so many sessions, a week apart; equal seeds make equal streams."""
    draw = random.Random(seed)  # noqa: S311 - a generator of tests
    values = {key: draw.sample(options, 3) for key, options in _VALUES.items()}
    keys = draw.sample(list(_FIRST), len(_FIRST))
    changing = keys[:3]
    friend = draw.choice(_NAMES)
    days = tuple(f"{draw.randint(2, 27)} {month}" for month in ("May", "June"))
    said: list[list[tuple[str, str]]] = [[] for _ in range(weeks)]
    for number, key in enumerate(keys):
        said[number % 2].append((_FIRST[key].format(values[key][0]), "Good to know, thank you."))
    for number, key in enumerate(changing):
        line = _CHANGE[key].format(values[key][1], values[key][0])
        said[2 + number % (weeks - 2)].append((line, "I see, thanks for telling me."))
    job, city = values["job"][2], values["city"][2]
    said[1].append((_FRIEND[0].format(friend, job), "Say hello from me."))
    said[2].append((_FRIEND[1].format(friend, city), "A lovely place."))
    said[0].append((f"I have an appointment at the bank on {days[0]}.", "I hope it goes well."))
    said[weeks - 1].append((f"We fly to Malta on {days[1]}.", "Have a good flight!"))
    said[1].append((draw.choice(_IDLE), _OWN.format(values["drink"][2])))
    for session in said:
        session.append((draw.choice(_IDLE), "Tell me more whenever you like."))
        draw.shuffle(session)
    sessions = tuple((f"{n}", _turns(n, lines)) for n, lines in enumerate(said))
    live = tuple(values[k][1] if k in changing else values[k][0] for k in keys)
    gone = tuple(values[k][0] for k in changing)
    return Stream(Case(f"stream-{seed}", sessions, (), "en"), live, gone, (job, city, values["drink"][2]), days)


def _turns(number: int, lines: Sequence[tuple[str, str]]) -> tuple[Said, ...]:
    start = _START + timedelta(days=7 * number)
    pairs = [(role, text) for user, reply in lines for role, text in ((Role.USER, user), (Role.ASSISTANT, reply))]
    return tuple(
        Said(text, role, start + timedelta(minutes=i), id=f"{number}:{i}") for i, (role, text) in enumerate(pairs)
    )


def _has(text: str, value: str) -> bool:
    return re.search(rf"\b{re.escape(fold(value))}\b", fold(text)) is not None


def _stated(records: Sequence[MemoryRecord]) -> list[Claim | Summary]:
    """What states something as true: facts and the running memory. Notes and episodes
    tell what was said at a time."""
    return [r for r in records if isinstance(r, Claim) or (isinstance(r, Summary) and r.level == "running")]


def stream_rates(stream: Stream, live: Sequence[MemoryRecord], every: Sequence[MemoryRecord]) -> dict[str, float]:
    """The rates of one stream from the records that are live at its end and ``every`` one
    there was (episodes left out): values known, replaced ones still stated, current ones
    lost, a friend's facts as the user's own, dates that nobody said, records told twice."""
    facts = [r for r in live if isinstance(r, Claim)]
    notes = [r for r in live if isinstance(r, Note)]
    stated = _stated(live)
    known = [v for v in stream.live if any(_has(r.text, v) for r in _stated(every))]
    lost = [v for v in known if not any(_has(r.text, v) for r in stated)]
    mine = [f for f in facts if any(_has(f.value, v) for v in stream.others) and f.subject == ME]
    made: list[Claim | Note] = [*facts, *notes]
    dated = [r for r in made if _DATES.search(r.text)]
    wrong = [r for r in dated if not all(any(_same_day(d, day) for day in stream.days) for d in _DATES.findall(r.text))]
    texts = [fold(r.text) for r in made]
    return {
        "known": len(known) / len(stream.live),
        "stale still live": sum(any(_has(r.text, v) for r in stated) for v in stream.gone) / len(stream.gone),
        "wrongly retired": len(lost) / len(stream.live),
        "wrong speaker": len(mine) / max(1, len(facts)),
        "wrong date": len(wrong) / max(1, len(dated)),
        "duplicates": 1 - len(set(texts)) / len(texts) if texts else 0.0,
    }


def _same_day(found: str, day: str) -> bool:
    number, month = day.split()
    if re.fullmatch(r"\d{4}-\d\d-\d\d", found):
        return found[5:] == f"{_MONTHS.index(month) + 1:02d}-{int(number):02d}"
    return month.casefold() in found.casefold() and re.search(rf"(?<!\d){number}(?!\d)", found) is not None


async def change_quality(
    seeds: Sequence[int],
    recipe: str,
    model: ChatModel | str,
    embedder: Embedder | None,
    note: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """What a memory makes of some streams: means with intervals over the streams."""
    found: dict[str, list[float]] = {}
    for number, seed in enumerate(seeds, 1):
        stream = make_stream(seed)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            memory = await built(stream.case, recipe, model, embedder, Path(folder))
            try:
                live = await memory.records()
                every = await memory.store.records(memory.scope, RecordFilter(retired=True))
            finally:
                await memory.close()
        kept = [r for r in every if not isinstance(r, Episode)]
        for name, value in stream_rates(stream, live, kept).items():
            found.setdefault(name, []).append(value)
        note(number, len(seeds))
    rows = {name: interval(values) for name, values in found.items()}
    shown = {name: {"mean": i.mean, "low": i.low, "high": i.high} for name, i in rows.items()}
    return {"recipe": recipe, "streams": len(seeds), "rates": shown}
