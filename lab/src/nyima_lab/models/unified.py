"""One causal model that plans, scores and replies (Wang et al. 2024, UniMS-RAG, sections
4.1 and 4.2), on torch and transformers.

A sequence is ``dialogue [SOURCE] sources [EOS]``, then for each piece of evidence
``[EVIDENCE] source text [EOE] [score]``, then ``[REPLY] text [END]``. With the evidence
attention mask a piece sees the dialogue, the plan and itself, and all pieces begin at the
same position: they are a set, so neither a score nor the reply depends on their order.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nyima.errors import ConfigError, PackError
from nyima.language.words import tight

__all__ = ["Design", "Laid", "Layout", "UnifiedModel", "allowed", "packages", "sees"]

_ROLES = {"user": "[U]", "assistant": "[A]"}
_STEPS = tuple(f"[{i / 10:.1f}]" for i in range(11))
_MOST_PIECE = 64
_MOST_DIALOGUE = 160


@dataclass(frozen=True, slots=True)
class Design:
    """What a model was trained as: its sources in order, with or without the evidence
    mask, with or without scores (SAFARI, Wang et al. 2023, has neither). ``null`` and
    ``end`` are added to the logits of NULL and of the plan's end: thresholds, tuned on the
    validation part, without which a rare decision is never the likeliest."""

    sources: tuple[str, ...]
    mask: bool = True
    scored: bool = True
    name: str = "unified"
    null: float = 0.0
    end: float = 0.0
    turns: int = 3

    def read(self, lines: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """The message and the ``turns`` utterances before it: what the model was trained on."""
        return tuple(lines[max(0, len(lines) - 1 - self.turns) :])

    @property
    def special(self) -> tuple[str, ...]:
        """The acting, evaluation and indicator tokens (table 1), and the marks of speakers."""
        acting = ("[NULL]", *(f"[{s.upper()}]" for s in self.sources))
        return ("[U]", "[A]", "[SOURCE]", "[EOS]", "[EVIDENCE]", "[EOE]", "[REPLY]", "[END]", *acting, *_STEPS)

    def save(self, folder: Path) -> None:
        """Write ``design.json``."""
        (folder / "design.json").write_text(json.dumps(asdict(self)), "utf-8")

    @classmethod
    def load(cls, folder: Path) -> Design:
        """Read ``design.json``. Raises ConfigError."""
        try:
            body = json.loads((folder / "design.json").read_text("utf-8"))
            body["sources"] = tuple(body["sources"])
            return cls(**body)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{folder} holds no trained model ({error}): give a folder that `nyima train reader` wrote"
            ) from error


@dataclass(frozen=True, slots=True)
class Laid:
    """A sequence: token ids, the block of each (0 dialogue and plan, 1.. evidence, -1
    reply), positions, and where the plan's, the scores' and the reply's tokens stand."""

    ids: tuple[int, ...]
    blocks: tuple[int, ...]
    positions: tuple[int, ...]
    plan: tuple[int, ...] = ()
    scores: tuple[int, ...] = ()
    reply: tuple[int, ...] = ()


class Layout:
    """Lays sequences out for a tokenizer (of the package tokenizers)."""

    def __init__(self, tokenizer: Any, design: Design) -> None:
        self.tokenizer = tokenizer
        self.tokenizer.encode_special_tokens = True  # what a text says is never a mark
        self.design = design
        missing = [t for t in design.special if tokenizer.token_to_id(t) is None]
        if missing:
            raise ConfigError(f"the tokenizer lacks {', '.join(missing)}: train the model again")
        self.ids: Mapping[str, int] = {t: tokenizer.token_to_id(t) for t in design.special}
        self.steps = tuple(self.ids[s] for s in _STEPS)

    def acting(self, source: str) -> int:
        """The token of a source."""
        return self.ids[f"[{source.upper()}]"]

    def words(self, text: str, most: int) -> list[int]:
        """The ids of a text, at most ``most``; marks in it are plain text."""
        plain = text.replace("[", "(").replace("]", ")")
        return list(self.tokenizer.encode(plain, add_special_tokens=False).ids[:most])

    def dialogue(self, lines: Sequence[tuple[str, str]]) -> list[int]:
        """The dialogue's last tokens, and ``[SOURCE]``."""
        ids: list[int] = []
        for role, text in lines:
            ids += [self.ids[_ROLES.get(role, "[U]")], *self.words(text, _MOST_PIECE)]
        return [*ids[-_MOST_DIALOGUE:], self.ids["[SOURCE]"]]

    def whole(
        self, lines: Sequence[tuple[str, str]], plan: Sequence[str], pieces: Sequence[tuple[str, str, float]], reply: str | None,
    ) -> Laid:  # fmt: skip
        """A sequence with a plan and evidence (source, text, score); with ``reply`` None it
        ends where the reply begins."""
        ids = self.dialogue(lines)
        start = len(ids)
        ids += [*([self.acting(s) for s in plan] or [self.ids["[NULL]"]]), self.ids["[EOS]"]]
        planned = tuple(range(start, len(ids)))
        blocks, positions = [0] * len(ids), list(range(len(ids)))
        base, scores, furthest = len(ids), list[int](), len(ids)
        for number, (source, text, score) in enumerate(pieces, 1):
            block = [
                self.ids["[EVIDENCE]"], self.acting(source), *self.words(text, _MOST_PIECE), self.ids["[EOE]"],
                *([self.steps[round(10 * min(1.0, max(0.0, score)))]] if self.design.scored else []),
            ]  # fmt: skip
            begin = base if self.design.mask else len(ids)
            ids += block
            if self.design.scored:
                scores.append(len(ids) - 1)
            blocks += [number] * len(block)
            positions += range(begin, begin + len(block))
            furthest = max(furthest, begin + len(block))
        tail = [self.ids["[REPLY]"], *([] if reply is None else [*self.words(reply, _MOST_PIECE), self.ids["[END]"]])]
        said = tuple(range(len(ids) + 1, len(ids) + len(tail)))
        ids += tail
        blocks += [-1] * len(tail)
        positions += range(furthest, furthest + len(tail))
        return Laid(tuple(ids), tuple(blocks), tuple(positions), planned, tuple(scores), said)


def allowed(blocks: Any, *, mask: bool) -> Any:
    """Which token (row) sees which (column): a boolean tensor (n, n) for blocks (n,)."""
    import torch

    size = blocks.shape[0]
    causal = torch.ones(size, size, dtype=torch.bool, device=blocks.device).tril()
    if not mask:
        return causal
    same = blocks[:, None] == blocks[None, :]
    return causal & (same | (blocks[None, :] == 0) | (blocks[:, None] == -1))


def sees(laid: Laid, design: Design, device: str) -> dict[str, Any]:
    """One sequence as a model's arguments: ids, positions, and the mask as a bias."""
    import torch

    see = allowed(torch.tensor(laid.blocks), mask=design.mask)
    bias = torch.zeros(see.shape).masked_fill(~see, torch.finfo(torch.float32).min)
    return {
        "input_ids": torch.tensor([laid.ids], device=device),
        "attention_mask": bias[None, None].to(device),
        "position_ids": torch.tensor([laid.positions], device=device),
    }


def packages() -> tuple[Any, Any]:
    """torch and transformers. Raises PackError when they are not installed."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise PackError("a trained model needs torch and transformers: run `pip install 'nyima-lab[train]'`") from error
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return torch, transformers


class UnifiedModel:
    """A trained model in a folder; it loads at first use and works in a thread of its own."""

    def __init__(self, folder: Path, device: str = "cpu", *, loaded: tuple[Any, Layout] | None = None) -> None:
        """``loaded`` is a model with its layout that is in memory already, as training has
        it. Raises ConfigError when the folder holds no trained model."""
        self.folder = folder
        self.design = Design.load(folder) if loaded is None else loaded[1].design
        self.name = self.design.name
        self._device = device
        self._loaded = loaded
        self._pool = ThreadPoolExecutor(1, "nyima-unified")

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that it was trained on."""
        return self.design.sources

    def _load(self) -> tuple[Any, Layout]:
        if self._loaded is None:
            torch, transformers = packages()
            import tokenizers

            try:
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    self.folder, local_files_only=True, dtype=torch.float32
                )
                tokenizer = tokenizers.Tokenizer.from_file(str(self.folder / "tokenizer.json"))
            except (OSError, ValueError, RuntimeError) as error:
                raise PackError(f"{self.folder} cannot be loaded ({error}): train the model again") from error
            self._loaded = (model.to(self._device).eval(), Layout(tokenizer, self.design))
        return self._loaded

    def with_design(self, design: Design) -> tuple[Any, Layout]:
        """The loaded model with another design of the same tokens."""
        model, layout = self._load()
        return model, Layout(layout.tokenizer, design)

    async def _run(self, function: Any, *given: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *given)

    async def plan(self, lines: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        """The sources to ask, in order; empty is NULL (equations 1 and 2)."""
        found: tuple[str, ...] = await self._run(self._plan, self.design.read(lines))
        return found

    async def score(
        self, lines: Sequence[tuple[str, str]], plan: Sequence[str], pieces: Sequence[tuple[str, str]]
    ) -> list[float]:
        """The relevance of each piece (source, text), 0..1: the mean of its distribution over
        the eleven evaluation tokens (equation 3), all in one pass. A design without scores
        gives 1.0."""
        found: list[float] = await self._run(self._score, self.design.read(lines), tuple(plan), tuple(pieces))
        return found

    async def reply(
        self, lines: Sequence[tuple[str, str]], plan: Sequence[str], pieces: Sequence[tuple[str, str, float]], most: int = 64,
    ) -> AsyncIterator[str]:  # fmt: skip
        """The reply (equation 4), in one piece."""
        text: str = await self._run(self._reply, self.design.read(lines), tuple(plan), tuple(pieces), most)
        yield text

    def _logits(self, laid: Laid, cache: Any = None) -> Any:
        torch, _ = packages()
        model, _ = self._load()
        with torch.inference_mode():
            given = sees(laid, self.design, self._device)
            return model(**given, past_key_values=cache, use_cache=cache is not None).logits[0]

    def _plan(self, lines: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        chosen: tuple[str, ...] = ()
        while True:
            choices = self.choices(lines, chosen)
            choices[""] += self.design.end if chosen else self.design.null
            best = max(choices, key=choices.__getitem__)
            if not best:
                return chosen
            chosen = (*chosen, best)

    def choices(self, lines: Sequence[tuple[str, str]], chosen: tuple[str, ...]) -> dict[str, float]:
        """The logits of what may come next in a plan: a source, or nothing more (``""``)."""
        _, layout = self._load()
        ids = [*layout.dialogue(lines), *map(layout.acting, chosen)]
        row = self._logits(Laid(tuple(ids), (0,) * len(ids), tuple(range(len(ids)))))[-1]
        found = {s: float(row[layout.acting(s)]) for s in self.sources if s not in chosen}
        return {**found, "": float(row[layout.ids["[EOS]" if chosen else "[NULL]"]])}

    def _score(
        self, lines: Sequence[tuple[str, str]], plan: Sequence[str], pieces: Sequence[tuple[str, str]]
    ) -> list[float]:
        torch, _ = packages()
        _, layout = self._load()
        if not pieces or not self.design.scored:
            return [1.0] * len(pieces)
        laid = layout.whole(lines, plan, [(s, t, 0.0) for s, t in pieces], None)
        rows = self._logits(laid)[[i - 1 for i in laid.scores]][:, list(layout.steps)].softmax(-1)
        return [float(v) for v in rows @ torch.linspace(0, 1, 11, device=rows.device)]

    def _reply(
        self, lines: Sequence[tuple[str, str]], plan: Sequence[str], pieces: Sequence[tuple[str, str, float]], most: int
    ) -> str:
        torch, transformers = packages()
        model, layout = self._load()
        laid = layout.whole(lines, plan, pieces, None)
        cache = transformers.DynamicCache()
        row = self._logits(laid, cache)[-1]
        ids: list[int] = []
        barred = torch.tensor([i for name, i in layout.ids.items() if name != "[END]"], device=self._device)
        for position in range(laid.positions[-1] + 1, laid.positions[-1] + 1 + most):
            ids.append(int(row.index_fill(0, barred, float("-inf")).argmax()))
            if ids[-1] == layout.ids["[END]"]:
                break
            seen = torch.zeros(1, 1, 1, len(laid.ids) + len(ids), device=self._device)
            with torch.inference_mode():
                row = model(
                    input_ids=torch.tensor([ids[-1:]], device=self._device), attention_mask=seen,
                    position_ids=torch.tensor([[position]], device=self._device), past_key_values=cache, use_cache=True,
                ).logits[0, -1]  # fmt: skip
        return tight(str(layout.tokenizer.decode([i for i in ids if i != layout.ids["[END]"]])))
