"""The report of a run: JSON, Markdown, and one HTML file that needs no network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nyima.errors import StoreFull
from nyima_lab.measure.metrics import TokenEmbedder, bert_score
from nyima_lab.measure.plot import plots
from nyima_lab.measure.tables import Prices, by_kind, corpus, judges_of, scores_of, table
from nyima_lab.measure.tasks import Task

__all__ = ["add_bertscore", "checks_line", "markdown", "summarise", "write_report"]

ReportRow = Mapping[str, Any]


async def add_bertscore(rows: Sequence[ReportRow], embedder: Any) -> list[dict[str, Any]]:
    """The answers that have a reference and no BERTScore yet, with its F1. ``embedder`` is a
    TokenEmbedder."""
    tokens: TokenEmbedder = embedder
    chosen = [r for r in rows if r["row"] == "answer" and r["reference"] and not r["failed"] and "bertscore" not in r]
    replies = await tokens.token_vectors([r["reply"] for r in chosen])
    references = await tokens.token_vectors([r["reference"] for r in chosen])
    return [
        {**row, "bertscore": round(bert_score(reply, reference)[2], 6)}
        for row, reply, reference in zip(chosen, replies, references, strict=True)
    ]


def checks_line(checked: Mapping[str, Any]) -> str:
    """The judge's own error rate in words."""
    text = f"the judge {checked['judge']} ({checked['model']}) was wrong on {checked['wrong']} of {checked['n']} checks"
    return f"{text}, {checked['failed']} of them without a usable answer" if checked["failed"] else text


def summarise(
    rows: Sequence[ReportRow],
    recipes: Sequence[str],
    task: Task,
    config: Mapping[str, Any],
    prices: Prices,
    checked: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Everything that the tables show, as JSON values."""
    judges = judges_of(rows)
    parts = [f"{j}{p}" for j in judges for p in _parts(j)]
    metrics = [*parts, *task.metrics, *(["bertscore"] if any("bertscore" in r for r in rows) else [])]
    lines = table(rows, recipes, metrics, prices)
    answers = [r for r in rows if r["row"] == "answer" and r["recipe"] in recipes]
    return {
        "config": dict(config),
        "recipes": list(recipes),
        "cases": len({r["case"] for r in answers}),
        "questions": len({(r["case"], r["question"]) for r in answers}),
        "metrics": metrics,
        "lines": [
            {**asdict(line), "label": _label(line.recipe, config), "corpus_bleu": round(corpus(rows, line.recipe), 4)}
            for line in lines
        ],
        "by_kind": {
            metric: {k: {r: asdict(i) for r, i in v.items()} for k, v in by_kind(rows, recipes, metric).items()}
            for metric in metrics[:2]
        },
        "judge": dict(checked) if checked else None,
    }


def _label(recipe: str, config: Mapping[str, Any]) -> str:
    """Two-encoder rows are named by the weights in their two slots: queries, passages."""
    if "two-encoder" not in recipe:
        return recipe
    return f"{recipe} ({config.get('queries', config['embedder'])}, {config['embedder']})"


def _parts(judge: str) -> tuple[str, ...]:
    kind = judge.partition(":")[0]
    if kind == "accuracy":
        return ("", "/lenient")
    return ("", "/engagingness", "/coherence", "/consistency") if kind == "single" else ("",)


def write_report(folder: Path, rows: Sequence[ReportRow], summary: Mapping[str, Any]) -> Path:
    """``report.json``, ``report.md`` and ``report.html`` in the folder; the last one's path."""
    import jinja2

    loader = jinja2.PackageLoader("nyima_lab.measure", "")
    page = jinja2.Environment(loader=loader, autoescape=True).get_template("report.html.j2")
    html = page.render(
        s=summary,
        checked=checks_line(summary["judge"]) if summary["judge"] else "",
        priced=any(line["cost"] for line in summary["lines"]),
        plots=[(title, svg) for title, svg in plots(summary) if svg],
        questions=_questions(rows, summary),
    )
    texts = {
        "report.json": json.dumps(summary, ensure_ascii=False, indent=2),
        "report.md": markdown(summary),
        "report.html": html,
    }
    for name, text in texts.items():
        try:
            (folder / name).write_text(text + "\n", "utf-8")
        except OSError as error:
            raise StoreFull(f"{folder / name} cannot be written: {error.strerror}: free some space") from error
    return folder / "report.html"


def markdown(summary: Mapping[str, Any]) -> str:
    """The table as Markdown."""
    metrics = summary["metrics"]
    config = summary["config"]
    head = ["recipe", "n", *metrics, "calls/turn", "tokens/turn", "p50 s", "failed", "unjudged"]
    lines = [
        f"{config['task']}: {summary['questions']} questions of {summary['cases']} cases; model {config['model']}.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + " --- |" * len(head),
    ]
    for line in summary["lines"]:
        marks = [_marked(line["scores"].get(m)) for m in metrics]
        costs = [
            f"{line['calls']:.2f}",
            f"{line['tokens']:.0f}",
            f"{line['seconds']:.1f}",
            str(line["failed"]),
            str(line["unjudged"]),
        ]
        lines.append("| " + " | ".join([line["label"], str(line["n"]), *marks, *costs]) + " |")
    for line in summary["lines"]:
        for metric, d in line["ahead"].items():
            lines.append(
                f"- {line['recipe']} against {summary['recipes'][0]}, {metric}: {d['mean']:+.3f} [{d['low']:+.3f},"
                f" {d['high']:+.3f}], {d['wins']} won, {d['ties']} tied, {d['losses']} lost"
            )
    checked = summary["judge"]
    if checked:
        lines += ["", f"{checks_line(checked)}."]
    return "\n".join(lines)


def _marked(score: Mapping[str, float] | None) -> str:
    return "–" if score is None else f"{score['mean']:.3f} [{score['low']:.3f}, {score['high']:.3f}]"


def _questions(rows: Sequence[ReportRow], summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every question with its answers, in the order in which they were asked."""
    metrics, recipes = summary["metrics"], summary["recipes"]
    scores = {(r, m): scores_of(rows, r, m, recipes[0], recipes) for r in recipes for m in metrics}
    verdicts: dict[tuple[str, str], list[ReportRow]] = {}
    for row in rows:
        if row["row"] == "verdict":
            verdicts.setdefault((row["case"], row["question"]), []).append(row)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        if row["row"] != "answer" or row["recipe"] not in recipes:
            continue
        key = (row["case"], row["question"])
        entry = found.setdefault(key, {**{k: row[k] for k in ("case", "text", "reference")}, "answers": []})
        entry["answers"].append(
            {
                **{k: row.get(k) for k in ("recipe", "reply", "failed", "recall")},
                "messages": row.get("messages", ()),
                "scores": {m: scores[row["recipe"], m][key] for m in metrics if key in scores[row["recipe"], m]},
                "verdicts": [v for v in verdicts.get(key, ()) if row["recipe"] in v["recipe"].split(" | ")],
            }
        )
    return list(found.values())
