"""Edits of the graph: insert, expire and replace, decided by comparing relations
(Wang et al. 2024, section 4.2).

A statement is compared with the best memory of its nearest partition first, then with the
relations that state the same claim. What it ends is found by the words that they share.
Nothing here decides for another person: what a friend gave up is the friend's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo

from nyima.domain.changes import Add, Change, Retire, Revise
from nyima.domain.conversation import Origin, Scope, Turn
from nyima.domain.ports import RecordFilter
from nyima.domain.records import ME, Claim, Entity, Interval, Provenance, Relation
from nyima.domain.storage import Store
from nyima.language.english.comparing import (
    OVER,
    called,
    ended_thing,
    measure,
    once_only,
    overlap,
    shared_matter,
    standard_note,
)
from nyima.language.english.mentions import another_person, canonical_mention, stems
from nyima.language.english.statement import Statement
from nyima.language.relations import LABELS, label_of, single
from nyima.language.times.moment import Moment, read_moment
from nyima.language.words import fold
from nyima.mechanisms.graph.entities import Nodes, relation_id
from nyima.mechanisms.graph.partitions import Partitions

__all__ = ["Editor"]

_NEAR = 12
_TARGET = 0.5
_SAME_EVENT = 0.6
_SAME_THING = 0.5
_ENDED = "ended"
_PARTNER = "partne"


@dataclass(slots=True)
class Editor:
    """Works out the changes of one turn. ``open`` are relations that this turn added or
    left open, ``closed`` those that it closed."""

    store: Store
    scope: Scope
    turn: Turn
    now: datetime
    zone: tzinfo
    nodes: Nodes
    partitions: Partitions
    writer: str = "graph"
    changes: list[Change] = field(default_factory=list[Change])
    added: dict[str, Relation] = field(default_factory=dict[str, Relation])
    closed: set[str] = field(default_factory=set[str])

    async def apply(self, found: Sequence[Statement], before: str | None = None) -> list[Change]:
        """The changes that the statements ask for; ``before`` is the relation that was
        stated last before this turn."""
        places: list[str | None] = []
        for statement in found:
            if statement.ends:
                places.append(await self._end(statement))
                continue
            rests = [p for i in statement.rests if (p := before if i < 0 else places[i])]
            for cause in statement.causes:
                rests += [r.id for r in await self._mentioned(cause)]
            places.append(await self._state(statement, tuple(dict.fromkeys(rests))))
        entities = [Add(e) for id, e in self.nodes.made.items() if self._used(id)]
        return [*entities, *self.changes]

    async def only_add(self, found: Sequence[Statement]) -> list[Change]:
        """Every statement as a memory of its own, whatever it changes."""
        for said in found:
            said = replace(said, label=_ENDED if said.ends else said.label, single=False, changes=False)
            if said.tail:
                head, tail = await self.nodes.node(said.head), await self.nodes.value(said.tail, plain=True)
                new = await self._relation(said, head, label_of(said.label), tail, ())
                if new.id not in self.added and head.id != tail.id:
                    self._put(new, [], said)
        return [*(Add(e) for id, e in self.nodes.made.items() if self._used(id)), *self.changes]

    def _used(self, id: str) -> bool:
        return any(id in {r.head, r.tail} for r in self.added.values())

    # --- stating ---

    async def _state(self, said: Statement, rests: tuple[str, ...]) -> str | None:
        label = label_of(said.label)
        head = await self.nodes.node(said.head)
        if not said.tail:
            return None
        tail = await self.nodes.value(said.tail, plain=label in {"name", "nickname", "surname"})
        self.nodes.touch(head.id)
        if head.id == tail.id:
            return None
        siblings = await self._siblings(head.id, label)
        equal = [r for r in siblings if await self._same_value(r, tail)]
        same = equal[0] if equal else None
        if same is not None:
            return self._again(same, rests)
        new = await self._relation(said, head, label, tail, rests)
        old = await self._replaced(said, new, siblings)
        later = [r.valid.since for r in old if self.turn.at < r.valid.since]
        if later:  # told late: it held until what is known took its place
            new = replace(new, valid=Interval(self.turn.at, min(later)))
            self._put(new, [], said)
            return new.id
        combined = await self._combined(said, old)
        if combined is not None:
            tail = await self.nodes.value(combined)
            new = await self._relation(replace(said, tail=combined), head, label, tail, rests)
        self._put(new, old, said)
        return new.id

    async def _siblings(self, head: str, label: str) -> list[Relation]:
        where = RecordFilter(kinds=("relation",), claims=(Claim(head, label),), at=self.turn.at)
        found = [r for r in await self.store.records(self.scope, where) if isinstance(r, Relation)]
        mine = [r for r in self.added.values() if r.claim == Claim(head, label)]
        return [r for r in (*found, *mine) if r.id not in self.closed]

    async def _same_value(self, relation: Relation, tail: Entity) -> bool:
        if relation.tail == tail.id:
            return True
        other = (await self.nodes.get([relation.tail])).get(relation.tail)
        if other is None or fold(other.name) == fold(tail.name):
            return other is not None
        words = stems(other.name)  # "the red car" is "red cars", but Christina is not Christine
        return len(words) > 1 and words == stems(tail.name) and not tail.name[:1].isupper()

    def _again(self, same: Relation, rests: tuple[str, ...]) -> str:
        """What is told again keeps its record; it gains the turn, and what it rests on."""
        made = same.provenance
        more = tuple(r for r in rests if r not in same.rests and r != same.id)
        if self.turn.id in made.turns and not more:
            return same.id
        if same.id in self.added:
            self._swap(same, replace(same, rests=(*same.rests, *more)))
            return same.id
        successor = replace(
            same,
            id=relation_id(self.turn.id, same.head, same.label, same.id),
            provenance=replace(made, turns=tuple(dict.fromkeys((*made.turns, self.turn.id)))),
            recorded=Interval(self.now),
            rests=(*same.rests, *more),
            supersedes=same.id,
            stale=False,
        )
        self.closed.add(same.id)
        self.added[successor.id] = successor
        self.changes.append(Revise(same.id, successor, "told again"))
        return successor.id

    def _swap(self, old: Relation, new: Relation) -> None:
        self.added[old.id] = new
        self.changes = [
            replace(c, record=new) if isinstance(c, Add) and c.record.id == old.id
            else replace(c, successor=new) if isinstance(c, Revise) and c.successor.id == old.id
            else c
            for c in self.changes
        ]  # fmt: skip

    async def _relation(
        self, said: Statement, head: Entity, label: str, tail: Entity, rests: tuple[str, ...]
    ) -> Relation:
        until = None
        if label == "expires" and said.moment is not None and said.moment.dated:
            until = said.moment.interval(self.zone).until
        subclass = await self.partitions.of(label, said.note)
        return Relation(
            id=relation_id(self.turn.id, head.id, label, tail.name),
            provenance=Provenance(
                (self.turn.id,), (), self.writer, "notes" if said.noted else "", "", self.turn.origin
            ),
            valid=Interval(self.turn.at, max(until, self.turn.at) if until else None),
            recorded=Interval(self.now),
            claim=Claim(head.id, label),
            head=head.id,
            label=label,
            tail=tail.id,
            note=standard_note(said.note, said.head, head, tail),
            subclass=subclass,
            rests=rests,
        )

    async def _replaced(self, said: Statement, new: Relation, siblings: list[Relation]) -> list[Relation]:
        """What the new relation takes the place of."""
        if self.turn.origin is Origin.DOCUMENT:
            return []
        if said.single or single(new.label):
            if siblings:
                return siblings
            return await self._same_event(said, new) if said.event else []
        measured = [r for r in siblings if measure(r.note) and measure(r.note) == measure(new.note)]
        if measured:
            return measured[-1:]
        known = LABELS.get(new.label)
        several = known is not None and not known.single and new.label != "play"
        if not (said.swaps if several else said.changes):
            return []
        near = await self.partitions.nearest(new.note, new.subclass, _NEAR)
        wanted = stems(new.note)
        best: tuple[float, str, Relation] | None = None
        for relation in {r.id: r for r in (*near, *siblings)}.values():
            if relation.head != new.head or relation.id in self.closed or relation.id == new.id:
                continue
            shared = len(wanted & stems(relation.note)) / max(1, min(len(wanted), len(stems(relation.note))))
            score = shared + (0.2 if relation.label == new.label else 0.0)
            if (
                score >= _SAME_THING
                and len(wanted & stems(relation.note)) > 1 - (relation.label == new.label)
                and (best is None or (score, relation.id) > best[:2])
            ):
                best = (score, relation.id, relation)
        return [best[2]] if best is not None else []

    async def _same_event(self, said: Statement, new: Relation) -> list[Relation]:
        """An event that has another name now: "the landlord meeting" is "meet the landlord"."""
        if not said.changes:
            return []
        names = await self.nodes.get([new.head])
        wanted = stems(names[new.head].name)
        found: list[tuple[float, str, Relation]] = []
        for relation in await self.partitions.nearest(new.note, new.subclass, _NEAR):
            if relation.label != new.label or relation.id in self.closed or relation.stale:
                continue
            other = (await self.nodes.get([relation.head])).get(relation.head)
            there = stems(other.name) if other is not None else frozenset()
            shared = len(wanted & there) / max(1, min(len(wanted), len(there)))
            if shared >= _SAME_EVENT:
                found.append((shared, relation.id, relation))
        return [max(found, key=lambda f: f[:2])[2]] if found else []

    async def _combined(self, said: Statement, old: list[Relation]) -> str | None:
        """A new time of day keeps the day that is known, a new day the time."""
        moment = said.moment
        if not old or moment is None or moment.dated:
            return None
        entity = (await self.nodes.get([old[-1].tail])).get(old[-1].tail)
        held = read_moment(entity.name) if entity is not None else None
        if held is None or not held.dated:
            return None
        start = datetime.combine(held.start.date(), moment.start.time())
        return Moment(start, start + timedelta(0), clock=True).name

    def _put(self, new: Relation, old: list[Relation], said: Statement) -> None:
        reason = "corrected" if said.changes else "replaced"
        for relation in old[:-1]:
            self.closed.add(relation.id)
            self.changes.append(Retire(relation.id, self.turn.at, reason))
        if old:
            self.closed.add(old[-1].id)
            new = replace(new, supersedes=old[-1].id)
            self.changes.append(Revise(old[-1].id, new, reason))
        else:
            self.changes.append(Add(new))
        self.added[new.id] = new

    # --- ending ---

    async def _end(self, said: Statement) -> str | None:
        """Retire what the statement ends, and keep that it was ended."""
        if self.turn.origin is Origin.DOCUMENT:
            return None
        subject = await self.nodes.find(canonical_mention(said.head)) if said.head else None
        if subject is not None:
            self.nodes.touch(subject.id)
        other = another_person(said.head) and not shared_matter(said.tail)
        found = [] if other and subject is None else await self._targets(said)
        targets = [r for r in found if subject is None or self._ends_this(said, r, subject, other=other)]
        if subject is not None and not targets and said.head.lower() in {"it", "this", "that"}:
            targets = await self._of(subject)
        if other and not targets:
            return await self._state(replace(said, label=_ENDED, ends=False), ())
        if said.replaces:
            targets = [r for r in targets if stems(said.tail) & called(r)]
        for relation in targets:
            self.closed.add(relation.id)
            if relation.id not in self.added:
                self.changes.append(Retire(relation.id, max(self.turn.at, relation.valid.since), "ended by the user"))
        thing = (await self.nodes.get([targets[0].tail])).get(targets[0].tail) if targets else None
        if thing is not None and read_moment(thing.name) is not None:
            thing = (await self.nodes.get([targets[0].head])).get(targets[0].head)
        what = thing.name if thing is not None and thing.id != ME else said.tail
        if (not targets and not stems(said.tail)) or said.replaces:
            return None
        head = await self.nodes.node(ME)
        tail = await self.nodes.value(what, plain=True)
        new = await self._relation(replace(said, label=_ENDED), head, _ENDED, tail, ())
        if new.id not in self.added and head.id != tail.id:
            self.changes.append(Add(new))
            self.added[new.id] = new
        return new.id

    async def _targets(self, said: Statement) -> list[Relation]:
        words = stems(said.clause)
        split = re.search(r"\b(?:broke|break|broken|split) up\b|\bdivorc", said.clause, re.IGNORECASE) is not None
        words = words | {_PARTNER} if split else words
        thing = ended_thing(said.clause)
        found: list[tuple[float, str, Relation]] = []
        for relation in await self._candidates(said.clause + (" partner married engaged" if split else "")):
            if relation.label == _ENDED or not await self._about(relation, said):
                continue
            names = await self.nodes.get([relation.head, relation.tail])
            if said.moment is not None and said.moment.dated and once_only(said.clause, relation):
                continue
            score = overlap(relation, words, names)
            ends = [names[id].name for id in (relation.head, relation.tail) if id in names and id != ME]
            if thing and not thing & (called(relation) | stems(" ".join((relation.note, *ends)))):
                continue
            if score >= _TARGET:
                found.append((score, relation.id, relation))
        found.sort(key=lambda f: (-f[0], f[1]))
        if not found:
            return []
        best = found[0][2]
        things = {best.tail} - {ME} if best.head == ME else {best.head}
        clause = best.note.partition(" (")[0]
        same = [
            r
            for _, _, r in found
            if r.note.partition(" (")[0] == clause and r.provenance.turns == best.provenance.turns
        ]
        same += [
            r for s, _, r in found if r.tail in things or (r.head in things and s >= found[0][0]) or s >= found[0][0]
        ]
        return list({r.id: r for r in (best, *same)}.values())

    async def _of(self, thing: Entity) -> list[Relation]:
        """What is believed of a thing."""
        where = RecordFilter(kinds=("relation",), turns=(thing.id,), at=self.turn.at)
        found = await self.store.records(self.scope, where)
        return [r for r in found if isinstance(r, Relation) and r.head == thing.id and r.id not in self.closed]

    def _ends_this(self, said: Statement, relation: Relation, subject: Entity, *, other: bool) -> bool:
        """Of somebody who ended something, that alone ends ("Otto sold his car"), unless they
        themselves came to an end ("Bruno died")."""
        if other and subject.id not in {relation.head, relation.tail}:
            head = self.nodes.known.get(relation.head) or self.nodes.made.get(relation.head)
            theirs = stems(" ".join((subject.name, *subject.aliases)))
            return relation.head != ME and head is not None and bool(theirs & stems(head.name))
        if subject.id in {ME, relation.tail} or relation.head != subject.id or OVER.search(said.clause):
            return True
        words = stems(said.tail)
        value = self.nodes.known.get(relation.tail) or self.nodes.made.get(relation.tail)
        return bool(words & (called(relation) | (stems(value.name) if value is not None else frozenset())))

    async def _candidates(self, text: str) -> list[Relation]:
        near = await self.partitions.nearest(text, None, _NEAR)
        return [
            r
            for r in (*near, *self.added.values())
            if r.id not in self.closed and r.provenance.turns != (self.turn.id,)
        ]

    async def _about(self, relation: Relation, said: Statement) -> bool:
        """Whether a relation is the user's own, or about somebody whom the clause names."""
        if relation.head == ME or re.search(r"\bthe user\b(?!')", relation.note):
            return True
        head = (await self.nodes.get([relation.head])).get(relation.head)
        if head is None:
            return False
        if head.name.startswith("user's ") and head.name.count("'s ") == 1:
            return True
        names = stems(" ".join((head.name, *head.aliases))) - {"friend", "sister", "brother", "neighb"}
        return bool(names & stems(said.clause)) and len(names & stems(said.clause)) >= min(len(names), 1)

    async def _mentioned(self, cause: str) -> list[Relation]:
        """The memories that a cause speaks of: all words of their value, or of their thing,
        stand in it."""
        there = stems(cause)
        chosen, weaker = list[Relation](), list[Relation]()
        for relation in await self._candidates(cause):
            names = await self.nodes.get([relation.head, relation.tail])
            head, tail = names.get(relation.head), names.get(relation.tail)
            value = stems(tail.name) if tail is not None else frozenset()
            thing = stems(head.name) if head is not None and head.id != ME else frozenset()
            part = len(value & there) >= max(1, (len(value) + 1) // 2)
            if (value and part) or (thing and thing <= there):
                chosen.append(relation)
            elif (value | thing) & there:
                weaker.append(relation)
        return chosen[:4] or weaker[:1]
