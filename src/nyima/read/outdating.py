"""Which of the recalled messages make an earlier one untrue, as a small trained model sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nyima.domain.conversation import Origin
from nyima.domain.evidence import Evidence
from nyima.domain.ports import PairScorer
from nyima.domain.records import Episode
from nyima.language.words import cut_tokens

__all__ = ["Outdating", "over_pair"]

_MOST_OLD, _MOST_NEW = 3, 8
"""How many of the best pieces are looked at as what may be out of date, and how many of all that was found
as what may say so."""

_LONGEST = 48
_OWN = {Origin.USER, Origin.IMPORT}


def over_pair(message: str, earlier: str) -> tuple[str, str]:
    """Return the pair whose score says how likely it is that a message makes something said earlier untrue.
    The model was trained on this form (``nyima train judge``)."""
    return cut_tokens(message, _LONGEST), f"no longer true: {cut_tokens(earlier, _LONGEST)}"


@dataclass(frozen=True, slots=True)
class Outdating:
    """Compares the best pieces in which the user speaks, each with what the user said later. ``threshold`` is
    the score from which on a piece counts as replaced."""

    scorer: PairScorer
    threshold: float

    async def replaced(self, kept: Sequence[Evidence], found: Sequence[Evidence] = ()) -> dict[str, Evidence]:
        """Return the newest piece that makes a kept one untrue, by the kept one's record id. What replaces may
        be among the pieces that were found and not kept: news often shares no word with the question. Raises
        ModelError when the model cannot be loaded."""
        own = [e for e in kept if _is_own(e)]
        there = {e.record.id for e in own}
        new = [*own, *(e for e in found if _is_own(e) and e.record.id not in there)][:_MOST_NEW]
        pairs = [(n, o) for n in sorted(new, key=lambda e: e.at) for o in own[:_MOST_OLD] if o.at < n.at]
        scores = await self.scorer.score([over_pair(_said(n), _said(o)) for n, o in pairs]) if pairs else []
        # The pairs come oldest first, so that the newest stays.
        return {o.record.id: n for (n, o), score in zip(pairs, scores, strict=True) if score >= self.threshold}


def _is_own(piece: Evidence) -> bool:
    """Return whether the user speaks in a piece."""
    return isinstance(piece.record, Episode) and piece.record.provenance.origin in _OWN


def _said(piece: Evidence) -> str:
    return piece.record.said if isinstance(piece.record, Episode) else piece.text
