"""Critics: does a draft agree with what it may rest on (Wang et al. 2024, section 4.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence
from nyima.domain.mechanism import Mechanism
from nyima.errors import ModelGarbled
from nyima.language.words import cut_tokens
from nyima.prompts.prompt import Prompt
from nyima.read.calls import Caller

__all__ = ["MECHANISM", "ModelCritic"]


@dataclass(frozen=True, slots=True)
class AgreesIn:
    """A piece and a reply."""

    piece: str
    reply: str


class AgreesOut(BaseModel):
    """``yes``, ``no`` or ``unclear``."""

    agrees: str = Field(pattern="^(yes|no|unclear)$")


AGREES: Prompt[AgreesIn, AgreesOut] = Prompt("agrees", AgreesOut, 12)


_WORTH = {"yes": 1.0, "unclear": 0.5, "no": 0.0}


@dataclass(frozen=True, slots=True)
class ModelCritic:
    """A prompted chat model, a call a piece: yes 1, unclear 0.5, no 0."""

    caller: Caller
    size: int = 90

    async def consistency(self, scope: Scope, evidence: Sequence[Evidence], draft: str) -> list[float]:
        """What the model says of each piece; what cannot be read is unclear."""

        async def one(piece: Evidence) -> float:
            try:
                out, _ = await self.caller.ask(
                    scope, AGREES, AgreesIn(cut_tokens(piece.text, self.size), cut_tokens(draft, 200))
                )
            except ModelGarbled:
                await self.caller.fallback(scope, AGREES.version)
                return _WORTH["unclear"]
            return _WORTH[out.agrees]

        return list(await asyncio.gather(*(one(piece) for piece in evidence)))


MECHANISM = Mechanism(
    "critic",
    "whether a draft agrees with what it may rest on",
    critics={"model": lambda kit: None if kit.caller is None else ModelCritic(kit.caller)},
)
