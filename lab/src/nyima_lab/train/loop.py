"""One training loop for all models: early stopping on the validation loss, checkpoints
that resume, a stop that keeps what was learned."""

from __future__ import annotations

import hashlib
import json
import pickle
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from nyima.errors import ConfigError, InputError, PackError

__all__ = ["Fitted", "Schedule", "TrainingReport", "batched", "choose_device", "fingerprint", "fit", "torch_here"]

TrainingReport = Callable[[str, int, int], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast. ``checks`` is how often an epoch is validated, ``patience``
    after how many checks without a better loss it stops, ``minutes`` the most time of
    one run (0: none), ``device`` auto, cpu, cuda or mps."""

    epochs: int = 3
    batch: int = 32
    rate: float = 1e-3
    checks: int = 2
    patience: int = 3
    minutes: float = 0.0
    seed: int = 0
    device: str = "auto"
    threads: int = 0


@dataclass(frozen=True, slots=True)
class Fitted:
    """The end of a run: the curve (a line a check), the steps and examples seen, why it
    stopped (``epochs``, ``patience``, ``time`` or ``interrupted``)."""

    curve: tuple[Mapping[str, float], ...]
    steps: int
    examples: int
    stopped: str


def torch_here() -> Any:
    """The package torch. Raises PackError when it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise PackError("training needs torch: run `pip install 'nyima-lab[train]'`") from error
    return torch


def choose_device(name: str) -> Any:
    """The device of a name; ``auto`` takes CUDA, then MPS, then the CPU. Raises ConfigError."""
    torch = torch_here()
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(d for d in ("cuda", "mps", "cpu") if there[d])
    if not there.get(name):
        raise ConfigError(f"there is no device {name!r} here: choose from {', '.join(d for d in there if there[d])}")
    return torch.device(name)


def batched(items: Sequence[T], size: int, seed: int, length: Callable[[T], int]) -> list[list[T]]:
    """Shuffled batches of items of like length, the same for the same seed."""
    draw = random.Random(seed)  # noqa: S311 - shuffling
    order = list(items)
    draw.shuffle(order)
    pool = size * 32
    chunks = [sorted(order[i : i + pool], key=length) for i in range(0, len(order), pool)]
    batches = [chunk[i : i + size] for chunk in chunks for i in range(0, len(chunk), size)]
    draw.shuffle(batches)
    return batches


def fingerprint(*of: object) -> str:
    """What a run learns from, in a few characters: the same for the same things."""
    return hashlib.sha256("\n".join(map(str, of)).encode()).hexdigest()[:16]


@dataclass(slots=True)
class _State:
    """Where a run stands."""

    epoch: int = 0
    step: int = 0
    steps: int = 0
    examples: int = 0
    best: float = float("inf")
    waited: int = 0
    running: float = 0.0
    count: int = 0


def fit(
    model: Any,
    batches: Callable[[int], Sequence[Sequence[Any]]],
    losses: Callable[[Sequence[Any]], Mapping[str, Any]],
    validate: Callable[[], Mapping[str, float]],
    schedule: Schedule,
    folder: Path,
    of: tuple[str, TrainingReport],
) -> Fitted:
    """Train what of ``model`` wants a gradient, by AdamW, on the sum of the ``losses``.

    ``of`` is what is learned from (``fingerprint``) and where progress is told.
    ``folder`` gets ``checkpoint.pt`` (to go on from, written each minute and when it is
    interrupted), ``best.pt`` and ``curve.jsonl``. In the end the model has the weights of
    the least ``validate()["loss"]``. A folder with a checkpoint is continued.
    """
    torch = torch_here()
    if schedule.threads:
        torch.set_num_threads(schedule.threads)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(wanted, lr=schedule.rate, weight_decay=0.01)
    learned_from, note = f"{of[0]} batch {schedule.batch} seed {schedule.seed}", of[1]
    state, curve = _resumed(torch, model, optimizer, folder, learned_from, schedule.seed)
    started = saved = time.monotonic()
    stopped = "epochs"
    try:
        if state.waited >= schedule.patience:
            raise _Stop("patience")
        while state.epoch < schedule.epochs:
            every = batches(state.epoch)
            check = max(1, -(-len(every) // schedule.checks))
            total = len(every) * schedule.epochs
            for batch in every[state.step :]:
                model.train()
                _step(torch, model, optimizer, wanted, losses(batch), state, _warm(state.steps, total, schedule.rate))
                state.examples += len(batch)
                note("training", state.steps, total)
                if state.step % check == 0 or state.step == len(every):
                    _check(torch, model, validate, state, curve, folder, len(every))
                if time.monotonic() - saved > 60:
                    _save(torch, model, optimizer, state, folder, learned_from)
                    saved = time.monotonic()
                if state.waited >= schedule.patience:
                    raise _Stop("patience")
                if schedule.minutes and time.monotonic() - started > 60 * schedule.minutes:
                    raise _Stop("time")
            state.epoch, state.step = state.epoch + 1, 0
    except _Stop as stop:
        stopped = str(stop)
    except KeyboardInterrupt:
        _save(torch, model, optimizer, state, folder, learned_from)
        raise
    if not curve:
        _check(torch, model, validate, state, curve, folder, max(1, state.step))
    _save(torch, model, optimizer, state, folder, learned_from)
    _load(torch, model, folder / "best.pt")
    return Fitted(tuple(curve), state.steps, state.examples, stopped)


class _Stop(Exception):
    """The loop ends before its last epoch."""


def _warm(steps: int, total: int, rate: float) -> float:
    """A short warm-up, then a straight line down to a tenth."""
    warm = max(1, min(200, total // 20))
    if steps < warm:
        return rate * (steps + 1) / warm
    return rate * (1 - 0.9 * (steps - warm) / max(1, total - warm))


def _step(
    torch: Any, model: Any, optimizer: Any, wanted: list[Any], parts: Mapping[str, Any], state: _State, rate: float
) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
    loss = sum(parts.values())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(wanted, 1.0)
    optimizer.step()
    state.step, state.steps = state.step + 1, state.steps + 1
    state.running, state.count = state.running + float(loss.detach()), state.count + 1


def _check(
    torch: Any, model: Any, validate: Callable[[], Mapping[str, float]], state: _State, curve: list[Any], folder: Path, an_epoch: int
) -> None:  # fmt: skip
    model.eval()
    with torch.no_grad():
        found = validate()
    line = {
        "epoch": round(state.epoch + state.step / an_epoch, 2), "steps": state.steps, "examples": state.examples,
        "train": round(state.running / max(1, state.count), 4), **{k: round(v, 4) for k, v in found.items()},
    }  # fmt: skip
    state.running, state.count = 0.0, 0
    curve.append(line)
    with (folder / "curve.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    if found["loss"] < state.best or not (folder / "best.pt").exists():
        state.best, state.waited = found["loss"], 0
        torch.save(_learned(model), folder / "best.new")
        (folder / "best.new").replace(folder / "best.pt")
    else:
        state.waited += 1


def _learned(model: Any) -> dict[str, Any]:
    """The weights that were trained, nothing of a frozen base."""
    wanted = {name for name, p in model.named_parameters() if p.requires_grad}
    return {name: value for name, value in model.state_dict().items() if name in wanted}


def _save(torch: Any, model: Any, optimizer: Any, state: _State, folder: Path, learned_from: str) -> None:
    body = {"model": _learned(model), "optimizer": optimizer.state_dict(), "state": asdict(state), "of": learned_from}
    torch.save(body, folder / "checkpoint.new")
    (folder / "checkpoint.new").replace(folder / "checkpoint.pt")


def _load(torch: Any, model: Any, path: Path) -> None:
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True), strict=False)


def _resumed(
    torch: Any, model: Any, optimizer: Any, folder: Path, learned_from: str, seed: int
) -> tuple[_State, list[Mapping[str, float]]]:
    path = folder / "checkpoint.pt"
    torch.manual_seed(seed)
    if not path.exists():
        for old in ("curve.jsonl", "best.pt"):
            (folder / old).unlink(missing_ok=True)
        return _State(), []
    try:
        body = torch.load(path, map_location="cpu", weights_only=True)
        learned, state = body["model"], _State(**body["state"])
        shapes = {name: value.shape for name, value in model.state_dict().items()}
        fits = all(shapes.get(name) == value.shape for name, value in learned.items())
    except (RuntimeError, EOFError, KeyError, TypeError, ValueError, OSError, pickle.UnpicklingError) as error:
        raise InputError(f"{path} cannot be read: {error}: remove it to begin again") from error
    if not fits or body["of"] != learned_from:
        raise InputError(
            f"{path} belongs to another model, other data or settings: give another --out, or remove it to begin again"
        )
    model.load_state_dict(learned, strict=False)
    optimizer.load_state_dict(body["optimizer"])
    torch.manual_seed(seed + state.steps)
    lines = (folder / "curve.jsonl").read_text("utf-8").splitlines() if (folder / "curve.jsonl").exists() else []
    curve = [line for text in lines if (line := json.loads(text))["steps"] <= state.steps]
    (folder / "curve.jsonl").write_text("".join(json.dumps(line) + "\n" for line in curve), "utf-8")
    return state, curve
