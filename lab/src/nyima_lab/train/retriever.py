"""Fine-tuned retrievers: two encoders with in-batch and hard negatives (Karpukhin et al.
2020; Wang et al. 2024, equations 5 and 6), and retriever with re-ranker trained list-wise
together (Ren et al. 2021, RocketQAv2)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nyima.errors import InputError
from nyima_lab.measure.grounded import Sample
from nyima_lab.train.loop import Fitted, Schedule, TrainingReport, batched, choose_device, fingerprint, fit, torch_here
from nyima_lab.train.pieces import Encoder, new_tokenizer

__all__ = ["Wanted", "query_text", "texts_of", "train_list_wise", "train_two_encoder", "wanted_of"]

_HEAT = 0.05
"""The softmax's temperature. The paper has none; cosines alone cannot tell apart more
than e² to one."""
_MARKS = {"user": "[U]", "assistant": "[A]"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query with the piece that it needs, and others of the same source that it does not."""

    query: str
    piece: str
    others: tuple[str, ...]


def query_text(lines: Sequence[tuple[str, str]]) -> str:
    """A dialogue as a query: each utterance after a mark for its speaker."""
    return " ".join(f"{_MARKS.get(role, '[U]')} {text}" for role, text in lines)


def wanted_of(samples: Sequence[Sample], turns: int | None = 2) -> list[Wanted]:
    """What each sample needs of each source."""
    found: list[Wanted] = []
    for sample in samples:
        query = query_text(sample.lines(turns))
        for piece in sample.pieces:
            if piece.id in sample.gold:
                others = tuple(
                    p.text for p in sample.of(piece.source) if p.id not in sample.gold and p.text != piece.text
                )
                found.append(Wanted(query, piece.text, others))
    if not found:
        raise InputError("no sample needs a source: there is nothing to learn retrieval from")
    return found


def texts_of(samples: Sequence[Sample]) -> list[str]:
    """All texts once, for a tokenizer."""
    return list(
        dict.fromkeys(
            t for s in samples for t in (s.message, s.reply, *(x for _, x in s.dialogue), *(p.text for p in s.pieces))
        )
    )


def _new(samples: Sequence[Sample], base: Path | None, width: int, layers: int) -> Encoder:
    if base is not None:
        return Encoder.pretrained(base)
    return Encoder.fresh(new_tokenizer(texts_of(samples)), width=width, layers=layers)


def train_two_encoder(
    parts: tuple[Sequence[Sample], Sequence[Sample]], folder: Path, schedule: Schedule, note: TrainingReport,
    base: Path | None = None, shape: tuple[int, int] = (192, 2),
) -> tuple[Encoder, Fitted]:  # fmt: skip
    """Both encoders in one (shared weights), saved to ``folder`` for the embedder.

    ``parts`` are samples to learn from and to validate on; ``base`` a pretrained encoder,
    else one of ``shape`` (width, layers) from nothing."""
    torch_here().manual_seed(schedule.seed)
    train, valid = wanted_of(parts[0]), wanted_of(parts[1])
    encoder = _new(parts[0], base, *shape)
    encoder.module.to(choose_device(schedule.device))
    draw = random.Random(schedule.seed)  # noqa: S311 - sampling

    def losses(batch: Sequence[Wanted], hard: int = 1) -> Mapping[str, Any]:
        return {"retrieval": _contrast(encoder, batch, hard, draw)}

    def validate() -> Mapping[str, float]:
        return _first_share(encoder, valid)

    done = fit(
        encoder.module, lambda epoch: batched(train, schedule.batch, schedule.seed + epoch, lambda w: len(w.query)), losses,
        validate, schedule, folder, (fingerprint("two-encoder", base, shape, *(w for part in (train, valid) for w in part)), note),
    )  # fmt: skip
    encoder.save(folder)
    return encoder, done


def _contrast(encoder: Encoder, batch: Sequence[Wanted], hard: int, draw: random.Random) -> Any:
    """The negative logarithm of the share of the wanted piece among those of the batch and
    ``hard`` others of its own source."""
    import torch

    others = [o for w in batch for o in draw.sample(w.others, min(hard, len(w.others)))]
    texts = [*(w.piece for w in batch), *others]
    similar = encoder.vectors([w.query for w in batch]) @ encoder.vectors(texts).T / _HEAT
    wanted: dict[str, set[str]] = {}
    for w in batch:
        wanted.setdefault(w.query, set()).add(w.piece)
    same = torch.tensor([[b in wanted[a.query] and i != j for j, b in enumerate(texts)] for i, a in enumerate(batch)])
    similar = similar.masked_fill(same.to(similar.device), -1e4)
    return torch.nn.functional.cross_entropy(similar, torch.arange(len(batch), device=similar.device))


def _first_share(encoder: Encoder, valid: Sequence[Wanted]) -> dict[str, float]:
    """The loss and Recall@1 of each wanted piece among all of its source in its dialogue."""
    import torch

    total, first = 0.0, 0
    for start in range(0, len(valid), 32):
        some = valid[start : start + 32]
        texts = [t for w in some for t in (w.piece, *w.others)]
        queries, pieces = encoder.vectors([w.query for w in some]), encoder.vectors(texts)
        at = 0
        for i, w in enumerate(some):
            row = pieces[at : at + 1 + len(w.others)] @ queries[i] / _HEAT
            at += 1 + len(w.others)
            total += float(-torch.log_softmax(row, 0)[0])
            first += int(row.argmax() == 0)
    return {"loss": total / len(valid), "recall_1": first / len(valid)}


class _Pair:
    """A retriever and a re-ranker as one module to train."""

    def __init__(self, retriever: Encoder, ranker: Encoder) -> None:
        import torch

        self.retriever, self.ranker = retriever, ranker
        self.module = torch.nn.ModuleList([retriever.module, ranker.module])


def train_list_wise(
    parts: tuple[Sequence[Sample], Sequence[Sample]], folder: Path, schedule: Schedule, note: TrainingReport,
    base: Path | None = None, shape: tuple[int, int] = (192, 2),
) -> tuple[Encoder, Encoder, Fitted]:  # fmt: skip
    """Retriever and re-ranker over one list of candidates a query: the re-ranker learns the
    wanted piece, the retriever's distribution follows the re-ranker's (Ren et al. 2021,
    section 4). Saved to ``folder/retriever`` and ``folder/ranker``."""
    torch_here().manual_seed(schedule.seed)
    train, valid = wanted_of(parts[0]), wanted_of(parts[1])
    retriever = _new(parts[0], base, *shape)
    if base is not None:
        ranker = Encoder.pretrained(base, pair=True)
    else:
        ranker = Encoder.fresh(retriever.tokenizer, width=shape[0], layers=shape[1], pair=True)
    both = _Pair(retriever, ranker)
    both.module.to(choose_device(schedule.device))
    draw = random.Random(schedule.seed)  # noqa: S311 - sampling
    listed = [w for w in train if w.others]

    def losses(batch: Sequence[Wanted]) -> Mapping[str, Any]:
        return _list_losses(both, batch, draw)

    def validate() -> Mapping[str, float]:
        found = _first_share(retriever, valid)
        return {**found, "ranker_1": _ranker_share(ranker, valid)}

    done = fit(
        both.module, lambda epoch: batched(listed, schedule.batch, schedule.seed + epoch, lambda w: len(w.query)), losses,
        validate, schedule, folder, (fingerprint("list-wise", base, shape, *(w for part in (train, valid) for w in part)), note),
    )  # fmt: skip
    retriever.save(folder / "retriever")
    ranker.save(folder / "ranker")
    return retriever, ranker, done


def _list_losses(both: _Pair, batch: Sequence[Wanted], draw: random.Random, most: int = 2) -> Mapping[str, Any]:
    import torch

    size = 1 + min(most, *(len(w.others) for w in batch))
    lists = [[w.piece, *draw.sample(w.others, size - 1)] for w in batch]
    flat = [text for row in lists for text in row]
    queries = both.retriever.vectors([w.query for w in batch])
    pieces = both.retriever.vectors(flat)
    found = torch.log_softmax(torch.einsum("bd,bnd->bn", queries, pieces.view(len(batch), size, -1)) / _HEAT, 1)
    pairs = [(text, w.query) for w, row in zip(batch, lists, strict=True) for text in row]
    ranks = torch.log_softmax(both.ranker.scores(pairs).view(len(batch), size), 1)
    return {
        "re-ranker": -ranks[:, 0].mean(),
        "distillation": torch.nn.functional.kl_div(found, ranks.detach(), log_target=True, reduction="batchmean"),
        "in-batch": _contrast(both.retriever, batch, 1, draw),
    }


def _ranker_share(ranker: Encoder, valid: Sequence[Wanted], most: int = 300) -> float:
    first = 0
    for w in valid[:most]:
        row = ranker.scores([(text, w.query) for text in (w.piece, *w.others)])
        first += int(row.argmax() == 0)
    return first / max(1, min(most, len(valid)))
