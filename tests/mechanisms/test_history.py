"""Episodes: what was said, word for word."""

from __future__ import annotations

from datetime import timedelta

from made import T0, said
from nyima.domain.changes import Add
from nyima.domain.conversation import Origin, Role
from nyima.mechanisms.history import episodes

LATER = T0 + timedelta(days=1)


def test_every_turn_with_words_is_an_episode_of_its_own_time() -> None:
    turn = said("t1", "  I like tea. ", position=4, at=T0, speaker="Ana", session="s7")
    (change,) = episodes([turn], LATER).changes
    assert isinstance(change, Add)
    record = change.record
    assert (record.id, record.text, record.region) == ("e-t1", "Ana:   I like tea. ", "s7")
    assert (record.valid.since, record.recorded.since) == (T0, LATER)
    assert (record.provenance.turns, record.provenance.writer) == (("t1",), "history")
    assert getattr(record, "position", None) == 4


def test_blank_turns_and_the_systems_words_are_left_out() -> None:
    turns = [
        said("1", " \n"),
        said("2", "be nice", Role.SYSTEM),
        said("3", "{}", Role.TOOL),
        said("4", "x", Role.ASSISTANT),
    ]
    assert [c.record.id for c in episodes(turns, T0).changes if isinstance(c, Add)] == ["e-3", "e-4"]
    assert not episodes([], T0)


def test_an_episode_is_trusted_as_its_turn_is() -> None:
    (change,) = episodes([said("1", "x", Role.TOOL, origin=Origin.DOCUMENT)], T0).changes
    assert isinstance(change, Add)
    assert change.record.provenance.origin is Origin.DOCUMENT


def test_writing_twice_changes_nothing() -> None:
    turns = [said("1", "x"), said("2", "y")]
    assert episodes(turns, T0) == episodes(turns, T0)
