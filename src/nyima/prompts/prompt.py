"""Prompts as data: a text file each, a typed input, a pydantic output, a version.

A file ``prompts/<job>.md`` has sections ``## name``; ``$word`` in a section is filled
from the input. The version is ``job@hash`` of the file's bytes and goes into the
provenance of every record that the prompt made.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any, Generic, TypeVar

import json_repair
from pydantic import BaseModel, Field, ValidationError

from nyima.domain.ports import Message
from nyima.errors import ConfigError, ModelGarbled

__all__ = [
    "AGREES",
    "CHOOSE",
    "DAY",
    "DECOMPOSE",
    "FOLD",
    "GATE",
    "MEMO",
    "MERGE",
    "NOTE",
    "OVERALL",
    "PART",
    "PLAN",
    "PORTRAIT",
    "REFLECT",
    "RELEVANCE",
    "SUMMARY",
    "AgreesIn",
    "ChooseIn",
    "ChooseOut",
    "DayIn",
    "FoldIn",
    "GateIn",
    "GateOut",
    "MemoOut",
    "MergeIn",
    "MergeOut",
    "NoteIn",
    "NoteOut",
    "OverallIn",
    "PartIn",
    "PlanIn",
    "PortraitIn",
    "Prompt",
    "QuestionIn",
    "ReflectIn",
    "ReflectOut",
    "RelevanceIn",
    "SummaryIn",
    "TextOut",
    "sections",
    "version",
]  # fmt: skip

In = TypeVar("In")
Out = TypeVar("Out", bound=BaseModel)


@cache
def sections(job: str) -> Mapping[str, str]:
    """The sections of a prompt file by name."""
    try:
        text = (resources.files("nyima") / "prompts" / f"{job}.md").read_text("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"there is no prompt {job!r}: the package is incomplete, install it again") from None
    found: dict[str, str] = {"": hashlib.sha256(text.encode()).hexdigest()[:8]}
    for part in text.split("\n## ")[1:]:
        name, _, body = part.partition("\n")
        found[name.strip()] = body.strip()
    return found


def version(job: str) -> str:
    """``job@hash``."""
    return f"{job}@{sections(job)['']}"


def fill(job: str, section: str, values: Mapping[str, object]) -> str:
    """A section with its words filled in."""
    return string.Template(sections(job)[section]).substitute(values)


@dataclass(frozen=True, slots=True)
class Prompt(Generic[In, Out]):
    """A job for a model. ``room`` is the most tokens that it may write."""

    job: str
    output: type[Out]
    room: int

    @property
    def version(self) -> str:
        """``job@hash``."""
        return version(self.job)

    def render(self, given: In) -> tuple[Message, ...]:
        """The messages: what never changes first."""
        values: dict[str, Any] = asdict(given)  # type: ignore[call-overload]
        return (
            Message("system", sections(self.job)["system"]),
            Message("user", fill(self.job, "user", values)),
        )

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the output, flat."""
        schema = self.output.model_json_schema()
        properties = {name: {k: v for k, v in p.items() if k != "title"} for name, p in schema["properties"].items()}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def parse(self, text: str) -> tuple[Out, bool]:
        """The output, and whether the text had to be repaired. Raises ModelGarbled."""
        try:
            return self.output.model_validate_json(text), False
        except ValidationError:
            pass
        try:
            return self.output.model_validate(json_repair.loads(text)), True
        except ValidationError as error:
            raise ModelGarbled(
                f"the model's answer to {self.job!r} cannot be read: {text[:120]!r}: try a larger model"
            ) from error


class TextOut(BaseModel):
    """A text."""

    text: str = Field(min_length=1)


class NoteOut(BaseModel):
    """Why it was said, what to keep, and the facts in it."""

    context: str
    knowledge: str = Field(min_length=1)
    facts: dict[str, str] = Field(default_factory=dict)


class GateOut(BaseModel):
    """Whether to remember, and the facts."""

    remember: bool
    facts: dict[str, str] = Field(default_factory=dict)


class ReflectOut(BaseModel):
    """Whether the memories are enough, which matter, and words to search for."""

    enough: bool
    useful: list[int] = Field(default_factory=list)
    keywords: list[str] = Field(default_factory=list)


class MemoOut(BaseModel):
    """Memos, each as ``topic (first-last): text``."""

    memos: list[str] = Field(min_length=1)


class ChooseOut(BaseModel):
    """The numbers of what is needed."""

    useful: list[int] = Field(default_factory=list)


class DecomposeOut(BaseModel):
    """Sub-questions."""

    questions: list[str] = Field(default_factory=list)


class MergeOut(BaseModel):
    """``replace``, ``add`` or ``ignore``."""

    action: str = Field(pattern="^(replace|add|ignore)$")


class PlanOut(BaseModel):
    """The names of sources, in order."""

    sources: list[str] = Field(default_factory=list)


class RelevanceOut(BaseModel):
    """Relevance on a scale of 0 to 10."""

    relevance: int = Field(ge=0, le=10)


class AgreesOut(BaseModel):
    """``yes``, ``no`` or ``unclear``."""

    agrees: str = Field(pattern="^(yes|no|unclear)$")


@dataclass(frozen=True, slots=True)
class NoteIn:
    """A message with the dialogue around it."""

    dialogue: str
    message: str


@dataclass(frozen=True, slots=True)
class GateIn:
    """A message with the assistant's words before it."""

    before: str
    message: str


@dataclass(frozen=True, slots=True)
class SummaryIn:
    """A session's dialogue."""

    dialogue: str


@dataclass(frozen=True, slots=True)
class FoldIn:
    """The memory so far, a session's dialogue, and the most sentences."""

    memory: str
    dialogue: str
    most: int


@dataclass(frozen=True, slots=True)
class ReflectIn:
    """A message with numbered memories."""

    memories: str
    message: str


@dataclass(frozen=True, slots=True)
class DayIn:
    """A day with its dialogue."""

    day: str
    dialogue: str


@dataclass(frozen=True, slots=True)
class OverallIn:
    """The summary of all days, and that of another day."""

    overall: str
    day: str
    summary: str


@dataclass(frozen=True, slots=True)
class PortraitIn:
    """What is thought of the user, and a dialogue."""

    portrait: str
    dialogue: str


@dataclass(frozen=True, slots=True)
class ChooseIn:
    """A message with numbered memos."""

    memos: str
    message: str


@dataclass(frozen=True, slots=True)
class QuestionIn:
    """A question."""

    question: str


@dataclass(frozen=True, slots=True)
class PartIn:
    """A sub-question with candidates."""

    notes: str
    question: str


@dataclass(frozen=True, slots=True)
class MergeIn:
    """A fact that differs from the profile."""

    key: str
    old: str
    new: str
    message: str


@dataclass(frozen=True, slots=True)
class PlanIn:
    """A message with the dialogue before it, and the sources with what they hold."""

    sources: str
    dialogue: str
    message: str


@dataclass(frozen=True, slots=True)
class RelevanceIn:
    """A message with the dialogue before it, and one piece."""

    dialogue: str
    message: str
    piece: str


@dataclass(frozen=True, slots=True)
class AgreesIn:
    """A piece and a reply."""

    piece: str
    reply: str


NOTE: Prompt[NoteIn, NoteOut] = Prompt("note", NoteOut, 180)
GATE: Prompt[GateIn, GateOut] = Prompt("gate", GateOut, 140)
SUMMARY: Prompt[SummaryIn, TextOut] = Prompt("summary", TextOut, 260)
FOLD: Prompt[FoldIn, TextOut] = Prompt("fold", TextOut, 420)
REFLECT: Prompt[ReflectIn, ReflectOut] = Prompt("reflect", ReflectOut, 90)
MERGE: Prompt[MergeIn, MergeOut] = Prompt("merge", MergeOut, 20)
DAY: Prompt[DayIn, TextOut] = Prompt("day", TextOut, 200)
OVERALL: Prompt[OverallIn, TextOut] = Prompt("overall", TextOut, 300)
PORTRAIT: Prompt[PortraitIn, TextOut] = Prompt("portrait", TextOut, 220)
MEMO: Prompt[SummaryIn, MemoOut] = Prompt("memo", MemoOut, 320)
CHOOSE: Prompt[ChooseIn, ChooseOut] = Prompt("choose", ChooseOut, 30)
DECOMPOSE: Prompt[QuestionIn, DecomposeOut] = Prompt("decompose", DecomposeOut, 90)
PART: Prompt[PartIn, TextOut] = Prompt("answer-part", TextOut, 50)
PLAN: Prompt[PlanIn, PlanOut] = Prompt("plan", PlanOut, 40)
RELEVANCE: Prompt[RelevanceIn, RelevanceOut] = Prompt("relevance", RelevanceOut, 12)
AGREES: Prompt[AgreesIn, AgreesOut] = Prompt("agrees", AgreesOut, 12)
