"""Activation and the walk (Wang et al. 2024, section 4.3): the best memories of a question
activate their nodes; from there a policy goes depth first, includes a memory and goes on,
or stops the branch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Budget, Evidence, Query, Selection, Step, Visit
from nyima.domain.mechanism import Mechanism, Source
from nyima.domain.ports import RecordFilter, Vector
from nyima.domain.recipe import SourceSpec
from nyima.domain.records import ME, Claim
from nyima.domain.roles import Retriever
from nyima.domain.storage import Store
from nyima.errors import ModelError
from nyima.language.english.questions import MENTION, WH
from nyima.language.words import content_words
from nyima.mechanisms.graph.policy import WalkPolicy, policy_of
from nyima.read.kit import Kit
from nyima.read.ranking import coverage, select
from nyima.read.search import SearchRetriever
from nyima.write.partitions import Embed, floats

__all__ = ["MECHANISM", "GraphRetriever", "WalkSelector", "question_parts", "walk", "walked"]

SOURCE = "graph"
_HOPS = 2
_MOST = 40
_FANOUT = 12


def question_parts(text: str) -> tuple[str, str]:
    """The entity and the relation that a question is about; both are the whole question
    when it does not show them."""
    mentions = MENTION.findall(text)
    rest = WH.sub("", MENTION.sub(" ", text))
    relation = " ".join(content_words(rest))
    entity = " ".join(m for m in mentions if m != "I")
    words = relation.split()
    if not entity and len(words) > 1:
        entity, relation = " ".join(words[-2:]), " ".join(words[:-2]) or words[0]
    return entity or text, relation or text


@dataclass(slots=True)
class GraphRetriever:
    """Brings the activated memories with their neighbourhood; each piece carries its state
    in ``scores`` (``node``, ``edge``, ``memory``) and, when it was activated, its rank.
    ``from_root`` leaves the activation out (the ablation of table 4)."""

    store: Store
    inner: Retriever
    embed: Embed | None
    from_root: bool = False
    labels: dict[str, Vector] = field(default_factory=dict[str, Vector])

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        """The neighbourhood, the activated memories first."""
        active = [e for e in await self.inner.retrieve(scope, step) if isinstance(e.record, Claim)]
        start = await self._root(scope, step.query) if self.from_root else active
        around = await self._around(scope, step.query, start)
        return await self._states(scope, step.query, start, around)

    async def _root(self, scope: Scope, query: Query) -> list[Evidence]:
        linked = await self._linked(scope, query, (ME,))
        return [Evidence(r.text, SOURCE, 0.5, r, r.valid.since) for r in linked[:_FANOUT]]

    async def _linked(self, scope: Scope, query: Query, ids: Sequence[str]) -> list[Claim]:
        where = RecordFilter(kinds=("claim",), turns=tuple(ids), at=query.at, as_of=query.as_of, limit=200)
        return [r for r in await self.store.records(scope, where) if isinstance(r, Claim)]

    async def _around(self, scope: Scope, query: Query, start: Sequence[Evidence]) -> list[Claim]:
        found: dict[str, Claim] = {}
        ends = {id for e in start if isinstance(e.record, Claim) for id in _ends(e.record)}
        seen: set[str] = set()
        for _ in range(_HOPS):
            if not ends or len(found) >= _MOST:
                break
            linked = await self._linked(scope, query, tuple(sorted(ends)))
            seen |= ends
            for claim in linked:
                found.setdefault(claim.id, claim)
            ends = {id for r in linked for id in _ends(r)} - seen
        have = {e.record.id for e in start}
        return [r for r in found.values() if r.id not in have][:_MOST]

    async def _states(
        self, scope: Scope, query: Query, active: Sequence[Evidence], around: Sequence[Claim]
    ) -> list[Evidence]:
        near = [Evidence(r.text, SOURCE, 0.0, r, r.valid.since) for r in around]
        pieces = [(rank, e) for rank, e in enumerate(active)] + [(-1, e) for e in near]
        claims = [e.record for _, e in pieces if isinstance(e.record, Claim)]
        measure = await self._measure(scope, query, claims)
        out: list[Evidence] = []
        for rank, piece in pieces:
            assert isinstance(piece.record, Claim)
            node, edge, memory = measure(piece.record)
            scores = {**piece.scores, "node": node, "edge": edge, "memory": memory}
            scores |= {"activated": float(rank)} if rank >= 0 else {}
            score = piece.score if rank >= 0 else round(max(0.0, memory), 6)
            out.append(replace(piece, source=SOURCE, score=score, scores=scores))
        return out

    async def _measure(
        self, scope: Scope, query: Query, claims: Sequence[Claim]
    ) -> Callable[[Claim], tuple[float, float, float]]:
        """The three cosines of a memory; shares of words where there are no vectors."""
        entity, relation = question_parts(query.text)
        try:
            if self.embed is None or not claims:
                raise ModelError("no vectors")
            asked = [floats(v) for v in await self.embed([query.words(), entity, relation])]
            missing = sorted({r.attribute for r in claims} - set(self.labels))
            if missing:
                made = await self.embed(missing)
                self.labels |= dict(zip(missing, made, strict=True))
        except ModelError:

            def shares(r: Claim) -> tuple[float, float, float]:
                return (
                    coverage(entity, r.value),
                    coverage(relation, r.attribute),
                    coverage(query.words(), r.text),
                )

            return shares
        ids = {i for r in claims for i in (r.id, r.object) if i}
        held = await self.store.vectors(scope, sorted(ids))
        question, node, edge = asked

        def cosines(r: Claim) -> tuple[float, float, float]:
            def cosine(a: NDArray[np.float32], b: Vector | None) -> float:
                return round(float(a @ floats(b)), 4) if b is not None else 0.0

            return (
                cosine(node, held.get(r.object)),
                cosine(edge, self.labels.get(r.attribute)),
                cosine(question, held.get(r.id)),
            )

        return cosines


def _ends(claim: Claim) -> set[str]:
    """Where the walk may go on from a memory: its entities and the turn that told it, but
    not the user, with whom everything is related."""
    return {claim.subject, claim.object, *claim.provenance.turns} - {ME, ""}


def walk(
    pieces: Sequence[Evidence], policy: WalkPolicy, draw: Callable[[], float] | None = None
) -> tuple[list[Evidence], list[Visit]]:
    """Depth first from each activated memory: included ones with the steps that were taken.
    With ``draw`` (numbers in 0..1) actions are sampled, else the likelier one is taken."""
    beside: dict[str, list[Evidence]] = {}
    for piece in pieces:
        assert isinstance(piece.record, Claim)
        for end in _ends(piece.record):
            beside.setdefault(end, []).append(piece)
    seen: set[str] = set()
    kept: list[Evidence] = []
    visits: list[Visit] = []
    start = [p for p in pieces if "activated" in p.scores]
    stack = sorted(start, key=lambda p: (-p.scores["activated"], p.record.id))
    while stack:
        piece = stack.pop()
        if piece.record.id in seen:
            continue
        seen.add(piece.record.id)
        state = (piece.scores["node"], piece.scores["edge"], piece.scores["memory"])
        chance = policy.include(state)
        action = int(chance >= 0.5 if draw is None else draw() < chance)
        taken = chance if action else 1 - chance
        visits.append(Visit(piece.record.id, state, action, math.log(max(taken, 1e-12))))
        if not action:
            continue
        kept.append(replace(piece, scores={**piece.scores, "policy": round(chance, 4)}))
        assert isinstance(piece.record, Claim)
        ends = _ends(piece.record)
        near = {p.record.id: p for end in sorted(ends) for p in beside.get(end, ()) if p.record.id not in seen}
        stack += sorted(near.values(), key=lambda p: (p.scores["memory"], p.record.id))
    return kept, visits


@dataclass(frozen=True, slots=True)
class WalkSelector:
    """Selector ``policy``: walks over what the graph brought; a rule cuts the rest. What the
    graph says and another source says too is kept once."""

    policy: WalkPolicy
    floor: float = 0.0
    share: float = 0.0
    limits: Mapping[str, int] = field(default_factory=dict[str, int])

    def select(self, query: Query, evidence: Sequence[Evidence], budget: Budget) -> Selection:
        """What is kept, best first, with the walk."""
        del query
        walked, visits = walk([e for e in evidence if e.source == SOURCE], self.policy)
        plain = [e for e in evidence if e.source != SOURCE]
        best = max((e.score for e in (*plain, *walked)), default=0.0)
        if best < self.floor:
            return Selection((), tuple(visits))
        near = [e for e in plain if e.score >= self.share * best]
        limits = {name: n for name, n in self.limits.items() if name != SOURCE}
        return Selection(tuple(select([*near, *walked], budget, limits)), tuple(visits))


def walked(kit: Kit, spec: SourceSpec) -> GraphRetriever:
    """The graph's retriever, over a search by words and vectors."""
    found = SearchRetriever(kit.store, kit.vectors, kit.kinds[spec.name], "hybrid", spec.weights, spec.turns)
    return GraphRetriever(kit.store, found, kit.embed, kit.recipe.from_root, kit.loaded("labels", dict))


MECHANISM = Mechanism(
    "graph",
    "people, things and events, how they are related, and what changes (Wang et al. 2024)",
    sources=(Source("graph", "people, things, events and how they are related to the user", kinds=("claim",)),),
    retrievers={"walk": walked},
    selectors={"policy": lambda kit, *cut: WalkSelector(policy_of(kit.learned.get("policy", {})), *cut)},
    learns=("policy",),
)
