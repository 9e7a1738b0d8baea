"""BERTScore against the authors' package, on the same weights and texts.

    pip install torch bert-score && python tools/check_bertscore.py

The local embedder's token vectors go through ``bert_score.utils.greedy_cos_idf`` and
through ``nyima_lab.measure.metrics.bert_score``; printed are both and the largest difference.
"""

from __future__ import annotations

import asyncio

import numpy as np
import torch
from bert_score.utils import greedy_cos_idf

from nyima.app.environment import find_embedder, load_settings
from nyima_lab.measure.metrics import TokenVectors, bert_score

PAIRS = (
    ("Your dog is called Biscuit.", "Your dog's name is Biscuit, and she is a beagle."),
    ("You moved to Porto in May.", "In May you moved to Porto."),
    ("I don't know that yet.", "You play the cello and the flute."),
    ("Tea", "You like to drink a cup of green tea in the morning."),
    ("You have three children: two boys and a girl.", "You have three children, two boys and a girl."),
)


def padded(items: list[TokenVectors]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Vectors, masks and weights as the package wants them."""
    longest = max(len(v) for v, _ in items)
    size = items[0][0].shape[1]
    vectors = np.ones((len(items), longest, size), np.float32)  # it divides by the norm of the padding, too
    masks = np.zeros((len(items), longest), bool)
    weights = np.zeros((len(items), longest), np.float32)
    for i, (rows, marks) in enumerate(items):
        vectors[i, : len(rows)], masks[i, : len(rows)], weights[i, : len(rows)] = rows, True, marks
    return torch.from_numpy(vectors), torch.from_numpy(masks), torch.from_numpy(weights)


async def main() -> None:
    """Print the figures of both."""
    embedder = find_embedder(load_settings())
    replies = await embedder.token_vectors([a for a, _ in PAIRS])  # type: ignore[union-attr]
    references = await embedder.token_vectors([b for _, b in PAIRS])  # type: ignore[union-attr]
    theirs = torch.stack(greedy_cos_idf(*padded(references), *padded(replies))).T.numpy()
    mine = np.array([bert_score(a, b) for a, b in zip(replies, references, strict=True)])
    for pair, one, two in zip(PAIRS, mine, theirs, strict=True):
        print(f"{pair[0][:30]:30}  P R F1 here {np.round(one, 6)}  package {np.round(two, 6)}")
    print(f"largest difference {np.abs(mine - theirs).max():.2e}")


if __name__ == "__main__":
    asyncio.run(main())
