"""One bridge from synchronous code to the async objects: a loop in a thread.

``Memory.open(…)`` and ``Assistant.open(…)`` give an Opening. Use it with ``async with``,
or take its ``sync`` for an object with the same methods that block.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

__all__ = ["Opening", "Synchronous"]


class _Closes(Protocol):
    async def close(self) -> None: ...


T = TypeVar("T", bound=_Closes)
R = TypeVar("R")


class Opening(Generic[T]):
    """An object that is about to be opened: ``async with``, ``await`` or ``.sync``."""

    def __init__(self, start: Callable[[], Awaitable[T]]) -> None:
        self._start = start
        self._opened: T | None = None

    async def __aenter__(self) -> T:
        self._opened = await self._start()
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            await self._opened.close()

    def __await__(self) -> Generator[Any, None, T]:
        return self._start().__await__()

    @property
    def sync(self) -> Synchronous:
        """The same object with methods that block; close it, or use it with ``with``."""
        return Synchronous(self._start)


class Synchronous:
    """Runs the methods of an async object on a loop of its own, in a thread.

    Coroutines block until they are done, async iterators become iterators, everything
    else is passed on as it is.
    """

    def __init__(self, start: Callable[[], Awaitable[Any]]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nyima-loop", daemon=True)
        self._thread.start()
        self._object: Any = None
        try:
            self._object = self._run(_awaited(start()))
        finally:
            if self._object is None:
                self._stop()

    @property
    def inner(self) -> Any:
        """The async object itself; its coroutines go to ``wait`` or ``wrap``."""
        return self._object

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the object's loop, and block until it is done."""
        return self._run(work)

    async def wrap(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the object's loop, awaited from another one."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _run(self, work: Coroutine[Any, Any, R]) -> R:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            if not future.done():
                future.cancel()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._object, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            result = value(*args, **kwargs)
            if inspect.iscoroutine(result):
                return self._run(result)
            return self._iterate(result) if hasattr(result, "__aiter__") else result

        return call

    def _iterate(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self._run(_awaited(items.__anext__()))
                except StopAsyncIteration:
                    return
        finally:
            if isinstance(items, AsyncGenerator):
                self._run(_awaited(items.aclose()))

    def close(self) -> None:
        """Close the object and end the thread."""
        if not self._loop.is_closed():
            self._run(self._object.close())
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _awaited(work: Awaitable[R]) -> R:
    return await work
