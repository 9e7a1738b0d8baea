"""The read path: plan, retrieve, judge (and search again), select."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Budget, Evidence, Query, Recall, Selection, Step
from nyima.domain.mechanism import Mechanism
from nyima.domain.roles import Judge, Planner, Retriever, Selector
from nyima.domain.storage import Store
from nyima.errors import ModelError, SourceFailed
from nyima.language.times.moment import asked_period
from nyima.read.conflicts import newest_first
from nyima.read.embedding import QueryEmbedder
from nyima.read.labels import labelled
from nyima.read.outdating import Outdating
from nyima.read.ranking import deduplicate, select, within

__all__ = ["MECHANISM", "BudgetSelector", "Recaller"]


@dataclass(frozen=True, slots=True)
class BudgetSelector:
    """The best pieces within a budget. Abstains when even the best is below ``floor``,
    and leaves out what has less than ``share`` of the best one's score; ``limits`` caps
    the pieces of a source."""

    floor: float = 0.0
    share: float = 0.0
    limits: Mapping[str, int] = field(default_factory=dict[str, int])

    def select(self, query: Query, evidence: Sequence[Evidence], budget: Budget) -> Selection:
        """What is kept, best first; empty when nothing is to the point."""
        del query
        best = max((e.score for e in evidence), default=0.0)
        if not evidence or best < self.floor:
            return Selection(())
        near = [e for e in evidence if e.score >= self.share * best]
        return Selection(tuple(select(near, budget, self.limits)))


@dataclass(frozen=True, slots=True)
class Recaller:
    """Runs a query through the roles. ``rounds`` is the most further searches; ``zone`` is the
    user's, for "yesterday"; ``outdating`` finds what a newer piece makes untrue."""

    store: Store
    planner: Planner
    retrievers: Mapping[str, Retriever]
    judge: Judge
    selector: Selector
    vectors: QueryEmbedder
    rounds: int = 0
    zone: tzinfo = UTC
    outdating: Outdating | None = None

    async def recall(self, scope: Scope, query: Query, budget: Budget) -> Recall:
        """What was found and kept, with the trace. A store that fails raises; an
        embedder that fails leaves the search by words, and the trace says so."""
        started = time.perf_counter()
        if query.period is None:
            query = replace(query, period=asked_period(query.text, query.at, self.zone))
        planned = await self.planner.plan(scope, query)
        plan, planning = planned.steps, (time.perf_counter() - started) * 1_000
        rounds, keywords, prompts = 0, query.keywords, [planned.prompt] if planned.prompt else []
        found: list[Evidence] = []
        judged: Sequence[Evidence] = ()
        failed: dict[str, str] = {}
        while plan:
            steps = [replace(step, query=replace(query, keywords=keywords)) for step in plan]
            found = await self._retrieve(scope, steps, failed)
            judgement = await self.judge.judge(scope, query, found, last=rounds >= self.rounds)
            judged = judgement.evidence
            prompts += [judgement.prompt] if judgement.prompt else []
            if judgement.enough or rounds >= self.rounds:
                break
            keywords = (*keywords, *judgement.keywords)
            rounds += 1
        selection = self.selector.select(query, judged, budget)
        ordered = await self._newest_first(selection.kept, judged, budget, failed)
        kept = await labelled(self.store, scope, query, ordered)
        seen = {e.record.id for e in judged}
        found = [*judged, *(e for e in found if e.record.id not in seen)]
        if self.vectors.failed:
            failed["vectors"] = self.vectors.failed
        total = (time.perf_counter() - started) * 1_000
        search = max(0.0, total - self.vectors.ms - planning)
        ms = {"plan": planning, "embed": self.vectors.ms, "search": search, "total": total}
        return Recall(
            replace(query, keywords=keywords),
            plan,
            tuple(found),
            kept,
            rounds,
            tuple(keywords),
            failed,
            tuple(prompts),
            selection.walk,
            {name: round(value, 2) for name, value in ms.items()},
            planned.by,
            tuple(name for name in self.retrievers if name not in {step.source for step in plan}),
        )

    async def _newest_first(
        self, kept: tuple[Evidence, ...], found: Sequence[Evidence], budget: Budget, failed: dict[str, str]
    ) -> tuple[Evidence, ...]:
        """The pieces with what is out of date behind what is newer, within the budget. A model that fails
        leaves them as they are."""
        if self.outdating is None:
            return kept
        try:
            replaced = await self.outdating.replaced(kept, found)
        except ModelError as error:
            failed["outdating"] = str(error)
            return kept
        return within(newest_first(kept, replaced), budget)

    async def _retrieve(self, scope: Scope, plan: Sequence[Step], failed: dict[str, str]) -> list[Evidence]:
        """What the steps bring: those that depend on nothing at the same time, each other
        one when those before it are done, with what they brought. A model or a source of
        the user's own that fails leaves its source out."""

        async def one(step: Step) -> list[Evidence]:
            given = tuple(e for name in step.after for e in brought.get(name, ()))
            try:
                return await self.retrievers[step.source].retrieve(scope, replace(step, given=given))
            except (ModelError, SourceFailed) as error:
                failed[step.source] = str(error)
                return []

        brought: dict[str, list[Evidence]] = {}
        waiting = list(plan)
        while waiting:
            names = {step.source for step in waiting}
            ready = [step for step in waiting if not names & set(step.after)]
            for step, found in zip(ready, await asyncio.gather(*(one(s) for s in ready)), strict=True):
                brought[step.source] = found
            waiting = [step for step in waiting if step.source not in brought]
        kinds = {kind for step in plan for kind in step.query.kinds}
        every = (e for found in brought.values() for e in found if not kinds or e.record.kind in kinds)
        return deduplicate(sorted(every, key=lambda e: (-e.score, e.source, e.record.id)))


MECHANISM = Mechanism(
    "budget",
    "the best pieces within a budget",
    selectors={"budget": lambda kit, *cut: BudgetSelector(*cut)},
)
