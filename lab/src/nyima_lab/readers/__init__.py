"""Readers of the publishers' own formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from nyima.errors import InputError
from nyima_lab.measure.cases import Case, located, read_own
from nyima_lab.readers.benchmarks import (
    read_beam,
    read_locomo,
    read_locomo_corrected,
    read_longmemeval,
    read_prefeval,
    read_realmem,
)
from nyima_lab.readers.dialogues import read_carecall, read_memorybank, read_msc
from nyima_lab.readers.personas import read_dulemon, read_kbp, read_seeds

__all__ = ["DATASETS", "read_cases"]

DATASETS: Mapping[str, Callable[[Path], Iterator[Case]]] = {
    "msc": read_msc,
    "carecall": read_carecall,
    "locomo": read_locomo,
    "locomo-corrected": read_locomo_corrected,
    "longmemeval": read_longmemeval,
    "realmem": read_realmem,
    "beam": read_beam,
    "prefeval": read_prefeval,
    "memorybank": read_memorybank,
    "kbp": read_kbp,
    "dulemon": read_dulemon,
    "seeds": read_seeds,
    "jsonl": read_own,
}


def read_cases(dataset: str, path: Path) -> list[Case]:
    """The cases of a publisher's file or folder. Raises InputError naming the file, and
    the line or item."""
    if dataset not in DATASETS:
        raise InputError(f"there is no data set {dataset!r}: choose one of {', '.join(DATASETS)}")
    if not path.exists():
        raise InputError(f"{path} does not exist: give the publisher's file or folder")
    with located(str(path)):
        cases = list(DATASETS[dataset](path))
    if not cases:
        raise InputError(f"{path} holds nothing of {dataset}: give the publisher's file or folder")
    return cases
