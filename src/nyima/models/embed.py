"""Embedders: MiniLM on onnxruntime, or any OpenAI-compatible ``/embeddings``."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nyima.domain.ports import Vector
from nyima.errors import ModelRefused, PackError
from nyima.models.openai import Endpoint, translated
from nyima.models.silent import no_telemetry

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

__all__ = ["OnnxEmbedder", "OpenAIEmbedder", "runtime_missing"]

_LONGEST = 256
_BATCH = 32
_MOST_CHARACTERS = 6_000


def runtime_missing() -> str:
    """The name of the first package that a local embedder needs and that is not installed;
    empty when all are."""
    return next((name for name in ("onnxruntime", "tokenizers") if importlib.util.find_spec(name) is None), "")


def _packed(vectors: NDArray[np.float32]) -> list[Vector]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = (vectors / np.maximum(norms, 1e-12)).astype("<f4")
    return [row.tobytes() for row in unit]


class OnnxEmbedder:
    """all-MiniLM-L6-v2 (384 dimensions) in this process, without torch.

    Texts are cut after 256 word pieces, as the model was trained: what stands later in
    a long text does not count for its vector (full-text search still finds it). The
    vector is the mean of the token vectors, at unit length. Weights load at first use.
    """

    def __init__(self, files: dict[str, Path], name: str = "minilm-l6-int8", threads: int = 0) -> None:
        """``files`` holds ``model.onnx`` and ``tokenizer.json``; 0 threads means all cores."""
        self.name = name
        self._files = files
        self._threads = threads
        self._loaded: tuple[tokenizers.Tokenizer, onnxruntime.InferenceSession, list[str]] | None = None
        self._pool = ThreadPoolExecutor(1, "nyima-embed")

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector a text, in order; in batches of similar length."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._embed, list(texts))

    def _load(self) -> tuple[tokenizers.Tokenizer, onnxruntime.InferenceSession, list[str]]:
        no_telemetry()
        try:
            import onnxruntime
            import tokenizers
        except ImportError as error:
            raise PackError("the local embedder needs extra packages: run `pip install 'nyima[local]'`") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 3
        # Threads that wait by spinning take the cores from the search that follows.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(self._files["tokenizer.json"]))
            session = onnxruntime.InferenceSession(str(self._files["model.onnx"]), options)
        except Exception as error:  # tokenizers raises bare Exceptions for a damaged file
            raise PackError(
                f"the embedding model {self.name!r} cannot be loaded ({error}): run `nyima models pull {self.name}`"
            ) from error
        tokenizer.enable_truncation(_LONGEST)
        tokenizer.enable_padding()
        return tokenizer, session, [i.name for i in session.get_inputs()]

    async def token_vectors(self, texts: Sequence[str]) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Of each text the word pieces' vectors (n, 384) at unit length, with weights (n,):
        0 for the marks at beginning and end, 1 for the rest."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._tokens, list(texts))

    def _tokens(self, texts: list[str]) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        out: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []
        for start in range(0, len(texts), _BATCH):
            encoded, tokens = self._run(texts[start : start + _BATCH])
            for code, vectors in zip(encoded, tokens, strict=True):
                length = sum(code.attention_mask)
                unit = vectors[:length] / np.maximum(np.linalg.norm(vectors[:length], axis=1, keepdims=True), 1e-12)
                out.append((unit, 1.0 - np.array(code.special_tokens_mask[:length], np.float32)))
        return out

    def _run(self, texts: list[str]) -> tuple[list[tokenizers.Encoding], NDArray[np.float32]]:
        if self._loaded is None:
            self._loaded = self._load()
        tokenizer, session, inputs = self._loaded
        encoded = tokenizer.encode_batch([text[:_MOST_CHARACTERS] for text in texts])
        ids = np.array([e.ids for e in encoded], np.int64)
        mask = np.array([e.attention_mask for e in encoded], np.int64)
        given: dict[str, Any] = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return encoded, np.asarray(session.run(None, {n: given[n] for n in inputs})[0], np.float32)

    def _embed(self, texts: list[str]) -> list[Vector]:
        if not texts:
            return []
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        out: NDArray[np.float32] | None = None
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            encoded, tokens = self._run([texts[i] for i in batch])
            mask = np.array([e.attention_mask for e in encoded], np.int64)
            weights = mask[..., None].astype(np.float32)
            means = (tokens * weights).sum(1) / np.maximum(weights.sum(1), 1.0) if tokens.ndim == 3 else tokens
            out = np.zeros((len(texts), means.shape[1]), np.float32) if out is None else out
            out[batch] = means
        assert out is not None
        return _packed(out)


class OpenAIEmbedder:
    """Any OpenAI-compatible ``/embeddings``. Long texts are cut after 6,000 characters."""

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self.name = model
        self._endpoint = endpoint

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector a text, in order."""
        if not texts:
            return []
        with translated(self._endpoint, self.name):
            answer = await self._endpoint.client().embeddings.create(
                model=self.name, input=[t[:_MOST_CHARACTERS] or " " for t in texts], encoding_format="float"
            )
        try:
            given = sorted(answer.data, key=lambda item: item.index)
            vectors = np.array([item.embedding for item in given], np.float32)
        except (AttributeError, TypeError, ValueError) as error:
            raise ModelRefused(f"{self.name!r} did not answer with vectors ({error}): use another model") from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.size or not np.isfinite(vectors).all():
            raise ModelRefused(
                f"{self.name!r} returned {vectors.shape} vectors for {len(texts)} texts: use another model"
            )
        return _packed(vectors)
