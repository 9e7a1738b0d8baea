"""The read path: rounds, failures, dependencies, the cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from made import SCOPE, T0, claim, episode, note, piece
from nyima.domain.conversation import Scope
from nyima.domain.evidence import Budget, Evidence, Query, Recall, Step
from nyima.domain.records import Interval
from nyima.domain.roles import Judgement, Planned, Retriever
from nyima.errors import ModelError, ModelUnreachable, PackError, SourceFailed, StoreError
from nyima.read.embedding import QueryEmbedder
from nyima.read.outdating import Outdating
from nyima.read.recall import BudgetSelector, Recaller
from nyima.testing import MemoryStore

QUERY = Query("the cat", T0)


class Shelf:
    """A source with fixed pieces, or one that fails; keeps the steps."""

    def __init__(self, *pieces: Evidence, error: Exception | None = None) -> None:
        self.pieces, self.error, self.steps = pieces, error, list[Step]()

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        self.steps.append(step)
        if self.error is not None:
            raise self.error
        return list(self.pieces)


class Plans:
    def __init__(self, *names: str, after: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self.names, self.after = names, after or {}

    async def plan(self, scope: Scope, query: Query) -> Planned:
        return Planned(tuple(Step(n, query, 3, self.after.get(n, ())) for n in self.names), "test", "plan@1")


class Judges:
    """Says round after round whether it is enough."""

    def __init__(self, *enough: bool, keep: int = 99) -> None:
        self.enough, self.keep, self.lasts = list(enough), keep, list[bool]()

    async def judge(self, scope: Scope, query: Query, evidence: Sequence[Evidence], *, last: bool) -> Judgement:
        self.lasts.append(last)
        enough = self.enough.pop(0) if self.enough else True
        return Judgement(tuple(evidence[: self.keep]), enough, () if enough else (f"word{len(self.lasts)}",), "judge@1")


async def recalled(
    shelves: Mapping[str, Shelf],
    plan: Plans | None = None,
    judge: Judges | None = None,
    rounds: int = 0,
    query: Query = QUERY,
) -> Recall:
    found: dict[str, Retriever] = dict(shelves)
    made = Recaller(
        MemoryStore(), plan or Plans(*shelves), found, judge or Judges(), BudgetSelector(), QueryEmbedder(None), rounds
    )
    return await made.recall(SCOPE, query, Budget())


A, B, C = (piece(note(id, f"text of {id}"), score) for id, score in (("a", 0.9), ("b", 0.6), ("c", 0.3)))


async def test_what_every_source_brings_is_ranked_together() -> None:
    found = await recalled({"one": Shelf(C, A), "two": Shelf(B)})
    assert [e.record_id for e in found.found] == ["a", "b", "c"]
    assert found.kept == found.found
    assert (found.planner, found.prompts, found.rounds) == ("test", ("plan@1", "judge@1"), 0)
    assert set(found.ms) == {"plan", "embed", "search", "total"}


async def test_a_plan_of_nothing_asks_nothing() -> None:
    shelf, judge = Shelf(A), Judges()
    found = await recalled({"one": shelf}, Plans(), judge)
    assert (found.plan, found.found, found.kept, found.skipped) == ((), (), (), ("one",))
    assert (shelf.steps, judge.lasts) == ([], [])


async def test_sources_that_were_not_planned_are_named() -> None:
    assert (await recalled({"one": Shelf(A), "two": Shelf(B)}, Plans("two"))).skipped == ("one",)


@pytest.mark.parametrize("error", [ModelUnreachable("gone"), SourceFailed("gone")])
async def test_a_source_that_fails_is_left_out_with_its_reason(error: Exception) -> None:
    found = await recalled({"one": Shelf(error=error), "two": Shelf(B)})
    assert [e.record_id for e in found.kept] == ["b"]
    assert found.failed == {"one": "gone"}


async def test_a_store_that_fails_is_an_error() -> None:
    with pytest.raises(StoreError):
        await recalled({"one": Shelf(error=StoreError("disk")), "two": Shelf(B)})


# --- further rounds ---


async def test_it_searches_again_with_the_judges_words_until_it_is_enough() -> None:
    shelf, judge = Shelf(A), Judges(False, False, True)
    found = await recalled({"one": shelf}, judge=judge, rounds=5)
    assert [s.query.keywords for s in shelf.steps] == [(), ("word1",), ("word1", "word2")]
    assert (found.rounds, found.keywords, found.query.keywords) == (2, ("word1", "word2"), ("word1", "word2"))
    assert judge.lasts == [False, False, False]


@pytest.mark.parametrize("rounds", [0, 1, 3])
async def test_it_ends_after_the_rounds_and_the_judge_knows_the_last(rounds: int) -> None:
    shelf, judge = Shelf(A), Judges(*[False] * 9)
    found = await recalled({"one": shelf}, judge=judge, rounds=rounds)
    assert len(shelf.steps) == rounds + 1
    assert judge.lasts == [False] * rounds + [True]
    assert found.rounds == rounds


async def test_the_keywords_of_the_question_come_first() -> None:
    shelf = Shelf(A)
    await recalled({"one": shelf}, judge=Judges(False), rounds=1, query=replace(QUERY, keywords=("own",)))
    assert [s.query.keywords for s in shelf.steps] == [("own",), ("own", "word1")]


async def test_what_the_judge_leaves_out_was_still_found() -> None:
    found = await recalled({"one": Shelf(A, B, C)}, judge=Judges(keep=1))
    assert [e.record_id for e in found.kept] == ["a"]
    assert [e.record_id for e in found.found] == ["a", "b", "c"]
    assert [e.record_id for e in found.dropped] == ["b", "c"]


# --- dependencies, kinds, time ---


async def test_a_source_is_asked_after_those_that_it_depends_on_with_what_they_brought() -> None:
    profile, documents, prices = Shelf(A), Shelf(B), Shelf(C)
    plan = Plans(
        "prices", "documents", "profile", after={"documents": ("profile",), "prices": ("documents", "profile", "web")}
    )
    await recalled({"profile": profile, "documents": documents, "prices": prices}, plan)
    assert profile.steps[0].given == ()
    assert [e.record_id for e in documents.steps[0].given] == ["a"]
    assert [e.record_id for e in prices.steps[0].given] == ["b", "a"], "what was not planned brings nothing"


async def test_a_source_that_failed_gives_nothing_to_the_next() -> None:
    documents = Shelf(B)
    plan = Plans("profile", "documents", after={"documents": ("profile",)})
    found = await recalled({"profile": Shelf(error=SourceFailed("x")), "documents": documents}, plan)
    assert (documents.steps[0].given, [e.record_id for e in found.kept]) == ((), ["b"])


async def test_only_the_wanted_kinds_come_back() -> None:
    mixed = Shelf(piece(claim("f", "pet", "cat")), piece(episode("e", "my cat")), A)
    found = await recalled({"one": mixed}, query=replace(QUERY, kinds=("claim", "episode")))
    assert {e.record_id for e in found.found} == {"f", "e"}


async def test_the_same_record_from_two_sources_counts_once_with_its_best_score() -> None:
    found = await recalled({"one": Shelf(replace(A, score=0.2)), "two": Shelf(A)})
    assert [e.score for e in found.found] == [0.9]


async def test_a_time_in_the_question_is_read_where_none_is_given() -> None:
    asked = Query("what did I say yesterday?", T0)
    period = (await recalled({"one": Shelf(A)}, query=asked)).query.period
    assert period is not None
    assert period.contains(T0 - timedelta(days=1))
    own = Interval(T0)
    assert (await recalled({"one": Shelf(A)}, query=replace(asked, period=own))).query.period == own
    assert (await recalled({"one": Shelf(A)})).query.period is None


# --- the cut ---


def kept(
    *scores: float, floor: float = 0.0, share: float = 0.0, limits: Mapping[str, int] | None = None
) -> list[float]:
    pieces = [piece(note(f"n{i}", f"number {i}"), s) for i, s in enumerate(scores)]
    selection = BudgetSelector(floor, share, limits or {}).select(QUERY, pieces, Budget(3, 1_000))
    assert selection.walk == ()
    return [e.score for e in selection.kept]


def test_below_the_floor_nothing_is_kept_and_above_it_the_weak_ones_stay() -> None:
    assert kept(0.29, 0.1, floor=0.3) == []
    assert kept(0.3, 0.1, floor=0.3) == [0.3, 0.1]
    assert kept() == []


def test_a_share_of_the_best_is_needed() -> None:
    assert kept(0.8, 0.4, 0.39, share=0.5) == [0.8, 0.4]
    assert kept(0.0, 0.0, share=0.5) == [0.0, 0.0]


def test_a_source_may_bring_as_many_as_its_limit() -> None:
    assert kept(0.3, 0.9, 0.5, 0.7) == [0.9, 0.7, 0.5]
    assert kept(0.3, 0.9, 0.5, limits={"notes": 2, "web": 0}) == [0.9, 0.5]


class Compares:
    """Says of every pair that the newer one makes the older one untrue, or fails."""

    name = "compares"

    def __init__(self, error: ModelError | None = None) -> None:
        self.error = error

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        if self.error is not None:
            raise self.error
        return [1.0] * len(pairs)


@pytest.mark.parametrize(
    ("error", "order", "failed"),
    [
        (None, ["new", "old"], {}),
        (PackError("the judge is damaged"), ["old", "new"], {"outdating": "the judge is damaged"}),
    ],
)
async def test_what_is_out_of_date_stands_behind_what_is_newer(
    error: ModelError | None, order: list[str], failed: Mapping[str, str]
) -> None:
    old = piece(episode("old", "I live in Leeds"), score=0.9)
    new = piece(episode("new", "I moved", valid=Interval(T0 + timedelta(days=3))), score=0.5)
    recaller = Recaller(
        MemoryStore(), Plans("s"), {"s": Shelf(old, new)}, Judges(True), BudgetSelector(), QueryEmbedder(None),
        outdating=Outdating(Compares(error), 0.5),
    )  # fmt: skip
    found = await recaller.recall(SCOPE, QUERY, Budget())
    assert [e.record.id for e in found.kept] == order
    assert [e.label for e in found.kept if e.record.id == "old"] == ["" if error else "earlier"]
    assert found.failed == failed
