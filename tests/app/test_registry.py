"""What is installed: names that are given once, recipes whose parts are there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nyima.app.registry import registry
from nyima.domain.mechanism import Mechanism, Registry, Source, When, Writer
from nyima.domain.recipe import Recipe, SourceSpec
from nyima.errors import ConfigError


def nothing(*_: Any) -> Any:
    return None


async def write(*_: Any) -> Any:
    return None


@pytest.mark.parametrize(
    ("mechanism", "what"),
    [
        (Mechanism("history", ""), "mechanism 'history'"),
        (Mechanism("mine", "", writers=(Writer("note", When.TURN, write),)), "writer 'note'"),
        (Mechanism("mine", "", sources=(Source("profile", ""),)), "source 'profile'"),
        (Mechanism("mine", "", recipes=(Recipe("default", ""),)), "recipe 'default'"),
        (Mechanism("mine", "", planners={"rules": nothing}), "planner 'rules'"),
        (Mechanism("mine", "", retrievers={"hybrid": nothing}), "retriever 'hybrid'"),
        (Mechanism("mine", "", selectors={"budget": nothing}), "selector 'budget'"),
        (Mechanism("mine", "", critics={"model": nothing}), "critic 'model'"),
        (Mechanism("mine", "", readers={"model": nothing}), "reader 'model'"),
    ],
)
def test_each_name_of_each_kind_is_given_once(mechanism: Mechanism, what: str) -> None:
    with pytest.raises(ConfigError, match=f"the {what} is given twice, by '.*' and '{mechanism.name}': rename one"):
        Registry((*registry().mechanisms, mechanism))


def test_one_name_may_stand_for_things_of_different_kinds() -> None:
    mine = Mechanism("mine", "", judges={"mine": nothing}, planners={"mine": nothing}, recipes=(Recipe("mine", ""),))
    found = Registry((*registry().mechanisms, mine))
    assert found.make("judges", "mine") is found.make("planners", "mine") is nothing


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (Recipe("r", "", writers=("nobody",)), "recipe 'r': there is no writer 'nobody': choose from"),
        (Recipe("r", "", sources=(SourceSpec("nowhere"),)), "no source 'nowhere': choose from .*history"),
        (Recipe("r", "", system=("notes",)), "no system part 'notes': choose from profile, summary"),
        (Recipe("r", "", gate="ajar"), "no gate 'ajar': choose from all, off, reply"),
        (Recipe("r", "", sources=(SourceSpec("history", "magic"),)), "recipe 'r': retrievers: there is no 'magic'"),
        (Recipe("r", "", planner="x"), "recipe 'r': planners: there is no 'x': choose from .*rules"),
        (Recipe("r", "", judge="x"), "judges: there is no 'x'"),
        (Recipe("r", "", selector="x"), "selectors: there is no 'x'"),
        (Recipe("r", "", critic="x"), "critics: there is no 'x'"),
        (Recipe("r", "", reader="x"), "readers: there is no 'x'"),
    ],
)
def test_a_recipe_whose_parts_are_missing_is_refused_with_those_that_exist(recipe: Recipe, words: str) -> None:
    with pytest.raises(ConfigError, match=words + ".*nyima-lab"):
        registry().check(recipe)


@pytest.mark.parametrize("name", sorted(registry().recipes))
def test_every_recipe_can_be_chosen_and_says_what_it_is(name: str) -> None:
    recipe = registry().recipe(name)
    assert registry().check(recipe) is recipe
    assert recipe.about


def test_the_writers_of_a_recipe_are_those_that_it_names() -> None:
    known = registry()
    named = {w.name for w in known.writers(known.recipe("default"))}
    assert {"recursive", "claims", "mend"} <= named
    assert {w.name for w in known.writers(known.recipe("none"), When.TURN, When.SESSION_END)} == set()
    assert {w.name for w in known.writers(known.recipe("default"), When.TURN)} < named


def test_a_writer_that_a_recipe_does_not_owe_is_not_asked() -> None:
    lazy = Mechanism("lazy", "", writers=(Writer("lazy", When.TURN, write, owed=lambda r: r.name != "free"),))
    known, recipe = Registry((lazy,)), Recipe("paid", "", writers=("lazy",))
    assert [w.name for w in known.writers(recipe)] == ["lazy"]
    assert known.writers(replace(recipe, name="free")) == ()


def test_a_job_that_nothing_can_do_says_so() -> None:
    with pytest.raises(ConfigError, match="a job of kind 'dream' is owed that nothing installed can do.*nyima-lab"):
        registry().writer("dream")


def test_the_kinds_that_need_no_model_are_those_that_say_so() -> None:
    known = Registry(
        (
            Mechanism(
                "m",
                "",
                writers=(
                    Writer("asks", When.TURN, write),
                    Writer("rules", When.TURN, write, needs_model=False, quick=True),
                    Writer("at-once", When.NOW, needs_model=False),
                ),
            ),
        )
    )
    assert known.without_model() == ("rules",)
    assert known.quick() == ("rules",)
