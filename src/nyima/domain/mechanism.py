"""How an idea plugs in: a mechanism declares its writers, sources, judges and the rest in one
value, and nothing else names it. The registry holds the mechanisms and checks recipes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from nyima.domain.changes import Delta
from nyima.domain.conversation import Turn
from nyima.domain.evidence import Budget, Notes
from nyima.domain.recipe import Recipe
from nyima.domain.records import MemoryRecord
from nyima.domain.roles import Critic, Judge, Planner, Reader, Retriever, Selector, Written
from nyima.errors import ConfigError

__all__ = ["Mechanism", "Registry", "Source", "When", "Writer", "always"]

V = TypeVar("V")

_SECONDS = 5.0
_ROLES = ("retrievers", "planners", "judges", "selectors", "critics", "readers")


class When(StrEnum):
    """When a writer works."""

    NOW = "now"
    """In the transaction that stores the turn."""
    TURN = "turn"
    """In a job of each turn of the user."""
    SESSION_END = "session_end"
    """In a job of each session that ends."""
    CHANGE = "change"
    """In a job that another writer or a change asks for."""


def always(recipe: Recipe) -> bool:
    """Return True: every recipe owes the work."""
    del recipe
    return True


def _nothing(record: MemoryRecord) -> tuple[str, ...]:
    del record
    return ()


def _never(notes: Notes) -> bool:
    del notes
    return False


def _no_change(turns: Sequence[Turn], now: datetime) -> Delta:
    del turns, now
    return Delta()


@dataclass(frozen=True, slots=True)
class Writer:
    """Makes records of turns. ``name`` is the kind of its jobs.

    ``write(desk, scope, job)`` returns what the job makes (``nyima.write.desk.Desk``); a writer
    that works ``NOW`` gives ``at_once(turns, now)`` instead. ``owed`` says whether a turn or
    session owes the work under a recipe. ``makes`` is the name that its records have as their
    provenance (its own unless given). ``again`` names, for a record that goes because of an
    erase, the turns or sessions of which it would be made again: of turns all that are left
    get a job, of sessions the first in which the user's words are left. ``noted`` says whether
    what a model noted of a turn asks for its work; ``quick`` work takes a moment; work that
    ``waits`` is owed also while no model is at hand, and is done when there is one.
    """

    name: str
    when: When
    write: Callable[..., Awaitable[Written]] | None = None
    needs_model: bool = True
    owed: Callable[[Recipe], bool] = always
    makes: str = ""
    again: Callable[[MemoryRecord], tuple[str, ...]] = _nothing
    at_once: Callable[[Sequence[Turn], datetime], Delta] = _no_change
    noted: Callable[[Notes], bool] = _never
    quick: bool = False
    waits: bool = False

    def __post_init__(self) -> None:
        """Raise ConfigError for a writer of jobs that has no ``write``."""
        if self.write is None and self.when is not When.NOW:
            raise ConfigError(f"the writer {self.name!r} works in jobs: give write=…, or let it work at {When.NOW}")


@dataclass(frozen=True, slots=True)
class Source:
    """Something to look things up in: built in, or the user's own.

    ``about`` says what it holds, as planners and users read it. ``kinds`` are the kinds of
    records that it brings, ``after`` the sources that it depends on, ``k`` the most pieces.

    A source of the user's own has ``find``: it takes the question, and what the sources in
    ``after`` brought as a list of texts when it has a parameter ``given``; it returns a text,
    texts, or (text, score 0..1) pairs, and may be async. What it says is quoted, like a
    document. It is left out when it takes longer than ``seconds``.
    """

    name: str
    about: str
    find: Callable[..., Any] | None = None
    after: tuple[str, ...] = ()
    seconds: float = _SECONDS
    k: int = 3
    kinds: tuple[str, ...] = ()


Make = Callable[..., V]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One idea: what it writes, what it can be asked for, and which roles it can fill.

    Each maker of a role takes a ``nyima.read.kit.Kit``, which has the store, a model to ask,
    vectors and the recipe: ``retrievers`` (with the source's SourceSpec), ``planners`` (with
    the sources that a recipe asks), ``judges``, ``selectors`` (with the cut), ``critics`` and
    ``readers``. ``learns`` are the kinds of events that hold weights which were learned.
    """

    name: str
    about: str
    writers: tuple[Writer, ...] = ()
    sources: tuple[Source, ...] = ()
    retrievers: Mapping[str, Make[Retriever]] = field(default_factory=dict[str, Make[Retriever]])
    planners: Mapping[str, Make[Planner]] = field(default_factory=dict[str, Make[Planner]])
    judges: Mapping[str, Make[Judge]] = field(default_factory=dict[str, Make[Judge]])
    selectors: Mapping[str, Make[Selector]] = field(default_factory=dict[str, Make[Selector]])
    critics: Mapping[str, Make[Critic | None]] = field(default_factory=dict[str, Make[Critic | None]])
    readers: Mapping[str, Make[Reader]] = field(default_factory=dict[str, Make[Reader]])
    recipes: tuple[Recipe, ...] = ()
    learns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registry:
    """All mechanisms that are installed. Raises ConfigError when two of them give a recipe, a
    source, a job's writer or a role's filler of one name."""

    mechanisms: tuple[Mechanism, ...]

    def __post_init__(self) -> None:
        """Check that each name is given once."""
        given: dict[tuple[str, str], str] = {}
        for mechanism in self.mechanisms:
            names = [("mechanism", mechanism.name)]
            names += [("writer", writer.name) for writer in mechanism.writers]
            names += [("source", source.name) for source in mechanism.sources]
            names += [("recipe", recipe.name) for recipe in mechanism.recipes]
            names += [(role[:-1], name) for role in _ROLES for name in getattr(mechanism, role)]
            for what, name in names:
                if (what, name) in given:
                    raise ConfigError(
                        f"the {what} {name!r} is given twice, by {given[what, name]!r} and {mechanism.name!r}: rename one"
                    )
                given[what, name] = mechanism.name

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """Every recipe by its name."""
        return {recipe.name: recipe for mechanism in self.mechanisms for recipe in mechanism.recipes}

    @property
    def sources(self) -> Mapping[str, Source]:
        """Every built-in source by its name."""
        return {source.name: source for mechanism in self.mechanisms for source in mechanism.sources}

    @property
    def learns(self) -> tuple[str, ...]:
        """The kinds of events that hold weights which were learned."""
        return tuple(kind for mechanism in self.mechanisms for kind in mechanism.learns)

    def make(self, role: str, name: str) -> Make[Any]:
        """What makes the ``judges``, ``planners``, … of that name. Raises ConfigError with those
        that exist."""
        found: dict[str, Make[Any]] = {}
        for mechanism in self.mechanisms:
            found |= getattr(mechanism, role)
        if name not in found:
            raise ConfigError(f"{role}: there is no {name!r}: choose from {', '.join(sorted(found)) or 'none'}{_LAB}")
        return found[name]

    def writer(self, name: str) -> Writer:
        """The writer of a kind of job. Raises ConfigError for one that is not installed."""
        for writer in self._writers():
            if writer.name == name:
                return writer
        raise ConfigError(f"a job of kind {name!r} is owed that nothing installed can do{_LAB}")

    def writers(self, recipe: Recipe, *when: When) -> tuple[Writer, ...]:
        """The writers of a recipe that work then (at any time when no time is given)."""
        wanted = when or tuple(When)
        return tuple(
            writer
            for mechanism in self.mechanisms
            if mechanism.name in recipe.mechanisms
            for writer in mechanism.writers
            if writer.when in wanted and writer.owed(recipe)
        )

    def maker(self, record: MemoryRecord) -> Writer | None:
        """The writer that made a record; None where a person or an import did."""
        made = record.provenance.writer
        return next((w for w in self._writers() if (w.makes or w.name) == made), None)

    def without_model(self) -> tuple[str, ...]:
        """The kinds of jobs that need no chat model."""
        return tuple(w.name for w in self._writers() if not w.needs_model and w.write is not None)

    def quick(self) -> tuple[str, ...]:
        """The kinds of jobs that take a moment."""
        return tuple(w.name for w in self._writers() if w.quick)

    def _writers(self) -> Iterable[Writer]:
        return (writer for mechanism in self.mechanisms for writer in mechanism.writers)

    def recipe(self, name: str) -> Recipe:
        """The recipe of that name; ``name@k`` lets each source bring ``k`` pieces, and makes
        room for them. Raises ConfigError with the names that exist."""
        base, at, number = name.partition("@")
        known = self.recipes
        if base not in known or (at and not (number.isdecimal() and 0 < int(number) <= 100)):
            raise ConfigError(f"there is no recipe {name!r}: choose one of {', '.join(known)}, or name@k{_LAB}")
        recipe = known[base]
        if not number:
            return recipe
        sources = tuple(replace(source, k=int(number)) for source in recipe.sources)
        pieces, before = sum(s.k for s in sources), max(1, sum(s.k for s in recipe.sources))
        room = Budget(max(1, pieces), max(recipe.evidence.tokens, recipe.evidence.tokens * pieces // before))
        return replace(recipe, name=name, sources=sources, evidence=room)

    def check(self, recipe: Recipe) -> Recipe:
        """The recipe itself, when all that it names is installed. Raises ConfigError."""
        names = {mechanism.name for mechanism in self.mechanisms if mechanism.writers}
        for what, given, known in (
            ("writer", recipe.mechanisms, names),
            ("source", tuple(s.name for s in recipe.sources), {*self.sources}),
            ("system part", recipe.system, {"profile", "summary"}),
            ("gate", (recipe.gate,), {"off", "reply", "all"}),
        ):
            unknown = [name for name in given if name not in known]
            if unknown:
                raise ConfigError(
                    f"recipe {recipe.name!r}: there is no {what} {unknown[0]!r}: choose from {', '.join(sorted(known))}{_LAB}"
                )
        try:
            for source in recipe.sources:
                self.make("retrievers", source.how)
            for role, name in (("planners", recipe.planner), ("judges", recipe.judge), ("selectors", recipe.selector)):
                self.make(role, name)
            for role, name in (("critics", recipe.critic), ("readers", recipe.reader)):
                if name:
                    self.make(role, name)
        except ConfigError as error:
            raise ConfigError(f"recipe {recipe.name!r}: {error}") from None
        return recipe


_LAB = "; others come with the distribution that gives them, those of the papers with nyima-lab"
