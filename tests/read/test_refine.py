"""Which pieces give way, and which draft stays."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import SCOPE, T0, note, piece
from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence, Query, Recall, Review, Step
from nyima.errors import ModelUnreachable
from nyima.read.refine import Refiner, replaced

QUERY = Query("q", T0)


def pieces(prefix: str, scores: Sequence[float], source: str = "notes") -> tuple[Evidence, ...]:
    return tuple(piece(note(f"{prefix}{i}", f"{prefix}{i}"), s, source) for i, s in enumerate(scores))


def recalled(kept: tuple[Evidence, ...], more: tuple[Evidence, ...] = ()) -> Recall:
    return Recall(QUERY, (Step("notes", QUERY, 3),), (*kept, *more), kept)


class Says:
    """A critic with the consistencies of one draft after another, the same for each piece."""

    def __init__(self, *rounds: float | Exception) -> None:
        self.rounds, self.drafts = list(rounds), list[str]()

    async def consistency(self, scope: Scope, evidence: Sequence[Evidence], draft: str) -> list[float]:
        self.drafts.append(draft)
        value = self.rounds.pop(0) if len(self.rounds) > 1 else self.rounds[0]
        if isinstance(value, Exception):
            raise value
        return [value] * len(evidence)


KEPT, SPARE = pieces("k", (0.9, 0.8, 0.7)), pieces("s", (0.6, 0.5, 0.4, 0.3))


@given(st.integers(0, 5), st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_the_lowest_by_consistency_times_relevance_give_way_to_the_best_novel_ones(
    alpha: int, consistency: list[float]
) -> None:
    review = Review("d", tuple((e.record_id, c) for e, c in zip(KEPT, consistency, strict=True)), 0.0, False)
    made, gone = replaced(recalled(KEPT, SPARE), review, alpha, {e.record_id for e in KEPT})
    worth = {e.record_id: c * e.relevance for e, c in zip(KEPT, consistency, strict=True)}
    assert len(gone) == min(alpha, 3)
    assert max((worth[id] for id in gone), default=0.0) <= min(
        (w for id, w in worth.items() if id not in gone), default=1.0
    )
    assert {e.record_id for e in made if e not in KEPT} == {e.record_id for e in SPARE[: len(gone)]}
    assert [e for e in made if e in KEPT] == [e for e in KEPT if e.record_id not in gone], "the others stay in place"


def test_what_is_hardly_relevant_gives_way_although_it_agrees_better() -> None:
    kept = pieces("k", (0.9, 0.3))
    review = Review("d", (("k0", 0.2), ("k1", 0.5)), 0.0, False)
    assert replaced(recalled(kept, SPARE), review, 1, {"k0", "k1"})[1] == ("k1",)


def test_a_piece_gives_way_to_its_own_source_only() -> None:
    other = pieces("o", (0.9,), "profile")
    review = Review("d", (), 0.0, False)
    assert replaced(recalled(KEPT, other), review, 2, {"k0", "k1", "k2"}) == (KEPT, ())
    made, gone = replaced(recalled((*KEPT[:1], *other), SPARE[:1]), review, 2, {"k0", "o0"})
    assert ([e.record_id for e in made], gone) == (["s0", "o0"], ("k0",))


def test_what_was_shown_before_does_not_come_back() -> None:
    made, _ = replaced(recalled(KEPT, SPARE), Review("d", (), 0.0, False), 1, {"k0", "k1", "k2", "s0", "s1"})
    assert "s2" in {e.record_id for e in made}


async def never(recall: Recall) -> str:
    raise AssertionError("no other draft was needed")


@pytest.mark.parametrize(
    ("recall", "draft"),
    [
        (Recall(QUERY, (), KEPT, KEPT), "d"),
        (Recall(QUERY, (Step("notes", QUERY, 3),), KEPT), "d"),
        (recalled(KEPT), "  "),
    ],
)
async def test_nothing_is_refined_without_plan_evidence_or_draft(recall: Recall, draft: str) -> None:
    critic = Says(0.0)
    assert await Refiner(critic).refine(SCOPE, recall, draft, never) == (draft, recall)
    assert critic.drafts == []


async def test_a_consistent_draft_stays_with_its_review() -> None:
    text, end = await Refiner(Says(0.5)).refine(SCOPE, recalled(KEPT, SPARE), "first", never)
    (review,) = end.reviews
    assert (text, review.consistent, review.replaced) == ("first", True, ())
    assert dict(review.scores) == {"k0": 0.5, "k1": 0.5, "k2": 0.5}


async def test_a_draft_for_which_there_is_nothing_else_stays() -> None:
    text, end = await Refiner(Says(0.0), rounds=3).refine(SCOPE, recalled(KEPT), "first", never)
    assert (text, len(end.reviews)) == ("first", 1)


async def drafted(
    *rounds: float | Exception, drafts: Sequence[str] = ("second", "third"), n: int = 2
) -> tuple[str, Recall]:
    waiting = list(drafts)

    async def again(recall: Recall) -> str:
        return waiting.pop(0)

    return await Refiner(Says(*rounds), n).refine(SCOPE, recalled(KEPT, SPARE), "first", again)


@pytest.mark.parametrize(
    ("rounds", "best"),
    [((0.1, 0.2, 0.3), "third"), ((0.3, 0.2, 0.1), "first"), ((0.1, 0.3, 0.2), "second"), ((0.2, 0.2, 0.2), "first")],
)
async def test_the_most_consistent_draft_stays_and_of_equal_ones_the_first(
    rounds: tuple[float, ...], best: str
) -> None:
    text, end = await drafted(*rounds)
    assert text == best
    assert [r.draft for r in end.reviews] == ["first", "second", "third"]
    came_in = {"first": set(), "second": {"s0"}, "third": {"s1"}}[best]
    assert {e.record_id for e in end.kept} - {e.record_id for e in KEPT} == came_in, "with what it was written from"


async def test_the_last_draft_is_reviewed_and_replaces_nothing() -> None:
    _, end = await drafted(0.0, n=1)
    assert [len(r.replaced) for r in end.reviews] == [1, 0]


async def test_an_empty_draft_ends_it() -> None:
    text, end = await drafted(0.1, 0.9, drafts=(" ",))
    assert (text, len(end.reviews)) == ("first", 1)


async def test_a_critic_that_fails_later_leaves_the_best_so_far() -> None:
    text, end = await drafted(0.1, 0.3, ModelUnreachable("gone"))
    assert (text, end.failed) == ("second", {"critic": "gone"})


async def test_a_draft_must_agree_with_what_matters_most_alone() -> None:
    class Half(Says):
        async def consistency(self, scope: Scope, evidence: Sequence[Evidence], draft: str) -> list[float]:
            return [1.0 if e.score < 0.4 else 0.2 for e in evidence]

    weak = pieces("w", (0.9, 0.3))
    _, end = await Refiner(Half(0.0)).refine(SCOPE, recalled(weak), "first", never)
    assert end.reviews[0].consistency == 0.2, "what is hardly relevant does not save it"
