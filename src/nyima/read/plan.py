"""Planners: which sources to ask for a message, in which order, or none (Wang et al. 2024,
section 4.1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Query
from nyima.domain.mechanism import Mechanism
from nyima.domain.ports import RecordFilter
from nyima.domain.roles import Planned
from nyima.domain.storage import AskRecords, Store
from nyima.errors import ModelGarbled
from nyima.language.small_talk import ABOUT_YOU, is_small_talk
from nyima.language.words import cut_tokens
from nyima.prompts.prompt import Prompt
from nyima.read.calls import Caller
from nyima.read.kit import Kit
from nyima.read.sources import SourceChoice, steps_for

__all__ = ["MECHANISM", "PASSAGES", "AllPlanner", "Choices", "ModelPlanner", "RulePlanner", "sources_there"]


@dataclass(frozen=True, slots=True)
class PlanIn:
    """A message with the dialogue before it, and the sources with what they hold."""

    sources: str
    dialogue: str
    message: str


class PlanOut(BaseModel):
    """The names of sources, in order."""

    sources: list[str] = Field(default_factory=list)


PLAN: Prompt[PlanIn, PlanOut] = Prompt("plan", PlanOut, 40)


PASSAGES = AskRecords(RecordFilter(kinds=("passage",), limit=1))
"""Asks whether there are documents."""

Choices = Sequence[SourceChoice]
"""The sources of a recipe."""


async def sources_there(store: Store | None, scope: Scope, query: Query, sources: Choices) -> list[str]:
    """The sources that can hold something of the wanted kinds: documents only when there
    are any."""
    wanted = set(query.kinds)
    names = [s.name for s in sources if not wanted or wanted & set(s.kinds)]
    if store is not None and "documents" in names and not await store.standing(scope, PASSAGES):
        names.remove("documents")
    return names


@dataclass(frozen=True, slots=True)
class AllPlanner:
    """Asks every source of the recipe that can hold something."""

    sources: Choices
    store: Store | None = None

    async def plan(self, scope: Scope, query: Query) -> Planned:
        """A step a source."""
        names = await sources_there(self.store, scope, query, self.sources)
        return Planned(tuple(steps_for(names, self.sources, query)), "all")


@dataclass(frozen=True, slots=True)
class RulePlanner:
    """Decides by what can be seen in the message: small talk, a leave and bare arithmetic
    need nothing (NULL); the assistant's persona is asked only when the message is about
    the assistant. Whatever else is there is asked, since a miss costs more than a search."""

    sources: Choices
    store: Store | None = None

    async def plan(self, scope: Scope, query: Query) -> Planned:
        """The plan; no model is called."""
        before = query.dialogue[-1][1] if query.dialogue and query.dialogue[-1][0] == "assistant" else ""
        if is_small_talk(query.text, before):
            return Planned((), "rules")
        names = await sources_there(self.store, scope, query, self.sources)
        if not ABOUT_YOU.search(query.text):
            names = [n for n in names if n != "persona"]
        return Planned(tuple(steps_for(names, self.sources, query)), "rules")


@dataclass(frozen=True, slots=True)
class ModelPlanner:
    """Asks a chat model; when its answer cannot be read, the rules decide."""

    caller: Caller
    sources: Choices
    rules: RulePlanner
    turns: int = 4

    async def plan(self, scope: Scope, query: Query) -> Planned:
        """The plan. Sources that the model names and that do not exist are left out."""
        there = await sources_there(self.rules.store, scope, query, self.sources)
        if not there:
            return Planned((), "model")
        known = {source.name: source for source in self.sources}
        listed = "\n".join(
            f"{name}: {known[name].about}" + (f" (needs {', '.join(known[name].after)})" if known[name].after else "")
            for name in there
        )
        before = query.dialogue[max(0, len(query.dialogue) - self.turns) :]
        dialogue = "\n".join(f"{role}: {cut_tokens(text, 60)}" for role, text in before) or "(none)"
        try:
            out, asked = await self.caller.ask(scope, PLAN, PlanIn(listed, dialogue, cut_tokens(query.text, 150)))
        except ModelGarbled:
            await self.caller.fallback(scope, PLAN.version)
            fallback = await self.rules.plan(scope, query)
            return Planned(fallback.steps, "rules", PLAN.version)
        named = {n.strip().casefold() for n in out.sources}
        chosen = [n for n in there if n.casefold() in named]
        return Planned(tuple(steps_for(chosen, self.sources, query)), "model", asked.prompt)


def _by_model(kit: Kit, asked: Choices) -> ModelPlanner | RulePlanner:
    rules = RulePlanner(asked, kit.store)
    return rules if kit.caller is None else ModelPlanner(kit.caller, asked, rules)


MECHANISM = Mechanism(
    "plan",
    "which sources to ask",
    planners={
        "all": lambda kit, asked: AllPlanner(asked, kit.store),
        "rules": lambda kit, asked: RulePlanner(asked, kit.store),
        "model": _by_model,
    },
)
