"""The embedder of a process: one for all memories, and none where its packages are missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nyima.app.environment import find_embedder, load_settings, shelf

BARE = """
import sys
for name in ("onnxruntime", "tokenizers", "xllamacpp"):
    sys.modules[name] = None
from nyima.cli.main import run
run()
"""
BARE_PYTHON = """
import sys, asyncio
sys.modules["onnxruntime"] = None
from nyima import Memory
async def main():
    for _ in range(3):
        async with Memory.open(sys.argv[1]) as memory:
            await memory.remember("My cat is called Luna.")
            found = await memory.recall("What is my cat called?")
            assert any("Luna" in e.text for e in found.kept)
asyncio.run(main())
"""


def test_without_the_local_packages_words_find_it_and_a_warning_says_so_once(db: Path, tmp_path: Path) -> None:
    """`pip install nyima` alone: remember and recall failed, and fetched a model that they could not load."""
    env = {**os.environ, "NYIMA_CACHE": str(tmp_path / "cache")}
    told = [sys.executable, "-c", BARE, "remember", "My cat is called Luna.", "--db", str(db)]
    done = subprocess.run(told, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("not installed") == 1
    assert "pip install 'nyima[local]'" in done.stderr
    asked = [sys.executable, "-c", BARE, "recall", "What is my cat called?", "--db", str(db)]
    done = subprocess.run(asked, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert "Luna" in done.stdout
    assert not list((tmp_path / "cache").rglob("*.onnx")), "nothing is fetched that cannot be loaded"


def test_the_same_from_python(db: Path) -> None:
    done = subprocess.run([sys.executable, "-c", BARE_PYTHON, str(db)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("not installed") == 1, "said once, not for every memory"


def test_all_memories_of_a_process_share_one_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings()
    held = shelf(settings)
    if not held.present(held.pack(settings.embedder)):
        assert "NYIMA_REQUIRE_PACKS" not in os.environ
        pytest.skip(f"the pack {settings.embedder} is not there")
    assert find_embedder(settings) is find_embedder(load_settings(user="somebody else"))
