"""What is known now, as the skills read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nyima.domain.records import ME, Claim, Status
from nyima.language.english.fields import attribute_of
from nyima.language.words import stems
from nyima.memory import Memory

__all__ = ["Stated", "known", "related"]


@dataclass(frozen=True, slots=True)
class Stated:
    """A claim as skills read it: ``head`` is the subject's name, ``label`` what forms call its attribute,
    ``tail`` the value, ``note`` the words of the turn that says it, else its own text."""

    head: str
    label: str
    tail: str
    note: str
    record: Claim

    @property
    def mine(self) -> bool:
        """Whether it is said of the user."""
        return self.head == ME

    @property
    def subject(self) -> str:
        """The subject and the attribute, in words."""
        return f"{self.head} {self.record.attribute}"


async def known(memory: Memory) -> list[Stated]:
    """Return what holds or is planned now, oldest first. What is uncertain, or waits for a confirmation,
    is left out."""
    claims = [c for c in await memory.claims() if not c.stale and c.status in {Status.HOLDS, Status.PLANNED}]
    quoted = {c.quote.turn for c in claims if c.quote is not None}
    turns = {t.id: t for t in await memory.store.turns(memory.scope, ids=tuple(quoted))} if quoted else {}
    found: list[Stated] = []
    for claim in claims:
        quote = claim.quote
        said = turns[quote.turn].text[quote.start : quote.end] if quote is not None and quote.turn in turns else ""
        found.append(Stated(claim.name, attribute_of(claim.attribute), claim.value, said or claim.text, claim))
    return found


def related(everything: Sequence[Stated], role: str) -> list[str]:
    """Return the names of the user's people or things of a role: "my daughter" by a claim of the user
    ("daughter: Mia"), or by what they are called ("daughter Mia")."""
    wanted = stems(role)
    names: list[str] = []
    for item in everything:
        if item.mine and wanted & stems(item.record.attribute):
            names.append(item.tail)
        if not item.mine and wanted & stems(item.head) and "'s " not in item.head:
            names.append(item.head)
            if item.label == "name":
                names.append(item.tail)
    return list(dict.fromkeys(names))
