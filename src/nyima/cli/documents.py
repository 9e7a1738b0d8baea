"""The commands for documents and other sources."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.common import Common, command, console
from nyima.domain.conversation import iso

if TYPE_CHECKING:
    from rich.console import Console

    from nyima.domain.documents import Document
    from nyima.mechanisms.documents.shelf import Added
    from nyima.memory import Memory

__all__ = ["add_to"]


async def add(
    common: Common,
    what: Annotated[list[str], typer.Argument(help="Files, folders, or (with --web) addresses.")],
    web: Annotated[bool, typer.Option("--web", help="Allow fetching web addresses.")] = False,
) -> None:
    """Let the assistant look things up in documents: text, Markdown, HTML, PDF. Adding the
    same again changes nothing; a changed file replaces what was there."""
    from nyima.errors import InputError, NyimaError

    wanted = [item for given in what for item in _found(given, web=web)]
    twice = [name for name, count in Counter(name for _, name in wanted).items() if count > 1]
    if twice:
        raise InputError(f"two files would be called {twice[0]!r}: add them one at a time, under other names")
    memory = await common.memory()
    done: list[Added] = []
    failed: dict[str, str] = {}
    try:
        with _bars() as bars:
            for source, name in wanted:
                try:
                    done.append(await _add(memory, source, name, bars))
                except NyimaError as error:
                    failed[name] = str(error)
            await _index(memory, bars)
    finally:
        await memory.close()
    data: dict[str, Any] = {
        "documents": [{"name": a.name, "passages": a.passages, "state": a.state, "note": a.note} for a in done],
        "failed": failed,
    }

    def text(out: Console) -> None:
        for one in done:
            note = f"  ({one.note})" if one.note else ""
            out.print(f"{one.state:10} {one.name}: {one.passages} passages{note}", markup=False)

    common.show(data, text)
    for name, problem in failed.items():
        console(err=True).print(f"left out   {name}: {problem}", markup=False)
    if failed and not done:
        raise InputError("nothing was added")
    if failed:
        raise typer.Exit(1)


def _found(given: str, *, web: bool) -> list[tuple[str | Path, str]]:
    """What an argument names: (file or address, name of the document). Raises InputError."""
    from nyima.errors import InputError
    from nyima.mechanisms.documents.parse import FORMATS

    if "://" in given:
        if not web:
            raise InputError(f"{given} is on the network: allow it with --web, or download it and add the file")
        return [(given, given)]
    path = Path(given).expanduser()
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix.lower() in FORMATS and p.is_file())
        if not files:
            raise InputError(f"{path} holds no document: give files of {', '.join(FORMATS)}")
        return [(p, str(Path(path.resolve().name) / p.relative_to(path))) for p in files]
    if not path.is_file():
        raise InputError(f"there is no file {given!r}: check the path")
    return [(path, path.name)]


async def _add(memory: Memory, source: str | Path, name: str, bars: Any) -> Added:
    from nyima.mechanisms.documents.parse import fetch, read_document
    from nyima.mechanisms.documents.shelf import add_document

    task = bars.add_task(name, total=None)

    def note(page: int, pages: int) -> None:
        bars.update(task, completed=page, total=pages)

    def read() -> Document:
        return fetch(source, note) if isinstance(source, str) else read_document(source, name, note)

    try:
        return await add_document(memory, await asyncio.to_thread(read))
    finally:
        bars.update(task, completed=1, total=1)


async def _index(memory: Memory, bars: Any) -> None:
    from nyima.mechanisms.documents.shelf import index_documents

    task = bars.add_task("vectors", total=None)
    made = await index_documents(memory, lambda done: bars.update(task, completed=done))
    bars.update(task, completed=made, total=made)


def _bars() -> Any:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console(err=True), transient=True)


async def listing(common: Common) -> None:
    """Show the documents."""
    from nyima.mechanisms.documents.shelf import held_documents

    memory = await common.memory(embedder="none")
    try:
        held = await held_documents(memory)
    finally:
        await memory.close()
    rows = [{"name": h.name, "passages": h.passages, "words": h.words, "added": iso(h.added)} for h in held]

    def text(out: Console) -> None:
        for row in rows:
            out.print(f"{str(row['added'])[:10]}  {row['passages']:5} passages  {row['name']}", markup=False)
        if not rows:
            out.print("there is no document yet: nyima docs add FILE")

    common.show({"documents": rows}, text)


async def remove(
    common: Common,
    names: Annotated[list[str], typer.Argument(help="Names, as `nyima docs list` shows them.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Erase documents for good, with their index; the receipt says what."""
    from nyima.change.as_json import receipt_to_dict
    from nyima.cli.memories import show_receipt
    from nyima.mechanisms.documents.shelf import remove_documents

    if not yes:
        typer.confirm(f"Erase {', '.join(names)} for good?", abort=True, err=True)
    memory = await common.memory(embedder="none")
    try:
        receipt = await remove_documents(memory, names)
    finally:
        await memory.close()
    common.show(receipt_to_dict(receipt), lambda out: show_receipt(out, receipt))


@dataclass(frozen=True, slots=True)
class Own:
    """A source of the user's own, as the options describe it."""

    add: Annotated[str, typer.Option("--add", help="Add a source of your own under this name.")] = ""
    about: Annotated[str, typer.Option("--about", help="What it holds, in a sentence: planners read it.")] = ""
    call: Annotated[str, typer.Option("--call", help="A Python function, as module:function.")] = ""
    mcp: Annotated[str, typer.Option("--mcp", help="The command of an MCP server.")] = ""
    tool: Annotated[str, typer.Option("--tool", help="The tool of the MCP server.")] = ""
    after: Annotated[str, typer.Option("--after", help="The sources that it needs, with commas.")] = ""
    remove: Annotated[str, typer.Option("--remove", help="Remove a source of your own.")] = ""


async def sources(common: Common, own: Own) -> None:
    """Show where the assistant looks things up; add or remove a source of your own."""
    from nyima.app.sources_file import Declared, add_source, remove_source
    from nyima.mechanisms.documents.shelf import described_sources

    settings = common.settings()
    if own.add:
        needs = tuple(name.strip() for name in own.after.split(",") if name.strip())
        add_source(settings, Declared(own.add, own.about, own.call, own.mcp, own.tool, needs))
    if own.remove:
        remove_source(settings, own.remove)
    memory = await common.memory(embedder="none")
    try:
        rows = await described_sources(memory)
    finally:
        await memory.close()

    def text(out: Console) -> None:
        for row in rows:
            size = "" if row["size"] is None else f"{row['size']:,}"
            needs = f"  needs {', '.join(row['after'])}" if row["after"] else ""
            out.print(f"{row['name']:10} {size:>7}  {row['about']}{needs}", markup=False)

    common.show({"sources": rows}, text)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="Documents to look things up in.", no_args_is_help=True)
    command(group, "add", "nyima docs add manual.pdf notes/")(add)
    command(group, "list", "nyima docs list")(listing)
    command(group, "remove", "nyima docs remove manual.pdf")(remove)
    app.add_typer(group, name="docs")
    command(app, "sources", 'nyima sources --add weather --call tools:weather --about "the weather"')(sources)
