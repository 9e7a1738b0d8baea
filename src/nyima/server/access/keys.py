"""API keys: who may do what, for whom. Only their hashes are kept."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nyima.domain.conversation import Scope
from nyima.errors import ConfigError, InputError, NotFound

__all__ = ["SCOPES", "Key", "KeyRing"]

SCOPES = ("read", "write", "act-as", "admin")
"""What a key may do: read the memory, change it, choose for which user, see the server."""
_EMPTY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its secret. ``requests`` a minute and ``tokens`` a day are its most;
    0 is no limit."""

    id: str
    name: str
    digest: str
    tenant: str
    user: str
    scopes: tuple[str, ...]
    made: str
    requests: int = 600
    tokens: int = 0

    def scope(self, user: str = "") -> Scope:
        """The memory that it opens, or that of another user of its tenant."""
        return Scope(tenant=self.tenant, user=user or self.user)


class KeyRing:
    """The keys in a file that only its owner can read. It is read again when another
    process has changed it, so that a key that is withdrawn stops to work at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._keys: dict[str, Key] = {}
        self._stamp: tuple[int, int] = (-1, -1)

    def all(self) -> list[Key]:
        """All keys, oldest first. Raises ConfigError when the file cannot be read."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._keys, self._stamp = {}, (-1, -1)
            return []
        stamp = (found.st_mtime_ns, found.st_size)
        if stamp != self._stamp:
            try:
                rows: list[dict[str, Any]] = json.loads(self.path.read_text("utf-8"))["keys"]
                self._keys = {r["id"]: Key(**{**r, "scopes": tuple(r["scopes"])}) for r in rows}
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ConfigError(f"the keys in {self.path} cannot be read: {error}: restore the file") from error
            self._stamp = stamp
        return list(self._keys.values())

    def make(
        self, name: str, scope: Scope, scopes: Iterable[str], *, requests: int = 600, tokens: int = 0
    ) -> tuple[Key, str]:
        """A new key with its secret, which is shown now and never again. Raises InputError."""
        wanted = tuple(s for s in SCOPES if s in set(scopes))
        unknown = sorted(set(scopes) - set(SCOPES))
        if unknown or not wanted:
            raise InputError(
                f"{', '.join(unknown) or 'nothing'} is no scope of a key: give some of {', '.join(SCOPES)}"
            )
        if not name.strip() or len(name) > 80:
            raise InputError("a key needs a name of 1 to 80 characters, such as the program that gets it")
        id = secrets.token_hex(4)
        secret = f"nyima-{id}-{secrets.token_urlsafe(32)}"
        made = datetime.now(UTC).isoformat(timespec="seconds")
        key = Key(id, name.strip(), _digest(secret), scope.tenant, scope.user, wanted, made, requests, tokens)
        self._write([*self.all(), key])
        return key, secret

    def find(self, secret: str) -> Key | None:
        """The key of a secret. Comparing takes the same time for every secret of one length."""
        self.all()
        parts = secret.split("-", 2)
        key = self._keys.get(parts[1]) if len(parts) == 3 and parts[0] == "nyima" else None
        same = hmac.compare_digest(key.digest if key else _EMPTY, _digest(secret))
        return key if same else None

    def remove(self, id: str) -> Key:
        """Withdraw a key by its id. Raises NotFound."""
        every = self.all()
        found = next((k for k in every if k.id == id), None)
        if found is None:
            raise NotFound(f"there is no key {id!r}: `nyima keys list` has their ids")
        self._write([k for k in every if k.id != id])
        return found

    def _write(self, keys: list[Key]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name(self.path.name + ".new")
        opened = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            json.dump({"keys": [asdict(k) for k in keys]}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
        self._stamp = (-1, -1)
        self.all()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
