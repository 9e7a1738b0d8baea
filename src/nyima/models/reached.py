"""The address of a chat model that is a server."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

__all__ = ["Reached", "Reaches"]


@dataclass(frozen=True, slots=True)
class Reached:
    """An address with its key; ``extra`` are fields that its requests need."""

    url: str
    key: str = field(default="", repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@runtime_checkable
class Reaches(Protocol):
    """A chat model that is a server: it lends its address for one request."""

    @property
    def name(self) -> str:
        """The model that a request without one is for."""
        ...

    def reached(self, lane: str) -> contextlib.AbstractAsyncContextManager[Reached]:
        """The address, for as long as one request takes."""
        ...
