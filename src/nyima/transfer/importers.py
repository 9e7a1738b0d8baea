"""Conversations from other programs, as sessions of turns. Only reads; never trusts.

Formats: ``chatgpt`` and ``claude`` exports (a zip, a folder, one ``conversations.json``
or the numbered files of 2026), ``jsonl`` (Nyima's own export, or one turn a line),
``mcp-memory`` (the ``memory.json`` of MCP's reference memory server) and ``text`` (``Name: what was said`` lines). Ids are stable, so that importing twice stores
nothing twice.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from nyima.domain.conversation import Origin, Role, as_utc
from nyima.errors import InputError
from nyima.memory import Said

__all__ = ["FORMATS", "Conversation", "read_conversations"]

FORMATS = ("chatgpt", "claude", "jsonl", "mcp-memory", "text")
_CONVERSATIONS = re.compile(r"(?:^|/)conversations(?:-\d+)?\.json$")
_LARGEST = 1 << 30
_LAST_MOMENT = datetime(9999, 12, 31, tzinfo=UTC)
_RATIO = 200
_LINE = re.compile(r"(?:\[([^\]]{4,40})\][ \t]*)?([^:\s](?:[^:\n]{0,39}[^:\s])?)[ \t]{0,8}:[ \t]+(.*)$")
_USERS = frozenset({"user", "you", "me", "human", "i"})
_ASSISTANTS = frozenset({"assistant", "ai", "bot", "chatgpt", "claude", "gpt", "model", "nyima", "system"})


@dataclass(frozen=True, slots=True)
class Conversation:
    """One session to import."""

    id: str
    title: str
    turns: tuple[Said, ...]
    skipped: int = 0


def read_conversations(path: Path, format: str | None = None) -> Iterator[Conversation]:
    """The conversations of a file or folder. Raises InputError naming the file and what
    is wrong with it."""
    if not path.exists():
        raise InputError(f"{path} does not exist: give a file or a folder")
    if format is not None and format not in FORMATS:
        raise InputError(f"there is no format {format!r}: choose one of {', '.join(FORMATS)}")
    ending = path.suffix.lower()
    if format == "mcp-memory" or (format is None and _is_mcp_memory(path)):
        yield _mcp_memory(path)
    elif format == "jsonl" or (format is None and ending in {".jsonl", ".ndjson"}):
        yield from _jsonl(path)
    elif (
        format in {"chatgpt", "claude"}
        or path.is_dir()
        or zipfile.is_zipfile(path)
        or (not format and ending == ".json")
    ):
        for name, data in _documents(path):
            yield from _export(name, data, format)
    else:
        yield from _text(path)


def _documents(path: Path) -> Iterator[tuple[str, Any]]:
    if path.is_dir():
        files = sorted(p for p in path.rglob("*.json") if _CONVERSATIONS.search(p.as_posix()))
        if not files:
            raise InputError(f"{path} holds no conversations.json: give the folder of an export")
        for file in files:
            yield file.name, _parse(file.name, file.read_bytes())
    elif zipfile.is_zipfile(path):
        try:
            yield from _unzipped(path)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
            raise InputError(f"{path} cannot be unpacked: {error}: download the export again") from error
    else:
        yield path.name, _parse(path.name, path.read_bytes())


def _unzipped(path: Path) -> Iterator[tuple[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        infos = sorted((i for i in archive.infolist() if _CONVERSATIONS.search(i.filename)), key=lambda i: i.filename)
        if not infos:
            raise InputError(f"{path} holds no conversations.json: give the zip of an export")
        for info in infos:
            if info.file_size > _LARGEST or info.file_size > _RATIO * max(1, info.compress_size):
                raise InputError(
                    f"{path}: {info.filename} unpacks to {info.file_size:,} bytes: too large to be an export"
                )
            yield info.filename, _parse(info.filename, archive.read(info))


def _parse(name: str, content: bytes) -> Any:
    try:
        return json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is no JSON: {error}: export it again") from error


def _export(name: str, data: Any, format: str | None) -> Iterator[Conversation]:
    if isinstance(data, dict):
        data = cast("dict[str, Any]", data).get("conversations", [data])
    if not isinstance(data, list):
        raise InputError(f"{name} is no list of conversations: give a ChatGPT or Claude export")
    for number, item in enumerate(data):
        if not isinstance(item, dict):
            raise InputError(f"{name}: conversation {number + 1} is no object: export it again")
        one = cast("dict[str, Any]", item)
        if "mapping" in one and format in {None, "chatgpt"}:
            read = _chatgpt
        elif "chat_messages" in one and format in {None, "claude"}:
            read = _claude
        else:
            raise InputError(
                f"{name}: conversation {number + 1} is of no known format: give a ChatGPT or Claude export"
            )
        try:
            yield read(name, number, one)
        except (AttributeError, TypeError, ValueError, LookupError, RecursionError, OverflowError):
            # One conversation that is damaged must not keep the others out; it is counted.
            yield Conversation(f"damaged-{_key(name, number)}", "", (), skipped=1)


def _moment(value: Any) -> datetime | None:
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str) and value:
            moment = datetime.fromisoformat(value)
            return as_utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _key(*parts: object) -> str:
    return hashlib.sha256("\x1f".join(map(str, parts)).encode("utf-8", "replace")).hexdigest()[:20]


def _timed(turns: list[tuple[str, Role, str, datetime | None]], begin: datetime | None) -> tuple[Said, ...]:
    """Turns with a time each: a missing one follows the turn before by a second."""
    last = begin or next((t[3] for t in turns if t[3]), None) or datetime(2000, 1, 1, tzinfo=UTC)
    out: list[Said] = []
    for id, role, text, at in turns:
        last = at if at and at >= last else min(last, _LAST_MOMENT) + timedelta(seconds=1)
        origin = {Role.USER: Origin.IMPORT, Role.ASSISTANT: Origin.ASSISTANT}.get(role, Origin.TOOL)
        out.append(Said(text, role, last, origin=origin, id=id))
    return tuple(out)


def _texts(value: Any) -> str:
    """The words of a message's parts; pictures and files are left out."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, (_texts(v) for v in value)))
    if isinstance(value, dict):
        part = cast("dict[str, Any]", value)
        return _texts(part.get("text") or part.get("parts") or "")
    return ""


def _chatgpt(name: str, number: int, item: dict[str, Any]) -> Conversation:
    """The branch that the user last saw, from the root to ``current_node``."""
    mapping = cast("dict[str, Any]", item["mapping"])
    if not all(node is None or isinstance(node, dict) for node in mapping.values()):
        raise ValueError("a conversation is a mapping of nodes")
    key = str(item.get("conversation_id") or item.get("id") or _key(name, number, sorted(mapping)))
    chain: list[Mapping[str, Any]] = []
    node = item.get("current_node") or next((k for k, v in mapping.items() if not (v or {}).get("children")), None)
    seen: set[str] = set()
    while isinstance(node, str) and node in mapping and node not in seen:
        seen.add(node)
        chain.append(mapping[node] or {})
        node = chain[-1].get("parent")
    turns: list[tuple[str, Role, str, datetime | None]] = []
    skipped = 0
    for place, entry in enumerate(reversed(chain)):
        message = entry.get("message") or {}
        role = (message.get("author") or {}).get("role")
        hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
        text = _texts(message.get("content") or {}).strip()
        if role not in {"user", "assistant"} or hidden or not text:
            skipped += bool(message) and role in {"user", "assistant"} and not hidden
            continue
        turns.append((str(message.get("id") or place), Role(role), text, _moment(message.get("create_time"))))
    return Conversation(
        f"chatgpt-{key}", str(item.get("title") or ""), _timed(turns, _moment(item.get("create_time"))), skipped
    )


def _claude(name: str, number: int, item: dict[str, Any]) -> Conversation:
    key = str(item.get("uuid") or _key(name, number))
    turns: list[tuple[str, Role, str, datetime | None]] = []
    skipped = 0
    for place, message in enumerate(item.get("chat_messages") or []):
        text = (message.get("text") or _texts(message.get("content") or "")).strip()
        if not text:
            skipped += 1
            continue
        role = Role.USER if message.get("sender") in {"human", "user"} else Role.ASSISTANT
        turns.append((str(message.get("uuid") or place), role, text, _moment(message.get("created_at"))))
    return Conversation(
        f"claude-{key}", str(item.get("name") or ""), _timed(turns, _moment(item.get("created_at"))), skipped
    )


def _lines(path: Path) -> list[str]:
    """Split at line feeds alone: a text may hold other line separators."""
    try:
        return [line.rstrip("\r") for line in path.read_text("utf-8-sig").split("\n")]
    except (UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path} cannot be read as UTF-8 text: {error}") from error


def _jsonl(path: Path) -> Iterator[Conversation]:
    """One turn a line: ``{"session", "role", "text", "at", "speaker", "id"}``; only
    ``text`` is needed. Lines of an export that are no turns are skipped."""
    sessions: dict[str, list[Said]] = {}
    skipped = 0
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            row = row.get("turn", row) if isinstance(row, dict) else row
            if "text" not in row and {"record", "session", "event", "nyima"} & set(row):
                continue
            text = row.get("text", row.get("content"))
            role = Role(row.get("role", "user"))
        except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: {error}: each line is an object with role and text") from error
        if not isinstance(text, str) or not text.strip():
            skipped += 1
            continue
        session = str(row.get("session") or path.stem)
        said = Said(
            text, role, _moment(row.get("at")), str(row.get("speaker") or ""), None, str(row.get("id") or number)
        )
        sessions.setdefault(session, []).append(said)
    for index, (session, turns) in enumerate(sessions.items()):
        start = next((t.at for t in turns if t.at), None)
        timed = _timed([(t.id, t.role, t.text, t.at) for t in turns], start)
        named = tuple(Said(t.text, t.role, t.at, s.speaker, t.origin, t.id) for t, s in zip(timed, turns, strict=True))
        yield Conversation(f"jsonl-{session}", "", named, 0 if index else skipped)


def _is_mcp_memory(path: Path) -> bool:
    """Whether a file's first line is an entity or a relation of the reference server."""
    if not path.is_file() or path.suffix not in {".json", ".jsonl"}:
        return False
    with path.open("rb") as file:
        first = file.readline(100_000)
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and row.get("type") in {"entity", "relation"}


def _mcp_memory(path: Path) -> Conversation:
    """Each observation and each relation as a turn, in words."""
    texts: list[str] = []
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if row["type"] == "entity":
                kind = f" ({row['entityType']})" if row.get("entityType") else ""
                texts += [f"{row['name']}{kind}: {text}" for text in map(str, row.get("observations", []))]
            elif row["type"] == "relation":
                texts.append(f"{row['from']} {str(row['relationType']).replace('_', ' ')} {row['to']}")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: {error!r}: each line is an entity or a relation") from error
    turns: list[tuple[str, Role, str, datetime | None]] = [
        (_key(text), Role.USER, text, None) for text in dict.fromkeys(texts)
    ]
    return Conversation("mcp-memory", "memory of an MCP server", _timed(turns, None))


def _text(path: Path) -> Iterator[Conversation]:
    """``Name: what was said``; a blank line between conversations; lines without a name
    go on with the turn before. The first speaker who is no assistant is the user."""
    blocks: list[list[tuple[str, str, datetime | None]]] = [[]]
    for line in _lines(path):
        match = _LINE.match(line.strip())
        if not line.strip():
            if blocks[-1]:
                blocks.append([])
        elif match is not None:
            blocks[-1].append((match[2].strip(), match[3].strip(), _moment(match[1])))
        elif blocks[-1]:
            speaker, text, at = blocks[-1][-1]
            blocks[-1][-1] = (speaker, f"{text}\n{line.strip()}", at)
        else:
            raise InputError(f"{path}: {line[:60]!r} has no speaker: write lines as `Name: what was said`")
    for number, block in enumerate(filter(None, blocks)):
        names = list(dict.fromkeys(s.lower() for s, _, _ in block))
        user = next((n for n in names if n in _USERS), None) or next(
            (n for n in names if n not in _ASSISTANTS), names[0]
        )
        content = _key(*(f"{s}:{t}" for s, t, _ in block))
        raw = [
            (str(i), Role.USER if s.lower() == user else Role.ASSISTANT, t, at) for i, (s, t, at) in enumerate(block)
        ]
        timed = _timed(raw, None)
        named = tuple(
            Said(t.text, t.role, t.at, "" if s.lower() in _USERS | _ASSISTANTS else s, t.origin, t.id)
            for t, (s, _, _) in zip(timed, block, strict=True)
        )
        yield Conversation(f"text-{content}", f"{path.stem} {number + 1}", named)
