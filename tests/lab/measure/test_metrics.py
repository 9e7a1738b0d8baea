"""Metrics against the libraries of the field, and what must always hold of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nyima_lab.measure.metrics import bert_score, bleu, corpus_bleu, exact_match, memory_match, ranked, rouge, token_f1
from nyima_lab.measure.stats import cohen_kappa, fleiss_kappa, interval, paired

WORDS = st.lists(st.sampled_from("the cat sat on a mat with two dogs".split()), min_size=1, max_size=9).map(" ".join)


@settings(deadline=None)  # the first call imports the library
@given(WORDS, WORDS)
def test_rouge_is_rouge_score_on_english(reply: str, reference: str) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    theirs = RougeScorer(["rouge1", "rouge2", "rougeL"]).score(reference, reply)
    for kind, score in theirs.items():
        assert rouge(kind, reply, reference) == pytest.approx(score.fmeasure)


def test_rouge_reads_other_scripts() -> None:
    assert rouge("rouge1", "我喜欢猫", "我喜欢狗") == pytest.approx(0.75)
    assert token_f1("我喜欢猫。", "我喜欢狗") == pytest.approx(0.75)
    assert rouge("rouge1", "빵을 구워요", "빵을 먹어요") == pytest.approx(0.5)
    assert rouge("rouge1", "São João", "são joão") == 1.0


@pytest.mark.req("rsum.metrics")
def test_f1_bleu_and_exact_match_have_known_values() -> None:
    assert token_f1("The cat sat.", "a cat sat down") == pytest.approx(2 * 2 / 5)
    assert exact_match("The cat!", "cat") == 1.0
    assert token_f1("", "") == 1.0
    assert token_f1("dog", "cat") == 0.0
    assert bleu(1, "the cat sat on the mat", "the cat sat on the mat") == pytest.approx(1.0)
    assert bleu(1, "the cat", "the cat sat on") == pytest.approx(np.exp(1 - 4 / 2))
    assert bleu(2, "the cat sat", "the dog sat") < bleu(1, "the cat sat", "the dog sat")
    assert corpus_bleu(["the cat sat on the mat"], ["the cat sat on the mat"]) == pytest.approx(1.0)
    assert corpus_bleu([], []) == 0.0


@settings(deadline=None)
@given(st.permutations("abcdefgh"), st.sets(st.sampled_from("abcdefghxy"), min_size=1, max_size=5), st.integers(1, 8))
def test_rankings_are_those_of_ir_measures(ranking: list[str], gold: set[str], k: int) -> None:
    import ir_measures
    from ir_measures import RR, R, nDCG

    run = [ir_measures.ScoredDoc("q", d, 1.0 - i / 10) for i, d in enumerate(ranking)]
    qrels = [ir_measures.Qrel("q", d, 1) for d in gold]
    theirs = ir_measures.calc_aggregate([R @ k, RR @ k, nDCG @ k], qrels, run)
    mine = ranked(ranking, gold, k)
    assert mine["share"] == pytest.approx(theirs[R @ k])
    assert mine["mrr"] == pytest.approx(theirs[RR @ k])
    assert mine["ndcg"] == pytest.approx(theirs[nDCG @ k])
    assert mine["all"] == float(gold <= set(ranking[:k]))


def vectors(*rows: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    unit = np.array(rows, np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    weights = np.ones(len(rows), np.float32)
    weights[0] = weights[-1] = 0.0
    return unit, weights


def test_bert_score_is_greedy_matching_without_the_marks() -> None:
    reply = vectors((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0))
    reference = vectors((1, 0, 0), (0, 1, 0), (1, 0, 0))
    precision, recall, f1 = bert_score(reply, reference)
    assert (precision, recall) == (pytest.approx(0.5), pytest.approx(1.0))
    assert f1 == pytest.approx(2 / 3)
    assert bert_score(reply, reply) == (pytest.approx(1.0),) * 3
    assert bert_score(vectors((1, 0, 0), (1, 0, 0)), reply) == (0.0, 0.0, 0.0)


@pytest.mark.req("rsum.memory-quality")
def test_memory_is_matched_with_gold_sentences() -> None:
    made = ["The user bakes rye bread.", "The user likes jazz."]
    gold = ["I bake rye bread.", "I own a parrot.", "I hike."]
    precision, recall, f1 = memory_match([m.replace("bakes", "bake") for m in made], gold)
    assert (precision, recall) == (0.5, pytest.approx(1 / 3))
    assert f1 == pytest.approx(0.4)
    similar = np.array([[0.9, 0.1, 0.7], [0.1, 0.2, 0.1]], np.float32)
    assert memory_match(made, gold, similar) == (0.5, pytest.approx(2 / 3), pytest.approx(4 / 7))
    assert memory_match([], gold) == (0.0, 0.0, 0.0)


@pytest.mark.req("cond.agreement")
def test_fleiss_kappa_of_the_published_example() -> None:
    counts = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    ratings = [[str(label) for label, n in enumerate(row) for _ in range(n)] for row in counts]
    assert fleiss_kappa(ratings) == pytest.approx(0.210, abs=0.0005)
    assert fleiss_kappa([["yes", "yes"], ["yes", "yes"]]) == 1.0
    with pytest.raises(ValueError, match="same number"):
        fleiss_kappa([["yes"], ["yes", "no"]])
    assert cohen_kappa(["a", "a", "b", "b"], ["a", "a", "b", "a"]) == pytest.approx(0.5)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_an_interval_holds_its_mean(values: list[float]) -> None:
    found = interval(values, [str(i // 2) for i in range(len(values))])
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found.n == len(values)


def test_a_paired_difference_sees_what_unpaired_means_hide() -> None:
    keys = [(f"c{i}", "q") for i in range(20)]
    first = {k: i / 20 + 0.05 for i, k in enumerate(keys)}
    second = {k: i / 20 for i, k in enumerate(keys)}
    found = paired(first, second)
    assert found is not None
    assert found.low > 0
    assert (found.wins, found.ties, found.losses) == (20, 0, 0)
    assert paired(first, {}) is None
    assert interval([]).n == 0
