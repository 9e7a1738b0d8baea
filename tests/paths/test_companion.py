"""The whole loop with a scripted model: what a user would see."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nyima import Assistant
from nyima.domain.conversation import Role
from nyima.domain.records import Episode, Note, Summary
from nyima.errors import BudgetSpent, EmbedderMismatch, ModelUnreachable
from nyima.language.intent import is_goodbye
from nyima.language.words import sentences
from nyima.memory import Said
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from nyima.testing.doubles import Request
from support import NOTE, Agrees, answer, companion, reading

KAREN = answer("Nice to meet you, Karen!", remember=True, claims={"name": "Karen", "location": "Moab"})
CAT = answer("She sounds lovely.", remember=True, claims={"cat_name": "Nyima", "cat_breed": "orange tabby"})
FOLD = '{"text": "The user is Karen. The user lives in Moab. The cat is called Nyima, an orange tabby."}'


def script(*chat: str, **jobs: list[str]) -> ScriptedModel:
    lanes: dict[str, list[str]] = {"chat": list(chat), "note": [NOTE], "fold": [FOLD], "summary": [FOLD], **jobs}
    return ScriptedModel(lanes)  # type: ignore[arg-type]


async def first_day(db: Path, model: ScriptedModel, clock: FixedClock, recipe: str | None = None) -> None:
    async with companion(db, model, recipe=recipe, clock=clock) as nyima:
        await nyima.reply("I'm Karen, I live in Moab.")
        clock.forward(minutes=1)
        await nyima.reply("My cat is Nyima, an orange tabby.")
        await nyima.end_session()
        await nyima.drain()


@pytest.mark.req("prof.system", "prof.merge", "prof.extract")
async def test_somebody_who_comes_back_is_known(db: Path, clock: FixedClock) -> None:
    await first_day(db, script(KAREN, CAT), clock)
    clock.forward(days=1)
    model = script(answer("Hi Karen! How is Nyima today?"))
    async with companion(db, model, clock=clock) as nyima:
        hello = "".join([piece async for piece in nyima.greet()])
        assert hello == "Hi Karen! How is Nyima today?"
        system = model.requests[0].system
        for known in ("name: Karen", "location: Moab", "cat name: Nyima", "cat breed: orange tabby"):
            assert known in system
        await nyima.reply("She is fine!")
        assert model.requests[1].system == system
        assert (await nyima.memory.profile()).as_dict() == {
            "name": "Karen",
            "location": "Moab",
            "cat name": "Nyima",
            "cat breed": "orange tabby",
        }


@pytest.mark.req("prof.hello")
async def test_a_stranger_is_asked_for_their_name(db: Path) -> None:
    model = script(answer("Hi"))
    async with companion(db, model) as nyima:
        hello = "".join([piece async for piece in nyima.greet()])
        assert hello.endswith("What should I call you?")
        assert model.requests == []
        await nyima.reply("Karen")
        assert hello in model.requests[0].messages[1].content


@pytest.mark.req("cond.gate")
async def test_the_decision_comes_with_the_reply_in_one_call(db: Path) -> None:
    model = script(answer("Paris."), answer("Noted!", remember=True))
    async with companion(db, model, recipe="conditional") as nyima:
        stream = nyima.stream("What is the capital of France?")
        shown = [piece async for piece in stream]
        assert "".join(shown) == "Paris."
        assert stream.answer.usage.calls == len(model.requests) == 1
        assert not stream.answer.notes.remember
        assert [j.kind for j in await nyima.memory.store.jobs(nyima.memory.scope, ("queued",))] == []
        noted = await nyima.reply("That list was too long, two points are enough.")
        assert noted.notes.remember
        assert [(j.kind, j.state) for j in await nyima.memory.store.jobs(nyima.memory.scope, ("queued",))] == [
            ("note", "queued")
        ]


@pytest.mark.req("cond.record")
async def test_a_kept_turn_becomes_context_and_knowledge(db: Path) -> None:
    made = '{"context": "The user was asked about a dessert.", "knowledge": "The user is allergic to walnuts.", "facts": {}}'
    model = script(answer("A dessert with nuts?"), answer("Understood.", remember=True), note=[made])
    async with companion(db, model, recipe="conditional") as nyima:
        await nyima.reply("What about a dessert?")
        await nyima.reply("I'm allergic to walnuts.")
        await nyima.drain()
        (note,) = await nyima.memory.records(kinds=("note",))
        assert isinstance(note, Note)
        assert (note.context, note.knowledge) == (
            "The user was asked about a dessert.",
            "The user is allergic to walnuts.",
        )
        assert note.provenance.prompt.startswith("note@")
        assert note.provenance.model == "scripted"
        asked = model.asked("note")[0].last
        assert "What about a dessert?" in asked
        assert "dessert with nuts" in asked
        assert "Context:" not in note.text


async def test_what_a_note_invents_is_replaced_by_the_users_words(db: Path) -> None:
    made = '{"context": "In Leeds.", "knowledge": "The user has a dog called Max.", "facts": {"dog_name": "Max"}}'
    model = script(answer("Understood.", remember=True), note=[made])
    async with companion(db, model) as nyima:
        await nyima.reply("I'm allergic to walnuts.")
        await nyima.end_session()
        await nyima.drain()
        (note,) = await nyima.memory.records(kinds=("note",))
        assert note.text == "I'm allergic to walnuts."
        assert (await nyima.memory.profile()).as_dict() == {}
        calls = await nyima.memory.store.events(nyima.memory.scope, "call")
        assert "fallback" in {e.body["outcome"] for e in calls}


@pytest.mark.req("cond.history")
async def test_history_keeps_every_utterance_without_a_model(db: Path, embedder: HashEmbedder) -> None:
    async with Assistant.open(db, model=script("plain reply"), recipe="history", embedder=embedder, tools=()) as nyima:
        await nyima.reply("one")
        await nyima.reply("two")
        await nyima.end_session()
        done = await nyima.drain()
        assert done["done"] == 0
        episodes = await nyima.memory.records(kinds=("episode",))
        assert [e.text for e in sorted(episodes, key=lambda e: e.position)] == [  # type: ignore[union-attr]
            "User: one", "Assistant: plain reply", "User: two", "Assistant: plain reply",
        ]  # fmt: skip


@pytest.mark.req("cond.summary")
async def test_each_session_gets_one_summary(db: Path, clock: FixedClock) -> None:
    model = script("ok", summary=['{"text": "They spoke about tea."}', '{"text": "They spoke about coffee."}'])
    async with companion(db, model, recipe="summary", clock=clock) as nyima:
        await nyima.reply("We spoke about tea")
        clock.forward(hours=3)
        await nyima.reply("We spoke about coffee")
        await nyima.drain()
        clock.forward(minutes=1)
        await nyima.end_session()
        await nyima.drain()
        summaries = await nyima.memory.records(kinds=("summary",))
        assert [s.text for s in summaries] == ["They spoke about tea.", "They spoke about coffee."]
        assert {s.level for s in summaries if isinstance(s, Summary)} == {"session"}


@pytest.mark.req("cond.multiview")
async def test_several_kinds_are_used_together(db: Path, clock: FixedClock) -> None:
    made = '{"context": "", "knowledge": "The user likes green tea.", "facts": {}}'
    model = script(
        answer("Noted.", remember=True), summary=['{"text": "The user likes green tea at noon."}'], note=[made]
    )
    async with companion(db, model, recipe="multi-view", clock=clock) as nyima:
        await nyima.reply("I like green tea at noon.")
        await nyima.end_session()
        await nyima.drain()
        clock.forward(days=1)
        answered = await nyima.reply("green tea at noon?")
        assert {e.source for e in answered.recall.found} == {"history", "notes", "summary"}
        assert "[memory]" in model.asked("chat")[-1].last


@pytest.mark.req("cond.reflect")
async def test_reflection_searches_again_then_selects(db: Path, clock: FixedClock) -> None:
    reflect = [
        '{"enough": false, "useful": [], "keywords": ["walnuts"]}',
        '{"enough": true, "useful": [1], "keywords": []}',
    ]
    noted = [
        f'{{"context": "", "knowledge": "{t}", "facts": {{}}}}'
        for t in ("The user eats no walnuts.", "The user has a red bicycle.")
    ]
    model = script(
        answer("Noted.", remember=True), note=noted, reflect=['{"enough": true, "useful": [], "keywords": []}']
    )
    async with companion(db, model, recipe="reflection", clock=clock) as nyima:
        await nyima.reply("I eat no walnuts.")
        await nyima.reply("I have a red bicycle.")
        await nyima.drain()
        await nyima.end_session()
        model.requests.clear()
        model.script["reflect"] = list(reflect)
        answered = await nyima.reply("What about the bicycle?")
        assert answered.recall.rounds == 1
        assert answered.recall.keywords == ("walnuts",)
        assert len(answered.recall.kept) == 1
        assert any(p.startswith("reflect@") for p in answered.recall.prompts)
        assert len(model.asked("reflect")) == 2


@pytest.mark.req("cond.ablation")
@pytest.mark.parametrize(
    ("recipe", "context", "knowledge", "notes"),
    [
        ("conditional", "They talked.", "The user likes tea a lot.", 1),
        ("no-context", "", "The user likes tea a lot.", 1),
        ("no-knowledge", "They talked.", "", 1),
        ("no-selection", "They talked.", "The user likes tea a lot.", 2),
    ],
)
async def test_the_ablations_leave_a_part_out(db: Path, recipe: str, context: str, knowledge: str, notes: int) -> None:
    made = '{"context": "They talked.", "knowledge": "The user likes tea a lot.", "facts": {}}'
    model = script(answer("They talked.", remember=True), answer("ok"), note=[made])
    clock = FixedClock()
    async with companion(db, model, recipe=recipe, clock=clock) as nyima:
        await nyima.reply("They talked. I like tea a lot.")
        clock.forward(minutes=1)
        await nyima.reply("Why?")
        await nyima.drain()
        found = sorted(await nyima.memory.records(kinds=("note",)), key=lambda r: r.valid.since)
        assert len(found) == notes
        assert isinstance(found[0], Note)
        assert (found[0].context, found[0].knowledge) == (context, knowledge)


@pytest.mark.req("rsum.fold", "rsum.respond")
async def test_the_running_memory_is_folded_after_each_session(db: Path, clock: FixedClock) -> None:
    folds = ['{"text": "The user likes tea."}', '{"text": "The user likes tea. The user likes jazz."}']
    model = script("ok", fold=folds)
    async with companion(db, model, recipe="recursive", clock=clock) as nyima:
        await nyima.reply("I like tea")
        await nyima.end_session()
        await nyima.drain()
        clock.forward(minutes=1)
        await nyima.reply("I like jazz")
        assert "The user likes tea." in model.asked("chat")[-1].system
        await nyima.end_session()
        await nyima.drain()
        first, second = model.asked("fold")
        assert "Memory so far:\nnone" in first.last
        assert "Memory so far:\nThe user likes tea." in second.last
        (now,) = await nyima.memory.records(kinds=("summary",))
        assert now.text == "The user likes tea. The user likes jazz."
        every = await nyima.memory.records(kinds=("summary",), retired=True)
        assert [s.text for s in every] == ["The user likes tea.", now.text]


@pytest.mark.req("rsum.bound")
async def test_the_running_memory_never_exceeds_its_sentences(db: Path) -> None:
    said = " ".join(f"I own thing number {i}." for i in range(40))
    text = " ".join(f"The user owns thing number {i}." for i in range(40))
    model = script("ok", fold=[json.dumps({"text": text})])
    async with companion(db, model, recipe="recursive") as nyima:
        await nyima.reply(said)
        await nyima.end_session()
        await nyima.drain()
        (now,) = await nyima.memory.records(kinds=("summary",))
        assert len(sentences(now.text)) == 20


@pytest.mark.req("rsum.bound")
async def test_the_bound_holds_also_without_a_usable_answer(db: Path) -> None:
    model = script("ok", fold=["rubbish"])
    async with companion(db, model, recipe="recursive") as nyima:
        for i in range(30):
            await nyima.reply(f"My thing number {i} is a wooden chair from place {i}.")
        await nyima.end_session()
        await nyima.drain()
        (now,) = await nyima.memory.records(kinds=("summary",))
        assert 1 <= len(sentences(now.text)) <= 20
        assert "wooden chair" in now.text


@pytest.mark.req("rsum.current")
async def test_what_changed_replaces_the_old_sentence(db: Path, clock: FixedClock) -> None:
    def fold(request: Request) -> str:
        return (
            '{"text": "The user lives in Porto."}' if "Porto" in request.last else '{"text": "The user lives in Moab."}'
        )

    model = ScriptedModel({"chat": ["ok"], "fold": [fold]})
    async with companion(db, model, recipe="recursive", clock=clock) as nyima:
        for words in ("I live in Moab", "I moved to Porto"):
            await nyima.reply(words)
            await nyima.end_session()
            await nyima.drain()
            clock.forward(days=1)
        (now,) = await nyima.memory.records(kinds=("summary",))
        assert now.text == "The user lives in Porto."
        past = await nyima.memory.records(kinds=("summary",), as_of=clock.at.replace(day=2, hour=10))
        assert [s.text for s in past] == ["The user lives in Moab."]


@pytest.mark.req("rsum.two-models")
async def test_another_model_may_fold(db: Path) -> None:
    talker, writer = ScriptedModel({"chat": ["ok"]}, name="talker"), ScriptedModel({"fold": [FOLD]}, name="writer")
    async with companion(db, talker, recipe="recursive") as nyima:
        nyima.memory.parts = replace(nyima.memory.parts, writer_chat=writer)
        await nyima.reply("I'm Karen, I live in Moab. My cat is Nyima, an orange tabby.")
        await nyima.end_session()
        await nyima.drain()
        (now,) = await nyima.memory.records(kinds=("summary",))
        assert now.provenance.model == "writer"
        assert [r.lane for r in talker.requests] == ["chat"]
        assert [r.lane for r in writer.requests] == ["fold"]


@pytest.mark.req("rsum.context-only")
async def test_context_only_shows_the_past_and_cuts_the_oldest(db: Path, clock: FixedClock) -> None:
    model = script("ok")
    model.window = 1_200
    async with companion(db, model, recipe="context-only", clock=clock) as nyima:
        for i in range(12):
            await nyima.reply(f"line {i} " + "word " * 30)
            await nyima.end_session()
            clock.forward(days=1)
        shown = [m.content for m in model.requests[-1].messages]
        assert any("line 10 " in text for text in shown)
        assert not any("line 0 " in text for text in shown)
        assert "line 11 " in shown[-1]


@pytest.mark.req("rsum.bm25", "rsum.plus-retrieval")
@pytest.mark.parametrize(("recipe", "summary"), [("bm25", False), ("recursive+bm25", True)])
async def test_bm25_over_past_utterances(db: Path, clock: FixedClock, recipe: str, summary: bool) -> None:
    model = script("ok")
    async with companion(db, model, recipe=recipe, clock=clock) as nyima:
        for words in (
            "My walnut cake failed",
            "walnut walnut trees",
            "a walnut table",
            "old walnut shells",
            "I am Karen",
        ):
            await nyima.reply(words)
        await nyima.end_session()
        await nyima.drain()
        clock.forward(days=1)
        answered = await nyima.reply("walnut?")
        assert len(answered.recall.kept) == 3
        assert all("walnut" in e.text for e in answered.recall.kept)
        assert all(set(e.scores) == {"words"} for e in answered.recall.kept)
        assert ("Karen" in model.asked("chat")[-1].system) is summary


@pytest.mark.req("rsum.few-shot")
async def test_labelled_examples_stand_in_the_prompt(db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shots = tmp_path / "shots.jsonl"
    shots.write_text('{"memory": "likes jazz", "context": "User: what now?", "response": "Put on some jazz!"}\n')
    config = tmp_path / "config.toml"
    config.write_text(f"examples = {json.dumps(str(shots))}\n")
    monkeypatch.setenv("NYIMA_CONFIG", str(config))
    model = script("ok")
    async with companion(db, model, recipe="recursive") as nyima:
        await nyima.reply("hello")
    assert "Put on some jazz!" in model.requests[0].system
    assert "likes jazz" in model.requests[0].system


@pytest.mark.req("cond.dense", "cond.k")
@pytest.mark.parametrize(
    ("recipe", "kind", "k"), [("history", "history", 3), ("conditional", "notes", 3), ("summary", "summary", 1)]
)
async def test_the_papers_k_by_cosine(db: Path, clock: FixedClock, recipe: str, kind: str, k: int) -> None:
    def note(request: Request) -> str:
        said = request.last.rpartition("Message: ")[2]
        return json.dumps({"context": "", "knowledge": said, "facts": {}})

    def summary(request: Request) -> str:
        return json.dumps({"text": request.last.split("\n")[0].removeprefix("User: ")})

    model = ScriptedModel({"chat": [answer("ok", remember=True)], "note": [note], "summary": [summary]})
    async with companion(db, model, recipe=recipe, clock=clock) as nyima:
        for i in range(5):
            await nyima.reply(f"I like green tea {i}")
            await nyima.end_session()
            await nyima.drain()
            clock.forward(days=1)
        answered = await nyima.reply("green tea")
        assert [e.source for e in answered.recall.kept] == [kind] * k
        assert all(set(e.scores) == {"vector"} for e in answered.recall.kept)


@pytest.mark.req("cond.k")
async def test_k_can_be_set(db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.toml"
    config.write_text('k = ["history=2"]\n')
    monkeypatch.setenv("NYIMA_CONFIG", str(config))
    async with companion(db, script("ok"), recipe="history") as nyima:
        for i in range(4):
            await nyima.reply(f"green tea {i}")
        await nyima.end_session()
        assert len((await nyima.reply("green tea")).recall.kept) == 2


@pytest.mark.req("prof.goodbye")
async def test_a_goodbye_ends_the_session(db: Path) -> None:
    async with companion(db, script(KAREN, answer("Bye!"))) as nyima:
        await nyima.reply("I'm Karen, I live in Moab.")
        await nyima.reply("thanks, goodbye!")
        (session,) = await nyima.memory.sessions()
        assert session.ended is not None
        await nyima.drain()
        assert (await nyima.memory.profile()).get("name") == ("Karen",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("goodbye", True), ("Bye!", True), ("ok thanks, bye", True), ("See you tomorrow", True), ("tchau", True), ("再见", True),
        ("I said goodbye to my sister", False), ("bye-laws of the club", False), ("", False),
    ],
)  # fmt: skip
def test_what_a_goodbye_is(text: str, expected: bool) -> None:
    assert is_goodbye(text) is expected


@pytest.mark.req("prof.goodbye")
async def test_silence_ends_the_session(db: Path, clock: FixedClock) -> None:
    async with companion(db, script(KAREN), clock=clock) as nyima:
        await nyima.reply("I'm Karen, I live in Moab.")
        clock.forward(hours=2)
        await nyima.reply("Hello again")
        first, second = await nyima.memory.sessions()
        assert (first.ended is not None, second.ended) == (True, None)


@pytest.mark.req("prof.goodbye")
async def test_a_start_ends_what_fell_silent(db: Path, clock: FixedClock) -> None:
    async with companion(db, script(KAREN), clock=clock) as nyima:
        await nyima.reply("I'm Karen, I live in Moab.")
    clock.forward(days=1)
    async with companion(db, script(KAREN), clock=clock) as nyima:
        await nyima.drain()
        assert all(s.ended for s in await nyima.memory.sessions())
        assert (await nyima.memory.profile()).get("location") == ("Moab",)


@pytest.mark.req("prof.persona")
async def test_the_persona_comes_from_a_file(db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "susan.md").write_text("You are Susan, who speaks in rhymes.")
    config = tmp_path / "config.toml"
    config.write_text(f"persona = {json.dumps(str(tmp_path / 'susan.md'))}\n")
    monkeypatch.setenv("NYIMA_CONFIG", str(config))
    model = script(answer("ok"))
    async with companion(db, model) as nyima:
        await nyima.reply("Who are you?")
        found = await nyima.memory.recall("who speaks in rhymes")
        assert not [e for e in found.found if e.source == "persona"], "a persona is no memory of the user"
    assert model.requests[0].system.startswith("You are Susan, who speaks in rhymes.")


def double(number: str) -> str:
    """Double a number."""
    return str(2 * int(number))


@pytest.mark.req("prof.tasks")
async def test_tools_are_called_and_their_results_used(db: Path) -> None:
    model = script('{"call": "double", "input": {"number": "21"}}', answer("It is 42."))
    async with companion(db, model, tools=(double, "calculator", "clock")) as nyima:
        answered = await nyima.reply("What is twice 21?")
        assert answered.text == "It is 42."
        assert answered.usage.calls == 2
    assert "double: (number) Double a number." in model.requests[0].system
    assert "calculator: (expression)" in model.requests[0].system
    assert model.requests[1].last == "[tool result] 42"


@pytest.mark.req("prof.tasks")
@pytest.mark.parametrize(
    "wish",
    [
        '{"call": "nothing", "input": {}}',
        '{"call": "double", "input": {"number": "x"}}',
        '{"call": "double", "input": 3}',
    ],
)
async def test_a_tool_that_fails_is_told_to_the_model(db: Path, wish: str) -> None:
    model = script(wish, answer("Sorry."))
    async with companion(db, model, tools=(double,)) as nyima:
        assert (await nyima.reply("twice?")).text == "Sorry."
    assert "[tool result] " in model.requests[1].last


async def test_the_dialogue_prefix_stays_the_same(db: Path) -> None:
    model = script(KAREN, CAT, answer("ok"))
    async with companion(db, model) as nyima:
        for words in ("I'm Karen, I live in Moab.", "My cat is Nyima, an orange tabby.", "What else?"):
            await nyima.reply(words)
    first, second, third = (r.messages for r in model.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert json.loads(second[len(first)].content)["reply"] == "Nice to meet you, Karen!"


async def test_a_failing_model_loses_nothing_and_is_no_answer(db: Path) -> None:
    model = ScriptedModel({"chat": [ModelUnreachable("nobody answers: start the server")]})
    async with companion(db, model) as nyima:
        with pytest.raises(ModelUnreachable):
            await nyima.reply("I'm Karen, I live in Moab.")
        (turn,) = await nyima.memory.turns()
        assert turn.text == "I'm Karen, I live in Moab."
        jobs = await nyima.memory.store.jobs(nyima.memory.scope)
        assert [(j.kind, j.state) for j in jobs] == [("claims", "queued")]


@pytest.mark.parametrize("raw", ["{}", '{"reply": "Hel', "just words", '{"reply": "Hi"}', "\x00\x01"])
async def test_a_silly_model_breaks_nothing_and_the_turn_is_read_by_a_job(db: Path, raw: str) -> None:
    model = script(raw, read=[reading(Karen=[("user", "name", "Karen")])])
    async with companion(db, model) as nyima:
        answered = await nyima.reply("I'm Karen, I live in Moab.")
        assert "remember" not in answered.text
        assert not answered.notes.complete
        await nyima.end_session()
        done = await nyima.drain()
        assert done["parked"] == done["waiting"] == 0
        assert len(model.asked("read")) == 1
        assert (await nyima.memory.profile()).get("name") == ("Karen",)
        assert len(await nyima.memory.records(kinds=("note",))) == 1


async def test_a_private_chat_reads_and_never_writes(db: Path, clock: FixedClock) -> None:
    await first_day(db, script(KAREN, CAT), clock)
    before = {path.name: path.read_bytes() for path in db.parent.glob("memory.db*") if not path.name.endswith("-shm")}
    model = script(answer("You live in Moab.", remember=True, claims={"secret": "zebra"}))
    async with companion(db, model, clock=clock) as nyima:
        nyima.private = True
        await nyima.reply("Where do I live? My secret is zebra.")
        await nyima.reply("And again?")
        assert "location: Moab" in model.requests[0].system
        assert "Where do I live? My secret is zebra." in [m.content for m in model.requests[1].messages]
        await nyima.end_session()
        assert (await nyima.drain())["done"] == 0
    after = {path.name: path.read_bytes() for path in db.parent.glob("memory.db*") if not path.name.endswith("-shm")}
    assert b"zebra" not in b"".join(after.values())
    assert after["memory.db"] == before["memory.db"]


async def test_what_the_assistant_or_a_document_says_is_no_fact(db: Path) -> None:
    model = script(answer("You live in Moab."), read=[reading(Moab=[("user", "lives in", "Moab")])])
    async with companion(db, model) as nyima:
        said = [Said("You live in Moab.", Role.ASSISTANT), Said("I live in Moab.", Role.TOOL)]
        await nyima.memory.remember(said, session="x", owed=True)
        await nyima.memory.end_session("x")
        await nyima.drain()
        assert (await nyima.memory.profile()).claims == ()


async def test_an_episode_whose_fact_was_replaced_is_labelled(db: Path, clock: FixedClock) -> None:
    replies = [
        answer("ok", remember=True, claims={"location": "Moab"}),
        answer("ok", claims={"location": "Porto"}, outdated=[1]),
    ]
    async with companion(db, script(*replies), clock=clock, verifier=Agrees()) as nyima:
        await nyima.reply("I live in Moab.")
        await nyima.drain()
        clock.forward(minutes=1)
        await nyima.reply("Actually I moved to Porto.")
        await nyima.end_session()
        await nyima.drain()
        found = await nyima.memory.recall("live in Moab")
        old = next(e for e in found.kept if isinstance(e.record, Episode) and "Moab" in e.text)
        assert old.superseded is not None
        model = script(answer("Porto."))
        nyima.memory.parts = replace(nyima.memory.parts, chat=model)
        await nyima.reply("Where do I live, Moab?")
        assert "no longer true" in model.asked("chat")[0].last


@pytest.mark.req("prof.debug")
async def test_what_was_extracted_and_merged_can_be_seen(db: Path, clock: FixedClock) -> None:
    async with companion(db, script(KAREN), clock=clock) as nyima:
        answered = await nyima.reply("I'm Karen, I live in Moab.")
        assert [(c.what, c.value) for c in answered.notes.claims] == [("name", "Karen"), ("location", "Moab")]
        await nyima.end_session()
        await nyima.drain()
        rows = await nyima.memory.store.changes(nyima.memory.scope)
        claims = {c.id for c in await nyima.memory.claims()}
        assert [r.verb for r in rows if r.by == "claims" and r.id in claims] == ["add", "add"]


def test_the_same_object_blocks_with_sync(db: Path) -> None:
    model = script(KAREN, answer("Karen."))
    nyima = companion(db, model).sync
    assert str(nyima.reply("I'm Karen, I live in Moab.")) == "Nice to meet you, Karen!"
    assert "".join(nyima.stream("Who am I?")) == "Karen."
    assert nyima.memory.scope.user == "me"
    nyima.close()
    assert model.closed


async def test_another_embedder_is_refused_with_the_command_that_helps(db: Path) -> None:
    async with companion(db, script("ok"), recipe="history") as nyima:
        await nyima.reply("I like tea")
        await nyima.drain()
    other = HashEmbedder(name="other-8", size=8)
    async with Assistant.open(db, model=script("ok"), recipe="history", embedder=other, tools=()) as nyima:
        with pytest.raises(EmbedderMismatch, match="nyima reindex --vectors"):
            await nyima.memory.recall("tea")
        await nyima.memory.store.reindex(nyima.memory.scope, vectors=True)
        assert (await nyima.memory.recall("tea")).kept


async def test_a_spent_budget_stops_calls_and_keeps_the_turn(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: FixedClock
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("calls_per_day = 2\n")
    monkeypatch.setenv("NYIMA_CONFIG", str(config))
    model = script(answer("ok"))
    async with companion(db, model, clock=clock) as nyima:
        await nyima.reply("one")
        await nyima.reply("two")
        with pytest.raises(BudgetSpent, match="limit is 2"):
            await nyima.reply("three is kept")
        assert len(model.requests) == 2
        assert (await nyima.memory.turns())[-1].text == "three is kept"
        clock.forward(days=2)
        assert (await nyima.reply("four")).text == "ok"
