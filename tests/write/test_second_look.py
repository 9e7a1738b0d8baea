"""The second look: asked once, read strictly, filled from the next one where it is not sure."""

from __future__ import annotations

import pytest

from made import SCOPE, asks, claim
from nyima.domain.ports import Looked
from nyima.errors import ModelUnreachable
from nyima.write.second_look import PromptedVerifier

KNOWN = [claim("a", "lives in", "Leeds"), claim("b", "has", "a cat")]
NEW = [claim("c", "lives in", "York")]


async def test_all_pairs_of_a_message_are_one_call() -> None:
    caller, model = asks({"over": [1], "said": [1]}, lane="look")
    found = await PromptedVerifier(caller).look(SCOPE, "Off to York for good!", KNOWN, NEW)
    assert found == Looked((True, False), (True,))
    (request,) = model.requests
    assert "(1) user lives in: Leeds (2) user has: a cat" in request.last
    assert "New: (1) user lives in: York" in request.last


@pytest.mark.parametrize("answer", ["no idea", "{}", '{"over": "all"}'])
async def test_what_cannot_be_read_is_sure_of_nothing(answer: str) -> None:
    caller, model = asks(answer, lane="look")
    found = await PromptedVerifier(caller).look(SCOPE, "x", KNOWN, NEW)
    assert found == Looked.unsure(KNOWN, NEW)
    assert len(model.requests) == 2, "asked once again"


async def test_numbers_that_were_not_listed_mean_nothing() -> None:
    caller, _ = asks({"over": [3, 99, -1], "said": [2]}, lane="look")
    assert await PromptedVerifier(caller).look(SCOPE, "x", KNOWN, NEW) == Looked((False, False), (False,))


async def test_a_model_that_is_away_is_no_answer() -> None:
    caller, _ = asks(ModelUnreachable("gone"), lane="look")
    with pytest.raises(ModelUnreachable):
        await PromptedVerifier(caller).look(SCOPE, "x", KNOWN, NEW)
