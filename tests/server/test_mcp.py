"""The MCP server: in memory, over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytest.importorskip("fastapi", reason="the extra server is not installed")

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from nyima.memory import Memory
from nyima.server.mcp import mcp_server, one_memory

from .conftest import Desk, desk  # noqa: F401 - a fixture

TOOLS = {
    "add_memory", "search_memories", "get_memory", "list_memories", "update_memory", "delete_memory", "get_profile", "confirm_claim",
    "search", "fetch",
}  # fmt: skip


async def call(client: Client, name: str, **given: Any) -> Any:
    done = await client.call_tool(name, given)
    assert not done.is_error, done.content
    return done.structured_content


@pytest.mark.req("serve.mcp")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_adds_finds_changes_and_forgets(memory: Memory, mode: str) -> None:
    async with Client(mcp_server(one_memory(memory)), mode=mode) as client:  # type: ignore[arg-type]
        tools = {t.name: t for t in (await client.list_tools()).tools}
        assert tools.keys() == TOOLS
        assert tools["delete_memory"].annotations.destructive_hint  # type: ignore[union-attr]
        assert tools["search_memories"].annotations.read_only_hint  # type: ignore[union-attr]
        assert "user" not in str([t.input_schema.get("properties") for t in tools.values()]), "nobody can name a user"
        stored = await call(client, "add_memory", text="My cat is called Nyima.")
        found = await call(client, "search_memories", query="What is my cat called?")
        assert "Nyima" in found["memories"][0]["text"]
        note = next(id for id in stored["ids"] if not id.startswith("e-"))
        await call(client, "update_memory", id=note, text="The cat is called Luna.")
        listed = (await call(client, "list_memories", kind="note"))["memories"]
        assert [m["text"] for m in listed] == ["The cat is called Luna."]
        origins = await call(client, "get_memory", id=listed[0]["id"])
        assert origins["earlier"] == ["My cat is called Nyima."]
        await memory.set("location", "Porto")
        assert await call(client, "get_profile") == {"profile": {"location": "Porto"}}
        read = await client.read_resource("memory://profile")
        assert json.loads(read.contents[0].text) == {"location": "Porto"}  # type: ignore[union-attr]
        assert (await call(client, "update_memory", id=listed[0]["id"], text="The cat is called Luna."))[
            "id"
        ] == listed[0]["id"]
        persona = await call(client, "search_memories", query="Are you a warm and curious companion, Nyima?")
        assert not [m for m in persona["memories"] if m["source"] == "persona"]
        cut = listed[0]["id"][:12]
        for name, more in (("delete_memory", {}), ("update_memory", {"text": "x"})):
            assert (await client.call_tool(name, {"id": cut, **more})).is_error, "a part of an id changes nothing"
        receipt = await call(client, "delete_memory", id=listed[0]["id"])
        assert receipt["bytes_found"] == 0
        left = (await call(client, "search_memories", query="cat"))["memories"]
        assert not [m for m in left if "cat" in m["text"]]


@pytest.mark.req("serve.mcp")
async def test_search_and_fetch_have_the_shape_of_connectors(memory: Memory) -> None:
    await memory.remember("My cat is called Nyima.")
    async with Client(mcp_server(one_memory(memory))) as client:
        done = await client.call_tool("search", {"query": "cat"})
        assert len(done.content) == 1
        (first, *_) = json.loads(done.content[0].text)["results"]  # type: ignore[union-attr]
        assert set(first) == {"id", "title", "url"}
        whole = json.loads((await client.call_tool("fetch", {"id": first["id"]})).content[0].text)  # type: ignore[union-attr]
        assert set(whole) == {"id", "title", "text", "url", "metadata"}


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("get_memory", {"id": "n-none"}, "'n-none'"), ("search_memories", {"query": ""}, "at least 1 character"),
        ("search_memories", {"query": "x", "limit": 10**9}, "less than or equal to 100"), ("list_memories", {"kind": "king"}, "'king'"),
        ("update_memory", {"id": "x" * 500, "text": "y"}, "at most 200 characters"), ("delete_memory", {"id": "none"}, "'none'"),
        ("update_memory", {"id": "e-none", "text": "y"}, "'e-none'"),
    ],
)  # fmt: skip
async def test_what_cannot_be_done_is_an_error_that_the_model_reads(
    memory: Memory, name: str, given: dict[str, Any], says: str
) -> None:
    async with Client(mcp_server(one_memory(memory))) as client:
        done = await client.call_tool(name, given)
        assert done.is_error
        assert says in done.content[0].text  # type: ignore[union-attr]


async def test_over_standard_input_and_output(tmp_path: Path) -> None:
    env = {**os.environ, "NYIMA_DB": str(tmp_path / "m.db"), "NYIMA_EMBEDDER": "none"}
    server = StdioServerParameters(command=sys.executable, args=["-m", "nyima", "mcp"], env=env)
    async with Client(stdio_client(server)) as client:
        await call(client, "add_memory", text="I live in Porto.")
        found = await call(client, "search_memories", query="Where do I live?")
    assert "Porto" in found["memories"][0]["text"]


async def test_over_http_with_the_memory_of_the_key(desk: Desk) -> None:  # noqa: F811 - a fixture
    karen = desk.key("karen")
    for secret, text in ((desk.secret, "I live in Porto."), (karen, "I live in Lund.")):
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {secret}"}) as http,
            Client(streamable_http_client(f"{desk.url}/mcp", http_client=http)) as client,
        ):
            await call(client, "add_memory", text=text)
            found = await call(client, "search_memories", query="Where do I live?")
            assert {m["text"].removeprefix("User: ") for m in found["memories"]} == {text}
    reading = desk.key("karen", "read")
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {reading}"}) as http,
        Client(streamable_http_client(f"{desk.url}/mcp", http_client=http)) as client,
    ):
        refused = await client.call_tool("add_memory", {"text": "x"})
        assert refused.is_error
        assert "lacks the scope write" in refused.content[0].text  # type: ignore[union-attr]
    await asyncio.sleep(0)
