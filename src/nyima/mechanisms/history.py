"""History: every turn as an episode, in order, with no model call
(Yuan et al. 2023, section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from nyima.domain.changes import Add, Delta
from nyima.domain.conversation import Role, Turn
from nyima.domain.mechanism import Mechanism, Source, When, Writer
from nyima.domain.recipe import SourceSpec
from nyima.domain.records import Episode, Interval, Provenance
from nyima.domain.roles import Retriever
from nyima.read.kit import Kit
from nyima.read.search import SearchRetriever

__all__ = ["MECHANISM", "episodes"]


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


def search(kit: Kit, spec: SourceSpec) -> Retriever:
    """The records of a source by words, vectors or both."""
    return SearchRetriever(
        kit.store, kit.vectors, kit.kinds[spec.name], spec.how, spec.weights, spec.turns, spec.region or None
    )


MECHANISM = Mechanism(
    "history",
    "what was said, word for word",
    writers=(Writer("history", When.NOW, needs_model=False, at_once=episodes),),
    sources=(Source("history", "what was said in earlier conversations, word for word", kinds=("episode",)),),
    retrievers=dict.fromkeys(("hybrid", "words", "vector", "reciprocal"), search),
)
