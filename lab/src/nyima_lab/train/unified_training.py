"""Training the model that plans, scores and replies (Wang et al. 2024, section 4.2): the
sum of three losses, the evidence attention mask, LoRA on a given causal model or a small
one from nothing. Without mask and scores it is SAFARI (Wang et al. 2023)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from nyima.errors import InputError, PackError
from nyima_lab.measure.grounded import ORDER, Sample, decision
from nyima_lab.measure.planning import planning_scores
from nyima_lab.models.unified import Design, Laid, Layout, UnifiedModel, allowed, packages
from nyima_lab.train.loop import Fitted, Schedule, TrainingReport, batched, choose_device, fingerprint, fit
from nyima_lab.train.pieces import new_tokenizer
from nyima_lab.train.retriever import texts_of

__all__ = ["Labels", "TrainingRecipe", "evidence_for", "new_model", "order_of", "padded", "train_unified", "tune_plan"]

_BIASES = (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)

Labels = Mapping[tuple[str, str], float]
"""The relevance of a piece to a sample, by their ids, 0..1."""


@dataclass(frozen=True, slots=True)
class TrainingRecipe:
    """What is trained: the design, how many pieces a sample shows, the shape of a new model (width, layers), or ``base``, a causal model (a
    folder of the hub's format, or a GGUF file) that gets LoRA of ``rank``."""

    design: Design
    pieces: int = 3
    shape: tuple[int, int] = (256, 4)
    base: Path | None = None
    rank: int = 16


def new_model(samples: Sequence[Sample], recipe: TrainingRecipe) -> tuple[Any, Layout]:
    """A model that wants training, with its layout."""
    if recipe.base is not None:
        return _adapted(recipe.base, recipe)
    _, transformers = packages()
    tokenizer = new_tokenizer(texts_of(samples), ("[PAD]", "[UNK]", *recipe.design.special))
    width, layers = recipe.shape
    config = transformers.LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=width, intermediate_size=3 * width, num_hidden_layers=layers,
        num_attention_heads=4, max_position_embeddings=512, tie_word_embeddings=True, pad_token_id=0, bos_token_id=None,
        eos_token_id=tokenizer.token_to_id("[END]"),
    )  # fmt: skip
    tokenizer.no_truncation()
    return transformers.LlamaForCausalLM(config), Layout(tokenizer, recipe.design)


def _adapted(base: Path, recipe: TrainingRecipe) -> tuple[Any, Layout]:
    """A pretrained causal model with the new tokens and LoRA; of the old weights none
    changes, of the embeddings only the new rows."""
    torch, transformers = packages()
    try:
        import peft
    except ImportError as error:
        raise PackError("LoRA needs peft: run `pip install 'nyima-lab[train]'`") from error
    folder, more = (base.parent, {"gguf_file": base.name}) if base.is_file() else (base, {})
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, **more)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32, **more
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise InputError(f"{base} holds no causal model: {error}: give a folder of the hub, or a GGUF file") from error
    tokenizer.add_tokens(list(recipe.design.special), special_tokens=True)
    if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
        model.resize_token_embeddings(len(tokenizer))
    inner = tokenizer.backend_tokenizer
    inner.no_truncation()
    ids = [inner.token_to_id(t) for t in recipe.design.special]
    lora = peft.LoraConfig(
        r=recipe.rank, lora_alpha=2 * recipe.rank, lora_dropout=0.05, target_modules="all-linear",
        trainable_token_indices=ids, task_type="CAUSAL_LM",
    )  # fmt: skip
    return peft.get_peft_model(model, lora), Layout(inner, recipe.design)


def evidence_for(sample: Sample, most: int, draw: random.Random, labels: Labels) -> list[tuple[str, str, float]]:
    """What a sample shows: of each planned source what the reply used and others of it, of
    the same parent where there is one; at most ``most`` a source, in any order."""
    found: list[tuple[str, str, float]] = []
    for source in sample.plan:
        used = [p for p in sample.of(source) if p.id in sample.gold]
        near = [p for p in sample.of(source) if p.id not in sample.gold and p.parent in {u.parent for u in used}]
        draw.shuffle(near)
        for piece in [*used, *near][:most]:
            label = labels.get((sample.id, piece.id), float(piece.id in sample.gold))
            found.append((source, piece.text, label))
    draw.shuffle(found)
    return found


def train_unified(
    parts: tuple[Sequence[Sample], Sequence[Sample]], folder: Path, recipe: TrainingRecipe, schedule: Schedule, note: TrainingReport,
    labels: Labels | None = None,
) -> tuple[UnifiedModel, Fitted]:  # fmt: skip
    """Train on the first part, stop by the second; ``folder`` gets the model, its tokenizer
    and design, as ``UnifiedModel`` reads them. Without ``labels`` a piece is worth 1 when
    the reply used it, else 0 (hard labels)."""
    torch, _ = packages()
    torch.manual_seed(schedule.seed)
    folder.mkdir(parents=True, exist_ok=True)
    model, layout = new_model(parts[0], recipe)
    device = choose_device(schedule.device)
    model.to(device)
    known = labels or {}

    def laid(sample: Sample, seed: int) -> Laid:
        draw = random.Random(f"{seed}/{sample.id}")  # noqa: S311 - sampling
        shown = evidence_for(sample, recipe.pieces, draw, known)
        return layout.whole(sample.lines(recipe.design.turns), sample.plan, shown, sample.reply)

    def batches(epoch: int) -> Sequence[Sequence[Laid]]:
        every = [laid(s, schedule.seed + epoch) for s in parts[0]]
        return batched(every, schedule.batch, schedule.seed + epoch, lambda x: len(x.ids))

    def losses(batch: Sequence[Laid]) -> Mapping[str, Any]:
        return _losses(model, batch, layout, device)

    held = sorted((laid(s, -1) for s in parts[1]), key=lambda x: len(x.ids))

    def validate() -> Mapping[str, float]:
        total: dict[str, float] = {}
        size = schedule.batch
        chunks = [held[i : i + size] for i in range(0, len(held), size)]
        for chunk in chunks:
            for name, value in _losses(model, chunk, layout, device).items():
                total[name] = total.get(name, 0.0) + float(value) / len(chunks)
        return {"loss": sum(total.values()), **total}

    done = fit(
        model,
        batches,
        losses,
        validate,
        schedule,
        folder,
        (
            fingerprint(
                recipe,
                *sorted(layout.tokenizer.get_vocab()),
                *(s.id for part in parts for s in part),
                sorted(known.items()),
            ),
            note,
        ),
    )
    plain = (model.merge_and_unload() if recipe.base is not None else model).cpu().eval()
    plain.save_pretrained(folder)
    layout.tokenizer.save(str(folder / "tokenizer.json"))
    recipe.design.save(folder)
    return tune_plan(UnifiedModel(folder, loaded=(plain, layout)), parts[1], note), done


def tune_plan(model: UnifiedModel, valid: Sequence[Sample], note: TrainingReport) -> UnifiedModel:
    """The model with the biases of its plan that give the best mean F1 of the decisions on
    ``valid``, saved to its folder."""
    seen: dict[tuple[int, tuple[str, ...]], dict[str, float]] = {}
    gold = [decision(s.plan) for s in valid]

    def planned(number: int, null: float, end: float) -> str:
        chosen: tuple[str, ...] = ()
        while True:
            key = (number, chosen)
            if key not in seen:
                seen[key] = model.choices(valid[number].lines(model.design.turns), chosen)
            worth = {**seen[key], "": seen[key][""] + (end if chosen else null)}
            best = max(worth, key=worth.__getitem__)
            if not best:
                return decision(chosen)
            chosen = (*chosen, best)

    found: list[tuple[float, float, float, float]] = []
    for i, (null, end) in enumerate(product(_BIASES, repeat=2), 1):
        plans = [planned(number, null, end) for number in range(len(valid))]
        found.append((float(planning_scores(gold, plans)["macro"]), -abs(null) - abs(end), null, end))
        note("thresholds of the plan", i, len(_BIASES) ** 2)
    _, _, null, end = max(found, default=(0.0, 0.0, 0.0, 0.0))
    design = replace(model.design, null=null, end=end)
    design.save(model.folder)
    return UnifiedModel(model.folder, loaded=model.with_design(design))


def padded(batch: Sequence[Laid], layout: Layout, device: Any) -> dict[str, Any]:
    """Sequences as a model's arguments: ids and positions (batch, length), and the mask as
    a bias (batch, 1, length, length). Padding sees itself alone and is seen by nothing."""
    import torch

    longest = max(len(x.ids) for x in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    positions = torch.zeros(len(batch), longest, dtype=torch.long)
    see = torch.eye(longest, dtype=torch.bool).repeat(len(batch), 1, 1)
    for i, x in enumerate(batch):
        n = len(x.ids)
        ids[i, :n], positions[i, :n] = torch.tensor(x.ids), torch.tensor(x.positions)
        see[i, :n, :n] = allowed(torch.tensor(x.blocks), mask=layout.design.mask)
    bias = torch.zeros(see.shape).masked_fill(~see, torch.finfo(torch.float32).min)
    return {
        "input_ids": ids.to(device), "attention_mask": bias[:, None].to(device), "position_ids": positions.to(device),
    }  # fmt: skip


def _losses(model: Any, batch: Sequence[Laid], layout: Layout, device: Any) -> dict[str, Any]:
    """The cross-entropy of the plan's, the scores' and the reply's tokens (equation 7)."""
    import torch

    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    given = padded(batch, layout, device)
    hidden = inner.base_model(**given, use_cache=False).last_hidden_state
    found: dict[str, Any] = {}
    for name in ("plan", "scores", "reply"):
        places = [(i, at) for i, x in enumerate(batch) for at in getattr(x, name)]
        if places:
            rows = torch.tensor(places, device=device)
            target = given["input_ids"][rows[:, 0], rows[:, 1]]
            logits = inner.get_output_embeddings()(hidden[rows[:, 0], rows[:, 1] - 1])
            found[name] = torch.nn.functional.cross_entropy(logits, target)
    return found


def order_of(samples: Sequence[Sample]) -> tuple[str, ...]:
    """The sources that samples have, in order."""
    there = {p.source for s in samples for p in s.pieces}
    return tuple(s for s in ORDER if s in there)
