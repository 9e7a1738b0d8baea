"""Readers that are no chat model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from nyima.domain.evidence import Evidence, Plan
from nyima.domain.ports import Lines, SourceModel

__all__ = ["TrainedReader"]


@dataclass(frozen=True, slots=True)
class TrainedReader:
    """The trained model's replies (Wang et al. 2024, equation 4). It knows no profile, no
    persona file and no tools: only the dialogue and the evidence."""

    model: SourceModel

    async def read(self, lines: Lines, plan: Plan, kept: Sequence[Evidence]) -> AsyncIterator[str]:
        """The reply, from the pieces of the sources that the model knows."""
        known = [step.source for step in plan if step.source in self.model.sources]
        pieces = [(e.source, e.text, e.relevance) for e in kept if e.source in known]
        async for piece in self.model.reply(lines, known, pieces):
            yield piece
