"""The commands that train models: retriever, NLI, planner, reader."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.bars import curve_line, progress
from nyima.cli.common import Common, command, ensure_packs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from nyima.domain.ports import Embedder
    from nyima_lab.measure.grounded import Sample
    from nyima_lab.train.loop import Fitted, Schedule

__all__ = ["Data", "add_to", "samples_from"]

_Dataset = Annotated[str, typer.Argument(help="kbp, dulemon, english (generated) or jsonl.")]
_Path = Annotated[Path | None, typer.Argument(help="The publisher's file or folder; none for english.")]


@dataclass(frozen=True, slots=True)
class Data:
    """How much of the data, and where what is learned goes."""

    limit: Annotated[int | None, typer.Option("--limit", min=10, help="At most so many turns.")] = None
    out: Annotated[Path | None, typer.Option("--out", help="The folder (default: trained/ in the cache).")] = None
    turns: Annotated[int, typer.Option("--turns", min=0, help="How many earlier utterances are read.")] = 2


@dataclass(frozen=True, slots=True)
class Fit:
    """How to train."""

    epochs: Annotated[int, typer.Option("--epochs", min=1, help="The most epochs.")] = 3
    batch: Annotated[int, typer.Option("--batch", min=1, help="Examples a step.")] = 32
    rate: Annotated[float, typer.Option("--rate", min=0.0, help="The learning rate.")] = 1e-3
    minutes: Annotated[float, typer.Option("--minutes", min=0.0, help="The most time of this run; 0 is no limit.")] = (
        0.0
    )
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")] = "auto"
    seed: Annotated[int, typer.Option("--seed", help="Of shuffling and of new weights.")] = 0
    base: Annotated[
        Path | None, typer.Option("--base", help="A pretrained model (a folder, or a GGUF file for the reader).")
    ] = None

    def schedule(self) -> Schedule:
        """As the training loop takes it."""
        from nyima_lab.train.loop import Schedule

        return Schedule(
            self.epochs, self.batch, self.rate, minutes=self.minutes, seed=self.seed, device=self.device
        )  # fmt: skip


def samples_from(dataset: str, path: Path | None, limit: int | None, part: str = "train") -> list[Sample]:
    """The samples of a data set, or generated ones. Raises InputError."""
    from nyima.errors import InputError
    from nyima_lab.measure.english_set import english_samples
    from nyima_lab.measure.grounded import samples_of, some
    from nyima_lab.readers import read_cases

    if dataset == "english":
        return english_samples(limit or 2_000, part)
    if dataset not in {"kbp", "dulemon", "jsonl"}:
        raise InputError(f"there is no data set {dataset!r}: give kbp, dulemon, english or jsonl")
    if path is None:
        raise InputError(f"give the file or folder of {dataset}")
    return some(samples_of(read_cases(dataset, path)), limit)


def _parts(dataset: str, path: Path | None, data: Data) -> tuple[list[Sample], list[Sample]]:
    from nyima_lab.measure.grounded import parts_of

    return parts_of(samples_from(dataset, path, data.limit))


def _folder(common: Common, data: Data, name: str) -> Path:
    return data.out or common.settings().cache / "trained" / name


def _shown(common: Common, folder: Path, done: Fitted, more: Mapping[str, Any]) -> None:
    data = {
        "folder": str(folder), "steps": done.steps, "examples": done.examples, "stopped": done.stopped,
        "curve": [dict(line) for line in done.curve], **more,
    }  # fmt: skip

    def text(out: Console) -> None:
        for name in [k for k in done.curve[-1] if k not in {"epoch", "steps", "examples"}]:
            values = [float(line[name]) for line in done.curve if name in line]
            out.print(f"{name:22} {curve_line(values)}  {values[0]:.3f} to {values[-1]:.3f}", markup=False)
        size = f", {more['parameters']:,} parameters" if "parameters" in more else ""
        out.print(f"{done.examples:,} examples seen in {done.steps:,} steps{size}; stopped by {done.stopped}")
        out.print(f"saved to {folder}", markup=False)

    common.show(data, text)


async def retriever(
    common: Common,
    dataset: _Dataset,
    path: _Path = None,
    list_wise: Annotated[bool, typer.Option("--list-wise", help="With a re-ranker, over lists of candidates.")] = False,
    data: Data = Data(),
    fit: Fit = Fit(),
) -> None:
    """Fine-tune an encoder to find what a reply needs; the folder is an embedder
    (NYIMA_EMBEDDER). An interrupted run goes on when the same command is given."""
    from nyima_lab.train.retriever import train_list_wise, train_two_encoder

    parts = _parts(dataset, path, data)
    with progress() as note:
        if list_wise:
            folder = _folder(common, data, "list-wise")
            encoder, _, done = train_list_wise(parts, folder, fit.schedule(), note, fit.base)
        else:
            folder = _folder(common, data, "retriever")
            encoder, done = train_two_encoder(parts, folder, fit.schedule(), note, fit.base)
    _shown(common, folder, done, {"parameters": encoder.size})


async def nli(
    common: Common,
    dataset: _Dataset,
    path: _Path = None,
    relevance: Annotated[
        bool, typer.Option("--relevance", help="Learn relevance to a dialogue instead: a re-ranker.")
    ] = False,
    data: Data = Data(),
    fit: Fit = Fit(),
) -> None:
    """Fine-tune a cross-encoder on (grounding, reply) pairs: the critic's NLI model."""
    from nyima_lab.train.pairs import consistency_pairs, relevance_pairs, train_pairs

    train, valid = _parts(dataset, path, data)
    pairs = relevance_pairs if relevance else consistency_pairs
    folder = _folder(common, data, "ranker" if relevance else "nli")
    with progress() as note:
        encoder, done = train_pairs((pairs(train), pairs(valid)), train, folder, fit.schedule(), note, fit.base)
    _shown(common, folder, done, {"parameters": encoder.size})


async def planner(
    common: Common,
    dataset: _Dataset,
    path: _Path = None,
    encoder: Annotated[
        Path | None, typer.Option("--encoder", help="A trained retriever's folder (default: the embedder).")
    ] = None,
    data: Data = Data(),
) -> None:
    """Learn which sources a message needs, from an encoder's features (logistic regression)."""
    from nyima_lab.train.planner import train_planner

    parts = _parts(dataset, path, data)
    folder = _folder(common, data, "planner")
    with progress() as note:
        trained = await train_planner(parts, _embedder(common, encoder), folder, note, data.turns)
    report = {"folder": str(folder), "thresholds": dict(trained.thresholds), **trained.report}

    def text(out: Console) -> None:
        for name, row in report["decisions"].items():
            out.print(f"{name:22} F1 {row['f1']:.3f}  ({row['gold']} needed, {row['planned']} planned)", markup=False)
        out.print(f"saved to {folder}", markup=False)

    common.show(report, text)


def _embedder(common: Common, folder: Path | None) -> Embedder:
    from nyima.app.environment import find_embedder
    from nyima.errors import InputError
    from nyima.models.embed import OnnxEmbedder

    if folder is not None:
        return OnnxEmbedder({n: folder / n for n in ("model.onnx", "tokenizer.json")}, folder.name)
    settings = common.settings()
    ensure_packs(settings, "embed")
    found = find_embedder(settings)
    if found is None:
        raise InputError("a planner needs an embedder: set NYIMA_EMBEDDER, or give --encoder")
    return found


@dataclass(frozen=True, slots=True)
class DesignOptions:
    """What the model is."""

    labels: Annotated[str, typer.Option("--labels", help="Of relevance: hard, encoder, bm25 or model.")] = "hard"
    encoder: Annotated[Path | None, typer.Option("--encoder", help="The trained retriever that labels.")] = None
    safari: Annotated[bool, typer.Option("--safari", help="Without scores and mask (the baseline SAFARI).")] = False
    focus: Annotated[bool, typer.Option("--focus", help="Grounds by classification (the baseline FoCus).")] = False
    no_mask: Annotated[bool, typer.Option("--no-mask", help="Without the evidence attention mask.")] = False
    width: Annotated[int, typer.Option("--width", min=16, help="Of a new model.")] = 192
    layers: Annotated[int, typer.Option("--layers", min=1, help="Of a new model.")] = 4


async def reader(
    common: Common,
    dataset: _Dataset,
    path: _Path = None,
    design: DesignOptions = DesignOptions(),
    data: Data = Data(),
    fit: Fit = Fit(batch=16),
) -> None:
    """Train the one model that plans, scores and replies: LoRA on --base, or a small one
    from nothing."""
    from nyima.errors import InputError
    from nyima_lab.models.unified import Design as Sort
    from nyima_lab.train.focus_training import train_focus
    from nyima_lab.train.unified_training import TrainingRecipe, order_of, train_unified

    train, valid = _parts(dataset, path, data)
    folder = _folder(common, data, "reader")
    sort = Sort(order_of(train), not (design.safari or design.no_mask), not design.safari, turns=data.turns + 1)
    recipe = TrainingRecipe(sort, shape=(design.width, design.layers), base=fit.base)
    if design.focus and fit.base is not None:
        raise InputError("FoCus is trained from nothing: leave out --base")
    with progress() as note:
        if design.focus:
            focus, done = train_focus((train, valid), folder, fit.schedule(), note, recipe)
            _shown(common, folder, done, {"sources": list(focus.sources)})
            return
        labels = await _labels(common, design, [*train, *valid], note)
        model, done = train_unified((train, valid), folder, recipe, fit.schedule(), note, labels)
    _shown(common, folder, done, {"sources": list(model.sources), "labels": design.labels})


async def _labels(
    common: Common, design: DesignOptions, samples: Sequence[Sample], note: Any
) -> Mapping[tuple[str, str], float]:
    from nyima.app.environment import find_chat_model
    from nyima.errors import InputError
    from nyima_lab.train import relevance
    from nyima_lab.train.pieces import load_encoder

    if design.labels == "hard":
        return relevance.hard_labels(samples)
    if design.labels == "bm25":
        return relevance.bm25_labels(samples)
    if design.labels == "encoder":
        if design.encoder is None:
            raise InputError("labels by an encoder need --encoder, the folder of a trained retriever")
        return relevance.encoder_labels(load_encoder(design.encoder), samples)
    if design.labels != "model":
        raise InputError(f"there are no labels {design.labels!r}: give one of {', '.join(relevance.LABELLED)}")
    settings = common.settings()
    ensure_packs(settings, "chat")
    model = find_chat_model(settings)
    try:
        return await relevance.model_labels(model, samples, note)
    finally:
        await model.close()


async def claims(
    common: Common,
    lives: Annotated[list[Path], typer.Argument(help="Lives as JSON lines.", exists=True, dir_okay=False)],
    pack: Annotated[str, typer.Option("--pack", help="The local chat model that the adapter is for.")] = "",
    passes: Annotated[float, typer.Option("--passes", min=0.01, help="How often each life is learned from.")] = 1.0,
    rank: Annotated[int, typer.Option("--rank", min=1, help="Of the adapter.")] = 8,
    rate: Annotated[float, typer.Option("--rate", min=0.0, help="The learning rate.")] = 3e-4,
    seed: Annotated[int, typer.Option("--seed", help="Of shuffling.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder (default: trained/claims in the cache).")
    ] = None,
) -> None:
    """Train an adapter with which a local chat model reads claims. On two cores: an hour for the 1.5B model
    and 300 lives. An adapter in trained/claims of the cache is used from then on."""
    from nyima.app.environment import default_chat_pack, shelf
    from nyima_lab.readers.lives import read_lives
    from nyima_lab.train.claims_adapter import AdapterPlan, train_adapter, write_adapter

    settings = common.settings()
    name = pack or default_chat_pack(settings) or "qwen2.5-coder-1.5b"
    folder = out or settings.cache / "trained" / "claims"
    plan, every = AdapterPlan(rank, passes, rate=rate, seed=seed), read_lives(lives)
    base = shelf(settings).files(name)["model.gguf"]
    with progress() as note:
        write_adapter(train_adapter(every, base, plan, note), folder / f"{name}.gguf", plan)
    report = {
        "file": str(folder / f"{name}.gguf"),
        "lives": len(every),
        "messages": sum(len(x.messages) for x in every),
    }
    line = f"learned from {report['messages']} messages of {report['lives']} lives; saved to {report['file']}"
    common.show(report, lambda out: out.print(line, markup=False))


async def judge(
    common: Common,
    lives: Annotated[list[Path], typer.Argument(help="Lives as JSON lines.", exists=True, dir_okay=False)],
    valid: Annotated[Path, typer.Option("--valid", help="Lives of another author, to stop by.", exists=True)],
    told: Annotated[list[Path] | None, typer.Option("--told", help="How the claims of the lives were told.")] = None,
    inference: Annotated[list[Path] | None, typer.Option("--inference", help="Inference pairs to begin with.")] = None,
    threshold: Annotated[float, typer.Option("--threshold", help="From which score on a piece is replaced.")] = 0.2,
    out: Annotated[Path | None, typer.Option("--out", help="The folder (default: trained/judge in the cache).")] = None,
    fit: Fit = Fit(epochs=2, rate=6e-5),
) -> None:
    """Train the judge of what a newer message makes untrue. On two cores: half an hour for 20,000 pairs. A
    judge in trained/judge of the cache is used from then on."""
    import json
    import shutil

    from nyima.app.environment import find_embedder
    from nyima.errors import InputError
    from nyima_lab.readers.lives import read_lives
    from nyima_lab.train.judging import inference_pairs, life_pairs, quantized, read_told
    from nyima_lab.train.pairs import train_pairs

    settings = common.settings()
    ensure_packs(settings, "embed")
    embedder = find_embedder(settings)
    if embedder is None or fit.base is None:
        raise InputError("the judge is made from a pretrained encoder: give --base, and set NYIMA_EMBEDDER")
    folder, base = out or settings.cache / "trained" / "judge", fit.base
    ways = read_told(told or [])
    pairs = await life_pairs(read_lives(lives), ways, embedder)
    held = await life_pairs(read_lives([valid]), ways, embedder)
    with progress() as note:
        if inference:
            first = inference_pairs(inference)
            train_pairs((first[50:], first[:50]), [], folder / "inference", fit.schedule(), note, base)
            base = folder / "inference"
        _, done = train_pairs((pairs, held), [], folder / "full", fit.schedule(), note, base)
    quantized(folder / "full" / "model.onnx", folder / "model.onnx")
    shutil.copy(folder / "full" / "tokenizer.json", folder)
    (folder / "judge.json").write_text(json.dumps({"earlier": threshold, "language": "en"}), "utf-8")
    _shown(common, folder, done, {"pairs": len(pairs)})


def add_to(group: typer.Typer) -> None:
    """Register the commands."""
    command(group, "retriever", "nyima train retriever kbp train.json --epochs 2")(retriever)
    command(group, "nli", "nyima train nli kbp train.json")(nli)
    command(group, "planner", "nyima train planner english --encoder trained/retriever")(planner)
    command(group, "claims", "nyima train claims lives.jsonl --pack qwen2.5-coder-0.5b")(claims)
    command(group, "judge", "nyima train judge lives.jsonl --valid other.jsonl --base minilm/")(judge)
    command(group, "reader", "nyima train reader kbp train.json --labels encoder --encoder trained/retriever")(reader)
