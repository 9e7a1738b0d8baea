"""The docs are true: code runs, the reference is up to date, commands are documented."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+?)(?:#[^)]*)?\)")


def reference() -> object:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_up_to_date() -> None:
    for name, page in reference().PAGES.items():  # type: ignore[attr-defined]
        assert (ROOT / "docs" / "reference" / name).read_text("utf-8") == page(), f"run `make docs` for {name}"


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if BLOCK.search(p.read_text("utf-8")) and "nyima.reply" not in p.read_text("utf-8")],
    ids=str,
)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NYIMA_EMBEDDER", "none")
    names: dict[str, object] = {}
    for block in BLOCK.findall(page.read_text("utf-8")):
        exec(compile(block, str(page), "exec"), names)


def test_code_blocks_have_types_and_no_any(tmp_path: Path) -> None:
    folder = tmp_path / "docs_pages"
    folder.mkdir()
    for page in PAGES:
        name = str(page.relative_to(ROOT).with_suffix("")).replace("/", "_").replace("-", "_")
        blocks = BLOCK.findall(page.read_text("utf-8"))
        (folder / f"{name}.py").write_text("\n".join(blocks), "utf-8") if blocks else None
    command = [sys.executable, "-m", "mypy", "--package", "docs_pages"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "MYPYPATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page}: {target}"


def test_every_command_is_in_the_readme_or_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    from typer.main import get_command

    from nyima.cli.main import app

    for name in get_command(app).commands:  # type: ignore[attr-defined]
        assert f"`nyima {name}" in text
    for heading in re.findall(r"^## `(nyima [^`]+)`", text, re.MULTILINE):
        part = text.split(f"## `{heading}`")[1].split("\n## ")[0]
        assert "Example: `nyima" in part, heading


def test_the_documented_figures_can_be_read_and_name_real_commands() -> None:
    from nyima_lab.measure.reproduce import _entries

    entries = _entries(ROOT / "docs" / "reproduce.yaml")
    text = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    for entry in entries:
        assert f"`{' '.join(entry.command.split()[:3])}`" in text
        assert all(e.low <= e.value <= e.high for e in entry.expect)
