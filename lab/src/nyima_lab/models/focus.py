"""A trained FoCus (Jang et al. 2022): it grounds by classification and replies. It does not
plan, so it asks all of its sources, and its scores are those of a head, not of tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nyima.errors import PackError
from nyima_lab.models.unified import Laid, Layout, UnifiedModel, packages, sees

__all__ = ["FocusModel", "candidates", "ends"]

_AT_ONCE = 8


class FocusModel(UnifiedModel):
    """A trained FoCus in a folder."""

    def __init__(self, folder: Path, device: str = "cpu", *, loaded: tuple[Any, Layout, Any] | None = None) -> None:
        """``loaded`` is a model with its layout and its head. Raises ConfigError when the
        folder holds no trained model."""
        super().__init__(folder, device, loaded=None if loaded is None else loaded[:2])
        self._head = None if loaded is None else loaded[2]

    def _classifier(self) -> Any:
        """The head: a linear layer from a piece's last state to one logit."""
        if self._head is None:
            torch, _ = packages()
            try:
                body = json.loads((self.folder / "focus.json").read_text("utf-8"))
                self._head = torch.nn.Linear(len(body["weight"]), 1)
                self._head.load_state_dict(
                    {"weight": torch.tensor([body["weight"]]), "bias": torch.tensor([body["bias"]])}
                )
            except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
                raise PackError(
                    f"{self.folder}/focus.json cannot be loaded ({error}): train the model again"
                ) from error
            self._head.to(self._device)
        return self._head

    def save_head(self) -> None:
        """Write ``focus.json``."""
        head = self._classifier()
        body = {"weight": head.weight[0].detach().tolist(), "bias": head.bias[0].item()}
        (self.folder / "focus.json").write_text(json.dumps(body), "utf-8")

    def _plan(self, lines: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        del lines
        return self.sources

    def _score(
        self, lines: Sequence[tuple[str, str]], plan: Sequence[str], pieces: Sequence[tuple[str, str]]
    ) -> list[float]:
        """The chance of each sentence of persona and profile to be used, 0 below one half; of
        the documents their share of the likeliest one, and of that one 1."""
        del plan
        torch, _ = packages()
        model, layout = self._load()
        logits: list[float] = []
        with torch.inference_mode():
            for start in range(0, len(pieces), _AT_ONCE):
                laid = candidates(layout, lines, pieces[start : start + _AT_ONCE])
                hidden = model.base_model(**sees(laid, layout.design, self._device)).last_hidden_state[0]
                logits += self._classifier()(hidden[list(ends(laid, layout))]).squeeze(-1).tolist()
        document = torch.tensor([v for v, (s, _) in zip(logits, pieces, strict=True) if s == "documents"])
        shares = iter((document - document.max()).exp().tolist() if len(document) else [])
        chances = torch.tensor(logits).sigmoid().tolist()
        return [
            next(shares) if source == "documents" else chance * (chance >= 0.5)
            for chance, (source, _) in zip(chances, pieces, strict=True)
        ]

    def _reply(
        self, lines: Sequence[tuple[str, str]], plan: Sequence[str], pieces: Sequence[tuple[str, str, float]], most: int
    ) -> str:
        return super()._reply(lines, (), pieces, most)


def candidates(layout: Layout, lines: Sequence[tuple[str, str]], pieces: Sequence[tuple[str, str]]) -> Laid:
    """The dialogue with pieces to be classified."""
    return layout.whole(lines, (), [(source, text, 0.0) for source, text in pieces], None)


def ends(laid: Laid, layout: Layout) -> list[int]:
    """Where each piece ends."""
    return [i for i, id in enumerate(laid.ids) if id == layout.ids["[EOE]"]]
