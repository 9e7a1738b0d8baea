"""What is no longer true in what was recalled: values that were closed since, memories
whose time is over, and memories that rest on something that has changed.

An episode or a note tells what was said, and stays; the label tells the reader which part
of it holds no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence, Query
from nyima.domain.ports import RecordFilter
from nyima.domain.records import ME, Entity, Episode, MemoryRecord, Note, ProfileFact, Relation, Summary
from nyima.domain.storage import Store
from nyima.language.times.moment import read_moment
from nyima.language.words import fold, words

__all__ = ["base_id", "labelled", "mentions", "says_the_same", "values_of"]

_SAID = (Episode, Note, Summary)
_ENDED = "ended"


async def labelled(store: Store, scope: Scope, query: Query, kept: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The evidence with its labels: ``ended`` values and since when, ``stale`` since when."""
    moment = query.as_of or query.at
    turns = tuple({t for e in kept if isinstance(e.record, _SAID) for t in e.record.provenance.turns})
    stated: list[MemoryRecord] = []
    if turns:
        stated = await store.records(scope, RecordFilter(kinds=("fact", "relation"), turns=turns, retired=True))
    told_off = any(r.stale or _closing(r, moment) is not None for r in stated)
    values = await values_of(store, scope, stated) if told_off else {}
    by_turn: dict[str, list[MemoryRecord]] = {}
    for record in stated:
        if not (isinstance(record, Relation) and record.label == _ENDED) and (
            query.as_of is not None or record.recorded.since <= moment
        ):
            for turn in record.provenance.turns:
                by_turn.setdefault(turn, []).append(record)
    return tuple(_label(piece, by_turn, values, moment, past=query.as_of is not None) for piece in kept)


async def values_of(store: Store, scope: Scope, records: Iterable[MemoryRecord]) -> Mapping[str, str]:
    """What each fact or relation says: its value, or the name of its tail; where that is
    only a date, the whole sentence."""
    relations = [r for r in records if isinstance(r, Relation)]
    names: dict[str, str] = {}
    if relations:
        ids = tuple({r.tail for r in relations})
        for entity in await store.records(scope, RecordFilter(ids=ids, retired=True)):
            if isinstance(entity, Entity):
                names[entity.id] = entity.name
    dated = {id for id, name in names.items() if read_moment(name) is not None}
    found = {r.id: r.note if r.tail in dated else names.get(r.tail, "") for r in relations}
    return {**found, **{r.id: r.value for r in records if isinstance(r, ProfileFact)}}


def mentions(text: str, value: str) -> bool:
    """Whether a text has most of the words of a value."""
    wanted, there = set(words(value)), set(words(text))
    return bool(wanted) and len(wanted & there) * 2 > len(wanted)


def _label(
    piece: Evidence,
    by_turn: Mapping[str, Sequence[MemoryRecord]],
    values: Mapping[str, str],
    moment: datetime,
    *,
    past: bool,
) -> Evidence:
    record = piece.record
    stale = record.recorded.since if record.stale and not past else None
    if not isinstance(record, _SAID):
        return replace(piece, stale=stale)
    beside = [r for turn in record.provenance.turns for r in by_turn.get(turn, ())]
    now = [r for r in beside if _open(r, moment)]
    held = {_claimed(r, values) for r in now if past or not r.stale}
    ended: dict[str, datetime] = {}
    for other in beside:
        value = values.get(other.id, "")
        closing = _closing(other, moment)
        if closing is None or _claimed(other, values) in held or not value:
            continue
        if isinstance(record, Episode) or mentions(record.text, value):
            shown = other.note if isinstance(other, Relation) and other.head != ME and other.note else value
            ended[shown] = max(closing, ended.get(shown, closing))
    doubt = [
        r.recorded.since for r in now
        if r.stale and not past and (isinstance(record, Episode) or mentions(record.text, values.get(r.id, "")))
    ]  # fmt: skip
    uncertain = {text for r in now if r.stale for text in (values.get(r.id, ""), r.text)}
    ended = {v: at for v, at in ended.items() if v not in uncertain}
    return replace(
        piece,
        superseded=max(ended.values(), default=None),
        ended=tuple(ended),
        stale=stale or max(doubt, default=None),
    )


def _claimed(record: MemoryRecord, values: Mapping[str, str]) -> tuple[object, str]:
    return (record.claim, fold(values.get(record.id, "")))


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


def says_the_same(old: MemoryRecord, new: MemoryRecord) -> bool:
    """Whether two records state one thing."""
    if isinstance(old, Relation) and isinstance(new, Relation):
        return (old.head, old.label, old.tail) == (new.head, new.label, new.tail)
    if isinstance(old, ProfileFact) and isinstance(new, ProfileFact):
        return (old.key, fold(old.value)) == (new.key, fold(new.value))
    return False
