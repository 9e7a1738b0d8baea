"""Recall against gold evidence, through the shipped write and read paths.

LoCoMo and BEAM are scored by turn, LongMemEval and RealMem by session, where a
session's rank is that of its best turn. ``share`` is the mean share of a question's
evidence in the top k, ``all`` the share of questions with all of it there, ``any`` with
some of it; ``mrr`` and ``ndcg`` are of the same ranking. RealMem asks in the middle of a history: only earlier sessions count.

The row ``recall`` is the call that users make: ``Memory.recall(question)`` with its defaults, over a memory
that did all the work that its turns owe. Its ``tokens`` are the mean length of what it returns.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import fmean
from typing import Any

from nyima.app.registry import recipe_named
from nyima.domain.evidence import Budget, Query, Recall
from nyima.domain.ports import Embedder
from nyima.errors import InputError
from nyima.language.words import tokens
from nyima.memory import Memory
from nyima.testing import FixedClock
from nyima.write.jobs import turn_id
from nyima_lab.measure.cases import Case, Question
from nyima_lab.measure.metrics import ranked
from nyima_lab.measure.stats import interval
from nyima_lab.readers import read_cases

__all__ = ["run_retrieval"]

_KS = {
    "locomo": (5, 10, 20, 50), "locomo-corrected": (5, 10, 20, 50), "beam": (10, 20), "longmemeval": (5, 10),
    "realmem": (5, 10),
}  # fmt: skip
Scored = tuple[str, dict[str, float]]
RECALL = "recall"
_DEFAULT_K = 10
_BY_SESSION = frozenset({"longmemeval", "realmem"})
_PIECES = {"locomo": 50, "locomo-corrected": 50, "beam": 20, "longmemeval": 120, "realmem": 200}


async def run_retrieval(
    dataset: str,
    path: Path,
    recipes: Sequence[str],
    embedder: Embedder | None,
    *,
    limit: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Build a memory for each case, ask its questions with each recipe, and score."""
    started = time.perf_counter()
    for name in recipes:
        recipe_named(name)
    if dataset not in _KS:
        raise InputError(f"{dataset!r} has no evidence to find: choose one of {', '.join(_KS)}")
    every = read_cases(dataset, path)[:limit]
    left_out = sum(not q.gold for c in every for q in c.questions)
    cases = [replace(c, questions=tuple(q for q in c.questions if q.gold)) for c in every]
    total = sum(len(c.sessions) + len(c.questions) for c in cases)
    done = 0
    scores: dict[tuple[str, int], list[Scored]] = {}
    sizes: list[int] = []
    by_type: dict[str, dict[str, list[Scored]]] = {}
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            at = case.sessions[-1][1][-1].at
            clock = FixedClock(at) if at else FixedClock()
            memory, whole = [
                await Memory.open(
                    Path(folder) / f"{name}.db", user="eval", model="none", embedder=embedder or "none", clock=clock
                )
                for name in ("turns", "whole")
            ]
            for id, turns in case.sessions:
                if turns:
                    await memory.remember(turns, session=id, owed=False)
                    await whole.remember(turns, session=id)
                    await whole.end_session(id)
                done += 1
                progress(done, total)
            await memory.ingest.index(memory.scope)
            await whole.drain()
            for question in case.questions:
                for name in recipes:
                    ranking = await _ranking(memory, dataset, case, question, name)
                    for k in _KS[dataset]:
                        result = (case.name, ranked(ranking, question.gold, k))
                        scores.setdefault((name, k), []).append(result)
                        if k == _KS[dataset][0] or (dataset.startswith("locomo") and k == 10):
                            by_type.setdefault(f"{name} @{k}", {}).setdefault(question.kind, []).append(result)
                asked = await _default_call(whole, question)
                sizes.append(sum(tokens(piece.text) for piece in asked.kept))
                result = (case.name, ranked(_order(asked, dataset, case, question), question.gold, _DEFAULT_K))
                scores.setdefault((RECALL, _DEFAULT_K), []).append(result)
                by_type.setdefault(f"{RECALL} @{_DEFAULT_K}", {}).setdefault(question.kind, []).append(result)
                done += 1
                progress(done, total)
            await memory.close()
            await whole.close()
    rows: list[dict[str, Any]] = [{"recipe": n, "k": k, **_means(values)} for (n, k), values in scores.items()]
    for row in rows:
        if row["recipe"] == RECALL:
            row["tokens"] = round(fmean(sizes), 1)
    return {
        "dataset": dataset,
        "questions": sum(len(c.questions) for c in cases),
        "left_out": left_out,
        "rows": rows,
        "by_type": {n: {kind: {**_means(v), "questions": len(v)} for kind, v in t.items()} for n, t in by_type.items()},
        "seconds": round(time.perf_counter() - started, 1),
    }


async def _ranking(memory: Memory, dataset: str, case: Case, question: Question, recipe: str) -> list[str]:
    """The ids of turns or sessions, best first, each once."""
    return _order(await _recall(memory, question, recipe, _PIECES[dataset]), dataset, case, question)


def _order(found: Recall, dataset: str, case: Case, question: Question) -> list[str]:
    names = {turn_id(s, t.id): (s, t.id) for s, turns in case.sessions for t in turns}
    order: list[str] = []
    for piece in found.kept:
        if not piece.record.provenance.turns:
            continue
        session, turn = names[piece.record.provenance.turns[0]]
        if question.before is not None and int(session) >= int(question.before):
            continue
        name = session if dataset in _BY_SESSION else turn
        if name not in order:
            order.append(name)
    return order


async def _default_call(memory: Memory, question: Question) -> Recall:
    """Return what ``recall(question)`` gives a user who sets nothing else."""
    as_of = (question.at or memory.clock.now()) - timedelta(microseconds=1) if question.before else None
    return await memory.recall(question.text, as_of=as_of, log=False)


async def _recall(memory: Memory, question: Question, recipe: str, pieces: int) -> Recall:
    recaller = memory.parts.recaller(recipe_named(recipe), k=pieces)
    at = question.at or memory.clock.now()
    before = None if question.before is None else at - timedelta(microseconds=1)
    query = Query(question.text, at, kinds=("episode",), as_of=before)
    return await recaller.recall(memory.scope, query, Budget(pieces, 10_000_000))


def _means(values: Sequence[Scored]) -> dict[str, float]:
    """The means, and the interval of the share with whole conversations drawn."""
    means = {name: round(fmean(v[name] for _, v in values), 4) for name in values[0][1]}
    found = interval([v["share"] for _, v in values], [case for case, _ in values])
    return {**means, "share_low": round(found.low, 4), "share_high": round(found.high, 4)}
