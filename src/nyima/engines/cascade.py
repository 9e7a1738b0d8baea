"""What follows from an erase: what rested on it goes too or is derived again, and a
receipt says what became of each part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nyima.domain.changes import Add, Change, Delta, Erase
from nyima.domain.conversation import Role, Scope, Turn
from nyima.domain.memory import Interval, MemoryRecord, Note, ProfileFact, Summary
from nyima.domain.ports import Clock, Job, RecordFilter, Store
from nyima.domain.text import content_words, fold, sentences
from nyima.engines.strategies.common import follow_up

__all__ = ["Cascade", "Receipt"]

_SHARED_WORDS = 1
_NEEDLE = 24
_LEAST_VALUE = 5
_MOST_NEEDLES = 2_000
_WRITER_OF = {
    "session": "summary", "day": "memorybank", "overall": "memorybank", "portrait": "memorybank", "topic": "memochat",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an erase did. ``erased`` counts records by kind; ``rederived`` the jobs that
    make summaries and notes again without it; ``bytes_found`` what a search of every
    file for the erased texts still found."""

    erased: Mapping[str, int] = field(default_factory=dict[str, int])
    rederived: int = 0
    turns: int = 0
    also: Mapping[str, int] = field(default_factory=dict[str, int])
    files_scanned: int = 0
    bytes_found: int = 0


@dataclass(slots=True)
class _Doomed:
    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    records: dict[str, MemoryRecord] = field(default_factory=dict[str, MemoryRecord])
    again: list[Job] = field(default_factory=list[Job])
    restored: list[Change] = field(default_factory=list[Change])
    traces: int = 0


@dataclass(frozen=True, slots=True)
class Cascade:
    """Erases with all that rests on it."""

    store: Store
    clock: Clock

    async def erase(
        self,
        scope: Scope,
        *,
        records: Sequence[MemoryRecord] = (),
        turns: Sequence[str] = (),
        sessions: Sequence[str] = (),
    ) -> Receipt:
        """Erase records with the turns they came from, turns, or whole sessions.

        A summary that is named goes alone: the turns that it covers stay. Everything
        happens in one commit; then the files are compacted and searched.
        """
        doomed = _Doomed()
        for record in records:
            doomed.records[record.id] = record
        named = [t for r in records for t in self._sources(r)]
        found = await self.store.turns(scope, ids=(*turns, *named)) if (turns or named) else []
        for session in sessions:
            found += await self.store.turns(scope, session=session)
        await self._add_turns(scope, doomed, found)
        await self._derived(scope, doomed)
        needles = await self._needles(scope, doomed)
        changes: list[Change] = [Erase(id) for id in doomed.records]
        changes += [Erase(id, "turn") for id in doomed.turns]
        changes += [Erase(id, "session") for id in sessions]
        quoting = await self._quoting(scope, needles)
        doomed.traces += len(quoting)
        changes += [Erase(id, "event") for id in quoting]
        jobs_before = len(await self.store.jobs(scope))
        await self.store.commit(scope, Delta((*changes, *doomed.restored), "forget"), jobs=doomed.again)
        jobs_after = len(await self.store.jobs(scope)) - len(doomed.again)
        report = await self.store.scrub(needles)
        return Receipt(
            erased=dict(Counter(r.kind for r in doomed.records.values())),
            rederived=len(doomed.again),
            turns=len(doomed.turns),
            also={"traces": doomed.traces, "jobs": jobs_before - jobs_after, "sessions": len(sessions)},
            files_scanned=report["files_scanned"],
            bytes_found=report["bytes_found"],
        )

    async def erase_all(self, scope: Scope) -> Receipt:
        """Erase everything of the scope."""
        doomed = _Doomed()
        doomed.turns = {t.id: t for t in await self.store.turns(scope)}
        doomed.records = {r.id: r for r in await self.store.records(scope, RecordFilter(retired=True))}
        needles = (await self._needles(scope, doomed))[:_MOST_NEEDLES]
        also = {
            "traces": len(await self.store.events(scope, "recall")),
            "jobs": len(await self.store.jobs(scope)),
            "sessions": len(await self.store.sessions(scope)),
        }
        await self.store.commit(scope, Delta((Erase("*", "scope"),), "forget"))
        report = await self.store.scrub(needles)
        erased = dict(Counter(r.kind for r in doomed.records.values()))
        return Receipt(erased, 0, len(doomed.turns), also, report["files_scanned"], report["bytes_found"])

    async def _quoting(self, scope: Scope, needles: Sequence[str]) -> list[str]:
        """The traces that hold a piece of what is erased, such as a query that found nothing."""
        events = await self.store.events(scope, "recall")
        return [e.id for e in events if any(n in str(e.body) for n in needles)]

    def _sources(self, record: MemoryRecord) -> tuple[str, ...]:
        """The turns that say what a record says: of a note its own turn, of a summary none."""
        if isinstance(record, Summary):
            return ()
        return record.provenance.turns[:1] if isinstance(record, Note) else record.provenance.turns

    async def _add_turns(self, scope: Scope, doomed: _Doomed, turns: Iterable[Turn]) -> None:
        """Take turns with the replies that repeat them."""
        todo = list(turns)
        while todo:
            turn = todo.pop()
            if turn.id in doomed.turns:
                continue
            doomed.turns[turn.id] = turn
            if turn.role is not Role.USER:
                continue
            replies = await self._replies(scope, turn)
            todo += [r for r in replies if r.id not in doomed.turns and _repeats(r.text, turn.text)]

    async def _replies(self, scope: Scope, turn: Turn) -> list[Turn]:
        """The reply to a turn, and every reply whose recall used what came from it."""
        ids: set[str] = set()
        derived = await self.store.records(scope, RecordFilter(turns=(turn.id,), retired=True))
        for ref in (turn.id, *(r.id for r in derived)):
            for event in await self.store.events(scope, "recall", ref=ref):
                ids.add(str(event.body.get("reply", "")))
        replies = await self.store.turns(scope, ids=tuple(ids)) if ids else []
        for other in await self.store.turns(scope, session=turn.session):
            if other.position > turn.position:
                if other.role is Role.USER:
                    break
                replies.append(other)
        return [r for r in replies if r.role is Role.ASSISTANT]

    async def _derived(self, scope: Scope, doomed: _Doomed) -> None:
        await self._versions(scope, doomed)
        sources = tuple({*doomed.turns, *doomed.records})
        found = await self.store.records(scope, RecordFilter(turns=sources, retired=True)) if sources else []
        chain_from: Summary | None = None
        for record in found:
            doomed.records[record.id] = record
            if isinstance(record, Note) and record.provenance.turns[0] not in doomed.turns:
                doomed.again.append(self._again("note", record.provenance.turns[0]))
            elif isinstance(record, Summary) and record.level in _WRITER_OF:
                await self._session_again(scope, doomed, record, _WRITER_OF[record.level])
        running = [r for r in doomed.records.values() if isinstance(r, Summary) and r.level == "running"]
        for record in running:
            if chain_from is None or len(record.covers) < len(chain_from.covers):
                chain_from = record
        if chain_from is not None:
            await self._refold(scope, doomed, chain_from)
        for id in (*doomed.turns, *doomed.records):
            doomed.traces += len(await self.store.events(scope, "recall", ref=id))

    async def _versions(self, scope: Scope, doomed: _Doomed) -> None:
        """The earlier versions of what the user's own hand revised."""
        todo = list(doomed.records.values())
        while todo:
            record = todo.pop()
            if record.provenance.writer != "user" or not record.supersedes:
                continue
            for older in await self.store.records(scope, RecordFilter(ids=(record.supersedes,), retired=True)):
                if older.id not in doomed.records:
                    doomed.records[older.id] = older
                    todo.append(older)

    async def _session_again(self, scope: Scope, doomed: _Doomed, record: Summary, kind: str) -> None:
        """Another job for the last session that a summary covers and that is still there."""
        if not record.provenance.turns:
            return
        last_only = record.level in {"session", "running"}
        for session in record.covers[-1:] if last_only else reversed(record.covers):
            left = [t for t in await self.store.turns(scope, session=session) if t.id not in doomed.turns]
            if any(t.role is Role.USER for t in left):
                owed = {(job.kind, job.subject) for job in doomed.again}
                if (kind, session) not in owed:
                    doomed.again.append(self._again(kind, session))
                return

    def _again(self, kind: str, subject: str) -> Job:
        stamp = self.clock.now().strftime("%Y%m%d%H%M%S%f")
        return follow_up(kind, subject, "default", f"-again-{stamp}")

    async def _refold(self, scope: Scope, doomed: _Doomed, first: Summary) -> None:
        """Fold again from the last running memory that the erase does not touch."""
        everything = await self.store.records(scope, RecordFilter(kinds=("summary",), retired=True))
        chain = [r for r in everything if isinstance(r, Summary) and r.level == "running"]
        chain.sort(key=lambda r: (len(r.covers), r.recorded.since, r.id))
        for record in chain:
            if len(record.covers) >= len(first.covers):
                doomed.records[record.id] = record
                await self._session_again(scope, doomed, record, "recursive")
        before = [r for r in chain if len(r.covers) < len(first.covers)]
        if before and before[-1].recorded.until is not None:
            last, now = before[-1], self.clock.now()
            stamp = now.strftime("%Y%m%d%H%M%S%f")
            restored = replace(
                last,
                id=f"{last.id}-restored-{stamp}",
                valid=Interval(last.valid.since),
                recorded=Interval(now),
                stale=False,
            )
            doomed.restored.append(Add(restored))

    async def _needles(self, scope: Scope, doomed: _Doomed) -> list[str]:
        """Pieces of the erased texts that nothing which stays holds too."""
        pieces: set[str] = set()
        for text in (*(t.text for t in doomed.turns.values()), *(r.text for r in doomed.records.values())):
            for sentence in sentences(text)[:50]:
                pieces |= {sentence[i : i + _NEEDLE] for i in range(0, len(sentence) - 11, _NEEDLE)}
        values = (r.value for r in doomed.records.values() if isinstance(r, ProfileFact))
        pieces |= {value for value in values if len(value) >= _LEAST_VALUE}
        if not pieces:
            return []
        stay: list[str] = [t.text for t in await self.store.turns(scope) if t.id not in doomed.turns]
        records = await self.store.records(scope, RecordFilter(retired=True))
        stay += [r.text for r in records if r.id not in doomed.records]
        everything = "\n".join(stay)
        return sorted(p for p in pieces if len(p.strip()) >= _LEAST_VALUE and p not in everything)


def _repeats(reply: str, said: str) -> bool:
    """Whether a reply repeats a word of some length, or a number, of a turn."""
    told = {w for w in content_words(said) if len(w) > 3 or w.isdigit()}
    again = {w for w in content_words(fold(reply)) if w in told}
    return len(again) >= min(_SHARED_WORDS, len(told)) if told else False
