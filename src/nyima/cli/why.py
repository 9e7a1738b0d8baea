"""The command that shows why, and the lines that it shares with others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.common import Common, command
from nyima.domain.conversation import iso
from nyima.read.trace import record_to_json

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["add_to", "show_evidence", "show_trace"]

_DROPPED = 5


def show_evidence(out: Console, pieces: list[dict[str, Any]]) -> None:
    """Evidence as lines: score, source, day, text."""
    if not pieces:
        out.print("nothing to the point is remembered")
    for piece in pieces:
        out.print(f"{piece['score']:.2f}  {piece['source']:9} {piece['valid_from'][:10]}  ", end="")
        out.print(_quote(piece), markup=False, end="")
        out.print(f"{_label(piece)}  [dim]{piece['id']}[/]")


def _quote(piece: dict[str, Any]) -> str:
    text = " ".join(piece["text"].split())
    return f'{piece["place"]} "{text}"' if piece.get("place") else text


def _label(piece: dict[str, Any]) -> str:
    from rich.markup import escape

    if piece.get("superseded"):
        what = f": {', '.join(piece['ended'])}" if piece.get("ended") else ""
        rest = "; the rest is not known any more" if piece.get("stale") else ""
        return f" [yellow](no longer true since {piece['superseded'][:10]}{escape(what)}{rest})[/]"
    return f" [yellow](not known any more since {piece['stale'][:10]})[/]" if piece.get("stale") else ""


def show_trace(out: Console, trace: dict[str, Any], turns: Mapping[str, int] | None = None) -> None:
    """A recall's whole trace; ``turns`` are the numbers of turns by id."""
    out.print("query     ", end="")
    out.print(trace["query"], markup=False)
    _plan(out, trace)
    if trace["keywords"]:
        out.print("searched again with " + ", ".join(trace["keywords"]), markup=False)
    kept = {e["id"] for e in trace["kept"]}
    numbers = {id: i for i, id in enumerate(trace.get("shown") or [], 1)}
    _pieces(out, "evidence", trace["kept"], turns or {}, numbers)
    dropped = [e for e in trace["found"] if e["id"] not in kept]
    _pieces(out, "dropped", dropped[:_DROPPED], turns or {})
    if len(dropped) > _DROPPED:
        out.print(f"          and {len(dropped) - _DROPPED} more")
    _critic(out, trace)
    for source, problem in trace["failed"].items():
        out.print(f"[red]left out[/]  {source}: ", end="")
        out.print(problem, markup=False)
    again = f", searched {trace['rounds']} more times" if trace["rounds"] else ""
    out.print(f"prompts   {', '.join(trace['prompts']) or 'none'}    {trace['ms'].get('total', 0):.0f} ms{again}")


def _plan(out: Console, trace: dict[str, Any]) -> None:
    """The sources in the order in which they were asked, an arrow where some need others."""
    steps = trace["plan"]
    last = [s["source"] for s in steps if s.get("after")]
    first = [s["source"] for s in steps if not s.get("after")]
    asked = " → ".join(", ".join(part) for part in (first, last) if part) or "nothing (NULL)"
    notes = [f"not asked: {', '.join(trace['skipped'])}"] if trace.get("skipped") else []
    if trace.get("planner"):
        notes.append(f"planner: {trace['planner']}, {trace['ms'].get('plan', 0) / 1_000:.2f} s")
    out.print(f"plan      {asked}" + (f"    ({'; '.join(notes)})" if notes else ""), markup=False)


def _pieces(
    out: Console,
    title: str,
    pieces: list[dict[str, Any]],
    turns: Mapping[str, int],
    numbers: Mapping[str, int] | None = None,
) -> None:
    """A line a piece; ``numbers`` are those that the reply may have cited."""
    if not pieces and title == "evidence":
        out.print("evidence  none")
    for number, piece in enumerate(pieces):
        out.print(f"{title if number == 0 else '':9} {piece['score']:.1f}  {piece['source']:9}  ", end="")
        cited = f"[{numbers[piece['id']]}] " if numbers and piece["id"] in numbers else ""
        out.print(cited + _quote(piece), markup=False, end="")
        out.print(f"{_label(piece)}  [dim]{_origin(piece, turns)}{piece['id']}[/]")


def _origin(piece: dict[str, Any], turns: Mapping[str, int]) -> str:
    number = next((turns[t] for t in piece["turns"] if t in turns), None)
    day = datetime.fromisoformat(piece.get("at") or piece["valid_from"]).strftime("%-d %B")
    return f"turn {number}, {day}  " if number is not None else ""


def _critic(out: Console, trace: dict[str, Any]) -> None:
    """The reviews of the drafts, each round with what it found and replaced."""
    parts: list[str] = []
    numbers = {id: i for i, id in enumerate(trace.get("shown") or [], 1)}
    for number, review in enumerate(trace.get("reviews") or [], 1):
        if review["consistent"]:
            parts.append(f"round {number}: consistent ({review['consistency']:.2f})")
            continue
        low, value = min(review["scores"], key=lambda s: s[1], default=("", 0.0))
        which = f"[{numbers[low]}]" if low in numbers else "what was found"
        parts.append(f"round {number}: draft did not agree with {which} ({value:.2f})")
        parts.append(f"{len(review['replaced'])} replaced" if review["replaced"] else "nothing else to try")
    if parts:
        out.print("critic    " + " → ".join(parts), markup=False)


async def why(
    common: Common, what: Annotated[str, typer.Argument(metavar="[LAST|ID]", help="A reply or a record.")] = "last"
) -> None:
    """Show why: what was asked, found, scored and kept; or where a record comes from."""
    memory = await common.memory(embedder="none")
    try:
        found = await memory.explain(what)
        numbers = {t.id: i for i, t in enumerate(await memory.turns(), 1)} if found.trace is not None else {}
    finally:
        await memory.close()
    if found.trace is not None:
        trace = dict(found.trace)
        common.show(trace, lambda out: show_trace(out, trace, numbers))
        return
    assert found.record is not None
    record = record_to_json(found.record)
    turns: list[dict[str, Any]] = [
        {"id": t.id, "speaker": t.name, "text": t.text, "at": iso(t.at)} for t in found.turns
    ]
    history = [record_to_json(r) for r in found.history]

    def text(out: Console) -> None:
        out.print(f"{record['kind']}  {record['id']}")
        out.print(record["text"], markup=False)
        out.print(
            f"made by {record['writer'] or 'the user'} {record['prompt']} {record['model']}".rstrip(), markup=False
        )
        for turn in turns:
            out.print(f"from {turn['at'][:10]}  {turn['speaker']}: {turn['text']}", markup=False)
        for old in history:
            out.print(f"before, until {(old['valid_to'] or '')[:10]}: {old['text']}", markup=False)

    common.show({"record": record, "turns": turns, "history": history}, text)


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    command(app, "why", "nyima why last")(why)
