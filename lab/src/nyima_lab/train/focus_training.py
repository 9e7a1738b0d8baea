"""The baseline FoCus (Jang et al. 2022): grounding as classification, jointly with
generation. A head on the causal model says of each sentence of the persona whether it is
used (sigmoid) and which document is (softmax); there are no acting tokens and no scores."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nyima_lab.measure.grounded import Piece, Sample
from nyima_lab.models.focus import FocusModel, candidates, ends
from nyima_lab.models.unified import Design, Laid, Layout, packages
from nyima_lab.train.loop import Fitted, Schedule, TrainingReport, batched, choose_device, fingerprint, fit
from nyima_lab.train.unified_training import TrainingRecipe, new_model, order_of, padded

__all__ = ["train_focus"]

_DOCUMENTS = 4


@dataclass(frozen=True, slots=True)
class _Net:
    """What is trained."""

    model: Any
    head: Any
    layout: Layout

    def hidden(self, batch: Sequence[Laid]) -> Any:
        """The last states (batch, length, width)."""
        given = padded(batch, self.layout, next(self.model.parameters()).device)
        return self.model.base_model(**given, use_cache=False).last_hidden_state


def train_focus(
    parts: tuple[Sequence[Sample], Sequence[Sample]], folder: Path, schedule: Schedule, note: TrainingReport,
    recipe: TrainingRecipe | None = None,
) -> tuple[FocusModel, Fitted]:  # fmt: skip
    """Train grounding and generation together, from nothing; ``folder`` gets what
    ``FocusModel`` reads. Of the recipe the shape and the turns are used."""
    torch, _ = packages()
    torch.manual_seed(schedule.seed)
    folder.mkdir(parents=True, exist_ok=True)
    recipe = recipe or TrainingRecipe(Design(order_of(parts[0])))
    recipe = replace(recipe, design=replace(recipe.design, mask=True, scored=False, name="focus"))
    model, layout = new_model(parts[0], recipe)
    head = torch.nn.Linear(recipe.shape[0], 1)
    both = torch.nn.ModuleList([model, head]).to(choose_device(schedule.device))
    net = _Net(model, head, layout)

    def batches(epoch: int) -> Sequence[Sequence[Sample]]:
        return batched(parts[0], schedule.batch, schedule.seed + epoch, lambda s: len(s.reply))

    def losses(batch: Sequence[Sample]) -> Mapping[str, Any]:
        return _losses(net, batch, random.Random(f"{schedule.seed}/{batch[0].id}"))  # noqa: S311 - sampling

    def validate() -> Mapping[str, float]:
        total: dict[str, float] = {}
        chunks = [parts[1][i : i + schedule.batch] for i in range(0, len(parts[1]), schedule.batch)]
        for chunk in chunks:
            for name, value in _losses(net, chunk, random.Random(0)).items():  # noqa: S311 - sampling
                total[name] = total.get(name, 0.0) + float(value) / len(chunks)
        return {"loss": sum(total.values()), **total}

    kept = fingerprint("focus", recipe, *(s.id for part in parts for s in part))
    done = fit(both, batches, losses, validate, schedule, folder, (kept, note))
    both.cpu().eval()
    model.save_pretrained(folder)
    layout.tokenizer.save(str(folder / "tokenizer.json"))
    recipe.design.save(folder)
    trained = FocusModel(folder, loaded=(model, layout, head))
    trained.save_head()
    return trained, done


def _losses(net: _Net, batch: Sequence[Sample], draw: random.Random) -> dict[str, Any]:
    import torch

    layout = net.layout
    chosen: list[list[Piece]] = []
    for sample in batch:
        persona = [p for p in sample.pieces if p.source != "documents"]
        used = [p for p in sample.of("documents") if p.id in sample.gold][:1]
        others = [p for p in sample.of("documents") if p.id not in sample.gold]
        chosen.append([*persona, *used, *draw.sample(others, min(_DOCUMENTS - len(used), len(others)))])
    laid = [
        candidates(layout, s.lines(layout.design.turns), [(p.source, p.text) for p in pieces])
        for s, pieces in zip(batch, chosen, strict=True)
    ]
    hidden = net.hidden(laid)
    persona_loss, document_loss = list[Any](), list[Any]()
    for i, (sample, pieces) in enumerate(zip(batch, chosen, strict=True)):
        scores = net.head(hidden[i, ends(laid[i], layout)]).squeeze(-1)
        count = sum(p.source != "documents" for p in pieces)
        truth = torch.tensor([float(p.id in sample.gold) for p in pieces[:count]], device=scores.device)
        persona_loss.append(torch.nn.functional.binary_cross_entropy_with_logits(scores[:count], truth))
        if count < len(pieces) and pieces[count].id in sample.gold:
            document_loss.append(-torch.log_softmax(scores[count:], 0)[0])
    found = {"persona": torch.stack(persona_loss).mean(), "reply": _reply_loss(net, batch)}
    if document_loss:
        found["documents"] = torch.stack(document_loss).mean()
    return found


def _reply_loss(net: _Net, batch: Sequence[Sample]) -> Any:
    import torch

    layout = net.layout
    laid = [
        layout.whole(
            s.lines(layout.design.turns), (), [(p.source, p.text, 1.0) for p in s.pieces if p.id in s.gold], s.reply
        )
        for s in batch
    ]  # fmt: skip
    hidden = net.hidden(laid)
    rows = [(i, at) for i, x in enumerate(laid) for at in x.reply]
    target = torch.tensor([laid[i].ids[at] for i, at in rows], device=hidden.device)
    logits = net.model.get_output_embeddings()(hidden[[i for i, _ in rows], [at - 1 for _, at in rows]])
    return torch.nn.functional.cross_entropy(logits, target)
