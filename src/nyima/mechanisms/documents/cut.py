"""A document cut into passages along its structure: parts, paragraphs, sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nyima.domain.documents import Document
from nyima.language.words import cut_tokens, sentences, tokens

__all__ = ["Cut", "cut"]

_PARAGRAPH = re.compile(r"\S(?:.|\n(?!\s*\n))*")
_SIZE = 90

Cut = tuple[str, int, str]
"""A passage: its place, its offset in characters in the part, its text."""


_WORD = re.compile(r"\S+")


def cut(document: Document, size: int = _SIZE) -> Iterator[Cut]:
    """The passages of a document, each of at most about ``size`` tokens. Short paragraphs
    of one part go together; a long one is cut between sentences."""
    for part in document.parts:
        waiting: list[tuple[int, str]] = []
        for offset, text in _pieces(part.text, size):
            if waiting and tokens(" ".join(t for _, t in waiting)) + tokens(text) > size:
                yield part.place, waiting[0][0], " ".join(t for _, t in waiting)
                waiting = []
            waiting.append((offset, text))
        if waiting:
            yield part.place, waiting[0][0], " ".join(t for _, t in waiting)


def _pieces(text: str, size: int) -> Iterator[tuple[int, str]]:
    """Paragraphs, or sentences of long ones, each with its offset."""
    for match in _PARAGRAPH.finditer(text):
        paragraph = " ".join(match.group().split())
        if tokens(paragraph) <= size:
            yield match.start(), paragraph
            continue
        at = match.start()
        for sentence in sentences(match.group()):
            found = text.find(sentence, at)
            at = found if found >= 0 else at
            yield from _stretches(at, sentence, size)
            at += len(sentence)


def _stretches(offset: int, sentence: str, size: int) -> Iterator[tuple[int, str]]:
    """A sentence in stretches of whole words of at most ``size`` tokens, each with its offset."""
    begin, words = 0, list[str]()
    for match in _WORD.finditer(sentence):
        if words and tokens(" ".join([*words, match.group()])) > size:
            yield offset + begin, " ".join(words)
            words = []
        begin = begin if words else match.start()
        words.append(match.group())
        while tokens(words[-1]) > size and len(words) == 1:  # a script without spaces, or no text at all
            end = max(20, len(words[0]) * size // tokens(words[0]))
            if end >= len(words[0]):
                break
            yield offset + begin, words[0][:end]
            begin, words = begin + end, [words[0][end:]]
    if words:
        yield offset + begin, cut_tokens(" ".join(words), size)
