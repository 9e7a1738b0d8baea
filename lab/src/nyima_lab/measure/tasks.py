"""What is measured: tasks, with the data that they take and the columns that they show."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nyima.errors import ConfigError, InputError
from nyima_lab.measure.builders import build_knowledge, merge_pools
from nyima_lab.measure.cases import Case, write_cases
from nyima_lab.measure.replay import ReplayedModel
from nyima_lab.readers import read_cases

__all__ = ["TASKS", "Choice", "Task", "choose_cases", "dataset_of", "first_sessions"]


@dataclass(frozen=True, slots=True)
class Task:
    """``metrics`` are the columns of its table; ``judge`` the judge that fits."""

    name: str
    about: str
    datasets: tuple[str, ...]
    metrics: tuple[str, ...]
    judge: str


_ALL = (
    Task(
        "learning-knowledge",
        "questions on what the user said (Yuan et al. 2023, section 4.2)",
        ("msc", "jsonl"),
        ("rouge1", "rouge2", "f1"),
        "score",
    ),
    Task(
        "continuing",
        "a further turn of an earlier dialogue (Yuan et al. 2023, section 4.1)",
        ("jsonl",),
        ("rouge1", "rouge2", "f1"),
        "gsb",
    ),
    Task(
        "feedback",
        "a similar task after a suggestion (Yuan et al. 2023, section 4.3)",
        ("jsonl",),
        ("rouge1", "rouge2", "f1"),
        "gsb",
    ),
    Task(
        "sessions",
        "the next reply, by session (Wang et al. 2023, section 5)",
        ("msc", "carecall", "jsonl"),
        ("f1", "bleu1", "bleu2", "words"),
        "single",
    ),
    Task(
        "questions",
        "questions on long conversations",
        ("locomo", "locomo-corrected", "longmemeval", "beam", "realmem", "memorybank", "jsonl"),
        ("f1", "em", "rougeL"),
        "accuracy",
    ),
    Task("preferences", "answers that must follow a preference", ("prefeval", "jsonl"), ("rouge1", "f1"), "rubric"),
)
TASKS: Mapping[str, Task] = {task.name: task for task in _ALL}


def dataset_of(task: Task, path: Path, named: str | None) -> str:
    """The data set that a path holds, for a task: the named one, else by what is there."""
    if named:
        if named not in task.datasets:
            raise ConfigError(f"the task {task.name} does not take {named!r}: choose one of {', '.join(task.datasets)}")
        return named
    if path.suffix == ".jsonl" and "jsonl" in task.datasets:
        return "jsonl"
    if path.is_dir() and (path / "msc_dialogue").is_dir() and "msc" in task.datasets:
        return "msc"
    fits = [name for name in task.datasets if name in str(path).casefold()] or [
        n for n in task.datasets if n != "jsonl"
    ]
    if len(fits) == 1:
        return fits[0]
    raise ConfigError(f"which data set is {path}? give --dataset with one of {', '.join(task.datasets)}")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cases: shuffled by ``seed`` (as they come when it is None), without the first
    ``skip``, at most ``limit``; the first ``sessions`` of each; ``pool`` of them as one memory."""

    seed: int | None = None
    skip: int = 0
    limit: int | None = None
    sessions: int | None = None
    pool: int = 1
    questions: int | None = None


async def choose_cases(
    task: Task,
    dataset: str,
    path: Path,
    choice: Choice,
    kept: Path,
    builder: ReplayedModel,
    note: Callable[[str], None] = lambda text: None,
) -> list[Case]:
    """The cases of a run. Learning new knowledge from MSC itself first makes its questions,
    and keeps them in ``kept``."""
    cases = read_cases(dataset, path)
    if choice.seed is not None:
        random.Random(choice.seed).shuffle(cases)  # noqa: S311 - a sample, no secret
    cases = cases[choice.skip :][: choice.limit]
    if choice.sessions is not None:
        cases = [first_sessions(case, choice.sessions) for case in cases]
    if task.name == "learning-knowledge" and dataset == "msc":
        cases = await _with_questions(cases, kept, builder, note)
    if choice.questions is not None:
        cases = [replace(c, questions=c.questions[: choice.questions]) for c in cases]
    cases = merge_pools(cases, choice.pool) if choice.pool > 1 else cases
    cases = [c for c in cases if c.questions]
    if not cases:
        raise InputError(f"{path}: no case with a question is left: take a larger --limit or fewer --skip")
    return cases


def first_sessions(case: Case, count: int) -> Case:
    """A case with its first sessions, and the questions and gold memory that belong there."""
    names = [id for id, _ in case.sessions][:count]
    left = {*names, "persona", ""}
    questions = tuple(q for q in case.questions if q.before is None or q.before in names)
    gold = tuple(g for g in case.gold_memory if g.session in left)
    return replace(case, sessions=case.sessions[:count], questions=questions, gold_memory=gold)


async def _with_questions(
    cases: Sequence[Case], kept: Path, builder: ReplayedModel, note: Callable[[str], None]
) -> list[Case]:
    made: list[Case] = []
    for number, case in enumerate(cases, 1):
        built = await build_knowledge(case, builder)
        made.append(built.case)
        note(f"questions for {number} of {len(cases)} dialogues, {len(built.case.questions)} for {case.name}")
    write_cases(kept, made)
    return made
