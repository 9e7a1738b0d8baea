"""Training an adapter that reads claims: how a life is laid out, and the file that llama.cpp reads."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nyima.domain.evidence import Noted
from nyima.errors import InputError
from nyima_lab.readers.lives import AnnotatedLife, LifeMessage
from nyima_lab.train import claims_adapter
from nyima_lab.train.claims_adapter import AdapterPlan, lay_out, train_adapter, write_adapter

torch = pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")
transformers = pytest.importorskip("transformers")
pytest.importorskip("peft")

pytestmark = pytest.mark.filterwarnings("ignore")  # peft and transformers disagree on their own names

MOVED = LifeMessage("I moved to Porto", "", frozenset({"c1"}), (Noted("user", "lives in", "Porto"),))
ASKED = LifeMessage("What is the time", "Hello", frozenset(), ())
LIFE = AnnotatedLife("L1", "en", {"c1": Noted("user", "lives in", "Leeds")}, (MOVED, ASKED))


class InOrder(random.Random):
    """Shuffles nothing, and shows all claims."""

    def shuffle(self, x: Any) -> None:
        del x

    def random(self) -> float:
        return 1.0


class Characters:
    """A tokenizer with a token for each character."""

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[int]]:
        assert not add_special_tokens
        return {"input_ids": [min(ord(c), 127) for c in text]}


def spelled(ids: list[int]) -> str:
    return "".join(map(chr, ids))


def test_the_claims_stand_once_and_each_message_after_them() -> None:
    sheet = lay_out(LIFE, Characters(), InOrder())
    text = spelled(sheet.ids)
    assert text.count("1. user lives in: Leeds") == text.count("<|im_start|>system") == 1
    assert text.count("<|im_start|>assistant\n") == 2
    learned = [chr(t) for t in sheet.targets if t >= 0]
    assert "".join(learned) == "user | lives in | Porto | holds\nover: 1<|im_end|>over: none<|im_end|>"
    first = [sheet.positions[i] for i, part in enumerate(sheet.parts) if part == 1]
    second = [sheet.positions[i] for i, part in enumerate(sheet.parts) if part == 2]
    assert first[0] == second[0] == sheet.parts.count(0)
    counts = {w for w, t in zip(sheet.weights, sheet.targets, strict=True) if t >= 0}
    assert counts == {1.0, 3.0}


def test_a_claim_that_is_not_shown_is_not_numbered() -> None:
    class ShowsNone(InOrder):
        def random(self) -> float:
            return 0.0

        def choice(self, seq: Any) -> Any:
            return seq[0]

    text = spelled(lay_out(LIFE, Characters(), ShowsNone()).ids)
    assert "Known:\n-\n" in text
    assert text.count("over: none") == 2


def test_a_life_without_messages_is_refused() -> None:
    with pytest.raises(InputError, match="L1 has no message"):
        lay_out(replace(LIFE, messages=()), Characters(), InOrder())


def tiny() -> Any:
    torch.manual_seed(1)
    config = transformers.Qwen2Config(
        vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, tie_word_embeddings=True,
    )  # fmt: skip
    return transformers.Qwen2ForCausalLM(config)


def test_a_message_sees_the_claims_and_itself_alone() -> None:
    """The loss of messages laid out together is the sum of their losses apart."""
    model = tiny()

    def loss(*messages: LifeMessage) -> float:
        sheet = lay_out(replace(LIFE, messages=messages), Characters(), InOrder())
        with torch.no_grad():
            return float(claims_adapter._loss(torch, model.model, model.lm_head, sheet)[0])

    assert loss(MOVED, ASKED) == pytest.approx(loss(MOVED) + loss(ASKED), rel=0.02)


def test_an_adapter_is_learned_and_written_as_llama_cpp_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import peft

    plan, seen = AdapterPlan(rank=4, epochs=10, rate=5e-2), list[tuple[int, int]]()
    names = [name.partition(".")[2] for name in claims_adapter._MODULES]
    model = peft.get_peft_model(tiny(), peft.LoraConfig(r=4, lora_alpha=8, target_modules=names))
    monkeypatch.setattr(claims_adapter, "_adapted", lambda *given: (model, Characters()))
    losses: list[float] = []
    measured = claims_adapter._loss

    def measure(*given: Any) -> tuple[Any, float]:
        loss, counts = measured(*given)
        losses.append(float(loss.detach()) / counts)
        return loss, counts

    monkeypatch.setattr(claims_adapter, "_loss", measure)
    tensors = train_adapter([LIFE] * 4, Path("none"), plan, lambda what, done, total: seen.append((done, total)))
    assert seen[-1] == (10, 10)
    assert losses[-1] < losses[0] - 0.1
    write_adapter(tensors, tmp_path / "a" / "claims.gguf", plan)
    read = gguf.GGUFReader(tmp_path / "a" / "claims.gguf")
    shapes = {t.name: tuple(map(int, t.shape)) for t in read.tensors}
    assert shapes["blk.1.attn_k.weight.lora_a"] == (32, 4)
    assert shapes["blk.1.attn_k.weight.lora_b"] == (4, 16)
    assert len(shapes) == 2 * 7 * 2
    assert {"general.type", "adapter.type", "adapter.lora.alpha"} <= set(read.fields)


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no causal model"):
        train_adapter([LIFE], tmp_path, AdapterPlan(), lambda what, done, total: None)
