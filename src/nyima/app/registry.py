"""The mechanisms that are installed: the built-in ones, and others by entry point."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points

from nyima.domain.mechanism import Mechanism, Registry
from nyima.errors import ConfigError

__all__ = ["recipe_named", "registry"]

from nyima.domain.recipe import Recipe

_BUILT_IN = (
    "nyima.read.recall",
    "nyima.read.plan",
    "nyima.read.judge",
    "nyima.read.critics",
    "nyima.read.reader",
    "nyima.mechanisms.history",
    "nyima.mechanisms.reading",
    "nyima.mechanisms.graph.walk",
    "nyima.mechanisms.conditional",
    "nyima.mechanisms.summaries",
    "nyima.mechanisms.persona",
    "nyima.mechanisms.documents.shelf",
    "nyima.app.recipes",
)
_BROKEN = "the mechanism {!r} ({}) cannot be loaded: {}: mend or uninstall the distribution that names it"


@cache
def registry() -> Registry:
    """All mechanisms. A module gives one as ``MECHANISM``, or several as ``MECHANISMS``; other
    distributions name theirs under the entry point ``nyima.mechanisms``. Raises ConfigError for
    one that cannot be loaded, and for a recipe that names what is not installed."""
    found: list[Mechanism] = []
    for name in _BUILT_IN:
        module = importlib.import_module(name)
        found += getattr(module, "MECHANISMS", ()) or (module.MECHANISM,)
    for point in sorted(entry_points(group="nyima.mechanisms"), key=lambda p: p.name):
        try:
            given = point.load()
            many = [given] if isinstance(given, Mechanism) else list(given)
        except Exception as error:  # somebody else's module: it may raise anything
            raise ConfigError(_BROKEN.format(point.name, point.value, f"{type(error).__name__}: {error}")) from error
        if not many or not all(isinstance(one, Mechanism) for one in many):
            raise ConfigError(_BROKEN.format(point.name, point.value, f"it is {given!r:.80}, and no Mechanism"))
        found += many
    made = Registry(tuple(found))
    for recipe in made.recipes.values():
        made.check(recipe)
    return made


def recipe_named(name: str) -> Recipe:
    """The recipe of that name (see ``Registry.recipe``)."""
    return registry().recipe(name)
