"""Ranking as pure functions: union and fusion of hits, context, diversity, the cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nyima.domain.evidence import Budget, Evidence
from nyima.domain.ports import Hit
from nyima.domain.recipe import Weights
from nyima.domain.records import Interval
from nyima.language.words import content_words, stem, tokens, words

__all__ = ["Fused", "coverage", "deduplicate", "fuse", "reciprocal", "select", "spread", "within"]


_GIVE = 120
"""How many of the best candidates give a share to their neighbours; the rest give so
little that it changes no order worth the time."""


@dataclass(slots=True)
class Fused:
    """A candidate: a hit of either arm, or a neighbour of one (then ``id`` is empty)."""

    id: str
    session: str
    position: int
    score: float = 0.0
    parts: dict[str, float] = field(default_factory=dict[str, float])


def _key(hit: Hit) -> tuple[str, int, str]:
    return (hit.session, hit.position, "" if hit.position >= 0 else hit.id)


def fuse(lexical: Sequence[Hit], dense: Sequence[Hit], weights: Weights, period: Interval | None = None) -> list[Fused]:
    """The union of both arms, each hit with its weighted score, best first."""
    found: dict[tuple[str, int, str], Fused] = {}
    for name, hits, weight in (("words", lexical, weights.words), ("vector", dense, weights.vector)):
        best = max((h.score for h in hits), default=0.0)
        if best <= 0 or weight <= 0:
            continue
        for hit in hits:
            if hit.score <= 0:
                continue
            item = found.setdefault(_key(hit), Fused(hit.id, hit.session, hit.position))
            item.parts[name] = hit.score
            item.score += weight * hit.score / best
            if period is not None and "period" not in item.parts and period.contains(hit.since):
                item.parts["period"] = 1.0
                item.score += weights.period
    return _ordered(found.values())


def reciprocal(lexical: Sequence[Hit], dense: Sequence[Hit], constant: int = 60) -> list[Fused]:
    """Plain reciprocal rank fusion of both arms (Cormack et al. 2009), a baseline."""
    found: dict[tuple[str, int, str], Fused] = {}
    for name, hits in (("words", lexical), ("vector", dense)):
        for rank, hit in enumerate(hits, 1):
            item = found.setdefault(_key(hit), Fused(hit.id, hit.session, hit.position))
            item.parts[name] = hit.score
            item.score += 1 / (constant + rank)
    return _ordered(found.values())


def spread(candidates: Sequence[Fused], weights: Weights) -> list[Fused]:
    """Let turns profit from their neighbours and from their session's best turn.

    A turn next to a hit becomes a candidate itself, since an answer often stands beside
    the words of the question.
    """
    found = {(c.session, c.position, "" if c.position >= 0 else c.id): c for c in candidates}
    gains: dict[tuple[str, int, str], float] = {}
    best: dict[str, float] = {}
    for rank, c in enumerate(candidates):
        if c.position < 0:
            continue
        best[c.session] = max(best.get(c.session, 0.0), c.score)
        if rank >= _GIVE:
            continue
        for distance, share in enumerate(weights.near, 1):
            for position in (c.position - distance, c.position + distance):
                if position >= 0:
                    key = (c.session, position, "")
                    gains[key] = gains.get(key, 0.0) + share * c.score
    for key, gain in gains.items():
        item = found.setdefault(key, Fused("", key[0], key[1]))
        item.score += gain
        item.parts["near"] = gain
    top = max(best.values(), default=0.0)
    if top > 0 and weights.session:
        for item in found.values():
            gain = weights.session * best.get(item.session, 0.0) / top
            if item.position >= 0 and gain:
                item.score += gain
                item.parts["session"] = gain
    return _ordered(found.values())


def _ordered(items: Iterable[Fused]) -> list[Fused]:
    return sorted(items, key=lambda c: (-c.score, c.session, c.position, c.id))


def coverage(query: str, text: str) -> float:
    """The share of the query's content words that the text has, 0..1; word forms count."""
    wanted = {stem(w) for w in content_words(query)}
    there = {stem(w) for w in words(text)}
    return len(wanted & there) / len(wanted) if wanted else 0.0


def deduplicate(evidence: Iterable[Evidence], similar: float = 0.9) -> list[Evidence]:
    """Drop what repeats an earlier, better piece: same record, or nearly the same words."""
    kept: list[Evidence] = []
    seen: list[frozenset[str]] = []
    ids: set[str] = set()
    for piece in evidence:
        bag = frozenset(words(piece.text))
        size = len(bag)
        if piece.record.id in ids or any(
            len(bag & other) >= similar * len(bag | other)
            for other in seen
            if size and similar * size <= len(other) <= size / similar
        ):
            continue
        kept.append(piece)
        seen.append(bag)
        ids.add(piece.record.id)
    return kept


def select(evidence: Sequence[Evidence], budget: Budget, limits: Mapping[str, int] | None = None) -> list[Evidence]:
    """The best pieces within the budget; ``limits`` caps the pieces of a source."""
    kept: list[Evidence] = []
    spent = 0
    count: dict[str, int] = {}
    for piece in sorted(
        evidence, key=lambda e: (-e.score, -e.scores.get("judge", 0.0), -e.scores.get("retriever", 0.0), e.record.id)
    ):
        size = tokens(piece.text)
        if len(kept) == budget.records:
            break
        if limits and count.get(piece.source, 0) >= limits.get(piece.source, budget.records):
            continue
        if kept and spent + size > budget.tokens:
            continue
        kept.append(piece)
        spent += size
        count[piece.source] = count.get(piece.source, 0) + 1
    return kept


def within(evidence: Sequence[Evidence], budget: Budget) -> tuple[Evidence, ...]:
    """The first pieces that the budget has room for, in their order; the first in any case."""
    kept: list[Evidence] = []
    spent = 0
    for piece in evidence:
        spent += tokens(piece.text)
        if kept and (len(kept) == budget.records or spent > budget.tokens):
            break
        kept.append(piece)
    return tuple(kept)
