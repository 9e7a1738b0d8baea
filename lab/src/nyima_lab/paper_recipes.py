"""The recipes of the papers, their ablations and the baselines."""

from __future__ import annotations

from dataclasses import replace

from nyima.app.recipes import MECHANISM as PRODUCT
from nyima.domain.evidence import Budget
from nyima.domain.mechanism import Mechanism
from nyima.domain.recipe import Recipe, SourceSpec, Weights

__all__ = ["MECHANISM"]

_PRODUCT = {recipe.name: recipe for recipe in PRODUCT.recipes}
_SOURCES, _CONDITIONAL, _EMG = _PRODUCT["sources"], _PRODUCT["conditional"], _PRODUCT["graph"]
_PLAIN = Weights(near=(), session=0.0, period=0.0)
_HISTORY = SourceSpec("history", "vector", 3, _PLAIN)
_NOTES = SourceSpec("notes", "vector", 3, _PLAIN)
_SESSIONS = SourceSpec("summary", "vector", 1, _PLAIN)

_WORDS = SourceSpec("history", "words", 3, _PLAIN)
_GRAPH = SourceSpec("graph", "walk", 3, replace(_PLAIN, words=0.5))
_VIEWS = {
    "history": ("history", _HISTORY),
    "summary": ("summary", _SESSIONS),
    "conditional": ("conditional", _NOTES),
}


def _views(name: str, *, reflects: bool = False) -> Recipe:
    """Views of the memory that are joined by ``+`` (Yuan et al. 2023, tables 3 and 5)."""
    chosen = [_VIEWS[view] for view in name.split("+")]
    return Recipe(
        f"{name}+reflection" if reflects else name,
        f"{' and '.join(name.split('+'))} together{', with one round of self-reflection' if reflects else ''}",
        tuple(dict.fromkeys(("history", *(writer for writer, _ in chosen)))),
        "reply" if "conditional" in name else "off",
        tuple(source for _, source in chosen),
        judge="reflect" if reflects else "scores",
        rounds=1 if reflects else 0,
        evidence=Budget(7, 400) if len(chosen) > 1 else Budget(6, 220),
    )


MECHANISM = Mechanism(
    "paper recipes",
    "the compositions of the papers, their ablations and the baselines",
    recipes=(
        replace(
            _SOURCES,
            name="encoders",
            about="a classifier over an encoder plans, a trained cross-encoder judges (baseline of Wang et al. 2024)",
            planner="classifier",
            judge="cross-encoder",
            critic="nli",
        ),
        replace(
            _SOURCES,
            name="safari",
            about="planned sources, all of the evidence without scores (Wang et al. 2023, prompted)",
            judge="scores",
            scored=False,
            critic="",
            drafts=0,
            floor=0.0,
            share=0.0,
        ),
        replace(
            _SOURCES,
            name="unified",
            about="one trained model plans, scores and replies; trained critic (Wang et al. 2024)",
            planner="trained",
            judge="trained",
            reader="trained",
            critic="nli",
        ),
        *(_views(pair) for pair in ("conditional+history", "conditional+summary", "history+summary")),
        *(_views(view, reflects=True) for view in ("history", "summary", "conditional", "conditional+summary")),
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
        Recipe(
            "recursive+bm25",
            "running memory and retrieved utterances in one prompt (Wang et al. 2023, section 6.6)",
            ("history", "recursive"),
            sources=(_WORDS,),
            system=("summary",),
        ),
        Recipe(
            "recursive+two-encoder",
            "running memory and utterances by two encoders in one prompt",
            ("history", "recursive"),
            sources=(_HISTORY,),
            system=("summary",),
        ),
        Recipe(
            "recursive+context",
            "running memory in front of the whole past dialogue (Wang et al. 2023, table 9)",
            ("history", "recursive"),
            system=("summary",),
            past=True,
        ),
        Recipe(
            "gold-memory",
            "a memory that people wrote stands in the prompt (Wang et al. 2023, table 5)",
            ("history",),
            system=("summary",),
        ),
        Recipe(
            "memorybank",
            "dated day summaries, an overall summary and a portrait, forgetting (Zhong et al. 2023)",
            ("history", "memorybank"),
            sources=(replace(_HISTORY, how="fading"), replace(_SESSIONS, how="fading", k=2)),
            system=("summary",),
            evidence=Budget(5, 300),
        ),
        Recipe(
            "memochat",
            "memos per topic: written, chosen, then the reply (Lu et al. 2023)",
            ("history", "memochat"),
            sources=(SourceSpec("memos", "all", 24, _PLAIN),),
            judge="choose",
            evidence=Budget(3, 400),
        ),
        Recipe("context-only", "the whole past dialogue, cut to the window from the oldest", ("history",), past=True),
        replace(_EMG, name="graph-from-root", about="ablation: the walk starts at the user", from_root=True),
        Recipe(
            "graph-top",
            "claims by cosine, top 3, without a walk",
            ("history", "claims"),
            "reply",
            (replace(_GRAPH, how="vector"),),
        ),
        Recipe(
            "niah",
            "every memory in the prompt, as far as the window goes (Briakou et al. 2023)",
            ("history", "memories"),
            sources=(SourceSpec("graph", "every", 2_000, _PLAIN),),
            evidence=Budget(2_000, 2_400),
        ),
        Recipe(
            "naive",
            "memories that are only added, top 5 by cosine",
            ("history", "memories"),
            sources=(SourceSpec("graph", "vector", 5, _PLAIN),),
        ),
        Recipe(
            "m-rag",
            "memories that are only added, from the partition that an agent selects (Wang et al. 2024)",
            ("history", "memories"),
            sources=(SourceSpec("graph", "partition", 5, _PLAIN),),
        ),
        Recipe(
            "keqing",
            "sub-questions, candidates for each, an answer to each, then the reply (Wang et al. 2023)",
            ("history", "memories"),
            sources=(SourceSpec("graph", "hybrid", 8, _PLAIN),),
            judge="decompose",
            rounds=1,
            evidence=Budget(4, 300),
        ),
        Recipe("bm25", "utterances by BM25, k = 3", ("history",), sources=(_WORDS,)),
        Recipe("dense", "utterances by cosine, k = 3", ("history",), sources=(_HISTORY,)),
        Recipe(
            "two-encoder",
            "utterances by a query and a passage encoder, k = 3 (the two embedder settings)",
            ("history",),
            sources=(_HISTORY,),
        ),
        Recipe(
            "fusion",
            "reciprocal rank fusion of BM25 and cosine, k = 3",
            ("history",),
            sources=(SourceSpec("history", "reciprocal", 3, _PLAIN),),
        ),
    ),
)
