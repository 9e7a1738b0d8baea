"""Bad files give a clear error with what to do, and are left as they were."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from nyima.domain.changes import Add, Delta
from nyima.errors import ForeignStore, NewerStore, StoreError, StoreFull, StoreLocked, StoreReadOnly
from nyima.stores.sqlite.files import translated
from nyima.stores.sqlite.store import SqliteStore
from nyima.testing.contract import ME, SESSION, note, turn


def test_a_text_file_is_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello " * 1000)
    with pytest.raises(ForeignStore, match="--db"):
        SqliteStore(path)
    assert path.read_text() == "hello " * 1000


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(ForeignStore, match="another program"):
        SqliteStore(path)
    assert path.read_bytes() == before


async def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    await SqliteStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(NewerStore, match="newer Nyima"):
        SqliteStore(path)


def test_a_folder_that_is_a_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreReadOnly, match="--db"):
        SqliteStore(tmp_path / "file" / "memory.db")


async def test_a_damaged_file_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    store = SqliteStore(path)
    await store.append(ME, SESSION, [turn(f"t{i}", "words " * 200) for i in range(50)])
    await store.close()
    content = bytearray(path.read_bytes())
    content[4096:20000] = b"\xff" * (20000 - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreError):
        store = SqliteStore(path)
        try:
            await store.turns(ME)
        finally:
            await store.close()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("database is locked", StoreLocked),
        ("attempt to write a readonly database", StoreReadOnly),
        ("database or disk is full", StoreFull),
        ("file is not a database", ForeignStore),
        ("database disk image is malformed", ForeignStore),
        ("disk I/O error", StoreError),
    ],
)
def test_sqlites_errors_become_ours(text: str, kind: type[StoreError]) -> None:
    with pytest.raises(kind, match="memory.db"), translated(Path("memory.db")):
        raise sqlite3.OperationalError(text)


async def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "small.db")
    await store.append(ME, SESSION, [turn("t0", "kept")])
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreFull, match="free some space"):
        for i in range(1, 50):
            await store.append(
                ME, SESSION, [turn(f"t{i}", "words " * 2000)], delta=Delta((Add(note(f"n{i}", "x" * 5000)),))
            )
    stored = {t.id for t in await store.turns(ME)}
    assert "t0" in stored
    store._db.execute("PRAGMA max_page_count = 100000")
    await store.append(ME, SESSION, [turn("later")])
    assert await store.check() == "ok"
    await store.close()


async def test_erased_words_leave_the_file_also_on_old_sqlite(tmp_path: Path) -> None:
    from nyima.domain.changes import Erase

    store = SqliteStore(tmp_path / "erase.db")
    secrets = [f"zebrafish{i}" for i in range(20)]
    for i, secret in enumerate(secrets):
        delta = Delta((Add(note(f"n{i}", f"{secret} and more words {i}")),))
        await store.append(ME, SESSION, [turn(f"t{i}", f"I said {secret}")], delta=delta)
    changes = [Erase(f"n{i}") for i in range(10)] + [Erase(f"t{i}", "turn") for i in range(10)]
    await store.commit(ME, Delta(tuple(changes)))
    report = await store.scrub(ME, secrets[:10])
    await store.close()
    content = b"".join(p.read_bytes() for p in tmp_path.iterdir())
    # zebrafish1 is a part of zebrafish10 to 19, which stay
    assert [s for s in secrets[:10] if s != "zebrafish1" and s.encode() in content] == []
    assert all(s.encode() in content for s in secrets[10:])
    assert report["files_scanned"] >= 1
