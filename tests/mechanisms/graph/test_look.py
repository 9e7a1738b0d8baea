"""A look at the graph: entities by name, what stands around them, the history of a claim; and
partitions, by words and by vectors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from made import T0, entity, put, relation, said
from nyima.domain.records import Interval
from nyima.errors import NotFound
from nyima.language.relations import SUBCLASSES, Subclass
from nyima.mechanisms.by_hand import Link
from nyima.mechanisms.graph.entities import Nodes, entity_id, relation_id
from nyima.mechanisms.graph.look import entity_named, history_of, neighbourhood
from nyima.mechanisms.graph.partitions import Partitions, floats
from nyima.memory import Memory
from nyima.testing import FixedClock, HashEmbedder

LINKS = (
    Link("user", "sister", "Ida", "The user's sister is Ida."),
    Link("Ida", "lives_in", "Porto", "Ida lives in Porto."),
    Link("Porto", "located_in", "Portugal", "Porto is in Portugal."),
    Link("user", "drives", "Skoda", "The user drives a Skoda."),
    Link("user's office", "located_in", "Sintra", "The user's office is in Sintra."),
)


@pytest.fixture
async def graph(db: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    async with Memory.open(db, recipe="graph", embedder="none", clock=clock) as memory:
        for link in LINKS:
            await memory.relate(link)
            clock.forward(minutes=1)
        yield memory


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
    assert (await entity_named(graph, "office")).name == "user's office"


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
        ("Ida", 1, {"sister", "location"}),
        ("Ida", 2, {"sister", "location", "located"}),
        ("Portugal", 1, {"located"}),
        ("Portugal", 9, {"located", "location", "sister"}),
        ("Skoda", 9, {"car"}),
    ],
)
async def test_it_goes_as_far_as_asked_and_never_through_the_user(
    graph: Memory, name: str, depth: int, found: set[str]
) -> None:
    around = await neighbourhood(graph, await entity_named(graph, name), depth)
    assert {r.label for r in around.relations} == found
    assert {id for r in around.relations for id in (r.head, r.tail)} | {around.root} == {*around.entities}


async def test_the_users_own_things_belong_to_them_by_name(graph: Memory) -> None:
    around = await neighbourhood(graph, await entity_named(graph, "me"), 1)
    assert "The user's office is in Sintra." in {r.text for r in around.relations}


async def test_what_is_over_is_shown_when_asked_for(graph: Memory) -> None:
    (old,) = [r for r in await graph.records(kinds=("relation",)) if "Skoda" in r.text]
    await graph.retire(old.id)
    me = await entity_named(graph, "me")
    assert old.id not in {r.id for r in (await neighbourhood(graph, me)).relations}
    assert old.id in {r.id for r in (await neighbourhood(graph, me, retired=True)).relations}


# --- the history of a claim ---


async def test_every_value_of_a_claim_comes_oldest_first(graph: Memory, clock: FixedClock) -> None:
    for city in ("Braga", "Faro"):
        clock.forward(days=1)
        await graph.relate(Link("Ida", "lives_in", city, f"Ida lives in {city}."))
    values = await history_of(graph, "where does Ida live?")
    assert [(v.head, v.tail) for v in values] == [("Ida", "Porto"), ("Ida", "Braga"), ("Ida", "Faro")]
    assert [v.relation.recorded.until is None for v in values] == [False, False, True]


async def test_of_what_the_graph_does_not_have_there_is_no_history(graph: Memory) -> None:
    with pytest.raises(NotFound, match="nothing on 'quantum physics'"):
        await history_of(graph, "quantum physics")


# --- mentions and ids ---


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


# --- partitions ---


PETS = (Subclass("Attribute", "Pets", ("cat cat", "dog dog")), Subclass("Event", "Trips", ("train", "plane")))


def places(memory: Memory, embedder: HashEmbedder | None, subclasses: Sequence[Subclass] = PETS) -> Partitions:
    embed = embedder.embed if embedder else None
    return Partitions(memory.store, memory.scope, memory.clock.now(), embed, tuple(subclasses))


def test_a_packed_vector_is_its_numbers() -> None:
    assert floats(np.asarray([0.5, -1.0], "<f4").tobytes()).tolist() == [0.5, -1.0]


async def test_before_anything_was_remembered_a_centre_is_the_mean_of_its_examples(memory: Memory) -> None:
    embedder = HashEmbedder()
    made = places(memory, embedder)
    centres = await made.centres()
    cat, dog = (floats(v) for v in await HashEmbedder().embed(["cat cat", "dog dog"]))
    assert centres["Pets"] == pytest.approx((cat + dog) / 2)
    await made.centres()
    assert embedder.calls == 1, "the examples are embedded once"


async def test_memories_count_twice_as_much_as_examples(memory: Memory) -> None:
    await put(memory, relation("r", "user", "pet", "x", "The user has a parrot.", subclass="Pets"))
    await memory.ingest.index(memory.scope)
    (own,) = [floats(v) for v in await HashEmbedder().embed(["The user has a parrot."])]
    made = places(memory, HashEmbedder())
    prior = (await made.prior())["Pets"]
    found = await made.centres()
    assert found["Pets"] == pytest.approx(prior / 3 + own * 2 / 3, abs=1e-6)
    assert found["Trips"] == pytest.approx((await made.prior())["Trips"])


async def test_a_relation_that_tells_decides_else_the_nearest_centre_else_words(memory: Memory) -> None:
    near, blind = places(memory, HashEmbedder()), places(memory, None)
    assert await near.of("birthday", "cat cat") == "Birthday/Age"
    assert await near.of("xyz", "the dog dog") == "Pets"
    assert await near.of("like", "train") == "Trips", "what is liked depends on what it is"
    assert await blind.of("xyz", "the plane was late") == "Trips"
    assert await blind.prior() == {}


async def test_a_text_is_embedded_once(memory: Memory) -> None:
    embedder = HashEmbedder()
    made = places(memory, embedder, SUBCLASSES)
    await made.of("xyz", "a plane")
    calls = embedder.calls
    await made.nearest("a plane", None, 3)
    assert embedder.calls == calls


async def test_words_find_what_vectors_do_not(graph: Memory) -> None:
    blind = places(graph, None)
    assert [r.text for r in await blind.nearest("Skoda", None, 5)] == ["The user drives a Skoda."]
    assert await blind.nearest("Skoda", "Address", 5) == []
    assert await blind.nearest("zebra", None, 5) == []
    (old,) = await blind.nearest("Skoda", None, 5)
    await graph.retire(old.id)
    assert await places(graph, None).nearest("Skoda", None, 5) == []
