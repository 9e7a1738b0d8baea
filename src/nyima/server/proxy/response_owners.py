"""Whose the upstream's responses are: one account there holds those of all users here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from nyima.domain.conversation import Scope
from nyima.server.access.keys import Key
from nyima.server.problems import Problem

__all__ = ["Owned"]

_MOST = 100_000


@dataclass(slots=True)
class Owned:
    """The responses and their items, by id, since the server started; the newest hundred
    thousand."""

    _held: OrderedDict[str, tuple[Scope, str]] = field(default_factory=OrderedDict[str, tuple[Scope, str]])

    def keep(self, ids: Iterable[str], scope: Scope, session: str) -> None:
        """Remember whose they are, and which session they belong to (none: the memory was off)."""
        for id in ids:
            self._held[id] = (scope, session)
        while len(self._held) > _MOST:
            self._held.popitem(last=False)

    def session(self, id: object, scope: Scope) -> str:
        """The session of a response of this user; empty when it has none."""
        owner, session = self._held.get(id, (None, "")) if isinstance(id, str) else (None, "")
        return session if owner == scope else ""

    def check(self, id: str, scope: Scope) -> None:
        """Raises Problem 404 for what is not this user's, or from before a restart."""
        if self._held.get(id, (None, ""))[0] != scope:
            raise Problem(404, f"there is no response or item {id[:80]!r} of yours since the server started")

    def reached(self, id: str, key: Key, scope: Scope) -> None:
        """The same, where a key that may act for others names nobody: then anybody's of its
        tenant is its own."""
        owner = self._held.get(id, (None, ""))[0]
        if owner is None or "act-as" not in key.scopes or owner.tenant != scope.tenant:
            self.check(id, scope)
