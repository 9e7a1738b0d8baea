"""A look at the graph: entities by name, what stands around them, the history of a claim."""

from __future__ import annotations

import pytest

from nyima.errors import NotFound
from nyima.mechanisms.by_hand import Statement
from nyima.mechanisms.graph.look import entity_named, history_of, neighbourhood
from nyima.memory import Memory
from nyima.testing import FixedClock

# --- entities by name ---


@pytest.mark.parametrize("name", ["Ida", "ida", "  IDA "])
async def test_an_entity_is_found_by_its_name_in_any_case(graph: Memory, name: str) -> None:
    found = await entity_named(graph, name)
    assert found.name == "Ida"
    assert await entity_named(graph, found.id.upper()) == found


@pytest.mark.parametrize("name", ["me", "I", "", "user"])
async def test_the_user_has_many_names(graph: Memory, name: str) -> None:
    assert (await entity_named(graph, name)).id == "user"


async def test_some_words_of_a_name_are_enough(graph: Memory) -> None:
    assert (await entity_named(graph, "office")).name == "office"


async def test_a_name_that_is_not_there_lists_those_that_are(graph: Memory, memory: Memory) -> None:
    with pytest.raises(NotFound, match="no 'Lisbon': it has Ida, Porto"):
        await entity_named(graph, "Lisbon")


async def test_an_empty_graph_says_so(memory: Memory) -> None:
    for name in ("Lisbon", "me"):
        with pytest.raises(NotFound, match="it is empty, say something first"):
            await entity_named(memory, name)


# --- the neighbourhood ---


@pytest.mark.parametrize(
    ("name", "depth", "found"),
    [
        ("Ida", 1, {"sister", "lives in"}),
        ("Ida", 2, {"sister", "lives in", "located in"}),
        ("Portugal", 1, {"located in"}),
        ("Portugal", 9, {"located in", "lives in", "sister"}),
        ("Skoda", 9, {"drives"}),
    ],
)
async def test_it_goes_as_far_as_asked_and_never_through_the_user(
    graph: Memory, name: str, depth: int, found: set[str]
) -> None:
    around = await neighbourhood(graph, await entity_named(graph, name), depth)
    assert {c.attribute for c in around.claims} == found
    assert {id for c in around.claims for id in (c.subject, c.object)} | {around.root} == {*around.entities}


async def test_what_is_over_is_shown_when_asked_for(graph: Memory) -> None:
    (old,) = [r for r in await graph.records(kinds=("claim",)) if "Skoda" in r.text]
    await graph.retire(old.id)
    me = await entity_named(graph, "me")
    assert old.id not in {r.id for r in (await neighbourhood(graph, me)).claims}
    assert old.id in {r.id for r in (await neighbourhood(graph, me, retired=True)).claims}


# --- the history of a claim ---


async def test_every_value_of_a_claim_comes_oldest_first(graph: Memory, clock: FixedClock) -> None:
    for city in ("Braga", "Faro"):
        clock.forward(days=1)
        (old,) = await graph.claims("Ida")
        await graph.state(Statement("Ida", "lives in", city), replaces=[old.id])
    values = await history_of(graph, "where does Ida live?")
    assert [(v.claim.name, v.claim.value) for v in values] == [("Ida", "Porto"), ("Ida", "Braga"), ("Ida", "Faro")]
    assert [v.claim.recorded.until is None for v in values] == [False, False, True]


async def test_of_what_the_graph_does_not_have_there_is_no_history(graph: Memory) -> None:
    with pytest.raises(NotFound, match="nothing on 'quantum physics'"):
        await history_of(graph, "quantum physics")
