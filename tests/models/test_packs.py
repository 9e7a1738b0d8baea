"""Packs: listed, pulled from archives, resumed, verified, removed; nothing is imported."""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nyima.errors import NotFound, PackError
from nyima.models import packs as module
from nyima.models.packs import Pack, PackFile, PackShelf, packs

PARTS = [b"first part " * 1000, b"second part " * 1000]
CONTENT = b"".join(PARTS)


def pack_file(wheels: tuple[str, ...], content: bytes = CONTENT) -> PackFile:
    return PackFile("model.bin", len(content), hashlib.sha256(content).hexdigest(), "", wheels, "*/part*.bin")


def wheel(folder: Path, name: str, member: bytes) -> str:
    """A wheel with one member, as pip would find it; a requirement that is its path."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/part.bin", member)
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('never imported')")
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return str(path)


@pytest.fixture
def shelf_of(tmp_path: Path):  # type: ignore[no-untyped-def]
    added: list[str] = []

    def make(file: PackFile) -> PackShelf:
        packs()["test-pack"] = Pack("test-pack", "chat", "MIT", "for a test", (file,))
        added.append("test-pack")
        return PackShelf(tmp_path / "cache", hub=False)

    yield make
    for name in added:
        packs().pop(name, None)


def test_every_pack_is_pinned() -> None:
    names = set(packs())
    assert {
        "qwen2.5-coder-1.5b",
        "qwen2.5-coder-0.5b",
        "minilm-l6-int8",
        "minilm-l6",
        "smollm2-135m",
        "whisper-base",
        "whisper-tiny.en",
    } <= names
    for pack in packs().values():
        assert pack.licence
        for file in pack.files:
            assert len(file.sha256) == 64
            assert file.size > 0
            assert all("==" in w for w in file.wheels)
    assert len(packs()["qwen2.5-coder-1.5b"].files[0].wheels) == 22


def test_pull_joins_the_members_of_the_wheels(shelf_of, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    wheels = tuple(wheel(tmp_path, f"part{i}", content) for i, content in enumerate(PARTS))
    shelf = shelf_of(pack_file(wheels))
    seen: list[int] = []
    shelf.pull("test-pack", lambda name, have, total: seen.append(have))
    assert shelf.files("test-pack")["model.bin"].read_bytes() == CONTENT
    assert shelf.verify("test-pack") == []
    assert seen[-1] == len(CONTENT)
    assert seen == sorted(seen)
    assert shelf.remove("test-pack") == len(CONTENT)
    with pytest.raises(PackError, match="nyima models pull test-pack"):
        shelf.files("test-pack")


def test_a_pull_that_broke_off_goes_on(shelf_of, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    first = wheel(tmp_path, "part0", PARTS[0])
    missing = str(tmp_path / "part1-1.0-py3-none-any.whl")
    shelf = shelf_of(pack_file((first, missing)))
    with pytest.raises(PackError, match="check the network"):
        shelf.pull("test-pack", lambda *_: None)
    wheel(tmp_path, "part1", PARTS[1])
    Path(first).unlink()
    shelf.pull("test-pack", lambda *_: None)
    assert shelf.files("test-pack")["model.bin"].read_bytes() == CONTENT


def test_other_content_is_refused_and_damage_is_seen(shelf_of, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    wrong = wheel(tmp_path, "part0", b"something else")
    shelf = shelf_of(pack_file((wrong,), PARTS[0]))
    with pytest.raises(PackError, match="another content"):
        shelf.pull("test-pack", lambda *_: None)
    right = wheel(tmp_path, "good", PARTS[0])
    shelf = shelf_of(pack_file((right,), PARTS[0]))
    shelf.pull("test-pack", lambda *_: None)
    shelf.files("test-pack")["model.bin"].write_bytes(b"x" * len(PARTS[0]))
    assert shelf.verify("test-pack") == ["model.bin"]
    shelf.pull("test-pack", lambda *_: None)
    assert shelf.verify("test-pack") == []


def test_an_unknown_pack_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="minilm-l6-int8"):
        PackShelf(tmp_path).files("nothing")


def test_a_hub_that_is_away_is_no_end(tmp_path: Path) -> None:
    file = pack_file(())
    away = PackFile(file.name, file.size, file.sha256, "http://127.0.0.1:9/model.bin", (), file.member)
    assert "does not answer" in module._from_hub(away, tmp_path / "x.hub", lambda *_: None)


def test_the_size_of_what_comes_in_is_told_while_files_go_away(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.whl").write_bytes(b"123")
    assert module._largest(tmp_path) == 3
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            for n in range(20):
                (tmp_path / f"d{n}" / "e").mkdir(parents=True)
            for n in range(20):
                shutil.rmtree(tmp_path / f"d{n}")

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(come_and_go)
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            assert module._largest(tmp_path) == 3
        stop.set()
        going.result()
