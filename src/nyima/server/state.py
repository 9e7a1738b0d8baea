"""What a route works with: the server's parts, and who calls."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from nyima.domain.conversation import Scope
from nyima.memory import Memory
from nyima.server.access.auth import Gate, needs
from nyima.server.access.keys import Key
from nyima.server.access.limits import RateLimits
from nyima.server.metrics import Metrics
from nyima.server.pool import Memories
from nyima.server.proxy.identity import header, scope_of
from nyima.server.proxy.routes import Proxy

__all__ = ["Principal", "Served", "caller", "reader", "served", "writer"]


@dataclass(frozen=True, slots=True)
class Served:
    """The server's parts. ``proxy`` is None without a chat model; ``running`` are replies that
    are still coming in."""

    memories: Memories
    gate: Gate
    limits: RateLimits
    metrics: Metrics
    proxy: Proxy | None
    running: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls: the key, and the memory that it opens."""

    served: Served
    key: Key
    scope: Scope

    @property
    def memory(self) -> Memory:
        """The memory of the user."""
        return self.served.memories.of(self.scope)

    @property
    def limits(self) -> RateLimits:
        """What keys have used."""
        return self.served.limits

    def owe(self) -> None:
        """Something was written: there may be work."""
        self.served.memories.owe(self.scope)

    async def drain(self) -> dict[str, int]:
        """Do the work that is due."""
        return await self.served.memories.drain(self.scope)


def served(request: Request) -> Served:
    """The parts of the server that got a request."""
    found = request.app.state.served
    assert isinstance(found, Served)
    return found


def caller(request: Request, *scopes: str) -> Principal:
    """Who calls, with these scopes. Raises Problem 403."""
    key: Key = request.state.key
    needs(key, scopes)
    whose = scope_of(key, header(request.headers, "x-nyima-user-id").strip())
    request.state.whose = whose  # for the audit
    return Principal(served(request), key, whose)


async def reader(request: Request) -> Principal:
    """A key that may read."""
    return caller(request, "read")


async def writer(request: Request) -> Principal:
    """A key that may read and write."""
    return caller(request, "read", "write")
