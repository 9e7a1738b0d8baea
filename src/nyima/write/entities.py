"""From the names that claims use to the entities of the graph, which are made when they are new."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nyima.domain.conversation import Scope
from nyima.domain.ports import Probe, RecordFilter
from nyima.domain.records import ME, Claim, Entity, Interval, Provenance, Slot
from nyima.domain.storage import Store
from nyima.language.words import fold, words

__all__ = ["SAME_AS", "Entities", "plain_name"]

SAME_AS = "same as"
"""The attribute of the claim that says that two entities are one."""

_MOST_LIKE = 60
_LONGEST_NAME = 120
_OWNER = re.compile(r"^(?:the )?user(?:['’]s)? +", re.IGNORECASE)


def plain_name(name: str) -> str:
    """Return a name as entities have it: ``user's dog`` is ``dog``, since all of it is the user's world;
    the user alone is ``user``."""
    text = " ".join(name.split()).strip(" ,.;:!\"'")
    rest = _OWNER.sub("", text, count=1) if fold(text) not in {ME, "the user"} else ME
    return (rest or ME)[:_LONGEST_NAME]


@dataclass(slots=True)
class Entities:
    """The entities, as far as one change needs them; ``made`` are those that it adds."""

    store: Store
    scope: Scope
    made_by: Provenance
    valid: Interval
    made: dict[str, Entity] = field(default_factory=dict[str, Entity])
    known: dict[str, Entity] = field(default_factory=dict[str, Entity])

    async def named(self, name: str) -> Entity:
        """Return the entity with that name or alias, made when there is none. "Ana" is the sister Ana
        when no other entity has that name in it."""
        plain = plain_name(name)
        if plain == ME:
            return (await self.get([ME])).get(ME) or self._make(ME)
        like = await self._like(plain)
        found = _exactly(plain, like) or _within(plain, like)
        return await self._root(found) if found is not None else self._make(plain)

    async def value(self, text: str) -> Entity:
        """Return the node of a value: the entity of exactly that name, else a new one."""
        plain = plain_name(text)
        if plain == ME:
            return await self.named(ME)
        found = _exactly(plain, await self._like(plain))
        return await self._root(found) if found is not None else self._make(plain)

    async def get(self, ids: Iterable[str]) -> dict[str, Entity]:
        """Return entities by id, those that are there."""
        missing = tuple(i for i in ids if i not in self.known and i not in self.made)
        if missing:
            for record in await self.store.records(self.scope, RecordFilter(ids=missing)):
                if isinstance(record, Entity):
                    self.known[record.id] = record
        return {**self.known, **self.made}

    def _make(self, name: str) -> Entity:
        if name == ME:
            id, made = ME, Provenance(writer=self.made_by.writer)
        else:
            source = next(iter((*self.made_by.turns, *self.made_by.records)), "")
            id = "x-" + hashlib.sha256(f"{source}\x1f{fold(name)}".encode()).hexdigest()[:16]
            made = self.made_by
        entity = Entity(id=id, provenance=made, valid=self.valid, recorded=self.valid, name=name)
        return self.made.setdefault(id, entity)

    async def _like(self, name: str) -> list[Entity]:
        """Entities that share a word with a name, those that were made just now first."""
        hits = await self.store.search(self.scope, Probe(words=name, kinds=("entity",), k=_MOST_LIKE))
        found = await self.get([h.id for h in hits])
        return [found[id] for id in dict.fromkeys([*self.made, *(h.id for h in hits)]) if id in found and id != ME]

    async def _root(self, entity: Entity) -> Entity:
        """Return the entity that an entity was merged into, or itself."""
        seen = {entity.id}
        while True:
            linked = await self.store.records(self.scope, RecordFilter(kinds=("claim",), turns=(entity.id,)))
            into = [
                c.subject for c in linked
                if isinstance(c, Claim) and c.object == entity.id and c.slot == Slot(c.subject, SAME_AS)
            ]  # fmt: skip
            found = await self.get(into)
            if not into or into[-1] in seen or into[-1] not in found:
                return entity
            entity = found[into[-1]]
            seen.add(entity.id)


def _names(entity: Entity) -> tuple[str, ...]:
    return (entity.name, *entity.aliases)


def _exactly(name: str, like: Sequence[Entity]) -> Entity | None:
    return next((e for e in like if any(fold(n) == fold(name) for n in _names(e))), None)


def _within(name: str, like: Sequence[Entity]) -> Entity | None:
    """Return the one entity that a shorter or longer form of its name means: "Ana" is "sister Ana", while
    "dentist" is not "dentist Dr. Reis", nor "Rui's dentist". None when there are several."""
    found = {e.id: e for e in like if any(_is_part(name, n) or _is_part(n, name) for n in _names(e))}
    return next(iter(found.values())) if len(found) == 1 else None


def _is_part(short: str, long: str) -> bool:
    """Return whether a name of its own ("Ana", not a role such as "sister") stands in a longer name."""
    proper = any(word[:1].isupper() for word in short.split())
    owned = any(mark in f"{short} {long}" for mark in ("'s ", "’s "))
    return proper and not owned and bool(words(short)) and set(words(short)) <= set(words(long))
