"""The prompts of builders and judges, and how they are asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import BaseModel, Field

from nyima.domain.ports import ChatModel, Completion, Message
from nyima.errors import ModelGarbled
from nyima.prompts.prompt import Prompt, TextOut

__all__ = [
    "ANNOTATE",
    "ANSWER",
    "ANSWERABLE",
    "ASSOCIATIONS",
    "BACKGROUND",
    "BEST",
    "CONTINUE",
    "CORRECT",
    "PAIR",
    "PAIRS",
    "QUESTION",
    "RUBRIC",
    "SAID",
    "SCORE",
    "SIMILAR",
    "SINGLE",
    "SUGGESTION",
    "SYNTHETIC",
    "AnnotateIn",
    "AnswerIn",
    "AnswerableIn",
    "BestIn",
    "DialogueIn",
    "FactIn",
    "MemoriesIn",
    "PairIn",
    "PairsIn",
    "QuestionOut",
    "SaidIn",
    "ScoreIn",
    "SingleIn",
    "SuggestionIn",
    "SyntheticIn",
    "TaskIn",
    "ask",
]  # fmt: skip

In = TypeVar("In")
Out = TypeVar("Out", bound=BaseModel)


async def ask(model: ChatModel, prompt: Prompt[In, Out], given: In) -> Out:
    """The parsed answer; asked once again when it cannot be read. Raises ModelGarbled."""
    messages = list(prompt.render(given))
    for attempt in range(2):
        done = Completion("")
        async for piece in model.stream(messages, max_tokens=prompt.room, schema=prompt.schema(), lane=prompt.job):
            if isinstance(piece, Completion):
                done = piece
        try:
            return prompt.parse(done.text)[0]
        except ModelGarbled:
            if attempt:
                raise
            messages += [Message("assistant", done.text), Message("user", "Answer with the JSON object only.")]
    raise AssertionError("not reached")


class QuestionOut(BaseModel):
    """A message and its answer."""

    question: str = Field(min_length=3)
    answer: str = Field(min_length=2)


class ContinueOut(BaseModel):
    """What it is about, the message, its answer."""

    detail: str
    question: str = Field(min_length=3)
    answer: str = Field(min_length=2)


class SaidOut(BaseModel):
    """Whether it was said."""

    said: bool


class AnswerableOut(BaseModel):
    """Whether it stands alone."""

    answerable: bool


class BackgroundOut(BaseModel):
    """Six turns of small talk."""

    user_1: str = Field(min_length=1)
    assistant_1: str = Field(min_length=1)
    user_2: str = Field(min_length=1)
    assistant_2: str = Field(min_length=1)
    user_3: str = Field(min_length=1)
    assistant_3: str = Field(min_length=1)


class ScoreOut(BaseModel):
    """0, 1 or 2."""

    score: Literal[0, 1, 2]


class BestOut(BaseModel):
    """A letter."""

    best: Literal["A", "B", "C", "D"]


class CorrectOut(BaseModel):
    """The verdict."""

    verdict: Literal["correct", "partly", "wrong"]


class RubricOut(BaseModel):
    """The verdict."""

    verdict: Literal["follows", "partly", "ignores"]


class AnnotateOut(BaseModel):
    """An annotator's two answers."""

    related: bool
    fitting: bool


class SingleOut(BaseModel):
    """The reason, then the rating."""

    reason: str
    score: int = Field(ge=1, le=100)


class PairOut(BaseModel):
    """Four ways."""

    verdict: Literal["first", "second", "both", "neither"]


@dataclass(frozen=True, slots=True)
class FactIn:
    """A sentence about the user."""

    fact: str


@dataclass(frozen=True, slots=True)
class SaidIn:
    """What was said, and a sentence."""

    dialogue: str
    fact: str


@dataclass(frozen=True, slots=True)
class AnnotateIn:
    """An item of a test set."""

    dialogue: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class DialogueIn:
    """A dialogue."""

    dialogue: str


@dataclass(frozen=True, slots=True)
class AnswerableIn:
    """A message."""

    question: str


@dataclass(frozen=True, slots=True)
class TaskIn:
    """A task."""

    task: str


@dataclass(frozen=True, slots=True)
class AnswerIn:
    """A task with a suggestion for its answer."""

    task: str
    suggestion: str


@dataclass(frozen=True, slots=True)
class SuggestionIn:
    """Two tasks with answers."""

    first: str
    first_answer: str
    second: str
    second_answer: str


@dataclass(frozen=True, slots=True)
class ScoreIn:
    """A question, its reference, an answer."""

    question: str
    reference: str
    answer: str


@dataclass(frozen=True, slots=True)
class BestIn:
    """A question, its reference, candidates with letters."""

    question: str
    reference: str
    candidates: str


@dataclass(frozen=True, slots=True)
class SingleIn:
    """A reply in its dialogue, an aspect to rate."""

    aspect: str
    known: str
    dialogue: str
    answer: str


@dataclass(frozen=True, slots=True)
class PairIn:
    """Two replies in their dialogue."""

    known: str
    dialogue: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class MemoriesIn:
    """Numbered memories."""

    memories: str


@dataclass(frozen=True, slots=True)
class PairsIn:
    """Memories that belong together, and why."""

    memories: str
    why: str


@dataclass(frozen=True, slots=True)
class SyntheticIn:
    """What was written so far, how many more, and after which day."""

    before: str
    count: int
    day: str


class GroupsOut(BaseModel):
    """Groups as ``1|3: why``."""

    groups: list[str] = Field(default_factory=list)


class MemoriesOut(BaseModel):
    """Memories as ``day | place | what was said``."""

    memories: list[str] = Field(default_factory=list)


ASSOCIATIONS: Prompt[MemoriesIn, GroupsOut] = Prompt("build-associations", GroupsOut, 220, package="nyima_lab")
PAIRS: Prompt[PairsIn, QuestionOut] = Prompt("build-pairs", QuestionOut, 110, package="nyima_lab")
SYNTHETIC: Prompt[SyntheticIn, MemoriesOut] = Prompt("build-synthetic", MemoriesOut, 420, package="nyima_lab")
QUESTION: Prompt[FactIn, QuestionOut] = Prompt("build-question", QuestionOut, 100, package="nyima_lab")
SAID: Prompt[SaidIn, SaidOut] = Prompt("build-said", SaidOut, 12, package="nyima_lab")
CONTINUE: Prompt[DialogueIn, ContinueOut] = Prompt("build-continue", ContinueOut, 260, package="nyima_lab")
ANSWERABLE: Prompt[AnswerableIn, AnswerableOut] = Prompt("build-answerable", AnswerableOut, 12, package="nyima_lab")
SIMILAR: Prompt[TaskIn, TextOut] = Prompt("build-similar", TextOut, 160, package="nyima_lab")
ANSWER: Prompt[AnswerIn, TextOut] = Prompt("build-answer", TextOut, 300, package="nyima_lab")
SUGGESTION: Prompt[SuggestionIn, TextOut] = Prompt("build-suggestion", TextOut, 80, package="nyima_lab")
BACKGROUND: Prompt[TaskIn, BackgroundOut] = Prompt("build-background", BackgroundOut, 320, package="nyima_lab")
SCORE: Prompt[ScoreIn, ScoreOut] = Prompt("judge-score", ScoreOut, 12, package="nyima_lab")
BEST: Prompt[BestIn, BestOut] = Prompt("judge-best", BestOut, 12, package="nyima_lab")
CORRECT: Prompt[ScoreIn, CorrectOut] = Prompt("judge-correct", CorrectOut, 16, package="nyima_lab")
SINGLE: Prompt[SingleIn, SingleOut] = Prompt("judge-single", SingleOut, 90, package="nyima_lab")
PAIR: Prompt[PairIn, PairOut] = Prompt("judge-pair", PairOut, 16, package="nyima_lab")
RUBRIC: Prompt[ScoreIn, RubricOut] = Prompt("judge-rubric", RubricOut, 16, package="nyima_lab")
ANNOTATE: Prompt[AnnotateIn, AnnotateOut] = Prompt("build-annotate", AnnotateOut, 20, package="nyima_lab")
