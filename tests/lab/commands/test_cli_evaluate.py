"""The evaluation commands as a user types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nyima.cli.main import app
from nyima.errors import InputError
from support import openai_server

TURNS = [{"role": "user", "text": "I own a parrot called Coco."}, {"role": "assistant", "text": "How nice!"}]
QUESTION = {"text": "What is my parrot called?", "answer": "Coco", "kind": "pets"}


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NYIMA_EMBEDDER", "none")
    monkeypatch.chdir(tmp_path)
    row = {"name": "ivy", "sessions": [{"turns": TURNS}], "questions": [QUESTION]}
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps({**row, "name": "bob"}) + "\n", "utf-8")
    return path


def invoke(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["eval", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_run_compare_sheet_and_agreement(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with openai_server(plan=["Coco"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        first = json.loads(
            invoke(
                "run", "learning-knowledge", "--data", str(cases), "--recipes", "none,bm25", "--judge", "none",
                "--price-prompt", "2", "--json", "--out", "runs/a",
            ).stdout
        )  # fmt: skip
        asked = len(server.requests)
        shown = invoke(
            "run",
            "learning-knowledge",
            "--data",
            str(cases),
            "--recipes",
            "none,bm25",
            "--judge",
            "none",
            "--out",
            "runs/a",
        )
        assert len(server.requests) == asked
    assert (first["questions"], first["cases"], first["metrics"]) == (2, 2, ["rouge1", "rouge2", "f1"])
    assert first["lines"][0]["scores"]["rouge1"]["mean"] == 1.0
    assert first["lines"][0]["cost"] > 0
    assert "report: runs/a/report.html" in shown.stdout
    assert "1.000" in shown.stdout
    assert "[1.00," in shown.stdout
    for name in ("report.html", "report.md", "report.json", "run.json"):
        assert (Path("runs/a") / name).exists()
    with openai_server(plan=["Rex"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        invoke(
            "run",
            "learning-knowledge",
            "--data",
            str(cases),
            "--recipes",
            "none,bm25",
            "--judge",
            "none",
            "--out",
            "runs/b",
        )
    report = json.loads(invoke("compare", "runs/a", "runs/b", "--json").stdout)
    assert [(r["recipe"], r["difference"]["wins"]) for r in report["rows"]] == [("none", 2), ("bm25", 2)]
    assert report["rows"][0]["changed"][0]["by"] == 1.0
    assert "2 won" in invoke("compare", "runs/a", "runs/b", "--recipes", "bm25,none", "--metric", "f1").stdout
    assert "give the folder of a finished run" in invoke("compare", "runs/a", "runs/none", code=2).output
    assert json.loads(invoke("sheet", "runs/a", "replies.csv", "--json").stdout)["rows"] == 4
    assert json.loads(invoke("sheet", str(cases), "sheet.csv", "--json").stdout)["rows"] == 2
    filled = Path("sheet.csv").read_text("utf-8-sig").replace(",,", ",yes,yes").replace(",\r\n", ",\r\n")
    Path("ann.csv").write_text(filled, "utf-8")
    assert json.loads(invoke("agreement", "ann.csv", "ann.csv").stdout)["qualified"]["mean"] == 1.0
    assert "give the filled sheets" in invoke("agreement", code=2).output


def test_a_run_without_out_goes_on_in_the_folder_that_it_began(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with openai_server(plan=['{"score": 2}']) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        arguments = ("run", "learning-knowledge", "--data", str(cases), "--recipes", "none", "--json")
        report = json.loads(invoke(*arguments, "--limit", "1").stdout)
        again = json.loads(invoke(*arguments, "--limit", "2").stdout)
    (folder,) = Path("runs").iterdir()
    assert folder.name.split("-", 3)[3].startswith("learning-knowledge-")
    assert (report["questions"], again["questions"]) == (1, 2)
    assert report["metrics"][0] == "score:fake-model"
    assert report["judge"]["n"] == 36


def test_other_data_persona_or_examples_begin_another_run(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nyima.app.environment import load_settings
    from nyima_lab.commands.evaluate_runs import fingerprint

    first = fingerprint(cases, load_settings())
    assert fingerprint(cases, load_settings()) == first
    Path("persona.md").write_text("You are brief.", "utf-8")
    Path("shots.jsonl").write_text("", "utf-8")
    Path("more.jsonl").write_text('{"memory": "a", "context": "b", "response": "c"}', "utf-8")
    seen = {first, fingerprint(cases, load_settings(persona="persona.md"))}
    seen.add(fingerprint(cases, load_settings(examples="more.jsonl")))
    seen.add(fingerprint(cases, load_settings(k="history=5")))
    cases.write_text(cases.read_text("utf-8").replace("Coco", "Kiki"), "utf-8")
    seen.add(fingerprint(cases, load_settings()))
    assert len(seen) == 5


def test_data_build_and_pools(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = json.loads(invoke("data", "jsonl", str(cases), "--json").stdout)
    assert (counts["cases"], counts["turns"], counts["with_answer"], counts["kinds"]) == (2, 4, 2, {"pets": 2})
    assert "turns          4" in invoke("data", "jsonl", str(cases)).stdout
    assert (
        "jsonl:1: "
        in invoke("data", "jsonl", str(Path("broken.jsonl").write_text("{") and "broken.jsonl"), code=2).output
    )
    with openai_server(
        plan=['{"detail": "Coco", "question": "Which pet sings?", "answer": "Coco.", "answerable": false}']
    ) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        made = json.loads(invoke("build", "continue", str(cases), "out.jsonl", "--dataset", "jsonl", "--json").stdout)
    assert (made["cases"], made["questions"], made["left_out"]) == (2, 2, [])
    pools = json.loads(invoke("merge-pools", "out.jsonl", "2", "pools.jsonl", "--json").stdout)
    assert (pools["pools"], pools["sessions"]) == (1, 2)
    assert "there is no builder" in invoke("build", "novel", str(cases), "x.jsonl", code=2).output


def test_quality_of_a_stream(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with openai_server(plan=['{"remember": false, "facts": {}}']) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        shown = invoke("quality", "changes", "--recipe", "profile", "--limit", "1")
    assert "stale still live" in shown.stdout
    assert "needs --data" in invoke("quality", "gate", "--model", "none", code=2).output
    assert "there is no view" in invoke("quality", "taste", code=2).output


def test_reproduce_says_ok_near_or_off(cases: Path) -> None:
    entries = [
        {"name": "counts", "command": f"nyima eval data jsonl {cases}", "commit": "abc1234", "expect": [
            {"at": "cases", "value": 2, "low": 1.9, "high": 2.1}, {"at": "turns", "value": 9, "low": 8, "high": 10}]},
        {"name": "absent", "command": "nyima eval data msc {data}/msc", "needs": "msc", "commit": "abc1234", "expect": []},
        {"name": "broken", "command": "nyima eval data msc nowhere", "commit": "abc1234", "expect": []},
    ]  # fmt: skip
    Path("reproduce.yaml").write_text(json.dumps(entries), "utf-8")
    result = invoke("reproduce", "--file", "reproduce.yaml", "--json", code=1)
    found = {row["name"]: row["verdict"] for row in json.loads(result.stdout)["entries"]}
    assert found == {"counts: cases": "ok", "counts: turns": "off", "absent": "skipped", "broken": "failed"}
    assert (
        json.loads(invoke("reproduce", "--file", "reproduce.yaml", "--only", "absent", "--json").stdout)["entries"][0][
            "verdict"
        ]
        == "skipped"
    )
    assert "no entry" in invoke("reproduce", "--file", "reproduce.yaml", "--only", "zzz", code=2).output
    Path("bad.yaml").write_text("- name: 3\n", "utf-8")
    assert "cannot be read" in invoke("reproduce", "--file", "bad.yaml", code=2).output


def test_places_of_figures() -> None:
    from nyima_lab.measure.reproduce import _measured

    report = {"lines": [{"recipe": "none", "scores": {"score:qwen2.5": {"mean": 0.5, "low": 0.4, "high": 0.6}}}]}
    assert _measured(report, 'lines[recipe=none].scores."score:qwen2.5"') == (0.5, 0.4, 0.6)
    rows = {"rows": [{"recipe": "bm25", "k": 10, "share": 0.6, "share_low": 0.5, "share_high": 0.7}]}
    assert _measured(rows, "rows[recipe=bm25,k=10].share") == (0.6, 0.5, 0.7)
    assert _measured([{"gate": "first person", "f1": 0.8}], "[gate=first person].f1") == (0.8, None, None)
    with pytest.raises(InputError, match="nothing at"):
        _measured(rows, "rows[recipe=dense].share")


def test_verdicts_of_figures() -> None:
    from nyima_lab.measure.reproduce import verdict_of

    assert verdict_of((0.5, 0.4, 0.6), 0.45, None, None) == "ok"
    assert verdict_of((0.5, 0.4, 0.6), 0.65, 0.55, 0.75) == "near"
    assert verdict_of((0.5, 0.4, 0.6), 0.65, 0.61, 0.75) == "off"
    assert verdict_of((0.5, 0.4, 0.6), 0.65, None, None) == "off"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "nonsense", "--data", "cases.jsonl"), "there is no task"),
        (("run", "questions", "--data", "what.bin"), "does not exist"),
        (("run", "questions", "--data", "."), "give --dataset"),
        (("run", "learning-knowledge", "--data", "cases.jsonl", "--recipes", "none,psychic"), "there is no recipe"),
        (("run", "learning-knowledge", "--data", "cases.jsonl", "--recipes", ","), "no recipe to run"),
        (("retrieval", "msc", "cases.jsonl"), "no evidence to find"),
    ],
)
def test_bad_input_says_what_to_do(cases: Path, arguments: tuple[str, ...], says: str) -> None:
    assert says in " ".join(invoke(*arguments, code=2).output.split())
