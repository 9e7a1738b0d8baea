"""An export that comes back: as it was, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.domain.conversation import Role
from nyima.errors import InputError
from nyima.mechanisms.pins import pin, pinned
from nyima.memory import Memory, Said
from nyima.testing import FixedClock, HashEmbedder
from nyima.transfer.exports import export_lines
from nyima.transfer.restore import is_export, read_export, restore

HEAD = '{"nyima": 1, "user": "me"}'
SESSION: dict[str, Any] = {"id": "s", "started": "2026-03-02T09:00:00Z", "ended": None, "title": ""}
TURN: dict[str, Any] = {
    "id": "t", "session": "s", "position": 0, "role": "user", "text": "I like tea", "at": "2026-03-02T09:00:00Z",
    "origin": "user", "speaker": "",
}  # fmt: skip


def row(kind: str, **fields: Any) -> str:
    whole = {"session": SESSION, "turn": TURN}[kind]
    return json.dumps({kind: {**whole, **fields}})


@pytest.fixture
async def told(memory: Memory, clock: FixedClock) -> Memory:
    await memory.remember("My cat is called Luna")
    clock.forward(hours=1)
    await memory.remember([Said("I live in Porto"), Said("Nice!", Role.ASSISTANT)], session="s", title="Home\u2028town")
    await memory.drain()
    await memory.set("city", "Porto")
    clock.forward(hours=1)
    fact = await memory.set("city", "Braga")
    await pin(memory, fact.id)
    await memory.end_session("s")
    return memory


async def test_what_was_exported_comes_back_line_by_line(told: Memory, tmp_path: Path, clock: FixedClock) -> None:
    lines = await export_lines(told)
    async with Memory.open(tmp_path / "other.db", embedder=HashEmbedder(), clock=clock) as other:
        done = await restore(other, lines, "me.jsonl")
        assert await export_lines(other) == lines
        assert done == {"sessions": 2, "turns": 3, "skipped": 0, "new": 3, "ids": []}
        assert (await other.profile()).as_dict() == (await told.profile()).as_dict()
        assert [s.title for s in await other.sessions()] == ["", "Home\u2028town"]
        assert {"user city: Porto", "user city: Braga"} <= {r.text for r in await other.records(retired=True)}
        assert [r.text for r in await pinned(other)] == ["user city: Braga"]
        kept = (await other.recall("What is my cat called?")).kept
        assert any("Luna" in e.text for e in kept)


async def test_what_is_there_already_stays_as_it_is(told: Memory) -> None:
    lines = await export_lines(told)
    await told.remember("I play chess")
    before, revision = await export_lines(told), await told.store.revision(told.scope)
    assert (await restore(told, lines, "me.jsonl"))["new"] == 0
    assert await export_lines(told) == before
    assert await told.store.revision(told.scope) == revision, "nor is there anything to undo"


async def test_an_export_goes_to_whoever_brings_it_in(told: Memory, db: Path, clock: FixedClock) -> None:
    lines = await export_lines(told)
    async with Memory.open(db, user="tomas", embedder=HashEmbedder(), clock=clock) as other:
        await restore(other, lines, "me.jsonl")
        assert json.loads((await export_lines(other))[0]) == {"nyima": 1, "user": "tomas"}
        assert (await export_lines(other))[1:] == lines[1:]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[",
        "7",
        '"session"',
        '{"session": 7}',
        "[" * 100_000,
        row("session", started=None),
        row("session", started="soon"),
        row("session", id=7),
        row("session", title=None),
        row("turn", role="nobody"),
        row("turn", origin="heaven"),
        row("turn", text=None),
        row("turn", at=7),
        '{"turn": {"id": "t"}}',
        '{"record": {"id": "r", "kind": "dream"}}',
        '{"record": []}',
        '{"pin": 7}',
    ],
)
async def test_a_line_that_cannot_be_read_is_named_and_nothing_is_stored(memory: Memory, line: str) -> None:
    with pytest.raises(InputError, match=r"me\.jsonl, line 4: .*export it again"):
        await restore(memory, [HEAD, row("session"), row("turn"), line], "me.jsonl")
    assert (await memory.sessions(), await memory.turns()) == ([], [])


@pytest.mark.parametrize("started", ["2026-03-02T09:00:00", "0001-01-01T00:00:00+14:00"])
async def test_a_time_that_cannot_be_read_is_named_by_its_line(memory: Memory, started: str) -> None:
    with pytest.raises(InputError, match=r"me\.jsonl, line 2"):
        await restore(memory, [HEAD, row("session", started=started)], "me.jsonl")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([row("turn")], "session 's' of a turn is missing"),
        ([row("session"), row("turn", session="t")], "session 't' of a turn is missing"),
        ([row("session"), '{"pin": "r-1"}'], "the record 'r-1' of a pin is missing"),
    ],
)
async def test_what_is_named_must_be_there(memory: Memory, lines: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        await restore(memory, [HEAD, *lines], "me.jsonl")
    assert await memory.sessions() == []


async def test_lines_of_a_kind_that_is_not_known_are_passed_over(memory: Memory) -> None:
    done = await restore(memory, [HEAD, '{"dream": 1}', row("session"), row("turn")], "me.jsonl")
    assert (done["sessions"], done["new"]) == (1, 1)


async def test_a_text_cannot_smuggle_what_a_file_cannot_hold(memory: Memory) -> None:
    await restore(memory, [HEAD, row("session"), row("turn", text="a\x00b\ud800")], "me.jsonl")
    (turn,) = await memory.turns()
    assert turn.text.startswith("a\ufffdb\ufffd")
    assert turn.text.encode()


odd = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(str.strip)


@given(st.lists(odd, min_size=1, max_size=4))
async def test_odd_texts_are_one_line_each(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("odd")
    async with Memory.open(folder / "a.db", embedder="none", clock=FixedClock()) as memory:
        await memory.remember([Said(t) for t in texts], session="s")
        lines = await export_lines(memory)
        said = [t.text for t in await memory.turns()]
    data = ("\n".join(lines) + "\n").encode()
    assert read_export(data, "me.jsonl") == lines
    assert [json.loads(line)["turn"]["text"] for line in lines if '"turn"' in line[:8]] == said


def test_an_export_in_another_encoding_is_named() -> None:
    with pytest.raises(InputError, match=r"me\.jsonl is no UTF-8 text \(byte 3\): export it again"):
        read_export(b'{"a\xe9"}', "me.jsonl")


@pytest.mark.parametrize(
    ("make", "ours"),
    [
        (lambda p: p.write_text(HEAD), True),
        (lambda p: p.write_text('{"turn": 1}'), False),
        (lambda p: p.write_text(""), False),
        (lambda p: p.mkdir(), False),
        (lambda p: None, False),
    ],
)
def test_an_export_is_known_by_its_beginning(tmp_path: Path, make: Callable[[Path], object], ours: bool) -> None:
    make(tmp_path / "x")
    assert is_export(tmp_path / "x") is ours
