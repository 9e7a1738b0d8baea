"""What is no longer true in what was recalled: values that were closed since, memories
whose time is over, and memories that rest on something that has changed.

An episode or a note tells what was said, and stays; the label tells the reader which part
of it holds no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence, Query
from nyima.domain.ports import RecordFilter
from nyima.domain.records import Claim, Episode, MemoryRecord, Note, Slot, Status, Summary
from nyima.domain.storage import Store
from nyima.language.words import fold, words

__all__ = ["base_id", "labelled", "mentions"]

_SAID = (Episode, Note, Summary)


async def labelled(store: Store, scope: Scope, query: Query, kept: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The evidence with its labels: ``ended`` values and since when, ``stale`` since when."""
    moment = query.as_of or query.at
    turns = tuple({t for e in kept if isinstance(e.record, _SAID) for t in e.record.provenance.turns})
    stated: list[Claim] = []
    if turns:
        found = await store.records(scope, RecordFilter(kinds=("claim",), turns=turns, retired=True))
        stated = [c for c in found if isinstance(c, Claim)]
    by_turn: dict[str, list[Claim]] = {}
    for claim in stated:
        if query.as_of is not None or claim.recorded.since <= moment:
            for turn in claim.provenance.turns:
                by_turn.setdefault(turn, []).append(claim)
    return tuple(_label(piece, by_turn, moment, past=query.as_of is not None) for piece in kept)


def mentions(text: str, value: str) -> bool:
    """Whether a text has most of the words of a value."""
    wanted, there = set(words(value)), set(words(text))
    return bool(wanted) and len(wanted & there) * 2 > len(wanted)


def _label(piece: Evidence, by_turn: Mapping[str, Sequence[Claim]], moment: datetime, *, past: bool) -> Evidence:
    record = piece.record
    stale = record.recorded.since if record.stale and not past else None
    if not isinstance(record, _SAID):
        return replace(piece, stale=stale)
    beside = [c for turn in record.provenance.turns for c in by_turn.get(turn, ())]
    now = [c for c in beside if _open(c, moment)]
    held = {_stated(c) for c in now if past or not c.stale}
    ended: dict[str, datetime] = {}
    for other in beside:
        closing = _closing(other, moment)
        if closing is None or _stated(other) in held or other.status not in {Status.HOLDS, Status.PLANNED}:
            continue
        if isinstance(record, Episode) or mentions(record.text, other.value):
            ended[other.value] = max(closing, ended.get(other.value, closing))
    doubt = [
        c.recorded.since for c in now
        if c.stale and not past and (isinstance(record, Episode) or mentions(record.text, c.value))
    ]  # fmt: skip
    uncertain = {c.value for c in now if c.stale}
    ended = {v: at for v, at in ended.items() if v not in uncertain}
    return replace(
        piece,
        superseded=max(ended.values(), default=None),
        ended=tuple(ended),
        stale=stale or max(doubt, default=None),
    )


def _stated(claim: Claim) -> tuple[Slot, str]:
    return (claim.slot, fold(claim.value))


def _open(record: MemoryRecord, moment: datetime) -> bool:
    return _closing(record, moment) is None


def _closing(record: MemoryRecord, moment: datetime) -> datetime | None:
    """When a record stopped to hold, as far as that is known at a moment."""
    if record.recorded.until is not None and record.recorded.until <= moment:
        return record.valid.until or record.recorded.until
    if record.valid.until is not None and record.valid.until <= moment:
        return record.valid.until
    return None


def base_id(id: str) -> str:
    """The id of a record before it was made again."""
    return id.partition("~")[0]
