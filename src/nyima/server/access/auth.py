"""Who may come in: a key in the header, or a login of the web page."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from nyima.server.access.keys import Key, KeyRing
from nyima.server.access.limits import RateLimits
from nyima.server.problems import Problem

__all__ = ["COOKIE", "Gate", "needs"]

COOKIE = "nyima_session"
_HOURS = 24 * 30
_CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(slots=True)
class Gate:
    """Checks keys and logins. A login is a signed cookie; it ends when its key is withdrawn,
    or when the server starts again."""

    ring: KeyRing
    limits: RateLimits
    seed: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def check(self, request: HTTPConnection) -> Key:
        """The key of a request, counted. Raises Problem 401, 403 or 429."""
        given = request.headers.get("authorization", "")
        kind, _, secret = given.partition(" ")
        if given:
            key = self.ring.find(secret.strip()) if kind.lower() == "bearer" else None
        elif other := request.headers.get("x-api-key"):
            key = self.ring.find(other)
        else:
            key = self._logged_in(request)
        if key is None:
            raise Problem(401, "no key, or one that is not valid: send `Authorization: Bearer nyima-…`")
        self.limits.enter(key)
        return key

    def login(self, secret: str) -> str:
        """The cookie of a login by key. Raises Problem 401."""
        key = self.ring.find(secret.strip())
        if key is None:
            raise Problem(401, "that key is not valid: `nyima keys add` makes one")
        until = str(int(time.time()) + _HOURS * 3_600)
        return f"{key.id}.{until}.{self._signed(key, until)}"

    def token(self, key: Key) -> str:
        """What a form of the page must send back, so that no other page can send it."""
        return self._signed(key, "form")

    def _logged_in(self, request: HTTPConnection) -> Key | None:
        id, _, rest = request.cookies.get(COOKIE, "").partition(".")
        until, _, signature = rest.partition(".")
        key = next((k for k in self.ring.all() if k.id == id), None)
        if key is None or not until.isdecimal() or len(until) > 12 or int(until) < time.time():
            return None
        if not hmac.compare_digest(self._signed(key, until).encode(), signature.encode("utf-8", "replace")):
            return None
        if request.scope.get("method") in _CHANGES:
            sent = request.headers.get("x-nyima-form", "")
            if not hmac.compare_digest(self.token(key).encode(), sent.encode("utf-8", "replace")):
                raise Problem(403, "the page's form token is missing or old: load the page again")
        return key

    def _signed(self, key: Key, what: str) -> str:
        return hmac.new(self.seed, f"{key.id}.{key.digest}.{what}".encode(), hashlib.sha256).hexdigest()


def needs(key: Key, scopes: Iterable[str]) -> None:
    """Raises Problem 403 when the key lacks one of the scopes."""
    missing = [s for s in scopes if s not in key.scopes]
    if missing:
        raise Problem(403, f"this key lacks the scope {', '.join(missing)}: it has {', '.join(key.scopes)}")
