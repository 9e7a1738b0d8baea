"""A plot of a retrieval report (needs the extra ``plot``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nyima.errors import InputError

__all__ = ["plot_retrieval"]


def plot_retrieval(report: dict[str, Any], path: Path) -> None:
    """Share of evidence by k, a line a recipe, as PNG or SVG by the file's ending."""
    if path.suffix not in {".png", ".svg"}:
        raise InputError(f"{path} is neither .png nor .svg: choose one of them")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("a plot needs matplotlib: run `pip install 'nyima[plot]'`") from error
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for recipe in dict.fromkeys(row["recipe"] for row in report["rows"]):
        rows = [r for r in report["rows"] if r["recipe"] == recipe]
        axes.plot([r["k"] for r in rows], [r["share"] for r in rows], marker="o", label=recipe)
    axes.set(xlabel="k", ylabel="mean share of the evidence in the top k", ylim=(0, 1))
    axes.set_title(f"{report['dataset']}, {report['questions']} questions")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
