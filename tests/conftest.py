"""Fixtures for all tests. Only the loopback network can be reached."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings

from nyima.memory import Memory
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel

settings.register_profile("nyima", deadline=None)  # no test depends on the machine's speed
settings.load_profile("nyima")

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def _no_network(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: it sees every connection, whichever library makes it."""
    if event == "socket.connect":
        address = arguments[1]
        if isinstance(address, tuple) and address[0] not in _LOOPBACK:
            raise PermissionError(f"a test reached for the network: {address!r}")
    elif event == "socket.getaddrinfo" and arguments[0] not in {*_LOOPBACK, None, ""}:
        raise PermissionError(f"a test asked for the address of {arguments[0]!r}")


sys.addaudithook(_no_network)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "NYIMA_DB",
        "NYIMA_USER",
        "NYIMA_MODEL",
        "NYIMA_EMBEDDER",
        "NYIMA_CONFIG",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def memory(db: Path, clock: FixedClock, embedder: HashEmbedder) -> AsyncIterator[Memory]:
    async with Memory.open(db, embedder=embedder, clock=clock) as opened:
        yield opened


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--req", default=None, help="only the tests that prove this requirement")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--req")
    if wanted:
        items[:] = [i for i in items if any(wanted in mark.args for mark in i.iter_markers("req"))]
