"""Recalls and evidence as JSON values: the same for the journal, the CLI and servers."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from nyima.domain.conversation import iso
from nyima.domain.evidence import Answer, Evidence, Recall
from nyima.domain.ports import Event
from nyima.domain.records import Claim, MemoryRecord, Passage, Status

__all__ = ["claim_to_json", "evidence_to_dict", "label_of", "place_of", "plan_to_list", "record_to_json", "trace_event"]


def plan_to_list(recall: Recall) -> list[dict[str, Any]]:
    """The steps that were asked."""
    return [{"source": step.source, "k": step.k, "after": list(step.after)} for step in recall.plan]


def place_of(record: MemoryRecord) -> str:
    """Where a passage stands: its document and place; empty for other records."""
    return f"{record.document} {record.place}".strip() if isinstance(record, Passage) else ""


def evidence_to_dict(piece: Evidence) -> dict[str, Any]:
    """A piece of evidence."""
    return {
        "id": piece.record.id,
        "kind": piece.record.kind,
        "text": piece.text,
        "source": piece.source,
        "score": round(piece.score, 4),
        "place": place_of(piece.record),
        "at": iso(piece.at),
        "turns": list(piece.record.provenance.turns),
        "valid_from": iso(piece.record.valid.since),
        "valid_to": iso(piece.record.valid.until),
        "scores": dict(piece.scores),
        "superseded": iso(piece.superseded),
        "ended": list(piece.ended),
        "stale": iso(piece.stale),
        "label": piece.label or label_of(piece.record) or ("ended" if piece.superseded else ""),
    }


def record_to_json(record: MemoryRecord) -> dict[str, Any]:
    """A record for reading; ``export`` has the lossless form."""
    made = record.provenance
    return {
        "id": record.id,
        "kind": record.kind,
        "text": record.text,
        "turns": list(made.turns),
        "writer": made.writer,
        "prompt": made.prompt,
        "model": made.model,
        "origin": made.origin.value,
        "valid_from": iso(record.valid.since),
        "valid_to": iso(record.valid.until),
        "recorded": iso(record.recorded.since),
        "retired": iso(record.recorded.until),
        "supersedes": record.supersedes,
    }


def claim_to_json(claim: Claim, superseded_by: str | None = None) -> dict[str, Any]:
    """A claim for reading. ``superseded_by`` is the id of the record that took its place."""
    quote = claim.quote
    return {
        "id": claim.id,
        "subject": claim.name,
        "attribute": claim.attribute,
        "value": claim.value,
        "status": claim.status.value,
        "label": label_of(claim),
        "quote": None if quote is None else {"turn": quote.turn, "start": quote.start, "end": quote.end},
        "when": claim.when,
        "subclass": claim.subclass,
        "turns": list(claim.provenance.turns),
        "valid_from": iso(claim.valid.since),
        "valid_to": iso(claim.valid.until),
        "recorded": iso(claim.recorded.since),
        "retired": iso(claim.recorded.until),
        "superseded_by": superseded_by,
        "depends_on": list(claim.depends_on),
    }


def label_of(record: MemoryRecord) -> str:
    """Return how a record must be read beside what it says: ``uncertain``, ``planned``, ``ended``, ``denied``,
    ``pending``; empty where it simply holds."""
    if isinstance(record, Claim) and (record.recorded.until is not None or record.status is Status.ENDED):
        return "ended"
    if record.stale:
        return "uncertain"
    return record.status.value if isinstance(record, Claim) and record.status is not Status.HOLDS else ""


def trace_event(
    recall: Recall, at: datetime, answer: Answer | None = None, asked: str = "", known: Sequence[str] = (), *,
    complete: bool = True,
) -> Event:  # fmt: skip
    """The journal line of a recall. It refers to all that it quotes, and to what the
    reply knew from the system message, so that it goes when any of that is erased."""
    found = recall.found[:40]
    refs = {e.record.id for e in (*found, *recall.kept)} | {t for e in recall.kept for t in e.record.provenance.turns}
    refs |= {asked, answer.turn if answer else "", *known} - {""}
    body = {
        "query": recall.query.text,
        "keywords": list(recall.keywords),
        "plan": plan_to_list(recall),
        "found": [evidence_to_dict(e) for e in found],
        "kept": [evidence_to_dict(e) for e in recall.kept],
        "rounds": recall.rounds,
        "planner": recall.planner,
        "skipped": list(recall.skipped),
        "shown": list(recall.shown),
        "reviews": [
            {
                "draft": r.draft,
                "scores": [list(s) for s in r.scores],
                "consistency": r.consistency,
                "consistent": r.consistent,
                "replaced": list(r.replaced),
            }
            for r in recall.reviews
        ],
        "walk": [[v.record, *(round(s, 4) for s in v.state), v.action] for v in recall.walk],
        "failed": dict(recall.failed),
        "prompts": list(recall.prompts),
        "ms": dict(recall.ms),
        "turn": asked,
        "reply": answer.turn if answer else "",
        "complete": complete,
    }
    return Event("recall-" + uuid.uuid4().hex[:16], "recall", at, tuple(sorted(refs)), body)
