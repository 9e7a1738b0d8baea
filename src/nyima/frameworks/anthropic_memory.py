"""Anthropic's memory tool over Nyima: ``client.beta.messages.tool_runner(tools=[NyimaMemoryTool(opened)], …)``."""

from __future__ import annotations

import asyncio
import posixpath
import urllib.parse
from collections.abc import Callable
from typing import Any

from anthropic.lib.tools import BetaAsyncAbstractMemoryTool, ToolError

from nyima.frameworks.shelf import Shelf
from nyima.memory import BlockingMemory

__all__ = ["NyimaMemoryTool"]

_ROOT = "/memories"
_MOST_LINES = 999_999


class NyimaMemoryTool(BetaAsyncAbstractMemoryTool):
    """The files that Claude keeps, as passages of a memory: they have a history, are found
    by recall, quoted as what an assistant wrote, and erased for good when Claude deletes them."""

    def __init__(self, memory: BlockingMemory) -> None:
        """``memory`` is ``Memory.open(…).sync``."""
        super().__init__()
        self._sync = memory
        self._shelf = Shelf(memory.inner, "anthropic:")
        self._changing = asyncio.Lock()  # of the memory's own loop: Claude may call several tools at once

    async def view(self, command: Any) -> str:
        """A folder's files, or a file with numbered lines."""
        path = _path(command.path)
        files = await self._files()
        if path in files:
            lines = files[path].split("\n")
            if len(lines) > _MOST_LINES:
                raise ToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
            first, last = (command.view_range or [1, -1])[:2] if getattr(command, "view_range", None) else (1, -1)
            end = len(lines) if last == -1 else last
            shown = [f"{i:6d}\t{line}" for i, line in enumerate(lines, 1) if first <= i <= end]
            return f"Here's the content of {path} with line numbers:\n" + "\n".join(shown)
        below = sorted(f for f in files if f.startswith(path.rstrip("/") + "/"))
        if not below and path != _ROOT:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        sizes = [f"{len(files[f].encode())}\t{f}" for f in below]
        head = (
            f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
        )
        return "\n".join([head, f"{sum(len(files[f].encode()) for f in below)}\t{path}", *sizes])

    async def create(self, command: Any) -> str:
        """A new file."""
        path = _path(command.path)
        await self._sync.wrap(self._created(path, command.file_text))
        return f"File created successfully at: {path}"

    async def _created(self, path: str, text: str) -> None:
        async with self._changing:
            files = await self._held()
            if path in files:
                raise ToolError(f"File {path} already exists")
            above = next((f for f in files if path.startswith(f + "/")), None)
            if above is not None:
                raise ToolError(f"{above} is a file: no file can be below it")
            if path == _ROOT or any(f.startswith(path + "/") for f in files):
                raise ToolError(f"{path} is a directory: give a path below it")
            await self._shelf.put(path, "", text)

    async def str_replace(self, command: Any) -> str:
        """Replace a text that stands once in a file."""

        def edit(text: str) -> str:
            count = text.count(command.old_str)
            if count == 0:
                raise ToolError(
                    f"No replacement was performed, old_str `{command.old_str}` did not appear verbatim in {command.path}."
                )
            if count > 1:
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{command.old_str}`. Please ensure it is unique"
                )
            return text.replace(command.old_str, command.new_str or "", 1)

        return await self._edit(command.path, edit)

    async def insert(self, command: Any) -> str:
        """Insert lines behind a line."""

        def edit(text: str) -> str:
            lines = text.split("\n")
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. It should be within [0, {len(lines)}]"
                )
            lines[command.insert_line : command.insert_line] = command.insert_text.rstrip("\n").split("\n")
            return "\n".join(lines)

        return await self._edit(command.path, edit)

    async def delete(self, command: Any) -> str:
        """Erase a file, or all below a folder, for good."""
        path = _path(command.path)
        if path == _ROOT:
            raise ToolError("Cannot delete the /memories directory itself")
        gone = [f for f in await self._files() if f == path or f.startswith(path + "/")]
        if not gone:
            raise ToolError(f"The path {path} does not exist")
        for file in gone:
            await self._sync.wrap(self._shelf.drop(file, ""))
        return f"Successfully deleted {path}"

    async def rename(self, command: Any) -> str:
        """Give a file, or a folder, another path."""
        old, new = _path(command.old_path), _path(command.new_path)
        if _ROOT in {old, new}:
            raise ToolError("Cannot rename the /memories directory itself")
        await self._sync.wrap(self._renamed(old, new))
        return f"Successfully renamed {old} to {new}"

    async def _renamed(self, old: str, new: str) -> None:
        async with self._changing:
            files = await self._held()
            moved = {f: new + f[len(old) :] for f in files if f == old or f.startswith(old + "/")}
            if not moved:
                raise ToolError(f"The path {old} does not exist")
            if [f for f in files if f == new or f.startswith(new + "/") or new.startswith(f + "/")]:
                raise ToolError(f"The destination {new} already exists")
            for before, after in moved.items():
                await self._shelf.put(after, "", files[before])
                await self._shelf.drop(before, "")

    async def clear_all_memory(self) -> str:
        """Erase all files for good."""
        for file in await self._files():
            await self._sync.wrap(self._shelf.drop(file, ""))
        return "All memory cleared"

    async def _held(self) -> dict[str, str]:
        return {p.document.removeprefix("anthropic:"): p.body for p in await self._shelf.all()}

    async def _files(self) -> dict[str, str]:
        found: dict[str, str] = await self._sync.wrap(self._held())
        return found

    async def _edit(self, given: str, edit: Callable[[str], str]) -> str:
        path = _path(given)
        await self._sync.wrap(self._edited(path, edit))
        return f"The file {path} has been edited."

    async def _edited(self, path: str, edit: Callable[[str], str]) -> None:
        async with self._changing:
            files = await self._held()
            if path not in files:
                raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
            await self._shelf.put(path, "", edit(files[path]))


def _path(given: str) -> str:
    """A path below ``/memories``. Raises ToolError for one that leaves it."""
    plain = urllib.parse.unquote(given)
    if not plain.startswith(_ROOT):
        raise ToolError(f"Path must start with /memories, got: {given}")
    found = posixpath.normpath(plain)
    if found != _ROOT and not found.startswith(_ROOT + "/"):
        raise ToolError(f"Path {given} would escape /memories directory")
    return found
