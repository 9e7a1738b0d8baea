"""The second look: whether a message asserts a claim, and whether it makes another one untrue.

The reader of a message proposes; nothing is closed on its word alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from nyima.domain.conversation import Scope
from nyima.domain.ports import READS_CLAIMS, Looked
from nyima.domain.records import Claim
from nyima.errors import ModelGarbled
from nyima.language.words import cut_tokens
from nyima.prompts.prompt import Prompt
from nyima.prompts.trained_reading import VERSION, claims_question, read_claims_answer
from nyima.read.calls import Caller

__all__ = ["PromptedVerifier", "TrainedVerifier"]

_MOST_MESSAGE, _ANSWER = 200, 160


@dataclass(frozen=True, slots=True)
class LookIn:
    """A message, what is known, and what was read from the message."""

    message: str
    known: str
    new: str


class LookOut(BaseModel):
    """Numbers of known statements that are over, and of new ones that are said."""

    over: list[int]
    said: list[int] = Field(default_factory=list[int])


LOOK: Prompt[LookIn, LookOut] = Prompt("look", LookOut, 40)


def _listed(claims: Sequence[Claim]) -> str:
    return " ".join(f"({n}) {cut_tokens(' '.join(c.text.split()), 40)}" for n, c in enumerate(claims, 1)) or "-"


@dataclass(frozen=True, slots=True)
class PromptedVerifier:
    """Asks the chat model about all pairs of a message in one call."""

    caller: Caller
    looks_further = True

    async def look(self, scope: Scope, message: str, known: Sequence[Claim], new: Sequence[Claim]) -> Looked:
        """Return an answer for each claim; unsure of all where the model's answer cannot be read."""
        given = LookIn(cut_tokens(message, _MOST_MESSAGE), _listed(known), _listed(new))
        try:
            out, _ = await self.caller.ask(scope, LOOK, given)
        except ModelGarbled:
            await self.caller.fallback(scope, LOOK.version)
            return Looked.unsure(known, new)
        return Looked(
            tuple(n in out.over for n in range(1, len(known) + 1)),
            tuple(n in out.said for n in range(1, len(new) + 1)),
        )


@dataclass(frozen=True, slots=True)
class TrainedVerifier:
    """Has a model that was trained to read claims read the message again, beside nothing but what its first
    reading called over. What it does not call over again stays unsure."""

    caller: Caller
    looks_further = False

    async def look(self, scope: Scope, message: str, known: Sequence[Claim], new: Sequence[Claim]) -> Looked:
        """Return an answer for each known claim; the new ones stand as they were read."""
        said = (True,) * len(new)
        if not known:
            return Looked((), said)
        asked = claims_question([c.text for c in known], "", cut_tokens(message, _MOST_MESSAGE))
        answer = await self.caller.text(scope, VERSION, asked, max_tokens=_ANSWER, lane=READS_CLAIMS)
        try:
            _, over = read_claims_answer(answer.text)
        except ModelGarbled:
            await self.caller.fallback(scope, VERSION)
            over = ()
        return Looked(tuple(True if n in over else None for n in range(1, len(known) + 1)), said)
