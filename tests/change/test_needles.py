"""Pieces of what was erased, looked for in the journal."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import T0, claim, entity, note, put, said
from nyima.change.needles import Needles, needles_of, quoted_in, repeats, telling, traces_of
from nyima.domain.conversation import Role, Turn
from nyima.domain.ports import Event
from nyima.domain.records import MemoryRecord
from nyima.memory import Memory, Said

words = st.text("ab c", min_size=1, max_size=12)


@given(st.lists(words, max_size=30), st.lists(words, max_size=8))
def test_needles_are_found_like_one_by_one(needles: list[str], texts: list[str]) -> None:
    sought = Needles(needles)
    for text in texts:
        assert sought.within(text) == any(n in text for n in needles)
    body = {"turn": 1, "claims": [["key", t] for t in texts], "none": None}
    assert sought.within(body) == any(n in t for n in needles for t in (*texts, "turn", "claims", "key", "none"))


# --- what is looked for ---


GONE = "My secret recipe needs walnuts. It is called Quinoa Deluxe and nobody knows it."


async def sought(memory: Memory, text: str = "", *records: MemoryRecord) -> list[str]:
    turns = {"t": said("t", text)} if text else {}
    return await needles_of(memory.store, memory.scope, turns, {r.id: r for r in records})


async def test_the_pieces_are_of_the_text_and_long_enough_to_tell(memory: Memory) -> None:
    found = await sought(memory, GONE)
    assert found == sorted(set(found))
    assert all(piece in GONE and 12 <= len(piece) <= 24 for piece in found)
    assert "My secret recipe needs w" in found
    assert await sought(memory, "Yes, I do. No.") == [], "what is short says nothing"
    assert await sought(memory) == []


async def test_what_stays_elsewhere_is_not_looked_for(memory: Memory) -> None:
    whole = await sought(memory, GONE)
    await put(memory, note("n", "She said: My secret recipe needs walnuts, too."))
    assert {*whole} - {*await sought(memory, GONE)} == {"My secret recipe needs w"}
    await memory.remember([Said(GONE)], session="s")
    assert await sought(memory, GONE) == []


async def test_a_value_of_some_length_is_looked_for_whole(memory: Memory) -> None:
    found = await sought(memory, "", claim("f", "allergy", "walnut"), claim("g", "pet", "cat"), note("n", "tea"))
    assert found == ["user allergy: walnut", "user pet: cat", "walnut"]


# --- what quotes it ---


async def journal(memory: Memory, kind: str, id: str, **body: object) -> None:
    await memory.store.log(memory.scope, Event(id, kind, memory.clock.now(), (), body))


async def test_a_trace_that_quotes_what_goes_goes_with_it(memory: Memory) -> None:
    await journal(memory, "recall", "r1", query="where is Quinoa Deluxe?")
    await journal(memory, "recall", "r2", query="where is the cat?", found=[{"text": "in Moab"}])
    await journal(memory, "feedback", "f1", answer={"right": ["no", "Quinoa Deluxe"]})
    found, instead = await quoted_in(memory.store, memory.scope, ["Quinoa Deluxe"], ())
    assert ({e.id for e in found}, instead) == ({"r1", "f1"}, [])


async def test_the_notes_of_a_turn_that_stays_are_kept_without_it(memory: Memory) -> None:
    claims = [["user", "dish", "Quinoa Deluxe", "holds"], ["user", "city", "Moab", "holds"]]
    await journal(memory, "notes", "n1", turn="stays", claims=claims)
    await journal(memory, "notes", "n2", turn="goes", claims=claims)
    await journal(memory, "facts", "n3", turn="stays", facts=[["dish", "Quinoa Deluxe"]])
    found, instead = await quoted_in(memory.store, memory.scope, ["Quinoa Deluxe"], {"goes"})
    assert {e.id for e in found} == {"n1", "n2", "n3"}
    assert [(e.kind, dict(e.body)) for e in instead] == [
        ("notes", {"turn": "stays", "claims": [["user", "city", "Moab", "holds"]]})
    ]
    assert instead[0].id not in {"n1", "n2", "n3"}


@pytest.mark.parametrize("many", [0, 100])
async def test_traces_are_found_by_what_they_mention_few_or_many(memory: Memory, many: int) -> None:
    for id, refs in (("r1", ("a", "b")), ("r2", ("b",)), ("r3", ("c",))):
        await memory.store.log(memory.scope, Event(id, "recall", T0, refs, {}))
    wanted = {"a", "b", *(f"x{i}" for i in range(many))}
    assert sorted(e.id for e in await traces_of(memory.store, memory.scope, wanted)) == ["r1", "r2"]


# --- replies that tell it ---


@pytest.mark.parametrize(
    ("reply", "said", "again"),
    [
        ("So you like walnuts!", "I love walnuts.", True),
        ("It is 42.", "I am 42.", True),
        ("How nice of you.", "How is it of you?", False),
        ("Tea it is.", "I drink tea.", False),
        ("", "I love walnuts.", False),
        ("Évora is nice", "I was in evora", True),
    ],
)
def test_a_reply_repeats_a_word_of_some_length_or_a_number(reply: str, said: str, again: bool) -> None:
    assert repeats(reply, said) is again


async def told(memory: Memory, reply: str, *records: MemoryRecord, stays: str = "Hello.") -> bool:
    await memory.remember([Said(stays), Said(reply, Role.ASSISTANT)], session="s")
    gone: dict[str, Turn] = {"g": said("g", "gone", at=T0)}
    found = await telling(memory.store, memory.scope, gone, records)
    return bool(found)


@pytest.mark.parametrize(
    ("reply", "tells"),
    [
        ("Otto is here.", True),
        ("Ottos car is here.", False),
        ("The allergy is walnuts.", False),
        ("You must not eat walnuts.", True),
        ("Mind your walnuts!", True),
        ("The code is 4711.", True),
        ("No idea.", False),
    ],
)
async def test_a_name_or_number_is_enough_and_a_common_word_is_said_to_the_user(
    memory: Memory, reply: str, tells: bool
) -> None:
    records = (entity("o", "Otto"), claim("f", "allergy", "walnuts"), claim("g", "code", "4711"), claim("h", "x", "no"))
    assert await told(memory, reply, *records) is tells


async def test_what_the_user_says_elsewhere_tells_nothing(memory: Memory) -> None:
    assert not await told(memory, "Otto is here.", entity("o", "Otto"), stays="I met Otto.")


async def test_a_reply_from_before_cannot_tell_it(memory: Memory) -> None:
    await memory.remember([Said("Otto is here.", Role.ASSISTANT, at=T0 - timedelta(days=1))], session="s")
    assert await telling(memory.store, memory.scope, {"g": said("g", "gone", at=T0)}, [entity("o", "Otto")]) == []
    assert await telling(memory.store, memory.scope, {}, []) == []
