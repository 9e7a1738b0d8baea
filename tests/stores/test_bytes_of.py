"""The search of the files after an erase."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nyima.stores.sqlite.files import bytes_of

pieces_of = st.text("ab é", min_size=1, max_size=12).map(str.encode)


@given(st.lists(pieces_of, max_size=60), st.lists(pieces_of, max_size=20, unique=True))
def test_many_needles_are_found_like_one_by_one(pieces: list[bytes], needles: list[bytes]) -> None:
    content = b"\0".join(pieces)
    never = [b"never there %d" % n for n in range(80)]
    one_by_one = sum(content.startswith(n, at) * len(n) for n in needles if len(n) >= 8 for at in range(len(content)))
    one_by_one += sum(content.count(n) * len(n) for n in needles if len(n) < 8)
    assert bytes_of(content, [*needles, *never]) == one_by_one
    assert bytes_of(content, needles) == sum(content.count(n) * len(n) for n in needles)
    assert (bytes_of(content, [*needles, *never]) == 0) == (bytes_of(content, needles) == 0)


def test_it_finds_what_stands_at_the_very_end() -> None:
    needles = [b"number %4d!" % n for n in range(200)]
    for pad in range(9):
        assert bytes_of(b"x" * pad + needles[150], needles) == len(needles[150])
    assert bytes_of(b"", needles) == 0
