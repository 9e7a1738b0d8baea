"""A real MCP server over standard input and output as a source."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from nyima import Memory, Source
from nyima.app.mcp_source import mcp_function
from nyima.app.sources_file import Declared
from nyima.errors import ConfigError

pytest.importorskip("mcp", reason="the extra mcp is not installed")

SERVER = '''
import asyncio
from mcp.server import MCPServer

server = MCPServer("shelf")

@server.tool()
def look_up(query: str, shelf: int = 1) -> str:
    """Look something up."""
    return f"on shelf {shelf}: {query}"

@server.tool()
def count(number: int) -> int:
    """No text."""
    return number

@server.tool()
def broken(query: str) -> str:
    """Raises."""
    raise RuntimeError("out of order")

server.run()
'''


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    path = tmp_path / "server.py"
    path.write_text(SERVER, "utf-8")
    return [sys.executable, str(path)]


async def test_a_tool_is_asked_with_the_question(command: list[str], memory: Memory) -> None:
    assert await mcp_function(command, "look_up")("atlas") == ["on shelf 1: atlas"]
    memory.use(Source("shelf", "books", mcp_function(command, "look_up"), seconds=30))
    found = await memory.recall("atlas")
    assert [e.text for e in found.kept if e.source == "shelf"] == ["on shelf 1: atlas"]


async def test_what_is_wrong_with_it_is_said(command: list[str], memory: Memory) -> None:
    for tool, problem in (("none", "no tool 'none'"), ("count", "takes no text"), ("broken", "failed")):
        memory.parts = replace(memory.parts, sources=())
        memory.use(Source("shelf", "", mcp_function(command, tool), seconds=30))
        assert problem in (await memory.recall("atlas")).failed["shelf"], tool
    with pytest.raises(ConfigError, match="needs the command"):
        mcp_function([], "x")
    with pytest.raises(ConfigError, match="needs --tool"):
        Declared("a", mcp="server").source()
    with pytest.raises(ConfigError, match="needs one of"):
        Declared("a").source()
