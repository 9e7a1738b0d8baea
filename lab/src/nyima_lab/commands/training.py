"""The commands that train."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.bars import curve_line, progress
from nyima.cli.common import Common, command, ensure_packs
from nyima.memory import Memory
from nyima_lab.commands import training_models

if TYPE_CHECKING:
    from rich.console import Console

    from nyima.domain.ports import ChatModel, Embedder
    from nyima.mechanisms.graph.versions import Version
    from nyima_lab.train.run import RunReport

__all__ = ["add_to"]


@dataclass(frozen=True, slots=True)
class Lessons:
    """What is learned from, and how long."""

    realmem: Annotated[Path | None, typer.Option("--realmem", help="Learn from RealMem's files.")] = None
    longmemeval: Annotated[Path | None, typer.Option("--longmemeval", help="Learn from LongMemEval's oracle file.")] = (
        None
    )
    answers: Annotated[str, typer.Option("--answers", help="quote, or model (a frozen model answers).")] = "quote"
    episodes: Annotated[int, typer.Option("--episodes", min=0, max=100_000, help="Of the policy gradient.")] = 100
    undo: Annotated[bool, typer.Option("--undo", help="Go back to the version before.")] = False

    def source(self) -> tuple[str, Path | None]:
        """The sort of examples, and where they are."""
        if self.realmem is not None:
            return "realmem", self.realmem
        return ("longmemeval", self.longmemeval) if self.longmemeval is not None else ("own", None)


Trainer = Callable[[Memory, "ChatModel | None", "Embedder", "RunReport"], Awaitable["tuple[Version, dict[str, Any]]"]]


async def _learned(common: Common, lessons: Lessons, kind: str, train: Trainer) -> tuple[int, dict[str, Any]] | None:
    """Train with the models that it needs, or take the last training back (then None)."""
    from nyima.app.environment import find_chat_model, find_embedder
    from nyima.errors import InputError
    from nyima.mechanisms.graph.versions import roll_back

    if lessons.answers not in {"quote", "model"}:
        raise InputError(f"--answers is {lessons.answers!r}: give quote or model")
    settings = common.settings()
    asks = not lessons.undo and (lessons.source()[0] == "own" or lessons.answers == "model")
    ensure_packs(settings, "embed", *(("chat",) if asks else ()))
    memory = await Memory.open(settings.db, user=settings.user, model="none")
    model = find_chat_model(settings) if asks else None
    try:
        if lessons.undo:
            version = await roll_back(memory, kind)
            data: dict[str, Any] = {"version": version.number, "report": version.report}
            line = f"version {version.number}: back to {version.report.get('back_to')}"
            common.show(data, lambda out: out.print(line))
            return None
        embedder = find_embedder(settings)
        if embedder is None:
            raise InputError("what is learned compares vectors: set NYIMA_EMBEDDER")
        with progress() as note:
            version, report = await train(memory, model, embedder, note)
        return version.number, report
    finally:
        if model is not None:
            await model.close()
        await memory.close()


async def policy(
    common: Common,
    lessons: Lessons = Lessons(),
    k: Annotated[int, typer.Option("--k", min=1, max=10, help="How many memories activate nodes.")] = 3,
) -> None:
    """Train the walk over the graph: progress, curve, and a table before and after."""
    from nyima.mechanisms.graph.versions import KIND
    from nyima_lab.train.run import TrainingPlan, gather, train_policy

    plan = TrainingPlan(k=k, gradient=lessons.episodes, answers=lessons.answers)

    async def train(
        memory: Memory, model: ChatModel | None, embedder: Embedder, note: RunReport
    ) -> tuple[Version, dict[str, Any]]:
        asked = await gather(memory, model, embedder, lessons.source(), k, note)
        return await train_policy(memory, asked, plan, model, note)

    done = await _learned(common, lessons, KIND, train)
    if done is not None:
        number, report = done
        common.show({"version": number, **report}, lambda out: _show(out, number, report))


async def partitions(
    common: Common,
    lessons: Lessons = Lessons(),
    k: Annotated[int, typer.Option("--k", min=1, max=20, help="How many memories a partition brings.")] = 5,
) -> None:
    """Train the agent that selects a partition (the baseline M-RAG, recipe m-rag)."""
    from nyima_lab.baselines.partition_agent import PARTITION_AGENT
    from nyima_lab.train.partition_choice import choices_of, train_partitions
    from nyima_lab.train.run import TrainingPlan

    plan = TrainingPlan(k=k, gradient=lessons.episodes, answers=lessons.answers)

    async def train(
        memory: Memory, model: ChatModel | None, embedder: Embedder, note: RunReport
    ) -> tuple[Version, dict[str, Any]]:
        choices = await choices_of(memory, model, embedder, lessons.source(), k, note)
        return await train_partitions(memory, choices, plan, model, note)

    done = await _learned(common, lessons, PARTITION_AGENT, train)
    if done is not None:
        number, report = done
        common.show({"version": number, **report}, lambda out: _show_partitions(out, number, report))


def _curves(out: Console, report: dict[str, Any]) -> str:
    for name, values in report["curve"].items():
        if values:
            out.print(f"{name:16} {curve_line(values)}  {values[0]:.3f} to {values[-1]:.3f}")
    return f"{report['tested']} questions that were not learned from, {report['examples']} learned from"


def _show_partitions(out: Console, number: int, report: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(title=_curves(out, report))
    for name in ("chosen by", "share", "95 %", "difference", "p"):
        table.add_column(name, justify="left" if name == "chosen by" else "right")
    for row in report["table"]:
        spread = f"{row['low']:.3f} to {row['high']:.3f}"
        table.add_row(row["agent"], f"{row['share']:.3f}", spread, f"{row['gap']:+.3f}", f"{row['p']:.3f}")
    out.print(table)
    out.print(f"version {number} is in use; `nyima train partitions --undo` takes it back")


def _show(out: Console, number: int, report: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(title=_curves(out, report))
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
    from nyima_lab.train.classes import assign

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
    command(group, "partitions", "nyima train partitions --realmem realmem/ --episodes 2000")(partitions)
    training_models.add_to(group)
    command(group, "classes", "nyima train classes --epochs 500")(classes)
    app.add_typer(group, name="train")
