"""What the makers of roles work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nyima.domain.mechanism import Source
from nyima.domain.ports import Vector
from nyima.domain.recipe import Recipe
from nyima.domain.storage import Store
from nyima.read.calls import Caller
from nyima.read.embedding import QueryEmbedder

__all__ = ["Embed", "Kit"]

Embed = Callable[[Sequence[str]], Awaitable[list[Vector]]]
"""Texts to unit vectors, one a text."""


@dataclass(frozen=True, slots=True)
class Kit:
    """What a retriever, planner, judge, selector, critic or reader may be made of.

    ``caller`` asks the chat model (None without one), ``vectors`` embeds the question once,
    ``embed`` any texts. ``kinds`` are the kinds of records of each built-in source.
    ``learned`` are the weights that were learned, by their kind of event. ``shared`` holds
    what is loaded once for all memories of a process.
    """

    store: Store
    recipe: Recipe
    caller: Caller | None
    vectors: QueryEmbedder
    embed: Embed | None
    trained: Callable[[str], Path]
    persona: str = ""
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    sources: tuple[Source, ...] = ()
    learned: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    shared: dict[str, Any] = field(default_factory=dict[str, Any])

    def loaded(self, name: str, make: Callable[[], Any]) -> Any:
        """What is held under this name, made at first use."""
        if name not in self.shared:
            self.shared[name] = make()
        return self.shared[name]
