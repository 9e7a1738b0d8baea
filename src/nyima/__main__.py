"""``python -m nyima``: the command line."""

from __future__ import annotations

from nyima.cli.main import run

run()
