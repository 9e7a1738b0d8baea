"""Training the judge: a cross-encoder that says whether a message makes something said earlier untrue.

It learns first from public inference pairs (a contradiction makes its premise untrue), then from lives:
each message beside the claims nearest to it, as claims and as the messages that told them.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nyima.domain.ports import Embedder
from nyima.errors import InputError
from nyima.read.outdating import over_pair
from nyima_lab.readers.lives import AnnotatedLife
from nyima_lab.train.pairs import LabelledPair

__all__ = ["inference_pairs", "life_pairs", "quantized", "read_told"]

_NEAREST = 5
_OTHERS = 1
_LONGEST_PREMISE = 400


def read_told(paths: Iterable[Path]) -> dict[str, Mapping[str, str]]:
    """Read how the claims of lives were told: of each life, a message for each claim's id. Raises InputError."""
    found: dict[str, Mapping[str, str]] = {}
    for path in paths:
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                found[row["life"]] = dict(row["told"])
            except (ValueError, LookupError, TypeError) as error:
                raise InputError(f"{path}, line {number}: {error!r}: give life and told") from error
    return found


async def life_pairs(
    lives: Sequence[AnnotatedLife], told: Mapping[str, Mapping[str, str]], embedder: Embedder, seed: int = 0
) -> list[LabelledPair]:
    """Return each message with its five nearest claims, with those that it makes untrue, and with one of the
    others: as a claim, and as the message that told it, where that is known."""
    draw = random.Random(seed)  # noqa: S311 - sampling
    found: list[LabelledPair] = []
    for life in lives:
        texts = {id: f"{c.who} {c.what}: {c.value}" for id, c in life.claims.items()}
        claims = _matrix(await embedder.embed(list(texts.values())))
        messages = _matrix(await embedder.embed([m.text for m in life.messages]))
        for message, vector in zip(life.messages, messages, strict=True):
            nearest = [list(texts)[i] for i in np.argsort(-(claims @ vector))]
            chosen, rest = nearest[:_NEAREST], [id for id in nearest[_NEAREST:] if id not in message.over]
            chosen += [id for id in nearest[_NEAREST:] if id in message.over]
            chosen += draw.sample(rest, min(_OTHERS, len(rest)))
            for id in chosen:
                label = float(id in message.over)
                found.append(LabelledPair(*over_pair(message.text, texts[id]), label, "claim"))
                if (said := told.get(life.id, {}).get(id)) is not None:
                    found.append(LabelledPair(*over_pair(message.text, said), label, "told"))
    return found


def _matrix(vectors: Sequence[bytes]) -> NDArray[np.float32]:
    return np.array([np.frombuffer(vector, "<f4") for vector in vectors], np.float32)


def inference_pairs(paths: Iterable[Path]) -> list[LabelledPair]:
    """Read tables of inference pairs (ConjNLI; the negation sets of Hossain et al. 2020): what contradicts a
    hypothesis makes it untrue. Raises InputError."""
    found: list[LabelledPair] = []
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                premise, hypothesis = row.get("Premise") or row.get("Text"), row.get("Hypothesis")
                label = row.get("Label") or row.get("gold_label")
                if not premise or not hypothesis or not label:
                    raise InputError(f"{path} is no table of inference pairs: it needs premise, hypothesis and label")
                if len(premise) < _LONGEST_PREMISE and label in {"entailment", "neutral", "contradiction"}:
                    pair = over_pair(premise, hypothesis)
                    found.append(LabelledPair(*pair, float(label == "contradiction"), "inference"))
    return found


def quantized(model: Path, to: Path) -> None:
    """Write a model with weights of eight bits."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    to.parent.mkdir(parents=True, exist_ok=True)
    quantize_dynamic(model, to, weight_type=QuantType.QInt8, per_channel=True)
