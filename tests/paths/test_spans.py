"""Spans by the GenAI memory conventions: made only where OpenTelemetry is in use."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from nyima.errors import NotFound
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory
from nyima.program import ProgramReply, ProgramRequest


class Recorder:
    """Stands for ``opentelemetry.trace``."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, dict[str, Any]]] = []

    def get_tracer(self, name: str) -> Recorder:
        assert name == "nyima"
        return self

    @contextlib.contextmanager
    def start_as_current_span(
        self, name: str, *, attributes: dict[str, Any], record_exception: bool, set_status_on_exception: bool
    ) -> Iterator[Any]:
        assert {record_exception, set_status_on_exception} == {False}, "an exception's text may hold what was said"
        self.spans.append((name, dict(attributes)))
        yield self

    def set_attribute(self, name: str, value: Any) -> None:
        self.spans[-1][1][name] = value


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    found = Recorder()
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", found)
    return found


@pytest.mark.req("serve.spans")
async def test_each_verb_is_a_span_without_content(memory: Memory, recorder: Recorder) -> None:
    stored = await memory.remember("My cat is called Nyima.")
    await memory.recall("What is my cat called?")
    note = next(id for id in stored.records if not id.startswith("e-"))
    await memory.revise(note, "The cat is called Luna.")
    await memory.forget(stored.records[0])
    with pytest.raises(NotFound):
        await memory.forget("none")
    assert [name for name, _ in recorder.spans] == [
        "create_memory",
        "search_memory",
        "update_memory",
        "delete_memory",
        "delete_memory",
    ]
    assert all(a["gen_ai.operation.name"] == name for name, a in recorder.spans)
    assert recorder.spans[1][1]["gen_ai.memory.record.count"] >= 1
    assert recorder.spans[-1][1]["error.type"] == "NotFound"
    assert "cat" not in str(recorder.spans), "neither what was asked nor who"


@pytest.mark.req("serve.spans")
async def test_replies_and_changes_by_hand_are_spans_too(memory: Memory, recorder: Recorder) -> None:
    exchange = await ProgramReply.begin(memory, ProgramRequest("My cat is called Nyima.", "s"))
    await exchange.close("What a fine name.")
    assert [name for name, _ in recorder.spans] == ["create_memory", "search_memory"]
    fact = await memory.set("city", "Porto")
    await memory.retire(fact.id)
    await memory.state(Statement("user", "lives in", "Porto"))
    assert [name for name, _ in recorder.spans][2:] == ["update_memory"] * 3
    assert "Porto" not in str(recorder.spans)


async def test_content_only_when_it_is_asked_for(memory: Memory, recorder: Recorder) -> None:
    memory.parts = replace(memory.parts, settings=replace(memory.parts.settings, capture_content=True))
    await memory.recall("What is my cat called?")
    assert recorder.spans[0][1]["gen_ai.memory.query.text"] == "What is my cat called?"


def test_nothing_is_imported_for_it() -> None:
    code = "import sys, nyima.memory; print('opentelemetry' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "False"
    )
