"""Vectors: those of records that have none yet, and that of the question."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from nyima.domain.conversation import Scope
from nyima.domain.ports import Embedder, Vector
from nyima.domain.storage import AskEmbedder, AskUnindexed, Store
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
    done = 0
    while most is None or done < most:
        known, records = await asyncio.gather(
            store.standing(scope, AskEmbedder()), store.standing(scope, AskUnindexed(_BATCH))
        )
        if known is not None and known != embedder.name:
            raise EmbedderMismatch(
                f"the memory holds vectors of {known!r}, not of {embedder.name!r}:"
                " use that model, or run `nyima reindex --vectors` to embed everything again"
            )
        if not records:
            break
        vectors = await embedder.embed([record.text for record in records])
        await store.index(scope, {r.id: v for r, v in zip(records, vectors, strict=True)}, embedder.name)
        done += len(records)
        if len(records) < _BATCH:
            break
    return done


@dataclass(slots=True)
class QueryEmbedder:
    """Embeds a query once, however many sources ask; remembers why it could not."""

    embedder: Embedder | None
    ms: float = 0.0
    failed: str = ""
    _last: tuple[str, asyncio.Task[Vector | None]] | None = None

    async def __call__(self, text: str) -> Vector | None:
        if self.embedder is None or self.failed:
            return None
        if self._last is None or self._last[0] != text:
            self._last = text, asyncio.get_running_loop().create_task(self._embed(self.embedder, text))
        # Sources that ask at the same time get the vector at the same time, and search together.
        return await asyncio.shield(self._last[1])

    async def _embed(self, embedder: Embedder, text: str) -> Vector | None:
        started = time.perf_counter()
        try:
            (vector,) = await embedder.embed([text])
        except ModelError as error:
            self.failed = str(error)
            return None
        self.ms += (time.perf_counter() - started) * 1_000
        return vector
