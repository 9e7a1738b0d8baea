"""The blocking twins: every method of the async object, with its signature."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from nyima import Assistant, BlockingAssistant, BlockingMemory, Memory
from nyima.errors import InputError
from nyima.sync import Twin
from nyima.testing import ScriptedModel
from support import answer, companion

TWINS: list[tuple[type, type]] = [(Memory, BlockingMemory), (Assistant, BlockingAssistant)]
INNER = {
    # what a program reads from the async object (``inner``), and what only the async one can do
    Memory: {
        "open",
        "reading",
        "ingest",
        "clock",
        "embedder",
        "registry",
        "own_sources",
        "persona",
        "zone",
        "close",
        "recaller",
    },
    Assistant: {"open", "close"},
}
SET_WHEN_MADE = {Memory: {"scope"}, Assistant: {"recipe", "memory"}}


def public(of: type) -> dict[str, Any]:
    return {name: value for name, value in vars(of).items() if not name.startswith("_")}


@pytest.mark.parametrize(("original", "twin"), TWINS)
def test_a_twin_has_every_method_of_its_original(original: type, twin: type) -> None:
    assert (set(public(original)) - INNER[original]) | SET_WHEN_MADE[original] == set(public(twin))
    assert hasattr(twin, "close")


@pytest.mark.parametrize(("original", "twin"), TWINS)
def test_a_twins_methods_have_the_signatures_and_docstrings_of_the_original(original: type, twin: type) -> None:
    for name, method in public(twin).items():
        if not inspect.isfunction(method):
            continue
        ours, theirs = inspect.signature(method), inspect.signature(getattr(original, name))
        assert ours.parameters == theirs.parameters, name
        assert inspect.getdoc(method), name
        assert not inspect.iscoroutinefunction(inspect.unwrap(method)) or method.__wrapped__ is getattr(original, name)


def test_a_twin_blocks_until_the_work_is_done(db: Path) -> None:
    with Memory.open(db, embedder="none").sync as memory:
        memory.remember("My cat is called Nyima.")
        assert memory.recall("cat").kept[0].text.endswith("called Nyima.")


def test_an_error_of_the_original_comes_out_of_the_twin(db: Path) -> None:
    with Memory.open(db, embedder="none").sync as memory, pytest.raises(InputError, match="empty query"):
        memory.recall(" ")


def test_a_stream_has_its_answer_at_the_end_and_not_before(db: Path) -> None:
    with companion(db, ScriptedModel({"chat": [answer("one two three")]})).sync as nyima:
        stream = nyima.stream("count")
        with pytest.raises(InputError, match="not ended"):
            _ = stream.answer
        assert "".join(stream) == stream.answer.text == "one two three"
        assert [t.text for t in nyima.memory.turns()] == ["count", "one two three"]


def test_an_object_that_cannot_be_opened_leaves_no_thread(db: Path) -> None:
    import threading

    before = threading.active_count()

    async def start() -> Memory:
        raise InputError("no")

    with pytest.raises(InputError):
        Twin(start)
    assert threading.active_count() == before
