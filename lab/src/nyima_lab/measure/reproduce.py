"""The documented figures, measured again."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from nyima.errors import InputError, PackError

__all__ = ["reproduce_all", "verdict_of"]

_STEP = re.compile(r"""(?:^|\.)(?:"([^"]+)"|([^.\[\]"]+))?(?:\[([^\]]+)\])?""")


class _Expected(BaseModel):
    model_config = ConfigDict(extra="forbid")
    at: str
    value: float
    low: float
    high: float


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    command: str
    commit: str
    needs: str = ""
    about: str = ""
    expect: list[_Expected]


def verdict_of(expected: tuple[float, float, float], value: float, low: float | None, high: float | None) -> str:
    """``ok`` when the value lies in the documented interval, ``near`` when the two
    intervals overlap, else ``off``."""
    _, least, most = expected
    if least <= value <= most:
        return "ok"
    if low is not None and high is not None and low <= most and high >= least:
        return "near"
    return "off"


def _entries(file: Path) -> list[_Entry]:
    try:
        import yaml
    except ImportError as error:
        raise PackError("the package 'pyyaml' is missing: run `pip install 'nyima-lab[eval]'`") from error
    try:
        rows = yaml.safe_load(file.read_text("utf-8"))
        return [_Entry.model_validate(row) for row in rows]
    except (OSError, yaml.YAMLError, ValidationError, TypeError) as error:
        raise InputError(f"{file} cannot be read: {error}: give a file such as docs/reproduce.yaml") from error


async def reproduce_all(file: Path, only: str, data: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Run each entry's command and compare what it prints with the documented figures."""
    chosen = [e for e in _entries(file) if only in e.name]
    if not chosen:
        raise InputError(f"{file} has no entry with {only!r} in its name")
    out: list[dict[str, Any]] = []
    for entry in chosen:
        missing = entry.needs and not (data / entry.needs).exists()
        if missing:
            out.append({"name": entry.name, "verdict": "skipped", "shown": f"{data / entry.needs} is not here"})
            continue
        say(f"{entry.name}: {entry.command}")
        out += await _run(entry, data)
    return out


async def _run(entry: _Entry, data: Path) -> list[dict[str, Any]]:
    if entry.command.split()[:2] != ["nyima", "eval"]:
        return [{"name": entry.name, "verdict": "failed", "shown": f"{entry.command!r} is no `nyima eval` command"}]
    with tempfile.TemporaryDirectory() as folder:
        words = [w.replace("{data}", str(data)).replace("{out}", folder) for w in shlex.split(entry.command)]
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "nyima", *words[1:], "--json",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        printed, errors = await child.communicate()
    if child.returncode:
        last = errors.decode("utf-8", "replace").strip().split("\n")[-1]
        return [{"name": entry.name, "verdict": "failed", "shown": last}]
    report = json.loads(printed)
    rows: list[dict[str, Any]] = []
    for expected in entry.expect:
        name = f"{entry.name}: {expected.at}"
        try:
            value, low, high = _measured(report, expected.at)
        except (InputError, KeyError, TypeError, ValueError) as error:
            rows.append(
                {"name": name, "verdict": "failed", "shown": f"the report has nothing there ({error}): mend the entry"}
            )
            continue
        verdict = verdict_of((expected.value, expected.low, expected.high), value, low, high)
        shown = f"{value:.3f}, documented {expected.value:.3f} [{expected.low:.3f}, {expected.high:.3f}]"
        rows.append({"name": name, "verdict": verdict, "shown": shown, "value": value})
    return rows


def _measured(report: Any, at: str) -> tuple[float, float | None, float | None]:
    """The figure at a place such as ``rows[recipe=bm25,k=10].share``; a name with dots
    stands in quotes. An interval beside it is taken along."""
    here, beside = report, {}
    for quoted, plain, wanted in _STEP.findall(at):
        name = quoted or plain
        if not name and not wanted:
            continue
        beside = here if isinstance(here, dict) else {}
        here = here[name] if name else here
        if wanted:
            pairs = dict(p.split("=", 1) for p in wanted.split(","))
            here = next(r for r in [*here, None] if r is None or all(str(r.get(k)) == v for k, v in pairs.items()))
            if here is None:
                raise InputError(f"there is nothing at {at!r}")
    if isinstance(here, dict):
        return float(here["mean"]), float(here["low"]), float(here["high"])
    last = at.rsplit(".", 1)[-1]
    low, high = beside.get(f"{last}_low"), beside.get(f"{last}_high")
    return float(here), low, high
