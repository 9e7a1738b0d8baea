"""A cross-encoder on onnxruntime: NLI, or relevance of a piece to a dialogue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nyima.errors import PackError
from nyima.models.silent import no_telemetry

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

__all__ = ["OVERLAP", "OnnxPairScorer", "pair_types"]

OVERLAP = "overlap.txt"
"""A folder with this file has a model that is told which tokens both texts have."""

_LONGEST = 160
_BATCH = 32


def pair_types(ids: NDArray[np.int64], types: NDArray[np.int64], special: NDArray[np.int64]) -> NDArray[np.int64]:
    """Token types (n, length) that also say whether the other text of the pair has the
    token: 0 and 1 for the first and second text, 2 and 3 where both have it. ``special``
    is 1 at marks and padding."""
    out = types.copy()
    for i in range(len(ids)):
        first = set(ids[i][(types[i] == 0) & (special[i] == 0)].tolist())
        both = first & set(ids[i][(types[i] == 1) & (special[i] == 0)].tolist())
        out[i][np.isin(ids[i], list(both)) & (special[i] == 0)] += 2
    return out


class OnnxPairScorer:
    """Scores pairs of texts with ``model.onnx`` and ``tokenizer.json`` of a folder, whose
    output is one number in 0..1 a pair. Texts are cut to 160 tokens together."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Raises PackError when the folder has no such model."""
        missing = [f for f in ("model.onnx", "tokenizer.json") if not (folder / f).is_file()]
        if missing:
            raise PackError(f"{folder} has no {missing[0]}: train one with `nyima train nli`")
        self.name = folder.name
        self._folder = folder
        self._threads = threads
        self._loaded: tuple[tokenizers.Tokenizer, onnxruntime.InferenceSession] | None = None
        self._pool = ThreadPoolExecutor(1, "nyima-pairs")

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """A score a pair, in order; how pairs are batched changes nothing."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._score, list(pairs))

    def _load(self) -> tuple[tokenizers.Tokenizer, onnxruntime.InferenceSession]:
        no_telemetry()
        try:
            import onnxruntime
            import tokenizers
        except ImportError as error:
            raise PackError("a cross-encoder needs extra packages: run `pip install 'nyima[local]'`") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(self._folder / "tokenizer.json"))
            session = onnxruntime.InferenceSession(str(self._folder / "model.onnx"), options)
        except (RuntimeError, ValueError, OSError) as error:
            raise PackError(f"the cross-encoder {self._folder} cannot be loaded ({error}): train it again") from error
        tokenizer.enable_truncation(_LONGEST, direction="left")
        tokenizer.enable_padding()
        return tokenizer, session

    def _score(self, pairs: list[tuple[str, str]]) -> list[float]:
        if self._loaded is None:
            self._loaded = self._load()
        tokenizer, session = self._loaded
        overlap = (self._folder / OVERLAP).exists()
        names = {i.name for i in session.get_inputs()}
        out: list[float] = []
        for start in range(0, len(pairs), _BATCH):
            found = tokenizer.encode_batch(pairs[start : start + _BATCH])
            ids = np.array([e.ids for e in found], np.int64)
            types = np.array([e.type_ids for e in found], np.int64)
            if overlap:
                types = pair_types(ids, types, np.array([e.special_tokens_mask for e in found], np.int64))
            mask = np.array([e.attention_mask for e in found], np.int64)
            given: dict[str, Any] = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
            try:
                scores = session.run(None, {k: v for k, v in given.items() if k in names})[0]
            except (RuntimeError, ValueError) as error:
                raise PackError(f"the cross-encoder {self._folder} failed ({error}): train it again") from error
            out += [float(v) for v in np.asarray(scores).reshape(-1)]
        return out
