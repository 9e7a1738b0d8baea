"""The commands that train and measure many sources, as a user gives them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from nyima.cli.main import app


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def nyima(*arguments: str | Path) -> Done:
    """A command in this process: the packages that train take long to load."""
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    return Done(done.exit_code, done.stdout, done.stderr)


def test_planning_and_retrieval_on_the_generated_set(tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    base = ("eval", "sources", "english", "--limit", "60", "--out", out)
    done = nyima(*base, "--row", "rules", "--row", "none", "--json")
    assert done.returncode == 0, done.stderr
    rows = {r["planner"]: r for r in json.loads(done.stdout)["rows"]}
    assert rows["rules"]["accuracy"] > rows["none"]["accuracy"]
    assert rows["none"]["decisions"]["NULL"]["planned"] == 60
    again = nyima(*base, "--row", "rules")
    assert "right" in again.stdout
    found = nyima("eval", "sources", "english", "--limit", "60", "--part", "retrieval", "--json")
    assert json.loads(found.stdout)["rows"][0]["persona: persona"]["n"] > 0
    for arguments, problem in (
        (("--part", "x"), "there is no part 'x'"),
        (("--row", "nobody"), "there is no trained model 'nobody'"),
        (("--part", "replies", "--row", "a: what=1"), "is no part of a set-up"),
        (("--part", "replies"), "needs a chat model"),
    ):
        wrong = nyima("eval", "sources", "english", "--limit", "10", *arguments)
        assert wrong.returncode != 0
        assert problem in wrong.stderr
    assert "give kbp, dulemon, english or jsonl" in nyima("eval", "sources", "atlantis").stderr
    assert "give the file or folder of kbp" in nyima("train", "nli", "kbp").stderr


def test_what_is_trained_can_be_measured(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra train is not installed")
    how = ("--limit", "80", "--epochs", "1", "--device", "cpu")
    root = tmp_path / "trained"
    done = nyima("train", "retriever", "english", *how, "--out", root / "retriever", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["examples"] > 0
    assert report["parameters"] > 100_000
    reader = nyima(
        "train",
        "reader",
        "english",
        *how,
        "--width",
        "32",
        "--layers",
        "1",
        "--labels",
        "bm25",
        "--out",
        root / "reader",
    )
    assert "saved to" in reader.stdout, reader.stderr
    planner = nyima(
        "train", "planner", "english", "--limit", "80", "--encoder", root / "retriever", "--out", root / "planner"
    )
    assert "profile+documents" in planner.stdout, planner.stderr
    rows = nyima(
        "eval", "sources", "english", "--limit", "12", "--part", "replies", "--trained", root, "--json",
        "--row", "whole: plan=reader retrieve=every judge=reader reader=reader k=2",
    )  # fmt: skip
    assert rows.returncode == 0, rows.stderr
    assert json.loads(rows.stdout)["rows"][0]["n"] == 12
    planned = nyima(
        "eval", "sources", "english", "--limit", "12", "--trained", root, "--row", "classifier", "--row", "reader"
    )
    assert planned.stdout.count("right") == 2, planned.stderr
    other = nyima("train", "reader", "english", *how, "--width", "64", "--layers", "1", "--out", root / "reader")
    assert "belongs to another model" in other.stderr
