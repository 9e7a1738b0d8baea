"""Sources of the user's own, kept in a file beside the settings: Python functions and tools
of MCP servers. They are in no memory file, since reading one must never run anything."""

from __future__ import annotations

import inspect
import json
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from nyima.app.mcp_source import mcp_function
from nyima.app.registry import registry
from nyima.app.settings import Settings, sources_path
from nyima.app.tools import load_tools
from nyima.domain.mechanism import Registry, Source
from nyima.errors import ConfigError, NotFound
from nyima.read.sources import in_order

__all__ = ["Declared", "add_source", "checked", "read_sources", "remove_source"]


@dataclass(frozen=True, slots=True)
class Declared:
    """A source as the file has it: ``call`` (module:function), or ``mcp`` (a command) with
    ``tool``."""

    name: str
    about: str = ""
    call: str = ""
    mcp: str = ""
    tool: str = ""
    after: tuple[str, ...] = ()

    def source(self) -> Source:
        """The source itself. Raises ConfigError when it makes no sense."""
        if bool(self.call) == bool(self.mcp):
            raise ConfigError(f"the source {self.name!r} needs one of --call module:function and --mcp COMMAND")
        if self.mcp and not self.tool:
            raise ConfigError(f"the source {self.name!r} needs --tool, the name of the MCP server's tool")
        if not str(self.name).isidentifier() or self.name in registry().sources:
            raise ConfigError(
                f"{self.name!r} is no name for a source: give another word; {', '.join(registry().sources)} are taken"
            )
        if self.call:
            return Source(self.name, self.about or f"the function {self.call}", self._called, self.after)
        try:
            command = shlex.split(self.mcp)
        except ValueError as error:
            raise ConfigError(f"the command {self.mcp!r} of {self.name!r} cannot be read: {error}") from error
        return Source(self.name, self.about or f"the tool {self.tool}", mcp_function(command, self.tool), self.after)

    def _called(self, query: str, given: list[str]) -> Any:
        """The function is loaded when it is asked: one that is broken costs no other command."""
        function = self.loaded()
        more = {"given": given} if "given" in inspect.signature(function).parameters else {}
        return function(query, **more)

    def loaded(self) -> Callable[..., Any]:
        """The function of ``call``. Raises ConfigError when it cannot be loaded."""
        (tool,) = load_tools((self.call,)).values()
        return tool.function


def _read(path: Path) -> list[Declared]:
    if not path.exists():
        return []
    try:
        rows = json.loads(path.read_text("utf-8"))
        return [Declared(**{**row, "after": tuple(row.get("after", ()))}) for row in rows]
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}: mend it, or remove it") from error


def _write(path: Path, declared: list[Declared]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps([asdict(d) for d in declared], ensure_ascii=False, indent=2) + "\n", "utf-8")
    new.replace(path)


def read_sources(settings: Settings) -> tuple[Source, ...]:
    """The user's own sources. Raises ConfigError for two of one name, one that needs another
    that is not there, and a circle."""
    return checked([d.source() for d in _read(sources_path(settings))])


def checked(sources: list[Source], known: Registry | None = None) -> tuple[Source, ...]:
    """The sources, when their names and dependencies make sense beside the built-in ones. Raises
    ConfigError."""
    built_in = (known or registry()).sources
    twice = [name for name, count in Counter(s.name for s in sources).items() if count > 1 or name in built_in]
    if twice:
        raise ConfigError(f"there are two sources of the name {twice[0]!r}: give one of them another name")
    in_order({**dict.fromkeys(built_in, ()), **{s.name: s.after for s in sources}})
    return tuple(sources)


def add_source(settings: Settings, declared: Declared) -> None:
    """Keep a source in the file. Raises ConfigError, and then keeps nothing."""
    path = sources_path(settings)
    if declared.call:
        about = inspect.getdoc(declared.loaded()) or ""
        declared = replace(declared, about=declared.about or about.partition("\n")[0])
    every = [*_read(path), declared]
    checked([d.source() for d in every])
    _write(path, every)


def remove_source(settings: Settings, name: str) -> None:
    """Take a source out of the file. Raises NotFound, or ConfigError when another needs it."""
    path = sources_path(settings)
    every = _read(path)
    if name not in {d.name for d in every}:
        raise NotFound(f"there is no source of your own {name!r}: `nyima sources` lists them")
    left = [d for d in every if d.name != name]
    checked([d.source() for d in left])
    _write(path, left)
