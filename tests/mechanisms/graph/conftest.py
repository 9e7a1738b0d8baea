"""A small graph for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nyima.mechanisms.by_hand import Link
from nyima.memory import Memory
from nyima.testing import FixedClock

LINKS = (
    Link("user", "sister", "Ida", "The user's sister is Ida."),
    Link("Ida", "lives_in", "Porto", "Ida lives in Porto."),
    Link("Porto", "located_in", "Portugal", "Porto is in Portugal."),
    Link("user", "drives", "Skoda", "The user drives a Skoda."),
    Link("user's office", "located_in", "Sintra", "The user's office is in Sintra."),
)


@pytest.fixture
async def graph(db: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    async with Memory.open(db, recipe="graph", embedder="none", clock=clock) as memory:
        for link in LINKS:
            await memory.relate(link)
            clock.forward(minutes=1)
        yield memory
