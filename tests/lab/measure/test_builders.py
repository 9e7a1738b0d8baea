"""The three test sets of the conditional paper, with validity checks, and pools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nyima.domain.conversation import Role
from nyima.errors import ModelUnreachable
from nyima.memory import Said
from nyima.testing import ScriptedModel
from nyima.testing.contract import T0
from nyima.testing.doubles import Request
from nyima_lab.measure.builders import Built, build, merge_pools
from nyima_lab.measure.cases import Case, Gold, Question
from nyima_lab.measure.replay import Calls, ReplayedModel

TURNS = (
    Said("I bake rye bread on Sundays.", Role.USER, T0, id="1:0"),
    Said("Lovely!", Role.ASSISTANT, T0, id="1:1"),
    Said("The wooden boat needs paint again.", Role.USER, T0, id="1:2"),
)
DIALOGUE = Case(
    "ivy",
    (("1", TURNS),),
    (),
    "en",
    (
        Gold("I bake rye bread.", Role.USER, "1", "1:0"),
        Gold("I bake rye bread.", Role.USER, "persona"),
        Gold("I own a boat.", Role.USER, "persona"),
        Gold("I have two parrots.", Role.USER, "persona"),
        Gold("I sail.", Role.ASSISTANT, "persona"),
    ),
)


def questions(request: Request) -> str:
    made = {
        "I bake rye bread.": {"question": "What do you bake?", "answer": "You bake rye bread."},
        "I own a boat.": {"question": "Do I own a boat?", "answer": "You own a boat."},
    }
    return json.dumps(made[request.last])


def heard(request: Request) -> str:
    return json.dumps({"said": "boat" in request.last.split("Sentence:")[1]})


async def all_of(kind: str, cases: list[Case], model: object) -> list[Built]:
    return [b async for b in build(kind, cases, model)]  # type: ignore[arg-type]


@pytest.mark.req("cond.build-knowledge")
async def test_knowledge_asks_for_each_persona_sentence_that_was_said() -> None:
    model = ScriptedModel({"build-question": [questions], "build-said": [heard]})
    (built,) = await all_of("knowledge", [DIALOGUE], model)
    (question,) = built.case.questions
    assert question.text == "What do I bake?"  # as the user would ask
    assert (question.answer, question.gold) == ("You bake rye bread.", frozenset({"1:0"}))
    assert question.at is not None
    assert question.at > T0
    assert any("not said: I have two parrots." in r for r in built.left_out)
    assert any("gives itself away: Do I own a boat?" in r for r in built.left_out)
    asked = model.asked("build-said")
    assert len(asked) == 2  # persona_text says the bread was told; the rest is checked
    assert "Lovely" not in asked[0].last  # only what the user said counts


@pytest.mark.req("cond.build-continue")
async def test_continuing_must_not_be_answerable_without_the_dialogue() -> None:
    turn = '{"detail": "rye", "question": "Which bread do I bake on Sundays?", "answer": "Rye bread."}'
    model = ScriptedModel(
        {"build-continue": [turn], "build-answerable": ['{"answerable": false}', '{"answerable": true}']}
    )
    good, bad = await all_of("continue", [DIALOGUE, DIALOGUE], model)
    assert good.case.questions[0].answer == "Rye bread."
    assert good.case.sessions == (("1", TURNS),)
    assert bad.case.questions == ()
    assert "stands alone" in bad.left_out[0]
    assert "User: I bake rye bread" in model.asked("build-continue")[0].last
    assert "Dialogue" not in model.asked("build-answerable")[0].last
    (empty,) = await all_of("continue", [Case("none", ())], model)
    assert "no dialogue" in empty.left_out[0]


@pytest.mark.req("cond.build-feedback")
async def test_feedback_has_first_answers_one_suggestion_improved_answers_and_a_background() -> None:
    background = {f"{who}_{n}": f"{who} {n}" for n in (1, 2, 3) for who in ("user", "assistant")}
    answers = [
        '{"text": "An apple."}',
        '{"text": "A pear."}',
        '{"text": "An apple, 80 kcal."}',
        '{"text": "A pear, 90 kcal."}',
    ]
    model = ScriptedModel(
        {
            "build-similar": ['{"text": "Name a pale fruit."}'], "build-answer": [*answers],
            "build-suggestion": ['{"text": "Please give the calories, too."}'], "build-background": [json.dumps(background)],
        }
    )  # fmt: skip
    seed = Case("seed_1", (), (Question("Name a red fruit.", answer="apple", id="0"),), "en")
    (built,) = await all_of("feedback", [seed], model)
    texts = [t.text for t in built.case.sessions[0][1]]
    assert texts[-4:] == ["Name a red fruit.", "An apple.", "Please give the calories, too.", "An apple, 80 kcal."]
    assert len(texts) == 10
    (question,) = built.case.questions
    assert (question.text, question.answer, question.gold) == (
        "Name a pale fruit.",
        "A pear, 90 kcal.",
        frozenset({"0:8"}),
    )
    assert "Please give the calories" in model.asked("build-answer")[2].last
    same = ScriptedModel({**model.script, "build-answer": ['{"text": "An apple."}']})
    (left,) = await all_of("feedback", [seed], same)
    assert "the suggestion changed nothing" in left.left_out[0]
    parrot = ScriptedModel(
        {**model.script, "build-answer": [answers[0], answers[1], '{"text": "Give the calories, please."}']}
    )
    (left,) = await all_of("feedback", [seed], parrot)
    assert "repeats the suggestion" in left.left_out[0]
    (long,) = await all_of("feedback", [Case("s", (), (Question("x" * 900),))], model)
    assert "no task of a fit length" in long.left_out[0]


async def test_a_build_goes_on_where_it_stopped_and_nonsense_is_left_out(tmp_path: Path) -> None:
    turn = '{"detail": "rye", "question": "Which bread do I bake?", "answer": "Rye bread."}'
    calls = Calls(tmp_path / "calls.db")
    first = ScriptedModel({"build-continue": [turn], "build-answerable": [ModelUnreachable("gone")]})
    with pytest.raises(ModelUnreachable):
        await all_of("continue", [DIALOGUE], ReplayedModel(first, calls))
    second = ScriptedModel({"build-continue": ["never asked"], "build-answerable": ['{"answerable": false}']})
    (built,) = await all_of("continue", [DIALOGUE], ReplayedModel(second, calls))
    assert built.case.questions
    assert second.asked("build-continue") == []
    calls.close()
    silly = ScriptedModel({"build-continue": ["what?"]})
    (left,) = await all_of("continue", [DIALOGUE], silly)
    assert left.case.questions == ()
    assert "cannot be read" in left.left_out[0]


@pytest.mark.req("cond.merge-pools")
def test_pools_hold_the_memories_and_questions_of_every_n_cases() -> None:
    cases = [
        Case(
            f"c{i}",
            DIALOGUE.sessions,
            (Question("q", frozenset({"1:0"}), id="0", before="1"),),
            "en",
            DIALOGUE.gold_memory[:1],
        )
        for i in range(5)
    ]
    pools = merge_pools(cases, 2)
    assert [p.name for p in pools] == ["c0..c1", "c2..c3", "c4"]
    assert [len(p.sessions) for p in pools] == [2, 2, 1]
    assert [q.id for q in pools[0].questions] == ["c0/0", "c1/0"]
    ids = {t.id for p in pools for _, turns in p.sessions for t in turns}
    assert len(ids) == 15
    assert pools[0].questions[1].gold <= ids
    assert all(q.before in {id for id, _ in p.sessions} for p in pools for q in p.questions)
    assert pools[0].gold_memory[1].turn in ids


async def test_one_fact_that_cannot_be_made_a_question_costs_no_other() -> None:
    def half(request: Request) -> str:
        return questions(request) if "bread" in request.last else "what?"

    model = ScriptedModel({"build-question": [half], "build-said": ['{"said": true}']})
    (built,) = await all_of("knowledge", [DIALOGUE], model)
    assert [q.text for q in built.case.questions] == ["What do I bake?"]
    assert sum("cannot be read" in reason for reason in built.left_out) == 2
