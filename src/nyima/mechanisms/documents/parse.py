"""Reads documents: text, Markdown, HTML and PDF. Nothing in them is run or followed."""

from __future__ import annotations

import http.client
import io
import re
import struct
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from nyima.domain.documents import Document, Part
from nyima.errors import InputError, PackError
from nyima.mechanisms.documents.markup import Closed, MarkupPiece, Opened, pieces_of

__all__ = ["FORMATS", "fetch", "parse_document", "read_document"]

FORMATS = (".txt", ".text", ".md", ".markdown", ".html", ".htm", ".pdf")
_MOST_BYTES = 100_000_000
_MOST_WEB = 20_000_000
_MOST_PAGES = 2_000
_MOST_TEXT = 5_000_000
_SECONDS = 20.0
_KINDS = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    "text/markdown": ".md",
    "text/plain": ".txt",
}

ParseProgress = Callable[[int, int], None]


def read_document(path: Path, name: str, progress: ParseProgress | None = None) -> Document:
    """The document of a file. Raises InputError when it is too large, broken, encrypted, of
    no known format, or has no text."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path} is larger than {_MOST_BYTES // 1_000_000} MB: split it")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}: check the path") from error
    return _document(data, path.suffix.lower(), name, progress)


def parse_document(data: bytes, name: str) -> Document:
    """The document of a file's content; the name's ending says the format. Raises InputError."""
    if len(data) > _MOST_BYTES:
        raise InputError(f"{name} is larger than {_MOST_BYTES // 1_000_000} MB: split it")
    return _document(data, Path(name).suffix.lower(), name, None)


def fetch(url: str, progress: ParseProgress | None = None) -> Document:
    """The document at an http or https address. Raises InputError."""
    if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
        raise InputError(f"{url!r} is no web address: give one that begins with https://")
    request = urllib.request.Request(url, headers={"User-Agent": "nyima"})
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            if urllib.parse.urlsplit(answer.url).scheme not in {"http", "https"}:
                raise InputError(f"{url} leads to {answer.url}, which is no web address")
            data = answer.read(_MOST_WEB + 1)
            kind = answer.headers.get_content_type()
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, OSError, ValueError) as error:
        raise InputError(f"{url} cannot be fetched: {error}: check the address and the network") from error
    if len(data) > _MOST_WEB:
        raise InputError(f"{url} is larger than {_MOST_WEB // 1_000_000} MB: download it and add the file")
    return _document(data, _KINDS.get(kind) or Path(urllib.parse.urlsplit(url).path).suffix.lower(), url, progress)


def _document(data: bytes, suffix: str, name: str, progress: ParseProgress | None) -> Document:
    if suffix == ".pdf" or data.startswith(b"%PDF-"):
        return _filled(_pdf(data, name, progress))
    if suffix not in FORMATS:
        raise InputError(f"{name!r} has a format that is not known: give one of {', '.join(FORMATS)}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name!r} is no UTF-8 text (byte {error.start}): save it as UTF-8") from error
    if "\0" in text:
        raise InputError(f"{name!r} is no text: it has NUL characters")
    note = ""
    if len(text) > _MOST_TEXT:
        text, note = text[:_MOST_TEXT], f"the first {_MOST_TEXT:,} of {len(text):,} characters"
    if suffix in {".html", ".htm"}:
        return _filled(Document(name, _html(text), note))
    return _filled(Document(name, _markdown(text) if suffix in {".md", ".markdown"} else (Part("", text),), note))


def _filled(document: Document) -> Document:
    if not any(part.text.strip() for part in document.parts):
        raise InputError(f"{document.name!r} has no text that can be read: a scan needs text recognition first")
    return document


_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*\s*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^`\n]*)$")


def _markdown(text: str) -> tuple[Part, ...]:
    """What stands under each heading; a ``#`` in a code block is no heading."""
    parts: list[Part] = []
    path: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""

    def close() -> None:
        if any(line.strip() for line in lines):
            parts.append(Part(" > ".join(title for _, title in path), "\n".join(lines)))
        lines.clear()

    for line in text.splitlines():
        marks = _FENCE.match(line)
        if marks and not fence:
            fence = marks[1]
        elif marks and marks[1].startswith(fence) and not marks[2].strip():
            fence = ""
        heading = None if fence else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        close()
        level = len(heading.group(1))
        path = [*((at, title) for at, title in path if at < level), (level, heading.group(2))]
    close()
    return tuple(parts)


_SKIPPED = frozenset("script style template noscript iframe object embed svg canvas head select textarea".split())
_BLOCKS = frozenset("p div li ul ol table tr td th section article blockquote pre br hr dd dt figcaption".split())
_UNSEEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?:opacity|font-size)\s*:\s*0(?:\.0+)?(?![.\d])", re.IGNORECASE
)


_HEADING_TAG = re.compile("h[1-6]")
_MOST_TITLE = 200
_MOST_STYLE = 2_000


class _Page:
    """Collects what a reader of the page would see, under its headings."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._path: list[tuple[int, str]] = []
        self._text: list[str] = []
        self._open: list[bool] = []
        self._hidden = 0
        self._heading: tuple[int, list[str]] | None = None

    def read(self, pieces: Iterable[MarkupPiece]) -> None:
        """Take in a page."""
        for piece in pieces:
            match piece:
                case Opened(tag, given):
                    self._begin(tag, given)
                case Closed(tag):
                    self._hidden -= self._open.pop()
                    if _HEADING_TAG.fullmatch(tag):
                        self._end_heading()
                case text if not self._hidden:
                    (self._text if self._heading is None else self._heading[1]).append(text)
        self.close_part()

    def _begin(self, tag: str, given: Mapping[str, str]) -> None:
        hidden = tag in _SKIPPED or "hidden" in given or bool(_UNSEEN.search(given.get("style", "")[:_MOST_STYLE]))
        self._open.append(hidden)
        self._hidden += hidden
        if tag in _BLOCKS:
            self._text.append("\n\n" if tag not in {"br", "td", "th", "li", "tr"} else "\n")
        if _HEADING_TAG.fullmatch(tag) and not self._hidden:
            self.close_part()
            self._heading = (int(tag[1]), [])

    def _end_heading(self) -> None:
        if self._heading is None:
            return
        (level, words), self._heading = self._heading, None
        title = " ".join("".join(words).split())
        if len(title) > _MOST_TITLE:  # a heading that was never closed is text
            self._text.append(f"{title}\n\n")
        elif title:
            self._path = [*((at, t) for at, t in self._path if at < level), (level, title)]

    def close_part(self) -> None:
        """End what stands under the heading so far."""
        self._end_heading()
        text = "".join(self._text)
        if text.strip():
            self.parts.append(Part(" > ".join(title for _, title in self._path), text))
        self._text.clear()


def _html(text: str) -> tuple[Part, ...]:
    page = _Page()
    page.read(pieces_of(text))
    return tuple(page.parts)


def _pdf(data: bytes, name: str, progress: ParseProgress | None) -> Document:
    """The text of each page, at most 2,000 of them. A page that cannot be read is left out,
    and the note says so."""
    try:
        import pypdf
        import pypdf.errors
    except ImportError as error:
        raise PackError("reading PDF needs an extra package: run `pip install 'nyima[docs]'`") from error
    problems = (
        pypdf.errors.PyPdfError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, OSError,
        struct.error, zlib.error,
    )  # fmt: skip
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise InputError(f"{name!r} is encrypted: save it without a password, and add that file")
        total = len(reader.pages)
    except (*problems, pypdf.errors.DependencyError) as error:
        raise InputError(f"{name!r} is no PDF that can be read: {error}: print it to a new PDF") from error
    parts: list[Part] = []
    broken: list[int] = []
    size = 0
    for number in range(1, min(total, _MOST_PAGES) + 1):
        try:
            text = reader.pages[number - 1].extract_text()
        except problems:
            broken.append(number)
            continue
        parts.append(Part(f"p. {number}", text))
        size += len(text)
        if size > _MOST_TEXT:
            break
        if progress is not None:
            progress(number, min(total, _MOST_PAGES))
    read = len(parts) + len(broken)
    notes = [f"the first {read:,} of {total:,} pages"] if total > read else []
    notes += (
        [f"page{'s' if len(broken) > 1 else ''} {', '.join(map(str, broken[:5]))} cannot be read"] if broken else []
    )
    return Document(name, tuple(parts), "; ".join(notes))
