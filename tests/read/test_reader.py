"""The reader: tools, silence, notes, and drafts that are reviewed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from made import SCOPE, T0, asks, note, piece
from nyima.domain.conversation import Scope
from nyima.domain.evidence import Evidence, Noted, Notes, Query, Recall, Step
from nyima.domain.ports import Message
from nyima.domain.roles import Reply, ReplyRequest
from nyima.errors import ModelGarbled, ModelUnreachable
from nyima.read.reader import ModelReader, ReviewedReader, whole
from nyima.read.refine import Refiner
from nyima.testing import ScriptedModel
from support import answer

QUERY = Query("hi", T0)
EMPTY = Recall(QUERY)
FOUND = tuple(piece(note(f"n{i}", f"memory {i}"), 0.9 - i / 10) for i in range(3))
KEPT = Recall(QUERY, (Step("notes", QUERY, 3),), FOUND, FOUND[:1])
CLOCK = json.dumps({"call": "clock", "input": {"zone": "UTC"}})


class Tools:
    """Keeps what was called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def use(self, name: str, given: Mapping[str, Any]) -> str:
        self.calls.append((name, dict(given)))
        return f"it is {8 + len(self.calls)} o'clock"


def request(recall: Recall = EMPTY, *, tools: Tools | None = None, notes: bool = True) -> ReplyRequest:
    def messages(given: Recall) -> Sequence[Message]:
        return [Message("system", "be brief"), Message("user", f"hi, with {[e.record_id for e in given.kept]}")]

    return ReplyRequest(recall, (("user", "hi"),), messages, notes, tools.use if tools else None)


def reader(*answers: object) -> tuple[ModelReader, ScriptedModel]:
    caller, model = asks(*answers, lane="chat")
    return ModelReader(caller), model


async def test_the_pieces_that_are_shown_are_the_reply() -> None:
    made, _ = reader(answer("Nice to meet you.", remember=True, claims={"name": "Karen"}))
    pieces = [part async for part in made.read(SCOPE, request())]
    assert "".join(p for p in pieces if isinstance(p, str)) == "Nice to meet you."
    assert isinstance(pieces[-1], Reply)
    assert pieces[-1].notes == Notes(remember=True, claims=(Noted("user", "name", "Karen"),), complete=True)
    assert (pieces[-1].text, pieces[-1].usage.calls, pieces[-1].recall) == ("Nice to meet you.", 1, EMPTY)


async def test_a_tool_that_is_asked_for_is_used_and_its_result_is_read() -> None:
    made, model = reader(CLOCK, answer("It is nine."))
    tools = Tools()
    reply = await whole(made, SCOPE, request(tools=tools))
    assert (reply.text, reply.usage.calls) == ("It is nine.", 2)
    assert tools.calls == [("clock", {"zone": "UTC"})]
    assert [(m.role, m.content) for m in model.requests[1].messages[2:]] == [
        ("assistant", CLOCK), ("user", "[tool result] it is 9 o'clock"),
    ]  # fmt: skip


async def test_a_tool_where_there_are_none_is_named() -> None:
    made, model = reader(CLOCK, answer("Sorry."))
    assert (await whole(made, SCOPE, request())).text == "Sorry."
    assert model.requests[1].last == "[tool result] there is no tool 'clock'"


async def test_after_three_tools_the_grammar_has_none_left() -> None:
    made, model = reader(CLOCK, CLOCK, CLOCK, answer("It is late."))
    tools = Tools()
    assert (await whole(made, SCOPE, request(tools=tools))).text == "It is late."
    assert ["call" in (r.grammar or "") for r in model.requests] == [True, True, True, False]
    assert len(tools.calls) == 3


async def test_no_tool_is_used_whose_result_nobody_reads() -> None:
    made, model = reader(CLOCK)
    tools = Tools()
    reply = await whole(made, SCOPE, request(tools=tools))
    assert (reply.text, len(model.requests)) == ("", 4), "it ends"
    assert len(tools.calls) == 3


async def test_a_model_that_says_nothing_is_asked_once_again() -> None:
    made, model = reader("", answer("Here."))
    assert (await whole(made, SCOPE, request())).text == "Here."
    assert model.requests[0].messages == model.requests[1].messages
    made, model = reader("")
    with pytest.raises(ModelGarbled, match="no answer, twice"):
        await whole(made, SCOPE, request())
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("grammars", "notes", "tools", "grammar", "schema"),
    [
        (True, True, False, True, False),
        (True, False, False, False, False),
        (False, True, False, False, True),
        (False, True, True, False, False),
        (False, False, False, False, False),
    ],
)
async def test_the_form_of_the_answer_is_bound_where_the_server_can(
    grammars: bool, notes: bool, tools: bool, grammar: bool, schema: bool
) -> None:
    made, model = reader(answer("Hi."))
    model.grammars = grammars
    await whole(made, SCOPE, request(notes=notes, tools=Tools() if tools else None))
    (asked,) = model.requests
    assert (asked.grammar is not None, asked.schema is not None) == (grammar, schema)


async def test_the_notes_of_an_answer_that_was_cut_are_not_taken() -> None:
    class Cut(ScriptedModel):
        async def stream(self, *given: Any, **options: Any) -> Any:
            from nyima.domain.ports import Completion

            yield '{"reply": "Hello there", "remember": true, "facts": {"a": "b"'
            yield Completion("", "cut")

    made, _ = reader()
    made.caller.model = Cut()
    reply = await whole(made, SCOPE, request())
    assert (reply.text, reply.notes) == ("Hello there", Notes())


async def test_a_reader_without_an_end_gives_an_empty_reply() -> None:
    class Mute:
        async def read(self, scope: Scope, request: ReplyRequest) -> Any:
            yield "a piece"

    assert await whole(Mute(), SCOPE, request()) == Reply("", EMPTY)


# --- drafts that are reviewed ---


class Likes:
    """A critic that agrees with what has the word."""

    def __init__(self, word: str) -> None:
        self.word = word

    async def consistency(self, scope: Scope, evidence: Sequence[Evidence], draft: str) -> list[float]:
        return [1.0 if self.word in draft else 0.0] * len(evidence)


async def reviewed(recall: Recall, *drafts: object) -> list[Any]:
    made, _ = reader(*drafts)
    return [part async for part in ReviewedReader(made, Refiner(Likes("good"))).read(SCOPE, request(recall))]


async def test_only_the_draft_that_stays_is_shown() -> None:
    *shown, reply = await reviewed(KEPT, answer("a bad one"), answer("a good one"))
    assert shown == ["a good one"]
    assert (reply.text, reply.usage.calls) == ("a good one", 2)
    assert [e.record_id for e in reply.recall.kept] == ["n1"]
    assert [r.consistent for r in reply.recall.reviews] == [False, True]


async def test_the_notes_are_those_of_the_first_draft() -> None:
    *_, reply = await reviewed(KEPT, answer("bad", remember=True), answer("good"))
    assert reply.notes.remember


async def test_where_nothing_was_kept_the_first_draft_comes_piece_by_piece() -> None:
    *shown, reply = await reviewed(EMPTY, answer("a bad and rather long one"))
    assert "".join(shown) == reply.text == "a bad and rather long one"
    assert len(shown) > 1
    assert reply.recall.reviews == ()


async def test_a_first_draft_that_fails_is_no_reply() -> None:
    with pytest.raises(ModelUnreachable):
        await reviewed(KEPT, ModelUnreachable("gone"))
