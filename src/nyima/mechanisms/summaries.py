"""Writers ``summary`` (one a session; Yuan et al. 2023, section 3.1) and ``recursive``
(one running memory, folded after each session; Wang et al. 2023, section 4.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from nyima.domain.changes import Add, Delta, Retire, Revise
from nyima.domain.conversation import Role, Scope, Session, Turn, dialogue_lines, least_trusted
from nyima.domain.mechanism import Mechanism, Source, When, Writer
from nyima.domain.ports import Job, RecordFilter
from nyima.domain.records import ME, Claim, Entity, Interval, MemoryRecord, Provenance, Relation, Summary
from nyima.domain.roles import Written
from nyima.errors import ModelGarbled
from nyima.language.english.mentions import stems
from nyima.language.facts import supports_text
from nyima.language.relations import LABELS, label_of
from nyima.language.words import sentences
from nyima.prompts.prompt import Prompt, TextOut
from nyima.read.labels import mentions, values_of
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
            if not old_only or not supports_text(kept[i], recent, _SUPPORT):
                del kept[i]
    return between.join(kept)


def _units(text: str) -> list[str]:
    """The sentences of a text, each once; a line that quotes what was said is one."""
    units: list[str] = []
    for line in text.splitlines():
        units += [line.strip()] if line.rstrip().endswith("”") else sentences(line)
    return list(dict.fromkeys(units))


def _supported_only(text: str, sources: list[str]) -> str:
    return " ".join(s for s in sentences(text) if supports_text(s, sources, _SUPPORT))


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
    every = await desk.store.records(scope, RecordFilter(kinds=("fact", "relation"), retired=True))
    stated = [r for r in every if r.claim is not None]
    values = await values_of(desk.store, scope, stated)
    held = {(r.claim, values[r.id]) for r in stated if r.recorded.until is None and not r.stale}
    heads = tuple({r.head for r in stated if isinstance(r, Relation)})
    entities = await desk.store.records(scope, RecordFilter(ids=heads, retired=True)) if heads else []
    names = {e.id: e.name for e in entities if isinstance(e, Entity)}
    kept: list[str] = []
    for sentence in sentences(text):
        kept += _mended(sentence, stated, (values, names), held)
    return " ".join(kept)


def _states(sentence: str, record: MemoryRecord, names: Mapping[str, str]) -> bool:
    """Whether a sentence states the claim of a record, in words of its relation and of whom
    it is about: "was born in Porto" is not where somebody lives, nor is a sister's address."""
    if record.claim is None:
        return False
    label = label_of(record.claim.relation)
    known = LABELS.get(label)
    words = stems(" ".join((label, *(known.words if known is not None else ()))).replace("_", " "))
    about = names.get(record.head, ME) if isinstance(record, Relation) else ME
    mine = re.match(
        r"\W*(?:the )?user\b(?!['’]s (?!own\b))|\W*(?:the )?user['’]s ([\w -]+?) (?:is|was|are)\b",
        sentence,
        re.IGNORECASE,
    )
    if about == ME:
        owned = mine is not None and (mine[1] is None or bool(stems(mine[1]) <= words))
        return owned and bool(words & stems(sentence))
    return bool(stems(about) & stems(sentence)) and (bool(words & stems(sentence)) or label == "is")


def _mended(
    sentence: str,
    stated: list[MemoryRecord],
    known: tuple[Mapping[str, str], Mapping[str, str]],
    held: set[tuple[Claim | None, str]],
) -> list[str]:
    values, names = known
    for record in stated:
        old = values[record.id]
        if record.recorded.until is None or (record.claim, old) in held or not old or not mentions(sentence, old):
            continue
        new = [value for claim, value in held if claim == record.claim]
        if any(mentions(sentence, value) for value in new) or not _states(sentence, record, names):
            continue
        several = LABELS.get(label_of(record.claim.relation)) if record.claim is not None else None
        if len(new) != 1 or old not in sentence or (several is not None and not several.single):
            return []
        sentence = sentence.replace(old, new[0])
    return [sentence]


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
