"""How much a key may ask: requests a minute, tokens a day. Counted in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from nyima.server.access.keys import Key
from nyima.server.problems import Problem

__all__ = ["RateLimits"]

_DAY = 86_400.0


@dataclass(slots=True)
class _Spent:
    room: float
    at: float
    day: float
    tokens: int = 0
    calls: int = 0


@dataclass(slots=True)
class RateLimits:
    """Counts what keys spend. ``now`` is a monotonic clock in seconds."""

    now: Callable[[], float] = time.monotonic
    _spent: dict[str, _Spent] = field(default_factory=dict[str, _Spent])

    def enter(self, key: Key) -> None:
        """Count a request. Raises Problem 429 with the seconds to wait."""
        spent = self._of(key)
        if key.requests:
            rate = key.requests / 60.0
            now = self.now()
            spent.room = min(float(key.requests), spent.room + (now - spent.at) * rate)
            spent.at = now
            if spent.room < 1.0:
                raise Problem(429, "the key has used up its requests of this minute", after=(1.0 - spent.room) / rate)
            spent.room -= 1.0
        if key.tokens and spent.tokens >= key.tokens:
            after = spent.day + _DAY - self.now()
            raise Problem(429, f"the key has used up its {key.tokens:,} tokens of this day", after=after)
        spent.calls += 1

    def spend(self, key: Key, tokens: int) -> None:
        """Count the tokens that a request took."""
        self._of(key).tokens += max(0, tokens)

    def usage(self, key: Key) -> dict[str, int]:
        """What a key has used of its day."""
        spent = self._of(key)
        return {"requests": spent.calls, "tokens": spent.tokens}

    def _of(self, key: Key) -> _Spent:
        now = self.now()
        spent = self._spent.get(key.id)
        if spent is None or now - spent.day >= _DAY:
            spent = self._spent[key.id] = _Spent(float(key.requests), now, now)
        return spent
