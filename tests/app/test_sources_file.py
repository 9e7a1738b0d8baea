"""The file of the user's own sources: what is kept, and what is refused before it is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nyima.app.settings import Settings
from nyima.app.sources_file import Declared, add_source, read_sources, remove_source
from nyima.errors import ConfigError, NotFound
from nyima.memory import Memory

MODULE = '''
def shelf(query):
    """What is on the shelf.

    More that nobody needs.
    """
    return f"on the shelf: {query}"


def attic(query, given):
    return [f"{query} beside {text}" for text in given]
'''


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    (tmp_path / "own_shelf.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield Settings(sources=str(tmp_path / "deep" / "sources.json"))
    sys.modules.pop("own_shelf", None)


def held(settings: Settings) -> list[dict[str, Any]]:
    path = Path(settings.sources)
    return list(json.loads(path.read_text("utf-8"))) if path.exists() else []


def test_a_source_is_kept_with_the_first_line_that_its_function_says(settings: Settings) -> None:
    add_source(settings, Declared("shelf", call="own_shelf:shelf"))
    add_source(settings, Declared("attic", "old things", "own_shelf:attic", after=("shelf", "profile")))
    assert [(s.name, s.about, s.after) for s in read_sources(settings)] == [
        ("shelf", "What is on the shelf.", ()),
        ("attic", "old things", ("shelf", "profile")),
    ]


async def test_what_earlier_sources_brought_is_given_to_who_asks_for_it(settings: Settings, memory: Memory) -> None:
    add_source(settings, Declared("shelf", call="own_shelf:shelf"))
    add_source(settings, Declared("attic", call="own_shelf:attic", after=("shelf",)))
    memory.use(*read_sources(settings))
    found = (await memory.recall("atlas")).found
    assert {e.text for e in found} == {"on the shelf: atlas", "atlas beside on the shelf: atlas"}


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (Declared("a"), "needs one of --call module:function and --mcp COMMAND"),
        (Declared("a", call="own_shelf:shelf", mcp="server", tool="t"), "needs one of --call"),
        (Declared("a", mcp="server"), "needs --tool, the name of the MCP server's tool"),
        (Declared("a b", call="own_shelf:shelf"), "'a b' is no name for a source: give another word"),
        (Declared("", call="own_shelf:shelf"), "'' is no name for a source"),
        (Declared("history", call="own_shelf:shelf"), "history, .*are taken"),
        (Declared("a", mcp="server 'open", tool="t"), "the command \"server 'open\" of 'a' cannot be read"),
        (Declared("a", call="own_shelf:gone"), "'own_shelf:gone' cannot be loaded"),
        (Declared("a", call="own_shelf:shelf", after=("nowhere",)), "'a' depends on 'nowhere', which does not exist"),
        (Declared("a", call="own_shelf:shelf", after=("a",)), "circle"),
    ],
)
def test_what_makes_no_sense_is_refused_and_not_kept(settings: Settings, declared: Declared, words: str) -> None:
    add_source(settings, Declared("first", call="own_shelf:shelf"))
    before = held(settings)
    with pytest.raises(ConfigError, match=words):
        add_source(settings, declared)
    assert held(settings) == before


def test_the_command_of_a_server_is_split_as_a_shell_does(settings: Settings) -> None:
    add_source(settings, Declared("books", mcp="server --name 'my books'", tool="look_up"))
    (source,) = read_sources(settings)
    assert source.about == "the tool look_up"
    assert source.find is not None
    assert ["server", "--name", "my books"] in [c.cell_contents for c in source.find.__closure__ or ()]


def test_a_source_that_another_needs_stays(settings: Settings) -> None:
    add_source(settings, Declared("shelf", call="own_shelf:shelf"))
    add_source(settings, Declared("attic", call="own_shelf:attic", after=("shelf",)))
    with pytest.raises(ConfigError, match="'attic' depends on 'shelf', which does not exist"):
        remove_source(settings, "shelf")
    assert len(held(settings)) == 2
    remove_source(settings, "attic")
    remove_source(settings, "shelf")
    assert held(settings) == []
    with pytest.raises(NotFound, match="there is no source of your own 'shelf': `nyima sources` lists them"):
        remove_source(settings, "shelf")


def test_a_source_whose_module_is_gone_can_still_be_removed(settings: Settings, tmp_path: Path) -> None:
    add_source(settings, Declared("shelf", call="own_shelf:shelf"))
    (tmp_path / "own_shelf.py").unlink()
    del sys.modules["own_shelf"]
    remove_source(settings, "shelf")
    assert read_sources(settings) == ()


@pytest.mark.parametrize(
    "text", ["{", '{"a": 1}', "[1]", '[["name"]]', '[{"nome": "a"}]', '[{"name": "a", "after": 5}]', "5"]
)
def test_a_file_that_cannot_be_read_is_named(settings: Settings, text: str) -> None:
    path = Path(settings.sources)
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"sources\.json cannot be read: .*: mend it, or remove it"):
        read_sources(settings)


def test_a_name_that_is_no_text_is_named(settings: Settings) -> None:
    path = Path(settings.sources)
    path.parent.mkdir()
    path.write_text('[{"name": 5, "call": "own_shelf:shelf"}]')
    with pytest.raises(ConfigError):
        read_sources(settings)


def test_two_of_one_name_in_the_file_are_refused(settings: Settings) -> None:
    path = Path(settings.sources)
    path.parent.mkdir()
    path.write_text(json.dumps([{"name": "shelf", "call": "own_shelf:shelf"}] * 2))
    with pytest.raises(ConfigError, match="there are two sources of the name 'shelf': give one of them another name"):
        read_sources(settings)
