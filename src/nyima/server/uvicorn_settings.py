"""How the server listens: settings of uvicorn, and connections that wait for nobody for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

__all__ = ["SETTINGS", "Timed"]


class Timed(H11Protocol):
    """A connection that is closed when the head of a request takes longer than ``seconds``."""

    seconds = 20.0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came: its first request is due."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Something came: either a request's head is complete now, or its time is running."""
        super().data_received(data)
        state: object = self.conn.their_state
        cycle: object = self.cycle
        answered = isinstance(cycle, RequestResponseCycle) and cycle.response_complete
        unread = state is h11.SEND_BODY and answered
        if state is h11.IDLE or unread:  # the rest of a body that was answered unread has its time, too
            self._wait()
        else:
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(self.seconds, self._close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _close(self) -> None:
        self._late = None
        if not self.transport.is_closing():
            self.transport.close()


SETTINGS: Mapping[str, Any] = {
    "http": Timed, "ws": "none", "lifespan": "on", "proxy_headers": False, "server_header": False,
    "log_config": None, "access_log": False, "h11_max_incomplete_event_size": 65_536,
    "limit_concurrency": 1_000, "timeout_keep_alive": 30, "timeout_graceful_shutdown": 10,
}  # fmt: skip
"""How uvicorn serves the application. Always with h11, which bounds the size of a request's
head; the other parser, where it is installed, does not."""
