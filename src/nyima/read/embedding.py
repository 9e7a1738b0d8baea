"""Vectors: those of records that have none yet, and that of the question."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from nyima.domain.conversation import Scope
from nyima.domain.ports import Embedder, Vector
from nyima.domain.storage import Store
from nyima.errors import EmbedderMismatch, ModelError

__all__ = ["QueryEmbedder", "index_pending"]

_BATCH = 64
_INDEXING: WeakKeyDictionary[Store, dict[tuple[int, Scope], asyncio.Lock]] = WeakKeyDictionary()


async def index_pending(store: Store, embedder: Embedder, scope: Scope, most: int | None = None) -> int:
    """Make the vectors that are missing, in batches; how many were made.

    One caller at a time works on a scope, the others wait and then find nothing to do: else
    each of many recalls after an import would embed everything. Raises EmbedderMismatch when
    the vectors that are there come from another model.
    """
    here = (id(asyncio.get_running_loop()), scope)
    async with _INDEXING.setdefault(store, {}).setdefault(here, asyncio.Lock()):
        return await _index(store, embedder, scope, most)


async def _index(store: Store, embedder: Embedder, scope: Scope, most: int | None) -> int:
    known = await store.embedder(scope)
    if known is not None and known != embedder.name:
        raise EmbedderMismatch(
            f"the memory holds vectors of {known!r}, not of {embedder.name!r}:"
            " use that model, or run `nyima reindex --vectors` to embed everything again"
        )
    done = 0
    while most is None or done < most:
        records = await store.unindexed(scope, _BATCH)
        if not records:
            break
        vectors = await embedder.embed([record.text for record in records])
        await store.index(scope, {r.id: v for r, v in zip(records, vectors, strict=True)}, embedder.name)
        done += len(records)
    return done


@dataclass(slots=True)
class QueryEmbedder:
    """Embeds a query once, however many sources ask; remembers why it could not."""

    embedder: Embedder | None
    ms: float = 0.0
    failed: str = ""
    _last: tuple[str, Vector] | None = None
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self, text: str) -> Vector | None:
        async with self._one:  # sources ask at the same time
            if self.embedder is None or self.failed:
                return None
            if self._last is None or self._last[0] != text:
                started = time.perf_counter()
                try:
                    (vector,) = await self.embedder.embed([text])
                except ModelError as error:
                    self.failed = str(error)
                    return None
                self.ms += (time.perf_counter() - started) * 1_000
                self._last = (text, vector)
            return self._last[1]
