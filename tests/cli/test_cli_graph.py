"""The commands of the graph, the services and the training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.test_cli import Cli, cli  # noqa: F401 - a fixture
from nyima.errors import ConfigError, InputError
from nyima.transfer.screenshots import read_image, said_in


@pytest.fixture
def told(cli: Cli) -> Cli:  # noqa: F811
    for text in (
        "I booked the EK349 flight for my boss",
        "The EK349 flight leaves at 01:40 on 12 May 2031",
        "The EK349 flight now leaves at 01:30 on 12 May 2031",
        "My dentist is at Rua do Sol 45, Lisbon",
        "My email is marta@example.pt",
    ):
        cli("remember", text)
    return cli


@pytest.mark.req("emg.graph")
def test_show_prints_a_tree_and_writes_files(told: Cli, tmp_path: Path) -> None:
    out = told("graph", "show", "boss").stdout
    assert out.startswith("user's boss")
    assert "EK349 flight" in out
    data = told.json("graph", "show")
    assert data["root"] == "user"
    assert {"head", "label", "tail", "note", "valid_from", "turns", "stale"} <= set(data["relations"][0])
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
    assert "01:40 on 12 May 2031" in html, "a click shows the history"
    assert "http" not in html.replace("http://www.w3.org/2000/svg", ""), "nothing comes from elsewhere"
    assert "nobody" in told("graph", "show", "nobody", code=3).output


def test_a_name_with_markup_stays_text(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    cli("graph", "relate", "user", "likes", "<script>alert(1)</script>", "--note", "</script><b>x</b>")
    path = tmp_path / "g.html"
    cli("graph", "show", "--html", str(path))
    html = path.read_text("utf-8")
    assert "<script>alert" not in html
    assert "</script><b>" not in html


def test_history_lists_every_value(told: Cli) -> None:
    data = told.json("graph", "history", "EK349 departs")
    assert [v["value"] for v in data["values"]] == ["2031-05-12 01:40", "2031-05-12 01:30"]
    assert data["values"][0]["valid_to"] == data["values"][1]["valid_from"]
    assert data["values"][1]["said"][0]["by"] == "User"
    assert "01:40" in told("graph", "history", "EK349 departs").stdout
    assert "nothing on" in told("graph", "history", "zebra", code=3).output


def test_relate_merge_retire_and_undo(cli: Cli) -> None:  # noqa: F811
    first = cli.json("graph", "relate", "user", "drives", "Skoda", "--until", "2031-01-01")["id"]
    cli("graph", "relate", "Ana", "lives_in", "Faro", "--rests-on", first)
    cli("graph", "relate", "Anna", "works_as", "baker")
    assert "same as" in cli("graph", "merge", "Ana", "Anna").stdout
    cli("undo")
    assert cli.json("graph", "retire", first)["retired"] == first
    relations = {r["tail"]: r for r in cli.json("graph", "show", "Ana")["relations"]}
    assert relations["Faro"]["stale"]
    assert cli("graph", "relate", "user", "is", "user", code=2).output


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
    cli("remember", "I live in Porto. My cat is called Momo.")
    sheet = tmp_path / "check.csv"
    assert cli.json("eval", "extracted", "--sheet", str(sheet), "--pairs", "0")["lines"] == 2
    text = sheet.read_text("utf-8")
    assert "The user's cat is called Momo." in text
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
    relations = {r["text"] for r in cli.json("memories", "--kind", "claim")["records"]}
    assert relations == {"The user lives in Porto.", "The user's cat is called Momo."}
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
