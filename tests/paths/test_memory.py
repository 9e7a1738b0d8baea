"""Memory without a chat model: remember, recall, revise, forget, undo, explain."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nyima.domain.changes import Add, Delta, Erase, Retire, Revise, merge
from nyima.domain.conversation import MAX_TEXT, Origin, Role, Scope, clean_text, least_trusted
from nyima.domain.evidence import Budget
from nyima.domain.ports import Event
from nyima.domain.records import Interval, Note, Provenance, Summary
from nyima.errors import InputError, ModelUnreachable, NotFound
from nyima.language.words import cut_tokens, segment, sentences, tokens, words
from nyima.memory import Memory, Said
from nyima.services.counts import statistics
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from nyima.testing.contract import T0, note
from support import Agrees, answer, companion, reading


async def test_a_memory_never_calls_a_model(memory: Memory) -> None:
    done = await memory.remember("My flight is on 3 May at 9:40")
    assert [r.partition("-")[0] for r in done.records] == ["e", "n"]
    found = await memory.recall("when is my flight")
    assert "9:40" in found.kept[0].text
    assert {e.source for e in found.kept} <= {"history", "notes"}
    await memory.end_session()
    assert await memory.drain() == {"done": 0, "waiting": 1, "parked": 0}, "it waits to be read"
    assert await memory.store.events(memory.scope, "call") == []


async def test_turns_of_a_conversation_are_stored_once(memory: Memory) -> None:
    said = [Said("hello", id="1", at=T0), Said("hi", Role.ASSISTANT, T0, id="2")]
    for _ in range(2):
        await memory.remember(said, session="s1")
    turns = await memory.turns("s1")
    assert [(t.role.value, t.text, t.origin) for t in turns] == [
        ("user", "hello", Origin.USER),
        ("assistant", "hi", Origin.ASSISTANT),
    ]
    assert len(await memory.records(kinds=("episode",))) == 2


async def test_recall_has_the_whole_trace(memory: Memory) -> None:
    await memory.remember([Said(t, id=t) for t in ("I like tea", "and milk", "The bus is late")], session="s1")
    found = await memory.recall("tea", Budget(2, 1_000))
    assert [s.source for s in found.plan] == ["history", "notes", "profile", "summary", "graph"]
    assert len(found.kept) <= 2
    assert all(0.0 <= e.score <= 1.0 for e in found.found)
    assert set(found.ms) == {"plan", "embed", "search", "total"}
    explained = await memory.explain("last")
    assert explained.trace is not None
    assert explained.trace["query"] == "tea"
    assert [e["id"] for e in explained.trace["kept"]] == [e.record_id for e in found.kept]


async def test_recall_abstains_when_nothing_is_to_the_point(memory: Memory) -> None:
    await memory.remember([Said("I like green tea", id="1")], session="s1")
    assert (await memory.recall("quantum chromodynamics lattice")).kept == ()
    assert (await memory.recall("green tea")).kept != ()


async def test_a_time_in_the_query_prefers_what_was_said_then(db: Path, clock: FixedClock) -> None:
    clock.at = datetime(2026, 11, 21, 12, tzinfo=UTC)
    async with Memory.open(db, embedder="none", clock=clock) as memory:
        for month in (2, 3, 10):
            said = Said(f"we met at the lake, number {month}", at=T0.replace(month=month), id="1")
            await memory.remember([said], session=f"s{month}")
        found = await memory.recall("when we met at the lake in March")
        assert found.query.period is not None
        assert "number 3" in found.kept[0].text
        assert len(found.kept) == 3


async def test_a_failing_embedder_leaves_words_and_says_so(db: Path, clock: FixedClock) -> None:
    class Broken(HashEmbedder):
        async def embed(self, texts: object) -> list[bytes]:
            if self.calls:
                raise ModelUnreachable("the embedder does not answer: start it")
            self.calls += 1
            return await HashEmbedder().embed(texts)  # type: ignore[arg-type]

    async with Memory.open(db, embedder=Broken(), clock=clock) as memory:
        await memory.remember([Said("I like green tea", id="1")], session="s1")
        found = await memory.recall("green tea")
        assert [e.text for e in found.kept] == ["User: I like green tea"]
        assert found.failed == {"vectors": "the embedder does not answer: start it"}


async def test_revising_keeps_the_old_value_in_history(memory: Memory, clock: FixedClock) -> None:
    fact = await memory.set("city", "Moab")
    before = clock.forward(days=1)
    clock.forward(days=1)
    new = await memory.revise(fact.id, "Porto")
    assert (await memory.profile()).as_dict() == {"city": "Porto"}
    assert [r.text for r in await memory.records(kinds=("claim",), as_of=before)] == ["user city: Moab"]
    explained = await memory.explain(new.id)
    assert [r.text for r in explained.history] == ["user city: Moab"]
    with pytest.raises(InputError, match="retired"):
        await memory.revise(fact.id, "York")
    with pytest.raises(NotFound):
        await memory.revise("f-nothing", "York")
    with pytest.raises(InputError):
        await memory.revise(new.id, "  ")


async def test_what_was_said_cannot_be_revised(memory: Memory) -> None:
    done = await memory.remember([Said("hello there", id="1")], session="s1")
    with pytest.raises(InputError, match="forget"):
        await memory.revise(done.records[0], "other")


async def test_undo_takes_back_change_after_change(memory: Memory, clock: FixedClock) -> None:
    fact = await memory.set("city", "Moab")
    clock.forward(days=1)
    await memory.revise(fact.id, "Porto")
    clock.forward(days=1)
    await memory.undo()
    assert (await memory.profile()).as_dict() == {"city": "Moab"}
    await memory.undo()
    assert (await memory.profile()).as_dict() == {}
    with pytest.raises(NotFound, match="no change left"):
        await memory.undo()


async def test_forget_erases_the_turn_and_what_came_of_it(db: Path, clock: FixedClock) -> None:
    facts = {"allergy": "walnuts"}
    model = ScriptedModel(
        {
            "chat": [answer("No walnuts, understood.", remember=True, claims=facts), answer("Nice!", remember=True), answer("ok")],
            "note": ['{"context": "", "knowledge": "The user has a walnuts allergy.", "facts": {}}', '{"context": "", "knowledge": "The user likes jazz music.", "facts": {}}'],
            "fold": ['{"text": "The user has an allergy to walnuts. The user likes jazz music."}', '{"text": "The user likes jazz music."}'],
        }
    )  # fmt: skip
    async with companion(db, model, clock=clock) as nyima:
        await nyima.reply("I have an allergy to walnuts.")
        clock.forward(minutes=1)
        await nyima.reply("I like jazz music.")
        clock.forward(minutes=1)
        await nyima.reply("bye")
        await nyima.end_session()
        await nyima.drain()
        memory = nyima.memory
        assert len(await memory.records(kinds=("note", "claim", "summary"))) == 4
        await memory.recall("walnuts")
        fact = (await memory.profile()).claims[0]
        receipt = await memory.forget(fact.id)
        assert receipt.erased["claim"] == 1
        assert receipt.erased["summary"] == 1
        assert receipt.turns == 2
        assert receipt.bytes_found == 0
        assert receipt.also["traces"] >= 1
        await nyima.drain()
        left = await memory.records(retired=True)
        assert not [r for r in left if "walnut" in r.text.lower()]
        (summary,) = [r for r in left if isinstance(r, Summary)]
        assert summary.text == "The user likes jazz music."
        assert any(isinstance(r, Note) and "jazz" in r.text for r in left)
        assert "walnut" not in model.asked("fold")[-1].last
    content = b"".join(p.read_bytes() for p in db.parent.glob("memory.db*"))
    assert b"walnut" not in content.lower()
    assert b"jazz" in content


async def test_forget_folds_again_from_the_last_memory_it_does_not_touch(db: Path, clock: FixedClock) -> None:
    def fold(request: object) -> str:
        text = request.last  # type: ignore[attr-defined]
        parts = [f"The user likes {x}." for x in ("tea", "jazz", "chess") if x in text]
        return json.dumps({"text": " ".join(parts)})

    model = ScriptedModel({"chat": ["fine"], "fold": [fold]})
    async with companion(db, model, recipe="recursive", clock=clock) as nyima:
        for thing in ("tea", "jazz", "chess"):
            await nyima.reply(f"I like {thing}")
            await nyima.end_session()
            await nyima.drain()
            clock.forward(days=1)
        sessions = await nyima.memory.sessions()
        before = len(model.asked("fold"))
        receipt = await nyima.memory.forget(session=sessions[1].id)
        assert receipt.rederived == 1
        clock.forward(minutes=1)
        await nyima.drain()
        (now,) = await nyima.memory.records(kinds=("summary",))
        assert now.text == "The user likes tea. The user likes chess."
        assert len(model.asked("fold")) == before + 1
        assert "jazz" not in "".join(r.text for r in await nyima.memory.records(retired=True))


async def test_forget_by_query_and_everything(memory: Memory, db: Path) -> None:
    await memory.remember("The safe opens with zebrafish")
    await memory.remember("I like green tea")
    with pytest.raises(NotFound):
        await memory.forget(query="quantum chromodynamics lattice")
    receipt = await memory.forget(query="what opens the safe zebrafish")
    assert receipt.erased == {"episode": 1, "note": 1}
    assert b"zebrafish" not in b"".join(p.read_bytes() for p in db.parent.glob("memory.db*"))
    assert (await memory.recall("green tea")).kept
    receipt = await memory.forget(everything=True)
    assert receipt.bytes_found == 0
    assert await memory.records(retired=True) == []
    assert await memory.turns() == []
    assert await memory.sessions() == []


async def test_forgetting_cleans_the_notes_that_a_model_made_of_other_turns(memory: Memory, db: Path) -> None:
    """A small model repeats what it saw in the dialogue among the facts of a later turn."""
    first = await memory.remember("I'm allergic to \"walnuts\" and l'ananas.")
    later = await memory.remember("I moved to Porto.")
    allergy = ["user", "allergic to", "I'm allergic to \"walnuts\" and l'ananas", "holds"]
    body = {"turn": later.turns[0].id, "claims": [["user", "lives in", "Porto", "holds"], allergy]}
    await memory.store.log(memory.scope, Event("notes-late", "notes", T0, (later.turns[0].id,), body))
    receipt = await memory.forget(*first.records)
    assert receipt.bytes_found == 0
    assert b"walnuts" not in b"".join(p.read_bytes() for p in db.parent.glob("memory.db*"))
    kept = [e for e in await memory.store.events(memory.scope, "notes") if e.body["turn"] == later.turns[0].id]
    assert [e.body["claims"] for e in kept] == [[["user", "lives in", "Porto", "holds"]]]


async def test_a_text_that_stays_elsewhere_is_not_counted_as_left(memory: Memory) -> None:
    await memory.remember("the very same sentence about green tea")
    done = await memory.remember("the very same sentence about green tea")
    receipt = await memory.forget(done.records[1])
    assert receipt.bytes_found == 0
    assert len(await memory.turns()) == 1


@pytest.mark.req("cond.stats")
async def test_statistics_say_records_per_utterance_and_length(memory: Memory) -> None:
    await memory.remember("I like green tea")
    await memory.remember([Said("one two", id="1"), Said("three", Role.ASSISTANT, id="2")], session="s")
    data = await statistics(memory)
    assert data["records"]["note"] == {"count": 1, "per_utterance": 0.333, "mean_words": 4.0}
    assert data["records"]["episode"]["per_utterance"] == 1.0
    assert data["calls"]["count"] == 0


@pytest.mark.parametrize("text", ["", "   ", "\n"])
async def test_empty_input_is_refused(memory: Memory, text: str) -> None:
    with pytest.raises(InputError):
        await memory.remember(text)
    with pytest.raises(InputError):
        await memory.recall(text)


@pytest.mark.parametrize(
    "text",
    [
        "nul \x00 inside",
        "lone \ud800 surrogate",
        "👩🏽‍🚀🏳️‍🌈",
        "שלום \u202e مرحبا",
        "a" * 300_000,
        "%s {x} $y \\",
        "\u200b\ufeff",
    ],
)
async def test_odd_text_is_kept_and_found(memory: Memory, text: str) -> None:
    await memory.remember([Said(text + " marker", id="1")], session="s")
    (turn,) = await memory.turns("s")
    assert turn.text == clean_text(text + " marker")
    assert (await memory.recall("marker")).kept
    assert (await memory.recall(text)).query.text == clean_text(text)


async def test_ten_megabytes_are_kept(memory: Memory) -> None:
    text = "word " * 2_000_000 + "needle"
    await memory.remember([Said(text, id="1")], session="s")
    assert len((await memory.turns("s"))[0].text) == len(text)
    assert (await memory.recall("needle")).kept
    with pytest.raises(InputError, match="too long"):
        clean_text("x" * (MAX_TEXT + 1))


async def test_a_naive_time_is_refused(memory: Memory) -> None:
    with pytest.raises(InputError, match="time zone"):
        await memory.remember([Said("x", at=datetime(2026, 1, 1))], session="s")


@pytest.mark.parametrize("name", ["", "a\x00b", "\ud800", "x" * 300])
def test_a_scope_needs_printable_names(name: str) -> None:
    with pytest.raises(InputError):
        Scope(user=name)


def test_trust_goes_down() -> None:
    assert least_trusted([Origin.USER, Origin.DOCUMENT, Origin.ASSISTANT]) is Origin.DOCUMENT
    assert least_trusted([]) is Origin.USER


changes = st.one_of(
    st.builds(lambda i: Add(note(f"n{i}", "x")), st.integers(0, 3)),
    st.builds(lambda i: Retire(f"n{i}", T0), st.integers(0, 3)),
    st.builds(lambda i, j: Revise(f"n{i}", note(f"m{j}", "y")), st.integers(0, 3), st.integers(0, 3)),
    st.builds(lambda i: Erase(f"n{i}"), st.integers(0, 3)),
)
deltas = st.builds(lambda c: Delta(tuple(c)), st.lists(changes, max_size=5))


@given(deltas, deltas, deltas)
def test_merge_is_associative_with_a_neutral_element(a: Delta, b: Delta, c: Delta) -> None:
    assert merge([merge([a, b]), c]) == merge([a, merge([b, c])]) == merge([a, b, c])
    assert merge([Delta(), a]) == merge([a, Delta()]) == merge([a])


@given(st.lists(deltas, max_size=4))
def test_merge_names_an_id_once(parts: list[Delta]) -> None:
    merged = merge(parts)
    closed = [c.id for c in merged.changes if isinstance(c, Revise | Retire)]
    erased = {c.id for c in merged.changes if isinstance(c, Erase)}
    assert len(closed) == len(set(closed))
    assert not erased & set(closed)


@given(st.text(max_size=400), st.integers(10, 100))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_texts_can_be_cut_counted_and_segmented(text: str, limit: int) -> None:
    assert tokens(cut_tokens(text, limit)) <= max(tokens(text), limit + 16)
    assert all(s == s.strip() and s for s in sentences(text))
    assert words(segment(text)) == words(text)


def test_sentences_know_abbreviations_and_scripts() -> None:
    assert sentences("Dr. Smith came. He left!") == ["Dr. Smith came.", "He left!"]
    assert sentences("猫です。犬です。") == ["猫です。", "犬です。"]


async def test_what_is_said_after_its_session_ended_begins_another(memory: Memory) -> None:
    first = await memory.remember("I live in Porto.")
    session = first.turns[0].session
    assert (await memory.remember("I like figs.")).turns[0].session == session
    (held,) = await memory.store.sessions(memory.scope, ids=(session,))
    await memory.ingest.end(memory.scope, held, memory.recipe)
    assert (await memory.remember("I moved to Lund.")).turns[0].session != session


async def test_a_forget_leaves_the_file_locked_for_other_programs(memory: Memory, db: Path) -> None:
    """POSIX: a process that closes a file loses all its locks on it, and then the next program
    that closes the database takes away the log that this one still writes to."""
    done = await memory.remember("I am allergic to walnuts.")
    await memory.forget(*done.records)
    await memory.remember("I live in Porto.")
    other = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); print(db.execute('select count(*) from turns').fetchone()[0]); db.close()"
    for number in range(1, 4):
        run = [sys.executable, "-c", other, str(db)]
        assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == str(number)
        assert db.with_name(db.name + "-wal").exists(), "it is still in use"
        await memory.remember(f"I like tea number {number}.")
    assert await memory.store.check() == "ok"


async def test_what_another_user_says_too_is_not_counted_as_left(db: Path, embedder: HashEmbedder) -> None:
    async with (
        Memory.open(db, user="a", embedder=embedder) as one,
        Memory.open(db, user="b", embedder=embedder) as other,
    ):
        text = 'I am "very" allergic to walnuts, and to hazelnuts.'
        done = await one.remember(text)
        await other.remember(text)
        receipt = await one.forget(*done.records)
        assert receipt.bytes_found == 0
        assert (await other.forget(everything=True)).bytes_found == 0
        assert b"walnuts" not in b"".join(p.read_bytes() for p in db.parent.glob("memory.db*"))


async def test_forgetting_takes_the_replies_of_other_sessions_that_tell_it(db: Path, embedder: HashEmbedder) -> None:
    model = ScriptedModel({"read": [reading(Luna=[("cat", "name", "Luna")], Porto=[("user", "lives in", "Porto")])]})
    async with Memory.open(db, recipe="graph", embedder=embedder, model=model, verifier=Agrees()) as memory:
        told = await memory.remember(
            [Said("My cat is called Luna."), Said("What a name!", Role.ASSISTANT)], session="a"
        )
        await memory.remember([Said("I live in Porto.")], session="a")
        later = [
            Said("What is my cat called?"), Said("Your cat is called Luna.", Role.ASSISTANT),
            Said("And where do I live?"), Said("You live in Porto, and lunar nights are bright.", Role.ASSISTANT),
        ]  # fmt: skip
        await memory.remember(later, session="b")
        await memory.drain()
        episode = next(r for r in told.records if r.startswith("e-"))
        receipt = await memory.forget(episode)
        assert receipt.bytes_found == 0
        assert [t.text for t in await memory.turns()] == [
            "What a name!", "I live in Porto.", "What is my cat called?", "And where do I live?",
            "You live in Porto, and lunar nights are bright.",
        ]  # fmt: skip
        assert b"Luna." not in b"".join(p.read_bytes() for p in db.parent.glob("memory.db*"))


async def test_what_the_user_says_elsewhere_is_left_in_replies(db: Path, embedder: HashEmbedder) -> None:
    async with Memory.open(db, recipe="graph", embedder=embedder) as memory:
        first = await memory.remember("I live in Porto.", session="a")
        await memory.remember(
            [Said("The trains of Porto are late."), Said("Porto is so.", Role.ASSISTANT)], session="b"
        )
        await memory.drain()
        await memory.forget(*first.records)
        assert [t.text for t in await memory.turns()] == ["The trains of Porto are late.", "Porto is so."]


async def test_common_words_of_what_is_forgotten_take_no_other_reply(db: Path, embedder: HashEmbedder) -> None:
    async with Memory.open(db, recipe="graph", embedder=embedder) as memory:
        told = await memory.remember("I have a dog. My favourite colour is blue.", session="a")
        tips = ["Go to a film about a dog contest.", "The sky is blue because short waves scatter."]
        await memory.remember([Said("Any tips?"), *(Said(t, Role.ASSISTANT) for t in tips)], session="b")
        await memory.drain()
        await memory.forget(*told.records)
        assert [t.text for t in await memory.turns()] == ["Any tips?", *tips]


async def test_a_fact_set_by_hand_leaves_the_replies_that_tell_it(memory: Memory, clock: FixedClock) -> None:
    fact = await memory.set("city", "Timbuktu")
    food = await memory.set("allergy", "walnuts")
    clock.forward(minutes=1)
    replies = ["You live in Timbuktu, as you told me.", "You should avoid walnuts.", "A walnut cake, walnuts on top."]
    await memory.remember([Said("Where do I live?"), *(Said(r, Role.ASSISTANT) for r in replies)], session="s")
    await memory.forget(fact.id, food.id)
    assert [t.text for t in await memory.turns()] == ["Where do I live?", replies[2]]


# --- what was noted of one message ---


async def test_undo_of_a_message_also_stops_what_is_still_to_be_noted(db: Path, embedder: HashEmbedder) -> None:
    homes = reading(Porto=[("user", "lives in", "Porto")], Moab=[("user", "lives in", "Moab")])
    model = ScriptedModel({"read": [homes]})
    async with Memory.open(db, recipe="graph", embedder=embedder, model=model, verifier=Agrees("x")) as memory:
        await memory.remember([Said("I live in Porto.")], session="s")
        (turn,) = (await memory.remember([Said("I live in Moab.")], session="s")).turns
        await memory.undo(turn.id)
        await memory.drain()
        assert [r.text for r in await memory.records(kinds=("claim", "note"))] == ["user lives in: Porto"]
        assert [t.text for t in await memory.turns()] == ["I live in Porto.", "I live in Moab."], "what was said stays"
        with pytest.raises(NotFound, match="t-none"):
            await memory.undo("t-none")


async def test_undo_of_a_message_leaves_other_messages_and_the_users_hand_alone(
    db: Path, embedder: HashEmbedder, clock: FixedClock
) -> None:
    read = reading(Moab=[("user", "lives in", "Moab")], tea=[("user", "likes", "tea")])
    model = ScriptedModel({"read": [read]})
    async with Memory.open(
        db, recipe="graph", embedder=embedder, clock=clock, model=model, verifier=Agrees("x")
    ) as memory:
        turns = []
        for text in ("I live in Moab.", "I like tea.", "I like tea."):
            turns += (await memory.remember([Said(text)], session="s")).turns
            await memory.drain()
            clock.forward(minutes=5)
        note_of_other = Note(
            id="n-other", provenance=Provenance((turns[1].id, turns[0].id), (), "conditional"), valid=Interval(clock.now()),
            recorded=Interval(clock.now()), context="", knowledge="The user likes tea.",
        )  # fmt: skip
        await memory.store.commit(memory.scope, Delta((Add(note_of_other),), "conditional"))
        home = next(r for r in await memory.records(kinds=("claim",)) if "Moab" in r.text)
        fixed = await memory.revise(home.id, "Provo")
        await memory.undo(turns[0].id)
        assert (await memory.record(fixed.id)).recorded.until is None, "the user's own word"
        assert (await memory.record("n-other")).recorded.until is None, "it is of another message"
        await memory.undo(turns[1].id)
        assert "tea" in str([r.text for r in await memory.records(kinds=("claim",))]), "it was told again since"
        await memory.undo(turns[2].id)
