"""The commands of the graph, the services and the training."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from cli.test_cli import Cli, cli  # noqa: F401 - a fixture
from nyima.errors import ConfigError, InputError
from nyima.mechanisms.by_hand import Statement
from nyima.memory import Memory, Said
from nyima.transfer.screenshots import read_image, said_in


@pytest.fixture
def told(cli: Cli) -> Cli:  # noqa: F811
    cli("remember", "I booked the EK349 flight for my boss")
    cli("graph", "state", "user", "booked", "EK349 flight")
    cli("graph", "state", "EK349 flight", "for", "boss")
    first = cli.json("graph", "state", "EK349 flight", "departs", "2031-05-12 01:40")["id"]
    cli("graph", "state", "EK349 flight", "departs", "2031-05-12 01:30", "--replaces", first)
    cli("graph", "state", "dentist", "address", "Rua do Sol 45, Lisbon")
    cli("graph", "state", "user", "email", "marta@example.pt")
    return cli


@pytest.mark.req("emg.graph")
def test_show_prints_a_tree_and_writes_files(told: Cli, tmp_path: Path) -> None:
    out = told("graph", "show", "boss").stdout
    assert out.startswith("boss")
    assert "EK349 flight" in out
    data = told.json("graph", "show")
    assert data["root"] == "user"
    assert {"subject", "attribute", "value", "status", "valid_from", "turns", "label"} <= set(data["claims"][0])
    files = [tmp_path / name for name in ("g.dot", "g.svg", "g.html")]
    told(
        "graph",
        "show",
        "boss",
        "--depth",
        "3",
        "--all",
        "--dot",
        str(files[0]),
        "--svg",
        str(files[1]),
        "--html",
        str(files[2]),
    )
    dot, svg, html = (f.read_text("utf-8") for f in files)
    assert dot.startswith("digraph memory {")
    assert "EK349 flight" in dot
    assert svg.startswith("<svg")
    assert "stroke-dasharray" in svg, "what is over is dashed"
    assert "2031-05-12 01:40" in html, "a click shows the history"
    assert "http" not in html.replace("http://www.w3.org/2000/svg", ""), "nothing comes from elsewhere"
    assert "nobody" in told("graph", "show", "nobody", code=3).output


def test_a_name_with_markup_stays_text(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    cli("graph", "state", "user", "likes", "</script><b>x</b><script>alert(1)</script>")
    path = tmp_path / "g.html"
    cli("graph", "show", "--html", str(path))
    html = path.read_text("utf-8")
    assert "<script>alert" not in html
    assert "</script><b>" not in html


def test_history_lists_every_value(told: Cli) -> None:
    data = told.json("graph", "history", "EK349 departs")
    assert [v["value"] for v in data["values"]] == ["2031-05-12 01:40", "2031-05-12 01:30"]
    assert data["values"][0]["valid_to"] == data["values"][1]["valid_from"]
    assert "01:40" in told("graph", "history", "EK349 departs").stdout
    assert "nothing on" in told("graph", "history", "zebra", code=3).output


def test_state_merge_retire_and_undo(cli: Cli) -> None:  # noqa: F811
    first = cli.json("graph", "state", "user", "drives", "Skoda", "--until", "2031-01-01")["id"]
    cli("graph", "state", "Ana", "lives in", "Faro", "--depends-on", first)
    cli("graph", "state", "Anna", "works as", "baker")
    assert "same as" in cli("graph", "merge", "Ana", "Anna").stdout
    cli("undo")
    assert cli.json("graph", "retire", first)["retired"] == first
    claims = {c["value"]: c for c in cli.json("graph", "show", "Ana")["claims"]}
    assert claims["Faro"]["label"] == "uncertain"
    assert cli("graph", "state", "user", "is", "user", code=2).output


def test_claims_are_listed_with_their_words_and_confirmed(cli: Cli) -> None:  # noqa: F811
    home = cli.json("graph", "state", "user", "lives in", "Porto")["id"]
    cli("graph", "state", "sister Ana", "lives in", "Faro", "--depends-on", home)
    cli("graph", "state", "user", "lives in", "Braga", "--replaces", home)
    data = cli.json("claims", "--all")
    assert data["unread"] == 0
    keys = {
        "id",
        "subject",
        "attribute",
        "value",
        "status",
        "quote",
        "turns",
        "valid_from",
        "valid_to",
        "superseded_by",
    }
    assert keys <= set(data["claims"][0])
    by_value = {c["value"]: c for c in data["claims"] if c["retired"] is None}
    assert set(by_value) == {"Braga", "Faro"}
    closed = next(c for c in data["claims"] if c["id"] == home)
    assert closed["superseded_by"] == by_value["Braga"]["id"]
    assert [c["value"] for c in cli.json("claims", "--about", "Ana")["claims"]] == ["Faro"]
    assert "sister Ana lives in: Faro (uncertain)" in cli("claims").stdout
    assert "lives in             Braga" in cli("profile").stdout
    assert "before: Porto" in cli("profile").stdout
    cli("confirm", by_value["Faro"]["id"])
    assert "uncertain" not in cli("claims").stdout
    assert "nothing waits" in cli("confirm").stdout


@pytest.mark.req("emg.forms", "emg.reminders", "emg.travel")
def test_the_services(told: Cli, tmp_path: Path) -> None:
    form = tmp_path / "form.json"
    form.write_text(
        json.dumps({"properties": {"email": {"format": "email"}, "iban": {"title": "IBAN"}}, "required": ["iban"]}),
        "utf-8",
    )
    out = tmp_path / "out.json"
    rows = told.json("fill", str(form), "--out", str(out))["fields"]
    assert [r["value"] for r in rows] == ["marta@example.pt", None]
    assert json.loads(out.read_text("utf-8")) == {"email": "marta@example.pt"}
    assert "required, not known" in told("fill", str(form)).stdout
    form.write_bytes(b"\xff\xfe\x00")
    assert "no text" in told("fill", str(form), code=2).output
    assert told.json("reminders", "--days", "14")["reminders"] == []
    ics = tmp_path / "out.ics"
    found = told.json("reminders", "--days", "3000", "--ics", str(ics))["reminders"]
    assert [r["title"] for r in found] == ["EK349 flight departs"]
    assert ics.read_bytes().startswith(b"BEGIN:VCALENDAR")
    assert "EK349" in told("reminders", "--days", "3000").stdout
    assert told.json("travel", "my dentist")["place"]["address"] == "Rua do Sol 45, Lisbon"
    assert "openstreetmap" in told("travel", "my dentist").stdout
    assert "no address" in told("travel", "the airport").stdout


def test_training_says_what_it_needs(told: Cli) -> None:
    assert "nothing to take back" in told("train", "policy", "--undo", code=3).output
    assert "quote or model" in told("train", "policy", "--answers", "x", code=2).output
    classes = told.json("train", "classes", "--epochs", "50")
    assert classes["classes"]["EK349 flight"]
    assert "entities" in told("train", "classes", "--epochs", "5").stdout


def test_the_evaluations_run(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    judged = Path(__file__).parents[1] / "judged"
    small = tmp_path / "cases.jsonl"
    small.write_text("\n".join((judged / "cascades_own.jsonl").read_text("utf-8").split("\n")[:2]), "utf-8")
    data = cli.json("eval", "cascades", str(small), "--by-hand", "--out", str(tmp_path / "r.json"))
    assert data["shares"]["all"]["cases"] == 2
    assert (tmp_path / "r.json").exists()
    assert "handled" not in cli("eval", "cascades", str(small)).stdout
    places = tmp_path / "places.jsonl"
    places.write_text((judged / "travel.jsonl").read_text("utf-8").split("\n")[0], "utf-8")
    assert cli.json("eval", "services", "travel", str(places), "--by-hand")["exact"] == 1.0
    assert "give one of" in cli("eval", "selection", code=2).output


@pytest.mark.req("emg.data-quality")
def test_people_say_whether_what_was_extracted_is_right(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    async def told() -> None:
        async with Memory.open(cli.db, embedder="none") as memory:
            turn = (await memory.remember([Said("I live in Porto. My cat is called Momo.")])).turns[0].id
            await memory.state(Statement("user", "lives in", "Porto", turn=turn))
            await memory.state(Statement("cat", "name", "Momo", turn=turn))

    asyncio.run(told())
    sheet = tmp_path / "check.csv"
    assert cli.json("eval", "extracted", "--sheet", str(sheet), "--pairs", "0")["lines"] == 2
    text = sheet.read_text("utf-8")
    assert "cat name: Momo" in text
    assert "write yes or no" in cli("eval", "extracted", "--filled", str(sheet), code=2).output
    first, *rows = text.splitlines()
    sheet.write_text("\n".join((first, rows[0] + "yes", rows[1] + "No")), "utf-8")
    report = cli.json("eval", "extracted", "--filled", str(sheet))
    assert (report["memory"]["right"], report["memory"]["n"]) == (0.5, 2)
    sheet.write_text("a,b\n1,2\n", "utf-8")
    assert "its columns must be" in cli("eval", "extracted", "--filled", str(sheet), code=2).output
    assert "give --model" in cli("eval", "extracted", code=2).output


@pytest.mark.req("emg.collect", "emg.passive")
def test_a_text_file_is_remembered_by_its_paragraphs(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    notes = tmp_path / "notes.txt"
    notes.write_text("I live in Porto.\n\nMy cat is called\nMomo.\n", "utf-8")
    assert len(cli.json("remember", "--file", str(notes))["records"]) == 4
    assert cli.json("profile")["unread"] == 2, "each paragraph waits for a model"
    for name, data, words in (
        ("empty.txt", b" \n\n", "empty"),
        ("binary.txt", b"\xff\x00", "UTF-8"),
        ("none.txt", None, "cannot be read"),
    ):
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        assert words in cli("remember", "--file", str(path), code=2).output
    assert "give one of" in cli("remember", code=2).output
    assert "give one of" in cli("remember", "x", "--file", str(notes), code=2).output


@pytest.mark.req("emg.screenshots")
def test_an_image_that_is_no_image_is_explained(tmp_path: Path) -> None:
    pytest.importorskip("rapidocr")
    for name, data in (("a.png", b"no picture"), ("b.png", b"\x89PNG\r\n\x1a\nxxxx")):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(InputError, match="picture"):
            read_image(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_image(tmp_path / "gone.png")


def test_without_the_package_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(ConfigError, match="pip install"):
        said_in(None, None, tmp_path / "x.png")
