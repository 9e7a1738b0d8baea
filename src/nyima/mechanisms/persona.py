"""The assistant's persona as a source: it is asked for a reply alone, where not all of it stands in
the system message. It is no memory of the user."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nyima.domain.conversation import Origin, Scope
from nyima.domain.evidence import Evidence, Step
from nyima.domain.mechanism import Mechanism, Source
from nyima.domain.records import Interval, Passage, Provenance
from nyima.read.ranking import coverage

__all__ = ["MECHANISM", "PersonaRetriever"]


@dataclass(frozen=True, slots=True)
class PersonaRetriever:
    """The assistant's own persona, a line a piece, by the words that they share."""

    persona: str

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        """The lines that share a word with the query, best first."""
        del scope
        at = step.query.at
        pieces = [
            Evidence(line, "persona", score, _persona_record(i, line, at), at)
            for i, line in enumerate(filter(None, map(str.strip, self.persona.splitlines())))
            if (score := coverage(step.query.words(), line)) > 0
        ]
        return sorted(pieces, key=lambda e: (-e.score, e.record.id))[: step.k]


def _persona_record(number: int, line: str, at: datetime) -> Passage:
    made = Provenance(writer="persona", origin=Origin.DOCUMENT)
    return Passage(
        id=f"persona-{number}",
        provenance=made,
        valid=Interval(at),
        recorded=Interval(at),
        document="persona",
        place=str(number),
        body=line,
    )


MECHANISM = Mechanism(
    "persona",
    "who the assistant is",
    sources=(Source("persona", "who the assistant is, what it is like and what it likes", kinds=("passage",)),),
    retrievers={"persona": lambda kit, spec: PersonaRetriever(kit.persona)},
)
