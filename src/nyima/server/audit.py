"""Who changed what, or took it away: a line for each change, export, refused key, and look by
one user's key into another's memory. It holds ids and no content."""

from __future__ import annotations

import logging
import os
import re
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO, Any

from starlette.types import Scope

from nyima.domain.conversation import Scope as Whose
from nyima.server.access.keys import Key

__all__ = ["AuditFile", "audit"]

_log = logging.getLogger("nyima.audit")
_CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_READS = frozenset({"/api/recall"})
_EXPORTS = frozenset({"/api/export"})
_OURS = re.compile(r"(?:[a-z]-){1,2}[0-9a-f]{12,32}(?:~[0-9a-fm]{6,24})?\Z")
_SIZE, _OLD = 5_000_000, 5


def audit(scope: Scope, route: str, status: int) -> None:
    """Leave a line about a request that has been answered, where there is one to leave."""
    state: dict[str, Any] = scope.get("state") or {}
    key, whose = state.get("key"), state.get("whose")
    other = isinstance(key, Key) and isinstance(whose, Whose) and whose.user != key.user
    changes = scope["method"] in _CHANGES and route not in _READS
    if not (changes or other or route in _EXPORTS or status in {401, 403}):
        return
    line: dict[str, Any] = {"method": scope["method"], "route": route, "status": status}
    if isinstance(key, Key):
        line["key"] = key.id
        line["tenant"], line["user"] = key.tenant, whose.user if isinstance(whose, Whose) else key.user
    id = (scope.get("path_params") or {}).get("id")
    if isinstance(id, str) and _OURS.match(id):  # sessions may be named with anybody's words
        line["id"] = id
    _log.info("other user" if other else "change" if changes else "refused" if status >= 400 else "export", extra=line)


class AuditFile(RotatingFileHandler):
    """A file that only its owner can read; at 5 MB a new one is begun, and five are kept."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(path, maxBytes=_SIZE, backupCount=_OLD, encoding="utf-8", delay=True)

    def _open(self) -> IO[str]:  # type: ignore[override]
        opened = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(opened, self.mode, encoding=self.encoding)
