"""Readers of documents: text, Markdown, HTML and PDF, hostile ones too."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.errors import InputError
from nyima.mechanisms.documents import parse
from nyima.mechanisms.documents.parse import FORMATS, parse_document, read_document

EVIL = "EVIL"


def parts(name: str, text: str) -> dict[str, str]:
    return {p.place: " ".join(p.text.split()) for p in parse_document(text.encode(), name).parts}


def seen(page: str) -> str:
    return " ".join(parts("a.html", page).values())


# --- any format ---


@given(st.binary(max_size=200), st.sampled_from(FORMATS))
def test_any_bytes_are_a_document_or_a_clear_error(data: bytes, ending: str) -> None:
    name = problem = f"a{ending}"
    try:
        found = parse_document(data, name)
    except InputError as refused:
        problem = str(refused)
    else:
        assert any(part.text.strip() for part in found.parts)
    assert name in problem


@pytest.mark.parametrize("name", ["A.TXT", "a.b.MD", "x.Html", "folder/notes.text"])
def test_the_ending_counts_in_any_case(name: str, tmp_path: Path) -> None:
    assert parse_document(b"words", name).name == name
    path = tmp_path / Path(name).name
    path.write_bytes(b"words")
    assert read_document(path, "mine").name == "mine"


@pytest.mark.parametrize("name", ["a.docx", "a", "", "txt", ".md", "a.md.exe"])
def test_a_format_that_is_not_known_names_those_that_are(name: str) -> None:
    with pytest.raises(InputError, match=r"give one of \.txt, "):
        parse_document(b"words", name)


def test_a_mark_of_the_byte_order_is_no_text() -> None:
    assert parse_document(b"\xef\xbb\xbfwords", "a.txt").parts[0].text == "words"


def test_where_a_text_is_no_utf8_the_first_wrong_byte_is_named() -> None:
    with pytest.raises(InputError, match=r"no UTF-8 text \(byte 3\)"):
        parse_document(b"caf\xe9", "a.md")


def test_too_much_is_refused_and_a_long_text_is_read_in_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parse, "_MOST_BYTES", 50)
    monkeypatch.setattr(parse, "_MOST_TEXT", 20)
    whole, long = parse_document(b"x" * 20, "a.txt"), parse_document(b"x" * 50, "a.txt")
    assert (len(whole.parts[0].text), whole.note) == (20, "")
    assert (len(long.parts[0].text), long.note) == (20, "the first 20 of 50 characters")
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 51)
    with pytest.raises(InputError, match="larger than"):
        parse_document(b"x" * 51, "a.txt")
    with pytest.raises(InputError, match="larger than"):
        read_document(path, "a.txt")


def test_a_file_that_is_not_there_or_is_a_folder_is_explained(tmp_path: Path) -> None:
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(InputError, match="cannot be read: .*: check the path"):
            read_document(path, "x")


# --- Markdown ---


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("plain", {"": "plain"}),
        ("# A\nx\n# B\ny", {"A": "x", "B": "y"}),
        ("# A\n## B\n### C\nx\n## D\ny", {"A > B > C": "x", "A > D": "y"}),
        ("### C\nx\n# A\ny", {"C": "x", "A": "y"}),
        ("# A #\nx", {"A": "x"}),
        ("#tag\n# A\nx", {"": "#tag", "A": "x"}),
        ("####### seven\n# A\nx", {"": "####### seven", "A": "x"}),
        ("# A\n```\n# b\n```\n# C\nx", {"A": "``` # b ```", "C": "x"}),
        ("# A\n~~~python\n# b\n~~~\n", {"A": "~~~python # b ~~~"}),
        ("# A\n```\n# never closed", {"A": "``` # never closed"}),
        ("    # indented is code\n# A\nx", {"": "# indented is code", "A": "x"}),
    ],
)
def test_what_stands_under_each_heading(text: str, found: dict[str, str]) -> None:
    assert parts("a.md", text) == found


@given(st.lists(st.sampled_from(["# A", "## B", "text", "", "```", "#x"]), max_size=12))
def test_no_line_of_a_markdown_text_is_lost(lines: list[str]) -> None:
    text = "\n".join([*lines, "the end"])
    kept = [line for part in parse_document(text.encode(), "a.md").parts for line in part.text.splitlines()]
    for line in ("text", "#x", "```", "the end"):
        assert kept.count(line) == [*lines, "the end"].count(line)


@pytest.mark.parametrize(
    "text",
    ["# A\n```\n~~~\n# b\n```\n# C\nx", "# A\n````\n```\n# b\n```\n````\n# C\nx", "# A\n```code``` in a line\n# C\nx"],
)
def test_a_code_block_ends_with_its_own_fence(text: str) -> None:
    assert set(parts("a.md", text)) == {"A", "C"}


# --- HTML ---


@pytest.mark.parametrize(
    "hidden",
    [
        f"<script>{EVIL}</script>", f"<style>{EVIL}</style>", f"<template><p>{EVIL}</template>",
        f"<noscript>{EVIL}</noscript>", f"<!-- {EVIL} -->", f"<select><option>{EVIL}</select>",
        f"<textarea>{EVIL}</textarea>", f"<svg><title>{EVIL}</title></svg>", f"<iframe>{EVIL}</iframe>",
        f"<object><p>{EVIL}</p></object>", f"<div hidden><p>{EVIL}</p><p>{EVIL}</p></div>",
        f'<p style="DISPLAY : NONE">{EVIL}</p>', f'<p style="color:red;visibility:hidden">{EVIL}</p>',
        f'<p style="opacity:0">{EVIL}</p>', f'<p style="font-size: 0.0em">{EVIL}</p>', f"<p HIDDEN>{EVIL}</p>",
        f"<b hidden>{EVIL}<i>{EVIL}</b>", f'<p title="{EVIL}">', f'<img alt="{EVIL}" hidden>',
        f"<div hidden><h2>{EVIL}</h2></div>", f"<?php {EVIL} ?>", f"<![CDATA[ {EVIL} ]]>",
    ],
)  # fmt: skip
def test_what_a_reader_would_not_see_is_not_read(hidden: str) -> None:
    assert seen(f"<body><p>before</p>{hidden}<p>after</p></body>") == "before after"


@pytest.mark.parametrize(
    "style", ["opacity:0.5", "font-size:0.9em", "display:block", "visibility:visible", "opacity:1.0"]
)
def test_what_is_pale_or_small_can_still_be_seen(style: str) -> None:
    assert seen(f'<p style="{style}">words</p>') == "words"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("caf&eacute; &amp; &#8364;&#x20AC; &lt;b&gt;", "café & €€ <b>"),
        ("a<br>b<br/>c", "a b c"),
        ("<td>a<td>b", "a b"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("<input hidden>x<img hidden>y", "xy"),
        ("</div></p>x</nonsense>", "x"),
        ("<p>a<p>b<li>c<li>d", "a b c d"),
        ("x<", "x<"),
        ("<script>never closed</scrip> x</script>y", "y"),
    ],
)
def test_broken_pages_lose_nothing_that_can_be_seen(page: str, text: str) -> None:
    assert seen(page) == text


def test_headings_make_places_and_empty_ones_none() -> None:
    page = "<h1>A <i>b</i></h1>x<h3>C</h3>y<h2></h2>z<h2>D</h2>w<h1>E</h1>"
    assert parts("a.html", page) == {"A b": "x", "A b > C": "z", "A b > D": "w"}
    assert [p.text for p in parse_document(page.encode(), "a.html").parts] == ["x", "y", "z", "w"]


LONG = "word " * 60


def test_a_heading_of_a_whole_page_is_text() -> None:
    assert parts("a.html", f"<h1>{LONG}</h1><p>rest") == {"": f"{LONG}rest"}


def test_a_long_heading_does_not_run_into_what_follows() -> None:
    assert parts("a.html", f"<h1>{LONG}</h1>rest") == {"": f"{LONG}rest"}


@given(
    st.lists(
        st.sampled_from(["<p>", "</p>", "<div hidden>", "</div>", "<h2>", "</h2>", "<b>", "x", "<br>"]), max_size=20
    )
)
def test_any_nesting_is_a_page_or_a_clear_error(bits: list[str]) -> None:
    try:
        found = parse_document("".join(bits).encode(), "a.html")
    except InputError:
        return
    assert sum(part.text.count("x") for part in found.parts) <= bits.count("x")


@pytest.mark.parametrize(
    "page",
    [
        "<!doctype html><head><title>T</title><h1>Hi</h1><p>seen",
        "<p hidden>x<div>seen</div>",
        "<p hidden>x<ul><li>seen</ul>",
    ],
)
def test_what_is_hidden_ends_where_html_says(page: str) -> None:
    assert "seen" in seen(page)


# --- PDF ---


PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R/Resources<</Font<</F1<</Type/Font"
    b"/Subtype/Type1/BaseFont/Helvetica>>>>>>>>endobj\n4 0 obj<</Length 39>>stream\n"
    b"BT /F1 12 Tf 9 99 Td (walnut cake) Tj ET\nendstream endobj\ntrailer<</Root 1 0 R/Size 5>>\nstartxref\n0\n%%EOF\n"
)


def test_a_pdf_is_known_by_its_first_bytes_whatever_its_name() -> None:
    for name in ("a.pdf", "a.txt", "scan", "https://example.org/x?y=1"):
        found = parse_document(PDF, name)
        assert [(p.place, p.text.strip()) for p in found.parts] == [("p. 1", "walnut cake")]


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_pdf_is_read_or_refused_and_never_breaks(seed: int) -> None:
    draw, data = random.Random(seed), bytearray(PDF)
    for _ in range(draw.randint(1, 30)):
        data[draw.randrange(8, len(data))] = draw.randrange(256)
    try:
        name = parse_document(bytes(data[: draw.randint(20, len(data))]), "a.pdf").name
    except InputError as refused:
        name = str(refused)
    assert "a.pdf" in name


def test_a_page_that_is_blank_is_no_text() -> None:
    with pytest.raises(InputError, match="a scan needs text recognition first"):
        parse_document(PDF.replace(b"walnut cake", b"           "), "a.pdf")


def test_a_text_that_says_it_is_a_pdf_is_none() -> None:
    with pytest.raises(InputError, match=r"no PDF that can be read|no text that can be read"):
        parse_document(b"words", "a.pdf")


def test_what_stands_after_deep_nesting_is_read() -> None:
    page = "<p>start</p>" + "<div>" * 2_000 + "<p>deep</p>" + "</div>" * 2_000 + "<p>after the end</p>"
    text = " ".join(part.text for part in parse_document(page.encode(), "x.html").parts)
    assert "after the end" in text
