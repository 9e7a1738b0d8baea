"""Judges: is what was found enough, and which of it matters?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence, Query
from nyima.domain.mechanism import Mechanism
from nyima.domain.roles import Judge, Judgement
from nyima.errors import ModelGarbled
from nyima.language.words import cut_tokens
from nyima.prompts.prompt import Prompt
from nyima.read.calls import Caller
from nyima.read.kit import Kit

__all__ = ["MECHANISM", "ChoosingJudge", "ReflectingJudge", "RelevanceJudge", "ScoreJudge", "ranked_by"]


@dataclass(frozen=True, slots=True)
class ReflectIn:
    """A message with numbered memories."""

    memories: str
    message: str


class ReflectOut(BaseModel):
    """Whether the memories are enough, which matter, and words to search for."""

    enough: bool
    useful: list[int] = Field(default_factory=list)
    keywords: list[str] = Field(default_factory=list)


REFLECT: Prompt[ReflectIn, ReflectOut] = Prompt("reflect", ReflectOut, 90)


@dataclass(frozen=True, slots=True)
class ChooseIn:
    """A message with numbered memos."""

    memos: str
    message: str


class ChooseOut(BaseModel):
    """The numbers of what is needed."""

    useful: list[int] = Field(default_factory=list)


CHOOSE: Prompt[ChooseIn, ChooseOut] = Prompt("choose", ChooseOut, 30)


@dataclass(frozen=True, slots=True)
class RelevanceIn:
    """A message with the dialogue before it, and one piece."""

    dialogue: str
    message: str
    piece: str


class RelevanceOut(BaseModel):
    """Relevance on a scale of 0 to 10."""

    relevance: int = Field(ge=0, le=10)


RELEVANCE: Prompt[RelevanceIn, RelevanceOut] = Prompt("relevance", RelevanceOut, 12)


@dataclass(frozen=True, slots=True)
class ScoreJudge:
    """Takes the retrievers' scores as they are; what was found is always enough."""

    async def judge(self, scope: Scope, query: Query, evidence: Sequence[Evidence], *, last: bool) -> Judgement:
        """The evidence as it came."""
        del scope, query, last
        return Judgement(tuple(evidence))


@dataclass(frozen=True, slots=True)
class ReflectingJudge:
    """Self-reflection (Yuan et al. 2023, section 3.2): the model says whether the
    memories suffice; then it selects the parts that matter, else it names words for
    another search. ``most`` memories of ``size`` tokens are shown, by number."""

    caller: Caller
    most: int = 8
    size: int = 60

    async def judge(self, scope: Scope, query: Query, evidence: Sequence[Evidence], *, last: bool) -> Judgement:
        """The selected evidence, or all of it with keywords. An answer that cannot be
        read keeps all."""
        if not evidence:
            return Judgement(())  # an empty memory needs no call to be seen through
        shown = list(evidence[: self.most])
        lines = [f"{i}. {cut_tokens(e.text, self.size)}" for i, e in enumerate(shown, 1)]
        given = ReflectIn("\n".join(lines) or "none", cut_tokens(query.text, 150))
        try:
            out, asked = await self.caller.ask(scope, REFLECT, given)
        except ModelGarbled:
            await self.caller.fallback(scope, REFLECT.version)
            return Judgement(tuple(evidence), prompt=REFLECT.version)
        keywords = tuple(dict.fromkeys(k.strip()[:60] for k in out.keywords if k.strip()))[:5]
        if not out.enough and keywords and not last:
            return Judgement(tuple(evidence), enough=False, keywords=keywords, prompt=asked.prompt)
        useful = [i for i in dict.fromkeys(out.useful) if 1 <= i <= len(shown)]
        if out.enough and useful:
            picked = [replace(shown[i - 1], scores={**shown[i - 1].scores, "reflection": 1.0}) for i in useful]
            return Judgement(tuple(picked), prompt=asked.prompt)
        return Judgement(tuple(evidence), prompt=asked.prompt)


@dataclass(frozen=True, slots=True)
class ChoosingJudge:
    """The model picks the memos that an answer needs (Lu et al. 2023)."""

    caller: Caller
    size: int = 40

    async def judge(self, scope: Scope, query: Query, evidence: Sequence[Evidence], *, last: bool) -> Judgement:
        """The chosen pieces; none when the model chooses none or cannot be read."""
        del last
        if not evidence:
            return Judgement(())
        lines = [f"{i}. {cut_tokens(e.record.text, self.size)}" for i, e in enumerate(evidence, 1)]
        try:
            out, asked = await self.caller.ask(scope, CHOOSE, ChooseIn("\n".join(lines), cut_tokens(query.text, 150)))
        except ModelGarbled:
            await self.caller.fallback(scope, CHOOSE.version)
            return Judgement((), prompt=CHOOSE.version)
        useful = [i for i in dict.fromkeys(out.useful) if 1 <= i <= len(evidence)]
        picked = [replace(evidence[i - 1], score=1.0, scores={"chosen": 1.0}) for i in useful]
        return Judgement(tuple(picked), prompt=asked.prompt)


def ranked_by(evidence: Sequence[Evidence], scores: Sequence[float]) -> tuple[Evidence, ...]:
    """The evidence with its relevance as score, in steps of 0.1, ordered by the judge's own
    value; equal ones stay in the retriever's order."""
    found = [
        replace(e, score=round(s, 1), scores={**e.scores, "retriever": round(e.score, 4), "judge": round(s, 4)})
        for e, s in zip(evidence, scores, strict=True)
    ]
    return tuple(sorted(found, key=lambda e: (-e.scores["judge"], -e.scores["retriever"], e.record.id)))


@dataclass(frozen=True, slots=True)
class RelevanceJudge:
    """A chat model judges each piece by itself, a call a piece (Wang et al. 2024, section
    4.2.1). Only the best ``most`` of the retrievers are judged; the others are left out."""

    caller: Caller
    most: int = 8
    size: int = 90
    turns: int = 4

    async def judge(self, scope: Scope, query: Query, evidence: Sequence[Evidence], *, last: bool) -> Judgement:
        """The pieces with their relevance. A piece whose answer cannot be read keeps the
        retriever's score."""
        del last
        shown = list(evidence[: self.most])
        before = query.dialogue[max(0, len(query.dialogue) - self.turns) :]
        dialogue = "\n".join(f"{role}: {cut_tokens(text, 60)}" for role, text in before) or "(none)"

        async def one(piece: Evidence) -> float:
            given = RelevanceIn(dialogue, cut_tokens(query.text, 150), cut_tokens(piece.text, self.size))
            try:
                out, _ = await self.caller.ask(scope, RELEVANCE, given)
            except ModelGarbled:
                await self.caller.fallback(scope, RELEVANCE.version)
                return piece.relevance
            return out.relevance / 10

        scores = await asyncio.gather(*(one(piece) for piece in shown))
        return Judgement(ranked_by(shown, scores), prompt=RELEVANCE.version if shown else "")


def _prompted(judge: Callable[[Caller], Judge]) -> Callable[[Kit], Judge]:
    """A judge that asks a model; without one the scores decide."""
    return lambda kit: ScoreJudge() if kit.caller is None else judge(kit.caller)


MECHANISM = Mechanism(
    "judge",
    "whether what was found is to the point, and enough",
    judges={
        "scores": lambda kit: ScoreJudge(),
        "reflect": _prompted(ReflectingJudge),
        "choose": _prompted(ChoosingJudge),
        "relevance": _prompted(RelevanceJudge),
    },
)
