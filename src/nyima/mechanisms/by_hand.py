"""Changes of the memory by the user's own hand, with all that follows from them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from nyima.change.cascade import Cascade
from nyima.domain.changes import Add, Change, Delta, Retire, Revise
from nyima.domain.conversation import Role, Scope, Turn, as_utc, clean_text
from nyima.domain.ports import Clock, RecordFilter
from nyima.domain.records import (
    Claim,
    Entity,
    Interval,
    MemoryRecord,
    Note,
    Profile,
    ProfileFact,
    Provenance,
    Relation,
    Summary,
)
from nyima.domain.roles import Written
from nyima.domain.storage import Store
from nyima.errors import InputError, NotFound
from nyima.language.english.clauses import base_form
from nyima.language.english.mentions import stems
from nyima.language.facts import canonical_key
from nyima.language.relations import LABELS, Subclass, label_of, single, subclass_of
from nyima.language.words import fold
from nyima.mechanisms.graph.entities import Nodes, relation_id

__all__ = ["Hand", "Link"]

_MARKS = ".,;:!?\"'“”"

_MARKS = ".,;:!?\"'“”"


@dataclass(frozen=True, slots=True)
class Link:
    """A relation to state by hand: ``head`` and ``tail`` are names ("user", "user's dog"),
    ``note`` the sentence that it stands for, ``since`` and ``until`` when it holds,
    ``rests`` the relations on which it rests, ``turn`` the turn that says it, if any."""

    head: str
    label: str
    tail: str
    note: str = ""
    since: datetime | None = None
    until: datetime | None = None
    rests: tuple[str, ...] = ()
    turn: str = ""


def _one_at_a_time(label: str) -> bool:
    """Whether a relation that is stated by hand has one value: a known one says so; of
    others, what one does ("plays") may have several, what something is has one."""
    return single(label) or (label not in LABELS and not base_form(label.split("_", maxsplit=1)[0]))


def _value_in(text: str, old: MemoryRecord, value: str) -> str:
    """The new value in what the user wrote, which may be the whole sentence with the value
    changed in it ("location: Porto", "The user moved to Braga."). Raises InputError for a
    sentence that changes more than the value, or says none."""
    if isinstance(old, ProfileFact):
        return _given(
            re.sub(rf"^\s*{re.escape(old.key).replace('_', '[ _]')}\s*:\s*", "", text, flags=re.IGNORECASE), value
        )
    if isinstance(old, Summary):
        return text
    whole, said, kept = old.text.split(), text.split(), value.split()
    at = next((i for i in range(len(whole)) if _same(whole[i : i + len(kept)], kept)), None)
    if at is None:
        return text
    before, after = whole[:at], whole[at + len(kept) :]
    end = len(said) - len(after)
    if _same(said[: len(before)], before) and _same(said[end:], after) and end >= len(before):
        changed = " ".join(said[len(before) : end])
        stop = not after and whole[-1][-1:] in ".!?" and kept[-1:] != whole[-1:]
        return _given(changed.rstrip(".!?") if stop else changed, value)
    if isinstance(old, Relation) and (stems(text) & stems(" ".join(before)) or _same(said[:2], whole[:2])):
        raise InputError(
            f"this changes more than the value: give the value alone (now {value!r}), or forget this memory and say it anew"
        )
    return text


def _same(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether the words are the same but for case and the marks around them."""
    return [fold(w).strip(_MARKS) for w in words] == [fold(w).strip(_MARKS) for w in others]


def _given(changed: str, value: str) -> str:
    if not changed.strip(_MARKS + " "):
        raise InputError(f"the new value is empty (now {value!r}): give some words, or use forget")
    return changed


@dataclass(frozen=True, slots=True)
class Hand:
    """Revises, states, retires and joins by hand."""

    store: Store
    scope: Scope
    clock: Clock
    cascade: Cascade
    subclasses: tuple[Subclass, ...]

    async def commit(self, *changes: Change) -> None:
        """Commit changes with what follows from them."""
        written = await self.cascade.follow(self.scope, Written(Delta(changes, "user")))
        await self.store.commit(self.scope, written.delta, jobs=written.jobs)

    async def value(self, record: MemoryRecord) -> str:
        """The part of a record that a person edits: the value of a fact or relation, the
        knowledge of a note, else the text."""
        match record:
            case ProfileFact():
                return record.value
            case Note():
                return record.knowledge
            case Relation():
                tails = await self.store.records(self.scope, RecordFilter(ids=(record.tail,), retired=True))
                return tails[0].name if tails and isinstance(tails[0], Entity) else record.text
            case _:
                return record.text

    async def revise(self, old: MemoryRecord, text: str) -> MemoryRecord:
        """Another value of a fact or relation, or another text of a note or summary. Its own
        value or text again changes nothing: the record itself comes back."""
        text = clean_text(text).strip()
        if not text:
            raise InputError("the new text is empty: give some words, or use forget")
        value = await self.value(old)
        if " ".join(text.split()) in {" ".join(value.split()), " ".join(old.text.split())}:
            return old
        if old.recorded.until is not None:
            raise InputError(f"record {old.id!r} is retired: revise the one that took its place")
        text = _value_in(text, old, value)
        if text == value:
            return old
        now = self.clock.now()
        shared: dict[str, Any] = {
            "id": f"{old.kind[0]}-{uuid.uuid4().hex[:16]}",
            "provenance": Provenance(old.provenance.turns, (old.id,), "user"),
            "valid": Interval(now),
            "recorded": Interval(now),
            "supersedes": old.id,
            "stale": False,
        }
        more: list[Change] = []
        match old:
            case ProfileFact():
                new: MemoryRecord = replace(old, value=text, **shared)
            case Note():
                new = replace(old, knowledge=text, **shared)
            case Summary():
                new = replace(old, body=text, **shared)
            case Relation():
                tail, made = await self._node(text, now, "")
                known = value and old.note.count(value) == 1
                note = old.note.replace(value, tail.name) if known else f"{old.note} Now: {tail.name}."
                new, more = replace(old, tail=tail.id, note=note, **shared), list(made)
            case _:
                raise InputError(f"a record of kind {old.kind!r} is what was said and cannot be revised: forget it")
        await self.commit(*more, Revise(old.id, new, "revised by the user"))
        return new

    async def set_fact(self, profile: Profile, key: str, value: str) -> ProfileFact:
        """Set a profile fact; the key's old values are closed."""
        key, value, now = canonical_key(key), clean_text(value).strip(), self.clock.now()
        if not key or not value:
            raise InputError("a profile fact needs a key and a value")
        old = [f for f in profile.facts if f.key == key]
        fact = ProfileFact(
            id=f"f-{uuid.uuid4().hex[:16]}",
            provenance=Provenance(writer="user"),
            valid=Interval(now),
            recorded=Interval(now),
            claim=Claim("user", key),
            supersedes=old[-1].id if old else None,
            key=key,
            value=value,
        )
        await self.commit(*(Retire(f.id, now, "replaced by the user") for f in old), Add(fact))
        return fact

    async def relate(self, link: Link, replaces: str | None = None) -> Relation:
        """State a relation. It takes the place of record ``replaces``, or, where one value
        holds at a time, of the value that is there."""
        if not all(clean_text(part).strip() for part in (link.head, link.label, link.tail)):
            raise InputError("a relation needs a head, a label and a tail: name all three")
        now = self.clock.now()
        since = as_utc(link.since) if link.since else now
        until = as_utc(link.until) if link.until else None
        if until is not None and until <= since:
            raise InputError(f"it would end on {until:%Y-%m-%d}, before it begins on {since:%Y-%m-%d}: check the dates")
        label = label_of(clean_text(link.label).strip().lower().replace(" ", "_"))
        head, first = await self._node(link.head, since, link.turn)
        tail, second = await self._node(link.tail, since, link.turn, plain=label in {"name", "nickname", "surname"})
        if head.id == tail.id:
            raise InputError(f"{head.name!r} cannot be related to itself: name two different things")
        where = RecordFilter(kinds=("relation",), claims=(Claim(head.id, label),), at=now)
        there = await self.store.records(self.scope, where) if _one_at_a_time(label) else []
        if replaces is not None:
            there = await self.store.records(self.scope, RecordFilter(ids=(replaces,)))
            if not there:
                raise NotFound(f"there is no open record {replaces!r} to replace: `nyima memories` lists them")
        note = clean_text(link.note) or f"{head.name} {label.replace('_', ' ')}: {tail.name}."
        place = subclass_of(label, note, self.subclasses)
        new = Relation(
            id=relation_id(link.turn or uuid.uuid4().hex, head.id, label, tail.name),
            provenance=Provenance((link.turn,) if link.turn else (), writer="user"),
            valid=Interval(since, until),
            recorded=Interval(now),
            claim=Claim(head.id, label),
            supersedes=there[-1].id if there else None,
            head=head.id,
            label=label,
            tail=tail.id,
            note=note,
            subclass=place,
            rests=link.rests,
        )
        closed = [Retire(r.id, max(since, r.valid.since), "replaced by the user") for r in there[:-1]]
        last: list[Change] = [Revise(there[-1].id, new, "replaced by the user")] if there else [Add(new)]
        await self.commit(*first, *second, *closed, *last)
        return new

    async def _node(self, name: str, at: datetime, turn: str, *, plain: bool = False) -> tuple[Entity, list[Change]]:
        said = Turn(turn or uuid.uuid4().hex, "", Role.USER, "", at)
        nodes = Nodes(self.store, self.scope, said, Interval(self.clock.now()))
        entity = await nodes.value(clean_text(name), plain=plain)
        made = [
            Add(replace(e, provenance=Provenance((turn,) if turn else (), writer="user"))) for e in nodes.made.values()
        ]
        return entity, list(made)

    async def retire(self, old: MemoryRecord, reason: str = "ended by the user") -> None:
        """End the belief in a record; it stays in history."""
        if old.recorded.until is not None:
            raise InputError(f"record {old.id!r} is retired already")
        await self.commit(Retire(old.id, self.clock.now(), reason))

    async def merge(self, one: Entity, other: Entity) -> Relation:
        """Say that two entities are the same: what is said of the other is said of the one.
        ``undo`` takes it back."""
        if one.id == other.id:
            raise InputError(f"{one.name!r} is one entity already: name another one")
        now = self.clock.now()
        moved: list[Change] = []
        linked = await self.store.records(self.scope, RecordFilter(kinds=("relation",), turns=(other.id,)))
        for relation in linked:
            if isinstance(relation, Relation) and relation.head == other.id:
                claim = Claim(one.id, relation.label)
                id = f"r-{uuid.uuid4().hex[:16]}"
                new = replace(relation, id=id, head=one.id, claim=claim, recorded=Interval(now), supersedes=relation.id)
                where = RecordFilter(kinds=("relation",), claims=(claim,), at=now)
                there = await self.store.records(self.scope, where) if single(relation.label) else []
                if any(r.valid.since > relation.valid.since for r in there):
                    moved.append(Retire(relation.id, now, f"merged into {one.id}, of which something newer is known"))
                    continue
                moved += [Retire(r.id, now, f"something newer is known of {other.id}") for r in there]
                moved.append(Revise(relation.id, new, f"merged into {one.id}"))
        same = Relation(
            id=f"r-{uuid.uuid4().hex[:16]}",
            provenance=Provenance(writer="user"),
            valid=Interval(now),
            recorded=Interval(now),
            claim=Claim(one.id, "same_as"),
            head=one.id,
            label="same_as",
            tail=other.id,
            note=f"{one.name} is the same as {other.name}.",
            subclass="Name/Nickname",
        )
        # What moves says the same as before, so that nothing that rests on it becomes stale.
        await self.store.commit(self.scope, Delta((*moved, Add(same)), "user"))
        return same
