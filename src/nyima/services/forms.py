"""Fill a form from memory (Wang et al. 2024, section 4.4): JSON Schema 2020-12 or HTML.

A field gets a value only when something that is known says so; the value has the field's
type, is one of its options, fits its pattern and its dates have its format. Each value
comes with the memory that it rests on and a confidence; what is unknown stays empty.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from nyima.domain.evidence import Budget
from nyima.domain.records import ME, MemoryRecord
from nyima.errors import InputError
from nyima.mechanisms.documents.markup import Closed, MarkupPiece, Opened, pieces_of
from nyima.memory import Memory
from nyima.services.known import Stated, known
from nyima.services.matching import asked_of, score
from nyima.services.values import Field, FieldValue, value_for

__all__ = ["Field", "Filled", "Form", "fill", "read_form"]

_MOST_FIELDS = 500
_DEEPEST = 6
_SURE = 0.5


@dataclass(frozen=True, slots=True)
class Form:
    """A form with its fields in order."""

    title: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Filled:
    """A field with its value, None when it is not known; ``evidence`` is the memory that
    says so, ``confidence`` lies in 0..1."""

    field: Field
    value: FieldValue = None
    evidence: MemoryRecord | None = None
    confidence: float = 0.0


def read_form(text: str) -> Form:
    """A form from a JSON Schema or an HTML page; scripts in it are never run. Raises
    InputError."""
    if text.lstrip().startswith("<"):
        return _from_html(text)
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is neither HTML nor JSON: {error}: give a JSON Schema or an HTML form") from error
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        raise InputError("the schema has no properties: give an object with fields")
    fields = _properties(cast("dict[str, Any]", schema), cast("dict[str, Any]", schema), "", 0)
    if not fields:
        raise InputError("the schema has no field that can be filled")
    return Form(str(schema.get("title", "")), tuple(fields[:_MOST_FIELDS]))


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
    seen: set[str] = set()
    while isinstance(schema.get("$ref"), str) and depth < _DEEPEST:
        ref = str(schema["$ref"])
        if ref in seen or not ref.startswith("#"):
            return {}
        seen.add(ref)
        target: Any = root
        for part in ref.lstrip("#/").split("/") if ref != "#" else ():
            target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            raise InputError(f"the schema refers to {ref!r}, which it does not have: mend the $ref")
        schema = {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
    return schema


def _properties(schema: Mapping[str, Any], root: Mapping[str, Any], above: str, depth: int) -> list[Field]:
    """The fields of an object; objects inside it with a dot, to a limit, so that a schema
    that contains itself ends."""
    fields: list[Field] = []
    listed = schema.get("required")
    required = {str(r) for r in listed} if isinstance(listed, list) else set[str]()
    for name, raw in schema.get("properties", {}).items():
        if not isinstance(raw, dict):
            continue
        part = _resolved(cast("dict[str, Any]", raw), root, depth)
        if isinstance(part.get("properties"), dict):
            if depth < _DEEPEST:
                fields += _properties(part, root, f"{above}{name}.", depth + 1)
            continue
        fields.append(_field(f"{above}{name}", part, required=name in required or part.get("required") is True))
    return fields


def _field(name: str, part: Mapping[str, Any], *, required: bool) -> Field:
    kind = part.get("type", "string")
    kinds = [k for k in (kind if isinstance(kind, list) else [kind]) if k != "null"]
    pattern = str(part.get("pattern", ""))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is odd in a pattern is the form's business
            re.compile(pattern)
    except re.error as error:
        raise InputError(f"field {name!r}: the pattern {pattern!r} is none: {error}") from error
    options: Any = [part["const"]] if "const" in part else part.get("enum") or []
    limits = [part.get(k) for k in ("minimum", "maximum", "maxLength")]
    if not isinstance(options, list) or any(
        isinstance(v, bool) or not isinstance(v, int | float | None) for v in limits
    ):
        raise InputError(
            f"field {name!r}: enum must be a list, and minimum, maximum and maxLength numbers: mend the schema"
        )
    return Field(
        name, str(part.get("title", "")), str(part.get("description", "")), str(kinds[0] if kinds else "string"),
        str(part.get("format", "")), pattern, tuple(o for o in options if o is not None),
        limits[0], limits[1], limits[2], required,
    )  # fmt: skip


class _FormPage:
    """Collects inputs, selects, textareas and labels; what a script says is not read."""

    def __init__(self) -> None:
        self.fields: dict[str, Field] = {}
        self.labels: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.title = ""
        self._in: list[str] = []
        self._label = self._select = ""
        self._option: str | None = None

    def read(self, pieces: Iterable[MarkupPiece]) -> None:
        """Take in a page."""
        for piece in pieces:
            match piece:
                case Opened(tag, given):
                    self._begin(tag, given)
                case Closed(tag):
                    self._end(tag)
                case text:
                    self._data(text)

    def _begin(self, tag: str, given: Mapping[str, str]) -> None:
        if tag in {"script", "style", "title", "h1", "legend", "label", "option"}:
            self._in.append(tag)
        if tag == "label":
            self._label = given.get("for", "")
        elif tag == "option" and self._select:
            self._option = "" if "value" not in given else None
            if given.get("value"):
                self._offer(given["value"])
        elif tag in {"input", "select", "textarea"}:
            self._input(tag, given)

    def _offer(self, option: str) -> None:
        field = self.fields[self._select]
        self.fields[self._select] = replace(field, options=(*field.options, option))

    def _input(self, tag: str, given: Mapping[str, str]) -> None:
        name, kind = given.get("name") or given.get("id", ""), given.get("type", "text").lower()
        if not name or kind in {"hidden", "submit", "button", "reset", "file", "image", "password"}:
            return
        self.ids[given.get("id", name)] = name
        if kind == "radio" and name in self.fields:
            field = self.fields[name]
            self.fields[name] = replace(field, options=(*field.options, given.get("value", "on")))
            return
        title = given.get("aria-label") or given.get("placeholder", "")
        made = _field(
            name,
            {
                "title": title,
                "type": {"number": "number", "checkbox": "boolean"}.get(kind, "string"),
                "format": {"date": "date", "email": "email", "time": "time", "datetime-local": "date-time"}.get(
                    kind, ""
                ),
                "pattern": f"^(?:{given['pattern']})$" if given.get("pattern") else "",
                "enum": [given.get("value", "on")] if kind == "radio" else [],
                "maxLength": int(given["maxlength"]) if given.get("maxlength", "").isdecimal() else None,
            },
            required="required" in given,
        )
        self.fields.setdefault(name, made)
        self._select = name if tag == "select" else self._select
        if "label" in self._in and not self._label:
            self._label = given.get("id", name)
            if "" in self.labels:  # words of the label that stood before its field
                self.labels[self._label] = self.labels.pop("")

    def _end(self, tag: str) -> None:
        if tag in self._in:
            self._in.remove(tag)
        if tag == "option":
            if self._option and self._select:
                self._offer(self._option)
            self._option = None
        if tag == "label":
            self._label = ""
            self.labels.pop("", None)
        self._select = "" if tag == "select" else self._select

    def _data(self, data: str) -> None:
        words = " ".join(data.split())
        if not words or {"script", "style"} & set(self._in):
            return
        if self._option is not None:
            self._option = f"{self._option} {words}".strip()
        elif "label" in self._in and "option" not in self._in:
            self.labels[self._label] = f"{self.labels.get(self._label, '')} {words}".strip()
        elif {"title", "h1", "legend"} & set(self._in) and not self.title:
            self.title = words


def _from_html(text: str) -> Form:
    page = _FormPage()
    page.read(pieces_of(text[:2_000_000]))
    for id, words in page.labels.items():
        name = page.ids.get(id, id)
        if name in page.fields:
            page.fields[name] = replace(page.fields[name], title=words)
    if not page.fields:
        raise InputError("the page has no field that can be filled: give a form with named inputs")
    return Form(page.title, tuple(page.fields.values())[:_MOST_FIELDS])


async def fill(memory: Memory, form: Form) -> list[Filled]:
    """Every field of a form, in its order. Needs no chat model."""
    everything = await known(memory)
    return [await _filled(memory, form, field, everything) for field in form.fields]


async def _filled(memory: Memory, form: Form, field: Field, everything: Sequence[Stated]) -> Filled:
    asked = asked_of(field, everything)
    if asked.words <= {"name"} and ME not in asked.owners:
        return _name_of(field, asked.owners, everything)
    question = f"{field.title or field.name.replace('_', ' ')} {field.about}".strip()
    found = await memory.recall(question, Budget(12, 10_000), kinds=("claim",), log=False)
    near = {e.record.id: e.score for e in found.found}
    best = Filled(field)
    at = memory.clock.now()
    for item in everything:
        sure = score(field, form.title, item, asked, near.get(item.record.id, 0.0))
        if sure < _SURE or sure < best.confidence:
            continue
        value = value_for(field, item, at, memory.zone)
        if value is not None and _fits(field, value):
            best = Filled(field, value, item.record, round(sure, 2))
    return best


def _name_of(field: Field, owners: frozenset[str], everything: Sequence[Stated]) -> Filled:
    """The name of somebody whom a relation names, or who has been given one."""
    for item in everything:
        if item.head in owners and item.label == "name":
            return Filled(field, item.tail, item.record, 0.9)
    for item in everything:
        named = item.tail if item.tail in owners else item.head if item.head in owners else ""
        if named[:1].isupper():
            return Filled(field, named, item.record, 0.9)
    return Filled(field)


def _fits(field: Field, value: FieldValue) -> bool:
    """Whether a value keeps all that the form asks of it."""
    if isinstance(value, str):
        if field.pattern and not re.search(field.pattern, value):
            return False
        return field.longest is None or len(value) <= field.longest
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (field.least is None or value >= field.least) and (field.most is None or value <= field.most)
    return True
