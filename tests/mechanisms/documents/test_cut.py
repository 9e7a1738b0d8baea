"""Documents cut into passages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.domain.documents import Document, Part
from nyima.language.words import tokens
from nyima.mechanisms.documents.cut import Cut, cut


def pieces(*texts: str, size: int = 20) -> list[Cut]:
    return list(cut(Document("d", tuple(Part(f"p. {i}", text) for i, text in enumerate(texts, 1))), size))


@pytest.mark.parametrize("text", ["", "  \n\n \t ", "\n"])
def test_nothing_gives_no_passage(text: str) -> None:
    assert pieces(text) == []


def test_short_paragraphs_of_one_part_go_together() -> None:
    assert pieces("One.\n\nTwo.\n\n\nThree.") == [("p. 1", 0, "One. Two. Three.")]
    assert len(pieces("One two three four five six.\n\n" * 6)) == 3


def test_two_parts_are_never_one_passage() -> None:
    assert pieces("One.", "Two.") == [("p. 1", 0, "One."), ("p. 2", 0, "Two.")]


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    text = " ".join(f"This is the sentence number {i} of them." for i in range(8))
    found = [t for _, _, t in pieces(text)]
    assert len(found) > 3
    assert all(t.startswith("This is") and t.endswith("of them.") for t in found)


def test_sentences_that_repeat_each_other_stand_in_their_own_places() -> None:
    text = "Go on and on and on. " * 12
    offsets = [offset for _, offset, _ in pieces(text)]
    assert offsets == [i * 63 for i in range(4)], "three of twenty-one characters each"


def test_a_long_sentence_is_cut_between_words() -> None:
    words = [f"word{i}" for i in range(100)]
    found = [t for _, _, t in pieces(" ".join(words))]
    assert [w for t in found for w in t.split()] == words
    assert all(tokens(t) <= 20 for t in found)


def test_a_word_without_an_end_is_cut_anyway() -> None:
    found = [t for _, _, t in pieces("x" * 5_000)]
    assert "".join(found) == "x" * 5_000
    assert all(tokens(t) <= 20 for t in found)


def test_a_line_break_is_a_blank_and_an_empty_line_ends_a_paragraph() -> None:
    assert pieces("one\ntwo\n \nthree", size=2) == [("p. 1", 0, "one two"), ("p. 1", 10, "three")]


paragraphs = st.lists(st.lists(st.sampled_from(["tea", "bus", "a"]), min_size=1, max_size=9).map(" ".join), max_size=6)


@given(paragraphs, st.sampled_from(["\n\n", "\n \n", "\n\n\n"]), st.sampled_from(["", "  ", "\n"]))
def test_paragraphs_that_fit_know_where_they_began(given: list[str], gap: str, before: str) -> None:
    text = before + gap.join(given)
    for _, offset, passage in pieces(text, size=12):
        assert text[offset:].split()[:1] == passage.split()[:1]
        assert not text[offset : offset + 1].isspace()


@given(paragraphs, st.integers(5, 40))
def test_cutting_again_gives_the_same(given: list[str], size: int) -> None:
    text = "\n\n".join(given)
    assert pieces(text, size=size) == pieces(text, size=size)
    offsets = [offset for _, offset, _ in pieces(text, size=size)]
    assert offsets == sorted(set(offsets))


@pytest.mark.parametrize("gap", [" ", "  "])
def test_the_stretches_of_a_long_sentence_know_where_they_began(gap: str) -> None:
    text = gap.join(f"word{i}" for i in range(100))
    for _, offset, passage in pieces(text):
        assert text[offset:].split()[0] == passage.split()[0]
