"""The order of sources, and what a source of one's own may say."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import SCOPE, T0, note, passage, piece, put
from nyima.domain.conversation import Origin, Scope
from nyima.domain.evidence import Evidence, Query, Step
from nyima.domain.mechanism import Source
from nyima.domain.records import Provenance
from nyima.errors import ConfigError, SourceFailed
from nyima.memory import Memory
from nyima.read.sources import CallableRetriever, DependentRetriever, SourceChoice, in_order, steps_for

graphs = st.integers(1, 7).flatmap(
    lambda n: st.lists(
        st.lists(st.integers(0, 6), max_size=3).map(lambda found: sorted(set(found))), min_size=n, max_size=n
    ).map(lambda rows: {f"s{i}": tuple(f"s{j}" for j in row if j < i) for i, row in enumerate(rows)})
)


@given(graphs, st.randoms(use_true_random=False))
def test_each_source_comes_after_what_it_depends_on(after: dict[str, tuple[str, ...]], random: Any) -> None:
    shuffled = dict(random.sample(list(after.items()), len(after)))
    order = in_order(shuffled)
    assert sorted(order) == sorted(after)
    assert all(order.index(need) < order.index(name) for name, needs in after.items() for need in needs)


def test_what_depends_on_nothing_stays_in_the_order_given() -> None:
    assert in_order({"c": (), "a": (), "b": ()}) == ("c", "a", "b")
    assert in_order({"c": ("b",), "a": (), "b": ()}) == ("a", "b", "c")
    assert in_order({}) == ()


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ({"a": ("a",)}, "the sources depend on each other in a circle: a → a"),
        ({"a": ("b",), "b": ("a",)}, "the sources depend on each other in a circle: a → b → a"),
        (
            {"z": ("a",), "a": ("b",), "b": ("c",), "c": ("a",)},
            "the sources depend on each other in a circle: a → b → c → a",
        ),
        ({"a": ("x",), "b": ()}, "the source 'a' depends on 'x', which does not exist: choose from a, b"),
    ],
)
def test_a_circle_is_shown_and_nothing_else(after: dict[str, tuple[str, ...]], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        in_order(after)
    assert str(caught.value) == message


@given(graphs, st.sets(st.sampled_from([f"s{i}" for i in range(9)])))
def test_the_steps_are_the_chosen_sources_and_all_that_they_need(
    after: dict[str, tuple[str, ...]], chosen: set[str]
) -> None:
    steps = steps_for(chosen, [SourceChoice(n, 3, needs) for n, needs in after.items()], Query("q", T0))
    asked = [s.source for s in steps]
    assert set(asked) >= chosen & {*after}
    needed = chosen | {need for s in steps for need in s.after}
    assert set(asked) == needed & {*after}, "nothing that is neither chosen nor needed"
    assert all(need in asked[:place] for place, s in enumerate(steps) for need in s.after)


# --- a source of one's own ---


async def found(answer: Any, k: int = 9, given: tuple[Evidence, ...] = (), **more: Any) -> list[Evidence]:
    def find(question: str) -> Any:
        return answer

    source = Source("mine", "", more.pop("find", find), seconds=60)
    return await CallableRetriever(source).retrieve(SCOPE, Step("mine", Query("green tea", T0), k, given=given))


@pytest.mark.parametrize(
    ("answer", "pieces"),
    [
        (None, []),
        ("", []),
        (["", "  \n"], []),
        ("tea is green", [("tea is green", 1.0)]),
        (["tea", "bus"], [("bus", 0.5), ("tea", 0.5)]),
        ([("bus", 0.9), ("tea", 0.2)], [("bus", 0.9), ("tea", 0.2)]),
        ([("a", 7), ("b", -3), ("c", math.nan)], [("a", 1.0), ("b", 0.0), ("c", 0.0)]),
        ((t for t in ("x", ("y", 0.8))), [("y", 0.8), ("x", 0.5)]),
        ([(42, "0.5")], [("42", 0.5)]),
    ],
)
async def test_what_a_source_may_answer(answer: Any, pieces: list[tuple[str, float]]) -> None:
    got = await found(answer)
    assert sorted((e.text, e.score) for e in got) == sorted(pieces)
    assert [e.score for e in got] == sorted((e.score for e in got), reverse=True)


@pytest.mark.parametrize("answer", [42, {"a": 1}, b"bytes", ["ok", None], [("a", "b", "c")], [("a", "much")], [[]]])
async def test_what_makes_no_sense_is_a_failed_source(answer: Any) -> None:
    with pytest.raises(SourceFailed, match="^(TypeError|ValueError): "):
        await found(answer)


async def test_what_a_source_says_is_bounded_and_cut() -> None:
    got = await found([("x" * 5_000, i / 100) for i in range(90)], k=99)
    assert {len(e.text) for e in got} == {2_000}
    assert len(got) == 50
    assert len(await found(["a", "b", "c"], k=2)) == 2


async def test_what_a_source_says_is_never_the_users_word() -> None:
    (one,) = await found("tea")
    (again,) = await found("tea")
    assert one.record.provenance.origin is Origin.TOOL
    assert one.record.region == "mine"
    assert one.record.id == again.record.id, "the same text is the same piece"
    assert one.record.id != (await found("coffee"))[0].record.id


async def test_what_came_before_is_given_only_to_a_source_that_asks_for_it() -> None:
    before = (piece(note("n", "the allergy is walnuts")),)

    def asks_for_it(question: str, given: list[str]) -> str:
        return f"{question}: {given}"

    async def waits(question: str) -> str:
        return question

    assert (await found("", find=asks_for_it, given=before))[0].text == "green tea: ['the allergy is walnuts']"
    assert (await found("", find=waits, given=before))[0].text == "green tea"


async def test_a_long_complaint_is_cut() -> None:
    def complains(question: str) -> str:
        raise RuntimeError("x" * 5_000)

    with pytest.raises(SourceFailed) as caught:
        await found("", find=complains)
    assert str(caught.value) == "RuntimeError: " + "x" * 200


# --- a source that depends on others ---


class Inner:
    """Answers every step with the same pieces; keeps the steps."""

    def __init__(self, *pieces: Evidence) -> None:
        self.pieces, self.steps = pieces, list[Step]()

    async def retrieve(self, scope: Scope, step: Step) -> list[Evidence]:
        self.steps.append(step)
        return list(self.pieces)


CHILD = passage("c", "Bake it.", provenance=Provenance(records=("parent",)))
OTHER = passage("o", "Boil it.")


async def narrowed(memory: Memory, *given: Evidence, k: int = 3) -> tuple[list[str], Inner]:
    inner = Inner(piece(OTHER, 0.9), piece(CHILD, 0.4))
    step = Step("documents", Query("how long", memory.clock.now()), k, ("profile",), given)
    made = await DependentRetriever(inner, memory.store, ("passage",)).retrieve(memory.scope, step)
    return [e.record_id for e in made], inner


async def test_without_anything_before_it_a_source_is_asked_as_it_is(memory: Memory) -> None:
    ids, inner = await narrowed(memory)
    assert ids == ["o", "c"]
    assert [s.query.words() for s in inner.steps] == ["how long"]


async def test_what_belongs_to_what_was_found_is_all_that_is_brought(memory: Memory) -> None:
    await put(memory, CHILD, OTHER)
    ids, inner = await narrowed(memory, piece(note("parent", "cake"), 0.8))
    assert ids == ["c"]
    assert inner.steps[0].k >= 200, "it looks further than the k best of all"


async def test_else_the_words_of_each_piece_are_searched_for_beside_the_question(memory: Memory) -> None:
    before = [piece(note(f"n{i}", f"walnut{i} cake"), 0.8 - i / 100) for i in range(9)]
    ids, inner = await narrowed(memory, *before)
    assert ids == ["o", "c"], "each piece once"
    assert [s.query.keywords for s in inner.steps] == [(), *((f"walnut{i}", "cake") for i in range(3))]


async def test_weak_pieces_narrow_nothing(memory: Memory) -> None:
    await put(memory, CHILD)
    ids, _ = await narrowed(memory, piece(note("parent", "cake"), 0.1))
    assert ids == ["o", "c"]
    ids, _ = await narrowed(memory, piece(note("best", "tea"), 0.9), piece(note("parent", "cake"), 0.4))
    assert ids == ["o", "c"], "less than half of the best"


async def test_no_more_than_k_come_back(memory: Memory) -> None:
    ids, _ = await narrowed(memory, piece(note("n", "walnut"), 0.9), k=1)
    assert ids == ["o"]
