"""The evaluations of many sources (Wang et al. 2024, sections 6 and 7): planning, retrieval
of each source, replies with consistency, and refinement."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nyima.domain.evidence import Budget, Evidence, Query, Recall, Step, Usage
from nyima.domain.ports import Completion, Message
from nyima.domain.recipe import Recipe
from nyima.domain.roles import ReplyRequest
from nyima.errors import InputError
from nyima.read.embedding import QueryEmbedder
from nyima.read.prompting import Known, PromptBuilder
from nyima.read.reader import whole
from nyima.read.recall import BudgetSelector, Recaller
from nyima.read.refine import Refiner
from nyima_lab.baselines.trained_roles import NliCritic, TrainedReader
from nyima_lab.measure.bench import Bench, scope_of
from nyima_lab.measure.grounded import Sample, decision
from nyima_lab.measure.metrics import bleu, rouge
from nyima_lab.measure.planning import calibration, consistency_case, planning_scores
from nyima_lab.measure.stats import interval

__all__ = ["Setup", "run_planning", "run_replies", "run_retrieval"]

Report = Callable[[str, int, int], None]
_ROOM = Budget(12, 4_000)


async def run_planning(bench: Bench, planners: Sequence[str], note: Report) -> list[dict[str, Any]]:
    """F1 of each decision (table 3), and the milliseconds of a plan."""
    gold = [decision(s.plan) for s in bench.samples]
    rows: list[dict[str, Any]] = []
    for name in planners:
        planner = await bench.planner(name)
        planned: list[str] = []
        started = time.perf_counter()
        for i, sample in enumerate(bench.samples, 1):
            found = await planner.plan(scope_of(sample), bench.query(sample))
            planned.append(decision([step.source for step in found.steps]))
            note(f"planner {name}", i, len(gold))
        right = interval([float(g == p) for g, p in zip(gold, planned, strict=True)], [s.group for s in bench.samples])
        each = (time.perf_counter() - started) * 1_000 / max(1, len(gold))
        rows.append(
            {
                "planner": name,
                "n": len(gold),
                **planning_scores(gold, planned),
                "accuracy_95": [right.low, right.high],
                "ms": round(each, 2),
            }
        )
    return rows


async def run_retrieval(bench: Bench, retrievers: Sequence[str], note: Report) -> list[dict[str, Any]]:
    """Recall@1 of each source with the gold plan (table 4). Documents are looked for in three
    pools: all, those of the gold sentence, those of the sentence that was found. A name is a
    retriever, or ``judge:NAME`` for a judge over all pieces."""
    rows: list[dict[str, Any]] = []
    wanted = [s for s in bench.samples if s.plan]
    for name in retrievers:
        hits: dict[str, list[tuple[float, str]]] = {}
        judged: list[tuple[float, bool]] = []
        started = time.perf_counter()
        for i, sample in enumerate(wanted, 1):
            for place, hit in await _first(bench, name, sample, judged):
                hits.setdefault(place, []).append((hit, sample.group))
            note(f"retriever {name}", i, len(wanted))
        row: dict[str, Any] = {
            "retriever": name,
            "ms": round((time.perf_counter() - started) * 1_000 / max(1, len(wanted)), 1),
        }
        for place, values in sorted(hits.items()):
            value = interval([v for v, _ in values], [g for _, g in values])
            row[place] = {
                "recall_1": round(value.mean, 4),
                "low": round(value.low, 4),
                "high": round(value.high, 4),
                "n": value.n,
            }
        if judged:
            row["calibration"] = calibration([s for s, _ in judged], [t for _, t in judged])
        rows.append(row)
    return rows


async def _first(bench: Bench, name: str, sample: Sample, judged: list[tuple[float, bool]]) -> list[tuple[str, float]]:
    """Whether the first piece of each source and pool is one that the reply used."""
    ranked: dict[str, list[Evidence]] = {}
    for source in sample.plan:
        ranked[source] = await _ranked(bench, name, sample, source)
    if name.startswith("judge:"):
        judged += [(e.score, _id(e) in sample.gold) for found in ranked.values() for e in found]
    kind = decision(sample.plan)
    out: list[tuple[str, float]] = []
    for source, found in ranked.items():
        own = {p.id: p.parent for p in sample.of(source)}
        ids = [_id(e) for e in found if _id(e) in own]
        if not any(own.values()) or len(sample.plan) < 2:
            out.append((f"{kind}: {source}", _hit(ids, sample)))
            continue
        before = next(s for s in sample.plan if s != source)
        first = next((_id(e) for e in ranked[before]), "")
        parents = {p.id for p in sample.of(before) if p.id in sample.gold}
        out.append((f"{kind}: {source} of {len(own)}", _hit(ids, sample)))
        out.append((f"{kind}: {source} of the gold {before}", _hit([x for x in ids if own[x] in parents], sample)))
        out.append((f"{kind}: {source} of the found {before}", _hit([x for x in ids if own[x] == first], sample)))
    return out


async def _ranked(bench: Bench, name: str, sample: Sample, source: str) -> list[Evidence]:
    query = bench.query(sample)
    judge = name.removeprefix("judge:") if name.startswith("judge:") else ""
    retriever = await bench.retriever("every" if judge else name, source, dependent=False)
    found = await retriever.retrieve(scope_of(sample), Step(source, query, 100))
    if not judge:
        return found
    return list((await bench.judge(judge).judge(scope_of(sample), query, found, last=True)).evidence)


def _id(piece: Evidence) -> str:
    return piece.record.id.rpartition("/")[2]


def _hit(ids: Sequence[str], sample: Sample) -> float:
    return float(bool(ids) and ids[0] in sample.gold)


@dataclass(frozen=True, slots=True)
class Setup:
    """One row of replies: who plans, retrieves, judges and replies; how many pieces of each
    source are shown, and which share of the best one's score they need; how many further drafts with how many replaced pieces."""

    name: str
    plan: str = "gold"
    retrieve: str = "gold"
    judge: str = "scores"
    reader: str = "model"
    k: int = 1
    share: float = 0.0
    scored: bool = True
    drafts: int = 0
    alpha: int = 1


@dataclass(slots=True)
class _SourcedCount:
    """What a row cost."""

    usage: Usage = Usage()
    replies: int = 0
    reviews: int = 0
    refined: int = 0
    seconds: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


async def run_replies(bench: Bench, setups: Sequence[Setup], note: Report) -> list[dict[str, Any]]:
    """BLEU-1, ROUGE-L, persona and knowledge consistency (equations 8 to 11) with calls and
    tokens; each with its 95 % interval over dialogues."""
    out: list[dict[str, Any]] = []
    for setup in setups:
        count = _SourcedCount()
        started = time.perf_counter()
        for i, sample in enumerate(bench.samples, 1):
            count.rows.append(await _reply(bench, setup, sample, count))
            note(setup.name, i, len(bench.samples))
        count.seconds = time.perf_counter() - started
        out.append(_summary(bench, setup, count))
    return out


def _summary(bench: Bench, setup: Setup, count: _SourcedCount) -> dict[str, Any]:
    n = max(1, len(count.rows))
    row: dict[str, Any] = {"setup": setup.name, "n": len(count.rows)}
    for name in ("bleu1", "rougeL", "pc", "kc"):
        value = interval([r[name] for r in count.rows], [s.group for s in bench.samples])
        row[name] = {"mean": round(value.mean, 4), "low": round(value.low, 4), "high": round(value.high, 4)}
    tokens = count.usage.prompt + count.usage.completion
    row |= {
        "replies": round(count.replies / n, 3), "reviews": round(count.reviews / n, 3), "refined": count.refined,
        "calls": round(count.usage.calls / n, 3), "tokens": round(tokens / n, 1), "ms": round(1_000 * count.seconds / n, 1),
    }  # fmt: skip
    return {**row, "rows": count.rows}


async def _reply(bench: Bench, setup: Setup, sample: Sample, count: _SourcedCount) -> dict[str, Any]:
    sources = [s.name for s in bench.asked]
    retrievers = {s: await bench.retriever(setup.retrieve, s) for s in sources}
    limits = dict.fromkeys(sources, setup.k)
    recaller = Recaller(
        await bench.store(), await bench.planner(setup.plan), retrievers, bench.judge(setup.judge),
        BudgetSelector(share=setup.share, limits=limits), QueryEmbedder(None),
    )  # fmt: skip
    recall = await recaller.recall(scope_of(sample), bench.query(sample), _ROOM)

    async def written(found: Recall) -> str:
        count.replies += 1
        return await _written(bench, setup, sample, found, count)

    text = await written(recall)
    if setup.drafts:
        if bench.equipment.nli is None:
            raise InputError("refinement needs an NLI model: give --trained with a folder nli")
        refiner = Refiner(NliCritic(bench.equipment.nli), setup.drafts, setup.alpha)
        better, recall = await refiner.refine(scope_of(sample), recall, text, written)
        count.refined += better != text
        count.reviews += len(recall.reviews)
        text = better
    planned = {step.source for step in recall.plan}
    return {
        "id": sample.id, "plan": decision([s for s in sources if s in planned]), "gold": decision(sample.plan),
        "shown": [_id(e) for e in recall.kept], "reply": text, "reference": sample.reply,
        "bleu1": bleu(1, text, sample.reply), "rougeL": rouge("rougeL", text, sample.reply),
        "pc": await _consistency(bench, sample, text, planned, ("persona", "profile")),
        "kc": await _consistency(bench, sample, text, planned, ("documents",)),
    }  # fmt: skip


async def _consistency(bench: Bench, sample: Sample, text: str, planned: set[str], sources: tuple[str, ...]) -> float:
    """Equation 11 for the sentences of some sources; without an NLI model 0 where it would ask."""
    gold = [p.text for p in sample.pieces if p.id in sample.gold and p.source in sources]
    used = bool(planned & set(sources))
    entailed = False
    if gold and used and bench.equipment.nli is not None and text:
        entailed = max(await bench.equipment.nli.score([(g, text) for g in gold])) >= 0.5
    return consistency_case(bool(gold), used, entailed)


async def _written(bench: Bench, setup: Setup, sample: Sample, recall: Recall, count: _SourcedCount) -> str:
    if setup.reader == "model":
        return await _prompted(bench, setup, sample, recall.kept, count)
    model: Mapping[str, Any] = bench.equipment.source_models
    if setup.reader not in model:
        raise InputError(f"there is no trained model {setup.reader!r}: give its folder with --trained")
    reader = TrainedReader(model[setup.reader])
    query: Query = bench.query(sample)
    reply = await whole(reader, scope_of(sample), ReplyRequest(recall, query.lines, lambda found: ()))
    return reply.text


async def _prompted(bench: Bench, setup: Setup, sample: Sample, kept: Sequence[Evidence], count: _SourcedCount) -> str:
    """The reply of the chat model, with the shipped prompt."""
    chat = bench.equipment.chat
    if chat is None:
        raise InputError("this row needs a chat model: give --model")
    builder = PromptBuilder(Recipe("bench", "", scored=setup.scored, evidence=_ROOM), "", "plain", chat.window, {})
    shown = sample.lines(bench.equipment.turns)[:-1]
    before = [Message(role, text) for role, text in shown]
    messages = [
        Message("system", builder.system(Known())),
        *before,
        Message("user", builder.last(sample.message, kept)),
    ]
    text = ""
    async for piece in chat.stream(messages, max_tokens=80, lane="chat"):
        if isinstance(piece, Completion):
            text, count.usage = piece.text, count.usage + piece.usage
    return text.strip()
