"""The commands that remember, recall, explain and change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.interfaces.cli.common import Common, command, console, parse_date
from nyima.interfaces.cli.why import show_evidence
from nyima.traces import evidence_to_dict, iso, plan_to_list, receipt_to_dict, record_to_json

if TYPE_CHECKING:
    from rich.console import Console

    from nyima.engines.cascade import Receipt

__all__ = ["add_to", "show_receipt"]

_Kind = Annotated[list[str] | None, typer.Option("--kind", help="episode, note, summary or fact; may be repeated.")]
_AsOf = Annotated[str | None, typer.Option("--as-of", help="What was true on that day.")]


def show_receipt(out: Console, receipt: Receipt) -> None:
    """The receipt as lines."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(receipt.erased.items())) or "no record"
    out.print(f"erased    {kinds}, {receipt.turns} turns")
    also = ", ".join(f"{count} {what}" for what, count in receipt.also.items() if count)
    out.print(f"also      {also or 'nothing else'}; {receipt.rederived} derived again without it")
    out.print(f"checked   {receipt.files_scanned} files, {receipt.bytes_found} bytes of it left")


async def remember(
    common: Common,
    text: Annotated[str | None, typer.Argument(help="What to keep, in your words.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="A text file: each paragraph is kept.")] = None,
    image: Annotated[
        Path | None, typer.Option("--image", help="A screenshot: its text is read and kept as quoted.")
    ] = None,
) -> None:
    """Keep a text, a text file or what a screenshot says, without any chat model."""
    from nyima.interfaces.reading import said_in

    said = said_in(text, file, image)
    memory = await common.memory()
    try:
        done = [await memory.remember(one) for one in said]
        await memory.end_session()
        await memory.drain()
    finally:
        await memory.close()
    records = [id for one in done for id in one.records]
    data = {"turn": done[0].turns[0].id, "records": records}
    common.show(data, lambda out: out.print(f"remembered as {', '.join(records)}"))


async def recall(
    common: Common,
    query: Annotated[str, typer.Argument(help="What to look for.")],
    k: Annotated[int, typer.Option("--k", min=1, max=1000, help="How many pieces at most.")] = 10,
    as_of: _AsOf = None,
    kind: _Kind = None,
    recipe: Annotated[str | None, typer.Option("--recipe", help="Another recipe.")] = None,
) -> None:
    """Find what is remembered, by words and by meaning, without a chat model."""
    from nyima.domain.evidence import Budget

    memory = await common.memory(recipe=recipe)
    try:
        found = await memory.recall(query, Budget(k, 1_000_000), as_of=parse_date(as_of), kinds=kind or ())
    finally:
        await memory.close()
    kept = [evidence_to_dict(e) for e in found.kept]
    ms = {name: found.ms[name] for name in ("embed", "search", "total")}
    data = {"query": query, "plan": plan_to_list(found), "kept": kept, "ms": ms}
    common.show(data, lambda out: show_evidence(out, kept))


async def profile(common: Common) -> None:
    """Show what is known of you as keys and values."""
    memory = await common.memory(embedder="none")
    try:
        known = await memory.profile()
    finally:
        await memory.close()
    facts: list[dict[str, Any]] = [
        {
            "id": f.id,
            "key": f.key,
            "value": f.value,
            "turns": list(f.provenance.turns),
            "valid_from": iso(f.valid.since),
        }
        for f in known.facts
    ]

    def text(out: Console) -> None:
        if not facts:
            out.print("nothing is known yet")
        for fact in facts:
            out.print(f"{fact['key'].replace('_', ' '):20} {fact['value']}  ", markup=False, end="")
            out.print(f"[dim]{fact['id']}[/]")

    common.show({"profile": known.as_dict(), "facts": facts}, text)


async def memories(
    common: Common,
    kind: _Kind = None,
    as_of: _AsOf = None,
    every: Annotated[bool, typer.Option("--all", help="Also what is retired.")] = False,
) -> None:
    """List what is remembered."""
    memory = await common.memory(embedder="none")
    try:
        found = await memory.records(kinds=kind or (), as_of=parse_date(as_of), retired=every)
    finally:
        await memory.close()
    rows = [record_to_json(r) for r in found]

    def text(out: Console) -> None:
        for row in rows:
            mark = "×" if row["retired"] else " "
            out.print(f"{mark} {row['kind']:8} {row['valid_from'][:10]}  ", end="")
            out.print(" ".join(row["text"].split()), markup=False, end="")
            out.print(f"  [dim]{row['id']}[/]")
        out.print(f"{len(rows)} records")

    common.show({"records": rows}, text)


async def revise(
    common: Common,
    id: Annotated[str, typer.Argument(help="A fact, a note or a summary.")],
    text: Annotated[str, typer.Argument(help="The new value or text.")],
) -> None:
    """Correct a fact, a note or a summary; the old one stays in history."""
    memory = await common.memory(embedder="none")
    try:
        new = await memory.revise(id, text)
    finally:
        await memory.close()
    row = record_to_json(new)
    common.show({"record": row}, lambda out: out.print(f"{row['id']}: {row['text']}", markup=False))


async def forget(
    common: Common,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Records to erase.")] = None,
    query: Annotated[str | None, typer.Option("--query", help="Erase what this finds.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="Erase a whole conversation.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Erase everything of this user.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Erase for good, with all that was derived from it, and print a receipt."""
    memory = await common.memory(embedder=None if query else "none")
    try:
        if not yes:
            out = console(err=True)
            if query:
                found = await memory.meant(query)
                show_evidence(out, [evidence_to_dict(e) for e in found])
            for id in ids or ():
                out.print((await memory.record(id)).text, markup=False)
            what = "everything" if every else f"session {session}" if session else "this"
            if not typer.confirm(f"Erase {what} for good, with the turns it came from?", err=True):
                raise typer.Exit(1)
        receipt = await memory.forget(*(ids or ()), query=query, session=session, everything=every)
    finally:
        await memory.close()
    common.show(receipt_to_dict(receipt), lambda out: show_receipt(out, receipt))


async def undo(common: Common) -> None:
    """Take back the last change of the memory. An erase cannot be taken back."""
    memory = await common.memory(embedder="none")
    try:
        rows = await memory.undo()
    finally:
        await memory.close()
    data = {"undone": [{"verb": r.verb, "id": r.id, "successor": r.successor, "by": r.by} for r in rows]}
    common.show(data, lambda out: out.print("undone: " + ", ".join(f"{r.verb} {r.id}" for r in rows)))


async def sessions(common: Common) -> None:
    """List the conversations."""
    memory = await common.memory(embedder="none")
    try:
        rows = [
            {
                "id": s.id,
                "started": iso(s.started),
                "ended": iso(s.ended),
                "title": s.title,
                "turns": len(await memory.turns(s.id)),
            }
            for s in await memory.sessions()
        ]
    finally:
        await memory.close()

    def text(out: Console) -> None:
        for row in rows:
            state = "ended" if row["ended"] else "open "
            out.print(
                f"{str(row['started'])[:16]}  {state}  {row['turns']:5} turns  {row['id']}  {row['title']}",
                markup=False,
            )
        out.print(f"{len(rows)} sessions")

    common.show({"sessions": rows}, text)


async def stats(common: Common) -> None:
    """Show records per utterance and mean length by kind, calls, tokens and jobs."""
    from nyima.statistics import statistics

    memory = await common.memory(embedder="none")
    try:
        data = await statistics(memory)
    finally:
        await memory.close()

    def text(out: Console) -> None:
        for kind, row in data["records"].items():
            out.print(
                f"{kind:8} {row['count']:7,}  {row['per_utterance']:.2f} per utterance  {row['mean_words']:.1f} words"
            )
        calls, tokens = data["calls"], data["tokens"]
        out.print(f"calls    {calls['count']:7,}  fallbacks {calls['fallbacks']}, failures {calls['failed']}")
        out.print(
            f"tokens   prompt {tokens['prompt']:,} (cached {tokens['cached']:,}), completion {tokens['completion']:,}"
        )
        out.print("jobs     " + (", ".join(f"{n} {state}" for state, n in data["jobs"].items()) or "none"))

    common.show(data, text)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "remember", 'nyima remember "My flight is on 3 May at 9:40"')(remember)
    command(app, "recall", 'nyima recall "when is my flight" --k 5')(recall)
    command(app, "profile", "nyima profile --json")(profile)
    command(app, "memories", "nyima memories --kind note --as-of 2026-05-01")(memories)
    command(app, "revise", 'nyima revise f-1a2b3c "Porto"')(revise)
    command(app, "forget", 'nyima forget --query "my old job"')(forget)
    command(app, "undo", "nyima undo")(undo)
    command(app, "sessions", "nyima sessions")(sessions)
    command(app, "stats", "nyima stats --json")(stats)
