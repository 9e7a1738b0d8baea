"""Search over one SQLite file: FTS5 for words, an exact scan in numpy for vectors.

A scope is one user, so its matrix is small: it stays in memory, takes in new rows as
they come, follows what is closed, and is read again when something was erased.
"""

from __future__ import annotations

import bisect
import json
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nyima.domain.ports import Hit, Probe
from nyima.language.words import content_words, fold, segment
from nyima.stores.encoding import from_micros, micros

__all__ = ["Matrices", "add_text", "drop_text", "ensure_text", "remove_text", "search_words"]

_MOST_WORDS = 64
_FOREVER = 2**62
_SPARE = 100
_AFFORDABLE_ROWS = 4_000
_SAMPLE = 16
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_GROUPS = ("episode", "rest")


def _table(scope: int, group: str) -> str:
    return f"fts_{scope:d}_{group}"


def _group(kind: str) -> str:
    """Episodes are many, everything else is small: apart, each search reads its own."""
    return "episode" if kind == "episode" else "rest"


def ensure_text(db: sqlite3.Connection, scope: int) -> None:
    """Make the scope's full-text tables; its own, so that no statistics are shared."""
    for name in (_table(scope, group) for group in _GROUPS):
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone():
            continue
        db.execute(f"CREATE VIRTUAL TABLE {name} USING fts5(x, tokenize='porter unicode61 remove_diacritics 2')")
        if sqlite3.sqlite_version_info >= (3, 42):
            db.execute(f"INSERT INTO {name}({name}, rank) VALUES ('secure-delete', 1)")


def add_text(db: sqlite3.Connection, scope: int, n: int, kind: str, text: str) -> None:
    """Index a text under the row number of its record."""
    db.execute(f"INSERT INTO {_table(scope, _group(kind))}(rowid, x) VALUES (?, ?)", (n, fold(segment(text))))


def remove_text(db: sqlite3.Connection, scope: int, n: int, kind: str) -> None:
    """Take a record's text out of the index."""
    db.execute(f"DELETE FROM {_table(scope, _group(kind))} WHERE rowid = ?", (n,))


def drop_text(db: sqlite3.Connection, scope: int) -> None:
    """Drop the scope's full-text tables."""
    for group in _GROUPS:
        db.execute(f"DROP TABLE IF EXISTS {_table(scope, group)}")


def _match(terms: list[str]) -> str:
    return " OR ".join(f'"{term}"' for term in terms)


def _affordable(db: sqlite3.Connection, table: str, terms: list[str]) -> list[str]:
    """The rarest terms, as long as their rows together can be ranked in a few
    hundredths of a second; in a small memory all of them, in an empty one none. Counting
    rows is cheap, to rank them is not, and the commonest terms tell least."""
    newest = db.execute(f"SELECT rowid FROM {table} ORDER BY rowid DESC LIMIT 1").fetchone()
    if newest is None:
        return []
    if newest[0] <= _AFFORDABLE_ROWS:
        return terms
    count = f"SELECT count(*) FROM {table} WHERE {table} MATCH ?"
    rows = sorted((db.execute(count, (_match([term]),)).fetchone()[0], term) for term in terms)
    chosen: list[str] = []
    total = 0
    for number, term in rows:
        total += number
        if chosen and total > _AFFORDABLE_ROWS:
            break
        if number:
            chosen.append(term)
    return chosen or terms


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
    if probe.regions:
        parts.append("r.session IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(probe.regions))
    return " AND ".join(parts), values


def search_words(db: sqlite3.Connection, scope: int, probe: Probe) -> list[Hit]:
    """BM25 over the scope's full-text rows; any of the words may match."""
    terms = content_words(probe.words)[:_MOST_WORDS]
    if not terms:
        return []
    groups = {_group(kind) for kind in probe.kinds} or set(_GROUPS)
    found = [hit for group in groups for hit in _best_words(db, _table(scope, group), terms, probe)]
    return sorted(found, key=lambda h: (-h.score, h.id))[: probe.k]


def _best_words(db: sqlite3.Connection, table: str, terms: list[str], probe: Probe) -> list[Hit]:
    """The best rows of one table. FTS5 ranks alone first, since to join every match with
    its record costs more than to rank them; when the filters leave too few, more are taken."""
    where, values = _conditions(probe)
    match = _match(_affordable(db, table, terms))
    if not match:
        return []
    taken = probe.k + _SPARE
    while True:
        rows = db.execute(
            f"SELECT r.id, -f.rank, r.kind, r.session, r.position, r.valid_from, {where} AS kept FROM"
            f" (SELECT rowid, rank FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT ?) f"
            " JOIN records r ON r.n = f.rowid",
            (*values, match, taken),
        ).fetchall()
        hits = [_hit(row[:6]) for row in rows if row[6]]
        if len(rows) < taken or len(hits) >= probe.k:
            return hits
        taken *= 4


def _hit(row: tuple[str, float, str, str, int, int]) -> Hit:
    id, score, kind, session, position, since = row
    moment = from_micros(since)
    assert moment is not None
    return Hit(id, score, kind, session, position, moment)


_Row = tuple[str, str, str, int, datetime]
"""Id, kind, session, position and beginning of a record that has a vector."""


class _Matrix:
    """The vectors of one scope with what the filters need, in arrays that double."""

    def __init__(self, closed: int, width: int) -> None:
        self.closed = closed
        self.revision = 0
        self.numbers: list[int] = []
        self.sums: dict[str, tuple[NDArray[np.float64], int]] = {}
        self.last = 0
        self.used = 0
        self.rows: list[_Row] = []
        self.codes: dict[str, int] = {}
        self.vectors = np.zeros((0, width), np.float32)
        self.times = np.zeros((3, 0), np.int64)
        self.kinds = np.zeros(0, np.int32)
        self.sessions = np.zeros(0, np.int32)
        self.masks: dict[tuple[str, ...], NDArray[np.bool_]] = {}
        self.expires = False

    def code(self, name: str) -> int:
        return self.codes.setdefault(name, len(self.codes))

    def grow(self, rows: list[tuple[Any, ...]], vectors: NDArray[np.float32]) -> None:
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
        self.numbers += [r[0] for r in rows]
        for row, vector in zip(rows, vectors, strict=True):
            if row[7] is None:
                self._count(row[2], row[3], vector, 1)
        self.rows += [(r[1], r[2], r[3], r[4], _EPOCH + timedelta(microseconds=r[5])) for r in rows]
        self.expires = self.expires or any(r[6] is not None and r[7] is None for r in rows)
        self.masks.clear()
        self.used = need
        self.last = rows[-1][0]

    def _count(self, kind: str, place: str, vector: NDArray[np.float32], by: int) -> None:
        """Keep the sum of each partition's vectors, so that its centre costs nothing."""
        if kind == "claim":
            total, count = self.sums.get(place, (np.zeros(len(vector)), 0))
            self.sums[place] = (total + by * vector.astype(np.float64), count + by)

    def close(self, number: int, until: int | None, retired: int) -> None:
        """Take in that a record was closed."""
        at = bisect.bisect_left(self.numbers, number)
        if at == len(self.numbers) or self.numbers[at] != number:
            return
        if self.times[2, at] == _FOREVER:
            self._count(self.rows[at][1], self.rows[at][2], self.vectors[at], -1)
        self.times[1, at] = _FOREVER if until is None else until
        self.times[2, at] = retired
        self.masks.clear()

    def allowed(self, probe: Probe) -> NDArray[np.bool_]:
        """Which rows the probe's filters let through. Without a look into the past the
        mask of each choice of kinds is kept."""
        since, until, retired = (row[: self.used] for row in self.times)
        if probe.as_of is None and probe.kinds in self.masks:
            mask = self.masks[probe.kinds]
        else:
            moment = micros(probe.as_of) or 0
            past = (since <= moment) & (until > moment) & (retired > moment)
            mask = past if probe.as_of is not None else retired == _FOREVER
            if probe.kinds:
                kinds = [self.kinds[: self.used] == self.code("kind " + k) for k in probe.kinds]
                mask = mask & np.logical_or.reduce(kinds)
            if probe.as_of is None:
                self.masks[probe.kinds] = mask
        if probe.at is not None and self.expires and probe.as_of is None:
            mask = mask & (until > (micros(probe.at) or 0))
        if probe.not_session is not None:
            mask = mask & (self.sessions[: self.used] != self.code("session " + probe.not_session))
        if probe.regions:
            mask = mask & np.isin(self.sessions[: self.used], [self.code("session " + r) for r in probe.regions])
        return mask

    def best(self, probe: Probe) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """The numbers and cosines of the best rows, ties at the cut included."""
        mask = self.allowed(probe)
        query = np.frombuffer(probe.vector or b"", "<f4")
        count = int(np.count_nonzero(mask))
        if not count:
            return np.zeros(0, np.intp), np.zeros(0, np.float32)
        if count * 4 < self.used:
            numbers = np.flatnonzero(mask)
            cosines = self.vectors[numbers] @ query
        else:
            numbers = np.arange(self.used)
            cosines = self.vectors[: self.used] @ query
            if count < self.used:
                cosines = np.where(mask, cosines, np.float32(-np.inf))
        if probe.k >= count:
            top = np.flatnonzero(np.isfinite(cosines))
        else:
            top = np.flatnonzero(cosines >= _threshold(cosines, probe.k))
        return numbers[top], cosines[top]


def _threshold(values: NDArray[np.float32], k: int) -> np.float32:
    """The k-th largest value. A sample finds a bound that leaves few to look at."""
    sample = values[::_SAMPLE]
    rough = min(len(sample), 2 * k // _SAMPLE + 8)
    bound = np.partition(sample, len(sample) - rough)[len(sample) - rough]
    near = values[values >= bound]
    if len(near) < k:
        near = values
    return np.float32(np.partition(near, len(near) - k)[len(near) - k])


def _follow(db: sqlite3.Connection, scope: int, held: _Matrix) -> bool:
    """Bring the times of a matrix up to date; not possible when something was erased."""
    since = (scope, held.revision)
    erased = "SELECT 1 FROM changes WHERE scope = ? AND revision > ? AND verb = 'erase' LIMIT 1"
    if db.execute(erased, since).fetchone() or held.revision == 0:
        return False
    closed = (
        "SELECT r.n, r.valid_to, r.rec_to FROM changes c JOIN records r ON r.scope = c.scope AND r.id = c.id"
        " WHERE c.scope = ? AND c.revision > ? AND c.verb IN ('revise', 'retire')"
    )
    for number, until, retired in db.execute(closed, since).fetchall():
        held.close(number, until, retired)
    return True


class Matrices:
    """The vectors of each scope, kept between searches."""

    def __init__(self) -> None:
        self._held: dict[int, _Matrix] = {}

    def drop(self, scope: int) -> None:
        """Forget one scope's matrix."""
        self._held.pop(scope, None)

    def _current(self, db: sqlite3.Connection, scope: int) -> _Matrix | None:
        closed, revision = db.execute("SELECT closed, revision FROM scopes WHERE n = ?", (scope,)).fetchone()
        held = self._held.get(scope)
        if held is not None and held.closed != closed and not _follow(db, scope, held):
            held = None
        if held is not None:
            held.closed, held.revision = closed, revision
        rows = db.execute(
            "SELECT r.n, r.id, r.kind, r.session, r.position, r.valid_from, r.valid_to, r.rec_to, v.v"
            " FROM vectors v JOIN records r ON r.n = v.n WHERE v.scope = ? AND v.n > ? ORDER BY v.n",
            (scope, held.last if held else 0),
        ).fetchall()
        if rows:
            vectors = np.frombuffer(b"".join(row[8] for row in rows), "<f4").reshape(len(rows), -1)
            if held is None:
                held = _Matrix(closed, vectors.shape[1])
                held.revision = revision
            held.grow([row[:8] for row in rows], vectors)
        if held is None:
            self._held.pop(scope, None)
        else:
            self._held[scope] = held
        return held

    def centres(self, db: sqlite3.Connection, scope: int) -> dict[str, bytes]:
        """The mean vector of each partition."""
        held = self._current(db, scope)
        sums = held.sums if held is not None else {}
        return {place: (total / n).astype("<f4").tobytes() for place, (total, n) in sums.items() if n > 0}

    def search(self, db: sqlite3.Connection, scope: int, probe: Probe) -> list[Hit]:
        """The ``k`` nearest by cosine."""
        held = self._current(db, scope)
        if held is None or probe.vector is None:
            return []
        numbers, cosines = held.best(probe)
        pairs = zip(cosines.tolist(), numbers.tolist(), strict=True)
        best = sorted((-score, *held.rows[number]) for score, number in pairs)[: probe.k]
        return [Hit(id, -score, kind, session, position, since) for score, id, kind, session, position, since in best]
