"""What an erase looks for afterwards: pieces of the texts that nothing which stays holds."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from nyima.domain.conversation import Role, Scope, Turn
from nyima.domain.ports import Event, RecordFilter
from nyima.domain.records import Claim, Entity, MemoryRecord
from nyima.domain.storage import Store
from nyima.language.words import content_words, fold, sentences, words

__all__ = ["Needles", "needles_of", "quoted_in", "repeats", "telling", "traces_of"]

_NEEDLE = 24
_LEAST_VALUE = 5
_LEAST_TOLD = 3
_FEW = 50
_BEGIN = 8


async def needles_of(
    store: Store, scope: Scope, turns: Mapping[str, Turn], records: Mapping[str, MemoryRecord]
) -> list[str]:
    """Pieces of the erased texts that nothing which stays holds too."""
    pieces: set[str] = set()
    for text in (*(t.text for t in turns.values()), *(r.text for r in records.values())):
        for sentence in sentences(text)[:50]:
            pieces |= {sentence[i : i + _NEEDLE] for i in range(0, len(sentence) - 11, _NEEDLE)}
    values = (r.value for r in records.values() if isinstance(r, Claim))
    pieces |= {value for value in values if len(value) >= _LEAST_VALUE}
    if not pieces:
        return []
    stay: list[str] = [t.text for t in await store.turns(scope) if t.id not in turns]
    every = await store.records(scope, RecordFilter(retired=True))
    stay += [r.text for r in every if r.id not in records]
    everything = "\n".join(stay)
    return sorted(p for p in pieces if len(p.strip()) >= _LEAST_VALUE and p not in everything)


class Needles:
    """Pieces that are looked for in many texts: by their first eight letters, then whole, so that
    the time hardly depends on how many there are."""

    def __init__(self, needles: Sequence[str]) -> None:
        self._short = [n for n in needles if len(n) < _BEGIN]
        self._long: dict[str, dict[int, set[str]]] = {}
        for needle in needles:
            if len(needle) >= _BEGIN:
                self._long.setdefault(needle[:_BEGIN], {}).setdefault(len(needle), set()).add(needle)

    def within(self, value: object) -> bool:
        """Whether a text somewhere in a value of JSON has one of them."""
        if isinstance(value, str):
            return any(n in value for n in self._short) or self._begins(value)
        if isinstance(value, Mapping):
            pairs = cast("Mapping[str, object]", value)
            return any(self.within(key) or self.within(inner) for key, inner in pairs.items())
        if isinstance(value, list | tuple):
            return any(self.within(inner) for inner in cast("Sequence[object]", value))
        return False

    def _begins(self, text: str) -> bool:
        for at in range(len(text) - _BEGIN + 1):
            lengths = self._long.get(text[at : at + _BEGIN])
            if lengths and any(text[at : at + n] in whole for n, whole in lengths.items()):
                return True
        return False


async def quoted_in(
    store: Store, scope: Scope, needles: Sequence[str], gone: Collection[str]
) -> tuple[list[Event], list[Event]]:
    """The events that hold a piece of what is erased, and what takes their place: nothing for a
    trace, such as of a query that found nothing; for the notes of a turn that stays, which a
    model has copied the piece into, the same notes without it."""
    found, instead, sought = list[Event](), list[Event](), Needles(needles)
    for kind in ("recall", "feedback", "notes", "facts"):  # the first edition wrote facts
        for number, event in enumerate(await store.events(scope, kind)):
            if number % 50 == 0:
                await asyncio.sleep(0)  # others have their turn
            if not sought.within(event.body):
                continue
            found.append(event)
            if kind == "notes" and event.body.get("turn") not in gone:
                noted = cast("list[Any]", event.body.get("claims") or [])
                body = {**event.body, "claims": [c for c in noted if not sought.within(c)]}
                if not sought.within(body):
                    instead.append(replace(event, id=f"{kind}-{uuid.uuid4().hex[:16]}", body=body))
    return found, instead


async def traces_of(store: Store, scope: Scope, refs: Collection[str]) -> list[Event]:
    """The traces that mention one of the ids. Of many, all traces are read once."""
    if len(refs) > _FEW:
        wanted = set(refs)
        return [e for e in await store.events(scope, "recall") if not wanted.isdisjoint(e.refs)]
    found = {e.id: e for ref in sorted(refs) for e in await store.events(scope, "recall", ref=ref)}
    return list(found.values())


async def telling(store: Store, scope: Scope, gone: Mapping[str, Turn], records: Iterable[MemoryRecord]) -> list[Turn]:
    """The replies that tell a value of what goes, which the user says nowhere else; also in
    sessions that have no trace of where they had it from. A name or a number is enough; of a
    common word, such as what one is allergic to, the reply must speak to the user."""
    turns, held = await store.turns(scope), list(records)
    stays = " ".join(_spaced(t.text) for t in turns if t.role is Role.USER and t.id not in gone)
    named = {r.name for r in held if isinstance(r, Entity) and _proper(r.name)}
    values = {r.value for r in held if isinstance(r, Claim)}
    sought = {
        v: s for v in named | values if len(v) >= _LEAST_TOLD and content_words(v) and (s := _spaced(v)) not in stays
    }
    since = min([t.at for t in gone.values()] or [r.recorded.since for r in held], default=None)
    if not sought or since is None:
        return []
    found: list[Turn] = []
    for turn in turns:
        if turn.role is Role.ASSISTANT and turn.id not in gone and turn.at >= since:
            text = _spaced(turn.text)
            to_user = " you " in text or " your " in text
            if any(s in text and (to_user or _proper(v)) for v, s in sought.items()):
                found.append(turn)
    return found


def _proper(value: str) -> bool:
    """Whether a value is a name or has a number in it."""
    return any(c.isupper() or c.isdigit() for c in value)


def _spaced(text: str) -> str:
    """The words of a text, each between spaces, so that one is not found within another."""
    return f" {' '.join(words(text))} "


def repeats(reply: str, said: str) -> bool:
    """Whether a reply repeats a word of some length, or a number, of a turn."""
    told = {w for w in content_words(said) if len(w) > 3 or w.isdigit()}
    again = {w for w in content_words(fold(reply)) if w in told}
    return bool(again)
