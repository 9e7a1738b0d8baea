"""Writer ``history``: every turn as an episode, in order, with no model call
(Yuan et al. 2023, section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from nyima.domain.changes import Add, Delta
from nyima.domain.conversation import Role, Turn
from nyima.domain.memory import Episode, Interval, Provenance

__all__ = ["episodes"]


def episodes(turns: Iterable[Turn], now: datetime) -> Delta:
    """An episode for each turn that has words; ids follow from the turns', so that
    writing them twice changes nothing."""
    return Delta(
        tuple(
            Add(
                Episode(
                    id=f"e-{turn.id}",
                    provenance=Provenance(turns=(turn.id,), writer="history", origin=turn.origin),
                    valid=Interval(turn.at),
                    recorded=Interval(now),
                    session=turn.session,
                    position=turn.position,
                    speaker=turn.name,
                    said=turn.text,
                )
            )
            for turn in turns
            if turn.text.strip() and turn.role is not Role.SYSTEM
        ),
        by="history",
    )
