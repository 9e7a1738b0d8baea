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
from nyima.domain.conversation import Scope, as_utc, clean_text
from nyima.domain.ports import Clock, RecordFilter
from nyima.domain.records import (
    Claim,
    Entity,
    Interval,
    MemoryRecord,
    Note,
    Provenance,
    Slot,
    Status,
    Summary,
)
from nyima.domain.roles import Written
from nyima.domain.storage import Store
from nyima.errors import InputError, NotFound
from nyima.language.subclasses import Subclass, subclass_of
from nyima.language.words import fold
from nyima.write.entities import SAME_AS, Entities

__all__ = ["Hand", "Statement", "value_in"]

_MARKS = ".,;:!?\"'“”"


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim to state by hand: ``subject`` is a name ("user", "dog"), ``since`` and ``until`` say when it
    holds, ``depends_on`` names the claims without which it does not hold, ``turn`` the turn that says
    it, if any, ``object`` what the value is about, where that is not the value itself."""

    subject: str
    attribute: str
    value: str
    status: Status = Status.HOLDS
    since: datetime | None = None
    until: datetime | None = None
    depends_on: tuple[str, ...] = ()
    turn: str = ""
    object: str = ""


def _value_in(text: str, old: MemoryRecord, value: str) -> str:
    """The new value in what the user wrote, which may be the whole sentence with the value
    changed in it ("user lives in: Porto", "lives in: Porto"). Raises InputError for a sentence that
    changes more than the value, or says none."""
    if isinstance(old, Summary):
        return text
    if isinstance(old, Claim):
        lead = rf"^\s*(?:{re.escape(old.name)}\s+)?{re.escape(old.attribute)}\s*:\s*"
        return _given(re.sub(lead, "", text, flags=re.IGNORECASE), value)
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
    return text


def _same(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether the words are the same but for case and the marks around them."""
    return [fold(w).strip(_MARKS) for w in words] == [fold(w).strip(_MARKS) for w in others]


def _given(changed: str, value: str) -> str:
    if not changed.strip(_MARKS + " "):
        raise InputError(f"the new value is empty (now {value!r}): give some words, or use forget")
    return changed


def value_in(record: MemoryRecord) -> str:
    """Return the part of a record that a person edits: the value of a claim, the knowledge of a note,
    else the text."""
    match record:
        case Claim():
            return record.value
        case Note():
            return record.knowledge
        case _:
            return record.text


@dataclass(frozen=True, slots=True)
class Hand:
    """Revises, states, confirms, retires and joins by hand."""

    store: Store
    scope: Scope
    clock: Clock
    cascade: Cascade
    subclasses: tuple[Subclass, ...]

    async def commit(self, *changes: Change) -> None:
        """Commit changes with what follows from them."""
        written = await self.cascade.follow(self.scope, Written(Delta(changes, "user")))
        await self.store.commit(self.scope, written.delta, jobs=written.jobs)

    async def revise(self, old: MemoryRecord, text: str) -> MemoryRecord:
        """Another value of a claim, or another text of a note or summary. Its own value or text again
        changes nothing: the record itself comes back."""
        text = clean_text(text).strip()
        if not text:
            raise InputError("the new text is empty: give some words, or use forget")
        value = value_in(old)
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
            case Note():
                new: MemoryRecord = replace(old, knowledge=text, **shared)
            case Summary():
                new = replace(old, body=text, **shared)
            case Claim():
                entities = self._entities(now, Provenance((), (old.id,), "user"))
                node = await entities.value(text)
                status = Status.HOLDS if old.status is Status.PENDING else old.status
                new = replace(old, value=text, object=node.id, quote=None, when="", status=status, **shared)
                more = [Add(e) for e in entities.made.values()]
            case _:
                raise InputError(f"a record of kind {old.kind!r} is what was said and cannot be revised: forget it")
        await self.commit(*more, Revise(old.id, new, "revised by the user"))
        return new

    async def state(self, said: Statement, replaces: Sequence[str] | None = ()) -> Claim:
        """State a claim. It takes the place of the records ``replaces``; of all that holds in its slot
        where that is None."""
        subject, attribute, value = (
            " ".join(clean_text(part).split()) for part in (said.subject, said.attribute, said.value)
        )
        if not (subject and attribute and value):
            raise InputError("a claim needs a subject, an attribute and a value: name all three")
        now = self.clock.now()
        since = as_utc(said.since) if said.since else now
        until = as_utc(said.until) if said.until else None
        if until is not None and until <= since:
            raise InputError(f"it would end on {until:%Y-%m-%d}, before it begins on {since:%Y-%m-%d}: check the dates")
        made = Provenance((said.turn,) if said.turn else (), writer="user")
        entities = self._entities(since, replace(made, records=() if said.turn else (uuid.uuid4().hex,)))
        about, node = await entities.named(subject), await entities.value(said.object or value)
        if about.id == node.id and not said.object:
            raise InputError(f"{about.name!r} cannot be related to itself: name two different things")
        if replaces is None:
            where = RecordFilter(slots=(Slot(about.id, attribute.casefold()),), at=now)
            there = await self.store.records(self.scope, where)
        else:
            there = await self.store.records(self.scope, RecordFilter(ids=tuple(replaces))) if replaces else []
            if len(there) < len(replaces):
                missing = min({*replaces} - {r.id for r in there})
                raise NotFound(f"there is no open record {missing!r} to replace: `nyima memories` lists them")
        new = Claim(
            id=f"c-{uuid.uuid4().hex[:16]}",
            provenance=made,
            valid=Interval(since, until),
            recorded=Interval(now),
            supersedes=there[-1].id if there else None,
            subject=about.id,
            name=about.name,
            attribute=attribute,
            value=value,
            object="" if node.id == about.id else node.id,
            status=said.status,
            subclass=subclass_of(f"{attribute} {value}", self.subclasses),
            depends_on=said.depends_on,
        )
        nodes = [Add(replace(e, provenance=made)) for e in entities.made.values()]
        closed = [Retire(r.id, max(since, r.valid.since), "replaced by the user") for r in there[:-1]]
        last: list[Change] = [Revise(there[-1].id, new, "replaced by the user")] if there else [Add(new)]
        await self.commit(*nodes, *closed, *last)
        return new

    def _entities(self, since: datetime, made: Provenance) -> Entities:
        return Entities(self.store, self.scope, made, Interval(since))

    async def confirm(self, claims: Sequence[Claim]) -> list[Claim]:
        """Say that claims which wait for a confirmation, or are uncertain, hold. Raises InputError for one
        that is retired."""
        now = self.clock.now()
        done: list[Claim] = []
        for old in claims:
            if old.recorded.until is not None:
                raise InputError(f"record {old.id!r} is retired: there is nothing to confirm")
            status = Status.HOLDS if old.status in {Status.PENDING, Status.PLANNED} else old.status
            id = f"{old.id.partition('~')[0]}~{uuid.uuid4().hex[:8]}"
            made = replace(old.provenance, records=(*old.provenance.records, old.id), writer="user")
            done.append(
                replace(
                    old, id=id, provenance=made, status=status, stale=False, recorded=Interval(now), supersedes=old.id
                )
            )
        await self.commit(*(Revise(o.id, n, "confirmed by the user") for o, n in zip(claims, done, strict=True)))
        return done

    async def retire(self, old: MemoryRecord, reason: str = "ended by the user") -> None:
        """End the belief in a record; it stays in history."""
        if old.recorded.until is not None:
            raise InputError(f"record {old.id!r} is retired already")
        await self.commit(Retire(old.id, self.clock.now(), reason))

    async def merge(self, one: Entity, other: Entity) -> Claim:
        """Say that two entities are the same: what is said of the other is said of the one.
        ``undo`` takes it back."""
        if one.id == other.id:
            raise InputError(f"{one.name!r} is one entity already: name another one")
        now = self.clock.now()
        moved: list[Change] = []
        linked = await self.store.records(self.scope, RecordFilter(kinds=("claim",), turns=(other.id,)))
        for claim in linked:
            if isinstance(claim, Claim) and claim.subject == other.id:
                id = f"c-{uuid.uuid4().hex[:16]}"
                new = replace(claim, id=id, subject=one.id, name=one.name, recorded=Interval(now), supersedes=claim.id)
                moved.append(Revise(claim.id, new, f"merged into {one.id}"))
        same = Claim(
            id=f"c-{uuid.uuid4().hex[:16]}",
            provenance=Provenance(writer="user"),
            valid=Interval(now),
            recorded=Interval(now),
            subject=one.id,
            name=one.name,
            attribute=SAME_AS,
            value=other.name,
            object=other.id,
            subclass="Name/Nickname",
        )
        # What moves says the same as before, so that nothing that rests on it becomes stale.
        await self.store.commit(self.scope, Delta((*moved, Add(same)), "user"))
        return same
