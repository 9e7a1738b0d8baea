"""TransE on a small graph of countries, with what must come out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nyima.errors import InputError
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory
from nyima.testing import FixedClock
from nyima_lab.train.classes import assign
from nyima_lab.train.transe import IN_SUBCLASS, TransE, TransESettings, train_transe

CAPITALS = {
    "Portugal": "Lisbon", "Spain": "Madrid", "France": "Paris", "Italy": "Rome", "Austria": "Vienna", "Japan": "Tokyo",
    "Korea": "Seoul", "Kenya": "Nairobi", "Ghana": "Accra", "Peru": "Lima",
}  # fmt: skip
PARTS = {
    "Europe": ("Portugal", "Spain", "France", "Italy", "Austria"),
    "Asia": ("Japan", "Korea"),
    "Africa": ("Kenya", "Ghana"),
    "America": ("Peru",),
}
TRIPLES = [
    *((country, "capital", city) for country, city in CAPITALS.items()),
    *((country, "part_of", part) for part, countries in PARTS.items() for country in countries),
    *((country, IN_SUBCLASS, "country") for country in CAPITALS),
    *((city, IN_SUBCLASS, "city") for city in CAPITALS.values()),
]


@pytest.mark.req("emg.transe")
def test_what_is_true_is_near_and_every_entity_finds_its_class() -> None:
    learned = train_transe(TRIPLES, TransESettings(size=50, rate=0.02, epochs=1_500, seed=0))
    assert learned.losses[-1] < learned.losses[0] / 4
    ranks = [learned.rank(c, "capital", city, TRIPLES) for c, city in CAPITALS.items()]
    assert all(rank == 1 for rank in ranks), ranks
    for name in (*CAPITALS, *CAPITALS.values()):
        assert learned.nearest(name, ["country", "city"]) == ("country" if name in CAPITALS else "city")
    assert np.linalg.norm(learned.entity, axis=1).max() <= 1 + 1e-9


@pytest.mark.req("emg.transe")
def test_equal_seeds_give_equal_vectors() -> None:
    first, second = (train_transe(TRIPLES, TransESettings(epochs=20, seed=5)) for _ in (0, 1))
    assert np.array_equal(first.entity, second.entity)
    assert not np.array_equal(first.entity, train_transe(TRIPLES, TransESettings(epochs=20, seed=6)).entity)


def test_two_entities_and_one_relation_lie_where_they_must() -> None:
    learned = train_transe([("a", "r", "b")], TransESettings(size=4, epochs=400, seed=0))
    assert learned.distance("a", "r", "b") < learned.distance("b", "r", "a")
    with pytest.raises(InputError):
        train_transe([])


@pytest.mark.req("emg.transe", "emg.graph")
async def test_the_users_entities_are_assigned(db: Path, clock: FixedClock) -> None:
    async with Memory.open(db, embedder="none", clock=clock) as memory:
        with pytest.raises(InputError, match="empty"):
            await assign(memory)
        for head, label, tail in (
            ("user", "lives in", "Porto"),
            ("Ana", "lives in", "Faro"),
            ("user", "drives", "Skoda"),
            ("Ben", "drives", "Fiat"),
        ):
            await memory.state(Statement(head, label, tail))
        found, loss = await assign(memory, epochs=300)
        assert found["Porto"] == found["Faro"]
        assert {found["Skoda"], found["Fiat"]} <= {"Car preference", "Personal belongings/Pets"}
        assert loss >= 0


names = st.sampled_from("abcde")
small = st.lists(st.tuples(names, st.sampled_from("rs"), names), min_size=1, max_size=8)


@given(small, st.integers(0, 9))
@settings(max_examples=30)
def test_whatever_is_learned_stays_in_bounds(triples: list[tuple[str, str, str]], seed: int) -> None:
    learned = train_transe(triples, TransESettings(size=4, epochs=5, seed=seed))
    assert set(learned.entities) == {e for h, _, t in triples for e in (h, t)}
    assert set(learned.relations) == {r for _, r, _ in triples}
    assert np.isfinite(learned.relation).all()
    assert np.linalg.norm(learned.entity, axis=1).max() <= 1 + 1e-9
    assert len(learned.losses) == 5
    assert min(learned.losses) >= 0
    for head, relation, tail in triples:
        assert 1 <= learned.rank(head, relation, tail) <= len(learned.entities)
        assert learned.rank(head, relation, tail, triples) <= learned.rank(head, relation, tail)


def test_a_place_is_counted_among_all_but_the_other_known_ones() -> None:
    points = {"h": [0.0, 0.0], "near": [0.1, 0.0], "next": [0.2, 0.0], "far": [0.9, 0.0]}
    learned = TransE(
        {name: i for i, name in enumerate(points)},
        {"r": 0},
        np.asarray([*points.values()]),
        np.asarray([[0.1, 0.0]]),
        (),
    )
    assert learned.distance("h", "r", "far") == pytest.approx(0.8)
    assert [learned.rank("h", "r", name) for name in ("near", "far")] == [1, 4]
    assert learned.rank("h", "r", "far", [("h", "r", "near"), ("h", "r", "next"), ("next", "r", "h")]) == 2
    assert learned.nearest("h", ["far", "next", "h"], "r") == "h", "of those that are equally far the first by name"


def test_each_pass_is_told_with_its_loss() -> None:
    told: list[tuple[int, float]] = []
    learned = train_transe(
        [("a", "r", "b"), ("b", "r", "c")], TransESettings(epochs=3), lambda *step: told.append(step)
    )
    assert told == list(enumerate(learned.losses))
