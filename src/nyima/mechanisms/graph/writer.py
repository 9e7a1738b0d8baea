"""Writer ``graph``: what a user's turn states becomes relations between entities, and
edits of those that are there (Wang et al. 2024, section 4.2).

It makes no call of its own: the user's words are read by rules, and the notes and facts
that the reply's or the record's call made anyway are read with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nyima.domain.changes import Delta
from nyima.domain.conversation import Origin, Role, Scope, Turn
from nyima.domain.mechanism import Mechanism, Source, When, Writer
from nyima.domain.ports import Event, Job, RecordFilter
from nyima.domain.records import ME, Interval, Note
from nyima.domain.roles import Written
from nyima.domain.storage import AskEvents
from nyima.errors import ModelError
from nyima.language.english.extract import statements
from nyima.language.english.mentions import NOTHING
from nyima.language.english.statement import Statement, from_fact
from nyima.language.facts import proposals
from nyima.language.intent import first_person
from nyima.language.relations import read_subclasses
from nyima.language.words import fold, has_quotation
from nyima.mechanisms.graph.edit import Editor
from nyima.mechanisms.graph.entities import Nodes
from nyima.mechanisms.graph.partitions import Partitions
from nyima.mechanisms.graph.policy import policy_of
from nyima.mechanisms.graph.walk import WalkSelector, walked
from nyima.read.embedding import index_pending
from nyima.write.desk import Desk

__all__ = ["MECHANISM", "GraphWriter"]

_BEFORE = 6
_LONG = 10_000
"""Characters from which on a text is read beside the event loop."""


@dataclass(frozen=True, slots=True)
class GraphWriter:
    """Reads one turn into the graph. Without ``edits_too`` every memory is only added, for the
    baselines."""

    desk: Desk
    edits_too: bool = True

    async def write(self, scope: Scope, job: Job) -> Written:
        """The changes of the graph that the turn asks for; none for the assistant's words."""
        revision, (turn, before), noted = await asyncio.gather(
            self.desk.store.revision(scope),
            self.desk.around(scope, job.subject, _BEFORE),
            self._what_was_noted(scope, job.subject),
        )
        if not _states(turn):
            return Written()
        long = len(turn.text) > _LONG
        found = await asyncio.to_thread(self._read, turn) if long else self._read(turn)
        if turn.origin is Origin.DOCUMENT:  # whoever says "I" there is not the user
            found = [s for s in found if s.head != "user" and not s.ends]
        said = before[-1].text if before else ""
        found += await self._noted(scope, turn, said, found, noted)
        if not found:
            return Written()
        delta = await self.edits(scope, turn, before, found)
        return Written(delta, expect=revision)

    def _read(self, turn: Turn) -> list[Statement]:
        """The statements that rules read; none where quotation marks leave open whose they are."""
        if has_quotation(turn.text):
            return []
        return [s for s in statements(turn.text, turn.at, self.desk.zone) if _says_something(s)]

    async def edits(self, scope: Scope, turn: Turn, before: Sequence[Turn], found: Sequence[Statement]) -> Delta:
        """The changes for statements that are read already."""
        embedder = self.desk.embedder
        if embedder is not None:
            try:
                await index_pending(self.desk.store, embedder, scope)
            except ModelError:
                embedder = None  # vectors are derived: words alone decide this time
        now = self.desk.clock.now()
        nodes = Nodes(self.desk.store, scope, turn, Interval(now))
        earlier = [t.id for t in before if t.role is Role.USER]
        last: str | None = None
        if earlier:
            await nodes.load_recent(earlier)
            held = await self.desk.store.records(scope, RecordFilter(kinds=("relation",), turns=tuple(earlier[-1:])))
            last = held[-1].id if held else None
        embed = embedder.embed if embedder is not None else None
        places = Partitions(
            self.desk.store,
            scope,
            turn.at,
            embed,
            read_subclasses(self.desk.subclasses),
            self.desk.shared.setdefault("priors", {}),
        )
        made_by = "graph" if self.edits_too else "memories"
        editor = Editor(self.desk.store, scope, turn, now, self.desk.zone, nodes, places, made_by)
        if not self.edits_too:
            return Delta(tuple(await editor.only_add(found)), by="graph")
        return Delta(tuple(await editor.apply(found, last)), by="graph")

    async def _what_was_noted(self, scope: Scope, turn: str) -> list[Event]:
        """The notes and facts of a turn."""
        store = self.desk.store
        found = await asyncio.gather(*(store.ask(scope, AskEvents(kind, (turn,))) for kind in ("notes", "facts")))
        return [event for events in found for event in events[:1] if event.body["turn"] == turn]

    async def _noted(
        self, scope: Scope, turn: Turn, said: str, found: list[Statement], noted: Sequence[Event]
    ) -> list[Statement]:
        """What the model noted about the turn and the rules did not see: facts first, then
        the sentences of the note. Of a turn that is not worth remembering, such as a question
        about another town's weather, nothing."""
        if any(event.body.get("remember") is False for event in noted):
            return []
        facts = [tuple(pair) for event in noted for pair in event.body["facts"]]
        told = fold(" ".join(s.note + " " + s.tail for s in found if s.label != "note"))
        more = [
            from_fact(p.key, p.value, turn.text)
            for p in proposals(list(dict.fromkeys(facts)), turn.id, turn.text, said)
            if p.value != "None" and p.key != "style" and fold(p.value) not in told
        ]
        if more and all(s.label == "note" for s in found):
            found.clear()  # the model read what the rules could only keep whole
        if found or more:
            return more
        notes = await self.desk.store.records(scope, RecordFilter(kinds=("note",), turns=(turn.id,)))
        texts = [
            n.knowledge
            for n in notes
            if isinstance(n, Note) and n.provenance.turns[:1] == (turn.id,) and n.provenance.prompt
        ]
        return [replace(s, noted=True) for text in texts for s in statements(_as_said(text), turn.at, self.desk.zone)]


def _says_something(said: Statement) -> bool:
    """Whether a statement has a subject: "That sounds great" and "Have fun" name nobody."""
    return fold(said.head) not in NOTHING and (said.head != ME or first_person(said.clause))


def _states(turn: Turn) -> bool:
    if not turn.text.strip():
        return False
    return turn.origin is Origin.DOCUMENT or (turn.role is Role.USER and turn.origin in {Origin.USER, Origin.IMPORT})


def _as_said(text: str) -> str:
    """A note about "the user" as the user would say it, for the rules that read it."""
    for about, own in (("The user's", "My"), ("the user's", "my"), ("The user is", "I am"), ("the user is", "I am"),
                       ("The user has", "I have"), ("the user has", "I have"), ("The user", "I"), ("the user", "I")):  # fmt: skip
        text = text.replace(about, own)
    return text


MECHANISM = Mechanism(
    "graph",
    "people, things and events, how they are related, and what changes (Wang et al. 2024)",
    writers=(
        Writer(
            "graph",
            When.TURN,
            lambda desk, scope, job: GraphWriter(desk).write(scope, job),
            needs_model=False,
            again=lambda record: record.provenance.turns,
            noted=lambda notes: bool(notes.facts),
            quick=True,
        ),
    ),
    sources=(Source("graph", "people, things, events and how they are related to the user", kinds=("relation",)),),
    retrievers={"walk": walked},
    selectors={"policy": lambda kit, *cut: WalkSelector(policy_of(kit.learned.get("policy", {})), *cut)},
    learns=("policy",),
)
