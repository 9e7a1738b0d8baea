"""Planners: which sources to ask for a message, in which order, or none (Wang et al. 2024,
section 4.1.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Query
from nyima.domain.mechanism import Mechanism
from nyima.domain.ports import RecordFilter, Store
from nyima.domain.roles import Planned
from nyima.errors import ModelGarbled
from nyima.language.intent import is_goodbye
from nyima.language.words import cut_tokens
from nyima.prompts.prompt import PLAN, PlanIn
from nyima.read.calls import Caller
from nyima.read.kit import Kit
from nyima.read.sources import SourceChoice, steps_for

__all__ = ["MECHANISM", "AllPlanner", "Asked", "ModelPlanner", "RulePlanner", "is_small_talk", "sources_there"]

Asked = Sequence[SourceChoice]
"""The sources of a recipe."""

_SMALL_TALK = frozenset(
    """hello hi hey hiya yo good morning afternoon evening night thanks thank you thx cheers ok okay k fine great nice
    cool lol haha hahaha yes yeah yep no nope sure please welcome bye goodbye wow hmm mm oh ah alright right perfect
    how are doing today is it going up what s whats sup there very much so a lot the same
    olá ola oi bom dia boa tarde noite obrigado obrigada tudo bem como vai você voce hola gracias buenos dias buenas tardes
    noches qué tal que hallo danke guten morgen tag abend wie geht s es dir bonjour bonsoir merci salut ça va ciao grazie
    buongiorno buonasera""".split()
)
_CARRIES = frozenset("what how is it a the no are today same up there so s".split())
_ARITHMETIC = re.compile(r"^[\s\d().,]*\d\s*[+*/×÷^%][\s\d+\-*/×÷().,^%=?]*$")
_ABOUT_YOU = re.compile(
    r"\b(?:you|your|yours|yourself|tu|você|teu|seu|usted|du|dein\w*|toi|vous|votre)\b|你|您|あなた|君", re.IGNORECASE
)
_MOST_SMALL_TALK = 7
_LONGEST = 200
_GREETS = frozenset("hello hi hey thanks thank you good morning evening afternoon night".split())
_ASKS = (["what", "is"], ["what", "are"], ["how", "is"], ["is", "it"])
_UNSPACED_GREETING = re.compile(
    r"^\W*(?:你好|您好|早上好|晚上好|谢谢|謝謝|こんにちは|おはよう|ありがとう|好的|嗯|哈哈+)\W*$"
)


async def sources_there(store: Store | None, scope: Scope, query: Query, sources: Asked) -> list[str]:
    """The sources that can hold something of the wanted kinds: documents only when there
    are any."""
    wanted = set(query.kinds)
    names = [s.name for s in sources if not wanted or wanted & set(s.kinds)]
    if store is not None and "documents" in names:
        where = RecordFilter(kinds=("passage",), at=query.at, limit=1)
        if not await store.records(scope, where):
            names.remove("documents")
    return names


@dataclass(frozen=True, slots=True)
class AllPlanner:
    """Asks every source of the recipe that can hold something."""

    sources: Asked
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

    sources: Asked
    store: Store | None = None

    async def plan(self, scope: Scope, query: Query) -> Planned:
        """The plan; no model is called."""
        before = query.dialogue[-1][1] if query.dialogue and query.dialogue[-1][0] == "assistant" else ""
        if is_small_talk(query.text, before):
            return Planned((), "rules")
        names = await sources_there(self.store, scope, query, self.sources)
        if not _ABOUT_YOU.search(query.text):
            names = [n for n in names if n != "persona"]
        return Planned(tuple(steps_for(names, self.sources, query)), "rules")


def is_small_talk(text: str, before: str = "") -> bool:
    """Whether a message greets, thanks, takes leave, agrees or is bare arithmetic, and
    nothing else. After a question (``before``) an answer is no small talk."""
    if len(text) > _LONGEST:
        return False
    said = re.findall(r"[^\W_]+", text.lower())
    if not said or _ARITHMETIC.match(text) or is_goodbye(text) or _UNSPACED_GREETING.match(text):
        return not before.rstrip().endswith(("?", "？")) or not said or is_goodbye(text)
    if before.rstrip().endswith(("?", "？")) and not set(said) <= _GREETS:
        return False
    small = len(said) <= _MOST_SMALL_TALK and set(said) <= _SMALL_TALK
    return small and (len(said) == 1 or not set(said) <= _CARRIES) and said[:2] not in _ASKS


@dataclass(frozen=True, slots=True)
class ModelPlanner:
    """Asks a chat model; when its answer cannot be read, the rules decide."""

    caller: Caller
    sources: Asked
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


def _by_model(kit: Kit, asked: Asked) -> ModelPlanner | RulePlanner:
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
