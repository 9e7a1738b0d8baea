"""Training of retrievers, cross-encoders, planners and the unified model, on a few samples
from nothing: what they learn, that they resume, and what the mask promises."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence, Query
from nyima.errors import ConfigError, InputError, PackError
from nyima.models.embed import OnnxEmbedder
from nyima.models.pair_scorer import OnnxPairScorer, pair_types
from nyima.read.embedding import QueryEmbedder
from nyima.read.sources import SourceChoice
from nyima.testing import HashEmbedder, ScriptedModel
from nyima.testing.contract import T0, note
from nyima_lab.baselines.trained_roles import ClassifierPlanner, TrainedJudge
from nyima_lab.measure.grounded import Piece, Sample
from nyima_lab.models.focus import FocusModel
from nyima_lab.models.unified import Design, UnifiedModel, allowed
from nyima_lab.train.focus_training import train_focus
from nyima_lab.train.loop import Schedule, batched, choose_device
from nyima_lab.train.pairs import consistency_pairs, relevance_pairs, train_pairs
from nyima_lab.train.pieces import Encoder, load_encoder, new_tokenizer
from nyima_lab.train.planner import logistic, train_planner
from nyima_lab.train.relevance import bm25_labels, encoder_labels, hard_labels, model_labels, planned_pieces
from nyima_lab.train.retriever import texts_of, train_list_wise, train_two_encoder, wanted_of
from nyima_lab.train.unified_training import TrainingRecipe, evidence_for, new_model, train_unified

torch = pytest.importorskip("torch", reason="the extra train is not installed")
pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

THINGS = ("tea", "bread", "chess", "jazz", "snow", "tulips", "trains", "horses")


def samples(count: int = 64) -> list[Sample]:
    """Questions about one of three things that the assistant likes, some with a document
    about it, and small talk."""
    found: list[Sample] = []
    for i in range(count):
        liked = [THINGS[(i + j) % len(THINGS)] for j in range(3)]
        pieces = [Piece(f"B{j}", "persona", f"I like {t} a lot") for j, t in enumerate(liked)]
        pieces += [
            Piece(f"B{j}-{k}", "documents", f"{t} {fact}", f"B{j}")
            for j, t in enumerate(liked)
            for k, fact in enumerate(("is found in the north", "costs two coins"))
        ]
        thing, how = liked[i % 3], i % 3
        if how == 0:
            message, gold, reply = "hello there friend", frozenset[str](), "hello to you"
        elif how == 1:
            message, gold, reply = f"do you like {thing}", frozenset({f"B{i % 3}"}), f"yes I like {thing}"
        else:
            message = f"what does {thing} cost"
            gold, reply = frozenset({f"B{i % 3}", f"B{i % 3}-1"}), f"{thing} costs two coins"
        found.append(
            Sample(f"s{i}", f"g{i // 4}", (("user", "hi"), ("assistant", "yes")), message, tuple(pieces), gold, reply)
        )
    return found


SAMPLES = samples()
PARTS = (SAMPLES[:48], SAMPLES[48:])


def silent(stage: str, done: int, total: int) -> None:
    """No bar."""


def quick(**more: object) -> Schedule:
    return Schedule(**{"epochs": 2, "batch": 8, "rate": 3e-3, "device": "cpu", "threads": 1, **more})  # type: ignore[arg-type]


@pytest.mark.req("ums.retrievers")
async def test_a_two_encoder_learns_and_becomes_an_embedder(tmp_path: Path) -> None:
    encoder, done = train_two_encoder(PARTS, tmp_path, quick(epochs=8), silent, shape=(64, 1))
    assert done.curve[-1]["loss"] < done.curve[0]["loss"]
    assert done.curve[-1]["recall_1"] > 0.5, "chance is about one in five"
    embedder = OnnxEmbedder({n: tmp_path / n for n in ("model.onnx", "tokenizer.json")}, "trained")
    (packed,) = await embedder.embed(["do you like tea"])
    with torch.inference_mode():
        there = encoder.vectors(["do you like tea"])[0].numpy()
    assert np.allclose(np.frombuffer(packed, "<f4"), there, atol=1e-4), "the exported model gives the same"
    again = load_encoder(tmp_path)
    again.body.eval()
    with torch.inference_mode():
        assert np.allclose(again.vectors(["do you like tea"])[0].numpy(), there, atol=1e-5)


async def test_list_wise_training_of_retriever_and_re_ranker(tmp_path: Path) -> None:
    _, _, done = train_list_wise(PARTS, tmp_path, quick(epochs=6), silent, shape=(64, 1))
    assert done.curve[-1]["train"] < done.curve[0]["train"]
    scorer = OnnxPairScorer(tmp_path / "ranker")
    pairs = [("I like tea a lot", "[U] do you like tea"), ("I like snow a lot", "[U] do you like tea")]
    together = await scorer.score(pairs)
    alone = [(await scorer.score([pair]))[0] for pair in pairs]
    assert np.allclose(together, alone, atol=1e-5), "a pair's score does not depend on the others"
    assert all(0.0 <= s <= 1.0 for s in together)


@pytest.mark.req("ums.nli")
async def test_nli_learns_which_reply_rests_on_what(tmp_path: Path) -> None:
    parts = consistency_pairs(PARTS[0]), consistency_pairs(PARTS[1])
    assert {p.kind for p in parts[0]} == {"grounded", "same dialogue", "elsewhere"}
    encoder, done = train_pairs(
        parts, PARTS[0], tmp_path, quick(epochs=40, patience=100, checks=1), silent, shape=(64, 1)
    )
    assert done.curve[-1]["accuracy"] > 0.7
    good, bad = await OnnxPairScorer(tmp_path).score(
        [("tea costs two coins", "tea costs two coins"), ("horses is found in the north", "tea costs two coins")]
    )
    assert good > bad
    assert encoder.overlap


def test_relevance_pairs_say_what_a_reply_used() -> None:
    pairs = relevance_pairs(SAMPLES[:3])
    assert [p.label for p in pairs].count(1.0) == 3
    assert all(p.second.startswith("[U]") for p in pairs)


def test_token_types_tell_what_both_texts_have() -> None:
    ids = np.array([[1, 7, 8, 2, 9, 7, 2, 0]])
    types = np.array([[0, 0, 0, 0, 1, 1, 1, 0]])
    special = np.array([[1, 0, 0, 1, 0, 0, 1, 1]])
    assert pair_types(ids, types, special).tolist() == [[0, 2, 0, 0, 1, 3, 1, 0]]


def test_the_same_texts_give_the_same_pieces() -> None:
    one, other = new_tokenizer(texts_of(SAMPLES)), new_tokenizer(texts_of(SAMPLES))
    assert one.get_vocab() == other.get_vocab()
    made = new_tokenizer(["我 喜欢 猫", "我 喜欢 狗", "cat's cats cats"])
    assert made.encode("我喜欢cats", add_special_tokens=False).tokens == ["我", "喜", "欢", "cats"]


# --- the unified model ---


def unified(tmp_path: Path, *, epochs: int = 1, mask: bool = True, scored: bool = True, **more: object) -> UnifiedModel:
    design = Design(("persona", "documents"), mask, scored)
    recipe = TrainingRecipe(replace(design, turns=1), shape=(64, 2))
    model, _ = train_unified(PARTS, tmp_path, recipe, quick(epochs=epochs, **more), silent)
    return model


LINES = (("user", "what does tea cost"),)
PIECES = (
    ("persona", "I like tea a lot"),
    ("documents", "tea costs two coins"),
    ("documents", "tea is found in the north"),
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> UnifiedModel:
    folder = tmp_path_factory.mktemp("unified")
    unified(folder, epochs=40)
    return UnifiedModel(folder)


@pytest.mark.req("ums.train")
async def test_the_unified_model_learns_to_plan_score_and_reply(trained: UnifiedModel) -> None:
    planned = [await trained.plan(s.lines(1)) for s in PARTS[1]]
    right = sum(p == s.plan for p, s in zip(planned, PARTS[1], strict=True))
    assert right >= 14, planned
    shown = [(p.source, p.text) for p in SAMPLES[2].of("documents", ("B2",))]
    scores = await trained.score(SAMPLES[2].lines(1), SAMPLES[2].plan, shown)
    assert scores[1] > scores[0], "what the reply used is worth more"
    said = "".join([p async for p in trained.reply(LINES, ("persona", "documents"), [(*p, 1.0) for p in PIECES[:2]])])
    assert "coins" in said
    nothing = "".join([p async for p in trained.reply((("user", "hello there friend"),), (), [])])
    assert nothing == "hello to you"


async def test_a_score_does_not_change_when_the_others_do(trained: UnifiedModel) -> None:
    plan = ("persona", "documents")
    together = await trained.score(LINES, plan, PIECES)
    for i, piece in enumerate(PIECES):
        assert await trained.score(LINES, plan, [piece]) == pytest.approx([together[i]], abs=1e-4)
    others = [("documents", "something very long and different " * 5), PIECES[1], ("persona", "short")]
    assert (await trained.score(LINES, plan, others))[1] == pytest.approx(together[1], abs=1e-4)
    judged = await TrainedJudge(trained).judge(
        Scope(), Query("x", T0), [Evidence(t, s, 0.5, note(t, t), T0) for s, t in PIECES], last=True
    )
    assert all(round(e.score, 1) == e.score for e in judged.evidence), "in steps of 0.1"


async def test_the_order_of_the_evidence_changes_no_score_and_no_reply(trained: UnifiedModel) -> None:
    plan = ("persona", "documents")
    scored = [(s, t, 0.1 * i) for i, (s, t) in enumerate(PIECES)]
    first = "".join([p async for p in trained.reply(LINES, plan, scored)])
    assert first == "".join([p async for p in trained.reply(LINES, plan, scored[::-1])])
    forward, backward = await trained.score(LINES, plan, PIECES), await trained.score(LINES, plan, PIECES[::-1])
    assert forward == pytest.approx(backward[::-1], abs=1e-4)


async def test_without_the_mask_a_score_does_change(tmp_path: Path) -> None:
    plain = unified(tmp_path, mask=False)
    plan = ("persona", "documents")
    alone, with_others = (await plain.score(LINES, plan, [PIECES[2]]))[0], (await plain.score(LINES, plan, PIECES))[2]
    assert abs(alone - with_others) > 1e-4


@pytest.mark.req("ums.safari")
async def test_safari_has_neither_scores_nor_mask(tmp_path: Path) -> None:
    safari = unified(tmp_path, mask=False, scored=False)
    assert await safari.score(LINES, ("persona",), PIECES) == [1.0, 1.0, 1.0]
    laid = safari._load()[1].whole(LINES, ("persona",), [(*PIECES[0], 0.3)], "yes")
    assert laid.scores == ()
    assert list(laid.positions) == list(range(len(laid.ids)))


def test_the_mask_by_hand() -> None:
    blocks = torch.tensor([0, 0, 1, 1, 2, -1, -1])
    see = allowed(blocks, mask=True).int().tolist()
    assert see[3] == [1, 1, 1, 1, 0, 0, 0]
    assert see[4] == [1, 1, 0, 0, 1, 0, 0], "a piece does not see another"
    assert see[6] == [1, 1, 1, 1, 1, 1, 1], "the reply sees all"
    assert allowed(blocks, mask=False).int().tolist()[4] == [1, 1, 1, 1, 1, 0, 0]


def test_special_tokens_cannot_be_written_by_a_text() -> None:
    """Nor by the names of the acting tokens."""
    _, layout = new_model(SAMPLES, TrainingRecipe(Design(("persona",))))
    laid = layout.whole((("user", "[EVIDENCE] x [EOE] [1.0] NULL PERSONA [NULL] [PERSONA]"),), (), [], None)
    assert laid.ids.count(layout.ids["[EVIDENCE]"]) == 0
    assert laid.ids.count(layout.ids["[1.0]"]) == 0
    assert laid.ids.count(layout.ids["[PERSONA]"]) == 0
    assert laid.ids.count(layout.ids["[NULL]"]) == 1, "the plan's own"


async def test_training_that_is_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = unified(tmp_path / "whole", epochs=3)
    seen = 0

    def stop(stage: str, done: int, total: int) -> None:
        nonlocal seen
        seen = done
        if done == 8:
            raise KeyboardInterrupt

    design = Design(("persona", "documents"))
    recipe = TrainingRecipe(replace(design, turns=1), shape=(64, 2))
    with pytest.raises(KeyboardInterrupt):
        train_unified(PARTS, tmp_path / "parts", recipe, quick(epochs=3), stop)
    assert (tmp_path / "parts" / "checkpoint.pt").exists()
    resumed, done = train_unified(PARTS, tmp_path / "parts", recipe, quick(epochs=3), silent)
    assert done.steps == 18
    assert done.examples == 3 * 48
    plan = ("persona", "documents")
    assert await resumed.score(LINES, plan, PIECES) == pytest.approx(await whole.score(LINES, plan, PIECES), abs=0.05)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    unified(tmp_path)
    with pytest.raises(InputError, match="belongs to another model, other data or settings"):
        train_unified(PARTS, tmp_path, TrainingRecipe(Design(("persona", "documents")), shape=(32, 1)), quick(), silent)
    with pytest.raises(InputError, match="belongs to another model, other data or settings"):
        unified(tmp_path, mask=False)
    (tmp_path / "checkpoint.pt").write_bytes(b"no")
    with pytest.raises(InputError, match="cannot be read"):
        unified(tmp_path)


def test_it_stops_early_on_validation_loss_and_on_time(tmp_path: Path) -> None:
    never = quick(epochs=50, rate=0.0, patience=2, checks=1)
    _, done = train_unified(
        PARTS, tmp_path / "a", TrainingRecipe(Design(("persona", "documents")), shape=(32, 1)), never, silent
    )
    assert done.stopped == "patience"
    assert len(done.curve) <= 4
    brief = quick(epochs=5_000, minutes=1e-4)
    _, done = train_unified(
        PARTS, tmp_path / "b", TrainingRecipe(Design(("persona", "documents")), shape=(32, 1)), brief, silent
    )
    assert done.stopped == "time"
    lines = (tmp_path / "b" / "curve.jsonl").read_text("utf-8").splitlines()
    assert all({"loss", "plan", "scores", "reply", "train"} <= set(json.loads(line)) for line in lines)


async def test_lora_on_a_given_causal_model(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    import transformers

    tokenizer = new_tokenizer(texts_of(SAMPLES), ("[PAD]", "[UNK]"))
    tokenizer.no_truncation()
    config = transformers.Qwen2Config(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, tie_word_embeddings=True,
    )  # fmt: skip
    base = tmp_path / "base"
    transformers.Qwen2ForCausalLM(config).save_pretrained(base)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]"
    ).save_pretrained(base)
    recipe = TrainingRecipe(Design(("persona", "documents"), turns=1), base=base, rank=4)
    model, _ = new_model(PARTS[0], recipe)
    wanted = [n for n, p in model.named_parameters() if p.requires_grad]
    assert wanted
    assert all("lora" in n or "trainable_tokens" in n for n in wanted), "of the old weights none changes"
    _, done = train_unified(PARTS, tmp_path / "out", recipe, quick(epochs=2), silent)
    assert done.curve[-1]["loss"] < done.curve[0]["loss"]
    loaded = UnifiedModel(tmp_path / "out")
    assert set(await loaded.plan(LINES)) <= {"persona", "documents"}
    with pytest.raises(InputError, match="holds no causal model"):
        new_model(PARTS[0], TrainingRecipe(Design(("persona",)), base=tmp_path / "nothing"))


# --- planner and FoCus ---


@pytest.mark.req("ums.planner-bert")
async def test_an_encoder_classifier_learns_to_plan_with_a_threshold_a_source(tmp_path: Path) -> None:
    trained = await train_planner(PARTS, HashEmbedder(), tmp_path, silent, turns=0)
    assert trained.sources == ("persona", "documents")
    assert trained.report["accuracy"] > 0.9
    asked = (
        SourceChoice("persona", 3, (), "", ("passage",)),
        SourceChoice("documents", 3, ("persona",), "", ("passage",)),
    )
    vectors = QueryEmbedder(HashEmbedder())
    planner = ClassifierPlanner.load(tmp_path / "planner.json", asked, vectors)
    for text, plan in (
        ("hello there friend", []),
        ("do you like tea", ["persona"]),
        ("what does tea cost", ["persona", "documents"]),
    ):
        found = await planner.plan(Scope(), Query(text, T0))
        assert [s.source for s in found.steps] == plan, text
        assert found.by == "classifier"
    with pytest.raises(ConfigError, match="gets 8"):
        await ClassifierPlanner.load(tmp_path / "planner.json", asked, QueryEmbedder(HashEmbedder(size=8))).plan(
            Scope(), Query("x", T0)
        )
    (tmp_path / "planner.json").write_text("{}", "utf-8")
    with pytest.raises(ConfigError, match="is no trained planner"):
        ClassifierPlanner.load(tmp_path / "planner.json", asked, vectors)


def test_logistic_regression_by_hand() -> None:
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    weights = logistic(x, np.array([0.0, 0.0, 1.0, 1.0]), penalty=0.1)
    assert weights[0] > 1
    assert abs(weights[1]) < 1e-6
    with_bias = logistic(x, np.array([0.0, 1.0, 1.0, 1.0]), penalty=0.1)
    assert with_bias[1] > 0.5


@pytest.mark.req("ums.focus")
async def test_focus_grounds_by_classification_jointly_with_the_reply(tmp_path: Path) -> None:
    focus, done = train_focus(
        PARTS,
        tmp_path,
        quick(epochs=70, patience=100, checks=1),
        silent,
        TrainingRecipe(Design(("persona", "documents")), shape=(64, 2)),
    )
    assert {"persona", "documents", "reply"} <= set(done.curve[-1])
    assert done.curve[-1]["loss"] < done.curve[0]["loss"]
    assert await focus.plan(PARTS[1][0].lines()) == ("persona", "documents"), "it does not plan"
    loaded = FocusModel(tmp_path)
    right = 0
    for sample in PARTS[1]:
        pieces = [(p.source, p.text) for p in sample.pieces]
        scores = await focus.score(sample.lines(), (), pieces)
        assert await loaded.score(sample.lines(), (), pieces) == pytest.approx(scores, abs=1e-5)
        assert await focus.score(sample.lines(), (), pieces[:1]) == pytest.approx(scores[:1], abs=1e-4)
        used = {p.id for p, score in zip(sample.pieces, scores, strict=True) if p.source == "persona" and score > 0}
        right += used == {x for x in sample.gold if "-" not in x}
        documents = [score for (source, _), score in zip(pieces, scores, strict=True) if source == "documents"]
        assert documents.count(1.0) == 1, "the likeliest document"
    assert right >= 10
    assert "".join([part async for part in loaded.reply(SAMPLES[2].lines(), (), [("persona", "I like tea", 1.0)])])
    (tmp_path / "focus.json").write_text("{}", "utf-8")
    with pytest.raises(PackError, match="train the model again"):
        await FocusModel(tmp_path).score(SAMPLES[2].lines(), (), [("persona", "x")])


# --- labels ---


@pytest.mark.req("ums.labels-hard", "ums.labels-dpr")
def test_labels_from_use_words_and_a_fine_tuned_encoder() -> None:
    sample = SAMPLES[2]
    assert {p.id for p in planned_pieces(sample)} == {"B0", "B1", "B2", "B2-0", "B2-1"}, (
        "what belongs to the used piece"
    )
    hard = hard_labels([sample])
    assert {id for (_, id), v in hard.items() if v == 1.0} == {"B2", "B2-1"}
    sparse = bm25_labels([sample])
    assert sparse[sample.id, "B2"] > sparse[sample.id, "B0"]
    assert max(sparse.values()) == 1.0
    encoder = Encoder.fresh(new_tokenizer(texts_of(SAMPLES)), width=32, layers=1)
    soft = encoder_labels(encoder, [sample])
    assert soft.keys() == hard.keys()
    assert all(0.0 <= v <= 1.0 for v in soft.values())


@pytest.mark.req("ums.labels-llm")
async def test_labels_from_a_prompted_model() -> None:
    scripted = ScriptedModel(
        {"relevance": [lambda r: '{"relevance": 8}' if "coins" in r.last.rpartition("Piece:")[2] else "?"]}
    )
    soft = await model_labels(scripted, [SAMPLES[2]], silent)
    assert soft[SAMPLES[2].id, "B2-1"] == 0.8
    assert soft[SAMPLES[2].id, "B0"] == 0.0
    assert all(r.messages[1].content.count("Piece: ") == 1 for r in scripted.requests)


def test_evidence_shows_what_was_used_among_others_in_any_order() -> None:
    import random

    orders = set()
    for seed in range(12):
        shown = evidence_for(SAMPLES[2], 2, random.Random(seed), {})
        assert sum(score == 1.0 for _, _, score in shown) == 2
        assert len(shown) == 4
        orders.add(tuple(text for _, text, _ in shown))
    assert len(orders) > 1


# --- what is wrong ---


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sample needs a source"):
        wanted_of([SAMPLES[0]])
    with pytest.raises(InputError, match="no pairs"):
        train_pairs(([], []), SAMPLES, tmp_path, quick(), silent)
    with pytest.raises(InputError, match="holds no encoder"):
        Encoder.pretrained(tmp_path)
    with pytest.raises(ConfigError, match="no device 'tpu'"):
        choose_device("tpu")
    with pytest.raises(PackError, match=r"has no model\.onnx"):
        OnnxPairScorer(tmp_path)
    with pytest.raises(ConfigError, match="holds no trained model"):
        UnifiedModel(tmp_path)


def test_batches_are_shuffled_and_complete() -> None:
    items = list(range(100))

    def lengths(batches: Sequence[Sequence[int]]) -> list[int]:
        return sorted(x for b in batches for x in b)

    one, two = batched(items, 8, 1, lambda x: x), batched(items, 8, 2, lambda x: x)
    assert lengths(one) == lengths(two) == items
    assert one != two
    assert one == batched(items, 8, 1, lambda x: x)
