"""Mentions to entities."""

from __future__ import annotations

from made import T0, entity, put, said
from nyima.domain.records import Interval
from nyima.mechanisms.graph.entities import Nodes, entity_id, relation_id
from nyima.mechanisms.graph.look import entity_named
from nyima.memory import Memory


def test_ids_follow_from_what_is_stated_whatever_its_case() -> None:
    assert relation_id("t1", "user", "pet", "Rex") == relation_id("t1", "user", "pet", "REX")
    other = [
        ("t2", "user", "pet", "Rex"),
        ("t1", "x", "pet", "Rex"),
        ("t1", "user", "own", "Rex"),
        ("t1", "user", "pet", "Re"),
    ]
    assert len({relation_id(*parts) for parts in [("t1", "user", "pet", "Rex"), *other]}) == 5
    assert relation_id("a", "b", "c", "d") != relation_id("a", "bc", "", "d")
    assert entity_id("t1", "Éva") == entity_id("t1", "eva") != entity_id("t2", "eva")


def nodes(memory: Memory) -> Nodes:
    return Nodes(memory.store, memory.scope, said("t9", "x", at=memory.clock.now()), Interval(memory.clock.now()))


def test_what_was_spoken_of_last_stands_first_and_once() -> None:
    held = Nodes(None, None, said("t", "x"), Interval(T0))  # type: ignore[arg-type]
    for id in ("a", "b", "user", "a", *(f"n{i}" for i in range(50))):
        held.touch(id)
    assert held.recent[:2] == ["n49", "n48"]
    assert len(held.recent) == 40
    held.touch("n30")
    assert held.recent.index("n30") == 0
    assert held.recent.count("n30") == 1
    assert "user" not in held.recent


async def test_a_mention_means_what_is_known_else_something_new(graph: Memory) -> None:
    held = nodes(graph)
    ida = await entity_named(graph, "Ida")
    assert (await held.node("Ida")).id == ida.id
    assert (await held.node("my sister")).id == ida.id
    assert (await held.node("me")).id == "user"
    assert held.made == {}
    new = await held.node("Bruno")
    assert [*held.made] == [new.id]
    assert await held.node("bruno") == new, "what this turn made is found again"


async def test_a_pronoun_means_the_person_spoken_of_last(graph: Memory) -> None:
    held = nodes(graph)
    ida, porto = await held.node("Ida"), await held.node("Porto")
    assert held.recent[:2] == [porto.id, ida.id]
    assert (await held.node("she")).id == ida.id
    assert (await held.value("her voucher")).name == "Ida's voucher"
    assert await nodes(graph).find("she") is None, "nobody was spoken of"


async def test_a_name_may_stand_for_itself(graph: Memory) -> None:
    await put(graph, entity("n", "my dog's name"))
    held = nodes(graph)
    assert (await held.value("user's sister")).name == "Ida"
    assert (await held.value("user's sister", plain=True)).name == "user's sister"
