"""Sources: what each holds, which depend on which, and sources of the user's own.

A source of the user's own is a function. It runs in a thread that nobody waits for longer
than the source's seconds; what it gives is cut to size. This module is the one place
where whatever it raises is caught: one broken source must not cost the others."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import itertools
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nyima.domain.conversation import Origin, Scope
from nyima.domain.evidence import Evidence, Query, Step
from nyima.domain.mechanism import Source
from nyima.domain.ports import RecordFilter
from nyima.domain.records import Interval, Passage, Provenance
from nyima.domain.roles import Retriever
from nyima.domain.storage import Store
from nyima.errors import ConfigError, SourceFailed
from nyima.language.words import content_words
from nyima.read.ranking import coverage

__all__ = ["CallableRetriever", "DependentRetriever", "SourceChoice", "in_order", "steps_for"]

_MOST_TEXT = 2_000
_MOST_PIECES = 50
_GIVEN = 0.15
_NARROWS = 6
_BESIDE = 3
_MOST_WORDS = 12


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """A source as a planner sees it: what it holds, which kinds of records, the most pieces
    that it may bring, and the sources that it depends on."""

    name: str
    k: int
    after: tuple[str, ...] = ()
    about: str = ""
    kinds: tuple[str, ...] = ()


def in_order(after: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The sources in an order in which each comes after those that it depends on, else as
    given. Raises ConfigError for one that does not exist and for a circle."""
    for name, needs in after.items():
        for other in needs:
            if other not in after:
                raise ConfigError(
                    f"the source {name!r} depends on {other!r}, which does not exist: choose from {', '.join(after)}"
                )
    done: list[str] = []
    while len(done) < len(after):
        ready = [n for n in after if n not in done and all(o in done for o in after[n])]
        if not ready:
            raise ConfigError(f"the sources depend on each other in a circle: {' → '.join(_circle(after, done))}")
        done.append(ready[0])
    return tuple(done)


def _circle(after: Mapping[str, Sequence[str]], done: Sequence[str]) -> list[str]:
    path = [next(n for n in after if n not in done)]
    while path.count(path[-1]) < 2:
        path.append(next(o for o in after[path[-1]] if o not in done))
    return path[path.index(path[-1]) :]


def steps_for(chosen: Iterable[str], sources: Sequence[SourceChoice], query: Query) -> list[Step]:
    """The steps of the chosen sources and of those that they depend on, in an
    order in which each comes after what it depends on; unknown sources are left out."""
    known = {source.name: source for source in sources}
    order = in_order({name: source.after for name, source in known.items()})
    wanted = {n for n in chosen if n in known}
    for name in reversed(order):
        if name in wanted:
            wanted |= set(known[name].after)
    return [Step(name, query, known[name].k, known[name].after) for name in order if name in wanted]


@dataclass(frozen=True, slots=True)
class CallableRetriever:
    """Asks a source of the user's own."""

    source: Source

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        """What the function gives, cut to size, best first. Raises SourceFailed."""
        del scope
        given = [e.text for e in step.given]
        try:
            pieces = await _bounded(lambda: _called(self.source, step.query.words(), given), self.source.seconds)
        except TimeoutError:
            raise SourceFailed(f"no answer within {self.source.seconds:g} s") from None
        found = [self._evidence(text, score, step.query) for text, score in pieces if text.strip()]
        return sorted(found, key=lambda e: (-e.score, e.record.id))[: step.k]

    def _evidence(self, text: str, score: float | None, query: Query) -> Evidence:
        text = text[:_MOST_TEXT]
        name = self.source.name
        made = Provenance(writer=name, origin=Origin.TOOL)
        key = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
        record = Passage(
            id=f"x-{name}-{key}", provenance=made, valid=Interval(query.at), recorded=Interval(query.at), document=name,
            place="", body=text,
        )  # fmt: skip
        fit = max(0.5, coverage(query.words(), text)) if score is None else min(1.0, max(0.0, score))
        return Evidence(text, name, fit, record, query.at)


def _called(source: Source, question: str, given: list[str]) -> list[tuple[str, float | None]]:
    assert source.find is not None
    more = {"given": given} if "given" in inspect.signature(source.find).parameters else {}
    answer = source.find(question, **more)
    if inspect.isawaitable(answer):
        answer = asyncio.run(_ended(answer, source.seconds))
    return list(_pieces(answer))


async def _ended(answer: Awaitable[Any], seconds: float) -> Any:
    """The answer, or the end of what would give it: nothing goes on behind the user's back."""
    return await asyncio.wait_for(answer, seconds)


def _pieces(answer: Any) -> Iterable[tuple[str, float | None]]:
    """Texts with their scores. Raises TypeError for anything else."""
    if answer is None:
        return
    if isinstance(answer, Mapping | bytes):
        raise TypeError(f"a {type(answer).__name__} is neither a text nor a list of texts")
    for piece in itertools.islice([answer] if isinstance(answer, str) else answer, _MOST_PIECES):
        if isinstance(piece, str):
            yield piece[:_MOST_TEXT], None
        else:
            text, score = piece
            yield str(text)[:_MOST_TEXT], float(score)


async def _bounded(
    work: Callable[[], list[tuple[str, float | None]]], seconds: float
) -> list[tuple[str, float | None]]:
    """The result of work in a thread of its own, which may go on after the time is up: a
    pool's threads would be waited for when the program ends. Raises SourceFailed or
    TimeoutError."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[list[tuple[str, float | None]]] = loop.create_future()

    def settle(result: list[tuple[str, float | None]], problem: str) -> None:
        if done.done():
            return
        if problem:
            done.set_exception(SourceFailed(problem))
        else:
            done.set_result(result)

    def run() -> None:
        result, problem = list[tuple[str, float | None]](), ""
        try:
            result = work()
        except TimeoutError:
            problem = f"no answer within {seconds:g} s"
        except Exception as raised:
            problem = f"{type(raised).__name__}: {str(raised)[:200]}"
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, problem)

    threading.Thread(target=run, name="nyima-source", daemon=True).start()
    return await asyncio.wait_for(done, seconds)


def _beside(query: Query, given: Evidence) -> Query:
    """The query with the words of one piece: those of several would blur each other."""
    known = set(content_words(query.words()))
    words = [w for w in content_words(given.text) if w not in known]
    return replace(query, keywords=(*query.keywords, *words[:_MOST_WORDS]))


@dataclass(frozen=True, slots=True)
class DependentRetriever:
    """A source that is narrowed by what the sources before it brought (Wang et al. 2024,
    section 4.1.2): to what belongs to those pieces where anything does; else their words
    are searched for beside the question's."""

    inner: Retriever
    store: Store
    kinds: tuple[str, ...]

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        """Up to ``step.k`` pieces, best first."""
        best = max((e.score for e in step.given), default=0.0)
        strong = [e for e in step.given if e.score >= max(_GIVEN, best / 2)]
        given = sorted(strong, key=lambda e: (-e.score, e.record.id))[:_NARROWS]
        if not given:
            return await self.inner.retrieve(scope, step)
        where = RecordFilter(kinds=self.kinds, turns=tuple(e.record.id for e in given), at=step.query.at)
        children = {r.id for r in await self.store.records(scope, where)}
        if children:
            wide = await self.inner.retrieve(scope, replace(step, k=max(step.k, 200), given=()))
            return [e for e in wide if e.record.id in children][: step.k]
        asked = [step.query, *(_beside(step.query, e) for e in given[:_BESIDE])]
        found: dict[str, Evidence] = {}
        for query in asked:
            for piece in await self.inner.retrieve(scope, replace(step, query=query, given=())):
                if piece.record.id not in found or found[piece.record.id].score < piece.score:
                    found[piece.record.id] = piece
        return sorted(found.values(), key=lambda e: (-e.score, e.record.id))[: step.k]
