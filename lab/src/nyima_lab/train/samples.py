"""Examples for the policy: questions with the memories that their answers require.

Readers make them from RealMem (its gold memories) and LongMemEval (its evidence turns)
without generating anything; builders make them with a model from a memory of one's own,
or invent the memory first (Wang et al. 2024, tables 10 to 12)."""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nyima.app.registry import recipe_named
from nyima.domain.evidence import Evidence, Query, Step
from nyima.domain.ports import ChatModel, Embedder
from nyima.domain.records import Claim
from nyima.errors import InputError, ModelGarbled
from nyima.language.words import fold
from nyima.mechanisms.by_hand import Statement
from nyima.mechanisms.graph.learning import Example
from nyima.memory import Memory
from nyima.testing import FixedClock
from nyima_lab.measure.asking import (
    ASSOCIATIONS,
    PAIRS,
    SAID,
    SYNTHETIC,
    MemoriesIn,
    PairsIn,
    SaidIn,
    SyntheticIn,
    ask,
)
from nyima_lab.measure.cases import load_json, located

__all__ = [
    "TrainingQuestion", "associations", "data_quality", "dense_ranking", "examples_of", "neighbourhood_of", "own_examples", "questions_of", "synthesise",
]  # fmt: skip

_TOPIC = re.compile(r"^\s*【(.+?)】\s*")
_NAMES = re.compile(r"(?<=[\w,;:'’)] )(?!I\b|User\b)[A-Z][\w&'-]+(?: (?:of |de |the )?[A-Z][\w&'-]+)*")
_LONGEST = 200
_MOST_SAID = 400


@dataclass(frozen=True, slots=True)
class TrainingQuestion:
    """An example, and all memories ranked by cosine, for the comparison with top K."""

    example: Example
    dense: tuple[Evidence, ...]


async def neighbourhood_of(
    memory: Memory, question: str, k: int, *, as_of: datetime | None = None, recipe: str = "graph"
) -> tuple[Evidence, ...]:
    """What the walk of a question may visit, the activated memories first."""
    query = Query(question, as_of or memory.clock.now(), as_of=as_of)
    recaller = memory.parts.recaller(recipe_named(recipe))
    return tuple(await recaller.retrievers["graph"].retrieve(memory.scope, Step("graph", query, k)))


async def dense_ranking(
    memory: Memory, question: str, *, as_of: datetime | None = None, k: int = 30
) -> tuple[Evidence, ...]:
    """The memories by cosine alone."""
    query = Query(question, as_of or memory.clock.now(), as_of=as_of)
    recaller = memory.parts.recaller(recipe_named("graph-top"), k=k)
    return tuple(await recaller.retrievers["graph"].retrieve(memory.scope, Step("graph", query, k)))


def _linked(content: str) -> tuple[str, str]:
    """The head and the tail of a memory that is given as a text: its topic, else the first
    name in it, else the user; and its first other name, else its beginning."""
    topic = _TOPIC.match(content)
    body = _TOPIC.sub("", content)
    names = [n for n in dict.fromkeys(_NAMES.findall(body)) if len(n) > 2]
    head = topic[1] if topic else "user"
    tail = next((n for n in names if fold(n) != fold(head)), " ".join(body.split()[:8]))
    return head, tail


SampleReport = Callable[[int, int], None]
Questions = AsyncGenerator[tuple[Memory, datetime | None, Example], None]
"""A memory, the moment of a question where it is not now, and the question without pieces."""


def _silent(done: int, total: int) -> None:
    del done, total


def questions_of(kind: str, path: Path, embedder: Embedder, note: SampleReport = _silent) -> Questions:
    """The questions of RealMem (``realmem``) or LongMemEval (``longmemeval``), each with the
    memory that it is asked of, which is open until the next question."""
    return {"realmem": _realmem, "longmemeval": _longmemeval}[kind](path, embedder, note)


async def examples_of(
    kind: str, path: Path, embedder: Embedder, ks: Sequence[int], note: SampleReport = _silent
) -> AsyncGenerator[tuple[int, TrainingQuestion], None]:
    """For each question and each K one example, with the neighbourhood that K memories activate."""
    async with aclosing(questions_of(kind, path, embedder, note)) as found:
        async for memory, at, asked in found:
            dense = await dense_ranking(memory, asked.question, as_of=at)
            for k in ks:
                pieces = await neighbourhood_of(memory, asked.question, k, as_of=at)
                yield k, TrainingQuestion(replace(asked, pieces=pieces), dense)


async def _realmem(path: Path, embedder: Embedder, note: SampleReport) -> Questions:
    """The graph of each person's gold memories as it grows, and each query with the memories
    that its reply used."""
    for file in _files(path):
        with located(str(file)):
            dialogues = load_json(file)["dialogues"]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            start = datetime(2025, 1, 1, tzinfo=UTC)
            clock = FixedClock(start)
            async with Memory.open(
                Path(folder) / "m.db", user="eval", recipe="graph", model="none", embedder=embedder, clock=clock
            ) as memory:
                ids = await _tell_realmem(memory, dialogues, clock)
                await memory.ingest.index(memory.scope)
                for n, dialogue in enumerate(dialogues):
                    for asked in _realmem_queries(dialogue, ids, file.stem):
                        yield memory, start + timedelta(hours=n), asked
                    note(n + 1, len(dialogues))


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*_dialogues_*.json")) if path.is_dir() else [path]


async def _tell_realmem(memory: Memory, dialogues: Sequence[Any], clock: FixedClock) -> dict[tuple[str, str], str]:
    ids: dict[tuple[str, str], str] = {}
    start = clock.at
    for n, dialogue in enumerate(dialogues):
        clock.at = start + timedelta(hours=n, minutes=30)
        for row in dialogue.get("extracted_memory") or ():
            content = str(row["content"]).strip()
            head, tail = _linked(content)
            if fold(head) == fold(tail) or (dialogue["session_uuid"], content) in ids:
                continue
            clock.forward(seconds=1)
            said = Statement(head, "has note", content, since=clock.at, turn=f"t-{n}", object=tail[:_LONGEST])
            made = await memory.state(said)
            ids[dialogue["session_uuid"], content] = made.id
    return ids


def _realmem_queries(dialogue: Any, ids: dict[tuple[str, str], str], group: str) -> list[Example]:
    found: list[Example] = []
    turns = dialogue["dialogue_turns"]
    for i, turn in enumerate(turns[:-1]):
        if turn.get("is_query"):
            used = turns[i + 1].get("memory_used") or ()
            keys = ((m["session_uuid"], str(m["content"]).strip()) for m in used)
            required = frozenset(ids[key] for key in keys if key in ids)
            if required:
                found.append(Example(turn["content"], (), required, str(turns[i + 1]["content"] or ""), group))
    return found


async def _longmemeval(path: Path, embedder: Embedder, note: SampleReport) -> Questions:
    """The oracle file: each question's evidence sessions, a memory for each of the user's turns, and the
    memories of its evidence turns."""
    items = load_json(path)
    for number, item in enumerate(items, 1):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            clock = FixedClock(datetime(2023, 1, 1, tzinfo=UTC))
            async with Memory.open(
                Path(folder) / "m.db", user="eval", recipe="graph", model="none", embedder=embedder, clock=clock
            ) as memory:
                required = await _tell_longmemeval(memory, item, clock)
                if required:
                    clock.forward(days=1)
                    await memory.ingest.index(memory.scope)
                    yield (
                        memory,
                        None,
                        Example(item["question"], (), required, str(item["answer"]), item["question_id"]),
                    )
        note(number, len(items))


async def _tell_longmemeval(memory: Memory, item: Any, clock: FixedClock) -> frozenset[str]:
    gold: set[str] = set()
    for s, turns in enumerate(item["haystack_sessions"]):
        date = re.sub(r" \(\w+\)", "", item["haystack_dates"][s])
        clock.at = max(clock.at, datetime.strptime(date, "%Y/%m/%d %H:%M").replace(tzinfo=UTC))
        for n, turn in enumerate(turns):
            content = str(turn["content"]).strip()
            if turn["role"] != "user" or not content:
                continue
            clock.forward(seconds=1)
            head, tail = _linked(content)
            said = Statement(
                head, "said", content[:_MOST_SAID], since=clock.at, turn=f"t-{s}-{n}", object=tail[:_LONGEST]
            )
            made = await memory.state(said)
            gold |= {made.id} if turn.get("has_answer") else set()
    return frozenset(gold)


# --- with a model ---


async def associations(memories: Sequence[Claim], model: ChatModel) -> list[tuple[tuple[int, ...], str]]:
    """Groups of memories that belong together, by number from 0, each with why."""
    listed = "\n".join(f"{i}. {m.text}" for i, m in enumerate(memories, 1))
    try:
        out = await ask(model, ASSOCIATIONS, MemoriesIn(listed))
    except ModelGarbled:
        return []
    groups: list[tuple[tuple[int, ...], str]] = []
    for line in out.groups:
        numbers, _, why = line.partition(":")
        found = tuple(dict.fromkeys(int(n) - 1 for n in re.findall(r"\d+", numbers) if 1 <= int(n) <= len(memories)))
        if len(found) > 1:
            groups.append((found[:4], why.strip() or "they belong together"))
    return groups


async def own_examples(
    memory: Memory,
    model: ChatModel,
    k: int = 3,
    most: int = 40,
    note: Callable[[int, int], None] = lambda done, total: None,
) -> list[Example]:
    """Examples from a memory of one's own: a question for each association, checked to be
    no copy of the memories that it needs."""
    relations = [r for r in await memory.records(kinds=("claim",)) if isinstance(r, Claim) and not r.stale]
    if len(relations) < 4:
        raise InputError(f"{len(relations)} memories are too few to ask about: talk some more, or give --realmem")
    found: list[Example] = []
    for start in range(0, len(relations), 12):
        part = relations[start : start + 12]
        for numbers, why in await associations(part, model):
            chosen = [part[n] for n in numbers]
            try:
                out = await ask(model, PAIRS, PairsIn("\n".join(f"- {m.text}" for m in chosen), why))
            except ModelGarbled:
                continue
            if fold(out.answer) in fold(out.question) or len(out.question) > 300:
                continue
            pieces = await neighbourhood_of(memory, out.question, k)
            found.append(Example(out.question, pieces, frozenset(m.id for m in chosen), out.answer, "own"))
            note(len(found), most)
            if len(found) >= most:
                return found
    return found


async def data_quality(memory: Memory, examples: Sequence[Example], model: ChatModel) -> dict[str, float]:
    """Self-verification (Wang et al. 2024, table 7): the share of extracted memories that
    their turn says, and of pairs whose answer the required memories give."""
    relations = [r for r in await memory.records(kinds=("claim",)) if isinstance(r, Claim) and r.provenance.turns]
    turns = {t.id: t.text for t in await memory.turns()}
    said: list[bool] = []
    for relation in relations:
        given = SaidIn(" ".join(turns.get(t, "") for t in relation.provenance.turns), relation.text)
        said.append((await ask(model, SAID, given)).said)
    texts = {r.id: r.text for r in relations}
    answered: list[bool] = []
    for example in examples:
        known = " ".join(texts.get(i, "") for i in sorted(example.required))
        answered.append((await ask(model, SAID, SaidIn(known, example.answer))).said)
    return {
        "memories": sum(said) / len(said) if said else 0.0, "pairs": sum(answered) / len(answered) if answered else 0.0,
        "checked": float(len(said) + len(answered)),
    }  # fmt: skip


async def synthesise(
    model: ChatModel, count: int, *, start: datetime, seed_note: str = ""
) -> list[tuple[datetime, str, str]]:
    """Memories of a made-up person as (time, place, what was said), in the order of time.
    What is out of order, or puts them into two places on one day, is left out."""
    made: list[tuple[datetime, str, str]] = []
    day = start
    for _ in range(count):  # a model that gives nothing new ends it
        if len(made) >= count:
            break
        before = "\n".join(f"{d:%Y-%m-%d} | {p} | {t}" for d, p, t in made[-12:]) or seed_note or "nothing"
        try:
            out = await ask(model, SYNTHETIC, SyntheticIn(before, min(8, count - len(made)), f"{day:%Y-%m-%d}"))
        except ModelGarbled:
            break
        size = len(made)
        for line in out.memories:
            row = _checked(line, made, day)
            if row is not None and len(made) < count:
                made.append(row)
                day = row[0]
        if len(made) == size:
            break
    return made


def _checked(line: str, made: Sequence[tuple[datetime, str, str]], day: datetime) -> tuple[datetime, str, str] | None:
    parts = [p.strip() for p in line.split("|", 2)]
    if len(parts) != 3 or not parts[1] or len(parts[2].split()) < 3:
        return None
    try:
        at = datetime.fromisoformat(parts[0]).replace(tzinfo=UTC, hour=12)
    except ValueError:
        return None
    elsewhere = any(d.date() == at.date() and fold(p) != fold(parts[1]) for d, p, _ in made)
    again = any(fold(t) == fold(parts[2]) for _, _, t in made)
    return None if at.date() < day.date() or elsewhere or again else (at, parts[1], parts[2])
