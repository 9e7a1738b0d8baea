"""A document as it is read: its parts with their places."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Document", "Part"]


@dataclass(frozen=True, slots=True)
class Part:
    """A page (``p. 2``), what stands under a heading (``Cleaning > Filter``), or the whole
    (an empty place)."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document by name. ``note`` says what of it could not be read, if anything."""

    name: str
    parts: tuple[Part, ...]
    note: str = ""
