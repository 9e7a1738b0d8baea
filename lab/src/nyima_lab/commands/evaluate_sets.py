"""The commands around runs: data, builders, sheets, agreement, comparisons, write quality."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.common import Common, command, console, ensure_packs
from nyima.errors import InputError
from nyima_lab.commands.evaluate_runs import closing, open_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from nyima_lab.measure.cases import Case

__all__ = ["add_to"]

_DATASETS = "msc, carecall, locomo, locomo-corrected, longmemeval, realmem, beam, prefeval, memorybank, kbp, dulemon, seeds or jsonl."


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console(err=True)) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


async def data(
    common: Common,
    dataset: Annotated[str, typer.Argument(help=_DATASETS)],
    path: Annotated[Path, typer.Argument(help="The publisher's file or folder.")],
) -> None:
    """Show what a data set holds: cases, sessions, turns, questions, gold evidence, dates."""
    from nyima_lab.readers import read_cases

    cases = read_cases(dataset, path)
    questions = [q for c in cases for q in c.questions]
    dates = sorted(t.at for c in cases for _, turns in c.sessions for t in turns if t.at)
    kinds: dict[str, int] = {}
    for question in questions:
        kinds[question.kind] = kinds.get(question.kind, 0) + 1
    counts = {
        "dataset": dataset,
        "cases": len(cases),
        "sessions": sum(len(c.sessions) for c in cases),
        "turns": sum(c.turns for c in cases),
        "questions": len(questions),
        "with_answer": sum(bool(q.answer) for q in questions),
        "with_evidence": sum(bool(q.gold) for q in questions),
        "gold_memory": sum(len(c.gold_memory) for c in cases),
        "languages": sorted({c.language for c in cases if c.language}),
        "from": dates[0].date().isoformat() if dates else None,
        "to": dates[-1].date().isoformat() if dates else None,
        "kinds": kinds if len(kinds) <= 40 else {f"{len(kinds)} kinds": len(questions)},
    }

    def text(out: Console) -> None:
        for name, value in counts.items():
            shown = ", ".join(f"{k or '-'} {v}" for k, v in value.items()) if isinstance(value, dict) else value
            out.print(f"{name.replace('_', ' '):14} {', '.join(shown) if isinstance(shown, list) else shown}")

    common.show(counts, text)


@dataclass(frozen=True, slots=True)
class BuilderInput:
    """What a builder takes."""

    dataset: Annotated[str, typer.Option("--dataset", help=_DATASETS)] = ""
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many source dialogues or seeds.")] = (
        None
    )
    seed: Annotated[int | None, typer.Option("--seed", help="Shuffle the sources by this number first.")] = None
    skip: Annotated[int, typer.Option("--skip", min=0, help="Leave out the first sources.")] = 0
    sessions: Annotated[int | None, typer.Option("--sessions", min=1, help="Only the first sessions of each.")] = None
    model: Annotated[str | None, typer.Option("--model", help="The chat model (default: the settings').")] = None


async def build(
    common: Common,
    kind: Annotated[str, typer.Argument(help="continue, knowledge or feedback.")],
    source: Annotated[Path, typer.Argument(help="Dialogues; for feedback, seed instructions.")],
    out: Annotated[Path, typer.Argument(help="The JSON Lines file to write.")],
    given: BuilderInput,
) -> None:
    """Make a test set with a model. Ctrl-C, and the same command again goes on."""
    import random

    from nyima_lab.measure.builders import BUILDERS
    from nyima_lab.measure.builders import build as make
    from nyima_lab.measure.cases import write_cases
    from nyima_lab.measure.replay import Calls, ReplayedModel
    from nyima_lab.measure.tasks import first_sessions
    from nyima_lab.readers import read_cases

    if kind not in BUILDERS:
        raise InputError(f"there is no builder {kind!r}: choose one of {', '.join(BUILDERS)}")
    cases = read_cases(given.dataset or ("seeds" if kind == "feedback" else "msc"), source)
    if given.seed is not None:
        random.Random(given.seed).shuffle(cases)  # noqa: S311 - a sample
    cases = [first_sessions(c, given.sessions) if given.sessions else c for c in cases[given.skip :][: given.limit]]
    out.parent.mkdir(parents=True, exist_ok=True)
    calls = Calls(out.with_suffix(out.suffix + ".calls.db"))
    model = open_model(common.settings(), given.model)
    made: list[Case] = []
    left: list[str] = []
    try:
        async with closing(model):
            with _bar(kind) as note:
                async for found in make(kind, cases, ReplayedModel(model, calls)):
                    made.append(found.case)
                    left += found.left_out
                    note(len(made), len(cases))
    finally:
        calls.close()
    write_cases(out, [c for c in made if c.questions])  # broken off, the file that is there stays
    questions = sum(len(c.questions) for c in made)
    report = {"kind": kind, "sources": len(cases), "cases": sum(bool(c.questions) for c in made)}
    report |= {"questions": questions, "left_out": left, "file": str(out)}

    def text(console: Console) -> None:
        console.print(f"{questions} questions from {report['cases']} of {len(cases)} sources: {out}")
        for reason in left:
            console.print(f"left out: {reason}")

    common.show(report, text)


async def merge_pools(
    common: Common,
    source: Annotated[Path, typer.Argument(help="Cases as JSON Lines.")],
    size: Annotated[int, typer.Argument(min=1, help="How many cases make one memory.")],
    out: Annotated[Path, typer.Argument(help="The file to write.")],
) -> None:
    """Merge the memories of every so many cases into one, to simulate long use."""
    from nyima_lab.measure.builders import merge_pools as merged
    from nyima_lab.measure.cases import write_cases
    from nyima_lab.readers import read_cases

    pools = merged(read_cases("jsonl", source), size)
    write_cases(out, pools)
    counts = {"pools": len(pools), "sessions": sum(len(p.sessions) for p in pools), "file": str(out)}
    common.show(counts, lambda c: c.print(f"{counts['pools']} pools with {counts['sessions']} sessions: {out}"))


async def sheet(
    common: Common,
    source: Annotated[Path, typer.Argument(help="A built test set, or the folder of a run.")],
    out: Annotated[Path, typer.Argument(help="The CSV file to write.")],
    sample: Annotated[int, typer.Option("--sample", min=1, help="How many rows.")] = 50,
    seed: Annotated[int, typer.Option("--seed", help="Draws the rows.")] = 0,
    fill: Annotated[str, typer.Option("--fill", help="A chat model that fills in the sheet of a test set.")] = "",
) -> None:
    """Write a sheet for annotators: of a test set (related, fitting: yes or no), or of a
    run's replies (engagingness, coherence, consistency, score: 0 to 2), blind."""
    from nyima_lab.measure.runner import read_rows
    from nyima_lab.measure.sheets import annotated, write_case_sheet, write_reply_sheet
    from nyima_lab.readers import read_cases

    if fill:
        model = open_model(common.settings(), fill)
        async with closing(model):
            rows = await annotated(read_cases("jsonl", source), out, sample, seed, model)
    elif source.is_dir():
        rows = write_reply_sheet(read_rows(source), out, sample, seed)
    else:
        rows = write_case_sheet(read_cases("jsonl", source), out, sample, seed)
    common.show({"rows": rows, "file": str(out)}, lambda c: c.print(f"{rows} rows: {out}"))


async def agreement(
    common: Common,
    sheets: Annotated[list[Path] | None, typer.Argument(help="Filled sheets, one an annotator.")] = None,
    run: Annotated[Path | None, typer.Option("--run", help="The run whose replies were rated, or was judged.")] = None,
    judges: Annotated[str, typer.Option("--judges", help="One or two judges of the run, as kind:model.")] = "",
) -> None:
    """How far annotators agree (qualified rate, Fleiss' kappa), what people rated a run's
    replies, or how far two judges of a run agree, or one with what people wrote."""
    from nyima_lab.measure.runner import read_rows
    from nyima_lab.measure.sheets import agreement as agreed
    from nyima_lab.measure.sheets import human_agreement, human_scores, judge_agreement

    named = [j.strip() for j in judges.split(",") if j.strip()]
    if named and run is not None and len(named) == 2 and not sheets:
        report = judge_agreement(read_rows(run), named[0], named[1])
    elif named and run is not None and len(named) == 1 and sheets:
        report = human_agreement(read_rows(run), named[0], sheets)
    elif named:
        raise InputError("give --run with --judges score:one,score:other, or with one judge and filled sheets")
    elif not sheets:
        raise InputError("give the filled sheets, or --run with --judges")
    elif run is not None:
        report = human_scores(read_rows(run), sheets)
    else:
        report = agreed(sheets)
    common.show(report, lambda c: c.print_json(json.dumps(report)))


async def quality(
    common: Common,
    view: Annotated[str, typer.Argument(help="gate, memory or changes.")],
    given: BuilderInput,
    path: Annotated[Path | None, typer.Option("--data", help="The folder of MSC, for gate and memory.")] = None,
    recipe: Annotated[str, typer.Option("--recipe", help="Whose writers.")] = "default",
    train: Annotated[int, typer.Option("--train", min=0, help="Dialogues to learn the cheap gate on.")] = 150,
    calls: Annotated[Path, typer.Option("--calls", help="Where the model's answers are kept.")] = Path(
        "runs/quality.db"
    ),
) -> None:
    """Measure what is written: the decision to remember against MSC's labels, the records
    against its gold sentences, or a stream of changes whose truth is known. Ctrl-C, and
    the same command again goes on."""
    import random

    from nyima.app.environment import find_embedder
    from nyima_lab.measure.quality import gate_quality, memory_quality
    from nyima_lab.measure.replay import Calls, ReplayedModel
    from nyima_lab.measure.streams import change_quality
    from nyima_lab.measure.tasks import first_sessions
    from nyima_lab.readers import read_cases

    if view not in {"gate", "memory", "changes"}:
        raise InputError(f"there is no view {view!r}: choose gate, memory or changes")
    settings = common.settings()
    ensure_packs(settings, "embed")
    embedder, limit = find_embedder(settings), given.limit or 10
    cases = []
    if view != "changes":
        if path is None:
            raise InputError(f"{view} needs --data with the folder of MSC")
        cases = read_cases(given.dataset or "msc", path)
        random.Random(given.seed or 0).shuffle(cases)  # noqa: S311 - a sample
        cases = [first_sessions(c, given.sessions) if given.sessions else c for c in cases[given.skip :]]
    chat = None if view == "gate" and given.model == "none" else open_model(settings, given.model)
    calls.parent.mkdir(parents=True, exist_ok=True)
    kept = Calls(calls)
    async with closing(chat):
        with _bar(view) as note, contextlib.closing(kept):
            model = ReplayedModel(chat, kept) if chat is not None else None
            report: Any
            if view == "gate":
                report = await gate_quality(cases[:limit], cases[limit : limit + train], model, embedder, note)
            elif view == "memory":
                assert model is not None
                report = await memory_quality(cases[:limit], recipe, model, embedder, note)
            else:
                assert model is not None
                first = given.seed or 0
                report = await change_quality(range(first, first + limit), recipe, model, embedder, note)
    common.show(report, lambda c: show_quality(c, report))


def show_quality(out: Console, report: Any) -> None:
    """The figures of write quality."""
    from rich.table import Table

    rows = report if isinstance(report, list) else report.get("rows")
    if rows is None:
        rows = [{"rate": name, **value} for name, value in report["rates"].items()]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(*columns)
    for row in rows:
        table.add_row(*(_cell(row.get(name, "")) for name in columns))
    out.print(table)
    if isinstance(report, dict) and "counts" in report:
        out.print(", ".join(f"{name}: {count}" for name, count in report["counts"].items()))


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['mean']:.2f} [{value['low']:.2f}, {value['high']:.2f}]"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


async def compare(
    common: Common,
    first: Annotated[Path, typer.Argument(help="The folder of a run.")],
    second: Annotated[Path, typer.Argument(help="The folder of another.")],
    metric: Annotated[str, typer.Option("--metric", help="Default: the first that both have.")] = "",
    recipes: Annotated[str, typer.Option("--recipes", help="recipe,other when they are not the same.")] = "",
) -> None:
    """Compare two runs: paired bootstrap, won, tied, lost, and which questions changed."""
    from nyima_lab.measure.compare import compare_runs

    pair = [r.strip() for r in recipes.split(",") if r.strip()]
    report = compare_runs(first, second, metric, pair)

    def text(out: Console) -> None:
        for row in report["rows"]:
            d = row["difference"]
            out.print(
                f"{row['recipe']} against {row['other']}, {row['metric']}: {d['mean']:+.3f} [{d['low']:+.3f},"
                f" {d['high']:+.3f}]; {d['wins']} won, {d['ties']} tied, {d['losses']} lost"
            )
            for moved in row["changed"]:
                out.print(f"  {moved['by']:+.2f}  {moved['case']}: {moved['text']}")

    common.show(report, text)


async def reproduce(
    common: Common,
    file: Annotated[Path, typer.Option("--file", help="Commands with the figures that they gave.")] = Path(
        "docs/reproduce.yaml"
    ),
    only: Annotated[str, typer.Option("--only", help="Only the entries whose names contain this.")] = "",
    data_folder: Annotated[Path, typer.Option("--data", help="Where the data sets lie.")] = Path("data"),
) -> None:
    """Run the documented evaluations again and compare: ok, near or off."""
    from nyima_lab.measure.reproduce import reproduce_all

    found = await reproduce_all(file, only, data_folder, lambda line: console(err=True).print(line))

    def text(out: Console) -> None:
        for row in found:
            out.print(f"{row['verdict']:8} {row['name']}: {row['shown']}")

    common.show({"entries": found}, text)
    if any(row["verdict"] in {"off", "failed"} for row in found):
        raise typer.Exit(1)


def add_to(group: typer.Typer) -> None:
    """Register the commands."""
    command(group, "data", "nyima eval data msc data/msc")(data)
    command(group, "build", "nyima eval build knowledge data/msc knowledge.jsonl --limit 10")(build)
    command(group, "merge-pools", "nyima eval merge-pools feedback.jsonl 10 pools.jsonl")(merge_pools)
    command(group, "sheet", "nyima eval sheet knowledge.jsonl sheet.csv --sample 50")(sheet)
    command(group, "agreement", "nyima eval agreement ann.csv ben.csv eve.csv")(agreement)
    command(group, "quality", "nyima eval quality gate --data data/msc --limit 20")(quality)
    command(group, "compare", "nyima eval compare runs/a runs/b")(compare)
    command(group, "reproduce", "nyima eval reproduce --data data --only retrieval")(reproduce)
