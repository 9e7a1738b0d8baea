"""The command line: ``nyima``."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

import typer

from nyima import __version__
from nyima.cli import care, chat, documents, graph, memories, serve, services, transfer, voice, why

__all__ = ["app", "run"]

app = typer.Typer(
    name="nyima",
    help="A personal memory that you own, for any LLM assistant.",
    epilog="`nyima eval` and `nyima train` come with the distribution nyima-lab.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"nyima {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """A personal memory that you own, for any LLM assistant."""


for part in (chat, voice, memories, why, documents, graph, services, serve, transfer, care):
    part.add_to(app)
for found in sorted(entry_points(group="nyima.commands"), key=lambda point: point.name):
    try:
        found.load()(app)  # the laboratory's commands, and anybody's
    except Exception as error:  # somebody else's module: it may raise anything, and costs no other command
        typer.echo(f"the command {found.name!r} ({found.value}) is left out: {type(error).__name__}: {error}", err=True)


def run() -> None:
    """The entry point of the ``nyima`` program."""
    app()
