"""Doubles and contracts that are proven here and may be used by anybody's tests.

No network, no weights: ``ScriptedModel`` answers from a script, ``HashEmbedder`` makes
vectors from words, ``FixedClock`` stands still, ``MemoryStore`` is the reference that
every store is compared with, and ``StoreContract`` is what every store must pass.
"""

from __future__ import annotations

from nyima.testing.dict_store import MemoryStore
from nyima.testing.doubles import FixedClock, HashEmbedder, Request, ScriptedModel

__all__ = ["FixedClock", "HashEmbedder", "MemoryStore", "Request", "ScriptedModel"]
