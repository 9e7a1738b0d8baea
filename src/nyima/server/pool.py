"""The memories that a server has open: one store and one model for all, a Memory a user."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import replace

from nyima.app.services import Services
from nyima.assistant import Assistant
from nyima.domain.conversation import Scope
from nyima.memory import Memory

__all__ = ["Memories"]

_log = logging.getLogger(__name__)
_MOST_OPEN = 500
_IDLE_SECONDS = 1.5
_ROUND_SECONDS = 60.0
_MOST_SCOPES = 200


class Memories:
    """Opens memories by scope, ends what fell silent, and does what turns owe when nobody
    waits for a reply."""

    def __init__(self, parts: Services, *, idle: float = _IDLE_SECONDS) -> None:
        self.parts = parts
        self.idle = idle
        self._open: OrderedDict[Scope, Memory] = OrderedDict()
        self._due: dict[Scope, float] = {}
        self._busy: Counter[Scope] = Counter()
        self._worker: asyncio.Task[None] | None = None

    def of(self, scope: Scope) -> Memory:
        """The memory of a user. Nothing is written until something is remembered."""
        memory = self._open.pop(scope, None)
        if memory is None:
            memory = Memory(replace(self.parts, scope=scope))
        self._open[scope] = memory
        while len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        return memory

    def assistant(self, scope: Scope, *, private: bool = False) -> Assistant:
        """A companion over a memory. In a private chat nothing is written."""
        return Assistant(self.of(scope), private=private, works=False)

    @contextlib.contextmanager
    def talking(self, scope: Scope) -> Iterator[None]:
        """While it lasts the worker leaves the scope alone; afterwards it has work."""
        self._busy[scope] += 1
        try:
            yield
        finally:
            self._busy[scope] -= 1
            self._due[scope] = asyncio.get_running_loop().time() + self.idle

    def owe(self, scope: Scope) -> None:
        """Something was written for a scope: there may be work."""
        self._due[scope] = asyncio.get_running_loop().time() + self.idle

    async def start(self) -> None:
        """Take up the work that an earlier run left, and go on in the background."""
        await self._look()
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _look(self) -> None:
        """Find the scopes with work that is due, and those with a session that fell silent."""
        now = self.parts.clock.now()
        scopes = await self.parts.store.due(now, _MOST_SCOPES)
        scopes += [scope for scope, _ in await self.parts.store.silent(now - self.parts.silence, _MOST_SCOPES)]
        for scope in scopes:
            self._due.setdefault(scope, 0.0)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        rounds = loop.time()
        while True:
            await asyncio.sleep(min(0.2, self.idle or 0.01))
            try:
                if loop.time() - rounds > _ROUND_SECONDS:
                    rounds = loop.time()
                    await self._look()
                ready = next((s for s, at in self._due.items() if at <= loop.time() and not self._busy[s]), None)
                if ready is not None:
                    del self._due[ready]
                    await self.drain(ready)
            except Exception as error:
                _log.warning("work is put off", extra={"error": f"{type(error).__name__}: {error}"[:300]})

    async def drain(self, scope: Scope) -> dict[str, int]:
        """End what fell silent, and do all work of a scope that is due."""
        memory = self.of(scope)
        await memory.ingest.end_silent(scope, memory.recipe)
        return dict(await memory.drain())

    async def close(self) -> None:
        """Stop working and close store and models."""
        if self._worker is not None:
            self._worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._worker
        await Memory(self.parts).close()
