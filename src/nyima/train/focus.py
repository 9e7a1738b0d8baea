"""The baseline FoCus (Jang et al. 2022): grounding as classification, jointly with
generation. A head on the causal model says of each sentence of the persona whether it is
used (sigmoid) and which document is (softmax); there are no acting tokens and no scores."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nyima.adapters.unified import Design, Laid, Layout, UnifiedModel, packages
from nyima.evals.grounded import Piece, Sample
from nyima.train.loop import Fitted, Note, Schedule, batched, choose_device, fingerprint, fit
from nyima.train.unified import Recipe, new_model, padded

__all__ = ["Focus", "train_focus"]

_TURNS = 3
_DOCUMENTS = 4


class Focus:
    """A trained FoCus: grounds and replies."""

    def __init__(self, model: Any, head: Any, layout: Layout) -> None:
        self.model, self.head, self.layout = model, head, layout
        self.reader = UnifiedModel(Path(), loaded=(model, layout))

    def ground(self, sample: Sample) -> tuple[Piece, ...]:
        """The pieces that the reply is to rest on: the sentences of persona and profile with
        a chance of at least one half, and the likeliest document of those."""
        import torch

        with torch.inference_mode():
            scores = {p.id: s for p, s in zip(sample.pieces, self._scores(sample, sample.pieces), strict=True)}
        used = [p for p in sample.pieces if p.source != "documents" and scores[p.id] >= 0.0]
        documents = sample.of("documents", (p.id for p in used))
        return (*used, *sorted(documents, key=lambda p: -scores[p.id])[:1])

    def _scores(self, sample: Sample, pieces: Sequence[Piece]) -> list[float]:
        found: list[float] = []
        for start in range(0, len(pieces), 8):
            laid = _candidates(self.layout, sample, pieces[start : start + 8])
            hidden = _hidden(self.model, [laid], self.layout)
            found += self.head(hidden[0, list(_ends(laid, self.layout))]).squeeze(-1).tolist()
        return found

    async def reply(self, sample: Sample, pieces: Sequence[Piece]) -> str:
        """The reply from some pieces."""
        shown = [(p.source, p.text, 1.0) for p in pieces]
        return "".join([part async for part in self.reader.reply(sample.lines(_TURNS), (), shown)])


def _candidates(layout: Layout, sample: Sample, pieces: Sequence[Piece]) -> Laid:
    return layout.whole(sample.lines(_TURNS), (), [(p.source, p.text, 0.0) for p in pieces], None)


def _ends(laid: Laid, layout: Layout) -> list[int]:
    """Where each candidate ends."""
    return [i for i, id in enumerate(laid.ids) if id == layout.ids["[EOE]"]]


def _hidden(model: Any, batch: Sequence[Laid], layout: Layout) -> Any:
    given = padded(batch, layout, next(model.parameters()).device)
    return model.base_model(**given, use_cache=False).last_hidden_state


def train_focus(
    parts: tuple[Sequence[Sample], Sequence[Sample]], folder: Path, schedule: Schedule, note: Note,
    shape: tuple[int, int] = (192, 4),
) -> tuple[Focus, Fitted]:  # fmt: skip
    """Train grounding and generation together, from nothing."""
    torch, _ = packages()
    torch.manual_seed(schedule.seed)
    sources = tuple(sorted({p.source for s in parts[0] for p in s.pieces}))
    model, layout = new_model(parts[0], Recipe(Design(sources, scored=False, name="focus"), shape=shape))
    head = torch.nn.Linear(shape[0], 1)
    both = torch.nn.ModuleList([model, head]).to(choose_device(schedule.device))
    focus = Focus(model, head, layout)

    def batches(epoch: int) -> Sequence[Sequence[Sample]]:
        return batched(parts[0], schedule.batch, schedule.seed + epoch, lambda s: len(s.reply))

    def losses(batch: Sequence[Sample]) -> Mapping[str, Any]:
        return _losses(focus, batch, random.Random(f"{schedule.seed}/{batch[0].id}"))  # noqa: S311 - sampling

    def validate() -> Mapping[str, float]:
        total: dict[str, float] = {}
        chunks = [parts[1][i : i + schedule.batch] for i in range(0, len(parts[1]), schedule.batch)]
        for chunk in chunks:
            for name, value in _losses(focus, chunk, random.Random(0)).items():  # noqa: S311 - sampling
                total[name] = total.get(name, 0.0) + float(value) / len(chunks)
        return {"loss": sum(total.values()), **total}

    done = fit(
        both,
        batches,
        losses,
        validate,
        schedule,
        folder,
        (fingerprint("focus", shape, *(s.id for part in parts for s in part)), note),
    )
    both.cpu().eval()
    return focus, done


def _losses(focus: Focus, batch: Sequence[Sample], draw: random.Random) -> dict[str, Any]:
    import torch

    model, layout = focus.model, focus.layout
    chosen: list[list[Piece]] = []
    for sample in batch:
        persona = [p for p in sample.pieces if p.source != "documents"]
        used = [p for p in sample.of("documents") if p.id in sample.gold][:1]
        others = [p for p in sample.of("documents") if p.id not in sample.gold]
        chosen.append([*persona, *used, *draw.sample(others, min(_DOCUMENTS - len(used), len(others)))])
    laid = [_candidates(layout, s, pieces) for s, pieces in zip(batch, chosen, strict=True)]
    hidden = _hidden(model, laid, layout)
    persona_loss, document_loss = list[Any](), list[Any]()
    for i, (sample, pieces) in enumerate(zip(batch, chosen, strict=True)):
        scores = focus.head(hidden[i, _ends(laid[i], layout)]).squeeze(-1)
        count = sum(p.source != "documents" for p in pieces)
        truth = torch.tensor([float(p.id in sample.gold) for p in pieces[:count]], device=scores.device)
        persona_loss.append(torch.nn.functional.binary_cross_entropy_with_logits(scores[:count], truth))
        if count < len(pieces) and pieces[count].id in sample.gold:
            document_loss.append(-torch.log_softmax(scores[count:], 0)[0])
    found = {"persona": torch.stack(persona_loss).mean(), "reply": _reply_loss(focus, batch)}
    if document_loss:
        found["documents"] = torch.stack(document_loss).mean()
    return found


def _reply_loss(focus: Focus, batch: Sequence[Sample]) -> Any:
    import torch

    layout = focus.layout
    laid = [
        layout.whole(
            s.lines(_TURNS), (), [(p.source, p.text, 1.0) for p in s.pieces if p.id in s.gold], s.reply
        )
        for s in batch
    ]  # fmt: skip
    hidden = _hidden(focus.model, laid, layout)
    rows = [(i, at) for i, x in enumerate(laid) for at in x.reply]
    target = torch.tensor([laid[i].ids[at] for i, at in rows], device=hidden.device)
    logits = focus.model.get_output_embeddings()(hidden[[i for i, _ in rows], [at - 1 for _, at in rows]])
    return torch.nn.functional.cross_entropy(logits, target)
