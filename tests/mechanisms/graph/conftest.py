"""A small graph for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory
from nyima.testing import FixedClock

STATED = (
    Statement("user", "sister", "Ida"),
    Statement("Ida", "lives in", "Porto"),
    Statement("Porto", "located in", "Portugal"),
    Statement("user", "drives", "Skoda"),
    Statement("user's office", "located in", "Sintra"),
)


@pytest.fixture
async def graph(db: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    async with Memory.open(db, recipe="graph", embedder="none", clock=clock) as memory:
        for said in STATED:
            await memory.state(said)
            clock.forward(minutes=1)
        yield memory
