"""An example of a store: it keeps everything in another store and counts what is committed."""

from __future__ import annotations

from collections import Counter
from typing import Any

from nyima.domain.changes import Delta
from nyima.domain.conversation import Scope
from nyima.testing import MemoryStore

__all__ = ["CountedStore"]


class CountedStore(MemoryStore):
    """A store without a file that knows how many changes each writer has committed."""

    def __init__(self) -> None:
        super().__init__()
        self.committed: Counter[str] = Counter()

    async def commit(self, scope: Scope, delta: Delta, **options: Any) -> int:
        """Commit, and count the changes when it went well."""
        revision = await super().commit(scope, delta, **options)
        self.committed[delta.by] += len(delta.changes)
        return revision
