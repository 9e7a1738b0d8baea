"""Anthropic's memory tool: files that Claude writes, and paths that lead nowhere else."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.memory import Memory
from nyima.testing import FixedClock

pytest.importorskip("anthropic")
from anthropic.lib.tools import ToolError

from nyima.frameworks.anthropic_memory import NyimaMemoryTool, _path


class Claude:
    """Calls the tool as the runner does."""

    def __init__(self, tool: NyimaMemoryTool) -> None:
        self.tool = tool

    async def __call__(self, command: str, **given: Any) -> str:
        return str(await self.tool.call({"command": command, **given}))

    async def fails(self, words: str, command: str, **given: Any) -> None:
        with pytest.raises(ToolError, match=words):
            await self(command, **given)


@pytest.fixture
async def claude(db: Path) -> AsyncIterator[Claude]:
    opened = await asyncio.to_thread(lambda: Memory.open(db, embedder="none", clock=FixedClock()).sync)
    yield Claude(NyimaMemoryTool(opened))
    await asyncio.to_thread(opened.close)


@pytest.mark.parametrize(
    ("given_path", "found"),
    [
        ("/memories", "/memories"),
        ("/memories/", "/memories"),
        ("/memories/a/../b", "/memories/b"),
        ("/memories/./a//b", "/memories/a/b"),
        ("/memories/a%20b", "/memories/a b"),
    ],
)
def test_a_path_is_made_plain(given_path: str, found: str) -> None:
    assert _path(given_path) == found


@given(st.lists(st.sampled_from(["memories", "..", ".", "a", "%2e%2e", "%2f", "memoriesX", ""]), max_size=6))
def test_no_path_leaves_the_folder(parts: list[str]) -> None:
    try:
        found = _path("/" + "/".join(parts))
    except ToolError:
        return
    assert found == posixpath.normpath(found)
    assert (found + "/").startswith("/memories/")


async def test_an_empty_folder_can_be_looked_at(claude: Claude) -> None:
    assert (await claude("view", path="/memories")).endswith("\n0\t/memories")


async def test_a_folder_lists_what_is_below_it_with_sizes(claude: Claude) -> None:
    for path, text in (("a/one.md", "Füße"), ("a/two.md", "xy"), ("ab.md", "z")):
        await claude("create", path=f"/memories/{path}", file_text=text)
    assert (await claude("view", path="/memories/a")).split("\n")[1:] == [
        "8\t/memories/a", "6\t/memories/a/one.md", "2\t/memories/a/two.md",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("view_range", "lines"),
    [(None, "abc"), ([2, 3], "bc"), ([2, -1], "bc"), ([1, 1], "a"), ([3, 99], "c"), ([9, 9], "")],
)
async def test_lines_are_numbered_as_in_the_file(claude: Claude, view_range: list[int] | None, lines: str) -> None:
    await claude("create", path="/memories/x", file_text="a\nb\nc")
    shown = await claude("view", path="/memories/x", **({"view_range": view_range} if view_range else {}))
    rows = shown.split("\n")[1:]
    assert [row.partition("\t")[2] for row in rows if row] == list(lines)
    assert [int(row.partition("\t")[0]) for row in rows if row] == ["abc".index(c) + 1 for c in lines]


async def test_a_text_that_stands_twice_is_not_replaced(claude: Claude) -> None:
    await claude("create", path="/memories/x", file_text="tea and tea")
    await claude.fails(
        "Multiple occurrences of old_str `tea`", "str_replace", path="/memories/x", old_str="tea", new_str="x"
    )
    await claude.fails("did not appear verbatim", "str_replace", path="/memories/x", old_str="Tea", new_str="x")
    await claude("str_replace", path="/memories/x", old_str=" and tea", new_str="")
    assert (await claude("view", path="/memories/x")).endswith("\ttea")


@pytest.mark.parametrize(("line", "text"), [(0, "new\na\nb"), (1, "a\nnew\nb"), (2, "a\nb\nnew")])
async def test_lines_are_inserted_behind_a_line(claude: Claude, line: int, text: str) -> None:
    await claude("create", path="/memories/x", file_text="a\nb")
    await claude("insert", path="/memories/x", insert_line=line, insert_text="new\n")
    (passage,) = await claude.tool._shelf.all()
    assert passage.body == text


async def test_a_line_that_is_not_there_takes_nothing(claude: Claude) -> None:
    await claude("create", path="/memories/x", file_text="a\nb")
    for line in (-1, 3):
        await claude.fails(
            r"should be within \[0, 2\]", "insert", path="/memories/x", insert_line=line, insert_text="n"
        )
    await claude.fails("does not exist", "insert", path="/memories/y", insert_line=0, insert_text="n")


async def test_a_folder_moves_with_all_that_is_below_it(claude: Claude) -> None:
    for name in ("a/one", "a/b/two", "ab"):
        await claude("create", path=f"/memories/{name}", file_text=name)
    await claude("rename", old_path="/memories/a", new_path="/memories/c")
    held = {p.document.removeprefix("anthropic:"): p.body for p in await claude.tool._shelf.all()}
    assert held == {"/memories/c/one": "a/one", "/memories/c/b/two": "a/b/two", "/memories/ab": "ab"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("/memories/a", "/memories/b", "/memories/b already exists"),
        ("/memories/a", "/memories/a/b", "already exists"),
        ("/memories/a", "/memories/d", "/memories/d already exists"),
        ("/memories/none", "/memories/x", "/memories/none does not exist"),
        ("/memories", "/memories/x", "Cannot rename the /memories directory"),
        ("/memories/a", "/memories/", "Cannot rename the /memories directory"),
        ("/memories/a", "/memories/../x", "would escape"),
    ],
)
async def test_a_name_that_is_taken_or_outside_is_refused(claude: Claude, old: str, new: str, words: str) -> None:
    for name in ("a", "b", "d/e"):
        await claude("create", path=f"/memories/{name}", file_text=name)
    await claude.fails(words, "rename", old_path=old, new_path=new)
    assert sorted(p.body for p in await claude.tool._shelf.all()) == ["a", "b", "d/e"]


async def test_only_what_is_below_a_folder_goes_with_it(claude: Claude) -> None:
    for name in ("a/one", "a/b", "ab"):
        await claude("create", path=f"/memories/{name}", file_text=name)
    await claude("delete", path="/memories/a")
    assert [p.body for p in await claude.tool._shelf.all()] == ["ab"]
