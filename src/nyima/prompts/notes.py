"""The reply's own call returns the reply and notes about the user's turn in one text.
This module separates them while the text streams, and reads the notes.

Three shapes are understood, whatever the model was asked for:

- one JSON object, ``reply`` first (models that can be bound to a grammar or schema);
- the reply as plain text, then a ``<notes>`` block of ``key: value`` lines;
- a JSON object of facts before the reply (the manner of the profile companion).

Nothing of the notes is ever shown, wherever the pieces are cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import json_repair

from nyima.domain.conversation import clean_text
from nyima.domain.evidence import Noted, Notes
from nyima.domain.records import ME, Status

__all__ = [
    "ReplyStream",
    "is_placeholder",
    "parse_claims",
    "parse_facts",
    "parse_numbers",
    "render_notes",
    "render_reply",
]

_START = re.compile(r'\s*(?:```(?:json)?\s*)?\{\s*"([^"\\]{0,60})"\s*:\s*(?=\S)')
_FIRST = re.compile(r"\s*(`{1,3}|```j?s?o?n?\s*|(?:```(?:json)?\s*)?\{[^:]{0,80}(?::\s*)?)?$", re.DOTALL)
_BROKEN = re.compile(r'\s*(?:```(?:json)?\s*)?\{\s*(?:"[^"]*"?\s*:?\s*)?$')
_FENCE = re.compile(r"\s*(?:```[ \t]*\n?)?")
_MARKERS = (
    "<notes",
    '{"remember"',
    '{"facts"',
    '{"claims"',
    "\nremember:",
    "\nfacts:",
    "\nclaim:",
    "\nclaims:",
    "\nnotes:",
)
_STATUSES = frozenset(status.value for status in Status) - {Status.PENDING.value}
_PLACEHOLDERS = frozenset(
    "unknown unspecified n/a na none null undefined not_specified not_mentioned not_given not_stated not_provided"
    " no_information tbd yes no true false ? - … ... value key string".split()
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"'}
_LOWER = {c: c + 32 for c in range(65, 91)}  # of ASCII alone: it keeps every place
_MOST_CLAIMS = 12
_LONGEST_VALUE = 200


class ReplyStream:
    """Feed it pieces of the raw text; it gives back what may be shown. With a ``tag`` the text
    is plain and only a block of that name ends it: for programs whose replies may say
    "Notes:" themselves."""

    def __init__(self, tag: str = "") -> None:
        self.raw = ""
        self.shown = ""
        self._markers = (f"<{tag}>",) if tag else _MARKERS
        self._mode = "plain" if tag else "start"
        self._at = 0
        self._closed = False

    def feed(self, piece: str) -> str:
        """The visible text that this piece completes, possibly empty."""
        self.raw += piece
        if self._mode == "start":
            self._begin()
        elif self._mode == "facts":
            self._end_of_facts(final=False)
        out = ""
        if self._mode == "json" and not self._closed:
            out = self._json_text()
        elif self._mode == "plain":
            out = self._plain_text(final=False)
        self.shown += out
        return out

    def finish(self) -> str:
        """The visible text that was held back until the end was known."""
        out = ""
        if self._mode == "start":
            self._mode = "call" if _BROKEN.match(self.raw) else "plain"
        if self._mode == "facts" and not self._end_of_facts(final=True):
            return ""
        if self._mode == "plain":
            out = self._plain_text(final=True)
        self.shown += out
        return out

    @property
    def closed(self) -> bool:
        """Whether what may be shown has ended: notes follow."""
        return self._closed

    def reply(self) -> str:
        """The visible text, stripped."""
        return self.shown.strip()

    def call(self) -> tuple[str, dict[str, Any]] | None:
        """The tool that the model wants to call, with its arguments."""
        if self._mode != "call":
            return None
        data = _loads(self.raw)
        wish = data.get("call")
        given = data.get("input", {})
        if not isinstance(wish, str):
            return None
        return wish, cast("dict[str, Any]", given) if isinstance(given, dict) else {"input": given}

    def notes(self) -> Notes:
        """The notes; not complete when the text has none that can be read."""
        if self._mode == "json":
            notes = _from_json(_loads(self.raw))
            return notes if self.raw.rstrip("` \n").endswith("}") else replace(notes, complete=False)
        if self._mode == "facts" or (self._mode == "plain" and self._at):
            lead = _loads(self.raw[: self._at or None])
            tail = _from_lines(self.raw[self._at :])
            claims = (*parse_facts(lead), *tail.claims)
            return Notes(tail.remember or bool(claims), claims[:_MOST_CLAIMS], tail.outdated, complete=True)
        return _from_lines(self.raw, self._markers)

    def _begin(self) -> None:
        match = _START.match(self.raw)
        if match is not None:
            key = match.group(1)
            self._at = match.end()
            if key == "reply" and self.raw[self._at] == '"':
                self._at += 1
                self._mode = "json"
            elif key == "call":
                self._mode = "call"
            else:
                self._at, self._mode = 0, "facts"
        elif len(self.raw) > 120 or not _FIRST.match(self.raw):
            self._mode = "plain"
        if self._mode == "facts":
            self._end_of_facts(final=False)

    def _end_of_facts(self, *, final: bool) -> bool:
        """Move behind the leading object when it is closed and a reply follows."""
        depth, quoted, escaped = 0, False, False
        for i, c in enumerate(self.raw):
            if quoted:
                quoted = escaped or c != '"'
                escaped = c == "\\" and not escaped
            elif c == '"':
                quoted = True
            elif c in "{}":
                depth += 1 if c == "{" else -1
                if depth == 0 and c == "}":
                    fence = _FENCE.match(self.raw, i + 1)
                    assert fence is not None
                    if self.raw[fence.end() :].strip("` \n\t"):
                        self._at, self._mode = fence.end(), "plain"
                        return True
                    if final and not any(f'"{key}"' in self.raw for key in ("remember", "facts", "claims")):
                        self._at, self._mode = 0, "plain"
                        return True
                    return False
        return False

    def _json_text(self) -> str:
        out: list[str] = []
        i, raw = self._at, self.raw
        while i < len(raw):
            c = raw[i]
            if c == '"':
                self._closed = True
                break
            if c != "\\":
                out.append(c)
                i += 1
                continue
            if i + 1 >= len(raw):
                break
            if raw[i + 1] == "u":
                size = 12 if re.match(r"\\u[dD][89abAB]", raw[i:]) else 6
                if len(raw) < i + size:
                    break
                out.append(_unescape(raw[i : i + size]))
                i += size
            else:
                out.append(_ESCAPES.get(raw[i + 1], raw[i + 1]))
                i += 2
        self._at = i
        return "".join(out)

    def _plain_text(self, *, final: bool) -> str:
        if self._closed:
            return ""
        # What was shown holds no marker, nor the beginning of one.
        start = self._at + len(self.shown)
        text = self.raw[start:]
        lead = "" if self.shown else "\n"
        lowered = lead + text.translate(_LOWER)
        cut = min((i for m in self._markers if (i := lowered.find(m)) >= 0), default=-1)
        if cut >= 0:
            self._closed = True
            return text[: max(cut - len(lead), 0)]
        if not final:
            for size in range(min(max(map(len, self._markers)), len(lowered)), 0, -1):
                if any(m.startswith(lowered[-size:]) for m in self._markers):
                    return text[: max(len(text) - size, 0)]
        return text


def _unescape(escape: str) -> str:
    try:
        text = str(json.loads(f'"{escape}"'))
    except ValueError:
        return "\ufffd"
    return text.encode("utf-8", "replace").decode("utf-8", "replace")


def _loads(raw: str) -> dict[str, Any]:
    start = raw.find("{")
    if start < 0:
        return {}
    try:
        data = json.JSONDecoder().raw_decode(raw, start)[0]
    except ValueError:
        try:
            data = json_repair.loads(raw[start:])
        except RecursionError:
            return {}
    except RecursionError:
        return {}
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def _from_json(data: dict[str, Any]) -> Notes:
    remember = data.get("remember")
    if isinstance(remember, str):
        remember = {"true": True, "yes": True, "false": False, "no": False}.get(remember.strip().lower())
    claims = (*parse_claims(data.get("claims")), *parse_facts(data.get("facts")))[:_MOST_CLAIMS]
    return Notes(bool(remember), claims, parse_numbers(data.get("outdated")), complete=isinstance(remember, bool))


def _from_lines(text: str, markers: Sequence[str] = _MARKERS) -> Notes:
    lowered = "\n" + text.translate(_LOWER)
    cut = min((i for m in markers if (i := lowered.find(m)) >= 0), default=-1)
    if cut < 0:
        return Notes()
    block = text[max(cut - 1, 0) :]
    if "{" in block:
        return _from_json(_loads(block))
    remember: bool | None = None
    claims: list[Noted] = []
    outdated: tuple[int, ...] = ()
    for line in block.splitlines():
        key, colon, value = line.strip(" -*\t").partition(":")
        key = key.strip().lower()
        if not colon or not value.strip():
            continue
        if key in {"remember", "keep"}:
            remember = value.strip().lower().startswith(("y", "t"))
        elif key == "outdated":
            outdated = parse_numbers(value)
        elif key == "claim":
            claims += parse_claims([value.split("|")])
        elif key not in {"facts", "notes"}:
            claims += parse_facts({key: value.strip()})
    return Notes(bool(remember), tuple(claims)[:_MOST_CLAIMS], outdated, complete=remember is not None)


def parse_numbers(data: object) -> tuple[int, ...]:
    """Return the numbers in a list or text that a model gave, each once."""
    given = cast("list[object]", data) if isinstance(data, list) else [data]
    found = [n for item in given if not isinstance(item, bool) for n in re.findall(r"\d{1,6}", str(item))]
    return tuple(dict.fromkeys(int(n) for n in found))


def parse_claims(data: object) -> tuple[Noted, ...]:
    """Return the claims in what a model gave: a list of objects with who, what, value and status, or of
    lists in that order. What has no value or no attribute is left out, and a status that does not exist
    counts as ``holds``."""
    found: list[Noted] = []
    for item in cast("list[object]", data) if isinstance(data, list) else []:
        parts: list[object]
        if isinstance(item, dict):
            given = cast("dict[str, object]", item)
            parts = [given.get("who", ME), given.get("what"), given.get("value"), given.get("status", "")]
        elif isinstance(item, list):
            parts = [*cast("list[object]", item), "", "", "", ""][:4]
        else:
            continue
        if any(not isinstance(p, str | int | float) for p in parts[:3]):
            continue
        who, what, value, status = (clean_text(" ".join(str(p).split())[:_LONGEST_VALUE]) for p in parts)
        if what and not is_placeholder(value):
            known = status.lower() if status.lower() in _STATUSES else Status.HOLDS.value
            found.append(Noted(who or ME, what.replace("_", " "), value, known))
    return tuple(dict.fromkeys(found))[:_MOST_CLAIMS]


def is_placeholder(value: str) -> bool:
    """Return whether a value says nothing, such as "unknown"."""
    plain = " ".join(value.casefold().split()).strip(" .\"'")
    return not plain or plain.replace(" ", "_") in _PLACEHOLDERS


def parse_facts(data: object) -> tuple[Noted, ...]:
    """Return key/value pairs as claims about the user, for models that write facts in that shape: nested
    objects are flattened, lists give several claims, and "None" denies."""
    found: list[Noted] = []

    def take(key: str, value: object) -> None:
        if isinstance(value, dict):
            for inner, v in cast("dict[object, object]", value).items():
                take(f"{key} {inner}" if key else str(inner), v)
        elif isinstance(value, list):
            for v in cast("list[object]", value):
                take(key, v)
        elif isinstance(value, str | int | float) and not isinstance(value, bool) and key:
            what = " ".join(clean_text(key).replace("_", " ").split())
            text = clean_text(str(value).strip()[:_LONGEST_VALUE])
            if what and not is_placeholder(text):
                found.append(Noted(ME, what, text))

    if isinstance(data, list):
        for item in cast("list[object]", data):
            if isinstance(item, dict):
                pair = cast("dict[str, object]", item)
                if "key" in pair and "value" in pair:
                    take(str(pair["key"]), pair["value"])
                else:
                    take("", pair)
    elif isinstance(data, dict):
        take("", cast("object", data))
    return tuple(dict.fromkeys(found))[:_MOST_CLAIMS]


def render_reply(text: str, notes: Notes) -> str:
    """A past reply with its notes in the JSON shape, as the model itself wrote it, so
    that the prompt's prefix stays the same from turn to turn."""
    claims = [{"who": c.who, "what": c.what, "value": c.value, "status": c.status} for c in notes.claims]
    data = {"reply": text, "remember": notes.remember, "claims": claims, "outdated": list(notes.outdated)}
    return json.dumps(data, ensure_ascii=False)


def render_notes(text: str, notes: Notes) -> str:
    """A past reply with its notes as labelled lines."""
    lines = [f"remember: {'yes' if notes.remember else 'no'}"]
    lines += [f"claim: {c.who} | {c.what} | {c.value} | {c.status}" for c in notes.claims]
    lines += [f"outdated: {', '.join(map(str, notes.outdated))}"] if notes.outdated else []
    return f"{text}\n<notes>\n" + "\n".join(lines) + "\n</notes>"
