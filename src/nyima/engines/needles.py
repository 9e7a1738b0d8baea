"""What an erase looks for afterwards: pieces of the texts that nothing which stays holds."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from nyima.domain.conversation import Scope, Turn
from nyima.domain.memory import MemoryRecord, ProfileFact
from nyima.domain.ports import Event, RecordFilter, Store
from nyima.domain.text import content_words, fold, sentences

__all__ = ["needles_of", "quoted_in", "repeats", "traces_of"]

_NEEDLE = 24
_LEAST_VALUE = 5
_FEW = 50


async def needles_of(
    store: Store, scope: Scope, turns: Mapping[str, Turn], records: Mapping[str, MemoryRecord]
) -> list[str]:
    """Pieces of the erased texts that nothing which stays holds too."""
    pieces: set[str] = set()
    for text in (*(t.text for t in turns.values()), *(r.text for r in records.values())):
        for sentence in sentences(text)[:50]:
            pieces |= {sentence[i : i + _NEEDLE] for i in range(0, len(sentence) - 11, _NEEDLE)}
    values = (r.value for r in records.values() if isinstance(r, ProfileFact))
    pieces |= {value for value in values if len(value) >= _LEAST_VALUE}
    if not pieces:
        return []
    stay: list[str] = [t.text for t in await store.turns(scope) if t.id not in turns]
    every = await store.records(scope, RecordFilter(retired=True))
    stay += [r.text for r in every if r.id not in records]
    everything = "\n".join(stay)
    return sorted(p for p in pieces if len(p.strip()) >= _LEAST_VALUE and p not in everything)


async def quoted_in(
    store: Store, scope: Scope, needles: Sequence[str], gone: Collection[str]
) -> tuple[list[str], list[Event]]:
    """The events that hold a piece of what is erased, and what takes their place: nothing for a
    trace, such as of a query that found nothing; for the notes of a turn that stays, which a
    model has copied the piece into, the same notes without it."""
    ids, instead = list[str](), list[Event]()
    for kind in ("recall", "feedback", "notes", "facts"):
        for event in await store.events(scope, kind):
            if not _holds(event.body, needles):
                continue
            ids.append(event.id)
            if kind in {"notes", "facts"} and event.body.get("turn") not in gone:
                pairs = cast("list[Any]", event.body.get("facts") or [])
                body = {**event.body, "facts": [p for p in pairs if not _holds(p, needles)]}
                if not _holds(body, needles):
                    instead.append(replace(event, id=f"{kind}-{uuid.uuid4().hex[:16]}", body=body))
    return ids, instead


async def traces_of(store: Store, scope: Scope, refs: Collection[str]) -> list[Event]:
    """The traces that mention one of the ids. Of many, all traces are read once."""
    if len(refs) > _FEW:
        wanted = set(refs)
        return [e for e in await store.events(scope, "recall") if not wanted.isdisjoint(e.refs)]
    found = {e.id: e for ref in sorted(refs) for e in await store.events(scope, "recall", ref=ref)}
    return list(found.values())


def _holds(value: object, needles: Sequence[str]) -> bool:
    """Whether a text somewhere in a value of JSON has one of the needles."""
    if isinstance(value, str):
        return any(needle in value for needle in needles)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value)
        return any(_holds(key, needles) or _holds(inner, needles) for key, inner in pairs.items())
    if isinstance(value, list | tuple):
        return any(_holds(inner, needles) for inner in cast("Sequence[object]", value))
    return False


def repeats(reply: str, said: str) -> bool:
    """Whether a reply repeats a word of some length, or a number, of a turn."""
    told = {w for w in content_words(said) if len(w) > 3 or w.isdigit()}
    again = {w for w in content_words(fold(reply)) if w in told}
    return bool(again)
