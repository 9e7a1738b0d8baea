"""What is known now, as the skills read it: relations with the names of their ends, and
the profile's facts as relations of the user."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nyima.domain.records import ME, Entity, MemoryRecord, ProfileFact, Relation
from nyima.language.english.mentions import stems
from nyima.language.relations import label_of
from nyima.memory import Memory

__all__ = ["Stated", "known", "related"]


@dataclass(frozen=True, slots=True)
class Stated:
    """A relation in words. ``head`` and ``tail`` are names, ``record`` what it comes from."""

    head: str
    label: str
    tail: str
    note: str
    record: MemoryRecord
    aliases: tuple[str, ...] = ()

    @property
    def mine(self) -> bool:
        """Whether it is said of the user."""
        return self.head == ME


async def known(memory: Memory, *, expired: bool = False) -> list[Stated]:
    """What is believed now, oldest first; ``expired`` also what is over by the clock. What
    has become uncertain is left out."""
    records = await memory.records(kinds=("relation", "entity", "fact"), retired=expired)
    believed = [r for r in records if r.recorded.until is None and not r.stale]
    entities = {r.id: r for r in records if isinstance(r, Entity)}
    missing = {id for r in believed if isinstance(r, Relation) for id in (r.head, r.tail)} - {*entities}
    if missing:
        entities |= {r.id: r for r in await memory.records(kinds=("entity",), retired=True) if isinstance(r, Entity)}
    found: list[Stated] = []
    for record in believed:
        if isinstance(record, Relation) and record.head in entities and record.tail in entities:
            head, tail = entities[record.head], entities[record.tail]
            found.append(Stated(head.name, record.label, tail.name, record.note, record, head.aliases))
        elif isinstance(record, ProfileFact):
            found.append(_fact(record))
    stated = {(k.head, k.label) for k in found if isinstance(k.record, Relation)}
    return [k for k in found if isinstance(k.record, Relation) or (k.head, k.label) not in stated]


def _fact(record: ProfileFact) -> Stated:
    thing, _, attribute = record.key.rpartition("_")
    if thing and attribute in {"name", "age", "birthday"}:
        return Stated(f"user's {thing.replace('_', ' ')}", attribute, record.value, record.text, record)
    return Stated(ME, label_of(record.key), record.value, record.text, record)


def related(everything: Sequence[Stated], role: str) -> list[str]:
    """The names of the user's people or things of a role: "my daughter" by relation, by
    alias, or by what they are called."""
    wanted = stems(role)
    names: list[str] = []
    for item in everything:
        if item.mine and wanted & stems(item.label.replace("_", " ")):
            names.append(item.tail)
        for name in (item.head, *item.aliases):
            owned = re.match(r"^user's (.+)$", name)
            if owned and wanted & stems(owned[1].rsplit("'s ", maxsplit=1)[0]) and "'s " not in owned[1]:
                names.append(item.head)
        if (
            item.label == "name"
            and item.head.startswith("user's ")
            and wanted & stems(item.head.rsplit("'s ", maxsplit=1)[-1])
        ):
            names.append(item.tail)
    return list(dict.fromkeys(names))
