"""An example of a writer, with the source that finds what it wrote and a recipe with both."""

from __future__ import annotations

from nyima.domain.changes import Add, Delta
from nyima.domain.conversation import Role, Scope
from nyima.domain.mechanism import Mechanism, Source, When, Writer
from nyima.domain.ports import Job, RecordFilter
from nyima.domain.recipe import Recipe, SourceSpec
from nyima.domain.records import Interval, MemoryRecord, Provenance, Summary
from nyima.domain.roles import Written
from nyima.write.desk import Desk

__all__ = ["MECHANISM", "write"]


async def write(desk: Desk, scope: Scope, job: Job) -> Written:
    """Make one line of a session: its day, and the first words that the user said."""
    session, turns = await desk.session(scope, job.subject)
    said = [turn for turn in turns if turn.role is Role.USER]
    if not said:
        return Written()
    line = Summary(
        id=f"diary-{session.id}",
        provenance=Provenance(turns=(said[0].id,), writer="diary", origin=said[0].origin),
        valid=Interval(session.started),
        recorded=Interval(desk.clock.now()),
        level="session",
        covers=(session.id,),
        body=f"{session.started:%d %B %Y}: {said[0].text}",
    )
    there = await desk.store.records(scope, RecordFilter(ids=(line.id,)))
    return Written(Delta((Add(line),), by="diary")) if not there else Written()


def sessions_of(record: MemoryRecord) -> tuple[str, ...]:
    """Return the sessions of which an erased line is made again."""
    return record.covers if isinstance(record, Summary) else ()


MECHANISM = Mechanism(
    "diary",
    "a line for each session",
    writers=(Writer("diary", When.SESSION_END, write, needs_model=False, again=sessions_of),),
    sources=(Source("diary", "a line for each earlier session", kinds=("summary",)),),
    recipes=(Recipe("diary", "the diary alone", ("history", "diary"), sources=(SourceSpec("diary", "words"),)),),
)
