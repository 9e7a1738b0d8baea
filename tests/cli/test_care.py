"""The commands that look after models, indexes and settings."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.test_cli import Cli, cli  # noqa: F401 - a fixture
from nyima.errors import ModelRefused
from nyima.memory import Memory, Said
from nyima.models.packs import Pack, PackFile, packs
from nyima.testing import FixedClock, ScriptedModel
from support import openai_server
from wires import Wire, answered, wire

CONTENT = b"weights " * 500


@dataclass
class Hub:
    """A pack ``mine`` that a hub on loopback has."""

    wire: Wire
    cache: Path

    @property
    def files(self) -> list[Path]:
        return [p for p in self.cache.rglob("*") if p.is_file()]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("NYIMA_CACHE", str(tmp_path / "cache"))
    known = dict(packs())
    with wire(answered(CONTENT)) as server:
        sha = hashlib.sha256(CONTENT).hexdigest()
        file = PackFile("model.bin", len(CONTENT), sha, server.url.replace("/v1", "/model.bin"), (), "")
        packs()["mine"] = Pack("mine", "chat", "MIT", "for a test", (file,))
        yield Hub(server, tmp_path / "cache")
    packs().clear()
    packs().update(known)


def test_a_pack_is_pulled_listed_verified_and_removed(cli: Cli, hub: Hub) -> None:  # noqa: F811
    row = {"name": "mine", "role": "chat", "licence": "MIT", "bytes": len(CONTENT), "about": "for a test"}
    assert {**row, "present": False} in cli.json("models", "list")["models"]
    (path,) = cli.json("models", "pull", "mine")["files"].values()
    assert Path(path).read_bytes() == CONTENT
    assert {**row, "present": True} in cli.json("models", "list")["models"]
    assert "✓ mine" in cli("models", "list").stdout
    assert cli.json("models", "verify", "mine") == {"name": "mine", "damaged": []}
    assert "mine is as it should be" in cli("models", "verify", "mine").stdout
    assert cli.json("models", "remove", "mine") == {"name": "mine", "freed": len(CONTENT)}
    assert hub.files == []


def test_a_damaged_pack_is_named_with_the_command_that_mends_it(cli: Cli, hub: Hub) -> None:  # noqa: F811
    assert json.loads(cli("models", "verify", "mine", "--json", code=6).stdout)["damaged"] == ["model.bin"]
    cli("models", "pull", "mine")
    hub.files[0].write_bytes(b"x" * len(CONTENT))
    assert "run `nyima models pull mine`" in cli("models", "verify", "mine", code=6).stdout
    assert "mine is here" in cli("models", "pull", "mine").stdout
    cli("models", "verify", "mine")


def test_another_content_is_refused_with_its_own_code(cli: Cli, hub: Hub) -> None:  # noqa: F811
    hub.wire.answers[:] = [answered(b"y" * len(CONTENT))]
    assert "has another content" in cli("models", "pull", "mine", code=6).output
    assert not [f for f in hub.files if f.read_bytes()[:1] == b"y"]


@pytest.mark.parametrize("verb", ["pull", "verify", "remove"])
def test_an_unknown_pack_is_answered_with_those_that_exist(cli: Cli, verb: str) -> None:  # noqa: F811
    assert "there is no pack 'nothing': choose one of" in cli("models", verb, "nothing", code=3).output


def test_doctor_makes_no_file_and_finds_what_is_missing(cli: Cli, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("NYIMA_MODEL", "mine")
    told = cli("doctor", code=1).stdout
    assert "BAD  pack mine" in told
    assert "missing: run `nyima models pull mine`" in told
    assert "does not exist yet" in told
    assert not cli.db.exists()
    cli("models", "pull", "mine")
    assert cli.json("doctor")["ok"] is True


async def given_up(db: Path) -> None:
    """A memory whose one job has failed until it was given up."""
    clock, model = FixedClock(), ScriptedModel({"note": [ModelRefused("the model is on strike: ask later")]})
    async with Memory.open(db, recipe="conditional", model=model, embedder="none", clock=clock) as memory:
        await memory.remember([Said("I live in Moab with a parrot.")], session="s", owed=True)
        for _ in range(40):
            await memory.drain()
            clock.forward(days=1)
        assert [j.state for j in await memory.store.jobs(memory.scope, ("parked", "queued"))] == ["parked"]


def test_work_that_was_given_up_is_told_and_done_again(cli: Cli, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    asyncio.run(given_up(cli.db))
    monkeypatch.setenv("NYIMA_MODEL", "fake-model")
    told = cli("doctor", code=1).stdout
    assert "BAD  work owed" in told
    assert "1 jobs, 1 given up: " in told
    note = '{"remember": true, "facts": {}, "context": "", "knowledge": "The user lives in Moab."}'
    with openai_server(plan=[note]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert cli.json("work")["parked"] == 0
        assert len(server.requests) > 0
    assert "0 jobs, 0 given up" in cli("doctor").stdout


def test_reindexing_finds_again_what_was_found(cli: Cli) -> None:  # noqa: F811
    cli("remember", "My cat is called Luna")
    before = cli.json("recall", "cat")["kept"]
    assert cli.json("reindex", "--vectors")["records"] == len(cli.json("memories")["records"])
    assert cli.json("recall", "cat")["kept"] == before
    assert "records indexed, 0 embedded" in cli("reindex").stdout


def test_vectors_of_another_model_are_made_again_when_asked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    with openai_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("NYIMA_EMBEDDER", "one")
        cli("remember", "My cat is called Luna")
        cli("recall", "cat")
        monkeypatch.setenv("NYIMA_EMBEDDER", "two")
        assert "nyima reindex --vectors" in cli("recall", "cat", code=5).output
        assert cli.json("reindex", "--vectors")["embedded"] > 0
        assert cli.json("recall", "cat")["kept"]


def test_work_says_what_it_did(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    with openai_server(plan=["{}"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert cli("work").stdout == "0 done, 0 waiting, 0 parked\n"


def test_without_a_chat_model_work_says_how_to_get_one(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("NYIMA_MODEL", "none")
    assert "0 done" in cli("work").output, "no model is needed for nothing"
    with Memory.open(cli.db, embedder="none").sync as memory:
        memory.remember([Said("My cat is called Nyima.")], owed=True)
    assert "set NYIMA_MODEL" in cli("work", code=4).output


def test_settings_are_shown_with_and_without_their_origin(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    plain, rows = cli.json("config", "show", "--user", "ana"), cli.json("config", "show", "--origin", "--user", "ana")
    assert plain == {name: row["value"] for name, row in rows.items()}
    assert rows["user"] == {"value": "ana", "origin": "argument"}
    assert rows["api_key"] == {"value": "set", "origin": "OPENAI_API_KEY"}
    shown = cli("config", "show", "--user", "ana").stdout
    assert "ana\n" in shown
    assert "(argument)" not in shown
    assert "(argument)" in cli("config", "show", "--origin", "--user", "ana").stdout
