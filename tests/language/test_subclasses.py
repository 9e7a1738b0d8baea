"""The categories of claims, and those that the settings add."""

from __future__ import annotations

from pathlib import Path

import pytest

from nyima.app.environment import build, load_settings
from nyima.errors import ConfigError
from nyima.language.subclasses import SUBCLASSES, read_subclasses, subclass_of
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory
from nyima.testing import FixedClock


@pytest.mark.req("emg.types")
def test_the_four_types_have_their_subclasses() -> None:
    assert {s.type for s in SUBCLASSES} == {"Relationship", "Preference", "Event", "Attribute"}
    assert len({s.name for s in SUBCLASSES}) == len(SUBCLASSES) == 21
    assert all(s.examples for s in SUBCLASSES)


@pytest.mark.req("emg.types")
async def test_a_user_adds_a_subclass_without_code(db: Path, clock: FixedClock) -> None:
    settings = load_settings(db=db, embedder="none")
    from dataclasses import replace

    settings = replace(settings, subclasses=("Attribute/Boats: I sail a dinghy.; My yacht is in the harbour.",))
    memory = Memory(build(settings, chat=None, embedder=None, clock=clock))
    made = await memory.state(Statement("user", "owns", "yacht in the harbour"))
    await memory.close()
    assert made.subclass == "Boats"


@pytest.mark.parametrize("line", ["Boats: x", "Attribute/Boats", "Attribute/: x", "/Boats: x", "Attribute/Boats: ;"])
def test_a_line_that_cannot_be_read_is_named(line: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_subclasses([line])


def test_without_vectors_the_words_of_the_examples_decide() -> None:
    assert subclass_of("user runs: a shop, shifts at night") == "Occupation"
    assert subclass_of("xyzzy") == ""
