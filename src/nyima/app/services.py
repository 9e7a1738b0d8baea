"""The services of a memory; they turn a recipe into a read path and a desk for its writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta, tzinfo
from pathlib import Path
from typing import Any

from nyima.app.settings import Settings, read_zone
from nyima.domain.conversation import Scope
from nyima.domain.evidence import Notes
from nyima.domain.mechanism import Registry, Source, When
from nyima.domain.ports import READS_CLAIMS, ChatModel, Clock, Embedder, Event, Verifier
from nyima.domain.recipe import Recipe, SourceSpec
from nyima.domain.roles import Reader, Retriever
from nyima.domain.storage import AskEvents, Store
from nyima.errors import ConfigError
from nyima.language.words import tokens
from nyima.read.calls import Caller, DailyBudget
from nyima.read.embedding import QueryEmbedder
from nyima.read.kit import Kit
from nyima.read.outdating import Outdating
from nyima.read.reader import ReviewedReader
from nyima.read.recall import Recaller
from nyima.read.refine import Refiner
from nyima.read.sources import CallableRetriever, DependentRetriever, SourceChoice
from nyima.write.desk import Desk
from nyima.write.second_look import PromptedVerifier, TrainedVerifier

__all__ = ["Services"]

_HOSTED_WINDOW = 8_000
"""From this context window on, in tokens, a chat model is asked for a second look."""


@dataclass(frozen=True, slots=True)
class Services:
    """The store, models and settings of a memory. ``chat`` answers, ``writer_chat`` writes notes and
    summaries (the same model unless another is set). ``private`` is fixed when the value is
    made: ``Memory.reading`` makes one of its own for a private conversation. ``shared`` holds
    what is loaded once for all memories of a process."""

    scope: Scope
    store: Store
    clock: Clock
    embedder: Embedder | None
    chat: ChatModel | None
    writer_chat: ChatModel | None
    settings: Settings
    recipe: Recipe
    persona: str
    registry: Registry
    private: bool = False
    queries: Embedder | None = None
    sources: tuple[Source, ...] = ()
    given_verifier: Verifier | None = None
    outdating: Outdating | None = None
    shared: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def zone(self) -> tzinfo:
        """The user's time zone: the one that is set, else the machine's."""
        return read_zone(self.settings.zone)

    @property
    def silence(self) -> timedelta:
        """After how long without a turn a session has ended."""
        return timedelta(minutes=self.settings.silence_minutes)

    def caller(self, chat: ChatModel | None, held: list[Event] | None = None) -> Caller | None:
        """A model with ledger and budget; the lines of the ledger go to ``held`` where it is given."""
        limits = DailyBudget(self.settings.calls_per_day, self.settings.tokens_per_day)
        return None if chat is None else Caller(chat, self.store, self.clock, limits, self.private, held)

    def trained(self, what: str) -> Path:
        """The folder of something that was trained: ``planner``, ``nli``, ``ranker`` or
        ``reader``. Raises ConfigError when it is not there."""
        root = self.settings.trained_folder
        if not (root / what).is_dir():
            raise ConfigError(f"there is no {root / what}: run `nyima train {what}`, or set `trained` to its folder")
        return root / what

    # --- writing ---

    def desk(self, recipe: Recipe) -> Desk:
        """Return the desk of a recipe's writers."""
        chat = self.writer_chat

        def follow_ups(notes: Notes) -> Sequence[tuple[str, str]]:
            turns = {w.name for w in self.registry.writers(recipe, When.TURN)}
            asked = [w for m in self.registry.mechanisms if m.name in recipe.mechanisms for w in m.writers]
            # One that has had a job of the turn already gets another under another id.
            return [(w.name, "-noted" if w.name in turns else "") for w in asked if w.noted(notes)]

        return Desk(
            self.store,
            self.caller(chat),
            self.clock,
            1_500 if chat is None else max(400, chat.window // 3),
            recipe,
            self.embedder,
            self.zone,
            self.settings.subclasses,
            follow_ups,
            self.verifier,
            self.shared,
        )

    @property
    def verifier(self) -> Verifier | None:
        """Who looks again at what was read, before it is believed: the one that is given, else the chat
        model that writes, unless it is a small local one that was not trained for it: that calls most of what
        it is shown over."""
        if self.given_verifier is not None:
            return self.given_verifier
        caller, chat = self.caller(self.writer_chat), self.writer_chat
        if caller is not None and READS_CLAIMS in caller.model.trained:
            return TrainedVerifier(caller)
        hosted = chat is not None and chat.window >= _HOSTED_WINDOW
        return PromptedVerifier(caller) if caller is not None and hosted else None

    def notes_in_reply(self, recipe: Recipe) -> bool:
        """Return whether the reply's call also takes notes. A model that was trained to read claims does that
        in a call of its own, with a much shorter prompt."""
        writer = self.writer_chat
        return recipe.takes_notes and (writer is None or READS_CLAIMS not in writer.trained)

    # --- reading ---

    async def learned(self, recipe: Recipe) -> Mapping[str, Mapping[str, Any]]:
        """The weights that were learned for this user, by their kind of event: those that the
        selector of the recipe uses, which has the name of their kind."""
        found: dict[str, Mapping[str, Any]] = {}
        for kind in {recipe.selector} & set(self.registry.learns):
            for event in await self.store.standing(self.scope, AskEvents(kind, limit=1)):
                found[kind] = event.body
        return found

    def kit(
        self,
        recipe: Recipe,
        learned: Mapping[str, Mapping[str, Any]] | None = None,
        held: list[Event] | None = None,
    ) -> Kit:
        """Return the kit of which a recipe's roles are made."""
        embedder = self.queries or self.embedder
        return Kit(
            self.store,
            recipe,
            self.caller(self.chat, held),
            QueryEmbedder(embedder),
            embedder.embed if embedder else None,
            self.trained,
            self.persona,
            {name: source.kinds for name, source in self.registry.sources.items()},
            self.sources,
            learned or {},
            self.shared,
        )

    def recaller(
        self,
        recipe: Recipe,
        *,
        k: int | None = None,
        learned: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Recaller:
        """The read path of a recipe; with ``k`` each source may bring that many."""
        kit = self.kit(recipe, learned)
        specs = self._specs(recipe, k)
        retrievers = {spec.name: self._retriever(kit, spec) for spec in specs}
        own = self.sources if recipe.sources and recipe.own else ()
        retrievers |= {source.name: CallableRetriever(source) for source in own}
        asked = self._choices(specs, own, k)
        limits = {} if k else {source.name: source.k for source in asked}
        select = self.registry.make("selectors", recipe.selector)
        plan = self.registry.make("planners", "all" if k else recipe.planner)
        return Recaller(
            self.store,
            plan(kit, asked),
            retrievers,
            self.registry.make("judges", recipe.judge)(kit),
            select(kit, recipe.floor, 0.0 if k else recipe.share, limits),
            kit.vectors,
            recipe.rounds,
            self.zone,
            self.outdating,
        )

    def _retriever(self, kit: Kit, spec: SourceSpec) -> Retriever:
        found: Retriever = self.registry.make("retrievers", spec.how)(kit, spec)
        return DependentRetriever(found, self.store, kit.kinds[spec.name]) if spec.after else found

    def _specs(self, recipe: Recipe, k: int | None) -> tuple[SourceSpec, ...]:
        """The recipe's sources. The persona is no memory: it is asked for a reply alone, and only
        where not all of it is in the system message."""
        asked = k is None and self.persona.strip() and tokens(self.persona) > recipe.room["persona"]
        return tuple(s for s in recipe.sources if s.how != "persona" or asked)

    def _choices(self, specs: Sequence[SourceSpec], own: Sequence[Source], k: int | None) -> list[SourceChoice]:
        """The sources as planners see them. One that is not asked is nothing to depend on."""
        known = self.registry.sources
        there = {s.name for s in specs} | {s.name for s in own}
        chosen = [SourceChoice(s.name, k or s.k, s.after, known[s.name].about, known[s.name].kinds) for s in specs] + [
            SourceChoice(s.name, k or s.k, s.after, s.about) for s in own
        ]
        return [SourceChoice(c.name, c.k, tuple(a for a in c.after if a in there), c.about, c.kinds) for c in chosen]

    def refiner(self, recipe: Recipe) -> Refiner | None:
        """Return the reviewer of drafts; None when the recipe has no critic, or needs a model and
        there is none."""
        critic = self.registry.make("critics", recipe.critic)(self.kit(recipe)) if recipe.critic else None
        return None if critic is None else Refiner(critic, recipe.drafts, recipe.alpha, store=self.store)

    def reader(self, recipe: Recipe, held: list[Event] | None = None) -> Reader:
        """Who writes the replies of a recipe, with the critic that reviews them, if it has one.
        The reader's own lines of the ledger go to ``held`` where it is given.
        Raises NoModel, or ConfigError where something trained is not there."""
        found: Reader = self.registry.make("readers", recipe.reader)(self.kit(recipe, held=held))
        refiner = self.refiner(recipe)
        return found if refiner is None else ReviewedReader(found, refiner)
