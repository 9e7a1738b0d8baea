"""What follows from the words of a recipe, and the recipes that are shipped."""

from __future__ import annotations

import pytest

from nyima.app.registry import registry
from nyima.domain.recipe import Recipe
from nyima.read.sources import in_order


@pytest.mark.parametrize(
    ("gate", "mechanisms", "notes"),
    [("off", ("a", "mend"), False), ("reply", ("a", "mend", "claims"), True), ("all", ("a", "mend"), False)],
)
def test_the_gate_says_who_looks_at_turns_and_whether_the_reply_notes(
    gate: str, mechanisms: tuple[str, ...], notes: bool
) -> None:
    recipe = Recipe("r", "", ("a",), gate)
    assert (recipe.mechanisms, recipe.takes_notes) == (mechanisms, notes)


@pytest.mark.parametrize("name", sorted(registry().recipes))
def test_every_installed_recipe_is_complete(name: str) -> None:
    recipe = registry().recipes[name]
    assert registry().check(recipe).about
    assert {"persona", "profile", "summary", "shots", "dialogue"} <= {*recipe.room}
    assert recipe.evidence.records > 0
    there = {s.name for s in recipe.sources}
    assert {*in_order({s.name: tuple(there & {*s.after}) for s in recipe.sources})} == there
