"""What reads text from outside takes time in proportion to its length, whatever it holds."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nyima.errors import NyimaError
from nyima.language import words
from nyima.language.intent import first_person, is_goodbye, worth_keeping
from nyima.language.small_talk import is_small_talk
from nyima.language.times.moment import find_moment, without_times
from nyima.mechanisms.documents.parse import parse_document
from nyima.prompts.notes import ReplyStream
from nyima.services.forms import read_form
from nyima.transfer.importers import read_conversations

AT = datetime(2026, 5, 10, tzinfo=UTC)
BAD = (
    "-", "this is mail ", "here is the text ", "“", "«", "summarize this: ", "?!", "A. ", " ", "because ", "```\n", "> ",
    "<a ", "[", "(", "the day before ", "a: ", "From: a\n", "# ", "_", "1", "猫",
)  # fmt: skip


def streamed(text: str) -> None:
    stream = ReplyStream()
    for begin in range(0, len(text), 50):
        stream.feed(text[begin : begin + 50])
    stream.finish()
    stream.notes()


READERS: dict[str, Callable[[str], object]] = {
    "own_words": words.own_words,
    "has_quotation": words.has_quotation,
    "sentences": words.sentences,
    "segment": lambda text: words.fold(words.segment(text)),
    "cut_tokens": lambda text: words.cut_tokens(text, 50),
    "content_words": words.content_words,
    "worth_keeping": lambda text: worth_keeping(text, True, 0),
    "first_person": first_person,
    "is_goodbye": is_goodbye,
    "is_small_talk": lambda text: is_small_talk(text, ""),
    "find_moment": lambda text: find_moment(text, AT, UTC),
    "without_times": without_times,
    "html": lambda text: parse_document(f"<html>{text}".encode(), "x.html"),
    "markdown": lambda text: parse_document(text.encode(), "x.md"),
    "form": lambda text: read_form(f"<form>{text}<input name=a>"),
    "stream": streamed,
}


def seconds(read: Callable[[str], object], text: str) -> float:
    """Processor time; the better of two."""
    taken: list[float] = []
    for _ in range(2):
        begin = time.process_time()
        with contextlib.suppress(NyimaError):
            read(text)
        taken.append(time.process_time() - begin)
    return min(taken)


def in_proportion(read: Callable[[str], object], piece: str) -> bool:
    """Whether ten times the text takes less than fifteen times as long; what takes next to nothing
    is not compared."""
    long = seconds(read, (piece * 100_000)[:100_000])
    return long < 0.1 or long < 15 * seconds(read, (piece * 10_000)[:10_000])


@pytest.mark.parametrize("name", READERS)
def test_a_long_text_takes_time_in_proportion(name: str) -> None:
    for piece in BAD:
        assert in_proportion(READERS[name], piece), piece


@pytest.mark.parametrize("piece", [" ", "a: ", "[", "x\t"])
def test_an_import_takes_time_in_proportion(piece: str, tmp_path: Path) -> None:
    file = tmp_path / "talk.txt"

    def read(text: str) -> object:
        file.write_text(text, "utf-8")
        return list(read_conversations(file))

    assert in_proportion(read, piece)
