"""The runner: builds a memory for each case with each recipe, asks, and keeps every row.

It drives the shipped write path (``Memory.remember``, ``end_session``, ``drain``) and read
path (``Assistant.reply`` in a private chat, so that no question changes the memory for the
next). Rows are appended to ``rows.jsonl`` as they come; what is there is not done again,
failures are tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from nyima.app.registry import recipe_named
from nyima.assistant import Assistant
from nyima.domain.changes import Add, Delta
from nyima.domain.conversation import Role
from nyima.domain.evidence import Usage
from nyima.domain.ports import ChatModel, Embedder, Event
from nyima.domain.records import Interval, Provenance, Summary
from nyima.errors import InputError, ModelError, NyimaError, StoreError, StoreFull
from nyima.memory import Memory
from nyima.read.trace import trace_event
from nyima.testing import FixedClock
from nyima_lab.measure.cases import Case, Question
from nyima_lab.measure.replay import Calls, Meter, ReplayedModel

__all__ = ["Progress", "Run", "read_rows", "run_cases"]

GOLD = "gold-memory"
_UNUSABLE = ("ModelUnreachable", "ModelRefused", "NoModel")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. ``usage`` and ``seconds`` are what its calls cost."""

    done: int
    total: int
    failed: int
    usage: Usage
    seconds: float


@dataclass(slots=True)
class Run:
    """A folder with the rows of a run."""

    folder: Path
    calls: Calls
    _rows: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict[tuple[str, ...], dict[str, Any]])

    @classmethod
    def open(cls, folder: Path, config: Mapping[str, Any]) -> Run:
        """Open or begin a run. Raises InputError when the folder holds another run,
        StoreLocked when it is going on."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder} cannot be made: {error.strerror}: give another --out") from error
        with contextlib.ExitStack() as undo:
            calls = Calls(folder / "calls.db")
            undo.callback(calls.close)
            _same_run(folder, config)
            rows = {(r["row"], *_key(r)): r for r in read_rows(folder)}
            undo.pop_all()
        return cls(folder, calls, rows)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows, the newest of each."""
        return list(self._rows.values())

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row at once."""
        line = json.dumps(row, ensure_ascii=False) + "\n"
        try:
            with (self.folder / "rows.jsonl").open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            raise StoreFull(
                f"{self.folder} cannot be written: {error.strerror}: free some space and run it again"
            ) from error
        self._rows[(row["row"], *_key(row))] = row

    def done(self, kind: str) -> set[tuple[str, ...]]:
        """The keys of the rows of a kind that did not fail."""
        return {_key(r) for r in self.rows if r["row"] == kind and not r["failed"]}

    def close(self) -> None:
        """Let go of the folder."""
        self.calls.close()


def _same_run(folder: Path, config: Mapping[str, Any]) -> None:
    path = folder / "run.json"
    if not path.exists():
        _write(path, json.dumps(config, ensure_ascii=False, indent=2))
        return
    try:
        before = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{path} cannot be read ({error}): give another --out, or remove the folder") from error
    other = [k for k, v in config.items() if k != "made" and before.get(k) != v]
    if other:
        what = ", ".join(f"{k} {before.get(k)!r}, not {config[k]!r}" for k in other)
        raise InputError(f"{folder} holds a run with {what}: give another --out")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise StoreFull(f"{path} cannot be written: {error.strerror}: free some space and run it again") from error


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(row.get(k, "")) for k in ("judge", "case", "question", "recipe", "other"))


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run, the newest of each; a line that was broken off is left out."""
    path = folder / "rows.jsonl"
    if not path.exists():
        return []
    newest: dict[tuple[str, ...], dict[str, Any]] = {}
    torn = ""
    text = path.read_text("utf-8", "replace")
    for line in text.split("\n"):
        if not line:
            continue
        try:
            row = json.loads(line)
        except ValueError:
            torn = line
            continue
        newest[(row["row"], *_key(row))] = row
    if torn and not text.endswith("\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")
    return list(newest.values())


@dataclass(slots=True)
class _Unit:
    """One case with one recipe: a memory, written once, and its questions."""

    run: Run
    case: Case
    recipe: str
    model: ReplayedModel
    writer: ReplayedModel
    embedder: Embedder | None

    async def work(self, done: Callable[[int, bool], None]) -> None:
        """Write, then ask what was not answered yet. Failures become rows."""
        answered = self.run.done("answer")
        left = [q for q in self.case.questions if ("", self.case.name, q.id, self.recipe, "") not in answered]
        done(len(self.case.questions) - len(left), False)
        if not left:
            return
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            clock = FixedClock(_start(self.case))
            assistant = await Assistant.open(
                Path(folder) / "eval.db", user="eval", model=self.model, recipe=self.recipe,
                embedder=self.embedder or "none", tools=(), clock=clock,
            )  # fmt: skip
            assistant.memory.parts = replace(assistant.memory.parts, writer_chat=self.writer)
            try:
                groups = _by_session(self.case, left)
                written = 0
                for before, questions in groups:
                    names = [id for id, _ in self.case.sessions]
                    until = names.index(before) if before in names else len(names)
                    error = await self._write(assistant, clock, written, until)
                    written = until
                    for question in questions:
                        row = self._failed(question, error) if error else await self._ask(assistant, clock, question)
                        self.run.add(row)
                        done(1, bool(row["failed"]))
            finally:
                await assistant.close()

    async def _write(self, assistant: Assistant, clock: FixedClock, start: int, until: int) -> str:
        """Bring sessions in, a row each; the error when that failed."""
        failed = ""
        for number in range(start, until):
            failed = failed or await self._session(assistant.memory, clock, number)
        if not failed and self.recipe.partition("@")[0] == GOLD:
            try:
                await _gold(assistant.memory, self.case, until)
            except InputError as error:
                failed = str(error)
        return failed

    async def _session(self, memory: Memory, clock: FixedClock, number: int) -> str:
        before, began, waited = replace(self.model.meter), time.perf_counter(), self.model.meter.waited
        id, said = self.case.sessions[number]
        failed = ""
        try:
            if said:
                clock.at = max(clock.at, said[-1].at or clock.at)
                await memory.remember(said, session=id, owed=True)
                await memory.end_session(id)
                clock.forward(hours=1)
                failed = await _drain(memory)
            await memory.ingest.index(memory.scope)
        except StoreError:
            raise  # a full disk stops the run; what is there is kept
        except NyimaError as error:
            failed = str(error)
        stats: dict[str, int] = {}
        for record in await memory.records():
            stats[record.kind] = stats.get(record.kind, 0) + 1
        own = time.perf_counter() - began - (self.model.meter.waited - waited)
        turns = sum(s.role is Role.USER for s in said)
        row = {
            "row": "write",
            "case": self.case.name,
            "recipe": self.recipe,
            "question": f"session {number}",
            "turns": turns,
        }
        spent = {**_spent(before, self.model.meter), "own": round(own, 4)}
        self.run.add({**row, **spent, "records": stats, "failed": failed})
        return failed

    async def _ask(self, assistant: Assistant, clock: FixedClock, question: Question) -> dict[str, Any]:
        clock.at = max(question.at or clock.at, clock.at)
        before, began, waited = replace(self.model.meter), time.perf_counter(), self.model.meter.waited
        row = self._failed(question, "")
        try:
            assistant.private = True
            await assistant.resume(turns=question.context)
            answer = await assistant.reply(question.text)
            row["reply"] = answer.text
            row["recall"] = dict(_trace(answer.recall, clock.now()).body)
            row["messages"] = [[m.role, m.content] for m in self.model.meter.last]
        except StoreError:
            raise
        except NyimaError as error:
            row["failed"] = f"{type(error).__name__}: {error}"
        finally:
            assistant.private = False
        own = time.perf_counter() - began - (self.model.meter.waited - waited)
        return {**row, **_spent(before, self.model.meter), "own": round(own, 4)}

    def _failed(self, question: Question, error: str) -> dict[str, Any]:
        return {
            "row": "answer", "case": self.case.name, "question": question.id, "recipe": self.recipe,
            "kind": question.kind, "text": question.text, "reference": question.answer, "reply": "",
            "context": [f"{t.role.value}: {t.text}" for t in question.context[-10:]],
            "known": _known(self.case, question), "failed": error,
        }  # fmt: skip


def _trace(recall: Any, at: datetime) -> Event:
    return trace_event(replace(recall, found=recall.found[:8]), at)


def _spent(before: Meter, after: Meter) -> dict[str, Any]:
    used = {k: v - getattr(before.usage, k) for k, v in asdict(after.usage).items()}
    return {**used, "seconds": round(after.seconds - before.seconds, 4)}


def _start(case: Case) -> datetime:
    times = [t.at for _, turns in case.sessions for t in turns if t.at]
    times += [q.at for q in case.questions if q.at]
    return min(times) if times else FixedClock().now()


def _known(case: Case, question: Question) -> list[str]:
    """The gold memory that belongs before a question, for judges."""
    names = [id for id, _ in case.sessions]
    until = names.index(question.before) if question.before in names else len(names)
    return [g.text for g in case.gold_memory if g.session in names[:until]][:40]


def _by_session(case: Case, questions: Sequence[Question]) -> list[tuple[str | None, list[Question]]]:
    """The questions in the order of the sessions before which they are asked."""
    names = {id: n for n, (id, _) in enumerate(case.sessions)}
    groups: dict[str | None, list[Question]] = {}
    for question in questions:
        groups.setdefault(question.before if question.before in names else None, []).append(question)
    return sorted(groups.items(), key=lambda g: names[g[0]] if g[0] is not None else len(names))


async def _drain(memory: Memory) -> str:
    """Do what is owed; what could not be done is an error, never left out silently."""
    report = await memory.drain()
    if not report["waiting"] and not report["parked"]:
        return ""
    jobs = await memory.store.jobs(memory.scope, ("queued", "leased", "parked"))
    return f"{len(jobs)} of the writers' jobs could not be done: {jobs[0].kind}: {jobs[0].error}"


async def _gold(memory: Memory, case: Case, until: int) -> None:
    """Put the memory that people wrote where the running memory stands."""
    names = [id for id, _ in case.sessions][:until]
    lines = list(dict.fromkeys(g.text for g in case.gold_memory if g.role is Role.USER and g.session in names))
    if not lines:
        raise InputError(f"{case.name} has no gold memory: take data that has it, or leave out the recipe {GOLD}")
    now = memory.clock.now()
    body = "\n".join(lines)
    made = Summary(
        id=f"s-gold-{until}", provenance=Provenance(writer="gold"), valid=Interval(now), recorded=Interval(now),
        level="running", covers=tuple(names), body=body,
    )  # fmt: skip
    await memory.store.commit(memory.scope, Delta((Add(made),), "gold"))


async def run_cases(
    run: Run,
    cases: Sequence[Case],
    recipes: Sequence[str],
    models: tuple[ChatModel, ChatModel],
    embedder: Embedder | None,
    *,
    parallel: int = 1,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Work off all cases with all recipes; ``parallel`` cases at a time. ``models`` are the
    one that answers and the one that writes. An unusable model
    (none of the first calls works) stops the run with its error."""
    for name in recipes:
        recipe_named(name)
    total = sum(len(c.questions) for c in cases) * len(recipes)
    meters: list[Meter] = []
    state = {"done": 0, "failed": 0}
    gate = asyncio.Semaphore(max(1, parallel))

    def step(count: int, failed: bool) -> None:
        state["done"] += count
        state["failed"] += failed
        usage = sum((m.usage for m in meters), Usage())
        progress(Progress(state["done"], total, state["failed"], usage, sum(m.seconds for m in meters)))
        if state["failed"] and state["failed"] == state["done"] >= 3:
            last = next(r for r in reversed(run.rows) if r["failed"])["failed"]
            if last.startswith(_UNUSABLE):
                raise ModelError(f"nothing works: {last}: mend that and run it again")

    async def one(case: Case) -> None:
        async with gate:
            for recipe in recipes:
                answers = ReplayedModel(models[0], run.calls)
                writes = ReplayedModel(models[1], run.calls, answers.meter)
                meters.append(answers.meter)
                await _Unit(run, case, recipe, answers, writes, embedder).work(step)

    tasks = [asyncio.ensure_future(one(case)) for case in cases]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
