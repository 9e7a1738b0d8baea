"""Forms: how they are read, and what may stand in a field."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.app.environment import build, load_settings
from nyima.errors import InputError
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory
from nyima.services import Field, fill, read_form
from nyima.services.known import known, related
from nyima.testing import FixedClock


def schema(root: dict[str, Any] | None = None, **fields: Any) -> str:
    return json.dumps({"type": "object", "properties": fields, **(root or {})})


def one(text: str) -> Field:
    (field,) = read_form(text).fields
    return field


def test_a_field_has_all_that_its_schema_says() -> None:
    told = {
        "title": "Age", "description": "in years", "type": ["null", "integer"], "minimum": 0, "maximum": 120,
        "maxLength": 3, "pattern": "^[0-9]+$", "format": "x",
    }  # fmt: skip
    assert one(schema({"required": ["age"]}, age=told)) == Field(
        "age", "Age", "in years", "integer", "x", "^[0-9]+$", (), 0, 120, 3, required=True
    )
    assert one(schema(a={"const": 7})).options == (7,)
    assert one(schema(a={"enum": [None, "x", 2]})).options == ("x", 2)
    assert one(schema(a={"type": "null"})).type == "string"


def test_objects_inside_are_named_with_a_dot_and_keep_what_they_require() -> None:
    inner = {"type": "object", "properties": {"city": {}, "street": {}}, "required": ["street"]}
    read = read_form(schema({"required": ["home"]}, home=inner, plain={}, nothing=5))
    assert [(f.name, f.required) for f in read.fields] == [
        ("home.city", False),
        ("home.street", True),
        ("plain", False),
    ]


@pytest.mark.parametrize("pointer", ["#/$defs/a~1b", "#/$defs/other"])
def test_references_are_followed_and_what_stands_beside_them_counts(pointer: str) -> None:
    defs = {"$defs": {"a/b": {"type": "integer", "title": "Theirs"}, "other": {"$ref": "#/$defs/a~1b"}}}
    field = one(schema(defs, n={"$ref": pointer, "title": "Mine"}))
    assert (field.type, field.title) == ("integer", "Mine")


def test_references_that_lead_nowhere_out_or_in_a_circle() -> None:
    circle = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    assert one(schema(circle, n={"$ref": "#/$defs/a"})).type == "string"
    assert one(schema(n={"$ref": "https://example.org/x.json"})).name == "n", "nothing is fetched"
    with pytest.raises(InputError, match=r"refers to '#/\$defs/gone', which it does not have: mend the \$ref"):
        read_form(schema(n={"$ref": "#/$defs/gone"}))


def test_a_form_of_a_thousand_fields_is_cut() -> None:
    assert len(read_form(schema(**{f"f{i}": {} for i in range(1_000)})).fields) == 500
    assert len(read_form("<form>" + "".join(f"<input name=f{i}>" for i in range(1_000))).fields) == 500


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["properties", "$ref", "type", "enum", "const", "pattern", "required", "minimum", "maxLength", "a"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["a", "b"]), json_values, min_size=1), json_values)
def test_any_schema_is_a_form_or_a_clear_error(fields: dict[str, Any], required: Any) -> None:
    with contextlib.suppress(InputError):
        read = read_form(schema({"required": required}, **fields))
        assert 0 < len(read.fields) <= 500
        assert all(f.longest is None or f.longest == int(f.longest) for f in read.fields)


def test_brackets_without_end_are_no_form() -> None:
    with pytest.raises(InputError, match="neither HTML nor JSON"):
        read_form("[" * 100_000)


def test_a_length_that_is_no_number_is_passed_over() -> None:
    assert one("<form><input name=a maxlength=²></form>").longest is None


def test_an_option_without_a_value_is_its_text() -> None:
    page = "<form><select name=diet><option>Vegan</option><option>Other</option></select></form>"
    assert one(page).options == ("Vegan", "Other")


def test_a_page_gives_types_options_and_limits() -> None:
    page = """<form><h1>Stay</h1>
    <input name=n type=number><input name=c type=checkbox><input name=d type=date><input name=t type=time>
    <input name=w type=datetime-local><input name=e TYPE=EMAIL><input name=z pattern='[0-9]{4}' maxlength=4>
    <input name=s type=radio value=single><input name=s type=radio value=married>
    <select name=o><option value=''>-</option><option value=x>X</option></select></form>"""
    read = read_form(page)
    assert read.title == "Stay"
    kinds = {f.name: (f.type, f.format, f.pattern, f.options, f.longest) for f in read.fields}
    assert kinds == {
        "n": ("number", "", "", (), None), "c": ("boolean", "", "", (), None), "d": ("string", "date", "", (), None),
        "t": ("string", "time", "", (), None), "w": ("string", "date-time", "", (), None),
        "e": ("string", "email", "", (), None), "z": ("string", "", "^(?:[0-9]{4})$", (), 4),
        "s": ("string", "", "", ("single", "married"), None), "o": ("string", "", "", ("x",), None),
    }  # fmt: skip


@pytest.mark.parametrize(
    "markup",
    [
        "<label for=i>E-mail</label><input id=i name=m>",
        "<label><input name=m> E-mail</label>",
        "<label><input name=m> E-mail<style>p {}</style></label>",
        pytest.param("<label>E-mail <input name=m></label>"),
        pytest.param("<label>E-mail <input id=i name=m></label>"),
        "<input name=m placeholder=E-mail>",
        "<input name=m aria-label=E-mail placeholder=x>",
        "<input id=i name=m placeholder=x><label for=i>E-mail</label>",
    ],
)
def test_a_label_is_the_title_of_its_field(markup: str) -> None:
    assert one(f"<form>{markup}</form>").title == "E-mail"


@pytest.mark.parametrize("kind", ["hidden", "submit", "button", "reset", "file", "image", "password", "PASSWORD"])
def test_what_is_not_for_words_is_no_field(kind: str) -> None:
    assert [f.name for f in read_form(f"<form><input name=a><input name=b type={kind}><input></form>").fields] == ["a"]


@pytest.mark.parametrize(
    "page", ["<form><input name=a pattern='('></form>", "<p>nothing</p>", "<script><input name=a></script>"]
)
def test_a_page_that_cannot_be_filled_is_explained(page: str) -> None:
    with pytest.raises(InputError):
        read_form(page)


# --- filling ---


@pytest.fixture
async def told(db: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    clock.at = datetime(2026, 5, 10, 12, tzinfo=UTC)
    memory = Memory(build(load_settings(db=db, zone="Europe/Lisbon"), chat=None, embedder=None, clock=clock))
    yield memory
    await memory.close()


async def filled(memory: Memory, **fields: Any) -> dict[str, Any]:
    return {f.field.name: f.value for f in await fill(memory, read_form(schema(**fields)))}


async def test_a_value_that_breaks_a_limit_is_left_out(told: Memory) -> None:
    await told.set("age", "36")
    await told.set("postcode", "4100-118")
    assert await filled(
        told,
        age={"type": "integer"},
        old_age={"title": "Age", "type": "integer", "minimum": 37},
        young_age={"title": "Age", "type": "integer", "maximum": 35},
        exact_age={"title": "Age", "type": "integer", "minimum": 36, "maximum": 36},
        postcode={"maxLength": 8},
        short_postcode={"title": "Postcode", "maxLength": 7},
    ) == {
        "age": 36,
        "old_age": None,
        "young_age": None,
        "exact_age": 36,
        "postcode": "4100-118",
        "short_postcode": None,
    }


async def test_what_was_revised_fills_the_new_value_with_its_evidence(told: Memory) -> None:
    old = await told.set("email", "old@example.pt")
    new = await told.revise(old.id, "new@example.pt")
    (found,) = await fill(told, read_form(schema(email={"format": "email"})))
    assert found.evidence is not None
    assert (found.value, found.evidence.id) == ("new@example.pt", new.id)


async def test_what_is_over_by_the_clock_fills_nothing(told: Memory, clock: FixedClock) -> None:
    await told.state(Statement("user", "phone", "+351 900 000 001", until=datetime(2026, 6, 1, tzinfo=UTC)))
    assert await filled(told, phone={}) == {"phone": "+351 900 000 001"}
    clock.forward(days=30)
    assert await filled(told, phone={}) == {"phone": None}


async def test_an_empty_memory_fills_nothing(told: Memory) -> None:
    asked = read_form(schema({"required": ["name"]}, name={}, email={}, birth_date={"format": "date"}))
    assert [(f.value, f.evidence, f.confidence) for f in await fill(told, asked)] == [(None, None, 0.0)] * 3


async def test_filling_leaves_no_trace(told: Memory) -> None:
    await told.set("email", "a@b.pt")
    await filled(told, email={"format": "email"})
    assert await told.store.events(told.scope, "recall") == []


async def test_people_are_found_by_what_they_are_to_the_user(told: Memory) -> None:
    await told.state(Statement("user", "sister", "Inês"))
    await told.state(Statement("user's sister's dog", "age", "4"))
    await told.state(Statement("user's daughter", "name", "Beatriz"))
    everything = await known(told)
    assert related(everything, "sister") == ["Inês"]
    assert "Beatriz" in related(everything, "daughter")
    assert related(everything, "brother") == []


async def test_the_dog_of_a_sister_is_no_sister(told: Memory) -> None:
    await told.state(Statement("user's sister's dog", "name", "Rex"))
    assert related(await known(told), "sister") == []
    assert await filled(told, sister_name={"title": "Sister's name"}) == {"sister_name": None}
