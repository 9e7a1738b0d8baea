"""From what a reader noted of a turn to claims: whose they are, whether the turn asserts them, and
what they make untrue (see ``docs/decisions/0015-claims.md``)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from nyima.domain.changes import Add, Change, Retire, Revise
from nyima.domain.conversation import Origin, Role, Scope, Turn
from nyima.domain.evidence import Noted
from nyima.domain.ports import Looked, RecordFilter, Verifier
from nyima.domain.records import Claim, Interval, Provenance, Quote, Status
from nyima.domain.storage import Store
from nyima.language.times.moment import find_moment
from nyima.language.words import content_words, fold, sentences, words
from nyima.write.entities import Entities

if TYPE_CHECKING:  # it needs numpy, which a command that only looks at a memory does not load
    from nyima.write.partitions import Partitions

__all__ = ["ClaimsOf", "claim_id", "is_owners", "quote_of"]

_SUPPORT = 0.5
_OPEN = (Status.HOLDS, Status.PLANNED, Status.PENDING)
_NEAR = 6


def claim_id(turn: str, subject: str, attribute: str, value: str) -> str:
    """Return an id that follows from what is stated and where, so that writing twice adds once."""
    said = "\x1f".join((turn, subject, fold(attribute), fold(value)))
    return "c-" + hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]


def is_owners(turn: Turn) -> bool:
    """Return whether a turn is surely the owner's own words, so that it may state and end claims."""
    return turn.role is Role.USER and turn.origin in {Origin.USER, Origin.IMPORT}


def quote_of(value: str, turn: Turn) -> Quote | None:
    """Return the sentence of a turn that a value stands in: the one with most of its words, of which
    the turn must have at least half, and every number. None where it does not."""
    wanted = set(content_words(value))
    there = set(words(turn.text))
    numbers = {w for w in wanted if any(c.isdigit() for c in w)}
    if not wanted or len(wanted & there) < _SUPPORT * len(wanted) or not numbers <= there:
        return None
    best = max(sentences(turn.text), key=lambda s: len(wanted & set(words(s))), default="")
    start = turn.text.find(best.split("\n")[0]) if best else -1
    if start < 0:  # the sentence was put together over a line break
        return Quote(turn.id, 0, len(turn.text))
    return Quote(turn.id, start, min(len(turn.text), start + len(best)))


@dataclass(slots=True)
class ClaimsOf:
    """Works out the changes of one turn. ``answered`` is the assistant's question before it, if any:
    who says "yes" to it says its words. ``handed`` says that the message also hands over words that may
    be somebody else's: a paste, a quotation. With ``adds_only`` nothing is ever closed, for the baselines."""

    store: Store
    scope: Scope
    turn: Turn
    now: datetime
    zone: tzinfo
    places: Partitions
    verifier: Verifier | None
    made_by: Provenance
    answered: str = ""
    handed: bool = False
    adds_only: bool = False
    changes: list[Change] = field(default_factory=list[Change])
    refused: list[str] = field(default_factory=list[str])

    async def changes_of(self, noted: Sequence[Noted], outdated: Sequence[str], shown: Sequence[str]) -> list[Change]:
        """Return the changes for what was noted. ``outdated`` are the ids of claims that the reader says
        are over, ``shown`` those that the reader saw."""
        entities = Entities(self.store, self.scope, self.made_by, Interval(self.turn.at))
        new = [c for n in noted if (c := await self._claim(n, entities)) is not None]
        new = list({c.id: c for c in new}.values())
        near = await self._near(new, (*outdated, *shown))
        fresh = [claim for claim in new if not self._again(claim, near)]
        if not fresh and (self.handed or self.verifier is None):
            # Nothing is stated: words that may be somebody else's end nothing, nor does a number that nobody
            # looks at again.
            return self.changes
        numbered = {old.id for old in near if old.id in outdated}
        numbered |= {old.id for old in near for c in new if c.status in {Status.ENDED, Status.DENIED} and _ends(c, old)}
        pairs = [old for old in near if not any(c.says_the_same(old) for c in new) and self.turn.at >= old.valid.since]
        looked = await self._look(pairs, fresh, numbered)
        kept = self._kept(fresh, looked)
        if self.adds_only or not is_owners(self.turn):
            self.changes += [Add(claim) for claim in kept]
        else:
            self._supersede(kept, pairs, looked, numbered, {*shown})
        used = {id for c in self.changes for id in _ends_of(c)}
        return [*(Add(e) for id, e in entities.made.items() if id in used), *self.changes]

    async def _claim(self, noted: Noted, entities: Entities) -> Claim | None:
        """Return what was noted as a claim; None where the turn does not say its value."""
        quote = quote_of(noted.value, self.turn)
        if quote is None and self.answered and quote_of(noted.value, replace(self.turn, text=self.answered)):
            quote = Quote(self.turn.id, 0, len(self.turn.text))
        if quote is None:
            self.refused.append(f"{noted.who} {noted.what}: {noted.value}")
            return None
        subject = await entities.named(noted.who)
        value = await entities.value(noted.value)
        moment = find_moment(noted.value, self.turn.at, self.zone)
        status = Status(noted.status)
        if not is_owners(self.turn):
            status = Status.PENDING
        text = f"{subject.name} {noted.what}: {noted.value}"
        return Claim(
            id=claim_id(self.turn.id, subject.id, noted.what, noted.value),
            provenance=self.made_by,
            valid=Interval(self.turn.at),
            recorded=Interval(self.now),
            subject=subject.id,
            name=subject.name,
            attribute=noted.what,
            value=noted.value,
            object=value.id if value.id != subject.id else "",
            status=status,
            quote=quote,
            when="" if moment is None else moment.name,
            subclass=await self.places.of(text),
        )

    async def _near(self, new: Sequence[Claim], named: Sequence[str]) -> list[Claim]:
        """Return the claims that may be over: those that were shown or numbered, those of the same slots,
        and the nearest of each new claim, in its own partition first (Wang et al. 2024, section 4.2)."""
        asks = [RecordFilter(ids=tuple(named), at=self.turn.at)] if named else []
        asks += [RecordFilter(kinds=("claim",), slots=tuple({c.slot for c in new}), at=self.turn.at)] if new else []
        found = [r for where in asks for r in await self.store.records(self.scope, where)]
        for claim in new:
            found += await self.places.nearest(claim.text, claim.subclass, _NEAR)
        by_id = {r.id: r for r in found if isinstance(r, Claim) and r.status in _OPEN and r.recorded.until is None}
        own = {c.id for c in new}
        return [c for c in by_id.values() if c.id not in own and self.turn.id not in c.provenance.turns[-1:]]

    def _again(self, claim: Claim, near: Sequence[Claim]) -> bool:
        """Note that a claim is told again, where it is: its record gains the turn, and is certain. What was
        stated by hand rests on no turn, and goes on without one: else it would go with the turn."""
        same = next((old for old in near if claim.says_the_same(old)), None)
        if same is None:
            return False
        made = same.provenance
        if not made.turns and not same.stale:
            return True
        successor = replace(
            same,
            id=claim.id,
            provenance=replace(made, turns=tuple(dict.fromkeys((*made.turns, self.turn.id))) if made.turns else ()),
            recorded=Interval(self.now),
            supersedes=same.id,
            stale=False,
        )
        self.changes.append(Revise(same.id, successor, "told again"))
        return True

    async def _look(self, known: Sequence[Claim], new: Sequence[Claim], numbered: set[str]) -> Looked:
        """Ask for the second look. Where there is none, what the reader states stands on its quote, and what
        it calls over is only labelled. One that does not look further is shown what is numbered alone."""
        if self.verifier is None or not (known or new):
            return Looked((None,) * len(known), (True,) * len(new))
        if self.verifier.looks_further:
            return await self.verifier.look(self.scope, self.turn.text, known, new)
        asked = [claim for claim in known if claim.id in numbered]
        looked = await self.verifier.look(self.scope, self.turn.text, asked, new)
        over = dict(zip((claim.id for claim in asked), looked.over, strict=True))
        return Looked(tuple(over.get(claim.id, False) for claim in known), looked.said)

    def _kept(self, new: Sequence[Claim], looked: Looked) -> list[Claim]:
        """Return the new claims that the turn asserts, marked as uncertain where the second look is not
        sure of it."""
        kept: list[Claim] = []
        for claim, said in zip(new, looked.said, strict=True):
            if said is False:
                self.refused.append(claim.text)
            else:
                kept.append(replace(claim, stale=said is None))
        return kept

    def _supersede(
        self, new: Sequence[Claim], pairs: Sequence[Claim], looked: Looked, numbered: set[str], shown: set[str]
    ) -> None:
        """Close what both the reader and the second look say is over; of what one of them says so, mark
        both sides uncertain. What the reader did not see, it cannot speak of: there the second look alone
        decides."""
        closed: list[Claim] = []
        doubted: list[Claim] = []
        for old, over in zip(pairs, looked.over, strict=True):
            says = old.id in numbered
            if over and (says or old.id not in shown):
                closed.append(old)
            elif over or (says and over is None and new):
                doubted.append(old)  # a number beside which nothing is stated is no reason to doubt
        unsure = {c.id for old in doubted for c in new if _compete(c, old)}
        successors = {old.id: c for c in new for old in closed if c.slot == old.slot and c.status is Status.HOLDS}
        taken: set[str] = set()
        for old in closed:
            successor = successors.get(old.id)
            at = max(self.turn.at, old.valid.since)
            if successor is not None and successor.id not in taken:
                taken.add(successor.id)
                self.changes.append(
                    Revise(old.id, replace(successor, supersedes=old.id), "the user said something newer")
                )
            else:
                self.changes.append(Retire(old.id, at, "the user said that it is over"))
        for claim in new:
            if claim.id not in taken:
                self.changes.append(Add(replace(claim, stale=claim.stale or claim.id in unsure)))
        for old in doubted:
            if not old.stale:
                self.changes.append(Revise(old.id, _doubted(old, self.now), "it may be over"))


def _compete(new: Claim, old: Claim) -> bool:
    """Return whether a new claim may stand in the place of an old one."""
    return new.subject == old.subject and new.status is Status.HOLDS


def _ends(new: Claim, old: Claim) -> bool:
    """Return whether a claim that is noted as ended or denied names an open one: of the same subject,
    with the same value."""
    return new.subject == old.subject and fold(new.value) == fold(old.value)


def _doubted(old: Claim, now: datetime) -> Claim:
    id = f"{old.id.partition('~')[0]}~{now.strftime('%Y%m%d%H%M%S%f')}"
    return replace(old, id=id, recorded=Interval(now), stale=True, supersedes=old.id)


def _ends_of(change: Change) -> tuple[str, ...]:
    record = change.record if isinstance(change, Add) else change.successor if isinstance(change, Revise) else None
    return (record.subject, record.object) if isinstance(record, Claim) else ()
