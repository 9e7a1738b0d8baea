"""What every Store must do, as a class of tests: subclass it and give a ``store`` fixture.

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self): ...

Needs pytest with the anyio plugin in auto mode.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from nyima.domain.changes import Add, Delta, Erase, Retire, Revise
from nyima.domain.conversation import Origin, Role, Scope, Session, Turn, as_utc
from nyima.domain.ports import LAPSED, Event, Job, Probe, RecordFilter
from nyima.domain.records import (
    Claim,
    Entity,
    Episode,
    Interval,
    MemoryRecord,
    Note,
    Passage,
    Provenance,
    Quote,
    Slot,
    Status,
    Summary,
)
from nyima.domain.storage import (
    Ask,
    AskEmbedder,
    AskEvents,
    AskRecords,
    AskRevision,
    AskSearch,
    AskTurns,
    Batched,
    Store,
)
from nyima.errors import Conflict, EmbedderMismatch, LostLease, NotFound
from nyima.testing.doubles import HashEmbedder

__all__ = ["StoreContract", "leased", "samples"]

T0 = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ME = Scope(user="me")
YOU = Scope(user="you")
TEXTS = ("plain", "Füße und Café", "猫の名前はニマです", "👩🏽‍🚀 שלום عالم", "a\nb\tc", "\ufffd", "%_'\";--", "")


def _common(id: str, *, turns: tuple[str, ...] = (), at: datetime = T0) -> dict[str, Any]:
    made = Provenance(turns, ("r0",), "tester", "note@12345678", "scripted", Origin.IMPORT)
    return {"id": id, "provenance": made, "valid": Interval(at), "recorded": Interval(at)}


def claim(id: str, *, attribute: str = "lives in", object: str = "x1", subclass: str = "Address") -> Claim:
    """A claim about the user."""
    value = f"value {object}"
    return Claim(**_common(id), subject="user", attribute=attribute, value=value, object=object, subclass=subclass)


def samples(text: str = "Füße 猫 👍") -> list[MemoryRecord]:
    """One record of each kind."""

    def common(id: str) -> dict[str, Any]:
        return _common(id, turns=("t1",))

    return [
        Episode(**common("e"), session="s1", position=0, speaker="Ana", said=text),
        Note(**common("n"), context="why", knowledge=text),
        Summary(**common("s"), level="running", covers=("s1", "s2"), body=text),
        Claim(
            **common("c"),
            subject="user",
            attribute="k",
            value=text,
            status=Status.PLANNED,
            quote=Quote("t1", 2, 9),
            when="tomorrow",
            supersedes="c0",
            stale=True,
        ),
        Entity(**common("y"), name=text, subclass="Pet", aliases=("a", "b")),
        Claim(**common("r"), subject="y", name="Ana", attribute="is a", value=text, object="z", depends_on=("c",)),
        Passage(**common("p"), document="d", place="p. 2", body=text),
    ]


def note(id: str, text: str, at: datetime = T0, until: datetime | None = None, turns: tuple[str, ...] = ()) -> Note:
    """A note."""
    made = Provenance(turns, (), "tester")
    return Note(id=id, provenance=made, valid=Interval(at, until), recorded=Interval(at), context="", knowledge=text)


def turn(id: str, text: str = "hello", session: str = "s1", at: datetime = T0) -> Turn:
    """A turn of the user."""
    return Turn(id, session, Role.USER, text, at)


SESSION = Session("s1", T0)


async def leased(
    store: Store, scope: Scope, worker: str, now: datetime, seconds: float, kinds: tuple[str, ...] = ()
) -> Job | None:
    """The one job that a worker gets of a scope."""
    found = await store.lease(worker, now, seconds, scope=scope, kinds=kinds)
    assert all(whose == scope for whose, _ in found)
    return found[0][1] if found else None


class StoreContract:
    """The contract. Each test gets an empty ``store``."""

    async def test_every_kind_of_record_comes_back_as_it_was(self, store: Store) -> None:
        for text in TEXTS:
            scope = Scope(user=f"u{TEXTS.index(text)}")
            await store.commit(scope, Delta(tuple(Add(r) for r in samples(text))))
            found = await store.records(scope, RecordFilter(retired=True))
            assert sorted(found, key=lambda r: r.id) == sorted(samples(text), key=lambda r: r.id)

    async def test_times_are_exact_and_in_utc(self, store: Store) -> None:
        odd = datetime(2026, 3, 29, 2, 30, 0, 123456, tzinfo=timezone(timedelta(hours=5, minutes=45)))
        await store.append(ME, SESSION, [turn("t1", at=as_utc(odd))])
        (back,) = await store.turns(ME)
        assert back.at == odd
        assert back.at.utcoffset() == timedelta(0)

    async def test_turns_get_positions_and_keep_their_order(self, store: Store) -> None:
        stored = await store.append(ME, SESSION, [turn("b"), turn("a")])
        stored += await store.append(ME, SESSION, [turn("c")])
        assert [t.position for t in stored] == [0, 1, 2]
        assert [t.id for t in await store.turns(ME)] == ["b", "a", "c"]

    async def test_sessions_are_ordered_by_start_then_id(self, store: Store) -> None:
        later = Session("s0", T0 + timedelta(days=1))
        await store.append(ME, later, [turn("t2", session="s0")])
        await store.append(ME, SESSION, [turn("t1")])
        await store.append(ME, Session("s2", T0), [turn("t3", session="s2")])
        assert [s.id for s in await store.sessions(ME)] == ["s1", "s2", "s0"]
        assert [t.id for t in await store.turns(ME)] == ["t1", "t3", "t2"]

    async def test_appending_twice_changes_nothing(self, store: Store) -> None:
        delta = Delta((Add(note("n1", "tea")),))
        for _ in range(2):
            await store.append(ME, SESSION, [turn("t1")], delta=delta, jobs=[Job("j1", "gate", "t1")])
        await store.append(ME, SESSION, [turn("t1", "other words")])
        assert [t.text for t in await store.turns(ME)] == ["hello"]
        assert len(await store.records(ME, RecordFilter())) == 1
        assert len(await store.jobs(ME)) == 1

    async def test_a_stale_expectation_is_a_conflict_only_about_the_same_thing(self, store: Store) -> None:
        one, other = claim("r1", object="x1"), claim("r2", object="x2")
        revision = await store.commit(ME, Delta((Add(note("n1", "tea")),)))
        await store.commit(ME, Delta((Add(one),)), expect=revision)
        await store.commit(ME, Delta((Add(note("n2", "milk")),)), expect=revision)  # about something else
        for delta in (
            Delta((Add(other),)),  # states where the user lives, too
            Delta((Add(note("n3", "salt")), Retire("r1", T0))),
            Delta((Revise("r1", replace(other, value="elsewhere")),)),
        ):
            with pytest.raises(Conflict):
                await store.commit(ME, delta, expect=revision, jobs=[Job("j", "note", "x")])
        assert {r.id for r in await store.records(ME, RecordFilter())} == {"n1", "n2", "r1"}
        assert await store.jobs(ME) == []
        held = await store.revision(ME)
        await store.commit(ME, Delta((Retire("r1", T0),)), expect=held)
        with pytest.raises(Conflict):  # it was closed since
            await store.commit(ME, Delta((Add(other),)), expect=held)
        held = await store.revision(ME)
        await store.commit(ME, Delta((Erase("n1"),)))
        with pytest.raises(Conflict, match="erased"):  # what is made may rest on what is gone
            await store.commit(ME, Delta((Add(note("n9", "tea, too")),)), expect=held)

    async def test_two_that_make_the_same_thing_at_once_are_a_conflict(self, store: Store) -> None:
        for number, made in enumerate(samples()):
            if isinstance(made, Episode | Note):
                continue  # each is of its own turn
            revision = await store.revision(ME)
            await store.commit(ME, Delta((Add(replace(made, id=f"one{number}", supersedes=None)),)), expect=revision)
            with pytest.raises(Conflict):
                await store.commit(
                    ME, Delta((Add(replace(made, id=f"two{number}", supersedes=None)),)), expect=revision
                )

    async def test_a_commit_is_all_or_nothing(self, store: Store) -> None:
        await store.commit(ME, Delta((Add(note("n1", "tea")),)), jobs=[Job("j1", "gate", "t1")])
        changes = (Add(note("n2", "milk")), Retire("n1", T0), Retire("missing", T0))
        with pytest.raises(NotFound):
            await store.commit(ME, Delta(changes), events=[Event("v", "call", T0)], close="j1")
        assert [r.id for r in await store.records(ME, RecordFilter())] == ["n1"]
        assert [j.state for j in await store.jobs(ME)] == ["queued"]
        assert await store.events(ME, "call") == []
        assert await store.revision(ME) == 1

    async def test_closing_a_closed_record_is_a_conflict(self, store: Store) -> None:
        await store.commit(ME, Delta((Add(note("n1", "tea")),)))
        await store.commit(ME, Delta((Retire("n1", T0),)))
        with pytest.raises(Conflict):
            await store.commit(ME, Delta((Revise("n1", note("n2", "milk")),)))
        assert await store.records(ME, RecordFilter()) == []

    async def test_scopes_never_see_each_other(self, store: Store) -> None:
        vectors = await HashEmbedder().embed(["tea"])
        await store.append(
            ME, SESSION, [turn("t1", "tea")], delta=Delta((Add(note("n1", "tea")),)), jobs=[Job("j1", "gate", "t1")]
        )
        await store.index(ME, {"n1": vectors[0]}, "hash")
        await store.log(ME, Event("v1", "recall", T0, ("n1",), {"q": "tea"}))
        other = Session("s1", T0)
        await store.append(YOU, other, [turn("t1", "your own")])
        assert await store.records(YOU, RecordFilter(retired=True)) == []
        assert await store.records(YOU, RecordFilter(ids=("n1",), retired=True)) == []
        assert [t.text for t in await store.turns(YOU)] == ["your own"]
        assert await store.turns(YOU, ids=("t9",)) == []
        assert await store.search(YOU, Probe(words="tea")) == []
        assert await store.search(YOU, Probe(vector=vectors[0])) == []
        assert await store.jobs(YOU) == []
        assert await leased(store, YOU, "w", T0, 60) is None
        assert await store.events(YOU, "recall") == []
        assert await store.events(YOU, "recall", ref="n1") == []
        assert await store.changes(YOU) == []
        assert await store.unindexed(YOU, 10) == []
        assert await store.revision(YOU) == 0
        with pytest.raises(NotFound):
            await store.commit(YOU, Delta((Retire("n1", T0),)))
        await store.commit(YOU, Delta((Erase("n1"), Erase("t1", "turn"), Erase("s1", "session"))))
        assert len(await store.records(ME, RecordFilter())) == 1
        assert len(await store.turns(ME)) == 1
        assert await store.users() == [ME, YOU]
        assert await store.users(limit=1) == [ME]
        assert await store.users(after=ME) == [YOU]

    async def test_as_of_looks_back(self, store: Store) -> None:
        day = timedelta(days=1)
        await store.commit(ME, Delta((Add(note("n1", "lives in Moab")),)))
        await store.commit(ME, Delta((Revise("n1", note("n2", "lives in Porto", T0 + 5 * day)),)))
        await store.commit(ME, Delta((Retire("n2", T0 + 9 * day),)))

        async def at(days: int) -> list[str]:
            return [r.id for r in await store.records(ME, RecordFilter(as_of=T0 + days * day))]

        assert [await at(d) for d in (-1, 0, 4, 5, 8, 9)] == [[], ["n1"], ["n1"], ["n2"], ["n2"], []]
        assert [r.id for r in await store.records(ME, RecordFilter())] == []
        assert [r.id for r in await store.records(ME, RecordFilter(retired=True))] == ["n1", "n2"]
        hits = await store.search(ME, Probe(words="lives", as_of=T0 + 6 * day))
        assert [h.id for h in hits] == ["n2"]

    async def test_what_has_expired_is_not_found_by_the_clock_alone(self, store: Store) -> None:
        soon = T0 + timedelta(hours=1)
        await store.commit(ME, Delta((Add(note("n1", "voucher valid", until=soon)),)))
        vectors = await HashEmbedder().embed(["voucher valid"])
        await store.index(ME, {"n1": vectors[0]}, "hash")
        for moment, ids in ((T0, ["n1"]), (soon, [])):
            assert [r.id for r in await store.records(ME, RecordFilter(at=moment))] == ids
            assert [h.id for h in await store.search(ME, Probe(words="voucher", at=moment))] == ids
            assert [h.id for h in await store.search(ME, Probe(vector=vectors[0], at=moment))] == ids

    async def test_words_are_found_in_any_script(self, store: Store) -> None:
        texts = {
            "n1": "I moved to München",
            "n2": "猫の名前はニマです",
            "n3": "我住在上海市",
            "n4": "نحن في القاهرة",
            "n5": "ไปเชียงใหม่",
        }
        await store.commit(ME, Delta(tuple(Add(note(id, text)) for id, text in texts.items())))
        for words, id in (("munchen", "n1"), ("名前", "n2"), ("上海", "n3"), ("القاهرة", "n4"), ("เชียงใหม่", "n5")):
            assert [h.id for h in await store.search(ME, Probe(words=words))] == [id], words

    async def test_a_search_takes_any_text_as_words(self, store: Store) -> None:
        await store.commit(ME, Delta((Add(note("n1", "tea")),)))
        for words in ("", '"', "tea OR", "NEAR(", "*", "a:b ^c", "-tea", "'; DROP TABLE x", "\ufffd", "tea " * 500):
            hits = await store.search(ME, Probe(words=words))
            assert [h.id for h in hits] == (["n1"] if "tea" in words else []), words

    async def test_search_filters_and_orders(self, store: Store) -> None:
        delta = Delta((*(Add(note(f"n{i}", "green tea")) for i in (3, 1, 2)), *(Add(r) for r in samples("green tea"))))
        await store.commit(ME, delta)
        vectors = dict(
            zip(("n1", "n2", "n3", "e"), await HashEmbedder().embed(["green tea"] * 3 + ["red"]), strict=True)
        )
        await store.index(ME, vectors, "hash")
        for probe in (Probe(words="green tea", kinds=("note",)), Probe(vector=vectors["n1"], kinds=("note",))):
            hits = await store.search(ME, probe)
            assert [h.id for h in hits if h.id != "n"] == ["n1", "n2", "n3"]
            assert [h.id for h in await store.search(ME, replace(probe, k=2))] == [h.id for h in hits][:2]
        hits = await store.search(ME, Probe(words="green", kinds=("episode",)))
        assert [(h.id, h.session, h.position) for h in hits] == [("e", "s1", 0)]
        assert await store.search(ME, Probe(words="green", kinds=("episode",), not_session="s1")) == []

    async def test_cosines_are_exact(self, store: Store) -> None:
        texts = ["green tea", "green", "coffee at noon"]
        vectors = await HashEmbedder().embed(texts)
        await store.commit(ME, Delta(tuple(Add(note(f"n{i}", t)) for i, t in enumerate(texts))))
        await store.index(ME, {f"n{i}": v for i, v in enumerate(vectors)}, "hash")
        hits = {h.id: h.score for h in await store.search(ME, Probe(vector=vectors[0]))}
        assert hits["n0"] == pytest.approx(1.0, abs=1e-6)
        assert hits["n1"] > hits["n2"]

    async def test_vectors_of_another_model_are_refused(self, store: Store) -> None:
        await store.commit(ME, Delta((Add(note("n1", "tea")),)))
        (vector,) = await HashEmbedder().embed(["tea"])
        assert [r.id for r in await store.unindexed(ME, 10)] == ["n1"]
        await store.index(ME, {"n1": vector}, "one")
        assert await store.unindexed(ME, 10) == []
        with pytest.raises(EmbedderMismatch, match="reindex"):
            await store.index(ME, {"n1": vector}, "two")
        assert (await store.embedder(ME), await store.embedder(YOU)) == ("one", None)
        await store.reindex(ME, vectors=True)
        await store.index(ME, {"n1": vector}, "two")
        assert [h.id for h in await store.search(ME, Probe(vector=vector))] == ["n1"]

    async def test_a_closed_record_leaves_a_search_that_was_warm(self, store: Store) -> None:
        (vector,) = await HashEmbedder().embed(["tea"])
        await store.commit(ME, Delta((Add(note("n1", "tea")),)))
        await store.index(ME, {"n1": vector}, "hash")
        assert await store.search(ME, Probe(vector=vector))
        await store.commit(ME, Delta((Retire("n1", T0),)))
        assert await store.search(ME, Probe(vector=vector)) == []
        assert await store.search(ME, Probe(words="tea")) == []

    async def test_jobs_are_leased_once_and_come_back(self, store: Store) -> None:
        jobs = [Job("j1", "gate", "t1"), Job("j2", "gate", "t2")]
        await store.append(ME, SESSION, [turn("t1")], jobs=jobs)
        first = await leased(store, ME, "a", T0, 60)
        second = await leased(store, ME, "b", T0, 60)
        assert first is not None
        assert second is not None
        assert [first.id, second.id] == ["j1", "j2"]
        assert await leased(store, ME, "c", T0, 60) is None
        late = await leased(store, ME, "c", T0 + timedelta(seconds=61), 60)
        assert late is not None
        assert late.id == "j1"
        await store.settle(ME, late, retry_at=T0 + timedelta(hours=1), error="no model")
        assert [j.error for j in await store.jobs(ME, ("queued",))] == ["no model"]
        again = await leased(store, ME, "c", T0 + timedelta(hours=2), 60)
        assert again is not None
        await store.commit(ME, Delta(), close="j2")
        await store.settle(ME, again, retry_at=None, error="given up")
        states = {j.id: j.state for j in await store.jobs(ME)}
        assert states == {"j1": "parked", "j2": "done"}
        assert await store.requeue(ME, "j1")
        assert not await store.requeue(ME, "j2")
        (back,) = await store.jobs(ME, ("queued",))
        assert (back.id, back.attempts) == ("j1", 0)

    async def test_a_lease_counts_as_an_attempt_when_it_is_given(self, store: Store) -> None:
        await store.append(ME, SESSION, [turn("t1")], jobs=[Job("j1", "gate", "t1")])
        for tries in range(1, 6):  # its worker dies each time, before it can settle anything
            job = await leased(store, ME, "a", T0 + timedelta(minutes=2 * tries), 60)
            assert job is not None
            assert job.attempts == tries
            assert job.lapses == tries - 1
            assert job.error.startswith(LAPSED) == (tries > 1)

    async def test_a_renewed_lease_is_nobody_elses(self, store: Store) -> None:
        await store.append(ME, SESSION, [turn("t1")], jobs=[Job("j1", "gate", "t1")])
        job = await leased(store, ME, "a", T0, 60)
        assert job is not None
        assert await store.renew(ME, job, T0 + timedelta(seconds=50), 60)
        assert await leased(store, ME, "b", T0 + timedelta(seconds=61), 60) is None
        assert await leased(store, ME, "b", T0 + timedelta(seconds=111), 60) is not None
        assert not await store.renew(ME, job, T0 + timedelta(seconds=112), 60)

    async def test_a_late_worker_changes_nothing(self, store: Store) -> None:
        await store.append(ME, SESSION, [turn("t1")], jobs=[Job("j1", "gate", "t1")])
        late = await leased(store, ME, "a", T0, 60)
        now = await leased(store, ME, "b", T0 + timedelta(seconds=61), 60)
        assert late is not None
        assert now is not None
        assert late.holder != now.holder
        with pytest.raises(LostLease, match="another worker"):
            await store.commit(ME, Delta((Add(note("n1", "tea")),)), close="j1", holder=late.holder)
        assert await store.records(ME, RecordFilter()) == []
        assert not await store.settle(ME, late, retry_at=T0, error="too late")
        await store.commit(ME, Delta((Add(note("n2", "tea")),)), close="j1", holder=now.holder)
        assert not await store.settle(ME, late, retry_at=T0, error="too late")
        with pytest.raises(LostLease):
            await store.commit(ME, Delta((Add(note("n3", "tea")),)), close="j1", holder=now.holder)
        assert [j.state for j in await store.jobs(ME)] == ["done"]

    async def test_a_clock_that_was_set_back_blocks_no_job(self, store: Store) -> None:
        await store.append(ME, SESSION, [turn("t1")], jobs=[Job("j1", "gate", "t1")])
        assert await leased(store, ME, "a", T0 + timedelta(days=30), 60) is not None
        assert await leased(store, ME, "b", T0, 60) is not None

    async def test_events_come_newest_first_and_by_reference(self, store: Store) -> None:
        for i in range(3):
            await store.log(ME, Event(f"v{i}", "recall", T0, (f"n{i}", "x"), {"i": i}))
        await store.log(ME, Event("v0", "recall", T0, (), {"i": 99}))
        assert [e.body["i"] for e in await store.events(ME, "recall")] == [2, 1, 0]
        assert [e.body["i"] for e in await store.events(ME, "recall", ref="x", limit=2)] == [2, 1]
        assert [e.id for e in await store.events(ME, "recall", ref="n1")] == ["v1"]

    async def test_erase_leaves_nothing(self, store: Store) -> None:
        secret = "zebrafish9"
        delta = Delta((Add(note("n1", secret, turns=("t1",))),))
        await store.append(ME, SESSION, [turn("t1", secret)], delta=delta, jobs=[Job("j1", "gate", "t1")])
        (vector,) = await HashEmbedder().embed([secret])
        await store.index(ME, {"n1": vector}, "hash")
        await store.log(ME, Event("v1", "recall", T0, ("n1",), {"q": secret}))
        await store.commit(ME, Delta((Retire("n1", T0, secret),)))
        await store.commit(ME, Delta((Erase("n1"), Erase("t1", "turn"), Erase("s1", "session"))))
        report = await store.scrub(ME, [secret])
        assert report["bytes_found"] == 0
        assert await store.records(ME, RecordFilter(retired=True)) == []
        assert await store.turns(ME) == []
        assert await store.sessions(ME) == []
        assert await store.jobs(ME) == []
        assert await store.events(ME, "recall") == []
        assert await store.search(ME, Probe(words=secret)) == []
        assert await store.search(ME, Probe(vector=vector)) == []
        assert all(secret not in c.reason for c in await store.changes(ME))

    async def test_the_history_of_changes_is_kept(self, store: Store) -> None:
        await store.commit(ME, Delta((Add(note("n1", "tea")),), "conditional"))
        later = T0 + timedelta(days=1)
        await store.commit(ME, Delta((Revise("n1", note("n2", "milk", later), "changed"),), "user"))
        rows = [(c.revision, c.verb, c.id, c.successor, c.by, c.reason) for c in await store.changes(ME)]
        assert rows == [(1, "add", "n1", None, "conditional", ""), (2, "revise", "n1", "n2", "user", "changed")]
        assert [c.revision for c in await store.changes(ME, since=1)] == [2]

    async def test_jobs_of_a_kind_are_leased_alone(self, store: Store) -> None:
        await store.append(ME, SESSION, [turn("t1")], jobs=[Job("j1", "gate", "t1"), Job("j2", "graph", "t1")])
        first = await leased(store, ME, "a", T0, 60, ("graph", "mend"))
        assert first is not None
        assert first.id == "j2"
        assert await leased(store, ME, "a", T0, 60, ("graph",)) is None

    async def test_claims_are_found_by_slot_and_by_what_they_touch(self, store: Store) -> None:
        one, two = (claim(f"r{n}", object=f"x{n}") for n in (1, 2))
        other = replace(claim("r3", attribute="likes"), depends_on=("r1",))
        await store.commit(ME, Delta(tuple(Add(r) for r in (one, two, other))))
        claimed = await store.records(ME, RecordFilter(slots=(Slot("user", "lives in"),)))
        assert {r.id for r in claimed} == {"r1", "r2"}
        for parent, children in (
            ("user", {"r1", "r2", "r3"}),
            ("x1", {"r1", "r3"}),
            ("r1", {"r3"}),
            ("x9", set[str]()),
        ):
            assert {r.id for r in await store.records(ME, RecordFilter(turns=(parent,)))} == children
        await store.commit(ME, Delta((Retire("r1", T0 + timedelta(days=1), "moved"),)))
        claimed = await store.records(ME, RecordFilter(slots=(Slot("user", "lives in"),)))
        assert {r.id for r in claimed} == {"r2"}

    async def test_vectors_and_the_centres_of_partitions(self, store: Store) -> None:
        made = [claim(f"r{n}", object=f"x{n}", subclass="Address" if n < 3 else "Other") for n in (1, 2, 3)]
        await store.commit(ME, Delta(tuple(Add(r) for r in made)))
        vectors = {f"r{n}": struct.pack("<3f", *(float(i == n) for i in (1, 2, 3))) for n in (1, 2, 3)}
        assert await store.centres(ME) == {}
        await store.index(ME, vectors, "m")
        assert await store.vectors(ME, ["r2", "r3", "gone"]) == {"r2": vectors["r2"], "r3": vectors["r3"]}
        centres = {place: struct.unpack("<3f", mean) for place, mean in (await store.centres(ME)).items()}
        assert centres == {"partition Address": (0.5, 0.5, 0.0), "partition Other": (0.0, 0.0, 1.0)}
        probe = Probe(vector=vectors["r3"], kinds=("claim",), regions=("partition Address",))
        assert {h.id for h in await store.search(ME, probe)} == {"r1", "r2"}
        words = Probe(words="lives", kinds=("claim",), regions=("partition Other", "none such"))
        assert [h.id for h in await store.search(ME, words)] == ["r3"]
        later = replace(made[0], id="r4", recorded=Interval(T0 + timedelta(days=1)))
        await store.commit(ME, Delta((Revise("r1", later, "changed"),)))
        await store.commit(ME, Delta((Retire("r3", T0 + timedelta(days=1), "over"),)))
        centres = {place: struct.unpack("<3f", mean) for place, mean in (await store.centres(ME)).items()}
        assert centres == {"partition Address": (0.0, 1.0, 0.0)}
        assert {h.id for h in await store.search(ME, Probe(vector=vectors["r1"], kinds=("claim",)))} == {"r2"}
        await store.commit(ME, Delta((Erase("r2"),)))
        assert await store.centres(ME) == {}

    async def test_records_are_found_by_turn_session_and_place(self, store: Store) -> None:
        await store.append(ME, SESSION, [turn("t1"), turn("t2")], delta=Delta((Add(note("n1", "tea", turns=("t1",))),)))
        await store.commit(ME, Delta(tuple(Add(r) for r in samples())))
        assert {r.id for r in await store.records(ME, RecordFilter(turns=("t1",), kinds=("note",)))} == {"n1", "n"}
        found = await store.records(ME, RecordFilter(session="s1", positions=(0, 3)))
        assert [r.id for r in found] == ["e"]
        assert len(await store.records(ME, RecordFilter(limit=2))) == 2
        assert await store.check() == "ok"

    async def test_a_worker_leases_jobs_of_every_scope_the_oldest_first(self, store: Store) -> None:
        for number, scope in enumerate((YOU, ME, YOU)):
            await store.append(scope, SESSION, [turn(f"t{number}")], jobs=[Job(f"j{number}", "gate", f"t{number}")])
        assert await store.due(T0, 9) == [YOU, ME]
        assert await store.queue() == {"queued": 3}
        taken = await store.lease("a", T0, 60, limit=2)
        assert [(scope, job.id) for scope, job in taken] == [(YOU, "j0"), (ME, "j1")]
        assert await store.due(T0, 9) == [YOU]
        assert [(scope, job.id) for scope, job in await store.lease("b", T0, 60, limit=9)] == [(YOU, "j2")]
        assert await store.due(T0, 9) == []
        assert await store.due(T0 + timedelta(seconds=60), 1) == [YOU]
        for scope, job in taken:
            await store.commit(scope, Delta(), close=job.id, holder=job.holder)
        assert await store.queue() == {"leased": 1}

    async def test_silent_sessions_of_every_scope_are_found_by_their_last_turn(self, store: Store) -> None:
        hour = timedelta(hours=1)
        await store.append(ME, SESSION, [turn("t1"), turn("t2", at=T0 + 2 * hour)])
        await store.append(YOU, SESSION, [turn("t1", at=T0 + hour)])
        await store.put_session(YOU, Session("over", T0, T0))
        await store.put_session(YOU, Session("never spoken in", T0))
        found = await store.silent(T0 + 2 * hour, 9)
        assert [(scope, session.id) for scope, session in found] == [(YOU, "never spoken in"), (YOU, "s1")]
        assert len(await store.silent(T0 + 9 * hour, 9)) == 3
        assert len(await store.silent(T0 + 9 * hour, 1)) == 1
        assert [s.id for s in await store.sessions(YOU, unended=True)] == ["never spoken in", "s1"]

    async def test_a_session_that_is_replaced_goes_on_counting(self, store: Store) -> None:
        await store.append(ME, SESSION, [turn("t1")])
        await store.put_session(ME, replace(SESSION, title="Tea"))
        (second,) = await store.append(ME, SESSION, [turn("t2")])
        assert second.position == 1
        await store.commit(ME, Delta((Erase("t2", "turn"),)))
        (third,) = await store.append(ME, SESSION, [turn("t3")])
        assert third.position >= 1

    async def test_turns_come_in_pages_from_either_end(self, store: Store) -> None:
        await store.append(ME, SESSION, [turn(f"t{i}") for i in range(5)])
        assert [t.id for t in await store.turns(ME, limit=2)] == ["t0", "t1"]
        assert [t.id for t in await store.turns(ME, session="s1", last=2)] == ["t3", "t4"]

    async def test_several_asks_are_answered_in_order(self, store: Store) -> None:
        await store.append(ME, SESSION, [turn("t1", "tea")], delta=Delta((Add(note("n1", "tea")),)))
        asks = (AskTurns(), AskRevision(), AskSearch(Probe(words="tea")), AskRecords(RecordFilter()), AskEmbedder())
        turns, revision, hits, found, embedder = await store.read(ME, asks)
        assert [t.id for t in turns] == ["t1"]
        assert revision == 1
        assert [h.id for h in hits] == [r.id for r in found] == ["n1"]
        assert embedder is None
        assert await store.read(YOU, asks) == [[], 0, [], [], None]
        assert await store.read(ME, ()) == []

    async def test_records_are_found_by_the_id_that_they_first_had_and_by_its_beginning(self, store: Store) -> None:
        first = note("n1", "tea")
        await store.commit(ME, Delta((Add(first), Add(note("n10", "salt")))))
        await store.commit(ME, Delta((Revise("n1", note("n1~a1", "milk")),)))
        found = await store.records(ME, RecordFilter(bases=("n1",), retired=True))
        assert {r.id for r in found} == {"n1", "n1~a1"}
        assert {r.id for r in await store.records(ME, RecordFilter(bases=("n1",)))} == {"n1~a1"}
        assert {r.id for r in await store.records(ME, RecordFilter(prefix="n1", retired=True))} == {
            "n1",
            "n1~a1",
            "n10",
        }
        assert await store.records(ME, RecordFilter(prefix="%", retired=True)) == []

    async def test_steps_of_the_history_are_found_by_what_they_touch(self, store: Store) -> None:
        await store.commit(ME, Delta((Add(note("n1", "tea")), Add(note("n2", "salt"))), "graph"))
        await store.commit(ME, Delta((Add(note("n3", "rye")),), "history"))
        await store.commit(ME, Delta((Revise("n1", note("n4", "milk")),), "user"))

        async def steps(**asked: Any) -> list[tuple[int, str]]:
            return [(row.revision, row.id) for row in await store.changes(ME, **asked)]

        assert await steps(ids=("n2",)) == [(1, "n1"), (1, "n2")]
        assert await steps(ids=("n4",)) == [(3, "n1")]
        assert await steps(ids=()) == []
        assert await steps(revisions=(2, 3)) == [(2, "n3"), (3, "n1")]
        assert await steps(last=2) == [(2, "n3"), (3, "n1")]
        assert await steps(last=2, but=("history",)) == [(1, "n1"), (1, "n2"), (3, "n1")]
        assert await steps(since=1, but=("user",)) == [(2, "n3")]

    async def test_reads_at_the_same_time_are_one_read_of_the_store(self, store: Store) -> None:
        await store.append(ME, SESSION, [turn("t1", "tea")], delta=Delta((Add(note("n1", "tea")),)))
        counted = _CountedReads(store)
        batched = Batched(counted)
        found = await asyncio.gather(batched.turns(ME), batched.records(ME, RecordFilter()), batched.embedder(YOU))
        assert ([t.id for t in found[0]], [r.id for r in found[1]], found[2]) == (["t1"], ["n1"], None)
        assert counted.reads == [(ME, 3), (YOU, 2)]  # each with the revision
        odd, right = await asyncio.gather(batched.ask(ME, Ask[int]()), batched.revision(ME), return_exceptions=True)
        assert isinstance(odd, TypeError)
        assert right == 1

    async def test_a_standing_answer_is_given_again_until_something_is_written(self, store: Store) -> None:
        counted = _CountedReads(store)
        batched = Batched(counted)
        ask: Ask[list[MemoryRecord]] = AskRecords(RecordFilter())
        for _ in range(3):
            assert await batched.standing(ME, ask) == []
        assert len(counted.reads) == 1
        await batched.append(ME, SESSION, [turn("t1")], delta=Delta((Add(note("n1", "tea")),)))
        assert [r.id for r in await batched.standing(ME, ask)] == ["n1"]
        await batched.log(ME, Event("v1", "call", T0))
        held = await batched.standing(ME, ask)
        assert [r.id for r in held] == ["n1"]
        assert len(counted.reads) == 2
        await store.commit(ME, Delta((Add(note("n2", "milk")),)))  # as another process does
        held = await batched.standing(ME, ask)
        assert [r.id for r in held] == ["n1"]
        await batched.turns(ME)
        held = await batched.standing(ME, ask)
        assert [r.id for r in held] == ["n1", "n2"]

    async def test_an_answer_from_before_a_write_does_not_stand(self, store: Store) -> None:
        slow = _SlowReads(store)
        batched, ask = Batched(slow), AskEvents("weights")
        first = asyncio.create_task(batched.standing(ME, ask))
        await slow.read_once.wait()
        await batched.log(ME, Event("v1", "weights", T0))
        slow.go_on.set()
        assert await first == []
        assert [e.id for e in await batched.standing(ME, ask)] == ["v1"]


class _SlowReads(Batched):
    """Reads at once, and answers when it may."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.read_once, self.go_on = asyncio.Event(), asyncio.Event()

    async def read(self, scope: Scope, asks: Sequence[Ask[Any]]) -> list[Any]:
        found = await self.inner.read(scope, asks)
        self.read_once.set()
        await self.go_on.wait()
        return found


class _CountedReads(Batched):
    """Passes everything on, and counts what is asked of which scope."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.reads: list[tuple[Scope, int]] = []

    async def read(self, scope: Scope, asks: Sequence[Ask[Any]]) -> list[Any]:
        self.reads.append((scope, len(asks)))
        return await self.inner.read(scope, asks)
