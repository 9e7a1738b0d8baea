"""Pieces of a recall that speak of the same thing: the newest first, and behind it what it replaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nyima.domain.evidence import Evidence

__all__ = ["EARLIER", "newest_first"]

EARLIER = "earlier"


def newest_first(kept: Sequence[Evidence], replaced: Mapping[str, Evidence]) -> tuple[Evidence, ...]:
    """Return the pieces in their order, but each that is replaced behind the piece that replaces it, with the
    label ``earlier``. ``replaced`` maps the record id of a kept piece to what replaces it, which joins the
    others where it is not among them."""
    newer = {old: new.record.id for old, new in replaced.items() if new.record.id != old}
    there = {piece.record.id: piece for piece in (*kept, *replaced.values())}
    there |= {piece.record.id: piece for piece in kept}
    ordered: dict[str, Evidence] = {}

    def place(id: str, waiting: frozenset[str] = frozenset()) -> None:
        if id in ordered or id in waiting:
            return
        if id in newer:
            place(newer[id], waiting | {id})
        ordered[id] = replace(there[id], label=EARLIER) if id in newer else there[id]

    for piece in kept:
        place(piece.record.id)
    return tuple(ordered.values())
