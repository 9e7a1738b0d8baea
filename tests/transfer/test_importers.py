"""Exports of other programs, old and new; odd ones; twice."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.domain.conversation import Origin, Role
from nyima.errors import InputError
from nyima.memory import Memory
from nyima.transfer.importers import Conversation, read_conversations


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


def claude(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**CLAUDE, "chat_messages": list(messages), **more}


def human(text: Any, id: str = "1", **more: Any) -> dict[str, Any]:
    return {"uuid": id, "sender": "human", "text": text, **more}


def read(path: Path, data: Any, format: str | None = None) -> list[Conversation]:
    return list(read_conversations(write(path, data), format))


@pytest.mark.parametrize("damaged", [{"mapping": 7}, {"mapping": {"a": []}}, {"chat_messages": [3]}])
def test_a_damaged_conversation_keeps_no_other_out(tmp_path: Path, damaged: dict[str, Any]) -> None:
    found = read(tmp_path / "conversations.json", [CLAUDE, damaged, chatgpt()])
    assert [len(c.turns) for c in found] == [2, 0, 2]
    assert found[0].id == "claude-k1"
    assert found[2].id == "chatgpt-c1"


@pytest.mark.parametrize("mapping", [7, None, [], {"a": []}])
def test_a_damaged_conversation_is_counted(tmp_path: Path, mapping: Any) -> None:
    (one,) = read(tmp_path / "conversations.json", [{"mapping": mapping}])
    assert one.skipped == 1


def test_a_loop_of_parents_ends(tmp_path: Path) -> None:
    nodes = {"a": node("a", "b", "user", "first"), "b": node("b", "a", "assistant", "second")}
    (one,) = read(tmp_path / "conversations.json", [{"mapping": nodes, "current_node": "a"}])
    assert sorted(t.text for t in one.turns) == ["first", "second"]


def test_without_a_current_node_the_last_leaf_is_followed(tmp_path: Path) -> None:
    nodes = {"a": node("a", None, "user", "said", ("b",)), "b": node("b", "a", "assistant", "replied")}
    (one,) = read(tmp_path / "conversations.json", [{"mapping": nodes}])
    assert [t.text for t in one.turns] == ["said", "replied"]


def test_what_tools_and_hidden_messages_say_is_no_turn_and_not_counted(tmp_path: Path) -> None:
    nodes = {
        "a": node("a", None, "tool", "a search"),
        "b": node("b", "a", "user", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        "c": node("c", "b", "user", "seen"),
    }
    (one,) = read(tmp_path / "conversations.json", [{"mapping": nodes, "current_node": "c"}])
    assert ([t.text for t in one.turns], one.skipped) == (["seen"], 0)


def test_an_export_in_an_object_is_read_like_a_list(tmp_path: Path) -> None:
    assert [c.id for c in read(tmp_path / "a.json", {"conversations": [CLAUDE]})] == ["claude-k1"]
    assert [c.id for c in read(tmp_path / "a.json", CLAUDE)] == ["claude-k1"]


@pytest.mark.parametrize(("format", "data"), [("claude", [chatgpt()]), ("chatgpt", [CLAUDE])])
def test_a_format_that_is_named_refuses_the_other(tmp_path: Path, format: str, data: Any) -> None:
    with pytest.raises(InputError, match="conversation 1 is of no known format"):
        read(tmp_path / "conversations.json", data, format)


def test_an_unknown_format_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'gemini': choose one of chatgpt, claude, jsonl, mcp-memory, text"):
        read(tmp_path / "conversations.json", [], "gemini")


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("talk.json", '{"text": "I like tea"}\n', "jsonl"),
        ("talk.json", "Karen: I like tea\n", "text"),
        ("export.txt", json.dumps([claude(human("I like tea"))]), "claude"),
        ("conversations.JSON", json.dumps([claude(human("I like tea"))]), None),
    ],
)
def test_a_format_that_is_given_is_not_guessed(tmp_path: Path, name: str, content: str, format: str | None) -> None:
    path = tmp_path / name
    path.write_text(content, "utf-8")
    (one,) = read_conversations(path, format)
    assert [t.text for t in one.turns] == ["I like tea"]


def zip_with(path: Path, content: bytes, **patched: int) -> Path:
    """A zip with one export whose headers are changed at the given places."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", content)
    data = bytearray(path.read_bytes())
    central = data.find(b"PK\x01\x02")
    for place, value in patched.items():
        at = {"flag": 6, "method": 8, "crc": 14}[place]
        data[at] ^= value
        data[central + at + 2] ^= value
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("damage", [{"crc": 1}, {"flag": 1}, {"method": 99}])
def test_a_damaged_or_locked_zip_is_named(tmp_path: Path, damage: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"export\.zip"):
        list(read_conversations(zip_with(tmp_path / "export.zip", b"[]" * 40, **damage)))


def test_a_zip_without_an_export_is_named(tmp_path: Path) -> None:
    packed = tmp_path / "photos.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("my-conversations.json", "[]")
        archive.writestr("conversations.json.bak", "[]")
    with pytest.raises(InputError, match=r"photos\.zip holds no conversations\.json"):
        list(read_conversations(packed))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="give the folder of an export"):
        list(read_conversations(tmp_path / "empty"))


def test_names_in_a_zip_that_leave_it_write_nothing(tmp_path: Path) -> None:
    packed = tmp_path / "in" / "export.zip"
    packed.parent.mkdir()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../conversations.json", json.dumps([CLAUDE]))
    assert [c.id for c in read_conversations(packed)] == ["claude-k1"]
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["export.zip", "in"]


def test_a_time_at_the_end_of_time_keeps_no_other_out(tmp_path: Path) -> None:
    last = claude(human("a"), human("b", "2"), created_at="9999-12-31T23:59:59.5Z")
    assert [len(c.turns) for c in read(tmp_path / "conversations.json", [last, chatgpt()])][-1] == 2


def test_parts_inside_parts_keep_no_other_out(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    found = read(tmp_path / "conversations.json", [claude(human("", content=deep)), chatgpt()])
    assert len(found[-1].turns) == 2


@pytest.mark.parametrize(("name", "format"), [("talk.jsonl", "jsonl"), ("memory.jsonl", "mcp-memory")])
def test_a_line_of_brackets_is_named(tmp_path: Path, name: str, format: str) -> None:
    path = tmp_path / name
    path.write_text('{"type": "entity", "name": "a", "text": "b"}\n' + "[" * 100_000, "utf-8")
    with pytest.raises(InputError, match="line 2"):
        list(read_conversations(path, format))


moments = st.none() | st.floats(-1e12, 1e12) | st.sampled_from(["2026-01-02T03:04:05Z", "yesterday", "", "2026-01-01"])


@given(st.lists(moments, max_size=8), moments)
def test_turns_never_go_back_in_time(tmp_path_factory: pytest.TempPathFactory, times: list[Any], begin: Any) -> None:
    said = [human(f"message {i}", str(i), created_at=at) for i, at in enumerate(times)]
    folder = tmp_path_factory.mktemp("times")
    (one,) = read(folder / "conversations.json", [claude(*said, created_at=begin)])
    found = [t.at for t in one.turns if t.at is not None]
    assert len(found) == len(times)
    assert found == sorted(found)


def test_a_turn_without_a_time_follows_the_one_before_by_a_second(tmp_path: Path) -> None:
    said = (human("a", created_at="2026-01-02T03:04:05Z"), human("b", "2"), human("c", "3"))
    (one,) = read(tmp_path / "conversations.json", [claude(*said)])
    at = [t.at for t in one.turns]
    assert at[0] is not None
    assert at == [at[0] + timedelta(seconds=i) for i in range(3)]


names = st.sampled_from(["Karen", "Assistant", "ChatGPT", "Tomás", "me", "You"])
lines = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=20)


@given(st.lists(st.tuples(names, lines), min_size=1, max_size=8))
def test_a_transcript_gives_back_what_was_said(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("text") / "talk.txt"
    path.write_text("".join(f"{name}: {text}\r\n" for name, text in said), "utf-8")
    (one,) = read_conversations(path)
    assert [t.text for t in one.turns] == [text for _, text in said]
    assert one == next(iter(read_conversations(path))), "the same ids and times when it is read again"


@pytest.mark.parametrize(
    ("talk", "user"),
    [
        ("Nyima: hello\nTom: hi\nKaren: hey\n", "hi"),
        ("Tom: hi\nMe: it is me\n", "it is me"),
        ("ChatGPT: only I speak\n", "only I speak"),
    ],
)
def test_the_first_who_is_no_assistant_is_the_user(tmp_path: Path, talk: str, user: str) -> None:
    path = tmp_path / "talk.txt"
    path.write_text(talk, "utf-8")
    (one,) = read_conversations(path)
    assert [t.text for t in one.turns if t.role is Role.USER] == [user]


def test_a_time_in_brackets_is_the_time_of_the_line(tmp_path: Path) -> None:
    path = tmp_path / "talk.txt"
    path.write_text("\ufeff[2026-01-02 03:04] Karen: see https://x.org/a: b\n[soon] Karen: later\n", "utf-8")
    (one,) = read_conversations(path)
    assert [t.text for t in one.turns] == ["see https://x.org/a: b", "later"]
    assert one.turns[0].at == datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def test_what_is_no_utf_8_is_named(tmp_path: Path) -> None:
    for name in ("talk.txt", "talk.jsonl"):
        (tmp_path / name).write_bytes(b"Karen: caf\xe9")
        with pytest.raises(InputError, match=f"{name} cannot be read as UTF-8"):
            list(read_conversations(tmp_path / name))


rows = st.fixed_dictionaries(
    {"text": st.text(st.characters(codec="utf-8"), max_size=12)},
    optional={"role": st.sampled_from(["user", "assistant", "tool"]), "session": st.sampled_from(["a", "b", ""])},
)


@given(st.lists(rows, max_size=8))
def test_json_lines_give_each_text_once_in_its_session(
    tmp_path_factory: pytest.TempPathFactory, given_rows: list[dict[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("jsonl") / "talk.jsonl"
    path.write_text("\n".join(json.dumps(r, ensure_ascii=False) for r in given_rows), "utf-8")
    found = {c.id: [t.text for t in c.turns] for c in read_conversations(path)}
    spoken = [r for r in given_rows if r["text"].strip()]
    for name in {r.get("session") or "talk" for r in spoken}:
        assert found[f"jsonl-{name}"] == [r["text"] for r in spoken if (r.get("session") or "talk") == name]
    assert sum(map(len, found.values())) == len(spoken)


def test_lines_keep_who_said_them_and_how_far_they_are_trusted(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    said = [
        {"text": "a", "speaker": "Karen", "id": "x"},
        {"role": "tool", "text": "b"},
        {"role": "system", "text": "c"},
    ]
    path.write_text("\n".join(map(json.dumps, said)), "utf-8")
    (one,) = read_conversations(path)
    assert [(t.speaker, t.id) for t in one.turns] == [("Karen", "x"), ("", "2"), ("", "3")]
    assert [t.origin for t in one.turns] == [Origin.IMPORT, Origin.TOOL, Origin.TOOL]


def test_the_records_of_an_export_are_no_turns(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    found = [{"nyima": 1}, {"session": {"id": "s"}}, {"turn": {"text": "a", "session": "s"}}, {"record": {"id": "r"}}]
    path.write_text("\n".join(map(json.dumps, found)), "utf-8")
    (one,) = read_conversations(path)
    assert (one.id, [t.text for t in one.turns], one.skipped) == ("jsonl-s", ["a"], 0)


def test_the_mcp_servers_memory_says_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    entity = {"type": "entity", "name": "Ana", "observations": ["sings", "sings"]}
    path.write_text("\n\n".join(map(json.dumps, [entity, entity, {"type": "unknown"}])), "utf-8")
    (one,) = read_conversations(path)
    assert [t.text for t in one.turns] == ["Ana: sings"]
    assert {t.origin for t in one.turns} == {Origin.IMPORT}
