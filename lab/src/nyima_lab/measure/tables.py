"""From the rows of a run to its table: means with intervals, differences, costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from nyima_lab.measure.metrics import TEXT_METRICS, corpus_bleu
from nyima_lab.measure.stats import Confidence, Difference, interval, paired

__all__ = [
    "Line",
    "Prices",
    "answers_of",
    "by_kind",
    "corpus",
    "differences",
    "judges_of",
    "scores_of",
    "table",
]

RowKey = tuple[str, str]
PARTS = ("/lenient", "/engagingness", "/coherence", "/consistency")
TableRow = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, in whatever currency."""

    prompt: float = 0.0
    completion: float = 0.0

    def of(self, row: TableRow) -> float:
        """The cost of a row's calls."""
        return float(row.get("prompt", 0) * self.prompt + row.get("completion", 0) * self.completion) / 1_000_000


@dataclass(frozen=True, slots=True)
class Line:
    """A recipe in a table. ``scores`` by metric; ``ahead`` against the first recipe;
    ``calls`` and ``tokens`` a user turn, writing and answering together; ``prompt`` tokens
    an answer; ``seconds`` the median answer; ``own`` the share of the time outside calls."""

    recipe: str
    n: int
    failed: int
    unjudged: int
    scores: Mapping[str, Confidence]
    ahead: Mapping[str, Difference]
    calls: float
    tokens: float
    prompt: float
    seconds: float
    own: float
    cost: float


def answers_of(rows: Sequence[TableRow], recipe: str) -> list[TableRow]:
    """The answers of a recipe."""
    return [r for r in rows if r["row"] == "answer" and r["recipe"] == recipe]


def judges_of(rows: Sequence[TableRow]) -> list[str]:
    """The judges that a run has verdicts of, as ``kind:model``."""
    return sorted({r["judge"] for r in rows if r["row"] == "verdict"})


def scores_of(
    rows: Sequence[TableRow], recipe: str, metric: str, base: str = "", among: Sequence[str] = ()
) -> dict[RowKey, float]:
    """A metric by question. A failed answer counts as the worst there is, and so does one
    that the judge could not judge: it is never left out. ``base`` is the recipe that a
    comparing judge compared with, ``among`` the recipes that it chose from."""
    answers = {(r["case"], r["question"]): r for r in answers_of(rows, recipe)}
    if metric in TEXT_METRICS:
        measure = TEXT_METRICS[metric]
        return {
            k: 0.0 if r["failed"] else measure(r["reply"], r["reference"]) for k, r in answers.items() if r["reference"]
        }
    if metric == "bertscore":
        return {k: float(r.get("bertscore", 0.0)) for k, r in answers.items() if r["reference"]}
    judge, part = next(((metric.removesuffix(p), p[1:]) for p in PARTS if metric.endswith(p)), (metric, ""))
    verdicts = [r for r in rows if r["row"] == "verdict" and r["judge"] == judge]
    kind = judge.partition(":")[0]
    if kind == "choice":
        joined = " | ".join(among)
        won = [r for r in verdicts if r["recipe"] == joined or (not among and recipe in r["recipe"].split(" | "))]
        return {(r["case"], r["question"]): float(r["detail"].get("winner") == recipe) for r in won}
    compares = kind in {"gsb", "pair"}
    if compares and recipe == base:
        return {}
    mine = {
        (r["case"], r["question"]): r
        for r in verdicts
        if r["recipe"] == recipe and r["other"] == (base if compares else "")
    }
    if not mine and not any(r["failed"] for r in answers.values()):
        return {}
    worst = -1.0 if compares else 0.0
    return {
        k: _mark(mine[k], part, worst) if k in mine else worst for k in answers if k in mine or answers[k]["failed"]
    }


def _mark(verdict: TableRow, part: str, worst: float) -> float:
    if verdict["failed"]:
        return worst
    if not part:
        return float(verdict["score"])
    value = verdict["detail"][part]
    return float(value["score"]) / 100 if isinstance(value, dict) else float(value)


def table(rows: Sequence[TableRow], recipes: Sequence[str], metrics: Sequence[str], prices: Prices) -> list[Line]:
    """A line a recipe."""
    first = {m: scores_of(rows, recipes[0], m, recipes[0], recipes) for m in metrics}
    return [_line(rows, recipe, recipes, metrics, first, prices) for recipe in recipes]


def _line(
    rows: Sequence[TableRow],
    recipe: str,
    recipes: Sequence[str],
    metrics: Sequence[str],
    first: Mapping[str, dict[RowKey, float]],
    prices: Prices,
) -> Line:
    answers = answers_of(rows, recipe)
    writes = [r for r in rows if r["row"] == "write" and r["recipe"] == recipe]
    spent = [*answers, *writes]
    turns = sum(r["turns"] for r in writes) + len(answers)
    scores, ahead = {}, {}
    for metric in metrics:
        values = scores_of(rows, recipe, metric, recipes[0], recipes)
        if values:
            scores[metric] = interval(list(values.values()), [k[0] for k in values])
        difference = paired(values, first[metric]) if recipe != recipes[0] else None
        if difference is not None:
            ahead[metric] = difference
    whole = [r for r in answers if not r["failed"]]
    seconds = sum(r.get("seconds", 0.0) for r in spent)
    own = sum(r.get("own", 0.0) for r in spent)
    verdicts = [r for r in rows if r["row"] == "verdict" and r["recipe"] == recipe]
    return Line(
        recipe=recipe,
        n=len(answers),
        failed=len(answers) - len(whole),
        unjudged=sum(bool(r["failed"]) for r in verdicts),
        scores=scores,
        ahead=ahead,
        calls=sum(r.get("calls", 0) for r in spent) / max(1, turns),
        tokens=sum(r.get("prompt", 0) + r.get("completion", 0) for r in spent) / max(1, turns),
        prompt=sum(r["prompt"] for r in whole) / max(1, len(whole)),
        seconds=median([r["seconds"] + r["own"] for r in whole]) if whole else 0.0,
        own=own / (seconds + own) if seconds + own else 0.0,
        cost=sum(prices.of(r) for r in spent),
    )


def differences(mine: Mapping[RowKey, float], theirs: Mapping[RowKey, float]) -> list[tuple[RowKey, float]]:
    """The questions whose score differs, the largest difference first."""
    moved = [(k, mine[k] - theirs[k]) for k in sorted(set(mine) & set(theirs)) if abs(mine[k] - theirs[k]) > 1e-9]
    return sorted(moved, key=lambda m: (-abs(m[1]), m[0]))


def by_kind(rows: Sequence[TableRow], recipes: Sequence[str], metric: str) -> dict[str, dict[str, Confidence]]:
    """A metric by kind of question (or by session), then by recipe."""
    kinds = {(r["case"], r["question"]): r["kind"] for r in rows if r["row"] == "answer"}
    found: dict[str, dict[str, Confidence]] = {}
    for kind in sorted(set(kinds.values())):
        for recipe in recipes:
            scores = scores_of(rows, recipe, metric, recipes[0], recipes)
            values = {k: v for k, v in scores.items() if kinds.get(k) == kind}
            if values:
                found.setdefault(kind, {})[recipe] = interval(list(values.values()), [k[0] for k in values])
    return found


def corpus(rows: Sequence[TableRow], recipe: str) -> float:
    """Corpus BLEU of a recipe's replies; a failed one counts as empty."""
    answers = [r for r in answers_of(rows, recipe) if r["reference"]]
    return corpus_bleu([r["reply"] for r in answers], [r["reference"] for r in answers])
