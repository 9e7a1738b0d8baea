"""Write quality: what the figures see, on memories whose faults are known."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from made import claim
from nyima.domain.conversation import Role
from nyima.domain.records import Claim
from nyima.errors import InputError, ModelError, ModelUnreachable
from nyima.memory import Said
from nyima.testing import HashEmbedder, ScriptedModel
from nyima.testing.contract import T0, note
from nyima.testing.doubles import Request
from nyima_lab.measure.cases import Case, Gold
from nyima_lab.measure.quality import gate_quality, memory_quality
from nyima_lab.measure.streams import change_quality, make_stream, stream_rates


def talk(name: str) -> Case:
    said = [
        ("I bake rye bread.", Role.USER), ("I own two sail boats.", Role.ASSISTANT), ("What is the capital of Peru?", Role.USER),
        ("Lima.", Role.ASSISTANT), ("My parrot Coco is four.", Role.USER), ("Sweet.", Role.ASSISTANT),
    ]  # fmt: skip
    turns = tuple(Said(text, role, T0, id=f"1:{i}") for i, (text, role) in enumerate(said))
    gold = (
        Gold("I bake rye bread.", Role.USER, "1", "1:0"),
        Gold("I own two sail boats.", Role.ASSISTANT, "1", "1:1"),
        Gold("My parrot Coco is four.", Role.USER, "1", "1:4"),
    )
    return Case(name, (("1", turns),), (), "en", gold)


def fact(key: str, value: str) -> Claim:
    return claim(f"f-{key}-{value}", key, value, turns=("t",))


def always(request: Request) -> str:
    numbers = re.findall(r"^Message (\d+): ", request.last, re.MULTILINE)
    return json.dumps({"turns": [{"n": int(n), "remember": True} for n in numbers]})


async def test_gates_against_labels_with_the_cheap_ones_beside() -> None:
    note = '{"context": "", "knowledge": "The user said it.", "facts": {}}'
    model = ScriptedModel({"read": [always], "note": [note]})
    rows = await gate_quality([talk("a"), talk("b")], [talk("c"), talk("d")], model, HashEmbedder())
    found = {r["gate"]: r for r in rows}
    assert (found["all"]["precision"], found["all"]["recall"]) == (pytest.approx(2 / 3), 1.0)
    assert found["rule"]["f1"] == 1.0
    assert found["logistic"]["f1"] == 1.0
    assert found["model (scripted)"]["precision"] == pytest.approx(2 / 3)
    assert found["shipped (scripted)"]["f1"] == 1.0  # the rule corrects the model's word
    assert found["all"]["turns"] == 6
    assert found["all"]["low"] <= found["all"]["f1"] <= found["all"]["high"]
    with pytest.raises(InputError, match="no labels"):
        await gate_quality([Case("x", talk("x").sessions)], [], None, None)


@pytest.mark.req("rsum.memory-quality", "rsum.fact-errors")
async def test_the_running_memory_is_held_against_gold_and_its_errors_are_listed() -> None:
    fold = "The user bakes rye bread. The user owns two sail boats. The user owns a castle in Spain."
    model = ScriptedModel({"fold": [json.dumps({"text": fold})]})
    report = await memory_quality([talk("a")], "recursive", model, None)
    (row,) = report["rows"]
    assert row["records"] == "summary"
    assert row["precision"]["mean"] == pytest.approx(0.5)  # the castle never enters: no turn supports it
    assert row["recall"]["mean"] == pytest.approx(0.5)
    assert row["wrong speaker"]["mean"] == pytest.approx(0.5)
    wrong = [e for e in report["errors"] if e["error"] == "wrong relationship"]
    assert [(e["text"], e["turn"]) for e in wrong] == [("The user owns two sail boats.", "I own two sail boats.")]
    missing = [e for e in report["errors"] if e["error"] == "missing"]
    assert [(e["text"], e["turn"]) for e in missing] == [("My parrot Coco is four.", "My parrot Coco is four.")]
    assert report["counts"] == {"fabricated": 0, "wrong relationship": 1, "missing": 1}


async def test_junk_and_duplicates_of_notes() -> None:
    same = '{"context": "", "knowledge": "The user bakes rye bread.", "facts": {}}'
    model = ScriptedModel({"read": [always], "note": [same]})
    report = await memory_quality([talk("a")], "no-selection", model, HashEmbedder())
    (row,) = report["rows"]
    assert row["records"] == "note"
    assert row["junk"]["mean"] == pytest.approx(1 / 3)
    assert row["duplicates"]["mean"] == 0.0  # what the turn does not support was replaced by its own words


def test_a_stream_is_repeatable_and_its_truth_is_in_its_words() -> None:
    one, again, other = make_stream(5), make_stream(5), make_stream(6)
    assert one == again
    assert one != other
    said = " ".join(t.text for _, turns in one.case.sessions for t in turns if t.role is Role.USER)
    assert all(v in said for v in (*one.live, *one.gone, *one.days))
    assert not set(one.live) & set(one.gone)
    assert not set(one.others) & {*one.live, *one.gone}
    assert len(one.case.sessions) == 4


def truthful(request: Request) -> str:
    """Finds the facts of the stream's sentences, and what is over, as a good model would."""
    turns: list[dict[str, object]] = []
    known = re.findall(r"\((\d+)\) user ([^:]+): ", request.last.partition("Known: ")[2].partition("Message 1")[0])
    for line in request.last.splitlines():
        number, _, text = line.removeprefix("Message ").partition(": ")
        if not line.startswith("Message "):
            continue
        found: dict[str, str] = {}
        for key, mark in (
            ("city", "live in"),
            ("job", "work as a"),
            ("cat_name", "cat is called"),
            ("car", "drive a"),
            ("favourite_drink", "drink is"),
            ("partner_name", "partner's name is"),
            ("partner_name", "partner is called"),
        ):
            if mark in text and "friend" not in text:
                found[key] = text.split(mark)[1].split()[0].strip(".,")
        over = [int(n) for n, what in known if what.replace(" ", "_") in found]
        turns.append({"n": int(number), "remember": bool(found), "facts": found, "outdated": over})
    return json.dumps({"turns": turns})


def careful(request: Request) -> str:
    """Finds over what a new statement gives another value of."""
    known, new = (re.findall(r"\((\d+)\) ([^:(]+): ", part) for part in request.last.split("Known: ")[1].split("New: "))
    over = [int(n) for n, what in known if what in {w for _, w in new}]
    return json.dumps({"over": over, "said": [int(n) for n, _ in new]})


async def test_rates_of_a_good_and_of_a_careless_memory() -> None:
    hosted = ScriptedModel({"read": [truthful], "look": [careful]}, window=32_000)
    good = await change_quality([1, 2], "profile", hosted, None)
    rates = {k: v["mean"] for k, v in good["rates"].items()}
    assert rates["known"] == 1.0
    assert rates["stale still live"] == 0.0
    assert rates["wrongly retired"] == 0.0
    assert rates["wrong speaker"] == 0.0

    stream = make_stream(1)
    kept = [fact(f"key_{i}", v) for i, v in enumerate((*stream.live, stream.gone[0]))]
    careless = [*kept[1:], fact("occupation", stream.others[0]), note("a", "We fly on 3 July.")]
    bad = stream_rates(stream, [*careless, fact("x", stream.live[1]), fact("x", stream.live[1])], [*careless, *kept])
    assert bad["wrong speaker"] == pytest.approx(1 / 9)
    assert bad["wrongly retired"] == pytest.approx(1 / 6)
    assert bad["stale still live"] == pytest.approx(1 / 3)
    assert bad["wrong date"] == 1.0
    assert bad["duplicates"] == pytest.approx(0.1)
    empty = await change_quality([1], "profile", ScriptedModel({"read": ['{"remember": false, "facts": {}}']}), None)
    assert empty["rates"]["known"]["mean"] == 0.0


async def test_work_that_could_not_be_done_is_an_error_not_an_empty_memory(tmp_path: Path) -> None:
    broken = ScriptedModel({"read": [ModelUnreachable("gone")]})
    with pytest.raises(ModelError, match=r"jobs could not be done: gone"):
        await memory_quality([talk("a")], "conditional", broken, None)
