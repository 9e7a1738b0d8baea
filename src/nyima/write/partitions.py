"""Partitions: the claims of a subclass, with the mean of their vectors as the centre
(Wang et al. 2024, section 4.2). An edit looks into the nearest one first."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from nyima.domain.conversation import Scope
from nyima.domain.ports import Probe, RecordFilter, Vector
from nyima.domain.records import Claim, partition
from nyima.domain.storage import Store
from nyima.language.subclasses import SUBCLASSES, Subclass, subclass_of
from nyima.read.kit import Embed

__all__ = ["Embed", "Partitions", "floats"]

_PRIOR = 1 / 3


def floats(vector: Vector) -> NDArray[np.float32]:
    """A packed vector as an array."""
    return np.frombuffer(vector, "<f4")


@dataclass(slots=True)
class Partitions:
    """Where a memory belongs and what stands near it. Without an embedder, words decide."""

    store: Store
    scope: Scope
    at: datetime
    embed: Embed | None = None
    subclasses: tuple[Subclass, ...] = SUBCLASSES
    priors: dict[str, NDArray[np.float32]] = field(default_factory=dict[str, NDArray[np.float32]])
    _seen: dict[str, Vector] = field(default_factory=dict[str, Vector])

    async def _vector(self, text: str) -> Vector | None:
        if self.embed is None:
            return None
        if text not in self._seen:
            (self._seen[text],) = await self.embed([text])
        return self._seen[text]

    async def prior(self) -> dict[str, NDArray[np.float32]]:
        """The centres before anything was remembered: the means of the examples."""
        if not self.priors and self.embed is not None:
            texts = [e for s in self.subclasses for e in s.examples]
            vectors = iter(await self.embed(texts))
            for subclass in self.subclasses:
                self.priors[subclass.name] = np.mean([floats(next(vectors)) for _ in subclass.examples], axis=0)
        return self.priors

    async def centres(self) -> dict[str, NDArray[np.float32]]:
        """The centre of each subclass: two thirds the mean of its memories, one third of its
        examples, so that a first odd memory does not carry it away."""
        found = await self.store.centres(self.scope)
        centres: dict[str, NDArray[np.float32]] = {}
        for name, prior in (await self.prior()).items():
            own = found.get(partition(name))
            centres[name] = prior if own is None else prior * _PRIOR + floats(own) * (1 - _PRIOR)
        return centres

    async def of(self, text: str) -> str:
        """The subclass of a claim: the nearest by meaning; by the words of the examples where there are
        no vectors."""
        vector = await self._vector(text)
        if vector is None:
            return subclass_of(text, self.subclasses)
        query = floats(vector)
        scores = {n: float(c @ query) / max(1e-6, float(np.linalg.norm(c))) for n, c in (await self.centres()).items()}
        return max(scores, key=lambda name: (scores[name], name))

    async def nearest(self, text: str, subclass: str | None, k: int) -> list[Claim]:
        """Memories near a text: of one partition, or of all by words and by meaning."""
        region = partition(subclass) if subclass is not None else None
        ids: list[str] = []
        vector = await self._vector(text)
        if vector is not None:
            probe = Probe(vector=vector, kinds=("claim",), k=k, at=self.at, regions=(region,) if region else ())
            ids += [h.id for h in await self.store.search(self.scope, probe)]
        if vector is None or region is None:
            probe = Probe(words=text, kinds=("claim",), k=2 * k, at=self.at, regions=(region,) if region else ())
            ids += [h.id for h in await self.store.search(self.scope, probe)]
        if not ids:
            return []
        found = {r.id: r for r in await self.store.records(self.scope, RecordFilter(ids=tuple(ids)))}
        ordered = (found[i] for i in dict.fromkeys(ids) if i in found)
        return [r for r in ordered if isinstance(r, Claim)]
