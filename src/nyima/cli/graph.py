"""The commands that show the graph and change it by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.common import Common, command, parse_date
from nyima.domain.conversation import iso

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
    from nyima.mechanisms.graph.draw import as_dot, as_html, as_svg, as_tree, relation_to_json
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
    names = {id: e.name for id, e in found.entities.items()}
    data = {
        "root": root.name,
        "entities": [{"id": id, "name": e.name, "aliases": list(e.aliases)} for id, e in found.entities.items()],
        "relations": [relation_to_json(r, names) for r in found.relations],
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
    for relation in found.relations:
        explained = await memory.explain(relation.id)
        said = [f"{t.at:%-d %b %Y}  {t.name}: {t.text}" for t in explained.turns]
        before = [f"before: {r.text}" for r in explained.history]
        lines[relation.id] = [relation.text, *said, *before, relation.id]
    for id, name in names.items():
        lines[id] = [name, *(r.text for r in found.relations if id in {r.head, r.tail}), id]
    return lines


async def history(
    common: Common, query: Annotated[str, typer.Argument(help="What about, such as 'EK349 departs'.")]
) -> None:
    """Show every value of a claim: when it held, who said it, and when it was learned."""
    from nyima.mechanisms.graph.look import history_of

    memory = await common.memory(embedder="none")
    try:
        values = await history_of(memory, query)
    finally:
        await memory.close()
    rows = [_value(v) for v in values]

    def text(out: Console) -> None:
        first = values[0]
        out.print(f"{first.head}  {first.relation.label.replace('_', ' ')}", markup=False)
        for value, row in zip(values, rows, strict=True):
            until = str(row["valid_to"] or "")[:16] or "now"
            mark = "not known any more" if value.relation.stale else ""
            out.print(f"  {str(row['valid_from'])[:16]} to {until:16}  {value.tail}  {mark}", markup=False)
            for turn in value.turns:
                out.print(f"      {turn.at:%-d %b %Y %H:%M}  {turn.name}: {turn.text}", markup=False)
            out.print(
                f"      learned {str(row['recorded'])[:16]}"
                + (f", retired {str(row['retired'])[:16]}" if row["retired"] else "")
            )

    common.show({"claim": [values[0].head, values[0].relation.label], "values": rows}, text)


def _value(value: Value) -> dict[str, Any]:
    relation = value.relation
    return {
        "id": relation.id, "value": value.tail, "note": relation.note, "valid_from": iso(relation.valid.since),
        "valid_to": iso(relation.valid.until), "recorded": iso(relation.recorded.since),
        "retired": iso(relation.recorded.until), "stale": relation.stale,
        "said": [{"turn": t.id, "by": t.name, "at": iso(t.at), "text": t.text} for t in value.turns],
    }  # fmt: skip


async def relate(
    common: Common,
    head: Annotated[str, typer.Argument(help="Who or what: user, user's dog, Ana.")],
    label: Annotated[str, typer.Argument(help="The relation, such as lives_in.")],
    tail: Annotated[str, typer.Argument(help="The value.")],
    note: Annotated[str, typer.Option("--note", help="The sentence that it stands for.")] = "",
    until: Annotated[str | None, typer.Option("--until", help="The last day on which it holds.")] = None,
    rests_on: Annotated[list[str] | None, typer.Option("--rests-on", help="The id of what it rests on.")] = None,
) -> None:
    """State a relation by hand; where one value holds at a time, the old one is closed."""
    from nyima.mechanisms.by_hand import Link

    memory = await common.memory(embedder="none")
    try:
        rests = tuple([(await memory.record(id)).id for id in rests_on or ()])
        made = await memory.relate(Link(head, label, tail, note, until=parse_date(until, memory.zone), rests=rests))
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


async def retire(common: Common, id: Annotated[str, typer.Argument(help="A relation, a fact or a note.")]) -> None:
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
    command(group, "relate", 'nyima graph relate user drives "Skoda Octavia"')(relate)
    command(group, "merge", 'nyima graph merge Bob "user\'s boss"')(merge)
    command(group, "retire", "nyima graph retire r-1a2b3c")(retire)
    app.add_typer(group, name="graph")
