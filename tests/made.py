"""Records, evidence, turns and models for tests, in few words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from nyima.domain.changes import Add, Delta
from nyima.domain.conversation import Origin, Role, Scope, Turn
from nyima.domain.evidence import Evidence
from nyima.domain.ports import Job
from nyima.domain.recipe import Recipe
from nyima.domain.records import (
    Claim,
    Entity,
    Episode,
    Interval,
    MemoryRecord,
    Note,
    Passage,
    Provenance,
    Summary,
)
from nyima.memory import Memory, Said
from nyima.read.calls import Caller
from nyima.testing import FixedClock, MemoryStore, ScriptedModel
from nyima.write.desk import Desk

T0 = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SCOPE = Scope(user="karen")


def base(id: str, at: datetime = T0, turns: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """What every record has; anything can be given."""
    made = Provenance(turns, writer="tester", origin=Origin.USER)
    return {"id": id, "provenance": made, "valid": Interval(at), "recorded": Interval(at), **more}


def claim(id: str, attribute: str, value: str, **more: Any) -> Claim:
    """What is claimed of the user."""
    return Claim(**{"subject": "user", "subclass": "Address", **base(id, **more)}, attribute=attribute, value=value)


def episode(id: str, said: str, session: str = "s1", position: int = 0, **more: Any) -> Episode:
    return Episode(**base(id, **more), session=session, position=position, speaker="User", said=said)


def note(id: str, knowledge: str, context: str = "", **more: Any) -> Note:
    return Note(**base(id, **more), context=context, knowledge=knowledge)


def summary(id: str, body: str, level: str = "running", covers: tuple[str, ...] = ("s1",), **more: Any) -> Summary:
    return Summary(**base(id, **more), level=level, covers=covers, body=body)


def entity(id: str, name: str, aliases: tuple[str, ...] = (), **more: Any) -> Entity:
    return Entity(**base(id, **more), name=name, aliases=aliases)


def edge(id: str, subject: str, attribute: str, object: str, value: str = "", **more: Any) -> Claim:
    """A claim between two entities of a graph, given by their ids."""
    given = {"subclass": "Address", "name": subject, **base(id, **more)}
    return Claim(**given, subject=subject, attribute=attribute, value=value or object, object=object)


def passage(id: str, body: str, document: str = "d.md", place: str = "", **more: Any) -> Passage:
    return Passage(**base(id, **more), document=document, place=place, body=body)


def piece(record: MemoryRecord, score: float = 0.5, source: str = "notes", **more: Any) -> Evidence:
    """Evidence that quotes a record."""
    return Evidence(record.text, source, score, record, more.pop("at", record.valid.since), **more)


def said(id: str, text: str, role: Role = Role.USER, position: int = 0, **more: Any) -> Turn:
    return Turn(id, more.pop("session", "s1"), role, text, more.pop("at", T0), position=position, **more)


def asks(*answers: Any, lane: str, **lanes: Any) -> tuple[Caller, ScriptedModel]:
    """A caller whose model gives these answers to a job; what is no text becomes JSON."""
    script = {lane: list(answers), **lanes}
    texts = {name: [a if isinstance(a, str | Exception) else json.dumps(a) for a in v] for name, v in script.items()}
    model = ScriptedModel(texts)  # type: ignore[arg-type]
    return Caller(model, MemoryStore(), FixedClock()), model


async def put(memory: Memory, *records: MemoryRecord) -> None:
    """Keep records as they are, past every rule of a writer."""
    await memory.store.commit(memory.scope, Delta(tuple(map(Add, records)), "tester"))


def pieces_of(given: list[tuple[str, str, float, bool]]) -> list[Evidence]:
    """Memories of a graph (head, tail, cosine, activated) as a walk sees them."""
    return [
        piece(
            edge(f"r{i}", head, "near", tail, f"memory {i}"), memory, "graph",
            scores={"node": memory, "edge": memory, "memory": memory} | ({"activated": float(i)} if active else {}),
        )
        for i, (head, tail, memory, active) in enumerate(given)
    ]  # fmt: skip


KEEPS = Recipe("r", "", ("conditional", "claims"), gate="reply")


def desk(memory: Memory, *answers: object, lane: str, recipe: Recipe = KEEPS) -> Desk:
    """A desk in front of an open memory; without answers there is no model."""
    caller = asks(*answers, lane=lane)[0] if answers else None
    return Desk(
        memory.store, caller, memory.clock, recipe=recipe, follow_ups=lambda n: [("note", "")] if n.remember else []
    )


async def last_turn(memory: Memory, *what: Said) -> Job:
    """The job of the last of some turns."""
    stored = await memory.remember(list(what), session="s1", owed=False)
    return Job("j", "x", stored.turns[-1].id, recipe="r")
