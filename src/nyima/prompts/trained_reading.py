"""How a model that was trained to read claims is asked about one message, and how it answers.

The laboratory makes its training data with the same functions (``nyima train claims``), so that the
model meets in use what it met in training. The answer has a line for each claim that the message
states, and in the end the numbers of the shown claims that it makes untrue::

    user | lives in | Porto | holds
    user's sister Ana | works as | nurse | planned
    over: 2
"""

from __future__ import annotations

from collections.abc import Sequence

from nyima.domain.evidence import Noted
from nyima.domain.ports import Message
from nyima.errors import ModelGarbled
from nyima.prompts.notes import parse_claims, parse_numbers

__all__ = ["VERSION", "claims_answer", "claims_question", "read_claims_answer"]

VERSION = "claims@1"
"""Goes up when the form changes; adapters of another version do not fit."""

_SYSTEM = "You read what a user says and note claims."
_OVER = "over:"


def claims_question(known: Sequence[str], before: str, message: str) -> tuple[Message, ...]:
    """Return the messages that ask about a user's message. ``known`` are the texts of current claims,
    ``before`` is what was said to the user before, or empty."""
    listed = "\n".join(f"{number}. {_line(text)}" for number, text in enumerate(known, 1)) or "-"
    asked = f"Known:\n{listed}\nBefore: {_line(before) or '-'}\nMessage: {message.strip()}"
    return (Message("system", _SYSTEM), Message("user", asked))


def claims_answer(over: Sequence[int], stated: Sequence[Noted]) -> str:
    """Return the answer that a perfect reader gives."""
    last = f"{_OVER} {', '.join(map(str, over)) or 'none'}"
    return "\n".join((*(f"{c.who} | {c.what} | {c.value} | {c.status}" for c in stated), last))


def read_claims_answer(text: str) -> tuple[tuple[Noted, ...], tuple[int, ...]]:
    """Return the claims and the numbers of an answer; no numbers where it was cut off before them. Raises
    ModelGarbled for one that has neither."""
    lines = text.strip().splitlines()
    rows = [line.split("|") for line in lines if line.count("|") == 3]
    over = next((line for line in lines if line.lower().startswith(_OVER)), None)
    if over is None and not rows:
        raise ModelGarbled(f"the answer of the claims reader cannot be read: {text[:120]!r}: pull the model again")
    return parse_claims([list(row) for row in rows]), parse_numbers((over or "")[len(_OVER) :])


def _line(text: str) -> str:
    return " ".join(text.split())
