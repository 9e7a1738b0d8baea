"""A tokenizer of a model that begins from nothing, and small encoders on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nyima.errors import InputError, PackError
from nyima.models.pair_scorer import OVERLAP, pair_types

__all__ = ["BASIC", "Encoder", "load_encoder", "new_tokenizer"]

BASIC = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[U]", "[A]")
_LONGEST = 160


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise PackError("training needs transformers: run `pip install 'nyima-lab[train]'`") from error
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def new_tokenizer(texts: Iterable[str], special: Sequence[str] = BASIC, size: int = 6_000) -> Any:
    """Word pieces from texts, at most ``size``: the words that come at least twice, and
    characters for the rest; a Chinese character is a word. The same texts give the same
    pieces, which the trainers of the package do not."""
    import tokenizers
    from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

    normal = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    cut = pre_tokenizers.BertPreTokenizer()
    count: Counter[str] = Counter()
    for text in texts:
        count.update(word for word, _ in cut.pre_tokenize_str(normal.normalize_str(text)))
    letters = Counter({letter: n for word, n in count.items() for letter in word})
    alphabet = sorted(letter for letter in letters if letter.isascii())
    words = sorted((w for w, n in count.items() if n > 1), key=lambda w: (-count[w], w))
    vocabulary = dict.fromkeys((*special, *alphabet, *(f"##{letter}" for letter in alphabet), *words))
    ids = {piece: i for i, piece in enumerate(list(vocabulary)[:size])}
    made = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))  # noqa: S106 - no password
    made.normalizer, made.pre_tokenizer, made.decoder = normal, cut, decoders.WordPiece(cleanup=True)
    made.add_special_tokens(list(special))
    if "[CLS]" in special:
        made.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    made.enable_truncation(_LONGEST, direction="left")
    return made


class Encoder:
    """A bidirectional transformer with its tokenizer: mean of the token vectors, or a score
    for a pair. From nothing, or from a folder in the format of the hub."""

    def __init__(self, tokenizer: Any, body: Any, head: Any = None, noise: float = 0.0) -> None:
        """``noise`` is the share of tokens that training hides."""
        self.tokenizer = tokenizer
        self.body = body
        self.head = head
        self.noise = noise
        self._draw = np.random.default_rng(0)
        self._unknown = tokenizer.token_to_id("[UNK]")

    @classmethod
    def fresh(cls, tokenizer: Any, *, width: int = 192, layers: int = 2, pair: bool = False) -> Encoder:
        """A small one from nothing: ``layers`` of ``width``, four heads."""
        kit = _transformers()
        config = kit.BertConfig(
            vocab_size=tokenizer.get_vocab_size(), hidden_size=width, num_hidden_layers=layers, num_attention_heads=4,
            intermediate_size=2 * width, max_position_embeddings=256, pad_token_id=0,
            type_vocab_size=4 if pair else 2, hidden_dropout_prob=0.2,
        )  # fmt: skip
        return cls(tokenizer, kit.BertModel(config, add_pooling_layer=False), _head(width) if pair else None, 0.1)

    @classmethod
    def pretrained(cls, folder: Path, *, pair: bool = False) -> Encoder:
        """An encoder of a folder with ``config.json``, weights and ``tokenizer.json``."""
        import tokenizers

        kit = _transformers()
        try:
            tokenizer = tokenizers.Tokenizer.from_str((folder / "tokenizer.json").read_text("utf-8"))
            body = kit.AutoModel.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            raise InputError(f"{folder} holds no encoder: {error}: give a folder in the format of the hub") from error
        tokenizer.enable_truncation(_LONGEST, direction="left")
        return cls(tokenizer, body, _head(body.config.hidden_size) if pair else None)

    def encode(self, texts: Sequence[Any]) -> dict[str, Any]:
        """Token ids of texts, or of pairs of texts, padded."""
        import torch

        self.tokenizer.enable_padding(pad_id=self.tokenizer.token_to_id("[PAD]") or 0)
        found = self.tokenizer.encode_batch(list(texts))
        device = next(self.body.parameters()).device
        ids, types = np.array([e.ids for e in found]), np.array([e.type_ids for e in found])
        if self.overlap:
            types = pair_types(ids, types, np.array([e.special_tokens_mask for e in found]))
        mask = np.array([e.attention_mask for e in found])
        if self.body.training and self.noise:
            special = np.array([e.special_tokens_mask for e in found])
            ids = np.where((self._draw.random(ids.shape) < self.noise) & (special == 0), self._unknown, ids)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        return {name: torch.tensor(value, device=device) for name, value in given.items()}

    def vectors(self, texts: Sequence[str]) -> Any:
        """Unit vectors (n, width): the mean of the token vectors."""
        import torch

        given = self.encode(texts)
        hidden = self.body(**given).last_hidden_state
        mask = given["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """A logit (n,) for each pair."""
        return self.head(self.body(**self.encode(pairs)).last_hidden_state[:, 0]).squeeze(-1)

    @property
    def overlap(self) -> bool:
        """Whether a pair's token types also say what both texts have: a model from nothing
        does not learn from few pairs that equal characters are equal."""
        return self.head is not None and int(self.body.config.type_vocab_size) == 4

    @property
    def module(self) -> Any:
        """All that is trained, as one module."""
        import torch

        return torch.nn.ModuleList([self.body] if self.head is None else [self.body, self.head])

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(p.numel() for p in self.module.parameters())

    def save(self, folder: Path) -> None:
        """Write ``model.onnx`` and ``tokenizer.json``, as the embedder and the pair scorer
        read them, and the weights to train on."""
        import torch

        folder.mkdir(parents=True, exist_ok=True)
        self.tokenizer.no_padding()
        self.tokenizer.save(str(folder / "tokenizer.json"))
        self.body.cpu().eval()
        self.body.save_pretrained(folder)
        if self.head is not None:
            self.head.cpu().eval()
            torch.save(self.head.state_dict(), folder / "head.pt")
        if self.overlap:
            (folder / OVERLAP).write_text("token types 2 and 3: both texts have the token\n", "utf-8")
        _export(self, folder / "model.onnx")


def _head(width: int) -> Any:
    import torch

    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))


def load_encoder(folder: Path) -> Encoder:
    """An encoder that was saved here, with its head when it has one."""
    import torch

    pair = (folder / "head.pt").exists()
    found = Encoder.pretrained(folder, pair=pair)
    if pair:
        found.head.load_state_dict(torch.load(folder / "head.pt", map_location="cpu", weights_only=True))
    return found


def _export(encoder: Encoder, path: Path) -> None:
    import warnings

    import torch

    class Graph(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = encoder.body, encoder.head

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            hidden = self.body(
                input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
            ).last_hidden_state
            return hidden if self.head is None else torch.sigmoid(self.head(hidden[:, 0]).squeeze(-1))

    names = ["input_ids", "attention_mask", "token_type_ids"]
    given = tuple(torch.ones(2, 7, dtype=torch.long) for _ in names)
    axes = {name: {0: "batch", 1: "length"} for name in names}
    out = {"out": {0: "batch"} if encoder.head is not None else {0: "batch", 1: "length"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Graph().eval(), given, str(path), input_names=names, output_names=["out"], dynamic_axes={**axes, **out},
            dynamo=False, opset_version=17,
        )  # fmt: skip
