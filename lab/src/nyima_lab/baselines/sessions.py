"""The baselines MemoryBank (Zhong et al. 2023) and MemoChat (Lu et al. 2023), as Wang et
al. 2023 compare them (section 5.3): writers, a retriever that forgets, one of memos."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from pydantic import BaseModel, Field

from nyima.domain.changes import Add, Change, Delta, Revise
from nyima.domain.conversation import Role, Scope, Session, Turn, dialogue_lines, least_trusted
from nyima.domain.evidence import Evidence, Step
from nyima.domain.mechanism import Mechanism, Source, When, Writer
from nyima.domain.ports import Job, RecordFilter
from nyima.domain.records import Interval, MemoryRecord, Provenance, Summary
from nyima.domain.roles import Retriever, Written
from nyima.domain.storage import Store
from nyima.errors import ModelGarbled
from nyima.language.words import cut_tokens
from nyima.mechanisms.history import search
from nyima.mechanisms.summaries import SummaryIn, bounded
from nyima.prompts.prompt import Prompt, TextOut
from nyima.write.desk import Desk, own_turn, windows

__all__ = ["MECHANISMS", "FadingRetriever", "MemoChatWriter", "MemoRetriever", "MemoryBankWriter", "retention"]


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
    """The portrait of the user so far, and a dialogue."""

    portrait: str
    dialogue: str


class MemoOut(BaseModel):
    """Memos, each as ``topic (first-last): text``."""

    memos: list[str] = Field(min_length=1)


DAY: Prompt[DayIn, TextOut] = Prompt("day", TextOut, 200, package="nyima_lab")


OVERALL: Prompt[OverallIn, TextOut] = Prompt("overall", TextOut, 300, package="nyima_lab")


PORTRAIT: Prompt[PortraitIn, TextOut] = Prompt("portrait", TextOut, 220, package="nyima_lab")


MEMO: Prompt[SummaryIn, MemoOut] = Prompt("memo", MemoOut, 320, package="nyima_lab")


In = TypeVar("In")

_DAYS = 5.0
_OVERALL_SENTENCES = 8
_PORTRAIT_SENTENCES = 6
_MEMO = re.compile(
    r"^\s*(?P<topic>[^():]{1,80}?)\s*\((?P<first>\d+)\s*[-–]\s*(?P<last>\d+)\)\s*[:：]\s*(?P<text>.+)$", re.DOTALL
)
_STANDING = ("overall", "portrait")


def retention(days: float, strength: int) -> float:
    """R = exp(-t/S), Ebbinghaus' curve: what is left of a memory ``days`` after it was made
    or last recalled, with t = days / 5 and S = ``strength``, which begins at 1 and grows by
    1 at each recall, so that a memory that is used fades more slowly.

    MemoryBank's published code computes exp(-t / 5 * S), where the strength multiplies the
    exponent, so that stronger memories fade faster; that is not repeated here.
    """
    return math.exp(-max(0.0, days) / _DAYS / max(1, strength))


def _draw(id: str) -> float:
    """A number in 0..1 that is always the same for an id: forgetting is repeatable."""
    return int.from_bytes(hashlib.sha256(id.encode()).digest()[:6]) / 2**48


@dataclass(frozen=True, slots=True)
class FadingRetriever:
    """Another retriever's pieces without those that were forgotten: a piece goes when its
    retention falls below a number drawn once for it. Recalls are read from the journal."""

    inner: Retriever
    store: Store

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        """Up to ``step.k`` pieces that are still there, best first."""
        pieces = await self.inner.retrieve(scope, replace(step, k=step.k * 5))
        used: Counter[str] = Counter()
        last: dict[str, datetime] = {}
        for event in await self.store.events(scope, "recall"):
            for kept in event.body.get("kept", ()):
                used[kept["id"]] += 1
                last[kept["id"]] = max(event.at, last.get(kept["id"], event.at))
        there: list[Evidence] = []
        for piece in pieces:
            id = piece.record.id
            days = (step.query.at - last.get(id, piece.at)).total_seconds() / 86_400
            left = retention(days, 1 + used[id])
            standing = isinstance(piece.record, Summary) and piece.record.level in _STANDING
            if not standing and left >= _draw(id):
                there.append(replace(piece, scores={**piece.scores, "retention": round(left, 4)}))
        return there[: step.k]


@dataclass(frozen=True, slots=True)
class MemoRetriever:
    """All memos, newest first, each with the lines that it covers."""

    store: Store
    lines: int = 120

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        """Up to ``step.k`` memos; which of them matter, the model chooses."""
        where = RecordFilter(kinds=("summary",), at=step.query.at, as_of=step.query.as_of)
        memos = [r for r in await self.store.records(scope, where) if isinstance(r, Summary) and r.level == "topic"]
        out: list[Evidence] = []
        for memo in list(reversed(memos))[: step.k]:
            turns = {t.id: t for t in await self.store.turns(scope, ids=memo.provenance.turns)}
            first, last = (int(n) for n in memo.covers[1].split("-"))
            told = [turns[id] for id in memo.provenance.turns[first - 1 : last] if id in turns]
            said = cut_tokens(" / ".join(dialogue_lines(told)), self.lines)
            out.append(Evidence(f"{memo.body} Dialogue: {said}", step.source, 0.5, memo, memo.valid.since))
        return out


def _summary(id: str, level: str, body: str, turns: list[Turn], covers: tuple[str, ...], desk: Desk) -> Summary:
    return Summary(
        id=id,
        provenance=Provenance(
            turns=tuple(t.id for t in turns),
            writer="memochat" if level == "topic" else "memorybank",
            origin=least_trusted(t.origin for t in turns),
        ),
        valid=Interval(turns[-1].at),
        recorded=Interval(desk.clock.now()),
        level=level,
        covers=covers,
        body=body,
    )


@dataclass(frozen=True, slots=True)
class MemoryBankWriter:
    """After each session: the dated summary of its day, the summary of all days, and the
    portrait of the user."""

    desk: Desk

    async def write(self, scope: Scope, job: Job) -> Written:
        """The three records; those that an earlier session made are revised. What the
        model cannot do is left as it was."""
        session, turns = await self.desk.session(scope, job.subject)
        caller = self.desk.caller
        if caller is None or not any(t.role is Role.USER and t.text.strip() for t in turns):
            return Written()
        revision = await self.desk.store.revision(scope)
        old = await self._old(scope)
        day = turns[0].at.strftime("%Y-%m-%d")
        same = [own_turn(t) for t in await self.desk.store.turns(scope) if t.at.strftime("%Y-%m-%d") == day]
        dialogue = windows(same, self.desk.room)
        told = [await self._ask(scope, DAY, DayIn(day, window)) for window in dialogue]
        changes: list[Change] = []
        text = " ".join(t for t in told if t)
        if text:
            changes.append(self._changed(old, (session, job), f"day-{day}", f"{day}: {text}", same))
            days = [r for n, r in old.items() if n.startswith("day-")]
            before = old["overall"].body if "overall" in old else "\n".join(r.body for r in days)
            overall = await self._ask(
                scope, OVERALL, OverallIn(cut_tokens(before or "none", self.desk.room), day, text)
            )
            if overall:
                # It stands on all that it was made from, so that an erase of any of it takes it.
                ids = dict.fromkeys(id for r in days for id in r.provenance.turns)
                every = [*await self.desk.store.turns(scope, ids=tuple(ids)), *turns] if ids else turns
                body = bounded(overall, _OVERALL_SENTENCES, [text])
                changes.append(self._changed(old, (session, job), "overall", body, every))
        portrait = old["portrait"].body if "portrait" in old else ""
        heard = turns
        if not portrait:  # after an erase it begins anew
            heard = [own_turn(t) for t in await self.desk.store.turns(scope)]
        for window in windows(heard, self.desk.room):
            portrait = await self._ask(scope, PORTRAIT, PortraitIn(portrait or "none", window)) or portrait
        if portrait:
            changes.append(
                self._changed(old, (session, job), "portrait", bounded(portrait, _PORTRAIT_SENTENCES, []), heard)
            )
        return Written(Delta(tuple(changes), by="memorybank"), expect=revision)

    async def _old(self, scope: Scope) -> dict[str, Summary]:
        found = await self.desk.store.records(scope, RecordFilter(kinds=("summary",)))
        kept = [r for r in found if isinstance(r, Summary) and r.level in {"day", *_STANDING}]
        return {f"day-{r.body[:10]}" if r.level == "day" else r.level: r for r in kept}

    def _changed(
        self, old: dict[str, Summary], about: tuple[Session, Job], name: str, body: str, turns: list[Turn]
    ) -> Change:
        session, job = about
        # A job that makes it again must not meet the id of a version that is retired.
        again = job.id.partition("-again-")[2]
        last = old.get(name)
        level = "day" if name.startswith("day-") else name
        covers = tuple(dict.fromkeys((*(last.covers if last else ()), session.id)))
        record = _summary(f"s-{name}-{session.id}{again}", level, body, turns, covers, self.desk)
        if last is None or last.id == record.id:
            return Add(record)
        # An erase takes what stands on a turn: the successor stands on all the turns before, too.
        every = tuple(dict.fromkeys((*last.provenance.turns, *record.provenance.turns)))
        made = replace(record.provenance, turns=every, records=(last.id,))
        return Revise(last.id, replace(record, provenance=made, supersedes=last.id), "session ended")

    async def _ask(self, scope: Scope, prompt: Prompt[In, TextOut], given: In) -> str:
        caller = self.desk.caller
        assert caller is not None
        try:
            out, _ = await caller.ask(scope, prompt, given)
        except ModelGarbled:
            await caller.fallback(scope, prompt.version)
            return ""
        return " ".join(out.text.split())


@dataclass(frozen=True, slots=True)
class MemoChatWriter:
    """After each session: a memo on each of its topics, with the lines that it covers."""

    desk: Desk

    async def write(self, scope: Scope, job: Job) -> Written:
        """The memos. A memo without readable lines covers its whole window."""
        session, turns = await self.desk.session(scope, job.subject)
        caller = self.desk.caller
        spoken = [t for t in turns if t.text.strip()]
        if caller is None or not any(t.role is Role.USER for t in spoken):
            return Written()
        changes: list[Change] = []
        for part in _parts(spoken, self.desk.room):
            lines = "\n".join(f"{i}. {cut_tokens(line, 80)}" for i, line in enumerate(dialogue_lines(part), 1))
            try:
                out, _ = await caller.ask(scope, MEMO, SummaryIn(lines))
                memos = out.memos
            except ModelGarbled:
                await caller.fallback(scope, MEMO.version)
                memos = [" ".join(t.text for t in part if t.role is Role.USER)[:300]]
            for memo in memos:
                body, lines_of = _read_memo(memo, len(part))
                if body:
                    # The model wrote it from the whole part: an erase of any of it takes the memo.
                    id = f"s-topic-{session.id}-{len(changes)}"
                    changes.append(Add(_summary(id, "topic", body, part, (session.id, lines_of), self.desk)))
        return Written(Delta(tuple(changes), by="memochat"))


def _parts(turns: list[Turn], room: int) -> list[list[Turn]]:
    """The turns in runs that fit into the room."""
    parts: list[list[Turn]] = [[]]
    for turn in turns:
        if parts[-1] and len(windows([*parts[-1], turn], room)) > 1:
            parts.append([])
        parts[-1].append(turn)
    return parts


def _read_memo(memo: str, count: int) -> tuple[str, str]:
    """A memo's text, and the lines that it is on as ``first-last``."""
    match = _MEMO.match(memo)
    if match is None:
        return " ".join(memo.split()), f"1-{count}"
    first, last = max(1, int(match["first"])), min(count, int(match["last"]))
    lines = f"{first}-{last}" if first <= last else f"1-{count}"
    return f"{match['topic'].strip()}: {' '.join(match['text'].split())}", lines


def _covered(record: MemoryRecord) -> tuple[str, ...]:
    """The sessions that a text covers, the last first: it is made again of one that is left."""
    return record.covers[::-1] if isinstance(record, Summary) and record.provenance.turns else ()


MECHANISMS = (
    Mechanism(
        "memorybank",
        "dated summaries, a portrait, and forgetting (Zhong et al. 2023)",
        writers=(
            Writer(
                "memorybank",
                When.SESSION_END,
                lambda desk, scope, job: MemoryBankWriter(desk).write(scope, job),
                again=_covered,
            ),
        ),
        retrievers={
            "fading": lambda kit, spec: FadingRetriever(search(kit, replace(spec, how="vector")), kit.store),
        },
    ),
    Mechanism(
        "memochat",
        "memos by topic (Lu et al. 2023)",
        writers=(
            Writer(
                "memochat",
                When.SESSION_END,
                lambda desk, scope, job: MemoChatWriter(desk).write(scope, job),
                again=_covered,
            ),
        ),
        sources=(Source("memos", "memos of earlier conversations by topic", kinds=("summary",)),),
        retrievers={"all": lambda kit, spec: MemoRetriever(kit.store)},
    ),
)
