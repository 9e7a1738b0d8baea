"""What a memory works with, and how a recipe becomes writers, sources, judge and selector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nyima.app.settings import Settings, read_zone
from nyima.domain.conversation import Scope
from nyima.domain.ports import ChatModel, Clock, Embedder, PairScorer, SourceModel, Store
from nyima.domain.roles import Judge, Planner, Reader, Retriever, Selector, Writer
from nyima.errors import ConfigError
from nyima.language.words import tokens

if TYPE_CHECKING:
    from nyima.domain.recipe import Recipe, SourceSpec
    from nyima.language.relations import Subclass
    from nyima.mechanisms.graph.policy import WalkPolicy
    from nyima.read.calls import Caller, Limits
    from nyima.read.plan import Asked
    from nyima.read.recall import QueryEmbedder, Recaller
    from nyima.read.refine import Refiner
    from nyima.read.sources import Source

__all__ = ["Parts"]


def _rule() -> WalkPolicy:
    from nyima.mechanisms.graph.policy import RulePolicy

    return RulePolicy()


@dataclass(slots=True)
class Parts:
    """What a memory works with. ``chat`` answers, ``writer_chat`` writes notes and
    summaries (the same model unless another is set). ``private`` is fixed when the value is
    made: ``Memory.reading`` makes one of its own for a private conversation."""

    scope: Scope
    store: Store
    clock: Clock
    embedder: Embedder | None
    chat: ChatModel | None
    writer_chat: ChatModel | None
    settings: Settings
    recipe: Recipe
    persona: str
    private: bool = False
    queries: Embedder | None = None
    priors: dict[str, Any] = field(default_factory=dict[str, Any])
    labels: dict[str, Any] = field(default_factory=dict[str, Any])
    policy: WalkPolicy = field(default_factory=_rule)
    sources: tuple[Source, ...] = ()
    unified: SourceModel | None = None
    scorers: dict[str, PairScorer] = field(default_factory=dict[str, Any])

    @property
    def zone(self) -> tzinfo:
        """The user's time zone: the one that is set, else the machine's."""
        return read_zone(self.settings.zone)

    @property
    def subclasses(self) -> tuple[Subclass, ...]:
        """The graph's subclasses, with those of the settings."""
        from nyima.language.relations import read_subclasses

        return read_subclasses(self.settings.subclasses)

    async def learned(self) -> None:
        """Take the learned policy of the walk from the store, if there is one."""
        from nyima.mechanisms.graph.policy import RulePolicy, policy_from

        found = await self.store.events(self.scope, "policy", limit=1)
        weights = found[0].body.get("weights") if found else None
        self.policy = policy_from(weights) if weights else RulePolicy()

    def caller(self, chat: ChatModel | None) -> Caller | None:
        """A model with ledger and budget."""
        from nyima.read.calls import Caller

        return None if chat is None else Caller(chat, self.store, self.clock, self._limits(), self.private)

    def _limits(self) -> Limits:
        from nyima.read.calls import Limits

        return Limits(self.settings.calls_per_day, self.settings.tokens_per_day)

    def writer(self, kind: str, recipe_name: str) -> Writer:
        """The writer of a kind of job."""
        from nyima.app.recipes import recipe_named
        from nyima.mechanisms.conditional import GateWriter, NoteWriter
        from nyima.mechanisms.graph.writer import GraphWriter
        from nyima.mechanisms.profile import ProfileWriter
        from nyima.mechanisms.summaries import MendWriter, RecursiveWriter, SummaryWriter
        from nyima.write.desk import Desk
        from nyima_lab.baselines.sessions import MemoChatWriter, MemoryBankWriter

        recipe = recipe_named(recipe_name)
        chat = self.writer_chat
        room = 1_500 if chat is None else max(400, chat.window // 3)
        desk = Desk(self.store, self.caller(chat), self.clock, room)
        makers: dict[str, Callable[[], Writer]] = {
            "gate": lambda: GateWriter(desk, recipe.writers),
            "note": lambda: NoteWriter(desk, recipe.parts, "graph" in recipe.writers),
            "graph": lambda: GraphWriter(
                desk, self.embedder, self.zone, self.subclasses, "memories" not in recipe.writers, self.priors
            ),
            "mend": lambda: MendWriter(desk),
            "summary": lambda: SummaryWriter(desk),
            "recursive": lambda: RecursiveWriter(desk),
            "profile": lambda: ProfileWriter(desk),
            "memorybank": lambda: MemoryBankWriter(desk),
            "memochat": lambda: MemoChatWriter(desk),
        }
        if kind not in makers:
            raise ConfigError(f"a job of kind {kind!r} is owed that this version cannot do: install a newer Nyima")
        return makers[kind]()

    def query_embedder(self) -> QueryEmbedder:
        """Embeds the words of one recall."""
        from nyima.read.recall import QueryEmbedder

        return QueryEmbedder(self.queries or self.embedder)

    def recaller(self, recipe: Recipe, *, k: int | None = None) -> Recaller:
        """The read path of a recipe; with ``k`` each source may bring that many."""
        from nyima.mechanisms.graph.walk import WalkSelector
        from nyima.read.recall import BudgetSelector, Recaller
        from nyima.read.search import KINDS_OF
        from nyima.read.sources import CallableRetriever, DependentRetriever
        from nyima_lab.baselines.sessions import FadingRetriever

        vectors = self.query_embedder()
        specs = self._specs(recipe, k)
        retrievers: dict[str, Any] = {s.name: self._retriever(s, vectors, recipe) for s in specs}
        if recipe.fading:
            retrievers = {name: FadingRetriever(inner, self.store) for name, inner in retrievers.items()}
        for spec in (s for s in specs if s.after):
            retrievers[spec.name] = DependentRetriever(retrievers[spec.name], self.store, KINDS_OF[spec.name])
        own: tuple[Source, ...] = self.sources if recipe.sources and recipe.own else ()
        retrievers |= {source.name: CallableRetriever(source) for source in own}
        there = {s.name for s in specs} | {s.name for s in own}
        every = [(s.name, s.k, s.after) for s in specs] + [(s.name, s.k, s.after) for s in own]
        asked = tuple((name, k or most, tuple(a for a in after if a in there)) for name, most, after in every)
        limits = {} if k else {name: most for name, most, _ in asked}
        cut = (recipe.floor, 0.0 if k else recipe.share, limits)
        selector: Selector = WalkSelector(self.policy, *cut) if recipe.selector == "policy" else BudgetSelector(*cut)
        planner = self._planner("all" if k else recipe.planner, asked, vectors)
        return Recaller(self.store, planner, retrievers, self._judge(recipe), selector, vectors, recipe.rounds)

    def _specs(self, recipe: Recipe, k: int | None) -> tuple[SourceSpec, ...]:
        """The recipe's sources. The persona is no memory: it is asked for a reply alone, and only
        where not all of it is in the system message."""
        asked = k is None and self.persona.strip() and tokens(self.persona) > recipe.room["persona"]
        return tuple(s for s in recipe.sources if s.how != "persona" or asked)

    def _planner(self, how: str, asked: Asked, vectors: QueryEmbedder) -> Planner:
        from nyima.read.plan import (
            AllPlanner,
            ClassifierPlanner,
            ModelPlanner,
            RulePlanner,
            TrainedPlanner,
        )

        rules = RulePlanner(asked, self.store)
        if how == "rules":
            return rules
        caller = self.caller(self.chat)
        if how == "model" and caller is not None:
            return ModelPlanner(caller, asked, {s.name: s.about for s in self.sources}, rules)
        if how == "model":
            return rules
        if how == "classifier":
            return ClassifierPlanner.load(self.trained("planner") / "planner.json", asked, vectors, self.store)
        if how == "trained":
            return TrainedPlanner(self.source_model(), asked)
        return AllPlanner(asked, self.store)

    def trained(self, what: str) -> Path:
        """The folder of something that was trained: ``planner``, ``nli``, ``ranker`` or
        ``reader``. Raises ConfigError when it is not there."""
        root = Path(self.settings.trained).expanduser() if self.settings.trained else self.settings.cache / "trained"
        if not (root / what).is_dir():
            raise ConfigError(f"there is no {root / what}: run `nyima train {what}`, or set `trained` to its folder")
        return root / what

    def source_model(self) -> SourceModel:
        """The trained model that plans, scores and replies; loaded once."""
        from nyima_lab.models.unified import UnifiedModel

        if self.unified is None:
            self.unified = UnifiedModel(self.trained("reader"))
        return self.unified

    def scorer(self, what: str) -> PairScorer:
        """A trained cross-encoder, ``nli`` or ``ranker``; loaded once."""
        from nyima_lab.models.pair_scorer import OnnxPairScorer

        if what not in self.scorers:
            self.scorers[what] = OnnxPairScorer(self.trained(what))
        return self.scorers[what]

    def refiner(self, recipe: Recipe) -> Refiner | None:
        """What reviews drafts; None when the recipe has no critic, or needs a model and
        there is none."""
        from nyima.read.critics import ModelCritic, NliCritic
        from nyima.read.refine import Refiner

        caller = self.caller(self.chat)
        if recipe.critic == "nli":
            return Refiner(NliCritic(self.scorer("nli")), recipe.drafts, recipe.alpha, store=self.store)
        if recipe.critic == "model" and caller is not None:
            return Refiner(ModelCritic(caller), recipe.drafts, recipe.alpha, store=self.store)
        return None

    def reader(self, recipe: Recipe) -> Reader | None:
        """The trained reader of a recipe; None where the chat model replies."""
        from nyima_lab.baselines.trained_reader import TrainedReader

        return TrainedReader(self.source_model()) if recipe.reader == "trained" else None

    def _retriever(self, source: SourceSpec, vectors: QueryEmbedder, recipe: Recipe) -> Retriever:
        from nyima.mechanisms.graph.walk import GraphRetriever
        from nyima.read.search import PersonaRetriever, SearchRetriever
        from nyima_lab.baselines.memories import EveryRetriever, PartitionRetriever
        from nyima_lab.baselines.sessions import MemoRetriever

        if source.how == "persona":
            return PersonaRetriever(self.persona)
        if source.how == "all":
            return MemoRetriever(self.store)
        embedder = self.queries or self.embedder
        if source.how == "every":
            return EveryRetriever(self.store)
        if source.how == "partition":
            return PartitionRetriever(self.store, embedder.embed if embedder else None)
        how = "hybrid" if source.how == "walk" else source.how
        search = SearchRetriever(self.store, vectors, how, source.weights, source.turns, source.region or None)
        if source.how != "walk":
            return search
        embed = embedder.embed if embedder else None
        return GraphRetriever(self.store, search, embed, recipe.from_root, source.ruled, self.labels)

    def _judge(self, recipe: Recipe) -> Judge:
        from nyima.read.judge import (
            ChoosingJudge,
            CrossEncoderJudge,
            ReflectingJudge,
            RelevanceJudge,
            ScoreJudge,
            TrainedJudge,
        )
        from nyima_lab.baselines.memories import DecomposingJudge

        if recipe.judge == "cross-encoder":
            return CrossEncoderJudge(self.scorer("ranker"))
        if recipe.judge == "trained":
            return TrainedJudge(self.source_model())
        caller = self.caller(self.chat)
        if caller is None or recipe.judge == "scores":
            return ScoreJudge()
        if recipe.judge == "decompose":
            return DecomposingJudge(caller)
        if recipe.judge == "relevance":
            return RelevanceJudge(caller)
        return ReflectingJudge(caller) if recipe.judge == "reflect" else ChoosingJudge(caller)

    @property
    def silence(self) -> timedelta:
        """After how long without a turn a session has ended."""
        return timedelta(minutes=self.settings.silence_minutes)
