"""Search over one SQLite file: FTS5 for words, an exact scan in numpy for vectors.

A scope is one user, so its matrix is small: it stays in memory, takes in new rows as
they come, and is read again when a record of the scope was closed or erased.
"""

from __future__ import annotations

import sqlite3

import numpy as np
from numpy.typing import NDArray

from nyima.adapters.schema import from_micros, micros
from nyima.domain.ports import Hit, Probe
from nyima.domain.text import content_words, segment

__all__ = ["Matrices", "add_text", "drop_text", "ensure_text", "search_words"]

_MOST_WORDS = 64
_FOREVER = 2**62


def _table(scope: int) -> str:
    return f"fts_{scope:d}"


def ensure_text(db: sqlite3.Connection, scope: int) -> None:
    """Make the scope's full-text table; one a scope, so that no statistics are shared."""
    name = _table(scope)
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone():
        return
    db.execute(f"CREATE VIRTUAL TABLE {name} USING fts5(x, tokenize='porter unicode61 remove_diacritics 2')")
    if sqlite3.sqlite_version_info >= (3, 42):
        db.execute(f"INSERT INTO {name}({name}, rank) VALUES ('secure-delete', 1)")


def add_text(db: sqlite3.Connection, scope: int, n: int, text: str) -> None:
    """Index a text under the row number of its record."""
    db.execute(f"INSERT INTO {_table(scope)}(rowid, x) VALUES (?, ?)", (n, segment(text)))


def drop_text(db: sqlite3.Connection, scope: int) -> None:
    """Drop the scope's full-text table."""
    db.execute(f"DROP TABLE IF EXISTS {_table(scope)}")


def _match(words: str) -> str:
    return " OR ".join(f'"{term}"' for term in content_words(words)[:_MOST_WORDS])


def _conditions(probe: Probe) -> tuple[str, list[object]]:
    """SQL over ``r`` for the probe's filters."""
    parts: list[str] = []
    values: list[object] = []
    if probe.kinds:
        parts.append(f"r.kind IN ({','.join('?' * len(probe.kinds))})")
        values += probe.kinds
    if probe.as_of is not None:
        moment = micros(probe.as_of)
        parts.append("r.valid_from <= ? AND ifnull(r.valid_to, ?) > ? AND ifnull(r.rec_to, ?) > ?")
        values += [moment, _FOREVER, moment, _FOREVER, moment]
    else:
        parts.append("r.rec_to IS NULL")
        if probe.at is not None:
            parts.append("ifnull(r.valid_to, ?) > ?")
            values += [_FOREVER, micros(probe.at)]
    if probe.not_session is not None:
        parts.append("r.session <> ?")
        values.append(probe.not_session)
    return " AND ".join(parts), values


def search_words(db: sqlite3.Connection, scope: int, probe: Probe) -> list[Hit]:
    """BM25 over the scope's full-text rows; any of the words may match."""
    match = _match(probe.words)
    if not match:
        return []
    table = _table(scope)
    where, values = _conditions(probe)
    rows = db.execute(
        f"SELECT r.id, -bm25({table}) AS score, r.kind, r.session, r.position, r.valid_from"
        f" FROM {table} JOIN records r ON r.n = {table}.rowid"
        f" WHERE {table} MATCH ? AND {where} ORDER BY score DESC, r.id LIMIT ?",
        (match, *values, probe.k),
    )
    return [_hit(row) for row in rows]


def _hit(row: tuple[str, float, str, str, int, int]) -> Hit:
    id, score, kind, session, position, since = row
    moment = from_micros(since)
    assert moment is not None
    return Hit(id, score, kind, session, position, moment)


_Row = tuple[int, str, str, str, int, int, int | None, int | None]


class _Matrix:
    """The vectors of one scope with what the filters need, in arrays that double."""

    def __init__(self, closed: int, width: int) -> None:
        self.closed = closed
        self.last = 0
        self.used = 0
        self.rows: list[_Row] = []
        self.codes: dict[str, int] = {}
        self.vectors = np.zeros((0, width), np.float32)
        self.times = np.zeros((3, 0), np.int64)
        self.kinds = np.zeros(0, np.int32)
        self.sessions = np.zeros(0, np.int32)

    def code(self, name: str) -> int:
        return self.codes.setdefault(name, len(self.codes))

    def grow(self, rows: list[_Row], vectors: NDArray[np.float32]) -> None:
        need = self.used + len(rows)
        if need > len(self.vectors):
            more = max(need, 2 * len(self.vectors), 256) - len(self.vectors)
            self.vectors = np.concatenate([self.vectors, np.zeros((more, vectors.shape[1]), np.float32)])
            self.times = np.concatenate([self.times, np.zeros((3, more), np.int64)], axis=1)
            self.kinds = np.concatenate([self.kinds, np.zeros(more, np.int32)])
            self.sessions = np.concatenate([self.sessions, np.zeros(more, np.int32)])
        new = slice(self.used, need)
        self.vectors[new] = vectors
        self.times[0, new] = [r[5] for r in rows]
        self.times[1, new] = [_FOREVER if r[6] is None else r[6] for r in rows]
        self.times[2, new] = [_FOREVER if r[7] is None else r[7] for r in rows]
        self.kinds[new] = [self.code("kind " + r[2]) for r in rows]
        self.sessions[new] = [self.code("session " + r[3]) for r in rows]
        self.rows += rows
        self.used = need
        self.last = rows[-1][0]

    def allowed(self, probe: Probe) -> NDArray[np.bool_]:
        since, until, retired = (row[: self.used] for row in self.times)
        if probe.as_of is not None:
            moment = micros(probe.as_of) or 0
            mask = (since <= moment) & (until > moment) & (retired > moment)
        else:
            mask = retired == _FOREVER
            if probe.at is not None:
                mask &= until > (micros(probe.at) or 0)
        if probe.kinds:
            kinds = [self.kinds[: self.used] == self.code("kind " + k) for k in probe.kinds]
            mask &= np.logical_or.reduce(kinds)
        if probe.not_session is not None:
            mask &= self.sessions[: self.used] != self.code("session " + probe.not_session)
        return mask


class Matrices:
    """The vectors of each scope, kept between searches."""

    def __init__(self) -> None:
        self._held: dict[int, _Matrix] = {}

    def drop(self, scope: int) -> None:
        """Forget one scope's matrix."""
        self._held.pop(scope, None)

    def _current(self, db: sqlite3.Connection, scope: int) -> _Matrix | None:
        (closed,) = db.execute("SELECT closed FROM scopes WHERE n = ?", (scope,)).fetchone()
        held = self._held.get(scope)
        if held is not None and held.closed != closed:
            held = None
        rows = db.execute(
            "SELECT r.n, r.id, r.kind, r.session, r.position, r.valid_from, r.valid_to, r.rec_to, v.v"
            " FROM vectors v JOIN records r ON r.n = v.n WHERE v.scope = ? AND v.n > ? ORDER BY v.n",
            (scope, held.last if held else 0),
        ).fetchall()
        if rows:
            vectors = np.frombuffer(b"".join(row[8] for row in rows), "<f4").reshape(len(rows), -1)
            held = held or _Matrix(closed, vectors.shape[1])
            held.grow([row[:8] for row in rows], vectors)
        if held is None:
            self._held.pop(scope, None)
        else:
            self._held[scope] = held
        return held

    def search(self, db: sqlite3.Connection, scope: int, probe: Probe) -> list[Hit]:
        """The ``k`` nearest by cosine."""
        held = self._current(db, scope)
        if held is None or probe.vector is None:
            return []
        cosines = held.vectors[: held.used] @ np.frombuffer(probe.vector, "<f4")
        cosines = np.where(held.allowed(probe), cosines, -np.inf)
        top = np.arange(held.used)
        if probe.k < held.used:
            least = np.partition(cosines, held.used - probe.k)[held.used - probe.k]
            top = np.flatnonzero(cosines >= least)  # ties at the cut are settled by id
        top = top[np.isfinite(cosines[top])]
        rows = held.rows
        found = [
            _hit((rows[i][1], score, rows[i][2], rows[i][3], rows[i][4], rows[i][5]))
            for i, score in zip(top.tolist(), cosines[top].tolist(), strict=True)
        ]
        return sorted(found, key=lambda h: (-h.score, h.id))[: probe.k]
