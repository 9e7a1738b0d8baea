"""HTML as a stream of tags and texts, read by lxml: what a page leaves open or breaks is mended
as browsers do it, in linear time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from nyima.errors import PackError

__all__ = ["Closed", "MarkupPiece", "Opened", "pieces_of"]


@dataclass(frozen=True, slots=True)
class Opened:
    """A tag that begins, with its attributes."""

    tag: str
    given: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Closed:
    """A tag that ends."""

    tag: str


MarkupPiece: TypeAlias = Opened | Closed | str


def pieces_of(html: str) -> Iterator[MarkupPiece]:
    """Return the tags and texts of a page in order; scripts in it are never run, nothing is
    fetched. Raises PackError where lxml is not installed."""
    try:
        from lxml import etree
    except ImportError as error:
        raise PackError("reading HTML needs an extra package: run `pip install 'nyima[docs]'`") from error
    parser = etree.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, encoding="utf-8", huge_tree=True)
    # Characters that XML has no place for would end the text.
    root = etree.fromstring(
        "".join(c if c >= " " or c in "\t\n\r" else " " for c in html).encode("utf-8", "replace"), parser
    )
    if root is None:
        return
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if not isinstance(element.tag, str):
            continue
        if event == "start":
            yield Opened(element.tag, dict(element.attrib))
            if element.text:
                yield element.text
        else:
            yield Closed(element.tag)
            if element.tail:
                yield element.tail
