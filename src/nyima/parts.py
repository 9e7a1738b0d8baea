"""What a memory works with, and how a recipe becomes writers, sources, judge and selector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from nyima.domain.conversation import Scope
from nyima.domain.ports import ChatModel, Clock, Embedder, Judge, Retriever, Selector, Store, Writer
from nyima.errors import ConfigError
from nyima.settings import Settings, read_zone

if TYPE_CHECKING:
    from nyima.engines.calls import Caller, Limits
    from nyima.engines.graph.policy import WalkPolicy
    from nyima.engines.graph.schema import Subclass
    from nyima.engines.recall import QueryEmbedder, Recaller
    from nyima.engines.recipes import Recipe, SourceSpec

__all__ = ["Parts"]


def _rule() -> WalkPolicy:
    from nyima.engines.graph.policy import RulePolicy

    return RulePolicy()


@dataclass(slots=True)
class Parts:
    """What a memory works with. ``chat`` answers, ``writer_chat`` writes notes and
    summaries (the same model unless another is set)."""

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

    @property
    def zone(self) -> tzinfo:
        """The user's time zone: the one that is set, else the machine's."""
        return read_zone(self.settings.zone)

    @property
    def subclasses(self) -> tuple[Subclass, ...]:
        """The graph's subclasses, with those of the settings."""
        from nyima.engines.graph.schema import read_subclasses

        return read_subclasses(self.settings.subclasses)

    async def learned(self) -> None:
        """Take the learned policy of the walk from the store, if there is one."""
        from nyima.engines.graph.policy import RulePolicy, policy_from

        found = await self.store.events(self.scope, "policy", limit=1)
        weights = found[0].body.get("weights") if found else None
        self.policy = policy_from(weights) if weights else RulePolicy()

    def caller(self, chat: ChatModel | None) -> Caller | None:
        """A model with ledger and budget."""
        from nyima.engines.calls import Caller

        return None if chat is None else Caller(chat, self.store, self.clock, self._limits(), self.private)

    def _limits(self) -> Limits:
        from nyima.engines.calls import Limits

        return Limits(self.settings.calls_per_day, self.settings.tokens_per_day)

    def writer(self, kind: str, recipe_name: str) -> Writer:
        """The writer of a kind of job."""
        from nyima.engines.recipes import recipe_named
        from nyima.engines.strategies.baselines import MemoChatWriter, MemoryBankWriter
        from nyima.engines.strategies.common import Desk
        from nyima.engines.strategies.conditional import GateWriter, NoteWriter
        from nyima.engines.strategies.graph import GraphWriter
        from nyima.engines.strategies.profile import ProfileWriter
        from nyima.engines.strategies.summaries import MendWriter, RecursiveWriter, SummaryWriter

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
        from nyima.engines.recall import QueryEmbedder

        return QueryEmbedder(self.queries or self.embedder)

    def recaller(self, recipe: Recipe, *, k: int | None = None) -> Recaller:
        """The read path of a recipe; with ``k`` each source may bring that many."""
        from nyima.engines.graph.walk import WalkSelector
        from nyima.engines.recall import AllPlanner, BudgetSelector, Recaller
        from nyima.engines.strategies.baselines import FadingRetriever
        from nyima.engines.strategies.retrievers import PersonaRetriever

        vectors = self.query_embedder()
        retrievers: dict[str, Any] = {s.name: self._retriever(s, vectors, recipe) for s in recipe.sources}
        if recipe.fading:
            retrievers = {name: FadingRetriever(inner, self.store) for name, inner in retrievers.items()}
        steps = tuple((s.name, k or s.k) for s in recipe.sources)
        if k and self.persona and recipe.name == "default":
            retrievers["persona"] = PersonaRetriever(self.persona)
            steps = (*steps, ("persona", 2))
        judge = self._judge(recipe)
        limits = {} if k else {s.name: s.k for s in recipe.sources}
        cut = (recipe.floor, 0.0 if k else recipe.share, limits)
        selector: Selector = WalkSelector(self.policy, *cut) if recipe.selector == "policy" else BudgetSelector(*cut)
        return Recaller(self.store, AllPlanner(steps), retrievers, judge, selector, vectors, recipe.rounds)

    def _retriever(self, source: SourceSpec, vectors: QueryEmbedder, recipe: Recipe) -> Retriever:
        from nyima.engines.graph.walk import GraphRetriever
        from nyima.engines.strategies.baselines import MemoRetriever
        from nyima.engines.strategies.memories import EveryRetriever, PartitionRetriever
        from nyima.engines.strategies.retrievers import SearchRetriever

        if source.how == "all":
            return MemoRetriever(self.store)
        embedder = self.queries or self.embedder
        if source.how == "every":
            return EveryRetriever(self.store)
        if source.how == "partition":
            return PartitionRetriever(self.store, embedder.embed if embedder else None)
        how = "hybrid" if source.how == "walk" else source.how
        search = SearchRetriever(self.store, vectors, how, source.weights)
        if source.how != "walk":
            return search
        return GraphRetriever(self.store, search, embedder.embed if embedder else None, recipe.from_root, self.labels)

    def _judge(self, recipe: Recipe) -> Judge:
        from nyima.engines.strategies.judges import ChoosingJudge, ReflectingJudge, ScoreJudge
        from nyima.engines.strategies.memories import DecomposingJudge

        caller = self.caller(self.chat)
        if caller is None or recipe.judge == "scores":
            return ScoreJudge()
        if recipe.judge == "decompose":
            return DecomposingJudge(caller)
        return ReflectingJudge(caller) if recipe.judge == "reflect" else ChoosingJudge(caller)

    @property
    def silence(self) -> timedelta:
        """After how long without a turn a session has ended."""
        return timedelta(minutes=self.settings.silence_minutes)
