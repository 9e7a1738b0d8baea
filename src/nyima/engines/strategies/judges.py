"""Judges: is what was found enough, and which of it matters?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence, Query
from nyima.domain.ports import Judgement
from nyima.domain.text import cut_tokens
from nyima.engines.calls import Caller
from nyima.engines.prompts import CHOOSE, REFLECT, ChooseIn, ReflectIn
from nyima.errors import ModelGarbled

__all__ = ["ChoosingJudge", "ReflectingJudge", "ScoreJudge"]


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
