"""Mentions to entities: the user, "my boss", "the flight", "it".

An entity keeps its id for life. Names given later ("my dog is called Bruno") and merges
(``same_as``) are relations, so that they have history, provenance and undo like all else;
an entity is found under any of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nyima.domain.conversation import Scope, Turn
from nyima.domain.ports import Probe, RecordFilter
from nyima.domain.records import ME, Claim, Entity, Interval, Provenance, Relation
from nyima.domain.storage import Store
from nyima.language.english.mentions import PERSONAL, ROLE_NAME, THINGS, canonical_mention, is_person, stems
from nyima.language.relations import label_of
from nyima.language.words import fold

__all__ = ["Nodes", "relation_id"]

_ALIASING = ("name", "nickname", "same_as")
_MOST_LIKE = 60


def entity_id(turn: str, name: str) -> str:
    """An id that follows from the turn and the name, so that writing twice adds once."""
    return "x-" + hashlib.sha256(f"{turn}\x1f{fold(name)}".encode()).hexdigest()[:16]


def relation_id(turn: str, head: str, label: str, tail: str) -> str:
    """An id that follows from what is stated and where."""
    return "r-" + hashlib.sha256(f"{turn}\x1f{head}\x1f{label}\x1f{fold(tail)}".encode()).hexdigest()[:16]


@dataclass(slots=True)
class Nodes:
    """The entities, as far as one turn needs them. ``recent`` are the ids that were spoken
    of last, newest first; ``made`` what this turn adds."""

    store: Store
    scope: Scope
    turn: Turn
    recorded: Interval
    recent: list[str] = field(default_factory=list[str])
    made: dict[str, Entity] = field(default_factory=dict[str, Entity])
    known: dict[str, Entity] = field(default_factory=dict[str, Entity])

    async def load_recent(self, turns: Sequence[str]) -> None:
        """Take in what the turns before spoke of, the newest last."""
        found = await self.store.records(self.scope, RecordFilter(kinds=("relation",), turns=tuple(turns)))
        order = {turn: i for i, turn in enumerate(turns)}
        relations = [r for r in found if isinstance(r, Relation)]
        relations.sort(key=lambda r: (max(order.get(t, -1) for t in r.provenance.turns), r.recorded.since, r.id))
        for relation in relations:
            self.touch(relation.tail)
            self.touch(relation.head)

    def touch(self, id: str) -> None:
        """Note that an entity was spoken of."""
        if id != ME:
            self.recent = [id, *(r for r in self.recent if r != id)][:40]

    async def get(self, ids: Iterable[str]) -> dict[str, Entity]:
        """Entities by id."""
        missing = tuple(i for i in ids if i not in self.known and i not in self.made)
        if missing:
            for record in await self.store.records(self.scope, RecordFilter(ids=missing)):
                if isinstance(record, Entity):
                    self.known[record.id] = record
        return {**self.known, **self.made}

    async def node(self, mention: str) -> Entity:
        """The entity that a mention means, made when there is none."""
        name = await self._owned_name(canonical_mention(mention))
        found = await self.find(name)
        if found is None:
            found = self._make(name)
        self.touch(found.id)
        return found

    async def value(self, text: str, *, plain: bool = False) -> Entity:
        """The node of a value; an equal value that is known is the same node. ``plain``
        values, such as names, stand for themselves and not for what bears them."""
        name = await self._owned_name(canonical_mention(text))
        if not plain and (name == ME or name.startswith("user's ")):
            found = await self.find(name)
        else:
            found = await self._exact(name)
            found = await self._root(found) if found is not None and not plain and name[:1].isupper() else found
        found = found or self._make(name)
        self.touch(found.id)
        return found

    def _make(self, name: str) -> Entity:
        id = ME if name == ME else entity_id(self.turn.id, name)
        aliases: tuple[str, ...] = ()
        role = ROLE_NAME.match(name)
        if role:
            aliases, name = (canonical_mention(f"{role[1]} {role[2]}"),), role[2]
        made = Provenance(turns=(self.turn.id,) if id != ME else (), writer="graph", origin=self.turn.origin)
        entity = Entity(
            id=id, provenance=made, valid=Interval(self.turn.at), recorded=self.recorded, name=name, aliases=aliases
        )
        return self.made.setdefault(id, entity)

    async def _owned_name(self, name: str) -> str:
        """``her voucher`` with the person that "her" means."""
        match = re.match(r"^(his|her|its|their) (.+)$", name, re.IGNORECASE)
        if not match:
            return name
        owner = await self._pronoun(match[1].lower())
        return f"{owner.name}'s {match[2]}" if owner is not None else f"user's {match[2]}"

    async def find(self, name: str) -> Entity | None:
        """The entity of that name, alias, role or description; None when there is none."""
        if name == ME:
            return (await self.get([ME])).get(ME) or self._make(ME)
        low = fold(name)
        if low in PERSONAL | THINGS:
            return await self._pronoun(low)
        role = re.match(r"^(?:user|([\w .]+?))'s ([\w -]+)$", name)
        if role:
            owner = ME if role[1] is None else getattr(await self._exact(role[1]), "id", None)
            held = await self._claimed(owner, label_of(role[2].lower().replace(" ", "_"))) if owner else None
            if held is not None:
                return held
        entity = await self._exact(name) or await self._described(name)
        return await self._root(entity) if entity is not None else None

    async def _claimed(self, owner: str, label: str) -> Entity | None:
        where = RecordFilter(kinds=("relation",), claims=(Claim(owner, label),), at=self.turn.at)
        held = [r for r in await self.store.records(self.scope, where) if isinstance(r, Relation)]
        found = await self.get([held[-1].tail]) if held else {}
        entity = found.get(held[-1].tail) if held else None
        return None if entity is None or entity.name[:1].isdigit() else entity

    async def _like(self, name: str) -> list[Entity]:
        """Entities that share a word with a name, newest first."""
        hits = await self.store.search(self.scope, Probe(words=name, kinds=("entity",), k=_MOST_LIKE))
        found = await self.get([h.id for h in hits])
        ids = dict.fromkeys([*self.made, *(h.id for h in hits)])
        rank = {id: i for i, id in enumerate(self.recent)}
        like = [found[id] for id in ids if id in found]
        like.sort(key=lambda e: e.id)
        like.sort(key=lambda e: e.recorded.since, reverse=True)
        return sorted(like, key=lambda e: rank.get(e.id, 1_000))

    async def _exact(self, name: str) -> Entity | None:
        low = fold(name)
        for entity in await self._like(name):
            if any(fold(other) == low for other in (entity.name, *entity.aliases)):
                return entity
        return None

    async def _described(self, name: str) -> Entity | None:
        """An entity whose name has all the words of a description. A description of one
        common word ("the flight") means what was spoken of lately."""
        wanted = stems(name)
        if not wanted:
            return None
        owned = name.startswith("user's ")
        loose: list[Entity] = []
        for entity in await self._like(name):
            if entity.id == ME:
                continue
            for other in (entity.name, *entity.aliases):
                there = stems(other)
                owner = re.match(r"^(.+)'s ", other)
                fits = wanted <= there
                foreign = owner is not None and owner[1] != "user" and fold(owner[1]) not in fold(name)
                if fits and not foreign and (owned or name[:1].islower()):
                    return entity
                if fits and not owned:
                    loose.append(entity)
        only = {e.id: e for e in loose}
        return loose[0] if len(only) == 1 else None

    async def _pronoun(self, word: str) -> Entity | None:
        found = await self.get(self.recent)
        for id in self.recent:
            entity = found.get(id)
            if (
                entity is not None
                and (is_person(entity.name) or entity.name.endswith(("dog", "cat"))) == (word in PERSONAL)
                and not entity.name[:1].isdigit()
                and not await self._is_nobody_else(entity)
            ):
                return entity
        return None

    async def _is_nobody_else(self, entity: Entity) -> bool:
        """Whether it is a name of the user's, or a place: "she" is somebody else."""
        where = RecordFilter(kinds=("relation",), turns=(entity.id,), at=self.turn.at)
        links = await self.store.records(self.scope, where)
        mine = {"is", "name", "called", *_ALIASING}
        return any(
            isinstance(r, Relation)
            and r.tail == entity.id
            and (r.label == "location" or (r.head == ME and r.label in mine))
            for r in links
        )

    async def _root(self, entity: Entity) -> Entity:
        """The entity that a name belongs to, and what it was merged into."""
        seen = {entity.id}
        while True:
            where = RecordFilter(kinds=("relation",), turns=(entity.id,))
            links = [
                r for r in await self.store.records(self.scope, where)
                if isinstance(r, Relation) and r.label in _ALIASING and r.tail == entity.id and r.head not in seen
            ]  # fmt: skip
            if not links or links[-1].head == ME:
                return entity
            found = await self.get([links[-1].head])
            if links[-1].head not in found:
                return entity
            entity = found[links[-1].head]
            seen.add(entity.id)
