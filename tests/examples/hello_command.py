"""An example of a command: ``nyima hello``."""

from __future__ import annotations

import typer

__all__ = ["add_to"]


def hello() -> None:
    """Say hello."""
    typer.echo("hello from another distribution")


def add_to(app: typer.Typer) -> None:
    """Add the command to ``nyima``."""
    app.command()(hello)
