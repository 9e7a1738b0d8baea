"""A memory as mechanisms see it: what ``nyima.memory.Memory`` gives, without importing it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from nyima.change.cascade import Receipt
from nyima.domain.conversation import Scope, Turn
from nyima.domain.evidence import Budget, Recall
from nyima.domain.mechanism import Registry, Source
from nyima.domain.ports import Clock, Embedder
from nyima.domain.recipe import Recipe
from nyima.domain.records import MemoryRecord
from nyima.domain.storage import Store

__all__ = ["OpenMemory"]


class OpenMemory(Protocol):
    """An open memory of one user."""

    scope: Scope
    store: Store

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    @property
    def embedder(self) -> Embedder | None:
        """Makes vectors; None where there are none."""
        ...

    @property
    def recipe(self) -> Recipe:
        """The memory's recipe."""
        ...

    @property
    def registry(self) -> Registry:
        """The mechanisms that are installed."""
        ...

    @property
    def own_sources(self) -> tuple[Source, ...]:
        """The user's own sources."""
        ...

    @property
    def persona(self) -> str:
        """The assistant's persona."""
        ...

    async def record(self, id: str) -> MemoryRecord:
        """A record by its id."""
        ...

    async def records(
        self, *, kinds: Sequence[str] = (), as_of: datetime | None = None, retired: bool = False
    ) -> list[MemoryRecord]:
        """The records that are valid."""
        ...

    async def turns(self, session: str | None = None) -> list[Turn]:
        """The turns of a session, or all."""
        ...

    async def recall(
        self,
        query: str,
        budget: Budget | None = None,
        *,
        as_of: datetime | None = None,
        kinds: Sequence[str] = (),
        log: bool = True,
    ) -> Recall:
        """Return what the memory holds on a query."""
        ...

    async def forget(self, *ids: str) -> Receipt:
        """Erase records for good."""
        ...
