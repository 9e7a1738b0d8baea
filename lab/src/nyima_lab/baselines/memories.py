"""Baselines over memories that are only added: all of them (NiaH), one partition (M-RAG),
and sub-questions that are answered first (Keqing)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pydantic import BaseModel, Field

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence, Query, Step
from nyima.domain.mechanism import Mechanism, When, Writer
from nyima.domain.ports import Probe, RecordFilter, Vector
from nyima.domain.records import Claim
from nyima.domain.roles import Judgement
from nyima.domain.storage import Store
from nyima.errors import ModelError, ModelGarbled
from nyima.language.words import cut_tokens
from nyima.mechanisms.reading import ClaimWriter
from nyima.prompts.prompt import Prompt, TextOut
from nyima.read.calls import Caller
from nyima.read.judge import ScoreJudge
from nyima.read.ranking import coverage
from nyima.write.partitions import Embed, floats
from nyima_lab.baselines.partition_agent import learned_agent, partition_states, seen_from

__all__ = ["MECHANISM", "DecomposingJudge", "EveryRetriever", "PartitionRetriever"]


@dataclass(frozen=True, slots=True)
class QuestionIn:
    """A question."""

    question: str


class DecomposeOut(BaseModel):
    """Sub-questions."""

    questions: list[str] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PartIn:
    """A sub-question with candidates."""

    notes: str
    question: str


DECOMPOSE: Prompt[QuestionIn, DecomposeOut] = Prompt("decompose", DecomposeOut, 90, package="nyima_lab")


PART: Prompt[PartIn, TextOut] = Prompt("answer-part", TextOut, 50, package="nyima_lab")


@dataclass(frozen=True, slots=True)
class EveryRetriever:
    """All memories, the newest first; what does not fit into the prompt goes from the end."""

    store: Store

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        """Every claim that is believed."""
        query = step.query
        where = RecordFilter(kinds=("claim",), at=query.at, as_of=query.as_of)
        found = [r for r in await self.store.records(scope, where) if isinstance(r, Claim)]
        found.sort(key=lambda r: (r.valid.since, r.id), reverse=True)
        return [Evidence(r.text, step.source, 1.0 - i / 1e6, r, r.valid.since) for i, r in enumerate(found[: step.k])]


@dataclass(frozen=True, slots=True)
class PartitionRetriever:
    """The best memories of one partition: of the one that the user's trained agent selects
    (``nyima train partitions``), else of the one whose centre is nearest to the question."""

    store: Store
    embed: Embed | None

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        """Up to ``step.k`` memories; by words from all partitions without vectors."""
        query = step.query
        probe = Probe(words=query.words(), kinds=("claim",), k=step.k, at=query.at, as_of=query.as_of)
        try:
            if self.embed is None:
                raise ModelError("no vectors")
            (vector,) = await self.embed([query.words()])
            chosen = await self.choose(scope, query, vector)
            if chosen:
                probe = replace(probe, words="", vector=vector, regions=(chosen,))
        except ModelError:
            pass  # vectors are derived: words alone find what they can
        hits = await self.store.search(scope, probe)
        records = {r.id: r for r in await self.store.records(scope, RecordFilter(ids=tuple(h.id for h in hits)))}
        best = max((h.score for h in hits), default=1.0) or 1.0
        return [
            Evidence(
                records[h.id].text, step.source, round(max(0.0, h.score / max(best, 1.0)), 6), records[h.id], h.since
            )
            for h in hits
            if h.id in records
        ]

    async def choose(self, scope: Scope, query: Query, vector: Vector) -> str:
        """The partition that is searched; empty when there is none."""
        agent = await learned_agent(self.store, scope)
        states = partition_states(await seen_from(self.store, scope, query, vector))
        return agent.choose(states) if agent is not None else await self.nearest(scope, vector, states)

    async def nearest(self, scope: Scope, vector: Vector, among: Container[str]) -> str:
        """The partition whose centre is nearest; empty when there is none."""
        question, centres = floats(vector), await self.store.centres(scope)
        values = {
            place: float(floats(c) @ question) / max(1e-6, float(np.linalg.norm(floats(c))))
            for place, c in centres.items()
            if place in among
        }
        return max(values, key=lambda place: (values[place], place), default="")


@dataclass(slots=True)
class DecomposingJudge:
    """Splits the question, has each part searched for, answers each from its candidates, and
    gives the answers as evidence; the reply combines them."""

    caller: Caller
    candidates: int = 3
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    async def judge(self, scope: Scope, query: Query, evidence: Sequence[Evidence], *, last: bool) -> Judgement:
        """First the parts as words to search for; in the last round their answers."""
        if not last:
            try:
                out, asked = await self.caller.ask(scope, DECOMPOSE, QuestionIn(cut_tokens(query.text, 150)))
            except ModelGarbled:
                await self.caller.fallback(scope, DECOMPOSE.version)
                return Judgement(tuple(evidence), prompt=DECOMPOSE.version)
            found = tuple(dict.fromkeys(q.strip() for q in out.questions if q.strip()))[:3]
            self.parts[query.text] = found or (query.text,)
            return Judgement(tuple(evidence), enough=False, keywords=found, prompt=asked.prompt)
        answered: list[Evidence] = []
        for part in self.parts.get(query.text, (query.text,)):
            near = sorted(evidence, key=lambda e: (-coverage(part, e.text), -e.score, e.record.id))[: self.candidates]
            if not near:
                continue
            notes = "\n".join(f"- {cut_tokens(e.text, 60)}" for e in near)
            try:
                answer, _ = await self.caller.ask(scope, PART, PartIn(notes, part))
            except ModelGarbled:
                await self.caller.fallback(scope, PART.version)
                answered.append(near[0])
                continue
            text = f"{part} {answer.text}"
            answered.append(replace(near[0], text=text, score=1.0, scores={**near[0].scores, "part": 1.0}))
        return Judgement(tuple(answered) or tuple(evidence), prompt=PART.version)


MECHANISM = Mechanism(
    "memories",
    "claims that are only added: the baselines of Wang et al. 2024",
    writers=(
        Writer(
            "memories",
            When.TURN,
            lambda desk, scope, job: ClaimWriter(desk, adds_only=True).write(scope, job),
            again=lambda record: record.provenance.turns,
        ),
    ),
    retrievers={
        "every": lambda kit, spec: EveryRetriever(kit.store),
        "partition": lambda kit, spec: PartitionRetriever(kit.store, kit.embed),
    },
    judges={"decompose": lambda kit: ScoreJudge() if kit.caller is None else DecomposingJudge(kit.caller)},
)
