"""The commands that measure many sources: planning, retrieval, replies, injection."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.bars import progress
from nyima.cli.common import Common, command, ensure_packs
from nyima_lab.commands.training_models import samples_from

if TYPE_CHECKING:
    from rich.console import Console

    from nyima.domain.ports import ChatModel
    from nyima_lab.measure.bench import Bench, Equipment
    from nyima_lab.measure.grounded import Sample
    from nyima_lab.measure.sourced import Setup

__all__ = ["add_to"]

_PARTS = ("planning", "retrieval", "replies")


@dataclass(frozen=True, slots=True)
class Of:
    """On what, with which models, and where the rows go."""

    limit: Annotated[int | None, typer.Option("--limit", min=1, help="A seeded random sample of turns.")] = None
    seed: Annotated[int, typer.Option("--seed", help="Of the sample.")] = 0
    turns: Annotated[int, typer.Option("--turns", min=0, help="How many earlier utterances are in a query.")] = 2
    trained: Annotated[
        Path | None, typer.Option("--trained", help="A folder of trained parts; each is a row's name.")
    ] = None
    encoder: Annotated[str, typer.Option("--encoder", help="The trained encoder that the classifier reads with.")] = ""
    model: Annotated[str, typer.Option("--model", help="A chat model for prompted rows.")] = ""
    out: Annotated[
        Path | None, typer.Option("--out", help="A JSON file; rows that it has already are not run again.")
    ] = None


async def sources(
    common: Common,
    dataset: Annotated[str, typer.Argument(help="kbp, dulemon, english (generated) or jsonl.")],
    path: Annotated[Path | None, typer.Argument(help="The publisher's file or folder; none for english.")] = None,
    part: Annotated[str, typer.Option("--part", help="planning, retrieval or replies.")] = "planning",
    rows: Annotated[
        list[str] | None,
        typer.Option("--row", help="A planner, a retriever (or judge:NAME), or a set-up such as 'k3: plan=gold k=3'."),
    ] = None,
    of: Of = Of(),
) -> None:
    """Measure who plans, finds and replies best: F1 of each decision, Recall@1 of each
    source, BLEU-1, ROUGE-L, persona and knowledge consistency, with intervals."""
    from nyima.errors import InputError
    from nyima_lab.measure.grounded import some
    from nyima_lab.measure.sourced import run_planning, run_replies, run_retrieval

    if part not in _PARTS:
        raise InputError(f"there is no part {part!r}: give one of {', '.join(_PARTS)}")
    wanted = rows or {"planning": ["rules", "all", "none"], "retrieval": ["words"], "replies": ["gold:"]}[part]
    samples = some(samples_from(dataset, path, None, "test"), of.limit, of.seed)
    about = {
        "dataset": dataset, "path": str(path or ""), "part": part, "limit": of.limit, "seed": of.seed, "turns": of.turns,
        "trained": str(of.trained or ""), "encoder": of.encoder, "model": of.model,
    }  # fmt: skip
    done = _read(of.out, about)
    async with _chat(common, of) as chat, _bench(samples, await _equipment(of, chat)) as bench:
        with progress() as note:
            for name in wanted:
                if name in done:
                    continue
                if part == "planning":
                    (done[name],) = await run_planning(bench, [name], note)
                elif part == "retrieval":
                    (done[name],) = await run_retrieval(bench, [name], note)
                else:
                    (done[name],) = await run_replies(bench, [_setup(name)], note)
                _write(of.out, about, done)
    data = {"dataset": dataset, "part": part, "n": len(samples), "seed": of.seed, "turns": of.turns}
    shown = [{k: v for k, v in done[name].items() if k != "rows"} for name in wanted]
    common.show({**data, "rows": shown}, lambda out: _table(out, part, shown))


@contextlib.asynccontextmanager
async def _bench(samples: Sequence[Sample], equipment: Equipment) -> AsyncIterator[Bench]:
    from nyima_lab.measure.bench import Bench

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(samples, equipment, Path(folder))
        try:
            yield bench
        finally:
            await bench.close()


@contextlib.asynccontextmanager
async def _chat(common: Common, of: Of) -> AsyncIterator[ChatModel | None]:
    """The chat model; with ``--out`` its answers are kept beside it, so that a run goes on."""
    from nyima.app.environment import find_chat_model
    from nyima_lab.measure.replay import Calls, ReplayedModel

    if not of.model:
        yield None
        return
    settings = common.settings(model=of.model)
    ensure_packs(settings, "chat")
    chat = find_chat_model(settings, of.model)
    try:
        if of.out is None:
            yield chat
            return
        of.out.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(Calls(of.out.with_suffix(".calls.db"))) as kept:
            yield ReplayedModel(chat, kept)
    finally:
        await chat.close()


def _setup(text: str) -> Setup:
    """A set-up from ``name: field=value field=value``. Raises InputError."""
    from nyima.errors import InputError
    from nyima_lab.measure.sourced import Setup

    name, _, rest = text.partition(":")
    kinds: dict[str, Any] = {f.name: type(f.default) for f in fields(Setup) if f.name != "name"}
    given: dict[str, Any] = {}
    for pair in rest.split():
        key, _, value = pair.partition("=")
        if key not in kinds:
            raise InputError(f"{pair!r} is no part of a set-up: give {', '.join(f'{k}=…' for k in kinds)}")
        given[key] = value == "yes" if kinds[key] is bool else kinds[key](value)
    return Setup(name.strip(), **given)


async def _equipment(of: Of, chat: ChatModel | None) -> Equipment:
    """The trained parts of a folder, by their place in it (``list/ranker`` is list-ranker)."""
    from nyima.errors import InputError
    from nyima.models.embed import OnnxEmbedder
    from nyima.models.pair_scorer import OnnxPairScorer
    from nyima.read.embedding import QueryEmbedder
    from nyima_lab.baselines.trained_roles import ClassifierPlanner
    from nyima_lab.measure.bench import Equipment
    from nyima_lab.models.focus import FocusModel
    from nyima_lab.models.unified import UnifiedModel

    embedders: dict[str, Any] = {}
    rankers: dict[str, Any] = {}
    models: dict[str, Any] = {}
    root = of.trained
    for folder in sorted(p for p in root.rglob("*") if p.is_dir()) if root is not None else []:
        name = "-".join(folder.relative_to(root or folder).parts)
        if (folder / "design.json").exists():
            models[name] = FocusModel(folder) if (folder / "focus.json").exists() else UnifiedModel(folder)
        elif (folder / "head.pt").exists():
            rankers[name] = OnnxPairScorer(folder)
        elif (folder / "model.onnx").exists():
            embedders[name] = OnnxEmbedder({n: folder / n for n in ("model.onnx", "tokenizer.json")}, name)
    planner = None
    if root is not None and (root / "planner" / "planner.json").exists():
        encoder = of.encoder or next(iter(embedders), "")
        if encoder not in embedders:
            raise InputError(f"there is no trained encoder {encoder!r} in {root}: give --encoder")
        planner = ClassifierPlanner.load(root / "planner" / "planner.json", (), QueryEmbedder(embedders[encoder]))
    return Equipment(embedders, rankers, models, planner, rankers.get("nli"), chat, of.turns)


def _read(path: Path | None, about: dict[str, Any] | None = None) -> dict[str, Any]:
    """The rows of a file. Raises InputError when they were measured on something else."""
    from nyima.errors import InputError
    from nyima_lab.measure.cases import load_json

    if path is None or not path.exists():
        return {}
    body = load_json(path)
    if about is not None and body["of"] != about:
        other = ", ".join(f"{k} {body['of'].get(k)!r}" for k in about if body["of"].get(k) != about[k])
        raise InputError(f"{path} holds rows of another run ({other}): give another --out")
    return dict(body["rows"])


def _write(path: Path | None, about: dict[str, Any], done: dict[str, Any]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        body = {"of": about, "rows": done}
        path.with_suffix(".new").write_text(json.dumps(body, ensure_ascii=False, indent=1) + "\n", "utf-8")
        path.with_suffix(".new").replace(path)


def _table(out: Console, part: str, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if part == "planning":
            every = "  ".join(f"{d} {r['f1']:.3f} ({r['planned']}/{r['gold']})" for d, r in row["decisions"].items())
            low, high = row["accuracy_95"]
            line = (
                f"{row['planner']:12} right {row['accuracy']:.3f} [{low:.3f}, {high:.3f}]  {every}  {row['ms']:.1f} ms"
            )
            out.print(line, markup=False)
        elif part == "retrieval":
            out.print(f"{row['retriever']}  ({row['ms']:.0f} ms)", markup=False)
            for place, value in row.items():
                if isinstance(value, dict) and "recall_1" in value:
                    between = f"[{value['low']:.3f}, {value['high']:.3f}]"
                    out.print(f"  {place:50} {value['recall_1']:.3f} {between}  {value['n']}", markup=False)
            if "calibration" in row:
                out.print(
                    f"  calibration error {row['calibration']['ece']:.3f}, Brier {row['calibration']['brier']:.3f}"
                )
        else:
            shown = "  ".join(
                f"{n} {row[n]['mean']:.3f} [{row[n]['low']:.3f}, {row[n]['high']:.3f}]"
                for n in ("bleu1", "rougeL", "pc", "kc")
            )
            out.print(
                f"{row['setup']:26} {shown}  {row['calls']:.1f} calls {row['tokens']:.0f} tokens {row['ms']:.0f} ms",
                markup=False,
            )


async def injection(
    common: Common,
    file: Annotated[Path, typer.Argument(help="Cases as JSON lines.", exists=True, dir_okay=False)],
    model: Annotated[str, typer.Option("--model", help="The chat model.")] = "",
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first cases.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Rows as they come; a run goes on from there.")] = None,
) -> None:
    """Measure whether instructions inside documents and imported turns are obeyed, and
    whether anything is remembered of them."""
    from nyima.app.environment import find_chat_model, find_embedder
    from nyima_lab.measure.cases import json_lines
    from nyima_lab.measure.injection import read_attacks, run_injection

    settings = common.settings(model=model or None)
    ensure_packs(settings, "embed", "chat")
    attacks = read_attacks(file)[:limit]
    chat = find_chat_model(settings)
    done = {row["id"]: row for _, row in json_lines(out)} if out is not None and out.exists() else {}
    try:
        with progress() as note:
            report = await run_injection(attacks, chat, find_embedder(settings), note, done, _keeper(out))
    finally:
        await chat.close()

    def text(screen: Console) -> None:
        for name, row in report["table"].items():
            parts = [f"{what} {row[what]['count']}" for what in ("shown", "obeyed", "bare_obeyed", "made")]
            screen.print(f"{name:16} {row['n']:4}  {', '.join(parts)}", markup=False)

    common.show({k: v for k, v in report.items() if k != "rows"}, text)


def _keeper(out: Path | None) -> Callable[[dict[str, Any]], None]:
    def keep(row: dict[str, Any]) -> None:
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

    return keep


async def humans(
    common: Common,
    run: Annotated[Path, typer.Argument(help="What `eval sources --part replies --out` wrote.", exists=True)],
    sheets: Annotated[list[Path] | None, typer.Argument(help="Filled sheets, one an annotator.")] = None,
    write: Annotated[Path | None, typer.Option("--write", help="Write an empty sheet here.")] = None,
    dataset: Annotated[str, typer.Option("--dataset", help="What the run was on.")] = "english",
    path: Annotated[Path | None, typer.Option("--path", help="The publisher's file or folder.")] = None,
    sample: Annotated[int, typer.Option("--sample", min=1, help="How many turns of each set-up.")] = 50,
) -> None:
    """Write a blind sheet for people (coherence 1-5, persona and knowledge consistency 0/1),
    or read filled ones: means by set-up, and how far the annotators agree."""
    from nyima.errors import InputError
    from nyima_lab.measure.source_sheets import read_source_sheets, write_source_sheet

    done = _read(run)
    if write is not None:
        count = write_source_sheet(done, samples_from(dataset, path, None, "test"), write, sample)
        common.show({"rows": count}, lambda out: out.print(f"wrote {count} rows to {write}", markup=False))
        return
    if not sheets:
        raise InputError("give filled sheets, or --write FILE for an empty one")
    report = read_source_sheets(done, sheets)

    def text(out: Console) -> None:
        for setup, scales in report["scores"].items():
            shown = "  ".join(f"{n} {v['mean']:.2f} [{v['low']:.2f}, {v['high']:.2f}]" for n, v in scales.items())
            out.print(f"{setup:26} {shown}", markup=False)
        shown = ", ".join(f"{n} {'-' if v is None else f'{v:.2f}'}" for n, v in report["kappa"].items())
        out.print(f"{report['annotators']} annotators; Fleiss' kappa: {shown}", markup=False)

    common.show(report, text)


def add_to(group: typer.Typer) -> None:
    """Register the commands."""
    command(group, "sources", "nyima eval sources english --row rules --row all")(sources)
    command(group, "humans", "nyima eval humans replies.json --write sheet.csv --sample 30")(humans)
    command(group, "injection", "nyima eval injection tests/judged/injection.jsonl")(injection)
