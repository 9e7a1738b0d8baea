"""The commands that show the graph and change it by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.common import Common, command, parse_date
from nyima.domain.conversation import iso
from nyima.read.trace import claim_to_json

if TYPE_CHECKING:
    from rich.console import Console

    from nyima.mechanisms.graph.look import Neighbourhood, Value
    from nyima.memory import Memory

__all__ = ["add_to"]


async def show(
    common: Common,
    name: Annotated[str, typer.Argument(help="A person or a thing; nothing for yourself.")] = "user",
    depth: Annotated[int, typer.Option("--depth", min=1, max=5, help="How many steps to go.")] = 2,
    every: Annotated[bool, typer.Option("--all", help="Also what is over.")] = False,
    dot: Annotated[Path | None, typer.Option("--dot", help="Write a Graphviz file.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write a drawing.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page to zoom and click.")] = None,
) -> None:
    """Show what is known around a person or a thing, as a tree or in a file."""
    from nyima.mechanisms.graph.draw import as_dot, as_html, as_svg, as_tree
    from nyima.mechanisms.graph.look import entity_named, neighbourhood

    memory = await common.memory(embedder="none")
    try:
        root = await entity_named(memory, name)
        found = await neighbourhood(memory, root, depth, retired=every)
        details = await _details(memory, found) if html is not None else {}
    finally:
        await memory.close()
    files = ((dot, as_dot(found)), (svg, as_svg(found)), (html, as_html(found, details)))
    for path, drawn in files:
        if path is not None:
            path.write_text(drawn, "utf-8")
    data = {
        "root": root.name,
        "entities": [{"id": id, "name": e.name, "aliases": list(e.aliases)} for id, e in found.entities.items()],
        "claims": [claim_to_json(c) for c in found.claims],
    }

    def text(out: Console) -> None:
        for path, _ in files:
            if path is not None:
                out.print(f"wrote {path}", markup=False)
        for level, line, id in as_tree(found):
            out.print("  " * level + line + "  ", markup=False, end="")
            out.print(f"[dim]{id}[/]")

    common.show(data, text)


async def _details(memory: Memory, found: Neighbourhood) -> dict[str, list[str]]:
    """What a click shows: the note, who said it when, and the earlier values."""
    lines: dict[str, list[str]] = {}
    names = {id: e.name for id, e in found.entities.items()}
    for claim in found.claims:
        explained = await memory.explain(claim.id)
        said = [f"{t.at:%-d %b %Y}  {t.name}: {t.text}" for t in explained.turns]
        before = [f"before: {r.text}" for r in explained.history]
        lines[claim.id] = [claim.text, *said, *before, claim.id]
    for id, name in names.items():
        lines[id] = [name, *(r.text for r in found.claims if id in {r.subject, r.object}), id]
    return lines


async def history(
    common: Common, query: Annotated[str, typer.Argument(help="What about, such as 'EK349 departs'.")]
) -> None:
    """Show every value of an attribute: when it held, who said it, and when it was learned."""
    from nyima.mechanisms.graph.look import history_of

    memory = await common.memory(embedder="none")
    try:
        values = await history_of(memory, query)
    finally:
        await memory.close()
    rows = [_value(v) for v in values]

    def text(out: Console) -> None:
        out.print(f"{values[0].claim.name}  {values[0].claim.attribute}", markup=False)
        for value, row in zip(values, rows, strict=True):
            until = str(row["valid_to"] or "")[:16] or "now"
            since = str(row["valid_from"])[:16]
            out.print(f"  {since} to {until:16}  {value.claim.value}  {row['label']}", markup=False)
            for turn in value.turns:
                out.print(f"      {turn.at:%-d %b %Y %H:%M}  {turn.name}: {turn.text}", markup=False)
            out.print(
                f"      learned {str(row['recorded'])[:16]}"
                + (f", retired {str(row['retired'])[:16]}" if row["retired"] else "")
            )

    common.show({"slot": [values[0].claim.name, values[0].claim.attribute], "values": rows}, text)


def _value(value: Value) -> dict[str, Any]:
    said = [{"turn": t.id, "by": t.name, "at": iso(t.at), "text": t.text} for t in value.turns]
    return claim_to_json(value.claim) | {"said": said}


async def state(
    common: Common,
    subject: Annotated[str, typer.Argument(help="Who or what: user, dog, Ana.")],
    attribute: Annotated[str, typer.Argument(help="What is said of it, such as 'lives in'.")],
    value: Annotated[str, typer.Argument(help="The value.")],
    replaces: Annotated[list[str] | None, typer.Option("--replaces", help="The id of a claim that ends.")] = None,
    until: Annotated[str | None, typer.Option("--until", help="The last day on which it holds.")] = None,
    depends_on: Annotated[list[str] | None, typer.Option("--depends-on", help="The id of what it depends on.")] = None,
) -> None:
    """State a claim by hand, beside what holds already or in the place of it."""
    from nyima.mechanisms.by_hand import Statement

    memory = await common.memory(embedder="none")
    try:
        depends = tuple([(await memory.record(id)).id for id in depends_on or ()])
        ends = [(await memory.record(id)).id for id in replaces or ()]
        said = Statement(subject, attribute, value, until=parse_date(until, memory.zone), depends_on=depends)
        made = await memory.state(said, replaces=ends)
    finally:
        await memory.close()
    common.show({"id": made.id, "text": made.text}, lambda out: out.print(f"{made.id}: {made.text}", markup=False))


async def merge(
    common: Common,
    one: Annotated[str, typer.Argument(help="The name or id that stays.")],
    other: Annotated[str, typer.Argument(help="The name or id that is the same.")],
) -> None:
    """Say that two entities are one; `nyima undo` takes it back."""
    from nyima.mechanisms.graph.look import entity_named

    memory = await common.memory(embedder="none")
    try:
        first, second = await entity_named(memory, one), await entity_named(memory, other)
        made = await memory.merge(first.id, second.id)
    finally:
        await memory.close()
    common.show({"id": made.id, "text": made.text}, lambda out: out.print(made.text, markup=False))


async def retire(common: Common, id: Annotated[str, typer.Argument(help="A claim or a note.")]) -> None:
    """End the belief in a record; it stays in history, and what rests on it becomes uncertain."""
    memory = await common.memory(embedder="none")
    try:
        record = await memory.record(id)
        await memory.retire(record.id)
    finally:
        await memory.close()
    common.show({"retired": record.id}, lambda out: out.print(f"retired: {record.text}", markup=False))


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="Look at the memory graph, and change it by hand.", no_args_is_help=True)
    command(group, "show", "nyima graph show boss --html boss.html")(show)
    command(group, "history", 'nyima graph history "EK349 departs"')(history)
    command(group, "state", 'nyima graph state user drives "Skoda Octavia"')(state)
    command(group, "merge", 'nyima graph merge Bob "user\'s boss"')(merge)
    command(group, "retire", "nyima graph retire c-1a2b3c")(retire)
    app.add_typer(group, name="graph")
