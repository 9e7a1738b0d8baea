"""Texts and files as things to remember, and what is refused as a picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.domain.conversation import Origin
from nyima.errors import InputError
from nyima.transfer import screenshots
from nyima.transfer.screenshots import said_in


def test_a_text_is_the_users_word_and_a_file_an_import(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("one\r\n\r\ntwo\n  lines\n\n\n\nthree", "utf-8")
    assert [(s.text, s.origin) for s in said_in("  as typed", None, None)] == [("  as typed", None)]
    assert [(s.text, s.origin) for s in said_in(None, notes, None)] == [
        ("one", Origin.IMPORT),
        ("two lines", Origin.IMPORT),
        ("three", Origin.IMPORT),
    ]


words = st.text("abcé猫 \t", min_size=1, max_size=20).filter(str.strip)


@given(st.lists(words, min_size=1, max_size=6))
def test_each_paragraph_is_kept_with_all_its_words(
    tmp_path_factory: pytest.TempPathFactory, paragraphs: list[str]
) -> None:
    file = tmp_path_factory.mktemp("notes") / "notes.txt"
    file.write_text("\n\n".join(paragraphs), "utf-8")
    assert [s.text.split() for s in said_in(None, file, None)] == [p.split() for p in paragraphs]


def test_a_mark_at_the_beginning_is_no_part_of_what_was_said(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("I live in Porto.", "utf-8-sig")
    assert [s.text for s in said_in(None, file, None)] == ["I live in Porto."]


@pytest.mark.parametrize(
    ("text", "file", "image"), [(None, None, None), ("a", Path("f"), None), (None, Path("f"), Path("i")), ("", None, Path("i"))]
)  # fmt: skip
def test_one_thing_is_remembered_at_a_time(text: str | None, file: Path | None, image: Path | None) -> None:
    with pytest.raises(InputError, match="give one of: a text, --file or --image"):
        said_in(text, file, image)


def test_a_file_that_is_too_large_is_to_be_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screenshots, "_MOST_BYTES", 2_000_000)
    file = tmp_path / "notes.txt"
    file.write_bytes(b"a" * 2_000_001)
    with pytest.raises(InputError, match=r"notes\.txt is larger than 2 MB: split it"):
        said_in(None, file, None)


def test_a_folder_is_no_text_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: .*: check the path"):
        said_in(None, tmp_path, None)
