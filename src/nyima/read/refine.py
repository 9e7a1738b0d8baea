"""Self-refinement of a draft (Wang et al. 2024, section 4.3, algorithm 1): consistency
times relevance orders the evidence, the lowest pieces give way to the next novel ones of
their source, and the reply is written again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence, Recall, Review
from nyima.domain.roles import Critic
from nyima.domain.storage import Store
from nyima.errors import ModelError, PackError
from nyima.read.labels import labelled

__all__ = ["Refiner"]

_ENOUGH = 0.5

Again = Callable[[Recall], Awaitable[str]]
"""Writes the reply once more from a recall with other evidence."""


@dataclass(frozen=True, slots=True)
class Refiner:
    """Reviews drafts. ``rounds`` is the most further drafts, ``alpha`` how many pieces a
    round replaces; ``enough`` is the consistency from which on a draft stays. With a
    ``store`` the pieces that come in are labelled with what of them holds no more."""

    critic: Critic
    rounds: int = 1
    alpha: int = 1
    enough: float = _ENOUGH
    store: Store | None = None

    async def refine(self, scope: Scope, recall: Recall, draft: str, again: Again) -> tuple[str, Recall]:
        """The best draft and the recall that it was written from, with its reviews.

        Nothing is refined when the plan was NULL or nothing was kept. A first draft is
        never lost: it stays unless a later one is more consistent, and whatever fails on
        the way ends the refinement, with the reason under ``critic`` in ``failed``."""
        if not recall.plan or not recall.kept or not draft.strip():
            return draft, recall
        first, reviews, failed = recall, list[Review](), dict(recall.failed)
        best: tuple[float, str, Recall] | None = None
        seen = {e.record.id for e in recall.kept}
        current, text = recall, draft
        try:
            for round_number in range(self.rounds + 1):
                review = await self._review(scope, current.kept, text)
                if best is None or review.consistency > best[0]:
                    best = (review.consistency, text, current)
                last = review.consistent or round_number == self.rounds
                kept, gone = ((), ()) if last else replaced(current, review, self.alpha, seen)
                reviews.append(replace(review, replaced=gone))
                if not gone:
                    break
                seen |= {e.record.id for e in kept}
                if self.store is not None:
                    kept = await labelled(self.store, scope, recall.query, kept)
                current = replace(current, kept=tuple(kept))
                text = await again(current)
                if not text.strip():
                    break
        except (ModelError, PackError) as error:
            failed["critic"] = str(error)
        _, text, chosen = best or (0.0, draft, first)
        return text, replace(chosen, reviews=tuple(reviews), failed=failed)

    async def _review(self, scope: Scope, kept: Sequence[Evidence], draft: str) -> Review:
        """How the draft agrees with each piece, and with the most relevant ones: a draft
        need not say everything that was found, but must agree with what matters most."""
        found = await self.critic.consistency(scope, kept, draft)
        top = max((e.relevance for e in kept), default=0.0)
        matters = [s for e, s in zip(kept, found, strict=True) if e.relevance >= 0.5 * top]
        value = round(max(matters, default=0.0), 4)
        scores = tuple((e.record.id, round(s, 4)) for e, s in zip(kept, found, strict=True))
        return Review(draft, scores, value, value >= self.enough)


def replaced(
    recall: Recall, review: Review, alpha: int, seen: set[str]
) -> tuple[tuple[Evidence, ...], tuple[str, ...]]:
    """The evidence with its ``alpha`` lowest pieces (by consistency times relevance)
    replaced by the best that was found in their source and not shown yet, and the ids of
    those that went. A piece for which there is no other stays."""
    consistency = dict(review.scores)
    order = sorted(recall.kept, key=lambda e: (consistency.get(e.record.id, 0.0) * e.relevance, e.score, e.record.id))
    novel = [e for e in recall.found if e.record.id not in seen]
    kept, gone = list(recall.kept), list[str]()
    for worst in order[:alpha]:
        other = next((e for e in novel if e.source == worst.source), None)
        if other is None:
            continue
        novel.remove(other)
        kept[kept.index(worst)] = other
        gone.append(worst.record.id)
    return tuple(kept), tuple(gone)
