"""The commands that bring conversations in and take memories out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.common import Common, command, console, ensure_packs, say
from nyima.domain.conversation import Role
from nyima.errors import InputError
from nyima.language.words import tokens
from nyima.transfer.exports import export_lines
from nyima.transfer.importers import FORMATS, read_conversations
from nyima.transfer.restore import is_export, read_export, restore

if TYPE_CHECKING:
    from nyima.memory import Memory

__all__ = ["add_to"]

_PROMPT_TOKENS = {"gate": 230, "note": 330, "session": 700}
_SECONDS_PER_CALL = 4.0


async def import_(
    common: Common,
    file: Annotated[Path, typer.Argument(help="A file or a folder.")],
    format: Annotated[
        str | None, typer.Option("--format", help=f"One of {', '.join(FORMATS)}; guessed unless set.")
    ] = None,
    enrich: Annotated[
        bool, typer.Option("--enrich", help="Also make notes, facts and summaries, with the model.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before the model is used.")] = False,
) -> None:
    """Bring in conversations: history at once, the rest only with --enrich."""
    from nyima.memory import Memory

    settings = common.settings()
    ensure_packs(settings, "embed", *(["chat"] if enrich else []))
    model = None if enrich else "none"
    memory = await Memory.open(settings.where, user=settings.user, model=model, embedder=settings.embedder)
    try:
        done = await _bring_in(memory, file, format)
        if enrich:
            done |= await _enrich(memory, done.pop("ids"), yes=yes or common.json)
        done.pop("ids", None)
    finally:
        await memory.close()
    common.show(done, lambda out: out.print(", ".join(f"{n} {what}" for what, n in done.items())))


async def _bring_in(memory: Memory, file: Path, format: str | None) -> dict[str, Any]:
    from rich.progress import Progress

    sessions, turns, skipped, ids = 0, 0, 0, list[str]()
    before = len(await memory.turns())
    if is_export(file):
        data = await asyncio.to_thread(file.read_bytes)
        return await restore(memory, read_export(data, str(file)), str(file))
    conversations = await asyncio.to_thread(lambda: list(read_conversations(file, format)))
    with Progress(console=console(err=True), transient=True) as progress:
        bar = progress.add_task("reading", total=len(conversations))
        for one in conversations:
            progress.advance(bar)
            skipped += one.skipped
            if not one.turns:
                continue
            await memory.remember(one.turns, session=one.id, title=one.title, owed=False)
            (session,) = await memory.store.sessions(memory.scope, ids=(one.id,))
            await memory.ingest.end(memory.scope, session, memory.recipe, owed=lambda writer: False)
            sessions += 1
            turns += len(one.turns)
            ids.append(one.id)
        bar = progress.add_task("indexing", total=None)
        await memory.ingest.index(memory.scope)
    new = len(await memory.turns()) - before
    return {"sessions": sessions, "turns": turns, "skipped": skipped, "new": new, "ids": ids}


async def _enrich(memory: Memory, ids: list[str], *, yes: bool) -> dict[str, Any]:
    """Queue the writers' jobs for imported sessions, say what they will cost, do them."""
    from nyima.cli.chat import drain_with_progress
    from nyima.domain.mechanism import When
    from nyima.domain.ports import follow_up

    recipe = memory.recipe
    users = [t for id in ids for t in await memory.turns(id) if t.role is Role.USER]
    calls = round(len(users) * 1.5) + 2 * len(ids)
    prompt = sum(_PROMPT_TOKENS["gate"] + _PROMPT_TOKENS["note"] // 2 + 2 * tokens(t.text) for t in users)
    prompt += _PROMPT_TOKENS["session"] * len(ids)
    minutes = calls * _SECONDS_PER_CALL / 60
    console(err=True).print(
        f"about {calls:,} model calls, {prompt:,} prompt tokens, {minutes:.0f} minutes on the local model;"
        " it can be stopped with Ctrl-C and goes on with `nyima work`"
    )
    if not yes and not typer.confirm("Go on?", err=True):
        return {"estimated_calls": calls, "jobs": 0}
    asked = [w for w in memory.registry.writers(recipe, When.TURN) if w.needs_model]
    jobs = [follow_up(w.name, t.id, recipe.name) for t in users for w in asked]
    jobs += [
        follow_up(w.name, id, recipe.name) for id in ids for w in memory.registry.writers(recipe, When.SESSION_END)
    ]
    from nyima.domain.changes import Delta

    await memory.store.commit(memory.scope, Delta(), jobs=jobs)
    done = await drain_with_progress(memory.drain)
    return {"estimated_calls": calls, "jobs": done["done"], "waiting": done["waiting"], "parked": done["parked"]}


async def export(
    common: Common,
    format: Annotated[str, typer.Option("--format", help="jsonl (lossless) or markdown.")] = "jsonl",
    file: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of standard output.")] = None,
) -> None:
    """Take everything out: lossless JSON lines, or Markdown to read."""
    memory = await common.memory(embedder="none")
    try:
        if format == "markdown" and common.json:
            raise InputError("Markdown is no JSON: leave --json out, or choose --format jsonl")
        if format == "jsonl":
            lines = await export_lines(memory)
        elif format == "markdown":
            lines = await _markdown(memory)
        else:
            raise InputError(f"there is no format {format!r}: choose jsonl or markdown")
    finally:
        await memory.close()
    if file is None:
        for line in lines:
            say(line)
    else:
        file.write_text("\n".join(lines) + "\n", "utf-8")


async def _markdown(memory: Memory) -> list[str]:
    lines = [f"# What Nyima remembers of {memory.scope.user}", "", "## Profile", ""]
    lines += [f"- {c.attribute}: {c.value}" for c in (await memory.profile()).claims]
    for kind, title in (("note", "Notes"), ("summary", "Summaries")):
        lines += ["", f"## {title}", ""]
        lines += [f"- {r.valid.since:%Y-%m-%d}: {r.text}" for r in await memory.records(kinds=(kind,))]
    for session in await memory.sessions():
        lines += ["", f"## {session.started:%Y-%m-%d %H:%M} {session.title}".rstrip(), ""]
        lines += [f"**{t.name}**: {t.text}  " for t in await memory.turns(session.id)]
    return lines


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "import", "nyima import conversations.json")(import_)
    command(app, "export", "nyima export --format markdown -o me.md")(export)
