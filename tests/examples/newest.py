"""An example of a judge, with a recipe that uses it: of two pieces the newer one is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence, Query
from nyima.domain.mechanism import Mechanism
from nyima.domain.recipe import Recipe, SourceSpec
from nyima.domain.roles import Judgement

__all__ = ["MECHANISM", "NewestFirst"]


class NewestFirst:
    """Scores each piece by its place among the newest; what was found is always enough."""

    async def judge(self, scope: Scope, query: Query, evidence: Sequence[Evidence], *, last: bool) -> Judgement:
        """Return the evidence by age."""
        del scope, query, last
        newest = sorted(evidence, key=lambda piece: piece.record.valid.since, reverse=True)
        return Judgement(tuple(replace(piece, score=1 / place) for place, piece in enumerate(newest, 1)))


MECHANISM = Mechanism(
    "newest",
    "a judge that prefers what is new",
    judges={"newest": lambda kit: NewestFirst()},
    recipes=(
        Recipe(
            "newest", "what was said, the newest first", ("history",), sources=(SourceSpec("history"),), judge="newest"
        ),
    ),
)
