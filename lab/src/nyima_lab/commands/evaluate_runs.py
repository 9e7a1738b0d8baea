"""The commands that run an evaluation and show what came of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from nyima.cli.common import Common, command, console, ensure_packs
from nyima.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from nyima.app.environment import Settings
    from nyima.domain.ports import ChatModel
    from nyima_lab.measure.runner import Run
    from nyima_lab.measure.tables import Prices
    from nyima_lab.measure.tasks import Choice, Task

__all__ = ["add_to", "closing", "open_model"]

_HASHED = 50_000_000
_RECIPES = "none,history,summary,conditional"


def open_model(settings: Settings, name: str | None) -> ChatModel:
    """A chat model by name, else the settings' own; its pack is fetched once."""
    from nyima.app.environment import find_chat_model

    chosen = replace(settings, model=name) if name else settings
    ensure_packs(chosen, "chat")
    return find_chat_model(chosen)


@dataclass(frozen=True, slots=True)
class Which:
    """Which cases and questions."""

    dataset: Annotated[str | None, typer.Option("--dataset", help="Which format it has, where that is not plain.")] = (
        None
    )
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many cases.")] = None
    seed: Annotated[int | None, typer.Option("--seed", help="Shuffle the cases by this number first.")] = None
    skip: Annotated[int, typer.Option("--skip", min=0, help="Leave out the first cases: what was tuned on.")] = 0
    sessions: Annotated[int | None, typer.Option("--sessions", min=1, help="Only the first sessions of each.")] = None
    questions: Annotated[int | None, typer.Option("--questions", min=1, help="Only the first questions of each.")] = (
        None
    )
    pool: Annotated[int, typer.Option("--pool", min=1, help="So many cases as one memory.")] = 1


@dataclass(frozen=True, slots=True)
class Judging:
    """Who judges, and how."""

    judge: Annotated[
        str, typer.Option("--judge", help="score, accuracy, gsb, choice, single, pair or none (default: the task's).")
    ] = ""
    judge_model: Annotated[
        str | None, typer.Option("--judge-model", help="The model that judges (default: the same).")
    ] = None
    bertscore: Annotated[bool, typer.Option("--bertscore", help="Also BERTScore with the local embedder.")] = False


@dataclass(frozen=True, slots=True)
class How:
    """With what, and where to."""

    model: Annotated[str | None, typer.Option("--model", help="The chat model (default: the settings').")] = None
    writer_model: Annotated[
        str | None, typer.Option("--writer-model", help="The model that writes the memory (default: the same).")
    ] = None
    parallel: Annotated[int, typer.Option("--parallel", min=1, help="Cases at a time.")] = 1
    price_prompt: Annotated[float, typer.Option("--price-prompt", help="Price of a million prompt tokens.")] = 0.0
    price_completion: Annotated[float, typer.Option("--price-completion", help="Of a million written tokens.")] = 0.0
    out: Annotated[Path | None, typer.Option("--out", help="The folder of the run (default: below runs/).")] = None


@asynccontextmanager
async def closing(*models: ChatModel | None) -> AsyncIterator[None]:
    """Close models at the end, each once."""
    try:
        yield
    finally:
        for model in {id(m): m for m in models if m is not None}.values():
            close = getattr(model, "close", None)
            if close is not None:
                await close()


async def run(
    common: Common,
    task: Annotated[
        str, typer.Argument(help="learning-knowledge, continuing, feedback, sessions, questions or preferences.")
    ],
    data: Annotated[Path, typer.Option("--data", help="The publisher's file or folder, or cases as JSON Lines.")],
    which: Which,
    judging: Judging,
    how: How,
    recipes: Annotated[
        str, typer.Option("--recipes", help="Comma-separated; name@k for other numbers of pieces.")
    ] = _RECIPES,
) -> None:
    """Run a task with some recipes. Ctrl-C, and the same command again goes on."""
    from nyima.app.environment import find_embedder
    from nyima_lab.measure.replay import ReplayedModel
    from nyima_lab.measure.report import add_bertscore
    from nyima_lab.measure.runner import Run, run_cases
    from nyima_lab.measure.tables import Prices
    from nyima_lab.measure.tasks import Choice, choose_cases, dataset_of

    chosen, names = _task(task, data), _names(recipes)
    settings = common.settings()
    ensure_packs(settings, "embed")
    embedder = find_embedder(settings)
    if judging.bertscore and not hasattr(embedder, "token_vectors"):
        raise InputError("BERTScore needs token vectors: use the local embedder (embedder = minilm-l6-int8)")
    choice = Choice(which.seed, which.skip, which.limit, which.sessions, which.pool, which.questions)
    kind = dataset_of(chosen, data, which.dataset)
    chat = open_model(settings, how.model)
    writer = open_model(settings, how.writer_model) if how.writer_model else chat
    names_of = {"model": chat.name, "writer": writer.name, "embedder": embedder.name if embedder else "none"}
    names_of["queries"] = settings.query_embedder or names_of["embedder"]
    folder, config = _folder(how.out, chosen, kind, data, choice, (names_of, settings))
    run = Run.open(folder, config)
    held = {chat.name: chat, writer.name: writer}
    judge_model = held.get(judging.judge_model or chat.name) or open_model(settings, judging.judge_model)
    try:
        async with closing(chat, writer, judge_model):
            builder = ReplayedModel(chat, run.calls)
            say = console(err=True).print
            cases = await choose_cases(chosen, kind, data, choice, folder / "cases.jsonl", builder, say)
            prices = Prices(how.price_prompt, how.price_completion)
            with _Bar(prices) as bar:
                await run_cases(run, cases, names, (chat, writer), embedder, parallel=how.parallel, progress=bar.show)
            checked = await _judged(run, judging.judge or chosen.judge, judge_model, names)
        if judging.bertscore:
            for row in await add_bertscore(run.rows, embedder):
                run.add(row)
        summary = _reported(run, {case.name for case in cases}, (chosen, names), prices, checked)
    finally:
        run.close()

    def text(out: Console) -> None:
        show_table(out, summary)
        out.print(f"report: {folder / 'report.html'}")

    common.show(summary, text)


def _reported(
    run: Run, cases: set[str], what: tuple[Task, list[str]], prices: Prices, checked: dict[str, Any] | None
) -> dict[str, Any]:
    """Write the report of the cases that were chosen, and give its figures."""
    from nyima_lab.measure.report import summarise, write_report

    task, names = what
    rows = [row for row in run.rows if row["case"] in cases]
    saved = json.loads((run.folder / "run.json").read_text("utf-8"))
    summary = summarise(rows, names, task, saved, prices, checked)
    write_report(run.folder, rows, summary)
    return summary


def _task(name: str, data: Path) -> Task:
    from nyima_lab.measure.tasks import TASKS

    if name not in TASKS:
        raise InputError(f"there is no task {name!r}: choose one of {', '.join(TASKS)}")
    if not data.exists():
        raise InputError(f"{data} does not exist: give the publisher's file or folder, or cases as JSON Lines")
    return TASKS[name]


def _names(recipes: str) -> list[str]:
    from nyima.app.registry import recipe_named

    names = list(dict.fromkeys(r.strip() for r in recipes.split(",") if r.strip()))
    for name in names:
        recipe_named(name)
    if not names:
        raise InputError("there is no recipe to run: give --recipes none,history")
    return names


def fingerprint(data: Path, settings: Settings) -> str:
    """What answers depend on beside the options: the data files, the prompts and recipes of
    this version, the persona, the examples. A run goes on only where it is the same."""
    from importlib import resources

    from nyima.app.registry import registry

    files = [data] if data.is_file() else sorted(p for p in data.rglob("*") if p.is_file())
    parts = [f"{p.name} {p.stat().st_size}" for p in files]
    parts += [hashlib.sha256(p.read_bytes()).hexdigest() for p in files if p.stat().st_size < _HASHED]
    prompts = sorted((p for p in (resources.files("nyima") / "prompts").iterdir()), key=lambda p: p.name)
    parts += [p.read_text("utf-8") for p in prompts if not p.name.startswith(("judge-", "build-"))]
    parts += [repr(sorted(registry().recipes.items())), repr(settings.k)]
    for name in (settings.persona, settings.examples):
        parts.append(Path(name).expanduser().read_text("utf-8") if name else "")
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]


def _folder(
    out: Path | None, task: Task, dataset: str, data: Path, choice: Choice, made_with: tuple[dict[str, str], Settings]
) -> tuple[Path, dict[str, Any]]:
    """The folder of a run: the one that the same command began, else a new one."""
    from nyima import __version__

    models, settings = made_with
    now = datetime.now(UTC)
    kept = {k: v for k, v in asdict(choice).items() if k not in {"limit", "questions"}}
    kept["of"] = fingerprint(data, settings)
    config = {
        "task": task.name,
        "dataset": dataset,
        "data": data.name,
        **models,
        **kept,
    }
    mark = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]
    config["made"] = {"version": __version__, "at": now.isoformat(timespec="seconds")}
    if out is not None:
        return out, config
    begun = sorted(Path("runs").glob(f"*-{task.name}-{mark}"))
    return (begun[-1] if begun else Path("runs") / f"{now:%Y-%m-%d}-{task.name}-{mark}"), config


class _Bar:
    """The progress bar of a run: samples, calls, tokens, cost, time left."""

    def __init__(self, prices: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (TextColumn("{task.completed}/{task.total}"), BarColumn(), TextColumn("{task.fields[spent]}"))
        self._bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console(err=True))
        self._task = self._bar.add_task("run", total=None, spent="")
        self._prices = prices

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def show(self, done: Any) -> None:
        """Draw how far the run is."""
        usage = done.usage
        cost = self._prices.of(asdict(usage))
        spent = f"{usage.calls} calls, {usage.prompt + usage.completion:,} tokens"
        spent += f", {cost:.2f}" if cost else ""
        spent += f", [red]{done.failed} failed[/]" if done.failed else ""
        self._bar.update(self._task, completed=done.done, total=done.total, spent=spent)


async def _judged(run: Run, judging: str, model: ChatModel, names: Sequence[str]) -> dict[str, Any] | None:
    """Judge what is not judged yet; the judge's own error rate."""
    from nyima_lab.measure.judges import JUDGES, error_rate, judge_rows
    from nyima_lab.measure.replay import ReplayedModel

    if judging == "none":
        return None
    if judging not in JUDGES:
        raise InputError(f"there is no judge {judging!r}: choose one of {', '.join(JUDGES)}, or none")
    judge = JUDGES[judging]
    seen = ReplayedModel(model, run.calls)
    with console(err=True).status(f"judging with {model.name}"):
        await judge_rows(judge, seen, list(run.rows), names, run.done("verdict"), run.add)
        return await error_rate(judge, seen)


def show_table(out: Console, summary: dict[str, Any]) -> None:
    """The table of a run, with intervals."""
    from rich.table import Table

    from nyima_lab.measure.report import checks_line

    table = Table(title=f"{summary['config']['task']}: {summary['questions']} questions of {summary['cases']} cases")
    metrics = summary["metrics"]
    for name in ("recipe", *metrics, "calls/turn", "tokens/turn", "p50 s", "failed", "unjudged"):
        table.add_column(name, justify="left" if name == "recipe" else "right")
    for line in summary["lines"]:
        marks = [_mark(line["scores"].get(m)) for m in metrics]
        costs = (
            f"{line['calls']:.2f}",
            f"{line['tokens']:.0f}",
            f"{line['seconds']:.1f}",
            f"{line['failed']}",
            f"{line['unjudged']}",
        )
        table.add_row(line["label"], *marks, *costs)
    out.print(table)
    for line in summary["lines"][1:]:
        for metric, ahead in line["ahead"].items():
            if metric == metrics[0]:
                found = f"{ahead['mean']:+.3f} [{ahead['low']:+.3f}, {ahead['high']:+.3f}]"
                counts = f"{ahead['wins']} won, {ahead['ties']} tied, {ahead['losses']} lost"
                out.print(f"{line['recipe']} against {summary['lines'][0]['recipe']}, {metric}: {found}; {counts}")
    checked = summary["judge"]
    if checked:
        out.print(checks_line(checked))


def _mark(score: dict[str, float] | None) -> str:
    return "-" if score is None else f"{score['mean']:.3f} [{score['low']:.2f}, {score['high']:.2f}]"


def add_to(group: typer.Typer) -> None:
    """Register the commands."""
    command(group, "run", "nyima eval run learning-knowledge --data msc/ --recipes none,history,conditional --limit 5")(
        run
    )
