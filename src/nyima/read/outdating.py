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

_MOST = 6
_LONGEST = 60
_OWN = {Origin.USER, Origin.IMPORT}


def over_pair(message: str, earlier: str) -> tuple[str, str]:
    """Return the pair whose score says how likely it is that a message makes something said earlier untrue.
    The model was trained on this form (``nyima train judge``)."""
    return cut_tokens(message, _LONGEST), f"no longer true: {cut_tokens(earlier, _LONGEST)}"


@dataclass(frozen=True, slots=True)
class Outdating:
    """Compares the best pieces in which the user speaks, each with each older one. ``threshold`` is the score
    from which on a piece counts as replaced."""

    scorer: PairScorer
    threshold: float

    async def replaced(self, kept: Sequence[Evidence]) -> dict[str, str]:
        """Return the record ids of pieces that are out of date, each with that of the newest piece that says
        so. Raises ModelError when the model cannot be loaded."""
        own = [e for e in kept if isinstance(e.record, Episode) and e.record.provenance.origin in _OWN][:_MOST]
        dated = sorted(own, key=lambda e: e.at)
        pairs = [(new, old) for n, new in enumerate(dated) for old in dated[:n] if old.at < new.at]
        scores = await self.scorer.score([over_pair(_said(new), _said(old)) for new, old in pairs]) if pairs else []
        found: dict[str, str] = {}
        for (new, old), score in zip(pairs, scores, strict=True):
            if score >= self.threshold:
                found[old.record.id] = new.record.id  # the pairs come oldest first: the newest stays
        return found


def _said(piece: Evidence) -> str:
    return piece.record.said if isinstance(piece.record, Episode) else piece.text
