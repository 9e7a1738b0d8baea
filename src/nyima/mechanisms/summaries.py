"""Writers ``summary`` (one a session; Yuan et al. 2023, section 3.1) and ``recursive``
(one running memory, folded after each session; Wang et al. 2023, section 4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nyima.domain.changes import Add, Delta, Retire, Revise
from nyima.domain.conversation import Role, Scope, Session, Turn, dialogue_lines, least_trusted
from nyima.domain.mechanism import Mechanism, Source, When, Writer
from nyima.domain.ports import Job, RecordFilter
from nyima.domain.records import ME, Claim, Interval, MemoryRecord, Provenance, Slot, Status, Summary
from nyima.domain.roles import Written
from nyima.errors import ModelGarbled
from nyima.language.words import fold, sentences, stems, supports
from nyima.prompts.prompt import Prompt, TextOut
from nyima.read.labels import mentions
from nyima.write.desk import Desk, notes_of, windows

__all__ = ["MECHANISMS", "MendWriter", "RecursiveWriter", "SummaryWriter", "bounded", "running", "standing"]


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


SUMMARY: Prompt[SummaryIn, TextOut] = Prompt("summary", TextOut, 260)


FOLD: Prompt[FoldIn, TextOut] = Prompt("fold", TextOut, 420)


_SUPPORT = 0.5


def bounded(text: str, most: int, recent: list[str]) -> str:
    """At most ``most`` sentences. When there are more, those go first that the latest
    session does not speak of, from the end of the text on."""
    kept = _units(text)
    between = "\n" if any(unit.endswith("”") for unit in kept) else " "
    for old_only in (True, False):
        for i in range(len(kept) - 1, -1, -1):
            if len(kept) <= most:
                return between.join(kept)
            if not old_only or not supports(kept[i], recent, _SUPPORT):
                del kept[i]
    return between.join(kept)


def _units(text: str) -> list[str]:
    """The sentences of a text, each once; a line that quotes what was said is one."""
    units: list[str] = []
    for line in text.splitlines():
        units += [line.strip()] if line.rstrip().endswith("”") else sentences(line)
    return list(dict.fromkeys(units))


def _supported_only(text: str, sources: list[str]) -> str:
    return " ".join(s for s in sentences(text) if supports(s, sources, _SUPPORT))


def _user_sentences(turns: list[Turn]) -> str:
    """The rule where no model answers: what the user stated, in their words."""
    said = [f"The user said: “{' '.join(t.text.split())}”" for t in turns if t.role is Role.USER and "?" not in t.text]
    return "\n".join(line for line in said if len(line.split()) > 6)


async def running(desk: Desk, scope: Scope) -> Summary | None:
    """The current running memory."""
    found = await desk.store.records(scope, RecordFilter(kinds=("summary",)))
    chain = [r for r in found if isinstance(r, Summary) and r.level == "running"]
    return chain[-1] if chain else None


async def standing(desk: Desk, scope: Scope) -> list[Summary]:
    """The texts that stand in every prompt: the running memory; of MemoryBank the overall
    summary and the portrait. The newest of each."""
    found = await desk.store.records(scope, RecordFilter(kinds=("summary",)))
    newest = {r.level: r for r in found if isinstance(r, Summary) and not r.stale}
    return [newest[level] for level in ("running", "overall", "portrait") if level in newest]


@dataclass(frozen=True, slots=True)
class MendWriter:
    """Derives a text that stands for now again after something that it states has changed:
    the old value gives way to the new one; without one, the sentence goes."""

    desk: Desk

    async def write(self, scope: Scope, job: Job) -> Written:
        """The text without what no longer holds."""
        store = self.desk.store
        found = await store.records(scope, RecordFilter(ids=(job.subject,)))
        if not found or not isinstance(found[0], Summary) or not found[0].stale:
            return Written()
        text = found[0]
        body, now = await _holding(self.desk, scope, text.body), self.desk.clock.now()
        made = replace(text.provenance, records=(*text.provenance.records, text.id), prompt="", model="")
        id = f"{text.id.partition('~')[0]}~m{now.strftime('%Y%m%d%H%M%S%f')}"
        new = replace(text, id=id, body=body, stale=False, recorded=Interval(now), provenance=made, supersedes=text.id)
        change = Revise(text.id, new, "derived again") if body else Retire(text.id, now, "nothing of it holds")
        return Written(Delta((change,), by="recursive"))


async def _holding(desk: Desk, scope: Scope, text: str) -> str:
    """A text with the values that hold now in the place of those that no longer do."""
    every = await desk.store.records(scope, RecordFilter(kinds=("claim",), retired=True))
    claims = [c for c in every if isinstance(c, Claim) and c.status is Status.HOLDS]
    held: dict[Slot, list[str]] = {}
    for claim in claims:
        if claim.recorded.until is None and not claim.stale:
            held.setdefault(claim.slot, []).append(claim.value)
    over = [c for c in claims if c.recorded.until is not None and c.value not in held.get(c.slot, ())]
    others = {c.name for c in claims if c.subject != ME}
    return " ".join(kept for sentence in sentences(text) if (kept := _mended(sentence, over, held, others)))


def _states(sentence: str, claim: Claim, others: Iterable[str]) -> bool:
    """Whether a sentence states a claim: it has most words of the value, and names the subject; of the
    user, who may be the subject of any sentence, it must have a word of the attribute and name nobody else."""
    if not mentions(sentence, claim.value):
        return False
    about = stems(sentence)
    if claim.subject != ME:
        return stems(claim.name) <= about
    return bool(about & stems(claim.attribute)) and not any(stems(name) <= about for name in others)


def _mended(sentence: str, over: Sequence[Claim], held: Mapping[Slot, Sequence[str]], others: Iterable[str]) -> str:
    """The sentence with the one value that holds in the place of each that is over; empty where that
    cannot be put in, because there is none, or more than one."""
    for claim in over:
        new = held.get(claim.slot, ())
        if any(mentions(sentence, value) for value in new) or not _states(sentence, claim, others):
            continue
        at = fold(sentence).find(fold(claim.value))
        if len(new) != 1 or at < 0 or len(fold(sentence)) != len(sentence):
            return ""
        sentence = sentence[:at] + new[0] + sentence[at + len(claim.value) :]
    return sentence


def _summary(session: Session, turns: list[Turn], level: str, body: str, made: tuple[str, str], desk: Desk) -> Summary:
    return Summary(
        id=f"s-{level}-{session.id}",
        provenance=Provenance(
            turns=tuple(t.id for t in turns),
            writer="recursive" if level == "running" else "summary",
            prompt=made[0],
            model=made[1],
            origin=least_trusted(t.origin for t in turns),
        ),
        valid=Interval(session.ended or turns[-1].at),
        recorded=Interval(desk.clock.now()),
        level=level,
        covers=(session.id,),
        body=body,
    )


@dataclass(frozen=True, slots=True)
class SummaryWriter:
    """One summary a session."""

    desk: Desk

    async def write(self, scope: Scope, job: Job) -> Written:
        """The session's summary; long sessions are summarised in windows."""
        session, turns = await self.desk.session(scope, job.subject)
        if not any(t.role is Role.USER for t in turns):
            return Written()
        caller = self.desk.caller
        parts: list[str] = []
        made = ("", "")
        for window in windows(turns, self.desk.room):
            try:
                if caller is None:
                    raise ModelGarbled("no model")
                out, asked = await caller.ask(scope, SUMMARY, SummaryIn(window))
                parts.append(_supported_only(out.text, [window]))
                made = (asked.prompt, asked.model)
            except ModelGarbled:
                if caller is not None:
                    await caller.fallback(scope, SUMMARY.version)
        body = " ".join(p for p in parts if p) or _user_sentences(turns) or "\n".join(dialogue_lines(turns[:4]))
        record = _summary(session, turns, "session", body, made, self.desk)
        return Written(Delta((Add(record),), by="summary"))


@dataclass(frozen=True, slots=True)
class RecursiveWriter:
    """M_i = LLM(S_i, M_(i-1)), at most ``most`` sentences (20 in the paper), enforced."""

    desk: Desk
    most: int = 20

    async def write(self, scope: Scope, job: Job) -> Written:
        """The next running memory, which revises the last; each M_i stays in history."""
        session, turns = await self.desk.session(scope, job.subject)
        if not any(t.role is Role.USER and t.text.strip() for t in turns):
            return Written()
        revision = await self.desk.store.revision(scope)
        last = await running(self.desk, scope)
        if last is not None and session.id in last.covers:
            return Written()
        said = await self._that_matters(scope, turns)
        body = last.body if last else ""
        if last is not None and last.stale:
            body = await _holding(self.desk, scope, body)
        made = ("", "")
        for window in windows(said, self.desk.room):
            body, made = await self._fold(scope, body, window, turns, made)
        if not body or not said:
            return Written()
        record = _summary(session, turns, "running", body, made, self.desk)
        if last is None:
            return Written(Delta((Add(record),), by="recursive"), expect=revision)
        successor = self._after(record, last)
        return Written(Delta((Revise(last.id, successor, "session ended"),), by="recursive"), expect=revision)

    async def _that_matters(self, scope: Scope, turns: list[Turn]) -> list[Turn]:
        """The turns that were found worth keeping, each with what the assistant said
        before it; all turns where nothing decides that."""
        notes = await notes_of(self.desk.store, scope, turns)
        if not notes:
            return turns
        chosen: list[Turn] = []
        for before, turn in zip([None, *turns], turns, strict=False):
            event = notes.get(turn.id)
            if event is None or not event.body["remember"]:
                continue
            if before is not None and before.role is Role.ASSISTANT and "?" in before.text:
                chosen.append(before)
            chosen.append(turn)
        return chosen

    def _after(self, record: Summary, last: Summary) -> Summary:
        made = record.provenance
        origins = (made.origin, last.provenance.origin)
        return Summary(
            id=record.id,
            provenance=Provenance(made.turns, (last.id,), made.writer, made.prompt, made.model, least_trusted(origins)),
            valid=record.valid,
            recorded=record.recorded,
            supersedes=last.id,
            level="running",
            covers=(*last.covers, *record.covers),
            body=record.body,
        )

    async def _fold(
        self, scope: Scope, memory: str, window: str, turns: list[Turn], made: tuple[str, str]
    ) -> tuple[str, tuple[str, str]]:
        caller = self.desk.caller
        if caller is not None:
            try:
                out, asked = await caller.ask(scope, FOLD, FoldIn(memory or "none", window, self.most))
                text = _supported_only(out.text, [memory, window])
                if text:
                    return bounded(text, self.most, [window]), (asked.prompt, asked.model)
            except ModelGarbled:
                pass
            await caller.fallback(scope, FOLD.version)
        stated = _user_sentences([t for t in turns if " ".join(t.text.split())[:40] in window])
        return bounded("\n".join(x for x in (memory, stated) if x), self.most, [window]), made


def _last_covered(record: MemoryRecord) -> tuple[str, ...]:
    """The last session that a summary covers: it is made again of that."""
    return record.covers[-1:] if isinstance(record, Summary) and record.provenance.turns else ()


MECHANISMS = (
    Mechanism(
        "summary",
        "a summary of each session",
        writers=(
            Writer(
                "summary",
                When.SESSION_END,
                lambda desk, scope, job: SummaryWriter(desk).write(scope, job),
                again=_last_covered,
            ),
        ),
        sources=(Source("summary", "summaries of earlier conversations", kinds=("summary",)),),
    ),
    Mechanism(
        "recursive",
        "one running memory that each session is folded into (Wang et al. 2023)",
        writers=(
            Writer(
                "recursive",
                When.SESSION_END,
                lambda desk, scope, job: RecursiveWriter(desk).write(scope, job),
                again=_last_covered,
            ),
        ),
    ),
    Mechanism(
        "mend",
        "a text that stands for now is derived again when something that it states has changed",
        writers=(
            Writer(
                "mend",
                When.CHANGE,
                lambda desk, scope, job: MendWriter(desk).write(scope, job),
                needs_model=False,
                quick=True,
            ),
        ),
    ),
)
