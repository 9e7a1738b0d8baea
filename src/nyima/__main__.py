"""``python -m nyima``: the command line."""

from __future__ import annotations

from nyima.interfaces.cli.main import run

run()
