"""A chat model whose answers are kept: what was asked once is not asked again.

That makes runs resumable, lets recipes that write the same share the calls, and keeps
judgements. A replayed call counts as it did when it was made: tokens and seconds are
those of the first time.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nyima.domain.evidence import Usage
from nyima.domain.ports import ChatModel, Completion, Message
from nyima.errors import StoreError, StoreFull, StoreLocked

__all__ = ["Calls", "Meter", "ReplayedModel"]


class Calls:
    """The answers of a folder, in one SQLite file that belongs to one process at a time."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises StoreLocked when another run holds it."""
        self._path = path
        try:
            self._db = sqlite3.connect(path, timeout=0.2, isolation_level=None)
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, body TEXT NOT NULL)")
            self._db.execute("BEGIN EXCLUSIVE")
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: sqlite3.Error) -> StoreError:
        text = str(error)
        if "locked" in text:
            return StoreLocked(
                f"{self._path.parent} belongs to a run that is going on: wait for it, or give another --out"
            )
        if "full" in text:
            return StoreFull(f"{self._path} cannot grow: the disk is full: free some space and run it again")
        return StoreError(f"{self._path}: {text}: check the folder, or give another --out")

    def get(self, key: str) -> dict[str, Any] | None:
        """A kept answer."""
        try:
            row = self._db.execute("SELECT body FROM calls WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._translated(error) from error
        return None if row is None else json.loads(row[0])

    def put(self, key: str, body: Mapping[str, Any]) -> None:
        """Keep an answer."""
        try:
            self._db.execute("INSERT OR REPLACE INTO calls VALUES (?, ?)", (key, json.dumps(body, ensure_ascii=False)))
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


@dataclass(slots=True)
class Meter:
    """What calls cost: ``seconds`` as measured when each was made, ``waited`` the time
    spent in calls that were made now. ``last`` are the messages of the last call."""

    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    waited: float = 0.0
    made: int = 0
    last: tuple[Message, ...] = ()


@dataclass(slots=True)
class ReplayedModel:
    """A model behind the answers that are kept."""

    model: ChatModel
    calls: Calls
    meter: Meter = field(default_factory=Meter)

    @property
    def name(self) -> str:
        """The model's own name."""
        return self.model.name

    @property
    def window(self) -> int:
        """The model's own window."""
        return self.model.window

    @property
    def grammars(self) -> bool:
        """As the model says."""
        return self.model.grammars

    @property
    def trained(self) -> frozenset[str]:
        """As the model says."""
        return self.model.trained

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
        grammar: str | None = None,
        lane: str = "",
    ) -> AsyncIterator[str | Completion]:
        """The kept answer in one piece, else the model's, which is kept when it is whole."""
        asked = [self.name, [(m.role, m.content) for m in messages], max_tokens, temperature, schema, grammar]
        asked += [lane] if lane in self.trained else []
        key = hashlib.sha256(json.dumps(asked, ensure_ascii=False, sort_keys=True).encode()).hexdigest()
        self.meter.last = tuple(messages)
        kept = self.calls.get(key)
        if kept is not None:
            usage = Usage(**kept["usage"])
            self.meter.usage += usage
            self.meter.seconds += kept["seconds"]
            yield kept["text"]
            yield Completion(kept["text"], kept["finish"], usage)
            return
        started = time.perf_counter()
        try:
            async for piece in self.model.stream(
                messages, max_tokens=max_tokens, temperature=temperature, schema=schema, grammar=grammar, lane=lane
            ):
                if isinstance(piece, Completion):
                    seconds = time.perf_counter() - started
                    body = {
                        "text": piece.text,
                        "finish": piece.finish,
                        "usage": asdict(piece.usage),
                        "seconds": seconds,
                    }
                    self.calls.put(key, body)
                    self.meter.usage += piece.usage
                    self.meter.seconds += seconds
                    self.meter.made += 1
                yield piece
        finally:
            self.meter.waited += time.perf_counter() - started

    async def close(self) -> None:
        """Nothing: whoever made the model closes it."""
