"""The local model's server takes one request a slot at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from nyima.domain.ports import READS_CLAIMS, Completion
from nyima.models.local import LocalChat


class Slots:
    """Stands for the server: notes which lanes overlap."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.together: set[tuple[str, ...]] = set()

    async def stream(self, messages: object, *, lane: str, **options: Any) -> AsyncIterator[str | Completion]:
        self.running.append(lane)
        self.together.add(tuple(sorted(self.running)))
        await asyncio.sleep(0.01)
        yield "x"
        await asyncio.sleep(0.01)
        self.running.remove(lane)
        yield Completion("x")


async def test_requests_for_one_slot_wait_for_each_other_and_other_lanes_do_not(tmp_path: Path) -> None:
    """Requests that wait inside llama.cpp's server for one slot got each other's answers."""
    local = LocalChat(tmp_path / "model.gguf", "local")
    slots = Slots()

    async def start() -> Any:
        return slots

    local.start = start  # type: ignore[method-assign]

    async def ask(lane: str) -> None:
        async for _ in local.stream([], max_tokens=1, lane=lane):
            pass

    await asyncio.gather(*(ask(lane) for lane in ("chat", "chat", "note", "gate", "summary", "fold", "chat")))
    assert all(lanes.count("chat") <= 1 for lanes in slots.together)
    assert not any({"note", "gate"} <= set(lanes) for lanes in slots.together)
    assert not any({"summary", "fold"} <= set(lanes) for lanes in slots.together)
    assert any({"chat", "note"} <= set(lanes) for lanes in slots.together)


@pytest.mark.parametrize("adapter", [None, Path("a.gguf")])
def test_a_model_with_an_adapter_is_trained_to_read_claims(tmp_path: Path, adapter: Path | None) -> None:
    local = LocalChat(tmp_path / "model.gguf", "local", adapter=adapter)
    assert local.trained == ({READS_CLAIMS} if adapter else set())
