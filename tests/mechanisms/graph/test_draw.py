"""The graph as text, DOT, SVG and a page."""

from __future__ import annotations

import html.parser
import json
import xml.etree.ElementTree as ET
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import T0, edge, entity
from nyima.domain.records import Claim, Interval
from nyima.mechanisms.graph.draw import as_dot, as_html, as_svg, as_tree
from nyima.mechanisms.graph.look import Neighbourhood

EVIL = '</script><img src=x onerror=alert(1)>"\\\n&amp;'
ends = st.sampled_from(["user", "a", "b", "c", "d", "e"])
graphs = st.lists(st.tuples(ends, ends), max_size=12)


def around(root: str, *claims: Claim, **names: str) -> Neighbourhood:
    ids = {root, *(id for c in claims for id in (c.subject, c.object))}
    return Neighbourhood(root, {id: entity(id, names.get(id, id)) for id in ids}, claims)


def made(given: list[tuple[str, str]]) -> Neighbourhood:
    return around("user", *(edge(f"r{i}", head, "near to", tail) for i, (head, tail) in enumerate(given)))


CAT = edge("r1", "user", "cat of", "x", "Rex")


@given(graphs)
def test_a_tree_has_each_claim_once_below_its_root(given: list[tuple[str, str]]) -> None:
    lines = as_tree(made(given))
    assert lines[0] == (0, "user", "user")
    shown = [id for _, _, id in lines if id.startswith("r")]
    assert sorted(shown) == sorted(f"r{i}" for i in range(len(given)))
    assert all(1 <= depth <= 6 for depth, _, _ in lines[1:])


def test_a_tree_shows_both_directions_and_names() -> None:
    found = around("x", CAT, edge("r2", "x", "eats", "y"), x="Rex", y="fish", user="user")
    assert [text for _, text, _ in as_tree(found)] == ["Rex", "← cat of of user", "eats → fish"]


@pytest.mark.parametrize(
    ("more", "mark"),
    [
        ({}, ""),
        ({"stale": True}, " (not known any more)"),
        ({"valid": Interval(T0, T0 + timedelta(days=1))}, " (until 3 Mar 2026)"),
        ({"recorded": Interval(T0, T0 + timedelta(days=2)), "stale": True}, " (until 4 Mar 2026)"),
    ],
)
def test_a_tree_says_what_is_over_or_uncertain(more: dict[str, Any], mark: str) -> None:
    (_, line) = as_tree(around("user", edge("r", "user", "pet", "x", **more)))
    assert line[1] == f"pet → x{mark}"


@given(graphs)
def test_a_drawing_is_xml_with_every_node_and_line_in_its_frame(given: list[tuple[str, str]]) -> None:
    found = made(given)
    root = ET.fromstring(as_svg(found))
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    circles = list(root.iter("{http://www.w3.org/2000/svg}circle"))
    reached = {"user"}
    for _ in given:
        reached |= {id for edge in given if {*edge} & reached for id in edge}
    assert len(circles) == len(reached)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}line"))) == sum({*e} <= reached for e in given)
    for circle in circles:
        assert left <= float(circle.attrib["cx"]) <= left + width
        assert top <= float(circle.attrib["cy"]) <= top + height
    places = [(c.attrib["cx"], c.attrib["cy"]) for c in circles]
    assert len(set(places)) == len(places), "no two in one place"


def test_a_name_is_never_markup() -> None:
    found = around("x", edge("r<", "x", "l<b>", "y", EVIL), x=EVIL, y='"><script>')
    root = ET.fromstring(as_svg(found, styled=False))
    assert "<script" not in as_svg(found)
    assert "style" not in {element.tag.rpartition("}")[2] for element in root.iter()}
    texts = [t.text or "" for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert EVIL.replace("\n", " ") in [t.replace("\n", " ") for t in texts]


def test_what_holds_no_more_is_dashed() -> None:
    found = around("user", CAT)
    assert "stroke-dasharray" not in as_svg(found)
    gone = around("user", edge("r", "user", "pet", "x", stale=True))
    assert "stroke-dasharray" in as_svg(gone)
    assert "style=dashed" in as_dot(gone)
    assert "style=dashed" not in as_dot(found)


def test_dot_is_quoted() -> None:
    lines = as_dot(around("x", CAT, x='a"b\\c\nd', user="me")).splitlines()
    assert lines[0] == "digraph memory {"
    assert lines[-1] == "}"
    assert r'  "x" [label="a\"b\\c d"];' in lines
    assert '  "user" -> "x" [label="cat of"];' in lines


def test_a_page_holds_its_data_as_data() -> None:
    class Page(html.parser.HTMLParser):
        tags: list[str] = []  # noqa: RUF012 - one page
        data = ""

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.tags.append(tag)

        def handle_data(self, data: str) -> None:
            if self.tags[-1] == "script" and not self.data:
                self.data = data

    page = Page()
    page.feed(as_html(around("x", CAT, x=EVIL), {"r1": [EVIL, "second"]}))
    assert json.loads(page.data) == {"r1": [EVIL, "second"]}
    assert page.tags.count("script") == 2
    assert "img" not in page.tags
