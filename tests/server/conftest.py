"""A server on loopback with a scripted upstream."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from nyima.domain.conversation import Scope, Turn
from nyima.domain.records import MemoryRecord
from nyima.memory import Memory
from nyima.models.openai import Endpoint, OpenAIChat
from nyima.testing import HashEmbedder
from nyima.testing.upstream import StubUpstream, serving

pytest.importorskip("fastapi", reason="the extra server is not installed")

from nyima.app.opening import parts_for
from nyima.server.access.keys import KeyRing
from nyima.server.application import Serving, application
from nyima.server.uvicorn_settings import SETTINGS

NOTES = "\n<nyima-notes>\nremember: yes\n{facts}\n</nyima-notes>"


@dataclass
class Desk:
    """The server under test, and what stands behind it."""

    url: str
    stub: StubUpstream
    ring: KeyRing
    db: Path
    secret: str
    app: Any

    def client(self, secret: str | None = None, **headers: str) -> httpx2.Client:
        given = {"authorization": f"Bearer {self.secret if secret is None else secret}", **headers}
        return httpx2.Client(base_url=self.url, headers=given, timeout=120.0)

    def key(self, user: str, scopes: str = "read,write", tenant: str = "local", **limits: int) -> str:
        return self.ring.make(user, Scope(tenant=tenant, user=user), scopes.split(","), **limits)[1]

    def ask(self, text: str, *, secret: str | None = None, headers: dict[str, str] | None = None, **more: Any) -> Any:
        body = {"model": "stub", "messages": [{"role": "user", "content": text}], **more}
        with self.client(secret) as client:
            return client.post("/v1/chat/completions", json=body, headers=headers)

    def look(self, work: Callable[[Memory], Any], user: str = "me", tenant: str = "local") -> Any:
        """Look into the file from beside the server."""

        async def run() -> Any:
            async with Memory.open(self.db, user=user, embedder="none") as memory:
                memory.scope = Scope(tenant=tenant, user=user)
                return await work(memory)

        with ThreadPoolExecutor(1) as pool:  # a browser under test has a loop of its own
            return pool.submit(lambda: asyncio.run(run())).result()

    def turns(self, user: str = "me") -> list[Turn]:
        return list(self.look(lambda m: m.turns(), user))

    def records(self, *kinds: str, user: str = "me") -> list[MemoryRecord]:
        return list(self.look(lambda m: m.records(kinds=kinds), user))


@contextmanager
def _collected_after() -> Iterator[None]:
    """Keep the garbage until the threads of the test have ended.

    Client, server and upstream each have an event loop in a thread of their own. When a program leaves
    async generators behind, as after an answer that broke off, the collector may run in one thread and
    finalize a generator that another thread is just closing; CPython 3.11 then reports "async generator
    already executing". A server of its own has one loop.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
        gc.collect()


@contextmanager
def desk_at(
    folder: Path, stub: StubUpstream | None = None, settings: dict[str, Any] | None = None, **how: Any
) -> Iterator[Desk]:
    stub = stub or StubUpstream()
    db = folder / "memory.db"
    ring = KeyRing(folder / "keys.json")
    _, secret = ring.make("tests", Scope(), ["read", "write"], requests=0)
    with _collected_after(), serving(stub) as behind:
        chat = OpenAIChat("stub", Endpoint(f"{behind}/v1", "upstream-secret", retries=0))
        parts = parts_for(db, "me", None, chat, HashEmbedder(), None)
        app = application(parts, ring, Serving(idle=how.pop("idle", 30.0), **how))
        with serving(app, **{**SETTINGS, "timeout_graceful_shutdown": 2, **(settings or {})}) as url:
            yield Desk(url, stub, ring, db, secret, app)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path) as found:
        yield found


def chunks(text: str) -> list[dict[str, Any]]:
    """The JSON events of a stream; it must end with [DONE]."""
    lines = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]", lines[-1:]
    return [json.loads(line) for line in lines[:-1]]


def said(text: str) -> str:
    return "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks(text) if c["choices"])
