"""How good an answer from some memories is: by a frozen model, whose answers are cached, or
by the memories themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nyima.domain.evidence import Evidence
from nyima.domain.ports import ChatModel, Completion, Message
from nyima.language.words import content_words, cut_tokens, tokens
from nyima.mechanisms.graph.learning import Example
from nyima.prompts.prompt import fill, sections
from nyima_lab.measure.metrics import bleu, rouge

__all__ = ["AnswerReward", "QuoteReward"]


@dataclass(slots=True)
class AnswerReward:
    """ROUGE-1 F or sentence BLEU of a frozen model's answer; equal questions and memories
    are asked once (``asked`` and ``cached`` count)."""

    model: ChatModel
    metric: str = "rouge"
    room: int = 600
    asked: int = 0
    cached: int = 0
    answers: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict[tuple[str, tuple[str, ...]], str])

    async def __call__(self, example: Example, chosen: Sequence[Evidence]) -> float:
        """The metric of the answer from these memories."""
        key = (example.question, tuple(sorted(p.record.id for p in chosen)))
        if key in self.answers:
            self.cached += 1
        else:
            self.asked += 1
            self.answers[key] = await self._answer(example, chosen)
        said = self.answers[key]
        return bleu(4, said, example.answer) if self.metric == "bleu" else rouge("rouge1", said, example.answer)

    async def _answer(self, example: Example, chosen: Sequence[Evidence]) -> str:
        notes = cut_tokens("\n".join(f"- {p.text}" for p in chosen) or "none", self.room)
        asked = fill("answer-short", "user", {"notes": notes, "question": example.question}, "nyima_lab")
        messages = (Message("system", sections("answer-short", "nyima_lab")["system"]), Message("user", asked))
        done = ""
        async for piece in self.model.stream(messages, max_tokens=40, lane="answer-short"):
            if isinstance(piece, Completion):
                done = piece.text
        return done.strip()


@dataclass(frozen=True, slots=True)
class QuoteReward:
    """Without a model: the share of the answer's words that the memories hold, less a small
    price for each token that they take; the memories are the answer."""

    price: float = 0.0005

    async def __call__(self, example: Example, chosen: Sequence[Evidence]) -> float:
        """The share of the answer's content words, less the price."""
        if not chosen:
            return 0.0
        text = " ".join(p.text for p in chosen)
        wanted, there = set(content_words(example.answer)), set(content_words(text))
        return len(wanted & there) / max(1, len(wanted)) - self.price * tokens(text)
