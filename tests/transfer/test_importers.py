"""Exports of other programs, old and new; odd ones; twice."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.domain.conversation import Origin, Role
from nyima.errors import InputError
from nyima.memory import Memory
from nyima.transfer.importers import read_conversations


def node(
    id: str, parent: str | None, role: str | None, text: Any, children: tuple[str, ...] = (), **more: Any
) -> dict[str, Any]:
    message = None
    if role:
        message = {
            "id": f"m-{id}",
            "author": {"role": role},
            "content": {"content_type": "text", "parts": [text]},
            "metadata": {},
            **more,
        }
    return {"id": id, "parent": parent, "children": list(children), "message": message}


def chatgpt(id: str = "c1", **more: Any) -> dict[str, Any]:
    nodes = [
        node("root", None, None, "", ("a",)),
        node("a", "root", "system", "hidden", ("b",), metadata={"is_visually_hidden_from_conversation": True}),
        node("b", "a", "user", "My cat is called Nyima", ("c", "d"), create_time=1_700_000_000.5),
        node("c", "b", "assistant", "an abandoned branch"),
        node("d", "b", "assistant", "Lovely!", ("e",)),
        node("e", "d", "user", {"image": 1}, ()),
    ]
    return {"conversation_id": id, "title": None, "current_node": "e", "mapping": {n["id"]: n for n in nodes}, **more}


CLAUDE = {
    "uuid": "k1",
    "name": "Cats",
    "created_at": "2026-01-02T03:04:05Z",
    "chat_messages": [
        {"uuid": "1", "sender": "human", "text": "I moved to Porto", "created_at": "2026-01-02T03:04:06Z"},
        {"uuid": "2", "sender": "assistant", "text": "", "content": [{"type": "text", "text": "Nice!"}]},
        {"uuid": "3", "sender": "human", "text": " "},
    ],
}


def write(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data), "utf-8")
    return path


def test_chatgpts_current_branch_is_read(tmp_path: Path) -> None:
    (one,) = read_conversations(write(tmp_path / "conversations.json", [chatgpt()]))
    assert [(t.role, t.text) for t in one.turns] == [(Role.USER, "My cat is called Nyima"), (Role.ASSISTANT, "Lovely!")]
    assert one.skipped == 1
    assert one.turns[0].origin is Origin.IMPORT
    assert one.turns[0].at is not None
    assert one.turns[0].at.year == 2023
    assert one.turns[1].at is not None
    assert one.turns[1].at > one.turns[0].at


def test_numbered_files_and_zips_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    write(folder / "conversations-000.json", [chatgpt("c1")])
    write(folder / "conversations-001.json", [chatgpt("c2")])
    write(folder / "user.json", {"x": 1})
    assert [c.id for c in read_conversations(folder)] == ["chatgpt-c1", "chatgpt-c2"]
    packed = tmp_path / "export.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inside/conversations.json", json.dumps([CLAUDE]))
    (one,) = read_conversations(packed)
    assert [(t.role.value, t.text) for t in one.turns] == [("user", "I moved to Porto"), ("assistant", "Nice!")]
    assert (one.title, one.skipped) == ("Cats", 1)


def test_a_transcript_is_read(tmp_path: Path) -> None:
    path = tmp_path / "talk.txt"
    path.write_text("Karen: I live in Moab\nin Utah\nAssistant: Nice\n\nKaren: again\n", "utf-8")
    first, second = read_conversations(path)
    assert [(t.role.value, t.speaker, t.text) for t in first.turns] == [
        ("user", "Karen", "I live in Moab\nin Utah"),
        ("assistant", "", "Nice"),
    ]
    assert len(second.turns) == 1


def test_json_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    rows = [
        {"text": "hello", "at": "2026-01-01T00:00:00Z"},
        {"role": "assistant", "text": "hi", "session": "other"},
        {"text": ""},
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n", "utf-8")
    conversations = list(read_conversations(path))
    assert [c.id for c in conversations] == ["jsonl-talk", "jsonl-other"]
    assert conversations[0].skipped == 1


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("conversations.json", "{not json", "no JSON"),
        ("conversations.json", "[1]", "no object"),
        ("conversations.json", '[{"x": 1}]', "no known format"),
        ("conversations.json", '"text"', "no list"),
        ("talk.jsonl", '{"role": "nobody", "text": "x"}', "line 1"),
        ("talk.jsonl", "[1]", "line 1"),
        ("talk.txt", "nothing said by anybody", "no speaker"),
        ("deep.json", "[" * 100_000, "no JSON"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, content: str, words: str) -> None:
    path = tmp_path / name
    path.write_text(content, "utf-8")
    with pytest.raises(InputError, match=words):
        list(read_conversations(path))


def test_a_missing_file_and_a_bomb_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        list(read_conversations(tmp_path / "nothing.json"))
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", "0" * 30_000_000)
    with pytest.raises(InputError, match="too large"):
        list(read_conversations(bomb))


async def test_importing_twice_stores_nothing_twice(memory: Memory, tmp_path: Path) -> None:
    path = write(tmp_path / "conversations.json", [chatgpt(), CLAUDE])
    for _ in range(2):
        for one in read_conversations(path):
            await memory.remember(one.turns, session=one.id, owed=False)
    assert len(await memory.turns()) == 4
    assert await memory.store.jobs(memory.scope) == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "parent", "message", "author", "role", "content", "parts", "text", "metadata", "children"]), inner, max_size=4),
    max_leaves=15,
)  # fmt: skip


@given(mapping=st.dictionaries(st.sampled_from(["a", "b"]), json_values, max_size=2), messages=json_values)
def test_any_json_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, mapping: Any, messages: Any) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    for item in ({"mapping": mapping, "current_node": "a"}, {"chat_messages": messages}):
        try:
            list(read_conversations(write(folder / "conversations.json", [item])))
        except InputError:
            continue


def test_the_memory_of_the_mcp_reference_server(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    rows = [
        {"type": "entity", "name": "Nyima", "entityType": "cat", "observations": ["is an orange tabby", "is eleven"]},
        {"type": "entity", "name": "Karen", "entityType": "", "observations": []},
        {"type": "relation", "from": "Karen", "to": "Nyima", "relationType": "is_the_owner_of"},
    ]
    path.write_text("\n".join(json.dumps(r) for r in rows), "utf-8")
    (one,) = read_conversations(path)
    assert [t.text for t in one.turns] == [
        "Nyima (cat): is an orange tabby",
        "Nyima (cat): is eleven",
        "Karen is the owner of Nyima",
    ]
    assert [t.id for t in one.turns] == [t.id for t in next(iter(read_conversations(path, "mcp-memory"))).turns]
    path.write_text('{"type": "relation"}', "utf-8")
    with pytest.raises(InputError, match="line 1"):
        list(read_conversations(path))
