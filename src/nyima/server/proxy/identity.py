"""Who asks, for whom, in which session, and whether the memory takes part."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from nyima.domain.conversation import Role, Scope, clean_text
from nyima.errors import InputError
from nyima.memory import Memory
from nyima.server.access.keys import Key
from nyima.server.problems import Problem

__all__ = ["RequestIdentity", "header", "housekeeping", "open_session", "own_session", "place_of", "scope_of", "told"]

_MODES = ("on", "off", "read", "write")
_LONGEST = 200
_TASK = "### task:"
_TASK_SIGNS = ("<chat_history>", "### Output:", "### Guidelines:", "JSON format")
_TITLE = re.compile(
    r"(?:please )?(?:provide|generate|create|write|suggest|summarize this (?:chat|conversation) (?:in|as|with))\b"
    r"[^.\n]{0,80}\btitle\b[^.\n]{0,40}\b(?:for|of|summari[sz]ing) (?:this|the|our)(?: following| above)?"
    r" (?:chat|conversation|dialogue|discussion)(?: history)?(?: (?:above|below|between|so far)\b[^.\n]{0,60})?\s*(?:[.,:;\n]|$)",
)
_AGAIN = timedelta(minutes=10)
_MOMENT = timedelta(seconds=30)
_MOST_ALIKE = 1_000


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """What a request says about itself: the memory, the session (empty when it names none),
    the mode, the key of an idempotent request."""

    scope: Scope
    session: str
    mode: str
    explicit: bool
    key: str

    @property
    def reads(self) -> bool:
        """Whether the memory is put in."""
        return self.mode in {"on", "read"}

    @property
    def writes(self) -> bool:
        """Whether message and reply are kept."""
        return self.mode in {"on", "write"}


def scope_of(key: Key, wanted: str) -> Scope:
    """The memory that a key opens for a user. Raises Problem 403 for another user's without
    the scope ``act-as``, 400 for a name that cannot be one."""
    if wanted and wanted != key.user and "act-as" not in key.scopes:
        raise Problem(403, "this key opens one user's memory only: leave the user out, or use a key with act-as")
    try:
        return key.scope(wanted)
    except InputError as error:
        raise Problem(400, str(error), param="user") from error


def told(key: Key, headers: Mapping[str, str], body: Mapping[str, Any], *, trusted: bool) -> RequestIdentity:
    """Read headers and body. ``trusted`` also reads the headers of other front ends (Open
    WebUI, LiteLLM). Raises Problem."""
    metadata = body.get("metadata")
    more: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    foreign = headers if trusted else {}
    conversation = body.get("conversation")
    named = conversation.get("id") if isinstance(conversation, dict) else conversation
    user = _first(
        header(headers, "x-nyima-user-id"), foreign.get("x-openwebui-user-id"), foreign.get("x-litellm-customer-id"),
        foreign.get("x-litellm-end-user-id"), body.get("safety_identifier"), body.get("user"), more.get("user_id"),
    )  # fmt: skip
    session = _first(
        header(headers, "x-nyima-session-id"), foreign.get("x-openwebui-chat-id"), foreign.get("x-litellm-session-id"),
        named, more.get("session_id"), body.get("prompt_cache_key"),
    )  # fmt: skip
    given = _first(headers.get("x-nyima-memory"), more.get("memory")).lower()
    if given and given not in _MODES:
        raise Problem(400, f"X-Nyima-Memory is {given[:40]!r}: give {', '.join(_MODES)}", param="x-nyima-memory")
    mode = "off" if _first(foreign.get("x-openwebui-task")) else given or "on"
    # A name that only another front end's fields give selects a user for keys that may act
    # for others; a key of one user keeps it to itself, whatever its program calls its users.
    own = header(headers, "x-nyima-user-id")
    wanted = user if "act-as" in key.scopes else own
    return RequestIdentity(scope_of(key, wanted), session, mode, bool(given), _first(headers.get("idempotency-key")))


def header(headers: Mapping[str, str], name: str) -> str:
    """A header in which programs write names as UTF-8, though headers are read as Latin-1."""
    found = headers.get(name, "")
    try:
        return found.encode("latin-1").decode()
    except UnicodeError:
        return found


def _first(*values: Any) -> str:
    """The first that is a text with something in it. Raises Problem 400 for one that is too long."""
    found = next((v.strip() for v in values if isinstance(v, str) and v.strip()), "")
    if len(found) > _LONGEST or any(ord(c) < 32 or ord(c) == 127 or 0xD800 <= ord(c) < 0xE000 for c in found):
        raise Problem(400, f"an id of {len(found)} characters is no id: give 1 to {_LONGEST} printable ones")
    return found


async def open_session(memory: Memory, id: str) -> str:
    """The session of a name. One that has ended, after a silence, is gone on with under a
    name of its own, so that what is said in it is summed up as well."""
    for number in range(1, _MOST_ALIKE):
        name = id if number == 1 else f"{id}+{number}"
        found = await memory.store.sessions(memory.scope, ids=(name,))
        if not found or found[0].ended is None:
            return name
    return id


async def place_of(
    memory: Memory, session: str, said: Sequence[str], now: datetime, *, answered: bool, own: bool
) -> str:
    """Where a message stands in its session. A request that shows all of the session's
    messages says it itself, so that asking again changes nothing; one that shows a part of
    them is the next message, unless the same was said a moment ago, or was not replied to.
    ``answered``: calls of tools follow it, so it was asked before, however long ago. ``own``:
    the program names no session, and the first message again within ten minutes is a retry."""
    turns = await memory.turns(session)
    stored = [t for t in turns if t.role is Role.USER]
    if len(said) == len(stored) and [t.text for t in stored] == list(said) and len(said) > 1:
        return str(len(said))
    if stored and stored[-1].text == clean_text(said[-1]):
        soon = now - stored[-1].at < (_AGAIN if own and len(said) == 1 == len(stored) else _MOMENT)
        if answered or soon or turns[-1].role is Role.USER:
            return str(len(stored))
    return str(len(stored) + 1)


async def own_session(memory: Memory, lines: Sequence[tuple[str, str]], now: datetime, *, goes_on: bool) -> str:
    """A session for a program that names none: the one whose messages the dialogue goes on
    from, else a new one. Its id follows from how the dialogue begins, so that a request
    that is sent again soon finds it again. ``goes_on``: tools were called since its message."""
    said = [text for role, text in lines if role == "user"]
    system = next((text for role, text in lines if role in {"system", "developer"}), "")
    base = "p-" + hashlib.sha256(f"{system}\x1f{said[0]}".encode("utf-8", "replace")).hexdigest()[:24]
    for number in range(1, _MOST_ALIKE):
        id = base if number == 1 else f"{base}-{number}"
        stored = [t for t in await memory.turns(id) if t.role is Role.USER]
        if not stored:
            return id
        if len(said) > 1 and [t.text for t in stored][: len(said) - 1] == said[:-1][: len(stored)]:
            return id
        if len(said) == 1 == len(stored) and (goes_on or now - stored[0].at < _AGAIN):
            return id
    return f"{base}-{now.timestamp():.0f}"


def housekeeping(message: str) -> bool:
    """Whether a front end asks for a title, tags or the like: Open WebUI by a heading, with
    the chat or the form of the answer below it; LibreChat, LobeChat and others by a sentence."""
    begin = message.lstrip()[:400].lower()
    if begin.startswith(_TASK):
        return any(sign in message for sign in _TASK_SIGNS)
    return _TITLE.match(begin) is not None
