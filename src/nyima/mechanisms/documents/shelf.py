"""The documents of a memory and its other sources: add, list, remove. What they say is quoted: it is recalled
with its place, never obeyed, and never becomes a fact about the user."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nyima.change.cascade import Receipt
from nyima.change.opened import OpenMemory
from nyima.domain.changes import Add, Change, Delta, Retire
from nyima.domain.conversation import Origin, clean_text
from nyima.domain.documents import Document
from nyima.domain.mechanism import Mechanism, Source
from nyima.domain.records import Interval, Passage, Provenance
from nyima.errors import ModelError, NotFound
from nyima.mechanisms.documents.cut import cut
from nyima.read.embedding import index_pending
from nyima.read.sources import in_order

__all__ = [
    "MECHANISM",
    "Added",
    "Held",
    "add_document",
    "described_sources",
    "held_documents",
    "index_documents",
    "remove_documents",
]


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a document: ``added``, ``replaced`` or ``unchanged``; ``note`` says
    what of it could not be read."""

    name: str
    passages: int
    state: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """A document that the memory has."""

    name: str
    passages: int
    words: int
    added: datetime


async def _passages(memory: OpenMemory) -> list[Passage]:
    return [r for r in await memory.records(kinds=("passage",)) if isinstance(r, Passage)]


async def add_document(memory: OpenMemory, document: Document) -> Added:
    """Keep a document's passages, in one commit. The same text again changes nothing; another
    text under the same name replaces it, and what was there before stays in the history."""
    now = memory.clock.now()
    name = clean_text(document.name)
    old = {(p.place, p.offset, p.body): p for p in await _passages(memory) if p.document == name}
    new = dict.fromkeys((clean_text(place), offset, clean_text(text)) for place, offset, text in cut(document))
    if old.keys() == new.keys():
        return Added(name, len(new), "unchanged", document.note)
    made = Provenance(writer="documents", origin=Origin.DOCUMENT)
    changes: list[Change] = [Retire(p.id, now, f"{name} was replaced") for key, p in old.items() if key not in new]
    changes += [
        Add(
            Passage(
                id="d-" + uuid.uuid4().hex[:16], provenance=made, valid=Interval(now), recorded=Interval(now),
                document=name, place=place, body=text, offset=offset,
            )
        )
        for place, offset, text in new if (place, offset, text) not in old
    ]  # fmt: skip
    await memory.store.commit(memory.scope, Delta(tuple(changes), "documents"))
    return Added(name, len(new), "replaced" if old else "added", document.note)


async def index_documents(memory: OpenMemory, note: Callable[[int], None] | None = None) -> int:
    """Make the vectors that are missing, a batch at a time; how many. Without an embedder
    documents are found by words alone."""
    if memory.embedder is None:
        return 0
    done = 0
    with contextlib.suppress(ModelError):
        while made := await index_pending(memory.store, memory.embedder, memory.scope, 64):
            done += made
            if note is not None:
                note(done)
    return done


async def held_documents(memory: OpenMemory) -> list[Held]:
    """The documents, by name."""
    found: dict[str, list[Passage]] = {}
    for passage in await _passages(memory):
        found.setdefault(passage.document, []).append(passage)
    return [
        Held(name, len(every), sum(len(p.body.split()) for p in every), min(p.recorded.since for p in every))
        for name, every in sorted(found.items())
    ]


async def remove_documents(memory: OpenMemory, names: Sequence[str]) -> Receipt:
    """Erase documents for good, earlier versions too. Raises NotFound."""
    every = [r for r in await memory.records(kinds=("passage",), retired=True) if isinstance(r, Passage)]
    missing = sorted(set(names) - {p.document for p in every})
    if missing:
        raise NotFound(f"there is no document {missing[0]!r}: `nyima docs list` has their names")
    return await memory.forget(*(p.id for p in every if p.document in set(names)))


async def described_sources(memory: OpenMemory) -> list[dict[str, Any]]:
    """The sources of the memory's recipe and the user's own, in the order in which they can
    be asked: name, what is in it, what it needs, how many pieces it has (None when that
    cannot be known)."""
    specs = memory.recipe.sources
    after: dict[str, tuple[str, ...]] = {s.name: s.after for s in specs}
    after |= {s.name: s.after for s in memory.own_sources}
    after = {name: tuple(n for n in needs if n in after) for name, needs in after.items()}
    about = {
        **{n: s.about for n, s in memory.registry.sources.items()},
        **{s.name: s.about for s in memory.own_sources},
    }
    rows: list[dict[str, Any]] = []
    for name in in_order(after):
        size: int | None = None
        if name == "persona":
            size = len([line for line in memory.persona.splitlines() if line.strip()])
        elif name in memory.registry.sources:
            size = len(await memory.records(kinds=memory.registry.sources[name].kinds))
        rows.append({"name": name, "about": about[name], "after": list(after[name]), "size": size})
    return rows


MECHANISM = Mechanism(
    "documents",
    "documents that the user gave",
    sources=(Source("documents", "documents that the user gave: manuals, notes, web pages", kinds=("passage",)),),
)
