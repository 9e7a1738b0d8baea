"""Stores by URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from nyima import Memory, load_settings
from nyima.app import stores
from nyima.app.stores import open_store
from nyima.domain.storage import Batched
from nyima.errors import ConfigError
from nyima.stores.sqlite.store import SqliteStore
from nyima.testing import MemoryStore


class Point:
    """An entry point of another distribution."""

    name = "shelf"

    def load(self) -> type:
        class Shelf(MemoryStore):
            def __init__(self, url: str) -> None:
                super().__init__()
                self.url = url

        return Shelf


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
async def test_a_file_is_named_by_its_path_or_its_url(form: str, db: Path) -> None:
    async with Memory.open(form.format(db), embedder="none") as memory:
        await memory.remember("My cat is called Nyima.")
        assert isinstance(memory.store, Batched)
        assert isinstance(memory.store.inner, SqliteStore)
        assert memory.store.inner.path == db
    assert db.exists()


def test_a_url_in_the_settings_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NYIMA_DB", "shelf://home/me")
    settings = load_settings()
    assert settings.store == "shelf://home/me"
    assert settings.origin["store"] == "NYIMA_DB"
    assert settings.db.suffix == ".db"


def test_a_scheme_that_nothing_opens_is_named_with_those_that_something_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "entry_points", lambda group: [Point()] if group == "nyima.stores" else [])
    with pytest.raises(ConfigError, match="opens other:// stores, only sqlite, shelf"):
        open_store("other://x")


async def test_another_distribution_opens_its_own_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "entry_points", lambda group: [Point()] if group == "nyima.stores" else [])
    async with Memory.open("shelf://home/me", embedder="none") as memory:
        assert isinstance(memory.store, Batched)
        assert getattr(memory.store.inner, "url", "") == "shelf://home/me"
        await memory.remember("My cat is called Nyima.")
        assert "My cat is called Nyima." in (await memory.recall("cat")).kept[0].text


def test_the_password_in_a_url_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NYIMA_DB", "postgres://me:secret@host/db")
    settings = load_settings()
    assert settings.shown()["store"] == "postgres://…@host/db"
    assert "secret" not in repr(settings)
