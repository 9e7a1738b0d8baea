"""What follows from a change: what rested on it is marked stale and derived again; after
an erase it goes too or is derived again without it. A receipt says what became of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nyima.change.needles import needles_of, quoted_in, repeats, telling, traces_of
from nyima.domain.changes import Add, Change, Delta, Erase, Retire, Revise
from nyima.domain.conversation import Role, Scope, Turn
from nyima.domain.mechanism import Registry, When, Writer
from nyima.domain.ports import Clock, Event, Job, RecordFilter, follow_up
from nyima.domain.recipe import Recipe
from nyima.domain.records import Claim, Entity, Interval, MemoryRecord, Note, Status, Summary
from nyima.domain.roles import Written
from nyima.domain.storage import Store
from nyima.language.words import fold, sentences
from nyima.read.labels import base_id, mentions

__all__ = ["Cascade", "Forgetting", "Receipt"]

_LEAST_VALUE = 3
_FOR_NOW = ("running", "overall", "portrait")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an erase did. ``erased`` counts records by kind; ``rederived`` the jobs that
    make summaries and notes again without it; ``bytes_found`` what a search of every
    file for the erased texts still found; ``still_said`` the turns that were kept although
    an erased record came from them, so that their words still say it."""

    erased: Mapping[str, int] = field(default_factory=dict[str, int])
    rederived: int = 0
    turns: int = 0
    also: Mapping[str, int] = field(default_factory=dict[str, int])
    files_scanned: int = 0
    bytes_found: int = 0
    still_said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgetting:
    """The turns and records that a forget would erase, with what was derived from them.
    ``kept`` are turns that stay although they say it."""

    turns: tuple[Turn, ...] = ()
    records: tuple[MemoryRecord, ...] = ()
    kept: tuple[Turn, ...] = ()


@dataclass(slots=True)
class _Doomed:
    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    records: dict[str, MemoryRecord] = field(default_factory=dict[str, MemoryRecord])
    again: list[Job] = field(default_factory=list[Job])
    restored: list[Change] = field(default_factory=list[Change])
    traces: set[str] = field(default_factory=set[str])
    kept: list[Turn] = field(default_factory=list[Turn])


@dataclass(frozen=True, slots=True)
class Cascade:
    """Follows a change to all that rests on it, and erases with all that rests on it. What is
    derived again is made by the writers of ``recipe``, the memory's own."""

    store: Store
    clock: Clock
    recipe: Recipe
    registry: Registry

    async def follow(self, scope: Scope, written: Written) -> Written:
        """The same changes with what follows from them: whatever rests on a record that
        was closed becomes stale, and so does what rests on that; a running summary that states it is
        derived again by a job."""
        ends = {c.id: c for c in written.delta.changes if isinstance(c, Revise | Retire)}
        if not ends:
            return written
        found = await self.store.records(scope, RecordFilter(ids=tuple(ends), retired=True))
        todo: list[MemoryRecord] = []
        for record in found:
            change = ends[record.id]
            if not isinstance(record, Claim) or record.status in {Status.ENDED, Status.DENIED}:
                continue
            if isinstance(change, Revise) and (record.says_the_same(change.successor) or change.successor.stale):
                continue
            todo.append(record)
        changes, jobs = list[Change](), list[Job]()
        handled = {*ends, *(c.successor.id for c in ends.values() if isinstance(c, Revise))}
        for record in todo:
            more, owed = await self._stating(scope, record, handled)
            changes, jobs = changes + more, jobs + owed
        while todo:
            for rests in await self._resting(scope, todo.pop()):
                if rests.id not in handled:
                    handled.add(rests.id)
                    changes.append(Revise(rests.id, self._stale(rests), "rests on what has changed"))
                    todo.append(rests)
        delta = Delta((*written.delta.changes, *changes), written.delta.by)
        return replace(written, delta=delta, jobs=(*written.jobs, *jobs))

    async def _resting(self, scope: Scope, record: MemoryRecord) -> list[MemoryRecord]:
        """The claims that name a record, or what it was before it was told again, as that on which they
        depend."""
        names, older = {record.id, base_id(record.id)}, record.supersedes
        while older is not None and older not in names:
            before = await self.store.records(scope, RecordFilter(ids=(older,), retired=True))
            if not before or not (_same(before[0], record) or base_id(older) in names):
                break
            names |= {older, base_id(older)}
            older = before[0].supersedes
        linked = await self.store.records(scope, RecordFilter(kinds=("claim",), turns=tuple(names)))
        return [c for c in linked if isinstance(c, Claim) and not c.stale and names & {*c.depends_on}]

    def _stale(self, record: MemoryRecord) -> MemoryRecord:
        now = self.clock.now()
        id = f"{base_id(record.id)}~{now.strftime('%Y%m%d%H%M%S%f')}"
        return replace(record, id=id, recorded=Interval(now), stale=True, supersedes=record.id)

    async def _stating(self, scope: Scope, record: MemoryRecord, handled: set[str]) -> tuple[list[Change], list[Job]]:
        """Texts that stand for now and state a value that has changed: stale until a job has
        derived them again."""
        value = record.value if isinstance(record, Claim) else ""
        if len(value) < _LEAST_VALUE:
            return [], []
        changes, jobs = list[Change](), list[Job]()
        for text in await self.store.records(scope, RecordFilter(kinds=("summary",))):
            if not isinstance(text, Summary) or text.level not in _FOR_NOW or text.id in handled or text.stale:
                continue
            if any(mentions(s, value) for s in sentences(text.body)):
                stale = self._stale(text)
                handled.add(text.id)
                changes.append(Revise(text.id, stale, "states what has changed"))
                jobs += [
                    follow_up(w.name, stale.id, self.recipe.name)
                    for w in self.registry.writers(self.recipe, When.CHANGE)
                ]
        return changes, jobs

    async def erase(
        self,
        scope: Scope,
        *,
        records: Sequence[MemoryRecord] = (),
        turns: Sequence[str] = (),
        sessions: Sequence[str] = (),
        only: bool = False,
    ) -> Receipt:
        """Erase records with the turns they came from, turns, or whole sessions; with ``only``
        records without their turns.

        A summary that is named goes alone: the turns that it covers stay. Everything
        happens in one commit; then the files are compacted and searched.
        """
        doomed = await self._doomed(scope, records, turns, sessions, only=only)
        needles = await needles_of(self.store, scope, doomed.turns, doomed.records)
        changes: list[Change] = [Erase(id) for id in doomed.records]
        changes += [Erase(id, "turn") for id in doomed.turns]
        changes += [Erase(id, "session") for id in sessions]
        quoting, cleaned = await quoted_in(self.store, scope, needles, doomed.turns)
        noted, kept = await self._without(scope, doomed, {e.id for e in quoting})
        quoting, cleaned = [*quoting, *noted], [*cleaned, *kept]
        doomed.traces |= {e.id for e in quoting if e.kind in {"recall", "feedback"}}
        changes += [Erase(e.id, "event") for e in quoting]
        jobs_before = len(await self.store.jobs(scope))
        delta = Delta((*changes, *doomed.restored), "forget")
        await self.store.commit(scope, delta, jobs=doomed.again, events=cleaned)
        jobs_after = len(await self.store.jobs(scope)) - len(doomed.again)
        report = await self.store.scrub(scope, needles)
        return Receipt(
            erased=dict(Counter(r.kind for r in doomed.records.values())),
            rederived=len(doomed.again),
            turns=len(doomed.turns),
            also={"traces": len(doomed.traces), "jobs": jobs_before - jobs_after, "sessions": len(sessions)},
            files_scanned=report["files_scanned"],
            bytes_found=report["bytes_found"],
            still_said=tuple(t.id for t in doomed.kept),
        )

    async def _without(self, scope: Scope, doomed: _Doomed, seen: set[str]) -> tuple[list[Event], list[Event]]:
        """The notes of turns that stay without what the erased records say, so that it is not
        believed again; those that go, and those that take their place."""
        said = fold("\n".join(r.text for r in doomed.records.values()))
        gone, instead = list[Event](), list[Event]()
        for turn in doomed.kept:
            for event in await self.store.events(scope, "notes", ref=turn.id):
                claims = [c for c in event.body.get("claims", ()) if fold(str(c[2])) not in said]
                if event.id not in seen and len(claims) < len(event.body.get("claims", ())):
                    gone.append(event)
                    instead.append(replace(event, id=f"{event.id}-cleaned", body={**event.body, "claims": claims}))
        return gone, instead

    async def foresee(
        self, scope: Scope, *, records: Sequence[MemoryRecord] = (), sessions: Sequence[str] = (), only: bool = False
    ) -> Forgetting:
        """What ``erase`` with the same arguments would take. Nothing is changed."""
        doomed = await self._doomed(scope, records, (), sessions, only=only)
        turns = sorted(doomed.turns.values(), key=lambda t: (t.at, t.position, t.id))
        return Forgetting(tuple(turns), tuple(doomed.records.values()), tuple(doomed.kept))

    async def _doomed(
        self,
        scope: Scope,
        records: Sequence[MemoryRecord],
        turns: Sequence[str],
        sessions: Sequence[str],
        *,
        only: bool,
    ) -> _Doomed:
        doomed = _Doomed()
        for record in records:
            doomed.records[record.id] = record
        named = [t for r in records for t in self._sources(r)]
        found = await self.store.turns(scope, ids=(*turns, *named)) if (turns or named) else []
        if only:
            doomed.kept = [t for t in found if t.id not in turns]
            found = [t for t in found if t.id in turns]
        for session in sessions:
            found += await self.store.turns(scope, session=session)
        await self._add_turns(scope, doomed, found)
        linked = await self._linked(scope, _Doomed(dict(doomed.turns), dict(doomed.records)))
        if not only:
            told = await telling(self.store, scope, doomed.turns, [*doomed.records.values(), *linked])
            doomed.turns |= {t.id: t for t in told}
        await self._derived(scope, doomed)
        return doomed

    async def erase_all(self, scope: Scope) -> Receipt:
        """Erase everything of the scope."""
        doomed = _Doomed()
        doomed.turns = {t.id: t for t in await self.store.turns(scope)}
        doomed.records = {r.id: r for r in await self.store.records(scope, RecordFilter(retired=True))}
        needles = await needles_of(self.store, scope, doomed.turns, doomed.records)
        also = {
            "traces": len(await self.store.events(scope, "recall")),
            "jobs": len(await self.store.jobs(scope)),
            "sessions": len(await self.store.sessions(scope)),
        }
        await self.store.commit(scope, Delta((Erase("*", "scope"),), "forget"))
        report = await self.store.scrub(scope, needles)
        erased = dict(Counter(r.kind for r in doomed.records.values()))
        return Receipt(erased, 0, len(doomed.turns), also, report["files_scanned"], report["bytes_found"])

    def _sources(self, record: MemoryRecord) -> tuple[str, ...]:
        """The turns that say what a record says: of a note its own turn, of a summary none."""
        if isinstance(record, Summary):
            return ()
        return record.provenance.turns[:1] if isinstance(record, Note) else record.provenance.turns

    async def _add_turns(self, scope: Scope, doomed: _Doomed, turns: Iterable[Turn]) -> None:
        """Take turns with the replies that repeat them."""
        todo = {t.id: t for t in turns}
        while todo:
            doomed.turns |= todo
            said = [t for t in todo.values() if t.role is Role.USER]
            replies = await self._replies(scope, said) if said else []
            todo = {r.id: r for t, r in replies if r.id not in doomed.turns and repeats(r.text, t.text)}

    async def _replies(self, scope: Scope, said: Sequence[Turn]) -> list[tuple[Turn, Turn]]:
        """Turns with the reply to each, and with every reply whose recall used what came from it."""
        whose = {t.id: {t.id} for t in said}
        for record in await self.store.records(scope, RecordFilter(turns=tuple(whose), retired=True)):
            for id in whose.keys() & set(record.provenance.turns):
                whose.setdefault(record.id, set()).add(id)
        pairs = {
            (id, str(event.body.get("reply", "")))
            for event in await traces_of(self.store, scope, whose)
            for ref in whose.keys() & set(event.refs)
            for id in whose[ref]
        }
        ids = tuple({reply for _, reply in pairs if reply})
        by_id = {t.id: t for t in await self.store.turns(scope, ids=ids)} if ids else {}
        of = {t.id: t for t in said}
        found = [(of[id], by_id[reply]) for id, reply in sorted(pairs) if reply in by_id and id in of]
        for session in {t.session for t in said}:
            before: Turn | None = None
            for turn in await self.store.turns(scope, session=session):
                if turn.role is Role.USER:
                    before = of.get(turn.id)
                elif before is not None:
                    found.append((before, turn))
        return [(turn, reply) for turn, reply in found if reply.role is Role.ASSISTANT]

    async def _derived(self, scope: Scope, doomed: _Doomed) -> None:
        await self._versions(scope, doomed, list(doomed.records.values()))
        chain_from: Summary | None = None
        for record in await self._linked(scope, doomed):
            doomed.records[record.id] = record
            again = await self._owed_again(scope, doomed, record)
            doomed.again += again
            if again and isinstance(record, Claim):
                # The job makes it under the id that it had before it was told again.
                await self._versions(scope, doomed, [record])
        running = [r for r in doomed.records.values() if isinstance(r, Summary) and r.level == "running"]
        for record in running:
            if chain_from is None or len(record.covers) < len(chain_from.covers):
                chain_from = record
        if chain_from is not None:
            await self._refold(scope, doomed, chain_from)
        doomed.traces |= {e.id for e in await traces_of(self.store, scope, {*doomed.turns, *doomed.records})}

    async def _linked(self, scope: Scope, doomed: _Doomed) -> list[MemoryRecord]:
        """All that came from what is erased, and what came from that. An entity goes when
        nothing that stays speaks of it; else it stays under what stays."""
        found: dict[str, MemoryRecord] = {}
        todo = {*doomed.turns, *doomed.records}
        gone, stays = set(todo), dict[str, Claim]()
        entities: dict[str, Entity] = {r.id: r for r in doomed.records.values() if isinstance(r, Entity)}
        while todo:
            linked = await self.store.records(scope, RecordFilter(turns=tuple(todo), retired=True))
            todo = set()
            gone |= {r.id for r in linked if not isinstance(r, Entity | Claim)}
            for record in linked:
                if isinstance(record, Entity):
                    entities[record.id] = record
                elif isinstance(record, Claim) and self._only_rests(record, gone):
                    stays[record.id] = record
                elif record.id not in found:
                    found[record.id] = record
                    todo |= {record.id} - {*doomed.records}
        gone |= {*found, *doomed.records}
        for resting in stays.values():
            if resting.id not in gone and resting.recorded.until is None:
                left = tuple(r for r in resting.depends_on if r not in gone)
                uncertain = self._stale(replace(resting, depends_on=left))
                doomed.restored.append(Revise(resting.id, uncertain, "rested on what was erased"))
        touched = {
            id
            for r in (*found.values(), *doomed.records.values())
            if isinstance(r, Claim)
            for id in (r.subject, r.object)
            if id
        }
        for record in (
            await self.store.records(scope, RecordFilter(ids=tuple(touched), retired=True)) if touched else []
        ):
            if isinstance(record, Entity):
                entities[record.id] = record
        for id, entity in entities.items():
            beside = await self.store.records(scope, RecordFilter(turns=(id,), retired=True))
            stay = [r for r in beside if r.id not in gone]
            if id in doomed.records or (not stay and id != "user"):
                found[id] = entity
            elif set(entity.provenance.turns) & {*doomed.turns}:
                turns = next((r.provenance.turns[:1] for r in stay if r.provenance.turns), ())
                again = replace(entity, provenance=replace(entity.provenance, turns=turns), aliases=())
                doomed.restored += [Erase(id), Add(again)]
        return list(found.values())

    def _only_rests(self, claim: Claim, gone: set[str]) -> bool:
        """Return whether the user made a claim by hand and no turn would give it again. Such a claim
        stays, marked as uncertain, when what it rests on goes."""
        made = claim.provenance
        if made.writer != "user" or (made.turns and not made.records):
            return False
        return not gone & {*made.turns, *made.records, claim.subject, claim.object}

    async def _versions(self, scope: Scope, doomed: _Doomed, of: Sequence[MemoryRecord]) -> None:
        """The earlier versions of what the user's own hand revised, or what was told again."""
        todo = list(of)
        while todo:
            record = todo.pop()
            if not record.supersedes:
                continue
            for older in await self.store.records(scope, RecordFilter(ids=(record.supersedes,), retired=True)):
                again = record.provenance.writer == "user" or _same(older, record)
                if again and older.id not in doomed.records:
                    doomed.records[older.id] = older
                    todo.append(older)

    async def _owed_again(self, scope: Scope, doomed: _Doomed, record: MemoryRecord) -> list[Job]:
        """The jobs that make a record again without what is erased, as its own writer says; none
        where the memory's recipe does not have that writer."""
        writer = self.registry.maker(record)
        if writer is None or writer not in self._every():
            return []
        subjects = [s for s in writer.again(record) if s not in doomed.turns]
        if writer.when is When.SESSION_END:
            subjects = [s for s in subjects if await self._words_left(scope, doomed, s)][:1]
        owed = {(job.kind, job.subject) for job in doomed.again}
        stamp = self.clock.now().strftime("%Y%m%d%H%M%S%f")
        return [
            follow_up(writer.name, subject, self.recipe.name, f"-again-{stamp}")
            for subject in subjects
            if (writer.name, subject) not in owed
        ]

    def _every(self) -> tuple[Writer, ...]:
        """The writers of the memory's recipe, those too that other writers ask for."""
        return tuple(
            writer for m in self.registry.mechanisms if m.name in self.recipe.mechanisms for writer in m.writers
        )

    async def _words_left(self, scope: Scope, doomed: _Doomed, session: str) -> bool:
        """Return whether any turn of the user in a session stays."""
        turns = await self.store.turns(scope, session=session)
        return any(t.role is Role.USER and t.id not in doomed.turns for t in turns)

    async def _refold(self, scope: Scope, doomed: _Doomed, first: Summary) -> None:
        """Fold again from the last running memory that the erase does not touch."""
        everything = await self.store.records(scope, RecordFilter(kinds=("summary",), retired=True))
        chain = [r for r in everything if isinstance(r, Summary) and r.level == "running"]
        chain.sort(key=lambda r: (len(r.covers), r.recorded.since, r.id))
        for record in chain:
            if len(record.covers) >= len(first.covers):
                doomed.records[record.id] = record
                doomed.again += await self._owed_again(scope, doomed, record)
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


def _same(one: MemoryRecord, other: MemoryRecord) -> bool:
    return isinstance(one, Claim) and one.says_the_same(other)
