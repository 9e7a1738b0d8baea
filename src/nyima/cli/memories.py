"""The commands that remember, recall, explain and change."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from nyima.change.as_json import change_to_dict, receipt_to_dict
from nyima.cli.common import Common, command, console, parse_date
from nyima.cli.why import show_evidence
from nyima.domain.conversation import iso
from nyima.domain.records import Claim, Status
from nyima.read.trace import claim_to_json, evidence_to_dict, plan_to_list, record_to_json

if TYPE_CHECKING:
    from rich.console import Console

    from nyima.change.cascade import Forgetting, Receipt
    from nyima.change.undo import LoggedChange
    from nyima.memory import Memory

__all__ = ["add_to", "show_forgetting", "show_receipt"]

_MOST_SHOWN = 20

_Kind = Annotated[list[str] | None, typer.Option("--kind", help="episode, note, summary or claim; may be repeated.")]
_AsOf = Annotated[str | None, typer.Option("--as-of", help="What was true on that day.")]


def show_receipt(out: Console, receipt: Receipt) -> None:
    """The receipt as lines."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(receipt.erased.items())) or "no record"
    out.print(f"erased    {kinds}, {receipt.turns} turns")
    also = ", ".join(f"{count} {what}" for what, count in receipt.also.items() if count)
    out.print(f"also      {also or 'nothing else'}; {receipt.rederived} derived again without it")
    out.print(f"checked   {receipt.files_scanned} files, {receipt.bytes_found} bytes of it left")
    if receipt.still_said:
        turns = ", ".join(receipt.still_said)
        out.print(f"kept      what you said still says it ({turns}): `nyima forget` without --only takes that, too")


def show_forgetting(out: Console, going: Forgetting) -> None:
    """What an erase would take, line by line."""
    for turn in going.turns[:_MOST_SHOWN]:
        out.print(f"said      {turn.at:%Y-%m-%d}  {turn.name}: {' '.join(turn.text.split())[:160]}", markup=False)
    shown = [r for r in going.records if r.kind not in {"episode", "entity"}]
    for record in shown[:_MOST_SHOWN]:
        out.print(f"{record.kind:9} {record.valid.since:%Y-%m-%d}  {' '.join(record.text.split())[:160]}", markup=False)
    more = max(0, len(going.turns) - _MOST_SHOWN) + max(0, len(shown) - _MOST_SHOWN)
    if more:
        out.print(f"          and {more} more")
    for turn in going.kept[:_MOST_SHOWN]:
        out.print(f"stays     {turn.at:%Y-%m-%d}  {turn.name}: {' '.join(turn.text.split())[:160]}", markup=False)


def show_change(out: Console, change: LoggedChange) -> None:
    """One line of the log."""
    undo = f"   undo: nyima undo {change.id}" if change.undoable else ""
    out.print(f"{change.at.astimezone():%Y-%m-%d %H:%M}  {str(change)[:200]}{undo}", markup=False)


async def remember(
    common: Common,
    text: Annotated[str | None, typer.Argument(help="What to keep, in your words.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="A text file: each paragraph is kept.")] = None,
    image: Annotated[
        Path | None, typer.Option("--image", help="A screenshot: its text is read and kept as quoted.")
    ] = None,
) -> None:
    """Keep a text, a text file or what a screenshot says. A chat model that is set reads it at once; else it
    waits for one."""
    from nyima.transfer.screenshots import said_in

    said = said_in(text, file, image)
    settings = common.settings()
    memory = await common.memory(model=settings.model if settings.model and settings.base_url else "none")
    try:
        done = [await memory.remember(one) for one in said]
        await memory.end_session()
        await memory.drain()
        unread = await memory.unread()
    finally:
        await memory.close()
    records = [id for one in done for id in one.records]
    data = {"turn": done[0].turns[0].id, "records": records, "read": unread == 0}

    def shown(out: Console) -> None:
        out.print(f"remembered as {', '.join(records)}")
        _tell_unread(out, unread)

    common.show(data, shown)


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
        found = await memory.recall(query, Budget(k, 1_000_000), as_of=parse_date(as_of, memory.zone), kinds=kind or ())
    finally:
        await memory.close()
    for what, why in found.failed.items():
        console(err=True).print(f"{what}: {why}", markup=False)
    kept = [evidence_to_dict(e) for e in found.kept]
    ms = {name: found.ms[name] for name in ("embed", "search", "total")}
    data = {"query": query, "plan": plan_to_list(found), "kept": kept, "ms": ms}
    common.show(data, lambda out: show_evidence(out, kept))


async def profile(common: Common) -> None:
    """Show what is known of you, and how many messages are not read yet."""
    memory = await common.memory(embedder="none")
    try:
        known = await memory.profile()
        unread = await memory.unread()
        before = await _before(memory, known.claims)
        waiting = sum(c.status is Status.PENDING for c in await memory.claims())
    finally:
        await memory.close()

    def text(out: Console) -> None:
        if not known.claims:
            out.print("nothing is known yet")
        for claim in known.claims:
            since = f"since {claim.valid.since.astimezone():%-d %b %Y}"
            earlier = f"; before: {before[claim.id]}" if claim.id in before else ""
            out.print(f"{claim.attribute:20} {claim.value}  ", markup=False, end="")
            out.print(f"[dim]{since}{escape(earlier)}  {claim.id}[/]")
        _tell_unread(out, unread)
        if waiting:
            out.print(f"{waiting} wait for your word: `nyima claims`, then `nyima confirm`")

    claims = [claim_to_json(c) for c in known.claims]
    common.show({"profile": known.as_dict(), "claims": claims, "unread": unread}, text)


async def _before(memory: Memory, claims: Sequence[Claim]) -> dict[str, str]:
    """The values that each claim replaced, in its slot."""
    found: dict[str, str] = {}
    for claim in claims:
        history = (await memory.explain(claim.id)).history if claim.supersedes else ()
        older = next((r.value for r in history if isinstance(r, Claim) and r.value != claim.value), "")
        if older:
            found[claim.id] = older
    return found


def _tell_unread(out: Console, unread: int) -> None:
    if unread:
        out.print(
            f"{unread} {'message is' if unread == 1 else 'messages are'} not read yet: `nyima work` reads them with a model"
        )


async def claims(
    common: Common,
    about: Annotated[str | None, typer.Option("--about", help="A subject: user, dog, Ana.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Also what was closed.")] = False,
    as_of: _AsOf = None,
) -> None:
    """List what is believed, with its words, its state, and how many messages are not read yet."""
    memory = await common.memory(embedder="none")
    try:
        found = await memory.claims(about, as_of=parse_date(as_of, memory.zone), every=every)
        unread = await memory.unread()
        turns = {t.id: t for t in await memory.turns()}
    finally:
        await memory.close()
    after = {c.supersedes: c.id for c in found if c.supersedes}
    rows: list[dict[str, Any]] = []
    for claim in found:
        row = claim_to_json(claim, after.get(claim.id))
        quote = claim.quote
        said = turns.get(quote.turn) if quote is not None else None
        row["quote"] = said.text[quote.start : quote.end] if quote is not None and said is not None else ""
        rows.append(row)

    def text(out: Console) -> None:
        for row in rows:
            label = f" ({row['label']})" if row["label"] else ""
            out.print(
                f"{row['valid_from'][:10]}  {row['subject']} {row['attribute']}: {row['value']}{label}  ",
                markup=False,
                end="",
            )
            out.print(f"[dim]{row['id']}[/]")
        if not rows:
            out.print("nothing is claimed yet")
        _tell_unread(out, unread)

    common.show({"claims": rows, "unread": unread}, text)


async def confirm(
    common: Common,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Claims; without one, all that wait.")
    ] = None,
) -> None:
    """Confirm claims that wait for your word, were planned, or are uncertain."""
    memory = await common.memory(embedder="none")
    try:
        done = await memory.confirm(*(ids or ()))
    finally:
        await memory.close()

    def text(out: Console) -> None:
        for claim in done:
            out.print(f"{claim.id}: {claim.text}", markup=False)
        if not done:
            out.print("nothing waits for a confirmation")

    common.show({"claims": [claim_to_json(c) for c in done]}, text)


async def memories(
    common: Common,
    kind: _Kind = None,
    as_of: _AsOf = None,
    every: Annotated[bool, typer.Option("--all", help="Also what is retired.")] = False,
) -> None:
    """List what is remembered."""
    memory = await common.memory(embedder="none")
    try:
        found = await memory.records(kinds=kind or (), as_of=parse_date(as_of, memory.zone), retired=every)
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
    id: Annotated[str, typer.Argument(help="A claim, a note or a summary.")],
    text: Annotated[str, typer.Argument(help="The new value or text.")],
) -> None:
    """Correct a claim, a note or a summary; the old one stays in history."""
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
    only: Annotated[bool, typer.Option("--only", help="Keep the turns that they came from.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Erase for good, with all that was derived from it, and print a receipt. It lists what goes
    before it asks."""
    memory = await common.memory(embedder=None if query else "none")
    try:
        if not yes:
            going = await memory.would_forget(*(ids or ()), query=query, session=session, everything=every, only=only)
            show_forgetting(console(err=True), going)
            what = "everything" if every else "this"
            if not typer.confirm(f"Erase {what} for good?", err=True):
                raise typer.Abort
        receipt = await memory.forget(*(ids or ()), query=query, session=session, everything=every, only=only)
    finally:
        await memory.close()
    common.show(receipt_to_dict(receipt), lambda out: show_receipt(out, receipt))


async def log(
    common: Common,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many changes at most.")] = 20,
) -> None:
    """List what was learned, changed and taken back, newest first, with the id for `undo`."""
    memory = await common.memory(embedder="none")
    try:
        changes = await memory.log(limit)
    finally:
        await memory.close()

    def text(out: Console) -> None:
        for change in changes:
            show_change(out, change)
        if not changes:
            out.print("nothing was changed yet")

    common.show({"changes": [change_to_dict(c) for c in changes]}, text)


async def undo(
    common: Common,
    id: Annotated[str | None, typer.Argument(help="A change's id from `nyima log`; without it the last one.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take back one change. It says which before it does; `nyima redo` brings it back."""
    memory = await common.memory(embedder="none")
    try:
        change = await memory.undoable(id)
        if not common.json:
            console().print(f"undo      {change}", markup=False)
        if not yes and not common.json and sys.stdin.isatty() and not typer.confirm("Take this back?", err=True):
            raise typer.Abort
        done = await memory.undo(change.id)
    finally:
        await memory.close()
    common.show({"undone": change_to_dict(done)}, lambda out: out.print("taken back; `nyima redo` brings it back"))


async def redo(common: Common) -> None:
    """Bring back what the last undo took."""
    memory = await common.memory(embedder="none")
    try:
        done = await memory.redo()
    finally:
        await memory.close()
    common.show({"redone": change_to_dict(done)}, lambda out: out.print(f"done again: {done}", markup=False))


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
    from nyima.services.counts import statistics

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
    command(app, "claims", "nyima claims --about dog --all")(claims)
    command(app, "confirm", "nyima confirm c-1a2b3c")(confirm)
    command(app, "memories", "nyima memories --kind note --as-of 2026-05-01")(memories)
    command(app, "revise", 'nyima revise c-1a2b3c "Porto"')(revise)
    command(app, "forget", 'nyima forget --query "my old job"')(forget)
    command(app, "log", "nyima log --limit 5")(log)
    command(app, "undo", "nyima undo 31")(undo)
    command(app, "redo", "nyima redo")(redo)
    command(app, "sessions", "nyima sessions")(sessions)
    command(app, "stats", "nyima stats --json")(stats)
