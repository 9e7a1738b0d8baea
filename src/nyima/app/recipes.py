"""The recipes that users choose from; those of the papers and the baselines are in the laboratory.

``name@k`` is a recipe whose sources may each bring ``k`` pieces."""

from __future__ import annotations

from dataclasses import replace

from nyima.domain.evidence import Budget
from nyima.domain.mechanism import Mechanism
from nyima.domain.recipe import Recipe, SourceSpec, Weights

__all__ = ["MECHANISM"]


_PLAIN = Weights(near=(), session=0.0, period=0.0)
_HISTORY = SourceSpec("history", "vector", 3, _PLAIN)
_NOTES = SourceSpec("notes", "vector", 3, _PLAIN)
_SESSIONS = SourceSpec("summary", "vector", 1, _PLAIN)

_GRAPH = SourceSpec("graph", "walk", 3, replace(_PLAIN, words=0.5))
_CONDITIONAL = Recipe(
    "conditional", "conditional memory alone (Yuan et al. 2023)", ("history", "conditional"), "reply", (_NOTES,)
)

_DOCUMENTS = SourceSpec("documents", k=3, after=("profile", "graph"))
_SOURCES = Recipe(
    "sources",
    "a model plans the sources, judges each piece, replies, and refines its draft (Wang et al. 2024, prompted)",
    ("history", "claims"),
    "reply",
    (SourceSpec("history", k=3), SourceSpec("profile", k=3), SourceSpec("persona", "persona", 2), _DOCUMENTS),
    planner="model",
    judge="relevance",
    critic="model",
    drafts=1,
    floor=0.3,
    share=0.5,
    evidence=Budget(6, 400),
)

_EMG = Recipe(
    "graph",
    "editable memory graph, walked by the learned policy (Wang et al. 2024)",
    ("history", "claims"),
    "reply",
    (_GRAPH,),
    selector="policy",
    evidence=Budget(10, 400),
)

MECHANISM = Mechanism(
    "recipes",
    "the compositions that users choose from",
    recipes=(
        Recipe(
            "default",
            "history, conditional notes, running memory and claims; words and vectors together",
            ("history", "conditional", "recursive", "claims"),
            "reply",
            (
                SourceSpec("history", k=4),
                SourceSpec("notes", k=3),
                SourceSpec("profile", k=3),
                SourceSpec("summary", k=1),
                _GRAPH,
                SourceSpec("persona", "persona", 2),
                _DOCUMENTS,
            ),
            ("profile", "summary"),
            selector="policy",
            planner="rules",
            floor=0.25,
            share=0.3,
        ),
        _SOURCES,
        Recipe("none", "no memory: the running session alone"),
        Recipe("history", "every utterance, top 3 by cosine (Yuan et al. 2023)", ("history",), sources=(_HISTORY,)),
        Recipe("summary", "one summary a session, top 1 by cosine", ("history", "summary"), sources=(_SESSIONS,)),
        _CONDITIONAL,
        Recipe("recursive", "one running memory (Wang et al. 2023)", ("history", "recursive"), system=("summary",)),
        Recipe(
            "profile",
            "the profile alone: what is claimed of the user",
            ("history", "claims"),
            "reply",
            system=("profile",),
        ),
        _EMG,
    ),
)
