"""Bars and curves on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nyima.cli.common import console

__all__ = ["curve_line", "progress"]


class progress:  # noqa: N801 - a context manager that reads as a function
    """Bars for each stage on standard error."""

    def __enter__(self) -> Any:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        self.bars = Progress(*columns, TimeRemainingColumn(), console=console(err=True))
        self.bars.start()
        tasks: dict[str, Any] = {}

        def note(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = self.bars.add_task(stage, total=total)
            self.bars.update(tasks[stage], completed=done, total=total)

        return note

    def __exit__(self, *_: object) -> None:
        self.bars.stop()


_BARS = "▁▂▃▄▅▆▇█"


def curve_line(values: Sequence[float]) -> str:
    """A curve as a line of small bars."""
    low, high = min(values), max(values)
    return "".join(_BARS[int((v - low) / ((high - low) or 1) * (len(_BARS) - 1))] for v in values)
