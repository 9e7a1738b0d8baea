"""Judges: what is shown to the model, and what is made of its answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import SCOPE, T0, asks, note, piece
from nyima.domain.evidence import Evidence, Query
from nyima.domain.roles import Judgement
from nyima.read.judge import ChoosingJudge, ReflectingJudge, RelevanceJudge, ScoreJudge, ranked_by
from nyima.testing.doubles import Request

QUERY = Query("Where is my cat?", T0)
FOUND = [piece(note(f"n{i}", f"memory number {i}"), 0.9 - i / 10) for i in range(10)]


def ids(judgement: Judgement) -> list[str]:
    return [e.record_id for e in judgement.evidence]


async def test_scores_are_taken_as_they_are() -> None:
    assert await ScoreJudge().judge(SCOPE, QUERY, FOUND, last=False) == Judgement(tuple(FOUND))


@pytest.mark.parametrize("judge", [ReflectingJudge, ChoosingJudge, RelevanceJudge])
async def test_nothing_found_needs_no_call(judge: Any) -> None:
    caller, model = asks("{}", lane="x")
    assert await judge(caller).judge(SCOPE, QUERY, [], last=True) == Judgement(())
    assert not model.requests


# --- reflection ---


async def reflected(*answers: object, last: bool = False, found: list[Evidence] = FOUND) -> Judgement:
    caller, _ = asks(*answers, lane="reflect")
    return await ReflectingJudge(caller).judge(SCOPE, QUERY, found, last=last)


async def test_what_suffices_is_cut_to_what_matters_in_the_models_order() -> None:
    made = await reflected({"enough": True, "useful": [3, 1, 3]})
    assert ids(made) == ["n2", "n0"]
    assert [e.scores for e in made.evidence] == [{"reflection": 1.0}] * 2
    assert [e.score for e in made.evidence] == [FOUND[2].score, FOUND[0].score]
    assert made.prompt.startswith("reflect@")


@pytest.mark.parametrize("useful", [[], [0], [-1], [9], [99]])
async def test_numbers_that_were_not_shown_choose_nothing_and_all_stays(useful: list[int]) -> None:
    assert ids(await reflected({"enough": True, "useful": useful})) == [e.record_id for e in FOUND]


async def test_what_does_not_suffice_is_searched_for_again() -> None:
    made = await reflected({"enough": False, "useful": [1], "keywords": [" cat ", "sofa", "", "cat", "x" * 99]})
    assert (made.enough, ids(made)) == (False, [e.record_id for e in FOUND])
    assert made.keywords == ("cat", "sofa", "x" * 60)
    many = await reflected({"enough": False, "keywords": [f"k{i}" for i in range(9)]})
    assert many.keywords == ("k0", "k1", "k2", "k3", "k4")


@pytest.mark.parametrize(("keywords", "last"), [([], False), (["  "], False), (["cat"], True)])
async def test_without_words_or_in_the_last_round_there_is_no_further_search(keywords: list[str], last: bool) -> None:
    made = await reflected({"enough": False, "keywords": keywords}, last=last)
    assert made.enough
    assert len(made.evidence) == len(FOUND)


async def test_an_answer_that_cannot_be_read_keeps_all_and_is_counted() -> None:
    caller, model = asks("no", "idea", lane="reflect")
    made = await ReflectingJudge(caller).judge(SCOPE, QUERY, FOUND, last=False)
    assert ids(made) == [e.record_id for e in FOUND]
    assert made.enough
    assert len(model.requests) == 2, "asked once again, not more"
    assert "fallback" in [e.body["outcome"] for e in await caller.store.events(SCOPE, "call")]


async def test_a_few_memories_are_shown_and_each_is_short() -> None:
    caller, model = asks({"enough": True}, lane="reflect")
    long = [piece(note(f"n{i}", f"start{i} " + "word " * 500)) for i in range(9)]
    await ReflectingJudge(caller, most=3, size=20).judge(SCOPE, QUERY, long, last=False)
    assert [f"start{i}" in model.requests[0].last for i in range(9)] == [True] * 3 + [False] * 6
    assert len(model.requests[0].last) < 900


# --- choice ---


async def chosen(answer: object) -> Judgement:
    caller, _ = asks(answer, lane="choose")
    return await ChoosingJudge(caller).judge(SCOPE, QUERY, FOUND, last=True)


async def test_the_chosen_pieces_all_count_alike() -> None:
    made = await chosen({"useful": [2, 10, 2, 11, 0]})
    assert [(e.record_id, e.score, e.scores) for e in made.evidence] == [
        ("n1", 1.0, {"chosen": 1.0}), ("n9", 1.0, {"chosen": 1.0}),
    ]  # fmt: skip


@pytest.mark.parametrize("answer", [{"useful": []}, "not a choice", "[]"])
async def test_no_choice_is_nothing(answer: object) -> None:
    made = await chosen(answer)
    assert made.evidence == ()
    assert made.prompt.startswith("choose@")


# --- relevance ---


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=8))
def test_a_relevance_is_a_tenth_and_the_order_is_the_judges_own(given: list[tuple[float, float]]) -> None:
    pieces = [piece(note(f"n{i}", "x"), before) for i, (before, _) in enumerate(given)]
    ranked = ranked_by(pieces, [after for _, after in given])
    assert sorted(e.record_id for e in ranked) == sorted(e.record_id for e in pieces)
    assert all(e.score == e.relevance for e in ranked)
    judged = [e.scores["judge"] for e in ranked]
    assert judged == sorted(judged, reverse=True)
    assert {e.record_id: e.scores["retriever"] for e in ranked} == {e.record_id: round(e.score, 4) for e in pieces}


def test_equal_judgements_stay_in_the_retrievers_order() -> None:
    pieces = [piece(note(id, "x"), score) for id, score in (("b", 0.2), ("c", 0.7), ("a", 0.2))]
    assert [e.record_id for e in ranked_by(pieces, [0.5, 0.5, 0.5])] == ["c", "a", "b"]


def test_a_score_for_each_piece_is_needed() -> None:
    with pytest.raises(ValueError, match="zip"):
        ranked_by(FOUND, [0.5])


async def test_only_the_best_of_the_retrievers_are_judged() -> None:
    caller, model = asks({"relevance": 7}, lane="relevance")
    made = await RelevanceJudge(caller, most=3).judge(SCOPE, QUERY, FOUND, last=True)
    assert ids(made) == ["n0", "n1", "n2"]
    assert len(model.requests) == 3


async def test_a_piece_whose_answer_cannot_be_read_keeps_the_retrievers_score() -> None:
    def one(request: Request) -> str:
        return "rubbish" if "number 1" in request.messages[1].content else json.dumps({"relevance": 3})

    caller, _ = asks(lane="relevance")
    caller.model.script["relevance"] = [one]  # type: ignore[attr-defined]
    made = await RelevanceJudge(caller).judge(SCOPE, QUERY, FOUND[:3], last=True)
    assert [(e.record_id, e.score) for e in made.evidence] == [("n1", 0.8), ("n0", 0.3), ("n2", 0.3)]


@pytest.mark.parametrize("value", [-1, 11, 2.5, "much", None])
async def test_a_relevance_off_the_scale_cannot_be_read(value: object) -> None:
    caller, _ = asks({"relevance": value}, lane="relevance")
    (only,) = (await RelevanceJudge(caller).judge(SCOPE, QUERY, FOUND[:1], last=True)).evidence
    assert only.score == FOUND[0].relevance


async def test_the_judge_reads_the_last_lines_of_the_dialogue() -> None:
    caller, model = asks({"relevance": 1}, lane="relevance")
    lines = tuple(("user", f"line {i}") for i in range(6))
    await RelevanceJudge(caller, turns=2).judge(SCOPE, Query("q", T0, dialogue=lines), FOUND[:1], last=True)
    assert ["line 3" in model.requests[0].last, "line 4" in model.requests[0].last] == [False, True]
    await RelevanceJudge(caller).judge(SCOPE, QUERY, FOUND[:1], last=True)
    assert "(none)" in model.requests[1].last
