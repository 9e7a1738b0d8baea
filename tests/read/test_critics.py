"""The critic that asks a model."""

from __future__ import annotations

import json

import pytest

from made import SCOPE, asks, note, piece
from nyima.errors import ModelUnreachable
from nyima.read.critics import ModelCritic
from nyima.testing import ScriptedModel
from nyima.testing.doubles import Request


@pytest.mark.parametrize(
    ("answers", "worth"),
    [
        ([{"agrees": "yes"}], 1.0),
        ([{"agrees": "no"}], 0.0),
        ([{"agrees": "unclear"}], 0.5),
        (["rubbish", {"agrees": "yes"}], 1.0),
        (["rubbish"], 0.5),
        ([{"agrees": "YES!"}], 0.5),
        ([{"agrees": "yes, no"}], 0.5),
    ],
)
async def test_what_cannot_be_read_is_unclear(answers: list[object], worth: float) -> None:
    caller, _ = asks(*answers, lane="agrees")
    assert await ModelCritic(caller).consistency(SCOPE, [piece(note("n", "tea"))], "draft") == [worth]
    outcomes = [e.body["outcome"] for e in await caller.store.events(SCOPE, "call")]
    assert ("fallback" in outcomes) == (worth == 0.5 and answers != [{"agrees": "unclear"}])


async def test_each_piece_is_asked_about_by_itself_and_answered_in_order() -> None:
    def agrees(request: Request) -> str:
        return json.dumps({"agrees": "yes" if "tea" in request.last else "no"})

    caller, _ = asks(lane="agrees")
    caller.model = model = ScriptedModel({"agrees": [agrees]})
    pieces = [piece(note(text, text)) for text in ("tea", "bus", "green tea")]
    assert await ModelCritic(caller).consistency(SCOPE, pieces, "It is green.") == [1.0, 0.0, 1.0]
    assert len(model.requests) == 3
    assert await ModelCritic(caller).consistency(SCOPE, [], "It is green.") == []


async def test_long_texts_are_cut_before_they_are_asked_about() -> None:
    caller, model = asks({"agrees": "yes"}, lane="agrees")
    await ModelCritic(caller, size=20).consistency(SCOPE, [piece(note("n", "tea " * 900))], "bus " * 900)
    assert model.requests[0].last.count("tea") < 25
    assert model.requests[0].last.count("bus") < 205


async def test_a_model_that_is_gone_is_the_callers_matter() -> None:
    caller, _ = asks(ModelUnreachable("gone"), lane="agrees")
    with pytest.raises(ModelUnreachable):
        await ModelCritic(caller).consistency(SCOPE, [piece(note("n", "tea"))], "draft")
