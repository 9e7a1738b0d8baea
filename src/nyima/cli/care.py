"""The commands that look after the program: models, indexes, checks, settings."""

from __future__ import annotations

import sqlite3
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.common import Common, command, pull_with_progress

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["add_to"]

_Name = Annotated[str, typer.Argument(help="A pack's name; `nyima models list` shows them.")]


async def models_list(common: Common) -> None:
    """List the model packs and which of them are on this machine."""
    from nyima.app.environment import shelf
    from nyima.models.packs import packs

    held = shelf(common.settings())
    rows: list[dict[str, Any]] = [
        {
            "name": p.name,
            "role": p.role,
            "licence": p.licence,
            "bytes": p.size,
            "present": held.present(p),
            "about": p.about,
        }
        for p in packs().values()
    ]

    def text(out: Console) -> None:
        for row in rows:
            mark = "✓" if row["present"] else " "
            out.print(
                f"{mark} {row['name']:20} {row['role']:7} {row['bytes'] / 1e6:8,.0f} MB  {row['licence']:11} {row['about']}"
            )

    common.show({"models": rows}, text)


async def models_pull(common: Common, name: _Name) -> None:
    """Fetch a pack, going on where an earlier try stopped."""
    from nyima.app.environment import shelf

    settings = common.settings()
    pull_with_progress(settings, name)
    files = {k: str(v) for k, v in shelf(settings).files(name).items()}
    common.show({"name": name, "files": files}, lambda out: out.print(f"{name} is here"))


async def models_verify(common: Common, name: _Name) -> None:
    """Check a pack's content against its hashes."""
    from nyima.app.environment import shelf

    damaged = shelf(common.settings()).verify(name)
    verdict = (
        f"damaged or missing: {', '.join(damaged)}: run `nyima models pull {name}`"
        if damaged
        else f"{name} is as it should be"
    )
    common.show({"name": name, "damaged": damaged}, lambda out: out.print(verdict))
    if damaged:
        raise typer.Exit(6)


async def models_remove(common: Common, name: _Name) -> None:
    """Delete a pack from this machine."""
    from nyima.app.environment import shelf

    freed = shelf(common.settings()).remove(name)
    common.show({"name": name, "freed": freed}, lambda out: out.print(f"{freed / 1e6:,.0f} MB freed"))


async def reindex(
    common: Common,
    vectors: Annotated[bool, typer.Option("--vectors", help="Embed everything again, too.")] = False,
) -> None:
    """Rebuild what is derived: the full-text rows, and the vectors when asked."""
    memory = await common.memory()
    try:
        count = await memory.store.reindex(memory.scope, vectors=vectors)
        embedded = await memory.ingest.index(memory.scope)
    finally:
        await memory.close()
    data = {"records": count, "embedded": embedded}
    common.show(data, lambda out: out.print(f"{count} records indexed, {embedded} embedded"))


async def work(common: Common) -> None:
    """Do the work that is owed (notes, summaries, profiles), also what was given up, then end."""
    from nyima.cli.chat import drain_with_progress
    from nyima.cli.common import ensure_packs
    from nyima.memory import Memory

    settings = common.settings()
    ensure_packs(settings, "embed")
    memory = await Memory.open(settings.where, user=settings.user, embedder=settings.embedder)
    try:
        await memory.ingest.end_silent(memory.scope, memory.recipe)
        waiting = await memory.store.jobs(memory.scope, ("queued", "leased", "parked"))
        needs_model = {job.kind for job in waiting} - set(memory.registry.without_model())
    finally:
        await memory.close()
    if needs_model:  # the model is large: it is fetched where something is to be done with it
        ensure_packs(settings, "chat")
    model = None if needs_model else "none"
    memory = await Memory.open(settings.where, user=settings.user, model=model, embedder=settings.embedder)
    try:
        for job in await memory.store.jobs(memory.scope, ("parked",)):
            await memory.store.requeue(memory.scope, job.id)
        done = await drain_with_progress(memory.drain)
    finally:
        await memory.close()
    common.show(done, lambda out: out.print(", ".join(f"{n} {what}" for what, n in done.items())))


async def doctor(common: Common) -> None:
    """Check the file, the models and the machine, and say what to do."""
    from nyima.app.environment import shelf
    from nyima.models.packs import packs

    settings = common.settings()
    rows: list[dict[str, Any]] = []

    def add(what: str, good: bool, detail: str) -> None:
        rows.append({"check": what, "ok": good, "detail": detail})

    add("python", sys.version_info >= (3, 11), sys.version.split()[0])
    add(
        "sqlite",
        True,
        f"{sqlite3.sqlite_version} ({'erases words at once' if sqlite3.sqlite_version_info >= (3, 42) else 'rebuilds words after an erase'})",
    )
    held = shelf(settings)
    for name in dict.fromkeys(n for n in (settings.embedder, settings.model or "qwen2.5-coder-1.5b") if n in packs()):
        present = held.present(held.pack(name))
        add(f"pack {name}", present, "here" if present else f"missing: run `nyima models pull {name}`")
    if settings.store or settings.db.exists():
        memory = await common.memory(embedder="none")
        try:
            jobs = await memory.store.jobs(memory.scope, ("queued", "leased", "parked"))
            parked = [j for j in jobs if j.state == "parked"]
            turns = len(await memory.turns())
            add(
                "memory",
                True,
                f"{settings.shown()['store'] or settings.db}: {turns} turns, {len(await memory.records())} records",
            )
            failed = next((j for j in (*parked, *jobs) if j.error), None)
            why = f": {failed.kind}: {failed.error}" if failed else ""
            add("work owed", not parked, f"{len(jobs)} jobs, {len(parked)} given up{why}")
            state = await memory.store.check()
            add("file", state == "ok", state)
        finally:
            await memory.close()
    else:
        add("memory", True, f"{settings.db} does not exist yet")
    bad = [r for r in rows if not r["ok"]]

    def text(out: Console) -> None:
        for row in rows:
            out.print(f"{'ok ' if row['ok'] else 'BAD'}  {row['check']:26} {row['detail']}", markup=False)

    common.show({"checks": rows, "ok": not bad}, text)
    if bad:
        raise typer.Exit(1)


async def config_show(
    common: Common, origin: Annotated[bool, typer.Option("--origin", help="Also where each value comes from.")] = False
) -> None:
    """Show the settings; a key is never shown."""
    settings = common.settings()
    shown = settings.shown()
    rows = {k: {"value": v, "origin": settings.origin.get(k, "default")} for k, v in shown.items()}

    def text(out: Console) -> None:
        for name, row in rows.items():
            out.print(f"{name:16} {row['value']}" + (f"    ({row['origin']})" if origin else ""), markup=False)

    common.show(rows if origin else shown, text)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    models = typer.Typer(help="Model weights on this machine.", no_args_is_help=True)
    command(models, "list", "nyima models list")(models_list)
    command(models, "pull", "nyima models pull minilm-l6-int8")(models_pull)
    command(models, "verify", "nyima models verify minilm-l6-int8")(models_verify)
    command(models, "remove", "nyima models remove smollm2-135m")(models_remove)
    app.add_typer(models, name="models")
    command(app, "reindex", "nyima reindex --vectors")(reindex)
    command(app, "work", "nyima work")(work)
    command(app, "doctor", "nyima doctor")(doctor)
    config = typer.Typer(help="Settings.", no_args_is_help=True)
    command(config, "show", "nyima config show --origin")(config_show)
    app.add_typer(config, name="config")
