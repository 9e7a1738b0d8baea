"""What the writers that use a model share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Any

from nyima.domain.conversation import Origin, Role, Scope, Session, Turn, dialogue_lines
from nyima.domain.evidence import Notes
from nyima.domain.ports import Clock, Embedder, Event, Verifier
from nyima.domain.recipe import Recipe
from nyima.domain.storage import AskEvents, AskTurns, Store
from nyima.errors import NotFound
from nyima.language.words import cut_tokens, own_words, tokens
from nyima.read.calls import Caller

__all__ = ["Desk", "is_users", "notes_event", "notes_of", "own_turn", "windows"]


_NO_RECIPE = Recipe("none", "nothing is written")


def _none(notes: Notes) -> Sequence[tuple[str, str]]:
    del notes
    return ()


@dataclass(frozen=True, slots=True)
class Desk:
    """What a writer works with: the store to read, a model to ask, the time, how many tokens of
    dialogue a prompt may hold, and the memory's recipe. ``zone`` is the user's, ``subclasses``
    are texts of the settings that add some to the graph's. ``follow_ups`` names the writers
    that what was noted of a turn asks for, each with the suffix of its job. ``verifier`` looks again
    at what is to be believed. ``shared`` holds
    what is made once for all turns."""

    store: Store
    caller: Caller | None
    clock: Clock
    room: int = 1_500
    recipe: Recipe = _NO_RECIPE
    embedder: Embedder | None = None
    zone: tzinfo = UTC
    subclasses: tuple[str, ...] = ()
    follow_ups: Callable[[Notes], Sequence[tuple[str, str]]] = _none
    verifier: Verifier | None = None
    shared: dict[str, Any] = field(default_factory=dict[str, Any])

    async def around(self, scope: Scope, turn_id: str, before: int) -> tuple[Turn, list[Turn]]:
        """A turn in its writer's own words, and up to ``before`` turns of its session ahead of it."""
        found = await self.store.ask(scope, AskTurns(upto=turn_id, last=before + 1))
        if not found:
            raise NotFound(f"turn {turn_id!r} is gone: nothing is left to do for it")
        *near, turn = map(own_turn, found)
        return turn, near

    async def session(self, scope: Scope, session_id: str) -> tuple[Session, list[Turn]]:
        """A session and its turns, each in its writer's own words."""
        found = await self.store.sessions(scope, ids=(session_id,))
        if not found:
            raise NotFound(f"session {session_id!r} is gone: nothing is left to do for it")
        return found[0], [own_turn(t) for t in await self.store.turns(scope, session=session_id)]


def own_turn(turn: Turn) -> Turn:
    """A turn of the user without what they pasted: that is somebody else's word."""
    return (
        replace(turn, text=own_words(turn.text))
        if turn.role is Role.USER and turn.origin is not Origin.DOCUMENT
        else turn
    )


def is_users(turn: Turn) -> bool:
    """Whether the user said it, so that it may become a fact of theirs."""
    return turn.role is Role.USER and turn.origin.value in {"user", "import"}


def windows(turns: Sequence[Turn], room: int) -> list[str]:
    """The dialogue as texts of at most ``room`` tokens, cut between turns; a turn that
    is longer alone is shortened in its middle."""
    out: list[str] = []
    lines: list[str] = []
    used = 0
    for line in dialogue_lines(turns):
        short = cut_tokens(line, max(40, room // 2))
        size = tokens(short) + 1
        if lines and used + size > room:
            out.append("\n".join(lines))
            lines, used = [], 0
        lines.append(short)
        used += size
    return [*out, "\n".join(lines)] if lines else out


def notes_event(turn: Turn, body: dict[str, object], at: Clock) -> Event:
    """The journal line that keeps what was noted about a turn."""
    return Event(f"notes-{turn.id}", "notes", at.now(), (turn.id,), {"turn": turn.id, **body})


async def notes_of(store: Store, scope: Scope, turns: Sequence[Turn], kind: str = "notes") -> dict[str, Event]:
    """The notes of some turns, by turn id."""
    wanted = tuple(t.id for t in turns)
    return {e.body["turn"]: e for e in await store.ask(scope, AskEvents(kind, wanted)) if e.body["turn"] in wanted}
