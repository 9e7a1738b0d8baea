"""The commands that measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.common import Common, command, console, ensure_packs
from nyima_lab.commands import evaluate_graph, evaluate_runs, evaluate_sets, evaluate_sources

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["add_to"]


async def retrieval(
    common: Common,
    dataset: Annotated[str, typer.Argument(help="locomo, longmemeval, realmem or beam.")],
    path: Annotated[Path, typer.Argument(help="The publisher's file or folder.")],
    recipes: Annotated[str, typer.Option("--recipes", help="Comma-separated.")] = "bm25,dense,fusion,default",
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first conversations.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="A .png or .svg file for a plot.")] = None,
) -> None:
    """Measure recall against gold evidence, through the shipped path, without a chat model."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from nyima.app.environment import find_embedder
    from nyima_lab.measure.retrieval import run_retrieval

    settings = common.settings()
    ensure_packs(settings, "embed")
    embedder = find_embedder(settings)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console(err=True)) as progress:
        bar = progress.add_task(dataset, total=None)
        report = await run_retrieval(
            dataset,
            path,
            tuple(r.strip() for r in recipes.split(",") if r.strip()),
            embedder,
            limit=limit,
            progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    if plot is not None:
        from nyima_lab.measure.plot import plot_retrieval

        plot_retrieval(report, plot)

    def text(out: Console) -> None:
        _table(out, report)

    common.show(report, text)


def _table(out: Console, report: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(title=f"{report['dataset']}: {report['questions']} questions ({report['left_out']} left out)")
    for name in ("recipe", "k", "share", "95 %", "all", "any", "MRR", "nDCG"):
        table.add_column(name, justify="left" if name == "recipe" else "right")
    for row in report["rows"]:
        between = f"{row['share_low']:.3f} to {row['share_high']:.3f}"
        rest = (f"{row[n]:.3f}" for n in ("all", "any", "mrr", "ndcg"))
        table.add_row(row["recipe"], str(row["k"]), f"{row['share']:.3f}", between, *rest)
    out.print(table)
    out.print(f"{report['seconds']:.0f} s")


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="Measure how good a memory is.", no_args_is_help=True)
    command(group, "retrieval", "nyima eval retrieval locomo locomo10.json --limit 2")(retrieval)
    evaluate_runs.add_to(group)
    evaluate_sets.add_to(group)
    evaluate_graph.add_to(group)
    evaluate_sources.add_to(group)
    app.add_typer(group, name="eval")
