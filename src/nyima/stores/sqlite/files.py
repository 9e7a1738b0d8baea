"""The file behind the SQLite store: opening, migrating, erasing, scanning."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nyima.errors import ForeignStore, NewerStore, StoreError, StoreFull, StoreLocked, StoreReadOnly
from nyima.stores.encoding import MIGRATIONS, decode
from nyima.stores.sqlite import indexes

__all__ = ["compact", "erase", "open_file", "rebuild_text", "scan", "transaction", "translated"]

_APPLICATION = 0x4E59494D
_FEW_NEEDLES = 64
_WAIT_SECONDS = 15.0
_READ = "import shutil, sys; shutil.copyfileobj(open(sys.argv[1], 'rb'), sys.stdout.buffer)"


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """SQLite's errors as ours, with what to do."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise StoreLocked(f"{path} is held by another program: close it, or try again in a moment") from error
        if "readonly" in text or "unable to open" in text:
            raise StoreReadOnly(
                f"{path} cannot be written: check its permissions and its folder's and the room on its disk,"
                " or choose another file with --db"
            ) from error
        if "full" in text:
            raise StoreFull(f"the disk of {path} is full: free some space and run the command again") from error
        if "not a database" in text or "malformed" in text:
            raise ForeignStore(
                f"{path} is not a memory of Nyima, or it is damaged: choose another file with --db, or restore a copy"
            ) from error
        raise StoreError(f"{path}: {text}: run `nyima doctor` for a check of the file") from error


def open_file(path: Path) -> sqlite3.Connection:
    """Open or create the file with the settings that the promises rest on."""
    with translated(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.touch(0o600)
        except OSError as error:
            raise StoreReadOnly(f"{path} cannot be created: {error.strerror}: choose another file with --db") from error
        try:
            return _writable(path)
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or path.stat().st_size == 0:
                raise
            found = _readable(path)
            if found is None:
                raise
            return found


def _connected(place: str) -> sqlite3.Connection:
    return sqlite3.connect(
        place, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False, uri=place.startswith("file:")
    )


def _writable(path: Path) -> sqlite3.Connection:
    db = _connected(str(path))
    with ExitStack() as undo:
        undo.callback(db.close)
        _check(db, path)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
            db.execute(f"PRAGMA {pragma}")
        _migrate(db)
        undo.pop_all()
    return db


def _readable(path: Path) -> sqlite3.Connection | None:
    """The file for reading alone: on a medium that cannot be written, or a disk without any room
    for the files beside it. None where that fails too, or would leave out what stands in a log."""
    log = Path(f"{path}-wal")
    modes = ["mode=ro", *(["mode=ro&immutable=1"] if not log.exists() or log.stat().st_size == 0 else [])]
    for mode in modes:
        db = _connected(f"{path.absolute().as_uri()}?{mode}")
        try:
            _check(db, path)
            (version,) = db.execute("PRAGMA user_version").fetchone()
            db.execute("SELECT 1 FROM scopes LIMIT 1").fetchone()
        except sqlite3.Error:
            db.close()
            continue
        if version == len(MIGRATIONS):
            return db
        db.close()
    return None


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """A write transaction that is rolled back unless its end is reached."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _check(db: sqlite3.Connection, path: Path) -> None:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and application != _APPLICATION:
        raise ForeignStore(f"{path} is a database of another program: choose another file with --db")
    if version > len(MIGRATIONS):
        raise NewerStore(
            f"{path} has schema {version}, this Nyima knows {len(MIGRATIONS)}: install a newer Nyima to open it"
        )


def _migrate(db: sqlite3.Connection) -> None:
    if db.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS):
        return
    with transaction(db):
        (version,) = db.execute("PRAGMA user_version").fetchone()
        for number, step in enumerate(MIGRATIONS[version:], version + 1):
            step(db)
            db.execute(f"PRAGMA user_version = {number}")
        db.execute(f"PRAGMA application_id = {_APPLICATION}")


def erase(db: sqlite3.Connection, n: int, doomed: Sequence[tuple[str, str]]) -> None:
    """Delete records, turns, sessions and events, given as (id, what), with all rows that mention
    them; or everything of the scope. In one go: looking through journal and history for each
    of thousands would take as many times as long."""
    if any(what == "scope" for _, what in doomed):
        for table in ("sessions", "turns", "records", "vectors", "links", "changes", "jobs", "events", "event_refs"):
            db.execute(f"DELETE FROM {table} WHERE scope = ?", (n,))
        indexes.drop_text(db, n)
        indexes.ensure_text(db, n)
        return
    some = "IN (SELECT value FROM json_each(?))"
    sessions = [(n, id) for id, kind in doomed if kind == "session"]  # their names are the user's: any text
    db.executemany("DELETE FROM sessions WHERE scope = ? AND id = ?", sessions)
    turns = json.dumps([id for id, kind in doomed if kind == "turn"])
    db.execute(f"DELETE FROM turns WHERE scope = ? AND id {some}", (n, turns))
    records = json.dumps([id for id, kind in doomed if kind == "record"])
    rows = db.execute(f"SELECT n, kind FROM records WHERE scope = ? AND id {some}", (n, records)).fetchall()
    for row in rows:
        db.execute("DELETE FROM vectors WHERE n = ?", row[:1])
        indexes.remove_text(db, n, row[0], row[1])
        db.execute("DELETE FROM records WHERE n = ?", row[:1])
    ids = json.dumps([id for id, _ in doomed])
    for column in ("parent", "child"):
        db.execute(f"DELETE FROM links WHERE scope = ? AND {column} {some}", (n, ids))
    db.execute(f"DELETE FROM jobs WHERE scope = ? AND subject {some}", (n, ids))
    events = db.execute(
        f"SELECT n FROM event_refs WHERE scope = ? AND ref {some} UNION SELECT n FROM events WHERE scope = ? AND id {some}",
        (n, ids, n, ids),
    ).fetchall()
    numbers = json.dumps([number for (number,) in events])
    db.execute(f"DELETE FROM events WHERE n {some}", (numbers,))
    db.execute(f"DELETE FROM event_refs WHERE scope = ? AND n {some}", (n, numbers))
    for column in ("id", "successor"):
        db.execute(f"UPDATE changes SET reason = '' WHERE scope = ? AND {column} {some}", (n, ids))


def rebuild_text(db: sqlite3.Connection, n: int) -> int:
    """Make the scope's full-text rows again from its records; their number."""
    indexes.drop_text(db, n)
    indexes.ensure_text(db, n)
    rows = db.execute(
        "SELECT r.n, r.id, r.kind, r.valid_from, r.valid_to, r.rec_from, r.rec_to, r.stale, r.body"
        " FROM records r WHERE r.scope = ? ORDER BY r.n",
        (n,),
    ).fetchall()
    for row in rows:
        indexes.add_text(db, n, row[0], row[2], decode(row[1:]).text)
    return len(rows)


def compact(db: sqlite3.Connection) -> None:
    """Leave no erased byte behind: before SQLite 3.42 an FTS5 index keeps deleted words
    until it is rebuilt; free pages go with VACUUM, old pages with the log."""
    if sqlite3.sqlite_version_info < (3, 42):
        with transaction(db):
            for (n,) in db.execute("SELECT n FROM scopes").fetchall():
                rebuild_text(db, n)
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def scan(db: sqlite3.Connection, path: Path, others: int, needles: Sequence[str]) -> Mapping[str, int]:
    """Count the bytes of the needles in the store's files, but for those that users other than
    the one of this scope (by number) say too."""
    files = [
        file for file in (path, *(Path(f"{path}{tail}") for tail in ("-wal", "-shm", "-journal"))) if file.exists()
    ]
    sought = list(dict.fromkeys(needle for needle in needles if needle))
    found = 0
    for file in files:
        content = _content(file)
        if bytes_of(content, [n.encode() for n in sought]):
            left = [n for n in sought if n.encode() in content and not _said_elsewhere(db, others, n)]
            found += bytes_of(content, [n.encode() for n in left])
    return {"files_scanned": len(files), "bytes_found": found}


def _content(file: Path) -> bytes:
    """The bytes of a file, read by another process: a process that closes a file loses all its
    locks on it (POSIX), also those by which SQLite keeps other programs from taking away a log
    that is in use (sqlite.org/howtocorrupt.html, section 2.2)."""
    try:
        command = [sys.executable, "-I", "-S", "-c", _READ, str(file)]
        return subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise StoreError(f"it was erased, but {file} could not be searched for what is left: {error}") from error


def _said_elsewhere(db: sqlite3.Connection, scope: int, needle: str) -> bool:
    written = json.dumps(needle, ensure_ascii=False)[1:-1]
    return any(
        db.execute(f"SELECT 1 FROM {table} WHERE scope <> ? AND instr({column}, ?) LIMIT 1", (scope, text)).fetchone()
        for table, column, text in (
            ("turns", "text", needle), ("records", "body", written), ("events", "body", written), ("sessions", "id", needle), ("sessions", "title", needle),
        )
    )  # fmt: skip


def bytes_of(content: bytes, needles: Sequence[bytes]) -> int:
    """How many bytes of the needles are in a content. Many are looked for together: by a table of
    their first eight bytes, then whole where those fit; the time hardly depends on how many."""
    few = needles if len(needles) <= _FEW_NEEDLES else [n for n in needles if len(n) < 8]
    found = sum(content.count(needle) * len(needle) for needle in few)
    if few is needles:
        return found
    begin: dict[bytes, dict[int, set[bytes]]] = {}
    for needle in needles:
        if len(needle) >= 8:
            begin.setdefault(needle[:8], {}).setdefault(len(needle), set()).add(needle)
    table = np.zeros(1 << 20, np.bool_)
    table[_hashed(np.frombuffer(b"".join(begin), "<u8"))] = True
    for offset in range(min(8, len(content))):
        windows = np.frombuffer(memoryview(content)[offset : offset + (len(content) - offset) // 8 * 8], "<u8")
        for place in (np.flatnonzero(table[_hashed(windows)]) * 8 + offset).tolist():
            lengths = begin.get(content[place : place + 8], {})
            found += sum(n for n, whole in lengths.items() if content[place : place + n] in whole)
    return found


def _hashed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Twenty bits of each value (Fibonacci hashing)."""
    return (values * np.uint64(0x9E37_79B9_7F4A_7C15)) >> np.uint64(44)
