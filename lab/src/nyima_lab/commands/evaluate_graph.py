"""The commands that measure the graph: cascades, weeks of edits, selection, services."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.common import Common, command, console, ensure_packs
from nyima.errors import InputError
from nyima_lab.commands.evaluate_runs import closing, open_model

if TYPE_CHECKING:
    from rich.console import Console

    from nyima.domain.ports import ChatModel, Embedder

__all__ = ["add_to"]


@dataclass(frozen=True, slots=True)
class With:
    """With which models, and where to put the answers and the report."""

    model: Annotated[
        str | None, typer.Option("--model", help="A chat model that reads and answers; none without it.")
    ] = None
    writer: Annotated[str | None, typer.Option("--writer", help="Another model that writes notes.")] = None
    calls: Annotated[Path, typer.Option("--calls", help="Where answers are kept, so that a run goes on.")] = Path(
        "graph.calls.db"
    )
    out: Annotated[Path | None, typer.Option("--out", help="Write the whole report as JSON.")] = None


@contextlib.asynccontextmanager
async def _models(
    common: Common, chosen: With
) -> AsyncIterator[tuple[Embedder | None, ChatModel | None, ChatModel | None]]:
    """The embedder, the model and the writer; answers that are kept are not asked again."""
    from nyima.app.environment import find_embedder
    from nyima_lab.measure.replay import Calls, ReplayedModel

    settings = common.settings()
    ensure_packs(settings, "embed")
    embedder = find_embedder(settings)
    if chosen.model is None:
        yield embedder, None, None
        return
    chosen.calls.parent.mkdir(parents=True, exist_ok=True)
    kept = Calls(chosen.calls)
    chat = open_model(settings, chosen.model)
    writer = open_model(settings, chosen.writer) if chosen.writer and chosen.writer != chosen.model else chat
    with contextlib.closing(kept):
        async with closing(chat, writer):
            yield embedder, ReplayedModel(chat, kept), ReplayedModel(writer, kept)


@contextlib.contextmanager
def _bar(name: str) -> Any:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(err=True)) as progress:
        bar = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)


def _written(chosen: With, data: dict[str, Any]) -> dict[str, Any]:
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return data


async def cascades(
    common: Common,
    files: Annotated[list[Path], typer.Argument(help="Cases as JSON lines.", exists=True, dir_okay=False)],
    chosen: With,
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="State the facts by hand instead of reading the turns.")
    ] = False,
    recipe: Annotated[str, typer.Option("--recipe", help="Which recipe reads and recalls.")] = "default",
) -> None:
    """Measure whether what rests on a change follows it, and what has ended is not given."""
    from nyima_lab.measure.cascades import read_cascades, run_cascades

    cases = [case for file in files for case in read_cascades(file)]
    async with _models(common, chosen) as (embedder, model, writer):
        with _bar("cascades") as note:
            report = await run_cascades(
                cases, embedder, by_hand=by_hand, recipe=recipe, models=(model, writer), note=note
            )

    def text(out: Console) -> None:
        for kind, row in report["shares"].items():
            out.print(
                f"{kind:10} {row['handled']:.3f} [{row['low']:.3f}, {row['high']:.3f}]  {row['cases']} cases",
                markup=False,
            )
        for row in report["failed"]:
            out.print(
                f"  {row['case']}: stale {row['stale']}, missed {row['missed']}, lost {row['lost']}", markup=False
            )

    common.show(_written(chosen, report), text)


async def weeks(
    common: Common,
    chosen: With,
    recipes: Annotated[
        str, typer.Option("--recipes", help="Comma-separated.")
    ] = "history,conditional,m-rag,graph,default",
    lives: Annotated[int, typer.Option("--lives", min=1, max=1_000, help="How many people; forty changes each.")] = 8,
    seed: Annotated[int, typer.Option("--seed", help="The first of their seeds.")] = 0,
    sample: Annotated[
        int, typer.Option("--sample", min=0, help="How many changes a model answers, with --model.")
    ] = 60,
) -> None:
    """Measure week by week whether given-up values are still given, under a stream of edits."""
    from nyima_lab.measure.weeks import run_weeks

    names = [r.strip() for r in recipes.split(",") if r.strip()]
    reports: list[dict[str, Any]] = []
    async with _models(common, chosen) as (embedder, model, _):
        for name in names:
            with _bar(name) as note:
                report = await run_weeks(
                    range(seed, seed + lives), name, embedder, model=model, sample=sample if model else 0, note=note
                )
            reports.append(report)
            _written(chosen, {"reports": reports})

    def text(out: Console) -> None:
        out.print("recipe        week  changes  stale            found            wrongly retired  answers right")
        for report in reports:
            for row in report["weeks"]:
                cells = (
                    f"{row[n]['mean']:.3f} ({row[n]['n']:4})     " if n in row else " " * 17
                    for n in ("stale", "found", "retired", "right")
                )
                out.print(
                    f"{report['recipe']:12}  {row['week']!s:4}  {row['changes']:7}  {''.join(cells)}", markup=False
                )

    shown = [{k: v for k, v in r.items() if k != "rows"} for r in reports]
    common.show({"reports": shown}, text)


async def selection(
    common: Common,
    chosen: With,
    realmem: Annotated[Path | None, typer.Option("--realmem", help="RealMem's folder.")] = None,
    longmemeval: Annotated[Path | None, typer.Option("--longmemeval", help="LongMemEval's oracle file.")] = None,
    ks: Annotated[str, typer.Option("--k", help="How many memories activate nodes, comma-separated.")] = "1,2,3,4,5",
    seed: Annotated[int, typer.Option("--seed", help="Splits and trains by this number.")] = 0,
) -> None:
    """Measure which share of the required memories a walk keeps, against cosine alone in as
    many tokens: the rule, after the warm start, after the policy gradient."""
    from nyima.errors import InputError
    from nyima_lab.train.selection_report import selection_report

    path = realmem or longmemeval
    if path is None or (realmem and longmemeval):
        raise InputError("give one of --realmem or --longmemeval")
    kind = "realmem" if realmem is not None else "longmemeval"
    numbers = tuple(int(k) for k in ks.split(",") if k.strip().isdigit())
    async with _models(common, chosen) as (embedder, model, _):
        with _bar(kind) as note:
            report = await selection_report(kind, path, embedder, numbers, seed=seed, model=model, note=note)

    def text(out: Console) -> None:
        out.print(f"{report['learned_from']} questions learned from, {report['reported']} reported")
        for row in report["rows"]:
            gap = f"{row['gap']:+.3f} [{row['gap_low']:+.3f}, {row['gap_high']:+.3f}]"
            out.print(
                f"K={row['k']} {row['policy']:16} share {row['share']:.3f}  precision {row['precision']:.3f}"
                f"  {row['tokens']:5.0f} tokens  cosine {row['dense']:.3f}  {gap}  p {row['p']:.3f}  {row['ms']:.2f} ms",
                markup=False,
            )

    common.show(_written(chosen, report), text)


async def truth(
    common: Common,
    file: Annotated[Path, typer.Argument(help="Cases as JSON lines.", exists=True, dir_okay=False)],
    chosen: With,
    recipe: Annotated[str, typer.Option("--recipe", help="How the memory works.")] = "default",
    among: Annotated[int, typer.Option("--among", min=0, help="Inside a life of so many other claims.")] = 0,
) -> None:
    """Measure whether what is believed stays true: stale, missed, wrongly retired, invented."""
    from nyima.app.environment import find_outdating
    from nyima_lab.measure.truth import RATES, read_truth, run_truth

    cases, judge = read_truth(file), find_outdating(common.settings())
    async with _models(common, chosen) as (embedder, _, writer):
        with _bar("truth") as note:
            report = await run_truth(
                cases, embedder, recipe=recipe, model=writer, outdating=judge, among=among, note=note
            )

    def text(out: Console) -> None:
        for name in RATES:
            low, high = report["intervals"][name]
            out.print(f"{name:18} {report[name]:.3f} [{low:.3f}, {high:.3f}] of {report['n'][name]}", markup=False)

    common.show(_written(chosen, report), text)


async def lives(
    common: Common,
    files: Annotated[list[Path], typer.Argument(help="Lives as JSON lines.", exists=True, dir_okay=False)],
    chosen: With,
    real: Annotated[
        Path | None, typer.Option("--real", help="The files annotate turns of the data in this folder.")
    ] = None,
    part: Annotated[str, typer.Option("--part", help="all, odd or even lines.")] = "all",
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many lives.")] = None,
) -> None:
    """Measure what becomes of known claims when a message comes, and what is read from it."""
    from nyima_lab.measure.lives_run import run_lives
    from nyima_lab.readers.lives import read_lives
    from nyima_lab.readers.real_turns import read_real_turns

    if part not in {"all", "odd", "even"}:
        raise InputError(f"--part is {part!r}: give all, odd or even")
    every = read_lives(files) if real is None else [life for file in files for life in read_real_turns(real, file)]
    some = {"all": every, "odd": every[::2], "even": every[1::2]}[part][:limit]
    async with _models(common, chosen) as (embedder, _, writer):
        if writer is None:
            raise InputError("claims are read by a chat model: give --model")
        with _bar("lives") as note:
            report = await run_lives(some, embedder, writer, note=note)

    def text(out: Console) -> None:
        for name, figures in report.items():
            if name == "rows":
                continue
            out.print(f"{name}: {figures['messages']} messages", markup=False)
            for what, of in figures.items():
                if isinstance(of, dict):
                    out.print(
                        f"  {what:14} {of['mean']:.3f} [{of['low']:.3f}, {of['high']:.3f}] of {of['n']}", markup=False
                    )

    common.show(_written(chosen, report), text)


async def services(
    common: Common,
    skill: Annotated[str, typer.Argument(help="forms, reminders or travel.")],
    file: Annotated[Path, typer.Argument(help="Cases as JSON lines.", exists=True, dir_okay=False)],
    chosen: With,
    by_hand: Annotated[bool, typer.Option("--by-hand", help="State the facts by hand.")] = False,
) -> None:
    """Measure the exact match of filled fields, reminders and places."""
    from nyima_lab.measure.exact_match import read_skill_cases, run_skill

    cases = read_skill_cases(file)
    async with _models(common, chosen) as (embedder, _, writer):
        with _bar(skill) as note:
            report = await run_skill(skill, cases, embedder, by_hand=by_hand, model=writer, note=note)

    def text(out: Console) -> None:
        out.print(
            f"{skill}: {report['exact']:.3f} [{report['low']:.3f}, {report['high']:.3f}] of {report['items']}",
            markup=False,
        )
        for row in report["wrong"]:
            out.print(f"  {row['case']} {row['what']}: {row['got']}", markup=False)

    common.show(_written(chosen, report), text)


async def extracted(
    common: Common,
    chosen: With,
    pairs: Annotated[int, typer.Option("--pairs", min=0, help="How many question-answer pairs to make.")] = 20,
    sheet: Annotated[Path | None, typer.Option("--sheet", help="Write a CSV for people to fill in.")] = None,
    filled: Annotated[Path | None, typer.Option("--filled", help="Count a filled CSV.", exists=True)] = None,
) -> None:
    """Measure what was extracted from your own conversations: do the turns say it, and do
    the memories answer the pairs made of them? By a model, or by a sheet that people fill."""
    from nyima.errors import InputError
    from nyima.memory import Memory
    from nyima_lab.measure.extracted import read_sheet, write_sheet
    from nyima_lab.train.samples import data_quality, own_examples

    if filled is not None:
        report: dict[str, Any] = read_sheet(filled)
    else:
        if chosen.model is None and (sheet is None or pairs):
            raise InputError("give --model, or --filled with a sheet, or --sheet with --pairs 0")
        settings = common.settings()
        async with _models(common, chosen) as (_, model, _), Memory.open(settings.db, user=settings.user) as memory:
            with _bar("pairs") as note:
                made = await own_examples(memory, model, most=pairs, note=note) if model is not None and pairs else []
            if sheet is not None:
                report = {"sheet": str(sheet), "lines": await write_sheet(memory, made, sheet)}
            else:
                assert model is not None
                report = dict(await data_quality(memory, made, model))
    common.show(_written(chosen, report), lambda out: out.print_json(json.dumps(report)))


def add_to(group: typer.Typer) -> None:
    """Register the commands."""
    command(group, "cascades", "nyima eval cascades cases.jsonl --by-hand")(cascades)
    command(group, "weeks", "nyima eval weeks --recipes history,graph --lives 2")(weeks)
    command(group, "selection", "nyima eval selection --realmem realmem/")(selection)
    command(group, "extracted", "nyima eval extracted --sheet check.csv --pairs 0")(extracted)
    command(group, "truth", "nyima eval truth cases.jsonl --among 200")(truth)
    command(group, "lives", "nyima eval lives lives.jsonl --model qwen2.5-coder-1.5b")(lives)
    command(group, "services", "nyima eval services forms forms.jsonl --by-hand")(services)
