"""The reply and its notes are told apart while they stream."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.domain.evidence import Noted, Notes
from nyima.prompts.notes import ReplyStream, parse_claims, parse_facts, parse_numbers, render_notes, render_reply

CLAIMS = (Noted("cat", "name", "Nyima"), Noted("user", "lives in", "Moab", "planned"))
NOTES = Notes(True, CLAIMS, (2, 1), complete=True)


def of_user(*facts: tuple[str, str]) -> list[Noted]:
    return [Noted("user", what, value) for what, value in facts]


def run(text: str, cuts: list[int] | None = None) -> ReplyStream:
    stream = ReplyStream()
    edges = [0, *sorted({c % (len(text) + 1) for c in cuts or []}), len(text)]
    shown = "".join(stream.feed(text[a:b]) for a, b in itertools.pairwise(edges))
    shown += stream.finish()
    assert shown == stream.shown
    return stream


any_text = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=60)
cuts = st.lists(st.integers(0, 400), max_size=30)


@pytest.mark.req("prof.robust", "prof.extract")
@given(reply=any_text, cuts=cuts)
def test_json_never_leaks_whatever_the_cuts(reply: str, cuts: list[int]) -> None:
    stream = run(render_reply(reply, NOTES), cuts)
    assert stream.shown == reply
    assert stream.notes() == NOTES


@given(reply=any_text, cuts=cuts)
def test_escaped_json_is_decoded_whatever_the_cuts(reply: str, cuts: list[int]) -> None:
    text = json.dumps({"reply": reply, "remember": False, "facts": {}}, ensure_ascii=True)
    assert run(text, cuts).shown == reply


@given(reply=st.text('abc <>{}"\n.é猫', min_size=1, max_size=60), cuts=cuts)
def test_lines_never_leak_whatever_the_cuts(reply: str, cuts: list[int]) -> None:
    stream = run(render_notes("So: " + reply, NOTES), cuts)
    assert stream.shown.strip() == ("So: " + reply).strip()
    assert stream.notes() == NOTES


@given(reply=any_text, cuts=cuts, end=st.integers(1, 200))
def test_a_cut_off_answer_shows_a_beginning_of_the_reply(reply: str, cuts: list[int], end: int) -> None:
    whole = render_reply(reply, NOTES)
    stream = run(whole[:end], cuts)
    assert reply.startswith(stream.shown)
    if end < len(whole) - 1:
        assert not stream.notes().complete or stream.notes().remember


@given(text=any_text, cuts=cuts)
def test_cuts_never_change_what_is_shown(text: str, cuts: list[int]) -> None:
    assert run(text, cuts).shown == run(text).shown


@pytest.mark.req("prof.robust")
@pytest.mark.parametrize(
    ("raw", "shown", "facts"),
    [
        (
            '{"cats_name": "unknown"} That is nice! What is her name?',
            "That is nice! What is her name?",
            [],
        ),
        ('{"pet": {"name": "Nyima", "age": 11}} Lovely.', "Lovely.", [("pet name", "Nyima"), ("pet age", "11")]),
        ('```json\n{"city": "Moab"}\n```\nHi!', "Hi!", [("city", "Moab")]),
        ('Hi there! {"remember": true, "facts": {"a": "b"}}', "Hi there!", [("a", "b")]),
        ('Hi there!\n{"facts": {"a": "b"', "Hi there!", [("a", "b")]),
        ("Hi there!\n<notes>\nremember: yes\ncity: Moab", "Hi there!", [("city", "Moab")]),
        ("Hi there!\n<notes>\nremember: yes\nclaim: user | city | Moab | holds", "Hi there!", [("city", "Moab")]),
        ('Hi there!\n{"claims": [{"who": "user", "what": "city", "value": "Moab"', "Hi there!", [("city", "Moab")]),
        ("Hi there!\nRemember: no", "Hi there!", []),
        ('{"cats_name": "Ny', "", []),
        ('{"reply": "Hi", "remember": true, "facts": [{"key": "a", "value": "b"}]}', "Hi", [("a", "b")]),
        ('{"reply": "Hi", "remem', "Hi", []),
        ('{"a": 1}', '{"a": 1}', []),
        ("1 < 2 and <b>bold</b>", "1 < 2 and <b>bold</b>", []),
        ("", "", []),
    ],
)
def test_odd_answers(raw: str, shown: str, facts: list[tuple[str, str]]) -> None:
    stream = run(raw, list(range(len(raw))))
    assert stream.reply() == shown
    if facts:
        assert list(stream.notes().claims) == of_user(*facts)


def test_a_tool_call_is_never_shown() -> None:
    stream = run('{"call": "calculator", "input": {"expression": "2*3"}}', [3, 9, 15])
    assert stream.shown == ""
    assert stream.call() == ("calculator", {"expression": "2*3"})
    assert run("plain").call() is None


def test_facts_are_flattened_and_bounded() -> None:
    found = parse_facts({"a_b": ["x", "y"], "b": None, "c": True, "d": {"e": 1.5}, "f": "unknown"})
    assert list(found) == of_user(("a b", "x"), ("a b", "y"), ("d e", "1.5"))
    assert len(parse_facts({f"k{i}": "v" for i in range(50)})) == 12
    assert len(parse_facts({"k": "v" * 1000})[0].value) == 200
    assert parse_facts("nonsense") == ()


def tagged(text: str, cuts: list[int]) -> ReplyStream:
    stream = ReplyStream("nyima-notes")
    edges = [0, *sorted({c % (len(text) + 1) for c in cuts}), len(text)]
    shown = "".join(stream.feed(text[a:b]) for a, b in itertools.pairwise(edges))
    assert shown + stream.finish() == stream.shown
    return stream


own_words = st.sampled_from(
    ["Notes:\n", "\nremember: yes\n", "<notes>", '{"facts": {}}', "<nyima", "-note", "\n", "é猫", "a "]
)


@given(st.lists(own_words, max_size=12).map("".join), cuts)
def test_with_a_tag_of_its_own_a_reply_may_say_anything(reply: str, cuts: list[int]) -> None:
    reply = "So: " + reply.replace("<nyima-notes>", "")
    stream = tagged(f"{reply}\n<nyima-notes>\nremember: yes\ncity: Moab\n</nyima-notes>", cuts)
    assert stream.shown.rstrip("\n") == reply.rstrip("\n")
    assert stream.notes() == Notes(True, tuple(of_user(("city", "Moab"))), complete=True)
    assert stream.closed


@given(any_text, cuts)
def test_with_a_tag_a_reply_without_notes_is_whole(reply: str, cuts: list[int]) -> None:
    stream = tagged(reply, cuts)
    assert stream.shown == reply
    assert (stream.closed, stream.notes().complete) == (False, False)


facts_of = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@given(facts_of)
def test_facts_of_any_shape_are_few_and_short(data: object) -> None:
    found = parse_facts(data)
    assert len(found) <= 12
    assert len(set(found)) == len(found)
    assert all(c.who == "user" and c.what and len(c.value) <= 200 for c in found)


@given(facts_of)
def test_claims_of_any_shape_are_few_short_and_whole(data: object) -> None:
    found = parse_claims(data)
    assert len(found) <= 12
    assert len(set(found)) == len(found)
    assert all(c.who and c.what and c.value and c.status == "holds" for c in found)


@pytest.mark.req("prof.unknown")
@pytest.mark.parametrize(
    ("given", "found"),
    [
        (
            {"who": "sister", "what": "lives_in", "value": "Rome", "status": "planned"},
            ("sister", "lives in", "Rome", "planned"),
        ),
        ({"what": "job", "value": "nurse", "status": "PENDING"}, ("user", "job", "nurse", "holds")),
        (["user", "age", 41], ("user", "age", "41", "holds")),
        ({"who": "user", "what": "job"}, None),
        ({"who": "user", "what": "job", "value": "unknown"}, None),
        ({"who": ["a"], "what": "job", "value": "nurse"}, None),
        ("user has a cat", None),
    ],
)
def test_a_claim_may_be_written_badly(given: object, found: tuple[str, str, str, str] | None) -> None:
    assert parse_claims([given]) == ((Noted(*found),) if found else ())


@pytest.mark.parametrize(
    ("given", "numbers"),
    [([2, "1", 2], (2, 1)), ("(1) and 3", (1, 3)), ([True, None, {}], ()), ("none", ()), (None, ())],
)
def test_numbers_are_read_from_lists_and_texts(given: object, numbers: tuple[int, ...]) -> None:
    assert parse_numbers(given) == numbers


@pytest.mark.parametrize(
    ("remember", "kept", "complete"),
    [
        ("true", True, True),
        ("false", False, True),
        ('"yes"', True, True),
        ('" No "', False, True),
        ('"perhaps"', False, False),
        ("null", False, False),
        ("1", True, False),
    ],
)
def test_only_a_clear_yes_or_no_is_a_decision(remember: str, kept: bool, complete: bool) -> None:
    notes = run(f'{{"reply": "Hi", "remember": {remember}, "facts": {{}}}}').notes()
    assert (notes.remember, notes.complete) == (kept, complete)


def test_notes_inside_notes_are_no_notes() -> None:
    stream = run('{"reply": "Hi", "remember": true, "facts": ' + '{"a": ' * 3_000)
    assert stream.reply() == "Hi"
    assert not stream.notes().complete


@pytest.mark.parametrize(
    ("raw", "call"),
    [
        ('{"call": "clock"}', ("clock", {})),
        ('{"call": "clock", "input": null}', ("clock", {"input": None})),
        ('{"call": "look", "input": "tea"}', ("look", {"input": "tea"})),
        ('{"call": 5, "input": {}}', None),
        ('{"call": "look", "input": {"a": [1', ("look", {"a": [1]})),
    ],
)
def test_a_wish_for_a_tool_may_be_written_badly(raw: str, call: object) -> None:
    assert run(raw, list(range(len(raw)))).call() == call
