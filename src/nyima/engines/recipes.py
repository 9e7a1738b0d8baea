"""Recipes: which role is filled by what. The product's default, each mechanism of the
papers, each ablation and each baseline is one value here; the code paths are the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nyima.domain.evidence import Budget
from nyima.engines.ranking import Weights
from nyima.errors import ConfigError

__all__ = ["RECIPES", "Recipe", "SourceSpec", "recipe_named"]


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source to ask: ``how`` is hybrid, words, vector, reciprocal or all; ``k`` the
    most pieces that it may bring into a reply."""

    name: str
    how: str = "hybrid"
    k: int = 3
    weights: Weights = field(default_factory=Weights)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A composition.

    ``writers``: what is made of turns. ``gate``: ``reply`` (decided in the reply's call),
    ``all`` (everything is kept) or ``off``. ``sources``: asked for each query.
    ``system``: what stands in the system message (``profile``, ``summary``).
    ``judge``: ``scores`` or ``reflect`` with at most ``rounds`` further searches.
    ``floor``: below this relevance of the best piece nothing is recalled; ``share``: nor is
    what has less than this share of the best score. ``past``: the
    whole past dialogue goes into the prompt. ``room``: tokens of each part of it.
    """

    name: str
    about: str
    writers: tuple[str, ...] = ()
    gate: str = "off"
    sources: tuple[SourceSpec, ...] = ()
    system: tuple[str, ...] = ()
    judge: str = "scores"
    rounds: int = 0
    floor: float = 0.0
    share: float = 0.0
    parts: tuple[str, ...] = ("context", "knowledge")
    past: bool = False
    evidence: Budget = field(default_factory=lambda: Budget(6, 220))
    room: Mapping[str, int] = field(
        default_factory=lambda: {"persona": 200, "profile": 200, "summary": 320, "shots": 400, "dialogue": 900}
    )

    @property
    def takes_notes(self) -> bool:
        """Whether the reply's call also notes what to keep."""
        return self.gate == "reply"


_PLAIN = Weights(near=(), session=0.0, period=0.0)
_HISTORY = SourceSpec("history", "vector", 3, _PLAIN)
_NOTES = SourceSpec("notes", "vector", 3, _PLAIN)
_SESSIONS = SourceSpec("summary", "vector", 1, _PLAIN)

_CONDITIONAL = Recipe(
    "conditional", "conditional memory alone (Yuan et al. 2023)", ("history", "conditional"), "reply", (_NOTES,)
)

_ALL = (
    Recipe(
        "default",
        "history, conditional notes, running memory and profile; words and vectors together",
        ("history", "conditional", "recursive", "profile"),
        "reply",
        (SourceSpec("history", k=4), SourceSpec("notes", k=3), SourceSpec("profile", k=3), SourceSpec("summary", k=1)),
        ("profile", "summary"),
        floor=0.35,
        share=0.6,
    ),
    Recipe("none", "no memory: the running session alone"),
    Recipe("history", "every utterance, top 3 by cosine (Yuan et al. 2023)", ("history",), sources=(_HISTORY,)),
    Recipe("summary", "one summary a session, top 1 by cosine", ("history", "summary"), sources=(_SESSIONS,)),
    _CONDITIONAL,
    Recipe(
        "multi-view",
        "history, session summaries and conditional notes together",
        ("history", "summary", "conditional"),
        "reply",
        (_HISTORY, _SESSIONS, _NOTES),
        evidence=Budget(7, 400),
    ),
    Recipe(
        "reflection",
        "conditional notes and summaries with one round of self-reflection",
        ("history", "summary", "conditional"),
        "reply",
        (_NOTES, _SESSIONS),
        judge="reflect",
        rounds=1,
    ),
    replace(_CONDITIONAL, name="no-selection", about="ablation: every user turn becomes a note", gate="all"),
    replace(_CONDITIONAL, name="no-context", about="ablation: notes without context", parts=("knowledge",)),
    replace(_CONDITIONAL, name="no-knowledge", about="ablation: notes without knowledge", parts=("context",)),
    Recipe("recursive", "one running memory (Wang et al. 2023)", ("history", "recursive"), system=("summary",)),
    Recipe(
        "recursive+bm25",
        "running memory and retrieved utterances in one prompt (Wang et al. 2023, section 6.6)",
        ("history", "recursive"),
        sources=(SourceSpec("history", "words", 3, _PLAIN),),
        system=("summary",),
    ),
    Recipe(
        "profile",
        "key/value profile alone, merged at session end",
        ("history", "profile"),
        "reply",
        system=("profile",),
    ),
    Recipe("context-only", "the whole past dialogue, cut to the window from the oldest", ("history",), past=True),
    Recipe("bm25", "utterances by BM25, k = 3", ("history",), sources=(SourceSpec("history", "words", 3, _PLAIN),)),
    Recipe("dense", "utterances by cosine, k = 3", ("history",), sources=(SourceSpec("history", "vector", 3, _PLAIN),)),
    Recipe(
        "fusion",
        "reciprocal rank fusion of BM25 and cosine, k = 3",
        ("history",),
        sources=(SourceSpec("history", "reciprocal", 3, _PLAIN),),
    ),
)

RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in _ALL}


def recipe_named(name: str) -> Recipe:
    """The recipe of that name. Raises ConfigError with the names that exist."""
    if name not in RECIPES:
        raise ConfigError(f"there is no recipe {name!r}: choose one of {', '.join(RECIPES)}")
    return RECIPES[name]
