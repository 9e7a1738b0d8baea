"""Who speaks, to whom, when: Scope, Session, Turn. Canonical and immutable."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from nyima.errors import InputError

__all__ = [
    "MAX_TEXT",
    "Origin",
    "Role",
    "Scope",
    "Session",
    "Turn",
    "as_utc",
    "clean_text",
    "dialogue_lines",
    "iso",
    "least_trusted",
]

_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_TEXT = 16_000_000
"""The longest text of one turn, in characters."""


class Role(StrEnum):
    """Who spoke."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


class Origin(StrEnum):
    """Where a text came from, most trusted first. Only ``user`` and, when the
    user asks for it, ``import`` may change profile facts."""

    USER = "user"
    IMPORT = "import"
    ASSISTANT = "assistant"
    TOOL = "tool"
    DOCUMENT = "document"


_TRUST = {origin: rank for rank, origin in enumerate(Origin)}


def least_trusted(origins: Iterable[Origin]) -> Origin:
    """The lowest trust of several origins; ``user`` when there are none."""
    return max(origins, key=_TRUST.__getitem__, default=Origin.USER)


def clean_text(text: str) -> str:
    """The text as it is stored: NUL and lone surrogates become U+FFFD.

    Raises InputError above MAX_TEXT characters.
    """
    if len(text) > MAX_TEXT:
        raise InputError(f"a text of {len(text):,} characters is too long; the limit is {MAX_TEXT:,}: split it")
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def as_utc(moment: datetime) -> datetime:
    """An aware UTC time; a naive one is an error, since its meaning would be a guess."""
    if moment.tzinfo is None:
        raise InputError(f"the time {moment.isoformat()} has no time zone; give an aware datetime")
    return moment.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Scope:
    """The isolation key: the first argument of every store call."""

    tenant: str = "local"
    user: str = "me"
    assistant: str = "nyima"

    def __post_init__(self) -> None:
        for part in (self.tenant, self.user, self.assistant):
            if not part or len(part) > 200 or any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in part):
                raise InputError(f"{part!r} cannot be a tenant, user or assistant: give 1 to 200 printable characters")


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation."""

    id: str
    started: datetime
    ended: datetime | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. ``position`` counts from 0 within the session; the store gives it."""

    id: str
    session: str
    role: Role
    text: str
    at: datetime
    origin: Origin = Origin.USER
    speaker: str = ""
    position: int = -1

    @property
    def name(self) -> str:
        """The speaker's name, else the role."""
        return self.speaker or self.role.value.capitalize()


def dialogue_lines(turns: Iterable[Turn]) -> list[str]:
    """``User: …`` and ``Assistant: …``, one line a turn."""
    return [f"{' '.join(turn.name.split())}: {' '.join(turn.text.split())}" for turn in turns]


def iso(moment: datetime | None) -> str | None:
    """A time as ISO 8601 in UTC."""
    return None if moment is None else as_utc(moment).isoformat().replace("+00:00", "Z")
