"""Plots of retrieval and of runs (they need matplotlib, of the extra ``eval``)."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nyima.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_retrieval", "plots"]


def _figure() -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("a plot needs matplotlib: run `pip install 'nyima-lab[eval]'`") from error
    return Figure(figsize=(7, 4.5), layout="constrained")


def plot_retrieval(report: dict[str, Any], path: Path) -> None:
    """Share of evidence by k, a line a recipe, as PNG or SVG by the file's ending."""
    if path.suffix not in {".png", ".svg"}:
        raise InputError(f"{path} is neither .png nor .svg: choose one of them")
    figure = _figure()
    axes = figure.subplots()
    for recipe in dict.fromkeys(row["recipe"] for row in report["rows"]):
        rows = [r for r in report["rows"] if r["recipe"] == recipe]
        axes.plot([r["k"] for r in rows], [r["share"] for r in rows], marker="o", label=recipe)
    axes.set(xlabel="k", ylabel="mean share of the evidence in the top k", ylim=(0, 1))
    axes.set_title(f"{report['dataset']}, {report['questions']} questions")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def plots(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Title and SVG of each plot of a run: quality against tokens, by the number of pieces
    where recipes differ by it, and by kind of question or session."""
    lines, metrics = summary["lines"], summary["metrics"]
    if not metrics or not lines:
        return
    metric = metrics[0]
    scored = [line for line in lines if metric in line["scores"]]
    yield "Quality against prompt tokens of an answer", _svg(lambda axes: _against_tokens(axes, scored, metric))
    studied = [line for line in scored if "@" in line["recipe"]]
    if len(studied) > 1:
        yield "Quality by the number of retrieved records", _svg(lambda axes: _by_k(axes, studied, metric))
    kinds = summary["by_kind"].get(metric, {})
    if len(kinds) > 1:
        yield "Quality by kind of question", _svg(lambda axes: _by_kind(axes, kinds, summary["recipes"], metric))


def _svg(draw: Any) -> str:
    figure = _figure()
    axes = figure.subplots()
    draw(axes)
    axes.grid(alpha=0.3)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()[out.getvalue().index("<svg") :]


def _bars(scores: Sequence[Mapping[str, float]]) -> list[list[float]]:
    return [[max(0.0, s["mean"] - s["low"]) for s in scores], [max(0.0, s["high"] - s["mean"]) for s in scores]]


def _against_tokens(axes: Axes, lines: Sequence[Mapping[str, Any]], metric: str) -> None:
    for line in lines:
        score = line["scores"][metric]
        axes.errorbar([line["prompt"]], [score["mean"]], yerr=_bars([score]), marker="o", capsize=3)
        axes.annotate(line["recipe"], (line["prompt"], score["mean"]), xytext=(6, 4), textcoords="offset points")
    axes.set(xlabel="prompt tokens an answer", ylabel=metric)


def _by_k(axes: Axes, lines: Sequence[Mapping[str, Any]], metric: str) -> None:
    for name in dict.fromkeys(line["recipe"].split("@")[0] for line in lines):
        found = {
            int(ln["recipe"].split("@")[1]): ln["scores"][metric] for ln in lines if ln["recipe"].split("@")[0] == name
        }
        mine = sorted(found.items())
        scores = [s for _, s in mine]
        axes.errorbar(
            [k for k, _ in mine], [s["mean"] for s in scores], yerr=_bars(scores), marker="o", capsize=3, label=name
        )
    axes.set(xlabel="k", ylabel=metric)
    axes.legend()


def _by_kind(axes: Axes, kinds: Mapping[str, Mapping[str, Any]], recipes: Sequence[str], metric: str) -> None:
    width = 0.8 / max(1, len(recipes))
    names = list(kinds)
    for number, recipe in enumerate(recipes):
        there = [(i, kinds[k][recipe]) for i, k in enumerate(names) if recipe in kinds[k]]
        scores = [s for _, s in there]
        places = [i + number * width for i, _ in there]
        axes.bar(places, [s["mean"] for s in scores], width, yerr=_bars(scores), capsize=2, label=recipe)
    axes.set_xticks([i + 0.4 for i in range(len(names))], names, rotation=20)
    axes.set(ylabel=metric)
    axes.legend(fontsize="small")
