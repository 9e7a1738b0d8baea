"""Stores by URL: ``sqlite:///me.db`` (or a path), others by entry point."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from nyima.domain.storage import Store
from nyima.errors import ConfigError

__all__ = ["GROUP", "open_store", "path_of"]

GROUP = "nyima.stores"
"""The entry points of stores: the scheme of a URL, and a function that opens such a URL."""
_SQLITE = "sqlite:///"


def path_of(where: str) -> Path | None:
    """Return the file that a path or a ``sqlite:///`` URL names; None for another URL."""
    if where.startswith(_SQLITE):
        return Path(where.removeprefix(_SQLITE)).expanduser()
    return None if "://" in where else Path(where).expanduser()


def open_store(where: str) -> Store:
    """Return the store at a path or URL. Raises StoreError, or ConfigError where nothing that is
    installed opens such a URL."""
    path = path_of(where)
    if path is not None:
        from nyima.stores.sqlite.store import SqliteStore

        return SqliteStore(path)
    scheme = where.partition("://")[0]
    points = {point.name: point for point in entry_points(group=GROUP)}
    if scheme not in points:
        known = ", ".join(["sqlite", *sorted(points)])
        raise ConfigError(f"nothing here opens {scheme}:// stores, only {known}: give a path, or install one that does")
    return cast("Store", points[scheme].load()(where))
