"""Cross-encoders fine-tuned on pairs: consistency of a reply with what it rests on (NLI;
Wang et al. 2024, section 5.4), and relevance of a piece to a dialogue."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nyima.errors import InputError
from nyima_lab.measure.grounded import Sample
from nyima_lab.train.loop import Fitted, Schedule, TrainingReport, batched, choose_device, fingerprint, fit, torch_here
from nyima_lab.train.pieces import Encoder, load_encoder, new_tokenizer
from nyima_lab.train.retriever import query_text, texts_of

__all__ = ["LabelledPair", "consistency_pairs", "relevance_pairs", "train_pairs"]


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two texts and whether they belong together."""

    first: str
    second: str
    label: float
    kind: str


def consistency_pairs(samples: Sequence[Sample], seed: int = 0) -> list[LabelledPair]:
    """(grounding, reply): those that belong together; as many of the same dialogue that do
    not, and as many with a piece of another dialogue."""
    draw = random.Random(seed)  # noqa: S311 - sampling
    elsewhere = [(p, s.group) for s in samples for p in s.pieces]
    found: list[LabelledPair] = []
    for sample in samples:
        for piece in (p for p in sample.pieces if p.id in sample.gold):
            found.append(LabelledPair(piece.text, sample.reply, 1.0, "grounded"))
            near = [p for p in sample.of(piece.source) if p.id not in sample.gold]
            if near:
                found.append(LabelledPair(draw.choice(near).text, sample.reply, 0.0, "same dialogue"))
            other = next((p for p, group in draw.choices(elsewhere, k=5) if group != sample.group), None)
            if other is not None:
                found.append(LabelledPair(other.text, sample.reply, 0.0, "elsewhere"))
    return found


def relevance_pairs(samples: Sequence[Sample], turns: int | None = 2, seed: int = 0) -> list[LabelledPair]:
    """(piece, dialogue): what the reply used, and twice as many that it did not."""
    draw = random.Random(seed)  # noqa: S311 - sampling
    found: list[LabelledPair] = []
    for sample in samples:
        query = query_text(sample.lines(turns))
        for piece in (p for p in sample.pieces if p.id in sample.gold):
            found.append(LabelledPair(piece.text, query, 1.0, "used"))
            rest = [p for p in sample.of(piece.source) if p.id not in sample.gold]
            found += [LabelledPair(p.text, query, 0.0, "unused") for p in draw.sample(rest, min(2, len(rest)))]
    return found


def train_pairs(
    parts: tuple[Sequence[LabelledPair], Sequence[LabelledPair]], samples: Sequence[Sample], folder: Path,
    schedule: Schedule, note: TrainingReport, base: Path | None = None, shape: tuple[int, int] = (192, 2),
) -> tuple[Encoder, Fitted]:  # fmt: skip
    """A cross-encoder by binary cross-entropy, saved to ``folder`` for the pair scorer."""
    torch_here().manual_seed(schedule.seed)
    train, valid = parts
    if not train or not valid:
        raise InputError("there are no pairs to learn from: give samples whose replies rest on something")
    if base is not None:
        encoder = load_encoder(base) if (base / "head.pt").exists() else Encoder.pretrained(base, pair=True)
    else:
        encoder = Encoder.fresh(new_tokenizer(texts_of(samples)), width=shape[0], layers=shape[1], pair=True)
    encoder.module.to(choose_device(schedule.device))

    def losses(batch: Sequence[LabelledPair]) -> Mapping[str, Any]:
        return {"pairs": _loss(encoder, batch)[0]}

    def validate() -> Mapping[str, float]:
        return _validated(encoder, valid)

    done = fit(
        encoder.module,
        lambda epoch: batched(train, schedule.batch, schedule.seed + epoch, lambda p: len(p.first) + len(p.second)),
        losses, validate, schedule, folder, (fingerprint("pairs", base, shape, *train, *valid), note),
    )  # fmt: skip
    encoder.save(folder)
    return encoder, done


def _loss(encoder: Encoder, batch: Sequence[LabelledPair]) -> tuple[Any, Any]:
    import torch

    logits = encoder.scores([(p.first, p.second) for p in batch])
    labels = torch.tensor([p.label for p in batch], device=logits.device)
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels), logits


def _validated(encoder: Encoder, valid: Sequence[LabelledPair]) -> dict[str, float]:
    total, right = 0.0, dict.fromkeys(sorted({p.kind for p in valid}), 0)
    count = {kind: sum(p.kind == kind for p in valid) for kind in right}
    for start in range(0, len(valid), 64):
        batch = valid[start : start + 64]
        loss, logits = _loss(encoder, batch)
        total += float(loss) * len(batch)
        for pair, logit in zip(batch, logits.tolist(), strict=True):
            right[pair.kind] += (logit > 0) == (pair.label > 0.5)
    shares = {f"right, {kind}": right[kind] / count[kind] for kind in right}
    return {"loss": total / len(valid), "accuracy": sum(right.values()) / len(valid), **shares}
