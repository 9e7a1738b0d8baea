"""The REST API below ``/api``, continued: graph, documents, sources."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query

from nyima.change.as_json import receipt_to_dict
from nyima.domain.conversation import iso
from nyima.mechanisms.documents.parse import parse_document
from nyima.mechanisms.documents.shelf import (
    add_document,
    described_sources,
    held_documents,
    index_documents,
    remove_documents,
)
from nyima.mechanisms.graph.look import entity_named, history_of, neighbourhood
from nyima.read.trace import claim_to_json
from nyima.server.rest import ERRORS, Reads, Writes
from nyima.server.shapes import DocumentIn, ForgetOut, Page

__all__ = ["router"]

router = APIRouter(prefix="/api", responses=ERRORS)
Name = Annotated[str, Query(max_length=200, description="An entity's name or id; the user when empty.")]


@router.get("/graph", tags=["graph"])
async def graph(who: Reads, name: Name = "", depth: Annotated[int, Query(ge=1, le=3)] = 2) -> dict[str, Any]:
    """What stands around an entity: entities, and the claims between them."""
    found = await neighbourhood(who.memory, await entity_named(who.memory, name or "me"), depth)
    return {
        "root": found.root,
        "entities": [{"id": e.id, "name": e.name, "aliases": list(e.aliases)} for e in found.entities.values()],
        "claims": [claim_to_json(c) | {"from": c.subject, "to": c.object} for c in found.claims],
    }


@router.get("/graph/history", tags=["graph"])
async def graph_history(who: Reads, query: Annotated[str, Query(min_length=1, max_length=500)]) -> Page:
    """The values that a claim had, oldest first, with the words that say so."""
    found = await history_of(who.memory, query)
    rows = [claim_to_json(v.claim) | {"said": [t.text for t in v.turns]} for v in found]
    return Page(rows=rows)


@router.get("/documents", tags=["documents"])
async def documents(who: Reads) -> Page:
    """The documents that are looked things up in."""
    found = await held_documents(who.memory)
    return Page(rows=[{"name": d.name, "passages": d.passages, "words": d.words, "since": iso(d.added)} for d in found])


@router.post("/documents", tags=["documents"])
async def add(given: DocumentIn, who: Writes) -> dict[str, Any]:
    """Add a text document (its name ends in .txt, .md or .html). The same text again changes
    nothing; another text under the name replaces it."""
    added = await add_document(
        who.memory, await asyncio.to_thread(parse_document, given.text.encode("utf-8", "replace"), given.name)
    )
    await index_documents(who.memory)
    return {"name": added.name, "passages": added.passages, "state": added.state, "note": added.note}


@router.delete("/documents", tags=["documents"])
async def remove(who: Writes, name: Annotated[str, Query(min_length=1, max_length=500)]) -> ForgetOut:
    """Erase a document for good, with its earlier versions."""
    receipt = await remove_documents(who.memory, [name])
    who.owe()
    return ForgetOut(receipt=receipt_to_dict(receipt))


@router.get("/sources", tags=["documents"])
async def sources(who: Reads) -> Page:
    """Where a question is looked up: name, what is in it, what it needs, how much there is."""
    return Page(rows=await described_sources(who.memory))
