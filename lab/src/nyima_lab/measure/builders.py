"""The conditional paper's three test sets (Yuan et al. 2023, section 4), with any model.

A builder takes source cases and yields, for each, a case with questions, or the reason
why there is none. The model's answers are kept (``Calls``), so a build that was broken
off goes on where it stopped.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from nyima.domain.conversation import Role
from nyima.domain.ports import ChatModel
from nyima.errors import ModelGarbled
from nyima.language.words import content_words, cut_tokens, sentences
from nyima.memory import Said
from nyima_lab.measure.asking import (
    ANSWER,
    ANSWERABLE,
    BACKGROUND,
    CONTINUE,
    QUESTION,
    SAID,
    SIMILAR,
    SUGGESTION,
    AnswerableIn,
    AnswerIn,
    DialogueIn,
    FactIn,
    SaidIn,
    SuggestionIn,
    TaskIn,
    ask,
)
from nyima_lab.measure.cases import Case, Question

__all__ = ["BUILDERS", "Built", "build", "merge_pools"]

_SAID = 0.6
_FIRST = re.compile(r"\b(?:i|i'm|i've|my|me|mine|we|our|us)\b", re.IGNORECASE)
_SECOND = re.compile(r"\b(?:you|your|yours)\b", re.IGNORECASE)
_TURNS = (
    ("are you", "am I"), ("were you", "was I"), ("your", "my"), ("yours", "mine"),
    ("you are", "I am"), ("you", "I"),
)  # fmt: skip
_LATER = timedelta(days=1)
_START = datetime(2026, 3, 2, 9, tzinfo=UTC)
_ROOM = 700
_LONGEST_TASK = 600


@dataclass(frozen=True, slots=True)
class Built:
    """A case with its questions; ``left_out`` says why others are not there."""

    case: Case
    left_out: tuple[str, ...] = ()


async def build(kind: str, cases: Sequence[Case], model: ChatModel) -> AsyncIterator[Built]:
    """Build a test set; an item on which the model's answer cannot be read is left out
    with that reason, one on which the model fails raises."""
    for case in cases:
        try:
            yield await BUILDERS[kind](case, model)
        except ModelGarbled as error:
            yield Built(replace(case, questions=()), (f"{case.name}: {error}",))


def _share(fact: str, text: str) -> float:
    wanted = set(content_words(fact))
    return len(wanted & set(content_words(text))) / len(wanted) if wanted else 0.0


def _as_user(question: str) -> str:
    """The question in the user's mouth: small models ask "your" where "my" is meant."""
    if _FIRST.search(question) or not _SECOND.search(question):
        return question
    for pattern, word in _TURNS:
        question = re.sub(rf"\b{pattern}\b", word, question, flags=re.IGNORECASE)
    return question[:1].upper() + question[1:]


def _ends(case: Case) -> datetime:
    times = [t.at for _, turns in case.sessions for t in turns if t.at]
    return max(times, default=_START) + _LATER


async def build_knowledge(case: Case, model: ChatModel) -> Built:
    """Learning new knowledge (section 4.2, appendix A.3): a question and an answer for each
    sentence of the user's persona. A sentence that nobody said is left out: it is said
    when a gold sentence of the dialogue (MSC's ``persona_text``) has its words, or when
    the model finds it in what the user said."""
    facts = [g.text for g in case.gold_memory if g.role is Role.USER and g.session == "persona"]
    told = [g.text for g in case.gold_memory if g.role is Role.USER and g.session != "persona"]
    if not facts:
        facts = [s for text in told for s in sentences(text)]
    spoken = [t for _, turns in case.sessions for t in turns if t.role is Role.USER]
    questions: list[Question] = []
    left: list[str] = []
    for number, fact in enumerate(facts):
        near = sorted(spoken, key=lambda t: -_share(fact, t.text))[:4]
        said = max((_share(fact, text) for text in told), default=0.0) >= _SAID
        try:
            if not said:
                heard = "\n".join(cut_tokens(t.text, 60) for t in near)
                said = bool(near) and (await ask(model, SAID, SaidIn(heard, fact))).said
            if not said:
                left.append(f"{case.name}: not said: {fact}")
                continue
            made = await ask(model, QUESTION, FactIn(fact))
        except ModelGarbled as error:
            left.append(f"{case.name}: {error}")
            continue
        asked = _as_user(made.question)
        if "?" not in asked or _share(fact, asked) > 0.99 or _share(made.answer, asked) > 0.99:
            left.append(f"{case.name}: gives itself away: {asked}")
            continue
        gold = frozenset(t.id for t in near[:1] if _share(fact, t.text) >= _SAID)
        questions.append(Question(asked, gold, "knowledge", _ends(case), None, made.answer, (), f"{number}"))
    return Built(replace(case, questions=tuple(questions)), tuple(left))


async def build_continue(case: Case, model: ChatModel) -> Built:
    """Continuing a previous dialogue (section 4.1, appendix A.2): one further turn, which
    must not be answerable without the dialogue."""
    if not case.turns:
        return Built(replace(case, questions=()), (f"{case.name}: there is no dialogue",))
    id, turns = case.sessions[-1]
    lines = "\n".join(f"{t.role.value.capitalize()}: {cut_tokens(t.text, 80)}" for t in turns)
    made = await ask(model, CONTINUE, DialogueIn(cut_tokens(lines, _ROOM)))
    alone = (await ask(model, ANSWERABLE, AnswerableIn(made.question))).answerable
    source = replace(case, sessions=((id, turns),), gold_memory=())
    if alone:
        return Built(replace(source, questions=()), (f"{case.name}: stands alone: {made.question}",))
    question = Question(made.question, frozenset(), "continue", _ends(source), None, made.answer, (), "0")
    return Built(replace(source, questions=(question,)))


async def build_feedback(case: Case, model: ChatModel) -> Built:
    """Learning from feedback (section 4.3, appendix A.4): a similar task, first answers, one
    suggestion fit for both, improved answers, and a background dialogue."""
    task = case.questions[0].text if case.questions else ""
    if not task or len(task) > _LONGEST_TASK:
        return Built(replace(case, questions=()), (f"{case.name}: no task of a fit length",))
    similar = (await ask(model, SIMILAR, TaskIn(task))).text
    first = (await ask(model, ANSWER, AnswerIn(task, "none"))).text
    second = (await ask(model, ANSWER, AnswerIn(similar, "none"))).text
    wish = (await ask(model, SUGGESTION, SuggestionIn(task, first, similar, second))).text
    better = (await ask(model, ANSWER, AnswerIn(task, wish))).text
    reference = (await ask(model, ANSWER, AnswerIn(similar, wish))).text
    chat = await ask(model, BACKGROUND, TaskIn(task))
    said = [
        (Role.USER, chat.user_1), (Role.ASSISTANT, chat.assistant_1), (Role.USER, chat.user_2),
        (Role.ASSISTANT, chat.assistant_2), (Role.USER, chat.user_3), (Role.ASSISTANT, chat.assistant_3),
        (Role.USER, task), (Role.ASSISTANT, first), (Role.USER, wish), (Role.ASSISTANT, better),
    ]  # fmt: skip
    turns = tuple(
        Said(text, role, _START + i * timedelta(minutes=1), id=f"0:{i}") for i, (role, text) in enumerate(said)
    )
    source = Case(case.name, (("0", turns),), (), case.language)
    if " ".join(similar.split()).casefold() == " ".join(task.split()).casefold():
        return Built(source, (f"{case.name}: the similar task is the same",))
    if " ".join(second.split()) == " ".join(reference.split()):
        return Built(source, (f"{case.name}: the suggestion changed nothing",))
    if _share(reference, wish) > 0.9:
        return Built(source, (f"{case.name}: the answer repeats the suggestion: {wish}",))
    question = Question(similar, frozenset({"0:8"}), "feedback", _ends(source), None, reference, (), "0")
    return Built(replace(source, questions=(question,)))


Builder = Callable[[Case, ChatModel], Awaitable[Built]]
BUILDERS: Mapping[str, Builder] = {
    "continue": build_continue,
    "knowledge": build_knowledge,
    "feedback": build_feedback,
}


def merge_pools(cases: Sequence[Case], size: int) -> list[Case]:
    """Every ``size`` cases as one memory, to simulate long use (section 5.1): all their
    sessions, all their questions."""
    pools: list[Case] = []
    for start in range(0, len(cases), size):
        part = cases[start : start + size]
        sessions = [
            (f"{c.name}/{id}", tuple(replace(t, id=f"{c.name}/{t.id}") for t in turns))
            for c in part
            for id, turns in c.sessions
        ]
        questions = [
            replace(
                q,
                id=f"{c.name}/{q.id}",
                gold=frozenset(f"{c.name}/{g}" for g in q.gold),
                before=None if q.before is None else f"{c.name}/{q.before}",
            )
            for c in part
            for q in c.questions
        ]
        gold = tuple(
            replace(g, session=f"{c.name}/{g.session}", turn=f"{c.name}/{g.turn}") for c in part for g in c.gold_memory
        )
        name = part[0].name if len(part) == 1 else f"{part[0].name}..{part[-1].name}"
        pools.append(Case(name, tuple(sessions), tuple(questions), part[0].language, gold))
    return pools
