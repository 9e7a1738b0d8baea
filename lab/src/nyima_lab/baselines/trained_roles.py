"""Roles that trained models fill: planners, judges, a critic and a reader (Wang et al. 2024)."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence, Query
from nyima.domain.mechanism import Mechanism
from nyima.domain.ports import PairScorer, SourceModel, Vector
from nyima.domain.roles import Judgement, Planned, Reply, ReplyRequest
from nyima.domain.storage import Store
from nyima.errors import ConfigError, ModelError
from nyima.read.judge import ranked_by
from nyima.read.kit import Kit
from nyima.read.plan import Choices, RulePlanner, sources_there
from nyima.read.search import spoken
from nyima.read.sources import steps_for

__all__ = [
    "MECHANISM",
    "ClassifierPlanner",
    "CrossEncoderJudge",
    "NliCritic",
    "TrainedJudge",
    "TrainedPlanner",
    "TrainedReader",
]


@dataclass(frozen=True, slots=True)
class ClassifierPlanner:
    """Logistic regression on an encoder's features of the dialogue, a threshold a source
    (the encoder baseline of Wang et al. 2024, section 5.3.1). ``weights`` (sources, d + 1)
    with the bias last."""

    sources: Choices
    embed: Callable[[str], Awaitable[Vector | None]]
    names: tuple[str, ...]
    weights: np.ndarray
    thresholds: Mapping[str, float]
    turns: int
    store: Store | None = None

    @classmethod
    def load(
        cls, path: Path, sources: Choices, embed: Callable[[str], Awaitable[Vector | None]], store: Store | None = None
    ) -> ClassifierPlanner:
        """From the file that ``nyima train planner`` writes. Raises ConfigError."""
        try:
            body: dict[str, Any] = json.loads(path.read_text("utf-8"))
            weights = np.array(body["weights"], np.float64)
            return cls(
                sources, embed, tuple(body["sources"]), weights, dict(body["thresholds"]), int(body["turns"]), store
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{path} is no trained planner ({error}): run `nyima train planner`") from error

    async def chances(self, query: Query) -> dict[str, float]:
        """The probability of each source that it was trained on. Raises ConfigError when
        the embedder is not the one it was trained with."""
        vector = await self.embed(spoken(query, self.turns))
        if vector is None:
            raise ModelError("the embedder gave no vector")
        values = np.frombuffer(vector, "<f4").astype(np.float64)
        if len(values) + 1 != self.weights.shape[1]:
            raise ConfigError(
                f"the planner was trained on vectors of {self.weights.shape[1] - 1} numbers and gets {len(values)}:"
                " use the embedder that it was trained with, or train it again"
            )
        logits = self.weights @ np.append(values, 1.0)
        return {n: 1 / (1 + math.exp(-float(v))) for n, v in zip(self.names, logits, strict=True)}

    async def plan(self, scope: Scope, query: Query) -> Planned:
        """The sources above their thresholds; those that it does not know are left out."""
        try:
            chances = await self.chances(query)
        except ModelError:  # the embedder failed; without its features the rules decide
            return await RulePlanner(self.sources, self.store).plan(scope, query)
        known = await sources_there(self.store, scope, query, self.sources)
        chosen = [n for n, p in chances.items() if p >= self.thresholds[n] and n in known]
        return Planned(tuple(steps_for(chosen, self.sources, query)), "classifier")


@dataclass(frozen=True, slots=True)
class TrainedPlanner:
    """The trained model's acting tokens."""

    model: SourceModel
    sources: Choices

    async def plan(self, scope: Scope, query: Query) -> Planned:
        """The plan of the model."""
        del scope
        chosen: Sequence[str] = await self.model.plan(query.lines)
        return Planned(tuple(steps_for(chosen, self.sources, query)), self.model.name)


@dataclass(frozen=True, slots=True)
class CrossEncoderJudge:
    """A cross-encoder judges each pair of piece and dialogue."""

    scorer: PairScorer
    most: int = 16
    turns: int = 2

    async def judge(self, scope: Scope, query: Query, evidence: Sequence[Evidence], *, last: bool) -> Judgement:
        """The pieces with their relevance."""
        del scope, last
        shown = list(evidence[: self.most])
        text = spoken(query, self.turns)
        scores = await self.scorer.score([(e.text, text) for e in shown]) if shown else []
        return Judgement(ranked_by(shown, scores))


@dataclass(frozen=True, slots=True)
class TrainedJudge:
    """The trained model's evaluation tokens, all pieces in one masked pass (Wang et al.
    2024, equation 3)."""

    model: SourceModel
    most: int = 16

    async def judge(self, scope: Scope, query: Query, evidence: Sequence[Evidence], *, last: bool) -> Judgement:
        """The pieces of the sources that the model knows, with their relevance."""
        del scope, last
        shown = [e for e in evidence if e.source in self.model.sources][: self.most]
        plan = [s for s in self.model.sources if s in {e.source for e in shown}]
        scores = await self.model.score(query.lines, plan, [(e.source, e.text) for e in shown]) if shown else []
        return Judgement(ranked_by(shown, scores))


@dataclass(frozen=True, slots=True)
class NliCritic:
    """A cross-encoder that was fine-tuned on (grounding, reply) pairs."""

    scorer: PairScorer

    async def consistency(self, scope: Scope, evidence: Sequence[Evidence], draft: str) -> list[float]:
        """The probability that the draft rests on each piece."""
        del scope
        return await self.scorer.score([(e.text, draft) for e in evidence]) if evidence else []


@dataclass(frozen=True, slots=True)
class TrainedReader:
    """The trained model's replies (Wang et al. 2024, equation 4). It knows no profile, no
    persona file and no tools: only the dialogue and the evidence."""

    model: SourceModel

    async def read(self, scope: Scope, request: ReplyRequest) -> AsyncIterator[str | Reply]:
        """The reply, from the pieces of the sources that the model knows."""
        del scope
        known = [step.source for step in request.recall.plan if step.source in self.model.sources]
        pieces = [(e.source, e.text, e.relevance) for e in request.recall.kept if e.source in known]
        said: list[str] = []
        async for piece in self.model.reply(request.lines, known, pieces):
            said.append(piece)
            yield piece
        yield Reply("".join(said), request.recall)


def _model(kit: Kit) -> SourceModel:
    """The trained model that plans, scores and replies; loaded once."""
    from nyima_lab.models.unified import UnifiedModel

    found: SourceModel = kit.loaded("reader", lambda: UnifiedModel(kit.trained("reader")))
    return found


def _scorer(kit: Kit, what: str) -> PairScorer:
    """A trained cross-encoder, ``nli`` or ``ranker``; loaded once."""
    from nyima.models.pair_scorer import OnnxPairScorer

    found: PairScorer = kit.loaded(what, lambda: OnnxPairScorer(kit.trained(what)))
    return found


def _classifier(kit: Kit, asked: Choices) -> ClassifierPlanner:
    return ClassifierPlanner.load(kit.trained("planner") / "planner.json", asked, kit.vectors, kit.store)


MECHANISM = Mechanism(
    "trained",
    "planners, judges, a critic and a reader that are trained",
    planners={"classifier": _classifier, "trained": lambda kit, asked: TrainedPlanner(_model(kit), asked)},
    judges={
        "cross-encoder": lambda kit: CrossEncoderJudge(_scorer(kit, "ranker")),
        "trained": lambda kit: TrainedJudge(_model(kit)),
    },
    critics={"nli": lambda kit: NliCritic(_scorer(kit, "nli"))},
    readers={"trained": lambda kit: TrainedReader(_model(kit))},
)
