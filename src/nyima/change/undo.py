"""The log of changes in words, and how each is taken back, by the same four changes.

A line of the log is one action of the user: what was noted of one message, however many steps
that took; one correction by hand; one document; one erase.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from nyima.domain.changes import Add, Change, ChangeRow, Erase, Retire, Revise
from nyima.domain.conversation import Scope
from nyima.domain.ports import Event, RecordFilter
from nyima.domain.records import ME, Claim, Entity, Episode, Interval, MemoryRecord, Note, Passage, Summary
from nyima.domain.storage import Store
from nyima.errors import NotFound

__all__ = ["UNDONE", "LoggedChange", "log_of", "logged", "noted_again", "taken_back", "withdrawn"]

UNDONE = "undone"
"""The kind of event that says that nothing is to be noted of a turn."""

_BY_HAND = "user"
_BACK = ("undo", "redo")
_FINAL = ("history", "forget", "import", "")
_ANY = Interval(datetime.min.replace(tzinfo=UTC))
_UNLOGGED = ("history",)
"""The writers whose changes are no line of the log: they work on every turn."""
_WORDS = {
    "user": "corrected", "forget": "erased for good", "undo": "taken back", "redo": "done again", "documents": "documents",
    "import": "brought in", "recursive": "running memory", "mend": "running memory", "summary": "session summary",
    "conditional": "noted", "claims": "noted",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """One action on the memory. ``id`` names it for ``undo``; ``what`` says in a word or two
    what was done, ``before`` and ``after`` what was believed and is believed since (empty where
    there was or is nothing). ``turn`` is the user's turn that it was noted of, if any;
    ``derived`` are texts that were made of others, such as summaries."""

    id: str
    at: datetime
    by: str
    what: str
    before: str
    after: str
    undoable: bool
    turn: str = ""
    derived: bool = False
    rows: tuple[ChangeRow, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        change = " → ".join(part for part in (self.before, self.after) if part)
        return f"{self.what}: {change}" if change else self.what


async def log_of(store: Store, scope: Scope, limit: int | None = None) -> list[LoggedChange]:
    """The changes, newest first; with ``limit`` about that many (at least, where there are so many),
    without reading older ones."""
    last = None if limit is None else max(limit, 1) * 4
    while True:
        rows = await store.changes(scope, but=_UNLOGGED, last=last)
        lines = await _lines(store, scope, rows)
        whole = last is None or len({row.revision for row in rows}) < last
        if whole or (limit is not None and len(lines) > limit):
            return lines
        last = last * 4 if last else None


async def logged(store: Store, scope: Scope, id: str) -> LoggedChange | None:
    """The line of the log with this id, or of what was noted of the turn with this id."""
    step = id.partition(".")[0]
    if step.isdecimal():
        rows = await store.changes(scope, revisions=(int(step),), but=_UNLOGGED)
        return next((line for line in await _lines(store, scope, rows) if line.id == id), None)
    made = await store.records(scope, RecordFilter(turns=(id,), retired=True))
    rows = await store.changes(scope, ids=tuple(r.id for r in made), but=_UNLOGGED)
    return next((line for line in await _lines(store, scope, rows) if line.turn == id and line.undoable), None)


async def _lines(store: Store, scope: Scope, rows: Sequence[ChangeRow]) -> list[LoggedChange]:
    """The lines that some steps belong to, newest first. What was noted of a turn is one line,
    however many steps that took: those outside ``rows`` are read too."""
    records = await _records_of(store, scope, rows)
    seen: set[str] = set()
    while turns := {turn for _, turn in _with_turns(rows, records) if turn} - seen:
        seen |= turns  # their steps may have noted something of further turns
        made = await store.records(scope, RecordFilter(turns=tuple(turns), retired=True))
        more = await store.changes(scope, ids=tuple(r.id for r in made), but=_UNLOGGED)
        known = {row.revision for row in rows}
        rows = sorted([*rows, *(row for row in more if row.revision not in known)], key=lambda row: row.revision)
        records = await _records_of(store, scope, rows)
    standing = await _standing(store, scope, records)
    actions: dict[tuple[str, str], list[ChangeRow]] = {}
    for row, turn in _with_turns(rows, records):
        actions.setdefault(("turn", turn) if turn else ("revision", str(row.revision)), []).append(row)
    found = [_line(steps, key[1] if key[0] == "turn" else "", standing) for key, steps in actions.items()]
    found.sort(key=lambda c: (c.rows[-1].revision, int(c.id)))
    counted: Counter[str] = Counter()
    for number, line in enumerate(found):  # a step that merged what several turns noted is several lines
        counted[line.id] += 1
        if counted[line.id] > 1:
            found[number] = replace(line, id=f"{line.id}.{counted[line.id]}")
    return found[::-1]


async def _records_of(store: Store, scope: Scope, rows: Iterable[ChangeRow]) -> dict[str, MemoryRecord]:
    """The records that rows name, in all their versions."""
    bases = {_base(id) for row in rows for id in (row.id, row.successor) if id}
    if not bases:
        return {}
    return {r.id: r for r in await store.records(scope, RecordFilter(bases=tuple(bases), retired=True))}


async def _standing(store: Store, scope: Scope, records: Mapping[str, MemoryRecord]) -> _Standing:
    """Return how some records stand now, with what the user's own hand has put in their slots."""
    slots = {r.slot for r in records.values() if r.slot is not None}
    held = await store.records(scope, RecordFilter(slots=tuple(slots))) if slots else []
    by_hand = [r for r in held if r.provenance.writer == _BY_HAND]
    rows = await store.changes(scope, ids=tuple(records)) if records else []
    closed_by = {row.id: row.by for row in rows if row.verb in {"revise", "retire"}}
    now = {_base(id): r for id, r in records.items() if r.recorded.until is None}
    last = {_base(r.id): r for r in sorted(records.values(), key=lambda r: (r.recorded.since, "~" in r.id))}
    return _Standing(records, now, last, closed_by, by_hand)


@dataclass(frozen=True, slots=True)
class _Standing:
    """Some records in all versions; by the id that they first had those that are open and the last
    version of each; who closed which; and what the user's own hand has put in their slots since."""

    records: Mapping[str, MemoryRecord]
    open: Mapping[str, MemoryRecord]
    last: Mapping[str, MemoryRecord]
    closed_by: Mapping[str, str]
    by_hand: Sequence[MemoryRecord]

    def without(self, rows: Iterable[ChangeRow]) -> _Standing:
        """Return how things stand once the values that these rows brought are gone."""
        made = {_base(row.successor or row.id) for row in rows if row.verb in {"add", "revise"}}
        return replace(self, by_hand=[r for r in self.by_hand if _base(r.id) not in made])

    def reverses(self, row: ChangeRow) -> bool:
        """Return whether a row can be taken back: what it made is still open, or what it ended is not,
        and the user has put nothing newer in its place. Entities stay: other memories may name them."""
        old = self.records.get(row.id)
        if old is None or isinstance(old, Entity):
            return False
        if row.verb == "add":
            return _base(row.id) in self.open
        if row.verb == "revise":
            there, made = self.open.get(_base(row.successor or "")), self.records.get(row.successor or "")
            if there is None or made is None or _base(made.id) != _base(old.id):
                return there is not None
            return _state(there) == _state(made)  # a new version of the same record: it may be taken back already
        base = _base(row.id)
        last = self.last[base].id
        # A later version that an undo has closed shows that this row was taken back already.
        still = last == row.id or self.closed_by.get(last) == "redo"
        newer = any(r.slot == old.slot and r.recorded.since >= row.at for r in self.by_hand)
        return row.verb == "retire" and base not in self.open and still and not newer


def _state(record: MemoryRecord) -> MemoryRecord:
    """A record without what tells its versions apart."""
    return replace(record, id="", recorded=_ANY, valid=_ANY, supersedes=None)


def _with_turns(rows: Iterable[ChangeRow], records: Mapping[str, MemoryRecord]) -> Iterable[tuple[ChangeRow, str]]:
    """Each row with the turn that it was noted of. What ends or ages in a step does so because of
    what the step adds."""
    steps: dict[int, list[ChangeRow]] = {}
    for row in rows:
        steps.setdefault(row.revision, []).append(row)
    for step in steps.values():
        turns = [_noted_of(row, records) for row in step]
        known = list(dict.fromkeys(t for t in turns if t))
        for number, row in enumerate(step):
            following = next((t for t in turns[number:] if t), known[-1] if known else "")
            yield row, turns[number] or following


def _noted_of(row: ChangeRow, records: Mapping[str, MemoryRecord]) -> str:
    """The turn that gave the version that a row adds: a note is of its first turn, the others
    are what stood around it; a claim that is told again is of the last."""
    made = records.get(row.successor or row.id)
    if row.verb not in {"add", "revise"} or row.by in {_BY_HAND, *_BACK, *_FINAL} or made is None:
        return ""
    turns = made.provenance.turns
    if isinstance(made, Summary) or not turns or (row.verb == "revise" and made.stale):
        return ""
    return turns[0] if isinstance(made, Note | Episode) else turns[-1]


def _line(rows: Sequence[ChangeRow], turn: str, standing: _Standing) -> LoggedChange:
    records = standing.records
    standing = standing.without(rows)
    undoable = rows[0].by not in _FINAL and any(map(standing.reverses, rows))
    shown = [row for row in rows if not isinstance(records.get(row.successor or row.id), Entity | Episode)] or [*rows]
    before = [records[r.id] for r in shown if r.verb in {"revise", "retire"} and r.id in records]
    after = [records[id] for r in shown if r.verb in {"add", "revise"} and (id := r.successor or r.id) in records]
    made = [r for r in (*before, *after) if not isinstance(r, Entity)]
    by = rows[0].by
    what = _WORDS.get(by, "noted" if turn else by or "changed")
    slots = {r.slot for r in made}
    if len(slots) == 1 and isinstance(made[0], Claim):
        about = made[0].attribute if made[0].subject == ME else f"{made[0].name} {made[0].attribute}"
        what = f"{what}, {about}" if by in _BACK else about
    documents = list(dict.fromkeys(r.document for r in made if isinstance(r, Passage)))
    if documents:
        verb = "added" if after and not before else "removed" if before and not after else "replaced"
        return LoggedChange(
            str(rows[0].revision), rows[-1].at, by, f"{verb} document", "", ", ".join(documents),
            undoable, turn, rows=tuple(rows),
        )  # fmt: skip
    if by == "forget":
        what = f"erased for good: {sum(r.verb == 'erase' for r in rows)} pieces"
    return LoggedChange(
        str(rows[0].revision), rows[-1].at, by, what, _said(before, values=len(slots) == 1),
        _said(after, values=len(slots) == 1), undoable,
        turn, bool(made) and all(isinstance(r, Summary) for r in made), tuple(rows),
    )  # fmt: skip


def _said(records: Sequence[MemoryRecord], *, values: bool) -> str:
    """The texts of records, of claims of one slot the values alone."""
    texts = dict.fromkeys(" ".join((r.value if values and isinstance(r, Claim) else r.text).split()) for r in records)
    return "; ".join(texts)


def _base(id: str) -> str:
    return id.partition("~")[0]


async def taken_back(store: Store, scope: Scope, change: LoggedChange, now: datetime) -> list[Change]:
    """The changes that undo a line of the log.

    A record that comes back is a copy, ``id~…``, valid from now on, so that the past stays
    as it was.
    """
    records = await _records_of(store, scope, change.rows)
    standing = (await _standing(store, scope, records)).without(change.rows)
    open_now = dict(standing.open)
    reason = f"undo of {change.id}"
    found: list[Change] = []
    for row in reversed(change.rows):
        if not standing.reverses(row):
            continue
        if row.verb == "add":
            gone = open_now.pop(_base(row.id), None)
            found += [Retire(gone.id, now, reason)] if gone is not None else []
            continue
        new = open_now.pop(_base(row.successor), None) if row.successor else None
        again = replace(
            records[row.id],
            id=f"{_base(row.id)}~{uuid.uuid4().hex[:8]}",
            valid=Interval(now),
            recorded=Interval(now),
            supersedes=new.id if new else None,
        )
        found.append(Revise(new.id, again, reason) if new is not None else Add(again))
        open_now[_base(row.id)] = again
    return found


async def withdrawn(
    store: Store, scope: Scope, turn: str, now: datetime, change: str = ""
) -> tuple[list[Change], list[Event]]:
    """The notes of a turn leave the journal, and what takes their place says that nothing of it
    is to be kept; jobs that would still note something of it find the event ``undone``, which
    holds the notes for ``noted_again`` and the id of the ``change`` that is undone. Raises NotFound for a turn that is not there."""
    if not await store.turns(scope, ids=(turn,)):
        raise NotFound(f"there is no turn {turn!r}: what was said is needed to undo what was noted of it")
    found = [e for e in await store.events(scope, "notes", ref=turn) if e.body.get("claims") or e.body.get("outdated")]
    empty = [
        replace(e, id=f"{e.id}-undone", body={**e.body, "claims": [], "outdated": [], "remember": False}) for e in found
    ]
    held: list[dict[str, Any]] = [{"id": e.id, "kind": e.kind, "body": dict(e.body)} for e in found]
    mark = Event(f"undone-{turn}", UNDONE, now, (turn,), {"turn": turn, "notes": held, "change": change})
    return [Erase(e.id, "event") for e in found], [*empty, mark]


async def noted_again(store: Store, scope: Scope, turn: str, now: datetime) -> tuple[list[Change], list[Event]]:
    """The inverse of ``withdrawn``."""
    marks = await store.events(scope, UNDONE, ref=turn)
    notes = [note for mark in marks for note in mark.body.get("notes", ())]
    gone: list[Change] = [Erase(mark.id, "event") for mark in marks]
    gone += [Erase(f"{note['id']}-undone", "event") for note in notes]
    return gone, [Event(note["id"], note["kind"], now, (turn,), note["body"]) for note in notes]
