"""The commands for documents and own sources."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cli.test_cli import Cli, cli  # noqa: F401 - a fixture


def saved(path: Path, text: str | bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_a_document_is_added_listed_found_replaced_and_removed(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    file = saved(tmp_path / "bike.md", "# Tyres\nThe tyre pressure is 4 bar.")
    assert cli.json("docs", "add", file) == {
        "documents": [{"name": "bike.md", "passages": 1, "state": "added", "note": ""}], "failed": {},
    }  # fmt: skip
    (row,) = cli.json("docs", "list")["documents"]
    assert (row["name"], row["passages"]) == ("bike.md", 1)
    assert "1 passages  bike.md" in cli("docs", "list").stdout
    found = cli.json("recall", "tyre pressure", "--kind", "passage")["kept"]
    assert "4 bar" in found[0]["text"]
    saved(tmp_path / "bike.md", "# Tyres\nThe tyre pressure is 5 bar.")
    assert cli.json("docs", "add", file)["documents"][0]["state"] == "replaced"
    assert cli.json("docs", "remove", "bike.md", "--yes")["erased"] == {"passage": 2}
    assert cli.json("docs", "list")["documents"] == []
    assert b"5 bar" not in b"".join(p.read_bytes() for p in tmp_path.glob("memory.db*"))


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("/nowhere/a.pdf", "there is no file '/nowhere/a.pdf': check the path"),
        ("https://example.org/x.pdf", "is on the network: allow it with --web, or download it and add the file"),
        ("file:///etc/passwd", "is on the network"),
    ],
)
def test_one_argument_that_is_wrong_adds_nothing(cli: Cli, tmp_path: Path, what: str, words: str) -> None:  # noqa: F811
    file = saved(tmp_path / "a.txt", "The chain is oiled in spring.")
    assert words in cli("docs", "add", file, what, code=2).output
    assert not cli.db.exists()


def test_an_empty_folder_says_what_could_be_in_it(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    saved(tmp_path / "photos" / "a.jpg", "x")
    assert "holds no document: give files of .txt" in cli("docs", "add", str(tmp_path / "photos"), code=2).output


def test_two_files_of_one_name_are_refused(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    files = [saved(tmp_path / folder / "a.txt", folder) for folder in ("one", "two")]
    assert "two files would be called 'a.txt'" in cli("docs", "add", *files, code=2).output
    folders = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert [d["name"] for d in cli.json("docs", "add", *folders)["documents"]] == ["one/a.txt", "two/a.txt"]


def test_a_file_that_cannot_be_read_leaves_the_others(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    good, bad = saved(tmp_path / "a.txt", "The chain is oiled."), saved(tmp_path / "b.pdf", b"%PDF-1.4 broken")
    done = cli("docs", "add", good, bad, "--json", code=1)
    data = json.loads(done.stdout)
    assert [d["name"] for d in data["documents"]] == ["a.txt"]
    assert list(data["failed"]) == ["b.pdf"]
    assert "left out   b.pdf: " in done.stderr
    assert "nothing was added" in cli("docs", "add", bad, code=2).output


def test_an_address_that_is_allowed_and_does_not_answer_is_left_out(cli: Cli) -> None:  # noqa: F811
    assert "left out   http://127.0.0.1:9/x" in cli("docs", "add", "--web", "http://127.0.0.1:9/x", code=2).output


def test_removing_asks_first_and_names_what_is_not_there(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    cli("docs", "add", saved(tmp_path / "a.txt", "The chain is oiled."))
    assert "Erase a.txt for good?" in cli("docs", "remove", "a.txt", input="n\n", code=1).output
    assert "there is no document 'b.txt'" in cli("docs", "remove", "a.txt", "b.txt", "--yes", code=3).output
    assert len(cli.json("docs", "list")["documents"]) == 1
    assert "there is no document yet: nyima docs add FILE" in cli("docs", "list", "--user", "ana").stdout


def test_the_sources_are_listed_with_what_they_hold_and_need(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    cli("docs", "add", saved(tmp_path / "a.txt", "The chain is oiled."))
    rows = {row["name"]: row for row in cli.json("sources")["sources"]}
    assert rows["documents"]["size"] == 1
    assert rows["documents"]["after"] == ["profile", "graph"]
    assert list(rows).index("documents") > list(rows).index("graph")
    assert rows["persona"]["size"] == 2


def test_an_own_source_is_added_and_taken_away(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    saved(tmp_path / "own_tide.py", 'def tide(query):\n    """The tide."""\n    return f"high for {query}"\n')
    monkeypatch.syspath_prepend(tmp_path)
    rows = cli.json(
        "sources", "--add", "tide", "--call", "own_tide:tide", "--about", "the sea", "--after", " graph, history,"
    )
    own = next(row for row in rows["sources"] if row["name"] == "tide")
    assert own == {"name": "tide", "about": "the sea", "after": ["graph", "history"], "size": None}
    assert "tide" in {p["source"] for p in cli.json("recall", "Faro")["kept"]}
    assert "tide" not in {row["name"] for row in cli.json("sources", "--remove", "tide")["sources"]}
    assert "there is no source of your own 'tide'" in cli("sources", "--remove", "tide", code=3).output
    sys.modules.pop("own_tide", None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--add", "x"), "needs one of --call module:function and --mcp COMMAND"),
        (("--add", "x", "--mcp", "server"), "needs --tool"),
        (("--add", "x y", "--call", "json:dumps"), "'x y' is no name for a source"),
        (("--add", "x", "--call", "json:nothing"), "cannot be loaded"),
    ],
)
def test_a_source_that_makes_no_sense_is_a_wrong_input(cli: Cli, arguments: tuple[str, ...], words: str) -> None:  # noqa: F811
    before = cli.json("sources")
    assert words in cli("sources", *arguments, code=2).output
    assert cli.json("sources") == before
