"""The commands that do something with a memory: forms, reminders, ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.common import Common, command
from nyima.domain.conversation import iso

if TYPE_CHECKING:
    from rich.console import Console

    from nyima.services import Place

__all__ = ["add_to"]


async def fill(
    common: Common,
    form: Annotated[Path, typer.Argument(help="A JSON Schema or an HTML page.", exists=True, dir_okay=False)],
    out: Annotated[Path | None, typer.Option("--out", help="Write the values as JSON.")] = None,
) -> None:
    """Fill a form with what is known; each field with its evidence; unknown stays empty."""
    from nyima.errors import InputError
    from nyima.services import fill as filled
    from nyima.services import read_form

    try:
        text = form.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{form} is no text: give a JSON Schema or an HTML page") from error
    read = read_form(text)
    memory = await common.memory()
    try:
        found = await filled(memory, read)
    finally:
        await memory.close()
    rows = [
        {
            "field": f.field.name,
            "value": f.value,
            "confidence": f.confidence,
            "evidence": None if f.evidence is None else {"id": f.evidence.id, "text": f.evidence.text},
            "required": f.field.required,
        }
        for f in found
    ]
    if out is not None:
        values = {f.field.name: f.value for f in found if f.value is not None}
        out.write_text(json.dumps(values, ensure_ascii=False, indent=2) + "\n", "utf-8")

    def show(screen: Console) -> None:
        for f in found:
            value = "" if f.value is None else str(f.value)
            screen.print(f"{f.field.name:24} {value:32} ", markup=False, end="")
            missing = "required, not known" if f.field.required else ""
            because = f"{f.confidence:.2f}  {f.evidence.text}" if f.evidence else missing
            screen.print(because, markup=False, style="dim")

    common.show({"form": read.title, "fields": rows}, show)


async def reminders(
    common: Common,
    days: Annotated[int, typer.Option("--days", help="How many days to look ahead.")] = 14,
    ics: Annotated[Path | None, typer.Option("--ics", help="Write an iCalendar file.")] = None,
) -> None:
    """Show what comes up: appointments, trips, birthdays; also as a calendar file."""
    from nyima.services import calendar, upcoming

    memory = await common.memory(embedder="none")
    try:
        found = await upcoming(memory, days)
        zone, now = memory.zone, memory.clock.now()
    finally:
        await memory.close()
    if ics is not None:
        ics.write_bytes(calendar(found, now))
    rows = [
        {
            "title": r.title, "start": r.start.date().isoformat() if r.whole_day else iso(r.start),
            "end": r.end.date().isoformat() if r.whole_day else iso(r.end), "every": r.every,
            "evidence": {"id": r.evidence.id, "text": r.evidence.text},
        }
        for r in found
    ]  # fmt: skip

    def text(out: Console) -> None:
        for r in found:
            start = r.start.astimezone(zone)
            when = start.strftime("%a %-d %b") + ("       " if r.whole_day else start.strftime(" %H:%M "))
            out.print(f"{when:18} {r.title}  ", markup=False, end="")
            out.print(f"[dim]{r.evidence.id}[/]")
        out.print(
            f"{len(found)} in the next {days} days" + (f", written to {ics}" if ics is not None else ""), markup=False
        )

    common.show({"days": days, "reminders": rows}, text)


def _place(place: Place) -> dict[str, Any]:
    return {
        "name": place.name, "address": place.address, "link": place.link, "geo": place.geo,
        "evidence": {"id": place.evidence.id, "text": place.evidence.text},
    }  # fmt: skip


async def travel(common: Common, where: Annotated[str, typer.Argument(help="Where to, such as 'the hotel'.")]) -> None:
    """Give the address of the place that is meant, with a map link; asks when two fit."""
    from nyima.services import destination

    memory = await common.memory(embedder="none")
    try:
        found = await destination(memory, where)
    finally:
        await memory.close()
    data = {
        "place": _place(found.place) if found.place else None,
        "choices": [_place(p) for p in found.choices],
    }

    def text(out: Console) -> None:
        if found.place is not None:
            out.print(found.place.address, markup=False)
            out.print(found.place.link, markup=False)
            out.print(found.place.geo, markup=False)
        elif found.choices:
            out.print("Which one?")
            for place in found.choices:
                out.print(f"  {place.name}: {place.address}", markup=False)
        else:
            out.print(f"no address of {where!r} is known", markup=False)

    common.show(data, text)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "fill", "nyima fill booking.schema.json --out booking.json")(fill)
    command(app, "reminders", "nyima reminders --days 14 --ics out.ics")(reminders)
    command(app, "travel", 'nyima travel "the hotel"')(travel)
