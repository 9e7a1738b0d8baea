"""Replies that rest on several sources: one sample a turn, from personas with documents."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nyima.domain.conversation import Role
from nyima_lab.measure.cases import Case, Question

__all__ = ["ORDER", "Piece", "Sample", "decision", "parts_of", "samples_of", "some"]

ORDER = ("profile", "persona", "documents")
"""The sources in an order in which each stands after those that it may depend on."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence of a source. ``parent`` is the sentence of another source that it
    belongs to, empty when it stands alone."""

    id: str
    source: str
    text: str
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """A message with the dialogue before it (``(role, text)``), all that the sources hold,
    the ids of what the reply rests on, and the reply. ``group`` is the dialogue."""

    id: str
    group: str
    dialogue: tuple[tuple[str, str], ...]
    message: str
    pieces: tuple[Piece, ...]
    gold: frozenset[str]
    reply: str

    @property
    def plan(self) -> tuple[str, ...]:
        """The sources that the reply needs, in order; empty is NULL."""
        used = {p.source for p in self.pieces if p.id in self.gold}
        return tuple(s for s in ORDER if s in used)

    def lines(self, turns: int | None = None) -> tuple[tuple[str, str], ...]:
        """The dialogue's last ``turns`` utterances and the message; all of them for None."""
        before = self.dialogue if turns is None else self.dialogue[max(0, len(self.dialogue) - turns) :]
        return (*before, ("user", self.message))

    def of(self, source: str, parents: Iterable[str] | None = None) -> tuple[Piece, ...]:
        """The pieces of a source, or those of them that belong to ``parents``."""
        found = tuple(p for p in self.pieces if p.source == source)
        wanted = None if parents is None else set(parents)
        return found if wanted is None else tuple(p for p in found if p.parent in wanted)


def decision(plan: Sequence[str]) -> str:
    """A plan as one word: NULL, or its sources joined by ``+``."""
    return "+".join(plan) or "NULL"


def samples_of(cases: Iterable[Case]) -> list[Sample]:
    """A sample for each question of cases whose gold memory says where each sentence
    stands (``session``: persona, document) and whose it is."""
    return [_sample(case, question) for case in cases for question in case.questions]


def _sample(case: Case, question: Question) -> Sample:
    pieces: list[Piece] = []
    for gold in case.gold_memory:
        if gold.session == "document":
            pieces.append(Piece(gold.turn, "documents", gold.text, gold.turn.rpartition("-")[0]))
        else:
            pieces.append(Piece(gold.turn, "persona" if gold.role is Role.ASSISTANT else "profile", gold.text))
    dialogue = tuple((said.role.value, said.text) for said in question.context)
    known = frozenset(p.id for p in pieces)
    return Sample(
        f"{case.name}/{question.id}", case.name, dialogue, question.text, tuple(pieces), question.gold & known, question.answer
    )  # fmt: skip


def some(samples: Sequence[Sample], most: int | None, seed: int = 0) -> list[Sample]:
    """A seeded random sample of at most ``most``, in the order in which they came."""
    if most is None or most >= len(samples):
        return list(samples)
    chosen = set(random.Random(seed).sample(range(len(samples)), most))  # noqa: S311 - a sample
    return [s for i, s in enumerate(samples) if i in chosen]


def parts_of(samples: Sequence[Sample], held: float = 0.1) -> tuple[list[Sample], list[Sample]]:
    """Samples to learn from and to validate on: the last share of the dialogues."""
    groups = list(dict.fromkeys(s.group for s in samples))
    last = set(groups[len(groups) - max(1, round(held * len(groups))) :])
    return [s for s in samples if s.group not in last], [s for s in samples if s.group in last]
