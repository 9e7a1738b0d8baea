"""Write quality: what a memory holds that it should not, and what it lacks.

Three views. ``gate``: the decision to remember against MSC's labels, next to gates that
cost nothing. ``memory``: notes, facts and running memory against MSC's gold sentences.
``changes`` (see ``streams``): a generated stream of changes whose truth is known.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nyima.app.registry import recipe_named
from nyima.domain.conversation import Role
from nyima.domain.ports import ChatModel, Embedder
from nyima.domain.records import Claim, MemoryRecord, Note, Summary
from nyima.errors import InputError, ModelError
from nyima.language.intent import first_person, worth_keeping
from nyima.language.words import content_words, sentences, words
from nyima.memory import Memory, Said
from nyima.testing import FixedClock
from nyima_lab.measure.cases import Case
from nyima_lab.measure.metrics import memory_match
from nyima_lab.measure.stats import interval

__all__ = ["built", "gate_quality", "memory_quality"]

_NEAR = 0.92
_SUPPORT = 0.5
_AGREE = 0.6

Labelled = tuple[str, str, bool]


async def built(case: Case, recipe: str, model: ChatModel | str, embedder: Embedder | None, folder: Path) -> Memory:
    """A memory of a case by the shipped write path, with everything that it owes done.
    Raises ModelError when something could not be done."""
    first = next((t.at for _, turns in case.sessions for t in turns if t.at), None)
    clock = FixedClock(first) if first else FixedClock()
    memory = await Memory.open(
        folder / "quality.db", user="eval", recipe=recipe, model=model, embedder=embedder or "none", clock=clock
    )
    for id, turns in case.sessions:
        if turns:
            clock.at = max(clock.at, turns[-1].at or clock.at)
            await memory.remember(turns, session=id, owed=True)
            await memory.end_session(id)
            clock.forward(hours=1)
            report = await memory.drain()
            if report["waiting"] or report["parked"]:
                jobs = await memory.store.jobs(memory.scope, ("queued", "leased", "parked"))
                raise ModelError(f"{case.name}: {len(jobs)} jobs could not be done: {jobs[0].error}: run it again")
    return memory


def _labelled(case: Case) -> dict[str, tuple[Said, bool]]:
    """The user's turns with whether a person found something to remember in them."""
    marked = {g.turn for g in case.gold_memory if g.role is Role.USER and g.turn}
    sessions = {g.turn.split(":")[0] for g in case.gold_memory if g.turn}
    return {
        t.id: (t, t.id in marked)
        for id, turns in case.sessions
        if id in sessions
        for t in turns
        if t.role is Role.USER and t.text.strip()
    }


@dataclass(frozen=True, slots=True)
class _Count:
    hits: int
    said: int
    true: int

    def row(self, name: str, asked: int) -> dict[str, Any]:
        precision = self.hits / self.said if self.said else 0.0
        recall = self.hits / self.true if self.true else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return {"gate": name, "precision": precision, "recall": recall, "f1": f1, "turns": asked}


def _row(name: str, pairs: Sequence[tuple[bool, bool]], cases: Sequence[str]) -> dict[str, Any]:
    """Precision, recall and F1 of guesses against labels, F1 with its interval."""
    row = _Count(sum(g and t for g, t in pairs), sum(g for g, _ in pairs), sum(t for _, t in pairs)).row(
        name, len(pairs)
    )
    names = sorted(set(cases))
    parts = {n: [p for p, c in zip(pairs, cases, strict=True) if c == n] for n in names}
    counts = np.array(
        [[sum(g and t for g, t in parts[n]), sum(g for g, _ in parts[n]), sum(t for _, t in parts[n])] for n in names]
    )
    drawn = np.random.default_rng(7).integers(0, len(names), (2_000, len(names)))
    sums = counts[drawn].sum(axis=1)
    scores = 2 * sums[:, 0] / np.maximum(1, sums[:, 1] + sums[:, 2])
    row["low"], row["high"] = (float(v) for v in np.percentile(scores, [2.5, 97.5]))
    return row


async def gate_quality(
    cases: Sequence[Case],
    train: Sequence[Case],
    model: ChatModel | None,
    embedder: Embedder | None,
    note: Callable[[int, int], None] = lambda done, total: None,
) -> list[dict[str, Any]]:
    """Gates against the labels: the model's own word, the shipped decision, the rule
    without a model, everything, and a logistic regression on the embedding, learned on
    ``train`` (which shares no dialogue with ``cases``)."""
    labels = [(case.name, *pair) for case in cases for pair in _labelled(case).values()]
    if not labels:
        raise InputError("the data has no labels of what is worth remembering: give MSC with msc_personasummary")
    owners = [name for name, _, _ in labels]
    truth = [true for _, _, true in labels]
    texts = [said.text for _, said, _ in labels]

    def against(guesses: Sequence[bool]) -> list[tuple[bool, bool]]:
        return list(zip(guesses, truth, strict=True))

    rows = [
        _row("all", against([True] * len(texts)), owners),
        _row("first person", against([first_person(t) for t in texts]), owners),
        _row("eight words", against([len(words(t)) >= 8 for t in texts]), owners),
        _row("rule", against([worth_keeping(t, None, 0) for t in texts]), owners),
    ]
    if embedder is not None and train:
        rows.append(_row("logistic", against(await _learned(train, texts, embedder)), owners))
    if model is not None:
        found: list[tuple[str, bool, bool, bool]] = []
        for number, case in enumerate(cases, 1):
            found += await _gated(case, model, embedder)
            note(number, len(cases))
        names = [n for n, _, _, _ in found]
        rows.append(_row(f"model ({model.name})", [(word, true) for _, true, word, _ in found], names))
        rows.append(_row(f"shipped ({model.name})", [(kept, true) for _, true, _, kept in found], names))
    return rows


async def _gated(case: Case, model: ChatModel, embedder: Embedder | None) -> list[tuple[str, bool, bool, bool]]:
    """Label, the model's word and the shipped decision of each labelled turn."""
    from nyima.write.jobs import turn_id

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        memory = await built(case, "conditional", model, embedder, Path(folder))
        try:
            events = {e.body["turn"]: e.body for e in await memory.store.events(memory.scope, "notes")}
            sessions = {t.id: id for id, turns in case.sessions for t in turns}
            out: list[tuple[str, bool, bool, bool]] = []
            for id, (_, true) in _labelled(case).items():
                body = events.get(turn_id(sessions[id], id), {"remember": False, "model": False})
                out.append((case.name, true, bool(body["model"]), bool(body["remember"])))
            return out
        finally:
            await memory.close()


async def _learned(train: Sequence[Case], texts: Sequence[str], embedder: Embedder) -> list[bool]:
    """The guesses of a logistic regression (L2, plain gradient descent) whose threshold is
    the one with the best F1 on its own training part."""
    pairs = [pair for case in train for pair in _labelled(case).values()]
    inputs = await _features([said.text for said, _ in pairs], embedder)
    wanted = np.array([true for _, true in pairs], np.float64)
    weights = np.zeros(inputs.shape[1])
    for _ in range(400):
        guess = 1 / (1 + np.exp(-inputs @ weights))
        weights -= 2.0 * (inputs.T @ (guess - wanted) / len(wanted) + 1e-4 * weights)
    guess = 1 / (1 + np.exp(-inputs @ weights))

    def f1(least: float) -> float:
        said = guess >= least
        return float(2 * (said * wanted).sum() / max(1.0, said.sum() + wanted.sum()))

    least = max(np.arange(0.2, 0.8, 0.02), key=f1)
    return [bool(v >= least) for v in 1 / (1 + np.exp(-(await _features(texts, embedder)) @ weights))]


async def _features(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float64]:
    vectors = np.stack([np.frombuffer(v, "<f4") for v in await embedder.embed(texts)]).astype(np.float64)
    extra = [[1.0, min(len(words(t)), 40) / 20, first_person(t), t.strip().endswith("?"), "?" in t] for t in texts]
    return np.hstack([np.array(extra, np.float64), 3 * vectors])


async def memory_quality(
    cases: Sequence[Case],
    recipe: str,
    model: ChatModel,
    embedder: Embedder | None,
    note: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Notes, facts and running memory against gold sentences: how much is right, is there,
    is junk, comes twice, or is told of the wrong speaker; and each error with the turn that
    it comes from, or none (Wang et al. 2023, section 6.4 and table 6)."""
    values: dict[str, dict[str, list[float]]] = {}
    errors: list[dict[str, str]] = []
    for number, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            memory = await built(case, recipe, model, embedder, Path(folder))
            try:
                records = await memory.records()
            finally:
                await memory.close()
        families = _families(records)
        empty = {kind: list[MemoryRecord]() for kind in _made_by(recipe) if kind not in families}
        for kind, chosen in {**families, **empty}.items():
            found = await _measured(case, kind, chosen, embedder)
            for name, value in found.items():
                values.setdefault(kind, {}).setdefault(name, []).append(value)
        errors += _errors(case, records)
        note(number, len(cases))
    rows = [
        {"records": kind, **{name: _shown(v) for name, v in scores.items()}} for kind, scores in sorted(values.items())
    ]
    counts = {kind: sum(e["error"] == kind for e in errors) for kind in ("fabricated", "wrong relationship", "missing")}
    return {
        "recipe": recipe,
        "model": model.name,
        "cases": len(cases),
        "rows": rows,
        "counts": counts,
        "errors": errors,
    }


def _made_by(recipe: str) -> set[str]:
    """The kinds that a recipe's writers make: where there is none, it counts as empty."""
    kinds = {"conditional": "note", "claims": "claim", "recursive": "summary", "summary": "summary"}
    kinds |= {"memorybank": "summary", "memochat": "summary"}
    return {kinds[writer] for writer in recipe_named(recipe).writers if writer in kinds}


def _shown(values: Sequence[float]) -> dict[str, float]:
    found = interval(values)
    return {"mean": found.mean, "low": found.low, "high": found.high}


def _families(records: Sequence[MemoryRecord]) -> dict[str, list[MemoryRecord]]:
    families: dict[str, list[MemoryRecord]] = {}
    for record in records:
        if isinstance(record, (Note, Claim, Summary)):
            families.setdefault(record.kind, []).append(record)
    return families


def _lines(record: MemoryRecord) -> list[str]:
    return sentences(record.knowledge if isinstance(record, Note) else record.text)


async def _measured(
    case: Case, kind: str, records: Sequence[MemoryRecord], embedder: Embedder | None
) -> dict[str, float]:
    from nyima.write.jobs import turn_id

    made = [line for record in records for line in _lines(record)]
    gold = {
        role: [s for g in case.gold_memory if g.role is role and g.turn for s in sentences(g.text)] for role in Role
    }
    mine, theirs = gold[Role.USER], gold[Role.ASSISTANT]
    precision, recall, f1 = memory_match(made, mine, await _cosines(made, mine, embedder))
    out = {"precision": precision, "recall": recall, "f1": f1}
    wrong = [_share(line, theirs) >= _AGREE and _share(line, theirs) > _share(line, mine) for line in made]
    out["wrong speaker"] = sum(wrong) / len(made) if made else 0.0
    near = await _cosines(made, made, embedder)
    if near is not None and made:
        out["duplicates"] = float((np.tril(near, -1).max(axis=1) >= _NEAR).mean()) if len(made) > 1 else 0.0
    if kind != "summary":
        marked = {turn_id(g.session, g.turn) for g in case.gold_memory if g.role is Role.USER and g.turn}
        out["junk"] = sum(r.provenance.turns[0] not in marked for r in records) / len(records) if records else 0.0
    return out


async def _cosines(left: Sequence[str], right: Sequence[str], embedder: Embedder | None) -> NDArray[np.float32] | None:
    if embedder is None or not left or not right:
        return None
    one = np.stack([np.frombuffer(v, "<f4") for v in await embedder.embed(list(left))])
    two = np.stack([np.frombuffer(v, "<f4") for v in await embedder.embed(list(right))])
    return np.asarray(one @ two.T, np.float32)


def _share(line: str, others: Sequence[str]) -> float:
    mine = set(content_words(line)) - {"user"}
    return max((len(mine & set(content_words(o))) / len(mine) for o in others), default=0.0) if mine else 0.0


def _errors(case: Case, records: Sequence[MemoryRecord]) -> list[dict[str, str]]:
    """Fabricated: no turn has the sentence's words. Wrong relationship: the assistant's
    turns have them, the user's do not. Missing: a gold sentence that no record has."""
    turns = [t for _, said in case.sessions for t in said]
    lines = [(r.id, line) for found in _families(records).values() for r in found for line in _lines(r)]
    errors: list[dict[str, str]] = []
    for id, line in lines:
        best: Mapping[Role, tuple[float, Said | None]] = {
            role: max(
                ((_share(line, [t.text]), t) for t in turns if t.role is role), key=lambda p: p[0], default=(0.0, None)
            )
            for role in (Role.USER, Role.ASSISTANT)
        }
        (own, said), (other, theirs) = best[Role.USER], best[Role.ASSISTANT]
        if max(own, other) < _SUPPORT:
            errors.append({"case": case.name, "error": "fabricated", "record": id, "text": line, "turn": "none"})
        elif own < _SUPPORT <= other and theirs is not None:
            row = {"case": case.name, "error": "wrong relationship", "record": id, "text": line}
            errors.append({**row, "turn": theirs.text})
        del said
    texts = [line for _, line in lines]
    for gold in case.gold_memory:
        if gold.role is Role.USER and gold.turn and _share(gold.text, texts) < _SUPPORT:
            said_at = next((t.text for t in turns if t.id == gold.turn), "none")
            errors.append({"case": case.name, "error": "missing", "record": "", "text": gold.text, "turn": said_at})
    return errors
