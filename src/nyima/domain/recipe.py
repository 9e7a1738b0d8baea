"""A recipe: which role is filled by what, and what each source may bring. The product's default,
each mechanism of the papers, each ablation and each baseline is one value; the code paths are
the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nyima.domain.evidence import Budget

__all__ = ["Recipe", "SourceSpec", "Weights"]


@dataclass(frozen=True, slots=True)
class Weights:
    """How candidates are scored.

    Scores of each arm are divided by the query's best, so 1.0 is the best hit of an arm.
    ``near`` is the share of its own score that a turn gives its neighbours at distance
    1, 2, …; ``session`` is what the session of the best hits adds; ``period`` is what a
    record gains for lying in the period that the query names.
    """

    words: float = 1.0
    vector: float = 0.7
    near: tuple[float, ...] = (0.3, 0.15)
    session: float = 0.5
    period: float = 0.5


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source to ask: ``how`` is the name of a retriever (hybrid, words, vector, reciprocal, walk or
    persona; the laboratory has more); ``k`` the most pieces that it may bring into a reply. ``after`` are the
    sources that it depends on, ``turns`` how many utterances of the dialogue are searched
    with, ``region`` the one document or session that it looks at."""

    name: str
    how: str = "hybrid"
    k: int = 3
    weights: Weights = field(default_factory=Weights)
    after: tuple[str, ...] = ()
    turns: int = 0
    region: str = ""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A composition.

    ``writers``: what is made of turns. ``gate``: ``reply`` (decided in the reply's call),
    ``all`` (everything is kept) or ``off``. ``sources``: asked for each query.
    ``system``: what stands in the system message (``profile``, ``summary``).
    ``selector``: ``budget`` (a rule) or ``policy`` (the walk over the graph); ``from_root``
    walks from the user's node instead of the activated ones.
    ``planner``: ``all``, ``rules``, ``model``, ``classifier`` or ``trained``.
    ``judge``: ``scores``, ``reflect`` with at most ``rounds`` further searches,
    ``choose`` (a model picks by number), ``decompose`` (sub-questions are answered first), or
    relevance by ``relevance`` (a prompted model), ``cross-encoder`` or ``trained``.
    ``scored``: the reader sees the relevance. ``reader``: ``model`` or ``trained``.
    ``critic``: empty (off), ``model`` or ``nli``, with at most ``drafts`` further drafts, each
    with ``alpha`` pieces replaced. ``own``: the user's own sources are asked, too.
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
    selector: str = "budget"
    from_root: bool = False
    rounds: int = 0
    planner: str = "all"
    scored: bool = True
    reader: str = "model"
    critic: str = ""
    drafts: int = 0
    alpha: int = 1
    own: bool = True
    floor: float = 0.0
    share: float = 0.0
    parts: tuple[str, ...] = ("context", "knowledge")
    past: bool = False
    evidence: Budget = field(default_factory=lambda: Budget(6, 220))
    room: Mapping[str, int] = field(
        default_factory=lambda: {"persona": 200, "profile": 200, "summary": 320, "shots": 400, "dialogue": 900}
    )

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that write: those that are named, what mends a text that states what has
        changed, and what reads turns one by one where they are to be looked at."""
        reads = ("claims",) if self.gate == "reply" and "claims" not in self.writers else ()
        return (*self.writers, "mend", *reads)

    @property
    def takes_notes(self) -> bool:
        """Whether the reply's call also notes what to keep."""
        return self.gate == "reply"
