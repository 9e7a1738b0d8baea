"""Labels of relevance to learn from (Wang et al. 2024, section 4.2.1): hard ones, or soft
ones from a fine-tuned encoder, a prompted model, or BM25."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from nyima.domain.ports import ChatModel
from nyima.errors import ModelGarbled
from nyima.language.words import cut_tokens, words
from nyima.read.judge import RELEVANCE, RelevanceIn
from nyima_lab.measure.asking import ask
from nyima_lab.measure.grounded import Piece, Sample
from nyima_lab.train.loop import TrainingReport
from nyima_lab.train.pieces import Encoder
from nyima_lab.train.retriever import query_text
from nyima_lab.train.unified_training import Labels

__all__ = ["LABELLED", "bm25_labels", "encoder_labels", "hard_labels", "model_labels", "planned_pieces"]

LABELLED = ("hard", "encoder", "model", "bm25")
_TURNS = 2


def planned_pieces(sample: Sample) -> tuple[Piece, ...]:
    """What the planned sources of a sample hold, narrowed to what belongs to the pieces
    that the reply used."""
    used = {p.id for p in sample.pieces if p.id in sample.gold}
    parents = {p.parent for p in sample.pieces if p.id in used and p.parent}
    return tuple(
        p for p in sample.pieces if p.source in sample.plan and (not p.parent or not parents or p.parent in parents)
    )


def hard_labels(samples: Sequence[Sample]) -> Labels:
    """1 for what the reply used, else 0."""
    return {(s.id, p.id): float(p.id in s.gold) for s in samples for p in planned_pieces(s)}


def encoder_labels(encoder: Encoder, samples: Sequence[Sample]) -> Labels:
    """The cosine of dialogue and piece under a fine-tuned encoder, negative ones as 0."""
    import torch

    encoder.body.eval()
    found: dict[tuple[str, str], float] = {}
    known: dict[str, Any] = {}
    with torch.inference_mode():
        for start in range(0, len(samples), 32):
            some = samples[start : start + 32]
            fresh = [t for t in dict.fromkeys(p.text for s in some for p in planned_pieces(s)) if t not in known]
            if fresh:
                known |= dict(zip(fresh, encoder.vectors(fresh), strict=True))
            queries = encoder.vectors([query_text(s.lines(_TURNS)) for s in some])
            for sample, query in zip(some, queries, strict=True):
                for piece in planned_pieces(sample):
                    found[sample.id, piece.id] = round(max(0.0, float(known[piece.text] @ query)), 3)
    return found


def bm25_labels(samples: Sequence[Sample]) -> Labels:
    """BM25 among the sample's own pieces (k1 1.5, b 0.75), divided by the best of them."""
    found: dict[tuple[str, str], float] = {}
    for sample in samples:
        pieces = planned_pieces(sample)
        scores = _bm25(words(sample.message), [words(p.text) for p in pieces])
        best = max(scores, default=0.0) or 1.0
        found |= {(sample.id, p.id): round(s / best, 3) for p, s in zip(pieces, scores, strict=True)}
    return found


def _bm25(query: Sequence[str], texts: Sequence[Sequence[str]], k1: float = 1.5, b: float = 0.75) -> list[float]:
    counts = [Counter(text) for text in texts]
    mean = sum(map(len, texts)) / max(1, len(texts)) or 1.0
    scores: list[float] = []
    for text, count in zip(texts, counts, strict=True):
        total = 0.0
        for word in set(query):
            having = sum(word in c for c in counts)
            rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            total += rarity * count[word] * (k1 + 1) / (count[word] + k1 * (1 - b + b * len(text) / mean))
        scores.append(total)
    return scores


async def model_labels(model: ChatModel, samples: Sequence[Sample], note: TrainingReport) -> Labels:
    """What a prompted model says of each piece by itself; what it says unreadably is 0."""
    found: dict[tuple[str, str], float] = {}
    for number, sample in enumerate(samples, 1):
        dialogue = "\n".join(f"{role}: {cut_tokens(text, 60)}" for role, text in sample.dialogue[-4:]) or "(none)"
        for piece in planned_pieces(sample):
            given = RelevanceIn(dialogue, cut_tokens(sample.message, 150), cut_tokens(piece.text, 90))
            try:
                out = await ask(model, RELEVANCE, given)
            except ModelGarbled:
                found[sample.id, piece.id] = 0.0
                continue
            found[sample.id, piece.id] = out.relevance / 10
        note("labels", number, len(samples))
    return found
