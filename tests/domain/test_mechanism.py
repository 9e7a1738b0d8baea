"""The registry: names once, recipes checked, writers found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import T0, note
from nyima.domain.changes import Delta
from nyima.domain.evidence import Budget
from nyima.domain.mechanism import Mechanism, Registry, Source, When, Writer
from nyima.domain.recipe import Recipe, SourceSpec
from nyima.domain.records import Provenance
from nyima.domain.roles import Written
from nyima.errors import ConfigError


async def _write(desk: Any, scope: Any, job: Any) -> Written:
    return Written()


def make(*parts: Any) -> Any:
    return parts


def writer(name: str, when: When = When.TURN, **more: Any) -> Writer:
    return Writer(name, when, _write, **more)


PLAIN = Recipe("plain", "", ("notes",), sources=(SourceSpec("notes", "words", 3), SourceSpec("facts", "words", 2)))
WHOLE = Registry(
    (
        Mechanism("notes", "", (writer("note", makes="conditional"),), (Source("notes", ""), Source("facts", ""))),
        Mechanism("mend", "", (writer("mend", When.CHANGE, needs_model=False, quick=True),)),
        Mechanism("claims", "", (writer("claims", owed=lambda recipe: recipe.gate == "reply"),)),
        Mechanism("now", "", (Writer("now", When.NOW, needs_model=False),)),
        Mechanism(
            "roles", "", retrievers={"words": make}, planners={"all": make}, judges={"scores": make},
            selectors={"budget": make}, critics={"nli": make}, readers={"model": make}, recipes=(PLAIN,), learns=("walk",),
        ),
    )
)  # fmt: skip


def test_a_writer_of_jobs_without_a_function_is_refused() -> None:
    for when in (When.TURN, When.SESSION_END, When.CHANGE):
        with pytest.raises(ConfigError, match="'w' works in jobs: give write="):
            Writer("w", when)
    assert Writer("w", When.NOW).at_once((), T0) == Delta()


@pytest.mark.parametrize(
    ("what", "given"),
    [
        ("mechanism", {"name": "one"}),
        ("writer", {"writers": (writer("same"),)}),
        ("source", {"sources": (Source("same", ""),)}),
        ("recipe", {"recipes": (Recipe("same", ""),)}),
        *((role[:-1], {role: {"same": make}}) for role in
          ("retrievers", "planners", "judges", "selectors", "critics", "readers")),
    ],
)  # fmt: skip
def test_a_name_that_is_given_twice_is_refused_and_both_givers_are_named(what: str, given: dict[str, Any]) -> None:
    one, two = (Mechanism(**{"name": name, "about": "", **given}) for name in ("one", "two"))
    Registry((one,))
    with pytest.raises(ConfigError, match=f"the {what} .* is given twice, by 'one' and '{two.name}'"):
        Registry((one, two))


def test_one_name_may_stand_for_different_things() -> None:
    Registry((Mechanism("x", "", (writer("x"),), (Source("x", ""),), judges={"x": make}, planners={"x": make}),)).make(
        "judges", "x"
    )


def test_a_role_that_nobody_fills_names_those_that_exist() -> None:
    assert WHOLE.make("judges", "scores") is make
    with pytest.raises(ConfigError, match=r"judges: there is no 'x': choose from scores"):
        WHOLE.make("judges", "x")
    with pytest.raises(ConfigError, match="choose from none"):
        Registry(()).make("critics", "x")


def test_a_job_that_nothing_can_do_is_named() -> None:
    assert WHOLE.writer("mend").name == "mend"
    with pytest.raises(ConfigError, match="'memories' is owed that nothing installed can do"):
        WHOLE.writer("memories")


def test_a_recipe_has_the_writers_of_its_mechanisms_and_those_that_it_owes() -> None:
    assert [w.name for w in WHOLE.writers(PLAIN)] == ["note", "mend"]
    assert [w.name for w in WHOLE.writers(replace(PLAIN, gate="reply"))] == ["note", "mend", "claims"]
    assert [w.name for w in WHOLE.writers(replace(PLAIN, gate="all"))] == ["note", "mend"], "its gate owes nothing"
    assert [w.name for w in WHOLE.writers(PLAIN, When.CHANGE, When.NOW)] == ["mend"]
    assert WHOLE.writers(PLAIN, When.SESSION_END) == ()


def test_the_maker_of_a_record_is_found_by_what_it_makes() -> None:
    def made(by: str) -> str | None:
        found = WHOLE.maker(note("n", "x", provenance=Provenance(writer=by)))
        return found.name if found else None

    assert (made("conditional"), made("mend")) == ("note", "mend")
    assert made("note") is None, "its records bear another name"
    assert made("user") is None


def test_what_needs_no_model_and_what_is_quick() -> None:
    assert WHOLE.without_model() == ("mend",), "what works at once has no jobs"
    assert WHOLE.quick() == ("mend",)
    assert WHOLE.learns == ("walk",)


# --- name@k ---


@given(st.integers(1, 100))
def test_a_number_of_pieces_makes_room_for_them(k: int) -> None:
    made = WHOLE.recipe(f"plain@{k}")
    assert [s.k for s in made.sources] == [k, k]
    assert made.evidence.records == 2 * k
    assert made.evidence.tokens == max(PLAIN.evidence.tokens, PLAIN.evidence.tokens * 2 * k // 5)
    assert made.name == f"plain@{k}"


def test_a_recipe_without_sources_has_room_for_one_piece() -> None:
    bare = Registry((Mechanism("m", "", recipes=(Recipe("bare", "", evidence=Budget(6, 220)),)),))
    assert bare.recipe("bare@7").evidence == Budget(1, 220)


@pytest.mark.parametrize(
    "name", ["none", "", "plain@", "plain@0", "plain@101", "plain@-1", "plain@x", "plain@1.5", "@3"]
)
def test_a_recipe_that_does_not_exist_names_those_that_do(name: str) -> None:
    with pytest.raises(ConfigError, match="choose one of plain, or name@k"):
        WHOLE.recipe(name)


def test_a_superscript_is_no_number_of_pieces() -> None:
    with pytest.raises(ConfigError):
        WHOLE.recipe("plain@²")


# --- check ---


def test_a_recipe_of_what_is_installed_is_itself() -> None:
    whole = replace(PLAIN, gate="reply", critic="nli", system=("profile", "summary"))
    assert WHOLE.check(whole) is whole


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"writers": ("notes", "diary")}, "there is no writer 'diary': choose from claims, mend, notes, now"),
        ({"sources": (SourceSpec("web", "words"),)}, "there is no source 'web': choose from facts, notes"),
        ({"system": ("persona",)}, "there is no system part 'persona': choose from profile, summary"),
        ({"gate": "maybe"}, "there is no gate 'maybe': choose from all, off, reply"),
        ({"sources": (SourceSpec("notes", "magic"),)}, "retrievers: there is no 'magic'"),
        ({"planner": "x"}, "planners: there is no 'x'"),
        ({"judge": "x"}, "judges: there is no 'x'"),
        ({"selector": "x"}, "selectors: there is no 'x'"),
        ({"critic": "x"}, "critics: there is no 'x'"),
        ({"reader": "x"}, "readers: there is no 'x'"),
    ],
)
def test_whatever_is_missing_is_named_with_the_recipe(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^recipe 'plain': {message}"):
        WHOLE.check(replace(PLAIN, **change))


def test_what_only_reads_writes_nothing() -> None:
    with pytest.raises(ConfigError, match="there is no writer 'roles'"):
        WHOLE.check(replace(PLAIN, writers=("roles",)))
