"""Metrics of texts and rankings, through the libraries of the field where there is one."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nyima.errors import PackError
from nyima.language.words import content_words, looks_unspaced, words

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu import BLEU

__all__ = [
    "TEXT_METRICS", "TokenEmbedder", "TokenVectors", "bert_score", "bleu", "corpus_bleu", "exact_match", "memory_match",
    "ranked", "rouge", "token_f1",
]  # fmt: skip

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
_TOKEN = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_])+")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _needs(name: str) -> PackError:
    return PackError(f"the package {name!r} is missing: run `pip install 'nyima-lab[eval]'`")


class _Tokens:
    """Words in any script, characters where a script writes no spaces. rouge-score's own
    tokenizer knows a to z alone; on such text this gives the same."""

    def tokenize(self, text: str) -> list[str]:
        """The words, in lower case."""
        return _TOKEN.findall(text.casefold())


@cache
def _scorer() -> RougeScorer:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise _needs("rouge-score") from error
    return RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=_Tokens())


@cache
def _bleu(order: int, tokenize: str) -> BLEU:
    try:
        from sacrebleu import BLEU
    except ImportError as error:
        raise _needs("sacrebleu") from error
    return BLEU(max_ngram_order=order, effective_order=True, tokenize=tokenize)


def rouge(kind: str, reply: str, reference: str) -> float:
    """ROUGE's F-measure, 0..1 (Lin 2004); ``kind`` is rouge1, rouge2 or rougeL."""
    return float(_scorer().score(reference, reply)[kind].fmeasure)


def _tokenizer(text: str) -> str:
    return "char" if looks_unspaced(text) else "13a"


def bleu(order: int, reply: str, reference: str) -> float:
    """Sentence BLEU of n-grams up to ``order``, 0..1, by sacrebleu."""
    return float(_bleu(order, _tokenizer(reference)).sentence_score(reply, [reference]).score) / 100


def corpus_bleu(replies: Sequence[str], references: Sequence[str]) -> float:
    """Corpus BLEU (4-grams), 0..1, by sacrebleu."""
    if not replies:
        return 0.0
    from sacrebleu import BLEU

    scorer = BLEU(tokenize=_tokenizer(" ".join(references)))
    return float(scorer.corpus_score(list(replies), [list(references)]).score) / 100


def _normal(text: str) -> list[str]:
    """SQuAD's: lower case, without punctuation and articles; characters where a script
    writes no spaces."""
    text = _ARTICLES.sub(" ", text.casefold().translate(_PUNCTUATION))
    return _TOKEN.findall(text) if looks_unspaced(text) else text.split()


def token_f1(reply: str, reference: str) -> float:
    """F1 of the words that reply and reference share, 0..1 (Rajpurkar et al. 2016)."""
    said, wanted = _normal(reply), _normal(reference)
    if not said or not wanted:
        return float(said == wanted)
    shared = sum((Counter(said) & Counter(wanted)).values())
    return 0.0 if not shared else 2 * shared / (len(said) + len(wanted))


def exact_match(reply: str, reference: str) -> float:
    """1.0 when the two are the same words."""
    return float(_normal(reply) == _normal(reference))


TEXT_METRICS: Mapping[str, Callable[[str, str], float]] = {
    "rouge1": lambda reply, reference: rouge("rouge1", reply, reference),
    "rouge2": lambda reply, reference: rouge("rouge2", reply, reference),
    "rougeL": lambda reply, reference: rouge("rougeL", reply, reference),
    "bleu1": lambda reply, reference: bleu(1, reply, reference),
    "bleu2": lambda reply, reference: bleu(2, reply, reference),
    "f1": token_f1,
    "em": exact_match,
    "words": lambda reply, _: float(len(words(reply))),
}


TokenVectors: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32]]


class TokenEmbedder(Protocol):
    """An embedder that gives the vectors of its word pieces."""

    async def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Of each text the pieces' vectors (n, d) at unit length, and weights (n,): 0 for
        the marks at beginning and end, 1 for the rest."""
        ...


def bert_score(reply: TokenVectors, reference: TokenVectors) -> tuple[float, float, float]:
    """Precision, recall and F1 of BERTScore (Zhang et al. 2020, section 3), without idf and
    without rescaling: each piece is matched with the most similar piece of the other text.
    As in the authors' package the marks may be matched, but do not count."""
    (said, counts), (wanted, matter) = reply, reference
    if not counts.sum() or not matter.sum():
        return 0.0, 0.0, 0.0
    similar = said @ wanted.T
    precision = float((similar.max(axis=1) * counts).sum() / counts.sum())
    recall = float((similar.max(axis=0) * matter).sum() / matter.sum())
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def ranked(ranking: Sequence[str], gold: Iterable[str], k: int) -> dict[str, float]:
    """Of a ranking's first ``k``: ``share`` (recall), ``all``, ``any``, ``mrr`` and ``ndcg``
    with binary relevance. Ids that come twice count once."""
    wanted = set(gold)
    top = list(dict.fromkeys(ranking))[:k]
    hits = [i for i, id in enumerate(top, 1) if id in wanted]
    gain = sum(1 / math.log2(i + 1) for i in hits)
    best = sum(1 / math.log2(i + 1) for i in range(1, min(k, len(wanted)) + 1))
    return {
        "share": len(hits) / len(wanted) if wanted else 0.0,
        "all": float(bool(wanted) and len(hits) == len(wanted)),
        "any": float(bool(hits)),
        "mrr": 1 / hits[0] if hits else 0.0,
        "ndcg": gain / best if best else 0.0,
    }


def memory_match(
    made: Sequence[str],
    gold: Sequence[str],
    similarity: NDArray[np.float32] | None = None,
    least: float = 0.6,
) -> tuple[float, float, float]:
    """Precision, recall and F1 of sentences of memory against gold ones (Wang et al. 2023,
    section 6.4). Two sentences agree when their cosine (``similarity``, made by gold) is at
    least ``least``, or without it when they share that part of the shorter one's words."""
    if not made or not gold:
        return 0.0, 0.0, 0.0
    agree = _shared(made, gold) if similarity is None else similarity
    precision = float((agree.max(axis=1) >= least).mean())
    recall = float((agree.max(axis=0) >= least).mean())
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _shared(made: Sequence[str], gold: Sequence[str]) -> NDArray[np.float32]:
    left, right = [set(content_words(t)) for t in made], [set(content_words(t)) for t in gold]
    rows = [[len(a & b) / min(len(a), len(b)) if a and b else 0.0 for b in right] for a in left]
    return np.array(rows, np.float32)
