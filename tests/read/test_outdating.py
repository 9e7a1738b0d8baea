"""What a newer message makes untrue, among the pieces in which the user speaks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from made import T0, claim, episode, note, piece
from nyima.domain.conversation import Origin
from nyima.domain.evidence import Evidence
from nyima.domain.records import Interval, Provenance
from nyima.read.outdating import Outdating, over_pair


class Moves:
    """Finds that a message with a move makes one with a home untrue."""

    name = "moves"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.asked += pairs
        return [0.9 if "moved" in new and ("live" in old or "moved" in old) else 0.1 for new, old in pairs]


def said(id: str, text: str, day: int, origin: Origin = Origin.USER) -> Evidence:
    at = T0 + timedelta(days=day)
    return piece(episode(id, text, valid=Interval(at), provenance=Provenance((id,), origin=origin)))


HOME, FIRST, LAST = said("h", "I live in Leeds", 0), said("f", "I moved to York", 2), said("l", "I moved to Bath", 5)


async def found(*pieces: Evidence, threshold: float = 0.5) -> dict[str, str]:
    replaced = await Outdating(Moves(), threshold).replaced(pieces)
    return {old: new.record.id for old, new in replaced.items()}


async def test_each_older_one_is_replaced_by_the_newest_that_says_so() -> None:
    assert await found(FIRST, HOME, LAST) == {"h": "l", "f": "l"}
    assert await found(FIRST, HOME, LAST, threshold=0.95) == {}


@pytest.mark.parametrize(
    "other",
    [
        said("x", "I live in Leeds", 9),
        said("x", "I live in Leeds", 2),
        said("x", "I live in Leeds", 0, Origin.ASSISTANT),
        said("x", "I live in Leeds", 0, Origin.TOOL),
        piece(claim("x", "lives in", "Leeds")),
        piece(note("x", "The user lives in Leeds")),
    ],
)
async def test_what_is_newer_or_not_the_users_own_words_is_left_alone(other: Evidence) -> None:
    assert await found(other, FIRST) == {}


async def test_what_replaces_may_not_have_been_kept() -> None:
    replaced = await Outdating(Moves(), 0.5).replaced([HOME], [HOME, FIRST])
    assert replaced == {"h": FIRST}
    assert await Outdating(Moves(), 0.5).replaced([], [HOME, FIRST]) == {}


async def test_only_the_best_pieces_are_compared_and_long_ones_are_cut() -> None:
    judge = Moves()
    many = [said(f"m{n}", f"I live in {n} " + "word " * 300, n) for n in range(20)]
    await Outdating(judge, 0.5).replaced(many)
    assert len(judge.asked) == 7 + 6 + 5
    assert all(len(text) < 600 for pair in judge.asked for text in pair)
    assert over_pair("a", "b") == ("a", "no longer true: b")
