"""Prompts as files: filled word by word, versioned by their bytes, read back as they were asked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from nyima.errors import ModelGarbled
from nyima.prompts.prompt import Prompt, TextOut, fill, sections, version


@dataclass(frozen=True, slots=True)
class In:
    """What the file below asks for."""

    name: str
    times: int


class Out(BaseModel):
    """What it wants back."""

    text: str = Field(min_length=1)
    facts: dict[str, str] = {}


FILE = "# A prompt\n\n## system\n\nBe $brief.\n\n### no section\n\n## user\n\nTell $name\n$times times, for $$5.\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"own_prompts_{abs(hash(tmp_path))}"
    (tmp_path / name / "prompts").mkdir(parents=True)
    (tmp_path / name / "__init__.py").touch()
    (tmp_path / name / "prompts" / "tell.md").write_text(FILE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_a_file_has_sections_and_what_stands_before_them_is_none(package: str) -> None:
    found = sections("tell", package)
    assert {k: v for k, v in found.items() if k} == {
        "system": "Be $brief.\n\n### no section",
        "user": "Tell $name\n$times times, for $$5.",
    }


def test_only_the_users_part_is_filled(package: str) -> None:
    prompt: Prompt[In, Out] = Prompt("tell", Out, 10, package)
    system, user = prompt.render(In("Karen", 3))
    assert (system.role, system.content) == ("system", "Be $brief.\n\n### no section")
    assert (user.role, user.content) == ("user", "Tell Karen\n3 times, for $5.")


def test_a_version_follows_the_bytes_of_the_file(package: str, tmp_path: Path) -> None:
    before = version("tell", package)
    assert before.startswith("tell@")
    (tmp_path / package / "prompts" / "tell.md").write_text(FILE + " ", "utf-8")
    assert version("tell", package) == before, "read once"
    sections.cache_clear()
    assert version("tell", package) != before
    assert Prompt("tell", Out, 10, package).version == version("tell", package)


texts = st.text(st.characters(codec="utf-8"), max_size=40)


@given(texts, texts)
def test_what_is_filled_in_stands_there_as_it_is(dialogue: str, message: str) -> None:
    filled = fill("note", "user", {"dialogue": dialogue, "message": message})
    rest = filled.replace(message, "", 1) if len(message) > len(dialogue) else filled.replace(dialogue, "", 1)
    assert message in filled
    assert dialogue in filled
    assert len(rest) == len(filled) - max(len(message), len(dialogue))


@given(texts.filter(bool), st.dictionaries(st.text("abc", min_size=1, max_size=5), texts, max_size=3))
def test_an_answer_in_the_asked_form_is_read_as_it_is(text: str, facts: dict[str, str]) -> None:
    prompt: Prompt[In, Out] = Prompt("summary", Out, 10)
    whole = json.dumps({"text": text, "facts": facts})
    assert prompt.parse(whole) == (Out(text=text, facts=facts), False)
    fenced, repaired = prompt.parse(f"```json\n{whole}\n```")
    assert repaired
    assert fenced.text.strip() == text.strip()


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_answer_is_read_or_refused(raw: str) -> None:
    prompt: Prompt[In, TextOut] = Prompt("summary", TextOut, 10)
    problem = ""
    try:
        assert prompt.parse(raw)[0].text
    except ModelGarbled as error:
        problem = str(error)
    assert not problem or "the model's answer to 'summary' cannot be read" in problem


def test_a_long_answer_is_not_told_whole() -> None:
    with pytest.raises(ModelGarbled) as caught:
        Prompt("summary", TextOut, 10).parse("no idea " * 1_000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("raw", ["[" * 5_000, '{"text": ' * 3_000])
def test_an_answer_of_brackets_is_refused(raw: str) -> None:
    with pytest.raises(ModelGarbled):
        Prompt("summary", TextOut, 10).parse(raw)


def test_a_schema_names_every_field_and_takes_no_other() -> None:
    prompt: Prompt[In, Out] = Prompt("summary", Out, 10)
    schema = prompt.schema()
    assert schema["required"] == ["text", "facts"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["text"] == {"minLength": 1, "type": "string"}
