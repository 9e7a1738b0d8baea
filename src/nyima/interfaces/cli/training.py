"""The commands that train."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.interfaces.cli import training_models
from nyima.interfaces.cli.bars import curve_line, progress
from nyima.interfaces.cli.common import Common, command, ensure_packs
from nyima.memory import Memory

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["add_to"]


async def policy(
    common: Common,
    realmem: Annotated[Path | None, typer.Option("--realmem", help="Learn from RealMem's files.")] = None,
    longmemeval: Annotated[
        Path | None, typer.Option("--longmemeval", help="Learn from LongMemEval's oracle file.")
    ] = None,
    answers: Annotated[str, typer.Option("--answers", help="quote, or model (a frozen model answers).")] = "quote",
    episodes: Annotated[int, typer.Option("--episodes", min=0, max=100_000, help="Of the policy gradient.")] = 100,
    k: Annotated[int, typer.Option("--k", min=1, max=10, help="How many memories activate nodes.")] = 3,
    undo: Annotated[bool, typer.Option("--undo", help="Go back to the version before.")] = False,
) -> None:
    """Train the walk over the graph: progress, curve, and a table before and after."""
    from nyima.app import find_chat_model, find_embedder
    from nyima.errors import InputError
    from nyima.policies import roll_back
    from nyima.train.run import Plan, gather, train_policy

    if answers not in {"quote", "model"}:
        raise InputError(f"--answers is {answers!r}: give quote or model")
    settings = common.settings()
    own = realmem is None and longmemeval is None
    ensure_packs(settings, "embed", *(("chat",) if (own or answers == "model") and not undo else ()))
    memory = await Memory.open(settings.db, user=settings.user, model="none")
    model = find_chat_model(settings) if (own or answers == "model") and not undo else None
    try:
        if undo:
            version = await roll_back(memory)
            data: dict[str, Any] = {"version": version.number, "report": version.report}
            common.show(
                data, lambda out: out.print(f"version {version.number}: back to {version.report.get('back_to')}")
            )
            return
        source = ("own", None) if own else ("realmem", realmem) if realmem is not None else ("longmemeval", longmemeval)
        with progress() as note:
            asked = await gather(memory, model, find_embedder(settings), source, k, note)
            version, report = await train_policy(
                memory, asked, Plan(k=k, gradient=episodes, answers=answers), model, note
            )
    finally:
        if model is not None:
            await model.close()
        await memory.close()
    common.show({"version": version.number, **report}, lambda out: _show(out, version.number, report))


def _show(out: Console, number: int, report: dict[str, Any]) -> None:
    from rich.table import Table

    for name, values in report["curve"].items():
        if values:
            out.print(f"{name:16} {curve_line(values)}  {values[0]:.3f} to {values[-1]:.3f}")
    table = Table(title=f"{report['tested']} questions that were not learned from, {report['examples']} learned from")
    for name in ("policy", "share", "95 %", "precision", "tokens", "cosine, same tokens", "difference", "p"):
        table.add_column(name, justify="left" if name == "policy" else "right")
    for row in report["table"]:
        table.add_row(
            row["policy"], f"{row['share']:.3f}", f"{row['low']:.3f} to {row['high']:.3f}", f"{row['precision']:.3f}",
            f"{row['tokens']:.0f}", f"{row['dense']:.3f}", f"{row['gap']:+.3f} [{row['gap_low']:+.3f}, {row['gap_high']:+.3f}]", f"{row['p']:.3f}",
        )  # fmt: skip
    out.print(table)
    out.print(f"version {number} is in use; `nyima train policy --undo` takes it back")


async def classes(
    common: Common,
    epochs: Annotated[int, typer.Option("--epochs", min=1, max=10_000, help="How often to go over it.")] = 300,
) -> None:
    """Learn embeddings of the graph (TransE) and assign each entity to its nearest subclass."""
    from nyima.train.classes import assign

    memory = await common.memory(embedder="none")
    try:
        found, loss = await assign(memory, epochs)
    finally:
        await memory.close()

    def text(out: Console) -> None:
        for name, subclass in found.items():
            out.print(f"{subclass:36} {name}", markup=False)
        out.print(f"{len(found)} entities, loss {loss:.3f}")

    common.show({"classes": found, "loss": round(loss, 4)}, text)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="Train what can be learned, for one user alone.", no_args_is_help=True)
    command(group, "policy", "nyima train policy --realmem realmem/ --episodes 200")(policy)
    training_models.add_to(group)
    command(group, "classes", "nyima train classes --epochs 500")(classes)
    app.add_typer(group, name="train")
