"""What is no longer true in what was recalled."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import T0, claim, episode, note, piece, put, summary
from nyima.domain.evidence import Evidence, Query
from nyima.domain.records import Interval, MemoryRecord, Status
from nyima.memory import Memory
from nyima.read.labels import base_id, labelled, mentions

ENDED, NOW = T0 + timedelta(days=2), T0 + timedelta(days=10)
TOLD = episode("e1", "I live in Moab and have a cat.", turns=("t1",))
GONE = {"recorded": Interval(T0, ENDED), "valid": Interval(T0, ENDED)}


async def label(memory: Memory, record: MemoryRecord, *beside: MemoryRecord, **more: Any) -> Evidence:
    await put(memory, *beside)
    query = Query("q", more.pop("at", NOW), **more)
    (found,) = await labelled(memory.store, memory.scope, query, [piece(record)])
    return found


# --- words and ids ---


@pytest.mark.parametrize(
    ("text", "value", "there"),
    [
        ("She lives in New York City.", "new york", True),
        ("She lives in York.", "New York City", False),
        ("She lives in New York.", "New York City", True),
        ("a b", "a b c d", False),
        ("anything", "", False),
        ("anything", "...", False),
        ("Évora", "evora", True),
    ],
)
def test_a_text_mentions_a_value_with_most_of_its_words(text: str, value: str, there: bool) -> None:
    assert mentions(text, value) is there


@given(st.text("ab cé", max_size=20), st.text("ab cé", max_size=20))
def test_a_text_that_mentions_a_value_does_so_within_more_words(text: str, value: str) -> None:
    assert not mentions(text, value) or mentions(f"{text} more words", value)


@pytest.mark.parametrize(("id", "base"), [("r-1", "r-1"), ("r-1~2026", "r-1"), ("r-1~a~b", "r-1"), ("", "")])
def test_a_record_that_was_made_again_has_its_first_id_in_it(id: str, base: str) -> None:
    assert base_id(id) == base


# --- what has ended ---


async def test_an_episode_says_which_of_its_values_ended_and_when(memory: Memory) -> None:
    found = await label(
        memory, TOLD, claim("f", "location", "Moab", turns=("t1",), **GONE), claim("g", "pet", "cat", turns=("t1",))
    )
    assert (found.ended, found.superseded, found.stale) == (("Moab",), ENDED, None)


async def test_a_value_that_still_holds_is_no_end_although_it_was_told_before(memory: Memory) -> None:
    again = claim("g", "location", "MOAB", turns=("t1",))
    found = await label(memory, TOLD, claim("f", "location", "Moab", turns=("t1",), **GONE), again)
    assert (found.ended, found.superseded) == ((), None)


async def test_the_latest_of_several_ends_is_told(memory: Memory) -> None:
    later = {"valid": Interval(T0, ENDED + timedelta(days=1)), "recorded": Interval(T0, ENDED + timedelta(days=1))}
    beside = [claim("f", "location", "Moab", turns=("t1",), **GONE), claim("g", "pet", "cat", turns=("t1",), **later)]
    found = await label(memory, TOLD, *beside)
    assert set(found.ended) == {"Moab", "cat"}
    assert found.superseded == ENDED + timedelta(days=1)


async def test_a_value_that_ended_twice_ended_the_second_time(memory: Memory) -> None:
    for id, days in (("f", 1), ("g", 5), ("h", 3)):
        closed = Interval(T0, T0 + timedelta(days=days))
        await put(memory, claim(id, f"key_{id}", "Moab", turns=("t1",), valid=closed, recorded=closed))
    found = await label(memory, TOLD)
    assert (found.ended, found.superseded) == (("Moab",), T0 + timedelta(days=5))


@pytest.mark.parametrize("which", ["valid", "recorded"])
@pytest.mark.parametrize(("at", "ended"), [(ENDED - timedelta(seconds=1), ()), (ENDED, ("Moab",)), (NOW, ("Moab",))])
async def test_an_end_is_known_from_its_moment_on(
    memory: Memory, which: str, at: datetime, ended: tuple[str, ...]
) -> None:
    old = claim("f", "location", "Moab", turns=("t1",), **{which: Interval(T0, ENDED)})
    assert (await label(memory, TOLD, old, at=at)).ended == ended


async def test_of_the_past_is_told_what_had_ended_then(memory: Memory) -> None:
    old = claim("f", "location", "Moab", turns=("t1",), **GONE)
    assert (await label(memory, TOLD, old, as_of=ENDED - timedelta(days=1))).ended == ()
    assert (await label(memory, TOLD, as_of=ENDED + timedelta(days=1))).ended == ("Moab",)


async def test_a_note_that_does_not_mention_the_value_is_not_touched(memory: Memory) -> None:
    old = claim("f", "location", "Moab", turns=("t1",), **GONE)
    assert (await label(memory, note("n", "She has a cat.", turns=("t1",)), old)).ended == ()
    assert (await label(memory, note("n", "She lives in Moab.", turns=("t1",)))).ended == ("Moab",)
    assert (await label(memory, summary("s", "All about Moab.", turns=("t0", "t1")))).ended == ("Moab",)


async def test_what_another_turn_said_is_no_matter_here(memory: Memory) -> None:
    assert (await label(memory, TOLD, claim("f", "location", "Moab", turns=("t2",), **GONE))).ended == ()


async def test_what_was_said_to_be_over_or_not_so_ends_nothing_itself(memory: Memory) -> None:
    for status in (Status.ENDED, Status.DENIED, Status.PENDING):
        over = claim(f"c {status}", "drives", "the car", turns=("t1",), status=status, **GONE)
        assert (await label(memory, TOLD, over)).ended == ()


# --- what is uncertain ---


@pytest.mark.parametrize(
    "record", [note("n", "x", stale=True), claim("f", "k", "v", stale=True), summary("s", "x", stale=True)]
)
async def test_what_is_stale_says_since_when_but_not_of_the_past(memory: Memory, record: MemoryRecord) -> None:
    assert (await label(memory, record)).stale == T0
    assert (await label(memory, record, as_of=NOW)).stale is None
    assert (await label(memory, replace(record, stale=False))).stale is None


async def test_an_episode_is_in_doubt_where_a_value_of_it_is(memory: Memory) -> None:
    doubtful = claim("f", "location", "Moab", turns=("t1",), stale=True)
    found = await label(memory, TOLD, doubtful)
    assert (found.stale, found.ended) == (T0, ())
    assert (await label(memory, note("n", "She has a cat.", turns=("t1",)))).stale is None


async def test_what_is_uncertain_has_not_ended(memory: Memory) -> None:
    """The same value stands closed, from before, and open but stale."""
    closed = claim("f", "location", "Moab", turns=("t1",), **GONE)
    found = await label(memory, TOLD, closed, claim("f~2", "location", "Moab", turns=("t1",), stale=True))
    assert (found.ended, found.superseded, found.stale) == ((), None, T0)


async def test_every_piece_comes_back_in_its_place(memory: Memory) -> None:
    pieces = [piece(TOLD), piece(note("n", "x")), piece(claim("f", "k", "v"))]
    found = await labelled(memory.store, memory.scope, Query("q", NOW), pieces)
    assert [e.record_id for e in found] == ["e1", "n", "f"]
    assert await labelled(memory.store, memory.scope, Query("q", NOW), []) == ()
