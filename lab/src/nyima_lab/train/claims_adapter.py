"""Training a LoRA adapter with which a small chat model reads claims from a message.

The messages of a life share one prompt prefix, its claims: they are laid out once, each message after
them sees the prefix and itself alone, so that a step costs half of what separate prompts would cost.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nyima.domain.evidence import Noted
from nyima.errors import InputError, PackError
from nyima.prompts.trained_reading import claims_answer, claims_question
from nyima_lab.readers.lives import AnnotatedLife, LifeMessage
from nyima_lab.train.loop import TrainingReport, torch_here

__all__ = ["AdapterPlan", "Sheet", "lay_out", "train_adapter", "write_adapter"]

_IGNORED = -100
_SHOWN = 8
_FEWER = (0, 3, 6, 8)
_WARM_STEPS = 10
_OVER_COUNTS = 3.0
"""How much more a token counts that says what is over: there are few of them."""
_MODULES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""The linear layers of a block, with their names in a GGUF file."""


@dataclass(frozen=True, slots=True)
class AdapterPlan:
    """How to train: the adapter's rank, passes over the lives, lives a step, and the highest rate."""

    rank: int = 8
    epochs: float = 1.0
    batch: int = 4
    rate: float = 3e-4
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Sheet:
    """One life as the model sees it, all of the same length: token ids, their positions, the number of the
    message that each belongs to (0: the prefix), the ids to learn, and how much each counts."""

    ids: list[int]
    positions: list[int]
    parts: list[int]
    targets: list[int]
    weights: list[float]


def lay_out(life: AnnotatedLife, tokenizer: Any, draw: random.Random) -> Sheet:
    """Return a life with its claims and messages in a random order. Half of the time fewer than eight
    claims are shown: what is not shown cannot be numbered."""
    claims = list(life.claims.items())
    draw.shuffle(claims)
    shown = claims[: draw.choice(_FEWER) if draw.random() < 0.5 else _SHOWN]
    messages = list(life.messages)
    draw.shuffle(messages)
    laid = [_texts(message, shown) for message in messages]
    if not laid:
        raise InputError(f"the life {life.id} has no message: leave it out")
    prefix = _tokens(tokenizer, laid[0][0])
    size = len(prefix)
    sheet = Sheet(list(prefix), list(range(size)), [0] * size, [_IGNORED] * size, [0.0] * size)
    for number, (_, asked, answer) in enumerate(laid, 1):
        question, stated, over = (_tokens(tokenizer, text) for text in (asked, *_parted(answer)))
        learned = stated + over
        sheet.ids.extend((*question, *learned))
        sheet.positions.extend(range(size, size + len(question) + len(learned)))
        sheet.parts.extend([number] * (len(question) + len(learned)))
        sheet.targets.extend((*[_IGNORED] * len(question), *learned))
        sheet.weights.extend((*[0.0] * len(question), *[1.0] * len(stated), *[_OVER_COUNTS] * len(over)))
    return sheet


def _texts(message: LifeMessage, shown: Sequence[tuple[str, Noted]]) -> tuple[str, str, str]:
    """The part that all messages share, the message's own part, and the answer, in Qwen's chat form."""
    known_texts = [f"{c.who} {c.what}: {c.value}" for _, c in shown]
    system, asked = claims_question(known_texts, message.before, message.text)
    known, _, own = asked.content.partition("Before:")
    over = [number for number, (id, _) in enumerate(shown, 1) if id in message.over]
    return (
        f"<|im_start|>system\n{system.content}<|im_end|>\n<|im_start|>user\n{known}",
        f"Before:{own}<|im_end|>\n<|im_start|>assistant\n",
        f"{claims_answer(over, message.said)}<|im_end|>",
    )


def _parted(answer: str) -> tuple[str, str]:
    """An answer up to what is over, and the rest."""
    said, _, over = answer.rpartition(":")
    return f"{said}:", over


def _tokens(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def train_adapter(
    lives: Sequence[AnnotatedLife], base: Path, plan: AdapterPlan, note: TrainingReport
) -> Mapping[str, Any]:
    """Train on a GGUF file or a folder of the hub's format; return the adapter's tensors by name.
    On two cores with bfloat16 the 1.5B model learns from 50 tokens a second."""
    torch = torch_here()
    torch.manual_seed(plan.seed)
    model, tokenizer = _adapted(torch, base, plan)
    core, head = model.base_model.model.model, model.base_model.model.lm_head
    wanted = [p for p in model.parameters() if p.requires_grad]
    for parameter in wanted:
        parameter.data = parameter.data.float()
    optimizer = torch.optim.AdamW(wanted, lr=plan.rate, weight_decay=0.0)
    draw = random.Random(plan.seed)  # noqa: S311 - shuffling
    steps, waiting = math.ceil(len(lives) * plan.epochs / plan.batch), list[AnnotatedLife]()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = plan.rate * _pace(step, steps)
        learned = 0.0
        for _ in range(plan.batch):
            if not waiting:
                waiting = list(lives)
                draw.shuffle(waiting)
            loss, count = _loss(torch, core, head, lay_out(waiting.pop(), tokenizer, draw))
            loss.backward()
            learned += count
        for parameter in wanted:
            parameter.grad /= learned
        torch.nn.utils.clip_grad_norm_(wanted, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        note("training", step + 1, steps)
    from peft import get_peft_model_state_dict

    found: Mapping[str, Any] = get_peft_model_state_dict(model)
    return found


def _pace(step: int, steps: int) -> float:
    """The share of the highest rate: it rises over the first steps, then falls as a cosine."""
    return min(1.0, (step + 1) / _WARM_STEPS) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / steps)))


def _adapted(torch: Any, base: Path, plan: AdapterPlan) -> tuple[Any, Any]:
    try:
        import peft
        import transformers
    except ImportError as error:
        raise PackError("an adapter needs peft and transformers: run `pip install 'nyima-lab[train]'`") from error
    folder, more = (base, dict[str, Any]())
    if base.is_file():
        folder = base.parent
        more = {"gguf_file": base.name, "quantization_config": transformers.GgufConfig(dequantize=True)}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, **{k: v for k, v in more.items() if k == "gguf_file"}
        )
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, dtype=torch.bfloat16, attn_implementation="sdpa", **more
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise InputError(f"{base} holds no causal model: {error}: give a GGUF file, or a folder of the hub") from error
    names = [name.partition(".")[2] for name in _MODULES]
    config = peft.LoraConfig(r=plan.rank, lora_alpha=2 * plan.rank, lora_dropout=0.0, target_modules=names)
    return peft.get_peft_model(model, config), tokenizer


def _loss(torch: Any, core: Any, head: Any, sheet: Sheet) -> tuple[Any, float]:
    """The summed loss of the answers of a sheet, and what their tokens count together."""
    parts = torch.tensor(sheet.parts)
    sees = torch.tril(torch.ones(len(parts), len(parts), dtype=torch.bool))
    sees &= (parts[None, :] == 0) | (parts[None, :] == parts[:, None])
    mask = torch.zeros(len(parts), len(parts), dtype=torch.bfloat16)
    mask[~sees] = torch.finfo(torch.bfloat16).min
    targets = torch.tensor(sheet.targets[1:])
    answers = targets != _IGNORED
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = core(
            input_ids=torch.tensor([sheet.ids]),
            position_ids=torch.tensor([sheet.positions]),
            attention_mask=mask[None, None],
            use_cache=False,
        ).last_hidden_state[0]
        logits = head(hidden[:-1][answers])
        losses = torch.nn.functional.cross_entropy(logits.float(), targets[answers], reduction="none")
    counts = torch.tensor(sheet.weights[1:])[answers]
    return (losses * counts).sum(), float(counts.sum())


def write_adapter(tensors: Mapping[str, Any], path: Path, plan: AdapterPlan, architecture: str = "qwen2") -> None:
    """Write an adapter as a GGUF file, as llama.cpp reads it."""
    try:
        import gguf
    except ImportError as error:
        raise PackError("a GGUF file needs gguf: run `pip install 'nyima-lab[train]'`") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(2 * plan.rank))
    for name, tensor in tensors.items():
        writer.add_tensor(_gguf_name(name), tensor.detach().float().numpy().astype("float16"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_name(name: str) -> str:
    """The name that llama.cpp gives a tensor: ``…layers.3.self_attn.q_proj.lora_A.weight`` is
    ``blk.3.attn_q.weight.lora_a``."""
    block, _, rest = name.partition("layers.")[2].partition(".")
    module, _, side = rest.removesuffix(".weight").rpartition(".")
    return f"blk.{block}.{_MODULES[module]}.weight.{side.lower()}"
