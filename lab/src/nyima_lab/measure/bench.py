"""What the evaluation of many sources runs on: the dialogues' sources in a store, and the
shipped roles over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from nyima.app.registry import registry
from nyima.domain.changes import Add, Delta
from nyima.domain.conversation import Origin, Scope
from nyima.domain.evidence import Evidence, Query, Step
from nyima.domain.ports import ChatModel, Embedder, PairScorer, RecordFilter, SourceModel
from nyima.domain.recipe import Weights
from nyima.domain.records import Interval, Passage, Provenance
from nyima.domain.roles import Judge, Planned, Planner, Retriever
from nyima.domain.storage import Store
from nyima.errors import InputError
from nyima.read.calls import Caller
from nyima.read.embedding import QueryEmbedder, index_pending
from nyima.read.judge import RelevanceJudge, ScoreJudge
from nyima.read.plan import (
    AllPlanner,
    Choices,
    ModelPlanner,
    RulePlanner,
)
from nyima.read.search import SearchRetriever
from nyima.read.sources import DependentRetriever, SourceChoice, steps_for
from nyima.stores.sqlite.store import SqliteStore
from nyima.testing import FixedClock, MemoryStore
from nyima_lab.baselines.trained_roles import ClassifierPlanner, CrossEncoderJudge, TrainedJudge, TrainedPlanner
from nyima_lab.measure.grounded import ORDER, Sample

__all__ = ["Bench", "Equipment", "GoldPlanner", "GoldRetriever", "scope_of"]

_AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
_PLAIN = Weights(near=(), session=0.0, period=0.0)


def scope_of(sample: Sample) -> Scope:
    """Each dialogue has a memory of its own."""
    return Scope(user=sample.group)


@dataclass(frozen=True, slots=True)
class Equipment:
    """The models of a run; what a row needs and is None is an InputError. ``retrievers``
    are embedders by name, ``source_models`` trained models by name."""

    embedders: Mapping[str, Embedder] = field(default_factory=dict[str, Embedder])
    rankers: Mapping[str, PairScorer] = field(default_factory=dict[str, PairScorer])
    source_models: Mapping[str, SourceModel] = field(default_factory=dict[str, SourceModel])
    planner: ClassifierPlanner | None = None
    nli: PairScorer | None = None
    chat: ChatModel | None = None
    turns: int = 2


@dataclass(frozen=True, slots=True)
class GoldPlanner:
    """Plans what the reply is known to have used."""

    asked: Choices
    plans: Mapping[str, tuple[str, ...]]

    async def plan(self, scope: Scope, query: Query) -> Planned:
        """The gold plan of the sample that the query belongs to."""
        del scope
        return Planned(tuple(steps_for(self.plans[query.keywords[0]], self.asked, query)), "gold")


@dataclass(frozen=True, slots=True)
class GoldRetriever:
    """Brings the pieces that the reply is known to have used."""

    store: Store
    gold: Mapping[str, frozenset[str]]

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        """The gold pieces of the step's source."""
        wanted = self.gold[step.query.keywords[0]]
        found = [e for e in await _every(self.store, scope, step) if e.record.id in wanted]
        return [replace(e, score=1.0) for e in found]


@dataclass(frozen=True, slots=True)
class EveryPassage:
    """All pieces of a source with the same score, for judges that rank by themselves."""

    store: Store

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        """The pieces, by id."""
        return await _every(self.store, scope, step)


async def _every(store: Store, scope: Scope, step: Step) -> list[Evidence]:
    found = await store.records(scope, RecordFilter(kinds=("passage",), at=step.query.at))
    pieces = [r for r in found if isinstance(r, Passage) and r.document == step.source]
    return [Evidence(r.text, step.source, 0.5, r, _AT) for r in sorted(pieces, key=lambda r: r.id)]


@dataclass(slots=True)
class Bench:
    """The sources of samples in stores of their own (in ``folder``), and roles over them."""

    samples: Sequence[Sample]
    equipment: Equipment
    folder: Path
    stores: dict[str, SqliteStore] = field(default_factory=dict[str, SqliteStore])

    @property
    def asked(self) -> Choices:
        """The sources that the samples have; documents depend on what they belong to."""
        there = [s for s in ORDER if any(p.source == s for x in self.samples for p in x.pieces)]
        owner = {(x.group, p.id): p.source for x in self.samples for p in x.pieces}
        before = {owner[x.group, p.parent] for x in self.samples for p in x.pieces if p.parent}
        about = registry().sources
        return tuple(
            SourceChoice(
                s,
                15,
                tuple(o for o in there if o in before) if s == "documents" else (),
                about[s].about,
                about[s].kinds,
            )
            for s in there
        )

    async def store(self, embedder: str = "") -> SqliteStore:
        """The store, with the vectors of an embedder."""
        if embedder not in self.stores:
            made = SqliteStore(self.folder / f"{embedder or 'words'}.db")
            for sample in {s.group: s for s in self.samples}.values():
                await made.commit(scope_of(sample), Delta(tuple(Add(p) for p in _passages(sample))))
                if embedder:
                    await index_pending(made, self.equipment.embedders[embedder], scope_of(sample))
            self.stores[embedder] = made
        return self.stores[embedder]

    async def close(self) -> None:
        """Close the stores."""
        for store in self.stores.values():
            await store.close()

    def query(self, sample: Sample) -> Query:
        """The message with its dialogue; the keyword tells gold roles which sample it is."""
        return Query(sample.message, _AT, keywords=(sample.id,), dialogue=sample.dialogue)

    async def planner(self, name: str) -> Planner:
        """A planner by name: rules, all, gold, classifier, model, or a trained model."""
        asked = self.asked
        store = await self.store()
        if name == "gold":
            return GoldPlanner(asked, {s.id: s.plan for s in self.samples})
        if name == "all":
            return AllPlanner(asked)
        if name == "none":
            return GoldPlanner(asked, {s.id: () for s in self.samples})
        if name == "rules":
            return RulePlanner(asked)
        if name == "classifier" and self.equipment.planner is not None:
            return replace(self.equipment.planner, sources=asked, store=None)
        if name == "model":
            return ModelPlanner(self._caller(store), asked, RulePlanner(asked), self.equipment.turns)
        return TrainedPlanner(self._source_model(name), asked)

    async def retriever(self, name: str, source: str, *, dependent: bool = True) -> Retriever:
        """A retriever by name: words, gold, every, an embedder, or ``hybrid:`` and one."""
        how, _, encoder = name.rpartition(":")
        store = await self.store(encoder if encoder in self.equipment.embedders else "")
        found: Retriever
        if name == "gold":
            return GoldRetriever(store, {s.id: frozenset(f"{s.group}/{g}" for g in s.gold) for s in self.samples})
        if name == "every":
            found = EveryPassage(store)
        elif name == "words":
            found = _Unkeyed(SearchRetriever(store, QueryEmbedder(None), ("passage",), "words", _PLAIN, 0, source))
        elif encoder in self.equipment.embedders:
            vectors = QueryEmbedder(self.equipment.embedders[encoder])
            found = _Unkeyed(
                SearchRetriever(store, vectors, ("passage",), how or "vector", _PLAIN, self.equipment.turns, source)
            )
        else:
            raise InputError(
                f"there is no retriever {name!r}: choose words, gold, every or {', '.join(self.equipment.embedders)}"
            )
        after = next((s.after for s in self.asked if s.name == source), ())
        return DependentRetriever(found, store, ("passage",)) if dependent and after else found

    def judge(self, name: str) -> Judge:
        """A judge by name: scores, model, a ranker, or a trained model."""
        if name == "scores":
            return ScoreJudge()
        if name == "model":
            return RelevanceJudge(self._caller(MemoryStore()), 16, turns=self.equipment.turns)
        if name in self.equipment.rankers:
            return CrossEncoderJudge(self.equipment.rankers[name], 32, self.equipment.turns)
        return TrainedJudge(self._source_model(name), 32)

    def _source_model(self, name: str) -> SourceModel:
        if name not in self.equipment.source_models:
            raise InputError(f"there is no trained model {name!r}: give its folder with --trained")
        return self.equipment.source_models[name]

    def _caller(self, store: Store) -> Caller:
        if self.equipment.chat is None:
            raise InputError("this row needs a chat model: give --model")
        return Caller(self.equipment.chat, store, FixedClock(), private=True)


@dataclass(frozen=True, slots=True)
class _Unkeyed:
    """Takes the sample's id out of the query before it is searched with. In the bench the
    pieces of every source are passages."""

    inner: SearchRetriever

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        bare = replace(step.query, keywords=step.query.keywords[1:])
        found = await self.inner.retrieve(scope, replace(step, source="documents", query=bare))
        return [replace(e, source=step.source) for e in found]


def _passages(sample: Sample) -> list[Passage]:
    def made(parent: str) -> Provenance:
        records = (f"{sample.group}/{parent}",) if parent else ()
        return Provenance(records=records, writer="bench", origin=Origin.DOCUMENT)

    return [
        Passage(
            id=f"{sample.group}/{p.id}", provenance=made(p.parent), valid=Interval(_AT), recorded=Interval(_AT),
            document=p.source, place=p.id, body=p.text,
        )
        for p in sample.pieces
    ]  # fmt: skip
