"""Writes docs/reference from the program itself; a test checks that it is up to date."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import typer
import typer.main

FOLDER = Path(__file__).parents[1] / "docs" / "reference"


def _options(command: Any) -> list[str]:
    lines: list[str] = []
    for parameter in command.params:
        if parameter.name in {"help", "install_completion", "show_completion"}:
            continue
        argument = parameter.param_type_name == "argument"
        names = (parameter.metavar or parameter.name.upper()) if argument else ", ".join(parameter.opts)
        about = getattr(parameter, "help", "") or ""
        lines.append(f"- `{names}` {about}".rstrip())
    return lines


def commands() -> str:
    """Every command with its help and options."""
    from nyima.cli.main import app

    lines = ["# Commands", "", "Written by `make docs` from the program's own help.", ""]

    def visit(command: Any, name: str) -> None:
        for key, inner in sorted(getattr(command, "commands", {}).items()):
            visit(inner, f"{name} {key}")
        if not hasattr(command, "commands"):
            text = inspect.cleandoc(command.help or "")
            lines.extend([f"## `{name}`", "", text, "", *_options(command), ""])

    visit(typer.main.get_command(app), "nyima")
    lines += ["## Exit codes", "", "| code | when |", "|---|---|", "| 0 | it worked |"]
    lines += ["| 1 | something unexpected, or you said no |", "| 130 | Ctrl-C; what was said is kept |"]
    codes: dict[int, list[str]] = {}
    errors = importlib.import_module("nyima.errors")
    for name in errors.__all__:
        kind = getattr(errors, name)
        codes.setdefault(kind.exit_code, []).append((inspect.getdoc(kind) or "").split("\n")[0].rstrip("."))
    lines += [f"| {code} | {'; '.join(texts)} |" for code, texts in sorted(codes.items()) if code > 1]
    return "\n".join(lines).rstrip() + "\n"


def _signature(value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"<factory>|<nyima[^>]*>|<function[^>]*>", "…", text)
    return re.sub(r"'([\w\[\], .|]+)'", r"\1", text)


def python() -> str:
    """Every public name with its signature and documentation."""
    import nyima

    lines = ["# Python", "", "Written by `make docs` from the docstrings of `nyima`.", ""]
    for name in nyima.__all__:
        value = getattr(nyima, name)
        about = inspect.getdoc(value) or ""
        if about.startswith((f"{name}(", "dict(", "Represent a", "Create a collection")):
            about = ""
        shown = _signature(value) if inspect.isclass(value) or inspect.isfunction(value) else ""
        lines += [f"## `{name}{shown}`", "", about, ""]
        if name in {"Assistant", "Memory"}:
            for key, member in inspect.getmembers(value):
                if not key.startswith("_") and callable(member):
                    lines += [f"### `{name}.{key}{_signature(member)}`", "", inspect.getdoc(member) or "", ""]
    return "\n".join(lines).rstrip() + "\n"


def recipes() -> str:
    """Every recipe with what fills its roles."""
    table = importlib.import_module("nyima.app.registry").registry().recipes
    lines = ["# Recipes", "", "Written by `make docs`. Choose one with `nyima chat --recipe NAME`.", ""]
    lines += ["| recipe | about | writers | sources (how, k) | in the system message |", "|---|---|---|---|---|"]
    for recipe in table.values():
        sources = ", ".join(f"{s.name} ({s.how}, {s.k})" for s in recipe.sources) or "–"
        row = (
            f"`{recipe.name}`",
            recipe.about,
            ", ".join(recipe.writers) or "–",
            sources,
            ", ".join(recipe.system) or "–",
        )
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


PAGES = {"commands.md": commands, "python.md": python, "recipes.md": recipes}


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
