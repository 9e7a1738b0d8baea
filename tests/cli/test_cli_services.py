"""Forms, reminders and ways as lines, and the graph's edges."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from cli.test_cli import Cli, cli  # noqa: F401 - a fixture
from nyima import __version__
from nyima.cli.main import app

SOON = datetime.now(UTC).date() + timedelta(days=3)


@pytest.fixture
def told(cli: Cli) -> Cli:  # noqa: F811
    cli("graph", "state", "user", "email", "marta@example.pt")
    cli("graph", "state", "pharmacy by the flat", "address", "Rua Garrett 15, Lisbon")
    cli("graph", "state", "pharmacy by the office", "address", "Rua Castilho 39, Lisbon")
    cli("graph", "state", "user's dentist appointment", "takes place", f"{SOON} 09:00")
    cli("graph", "state", "user's passport", "expires", str(SOON + timedelta(days=1)))
    return cli


def form(tmp_path: Path, **fields: object) -> str:
    path = tmp_path / "form.json"
    path.write_text(json.dumps({"title": "Stay", "properties": fields, "required": ["iban"]}), "utf-8")
    return str(path)


def test_a_form_is_shown_with_what_each_value_rests_on(told: Cli, tmp_path: Path) -> None:
    file = form(tmp_path, email={"format": "email"}, iban={"title": "IBAN"}, nickname={})
    rows = [row.rstrip() for row in told("fill", file).stdout.splitlines()]
    assert rows[0].startswith("email" + " " * 20 + "marta@example.pt")
    assert rows[1].endswith("required, not known")
    assert rows[2] == "nickname"
    data = told.json("fill", file)
    assert data["form"] == "Stay"
    assert [f["required"] for f in data["fields"]] == [False, True, False]
    assert data["fields"][0]["evidence"]["id"] in {r["id"] for r in told.json("memories")["records"]}


@pytest.mark.parametrize("text", ["{", "[]", "<p>nothing</p>"])
def test_what_is_no_form_is_a_wrong_input(told: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "form").write_text(text)
    out = tmp_path / "out.json"
    told("fill", str(tmp_path / "form"), "--out", str(out), code=2)
    assert not out.exists()


def test_reminders_are_shown_with_their_times_and_written(told: Cli, tmp_path: Path) -> None:
    ics = tmp_path / "out.ics"
    dentist, passport, end = told("reminders", "--days", "7", "--ics", str(ics)).stdout.splitlines()
    assert " 09:00" in dentist
    assert "Dentist appointment  " in dentist
    assert "Passport expires  " in passport
    assert ":" not in passport, "a day has no time"
    assert end == f"2 in the next 7 days, written to {ics}"
    assert ics.read_bytes().count(b"BEGIN:VEVENT") == 2
    rows = told.json("reminders", "--days", "7")["reminders"]
    assert [rows[1][end] for end in ("start", "end")] == [str(SOON + timedelta(days=n)) for n in (1, 2)]


@pytest.mark.parametrize("days", ["0", "-3", "3661"])
def test_days_that_cannot_be_looked_ahead(told: Cli, days: str) -> None:
    assert "give 1 to 3660" in told("reminders", "--days", days, code=2).output


def test_two_places_that_fit_are_both_told(told: Cli) -> None:
    lines = told("travel", "the pharmacy").stdout.splitlines()
    assert lines[0] == "Which one?"
    assert {line.partition(": ")[2] for line in lines[1:]} == {"Rua Garrett 15, Lisbon", "Rua Castilho 39, Lisbon"}
    data = told.json("travel", "the pharmacy")
    assert (data["place"], len(data["choices"])) == (None, 2)
    assert "say where to" in told("travel", " ", code=2).output


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("show", "nobody"), 3, "nobody"),
        (("show", "--depth", "0"), 2, "--depth"),
        (("show", "--depth", "6"), 2, "--depth"),
        (("history", "zebra"), 3, "nothing on"),
        (("state", "user", "", "x"), 2, ""),
        (("state", "user", "likes", " "), 2, ""),
        (("state", "user", "likes", "tea", "--until", "soon"), 2, "is no date"),
        (("state", "user", "likes", "tea", "--depends-on", "r-none"), 3, "there is no record 'r-none'"),
        (("merge", "user", "nobody"), 3, "nobody"),
        (("retire", "r-none"), 3, "there is no record 'r-none'"),
    ],
)
def test_what_the_graph_has_not_changes_nothing(told: Cli, arguments: tuple[str, ...], code: int, words: str) -> None:
    before = told("export").stdout
    assert words in told("graph", *arguments, code=code).output
    assert told("export").stdout == before


def test_the_last_day_ends_in_the_users_zone(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    (tmp_path / "config.toml").write_text('zone = "Pacific/Kiritimati"\n')
    monkeypatch.setenv("NYIMA_CONFIG", str(tmp_path / "config.toml"))
    cli("graph", "state", "user", "drives", "Skoda", "--until", "2031-12-31")
    (relation,) = cli.json("memories", "--kind", "claim")["records"]
    end = datetime.fromisoformat(relation["valid_to"]).astimezone(ZoneInfo("Pacific/Kiritimati"))
    assert f"{end:%Y-%m-%d %H:%M}" == "2031-12-31 23:59"


def test_the_version_and_the_help(cli: Cli) -> None:  # noqa: F811
    version = cli.runner.invoke(app, ["--version"])
    assert (version.stdout, version.exit_code) == (f"nyima {__version__}\n", 0)
    for arguments in ([], ["docs"], ["graph"], ["keys"], ["models"], ["config"]):
        shown = cli.runner.invoke(app, arguments)
        assert shown.exit_code == 2
        assert "Usage" in shown.output
    assert cli.runner.invoke(app, ["-h"]).exit_code == 0
