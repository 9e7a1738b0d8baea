"""Blocking twins of the async objects, typed: each runs its object on a loop in a thread.

``Memory.open(…)`` and ``Assistant.open(…)`` give an Opening. Use it with ``async with`` or
``await``, or take its ``sync``: a twin with the same methods, which block.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeAlias, TypeVar

__all__ = ["LoopThread", "Opening", "Start", "Twin", "blocking", "iterating"]


class _Closes(Protocol):
    async def close(self) -> None: ...


T = TypeVar("T", bound=_Closes)
B = TypeVar("B")
P = ParamSpec("P")
R = TypeVar("R")

Start: TypeAlias = Callable[[], Awaitable[T]]
"""Opens the object; it is called on the loop that the object will live on."""


class Opening(Generic[T, B]):
    """An object that is about to be opened: ``async with``, ``await`` or ``.sync``."""

    def __init__(self, start: Start[T], twin: Callable[[Start[T]], B]) -> None:
        self._start = start
        self._twin = twin
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
    def sync(self) -> B:
        """The same object with methods that block; close it, or use it with ``with``."""
        return self._twin(self._start)


class LoopThread:
    """An event loop that runs in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nyima-loop", daemon=True)
        self._thread.start()

    @property
    def stopped(self) -> bool:
        """Return whether the thread has ended."""
        return self._loop.is_closed()

    def submit(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Begin a coroutine on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


class Twin(Generic[T]):
    """Runs an async object (``inner``) on a loop in a thread of its own, or on the loop of the
    twin that it stands ``beside`` (to close it then does nothing)."""

    def __init__(self, start: Start[T], beside: Twin[Any] | None = None) -> None:
        self._owns = beside is None
        self.loop: LoopThread = LoopThread() if beside is None else beside.loop
        with ExitStack() as undo:
            if self._owns:
                undo.callback(self.loop.stop)
            self.inner: T = self.wait(_awaited(start()))
            undo.pop_all()

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the object's loop, and block until it is done."""
        future = self.loop.submit(work)
        try:
            return future.result()
        finally:
            if not future.done():
                future.cancel()

    async def wrap(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the object's loop, awaited from another one."""
        return await asyncio.wrap_future(self.loop.submit(work))

    def iterate(self, items: AsyncIterator[R]) -> Generator[R, None, None]:
        """The items of an async iterator, one by one; it is closed when nobody reads on."""
        try:
            while True:
                try:
                    yield self.wait(_awaited(anext(items)))
                except StopAsyncIteration:
                    return
        finally:
            closing = getattr(items, "aclose", None)
            if closing is not None:
                self.wait(_awaited(closing()))

    def close(self) -> None:
        """Close the object and end the thread."""
        if self._owns and not self.loop.stopped:
            self.wait(self.inner.close())
            self.loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def blocking(
    method: Callable[Concatenate[T, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Twin[T], P], R]:
    """Return a twin's method that runs an async method and blocks until it is done."""

    @functools.wraps(method)
    def call(twin: Twin[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return twin.wait(method(twin.inner, *args, **kwargs))

    return call


def iterating(
    method: Callable[Concatenate[T, P], AsyncIterator[R]],
) -> Callable[Concatenate[Twin[T], P], Iterator[R]]:
    """Return a twin's method that gives the items of an async iterator, one by one."""

    @functools.wraps(method)
    def call(twin: Twin[T], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        return twin.iterate(method(twin.inner, *args, **kwargs))

    return call


async def _awaited(work: Awaitable[R]) -> R:
    return await work
