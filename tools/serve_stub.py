"""A server over a scripted upstream, for measurements: prints its address and keys as JSON,
and serves until its standard input closes.

    python tools/serve_stub.py FOLDER [--wait SECONDS]

The upstream runs in a process of its own, as it does elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from nyima.app.opening import parts_for
from nyima.domain.conversation import Scope
from nyima.models.openai import Endpoint, OpenAIChat
from nyima.server.access.keys import KeyRing
from nyima.server.application import Serving, application
from nyima.server.uvicorn_settings import SETTINGS
from nyima.testing import HashEmbedder
from nyima.testing.upstream import StubUpstream, serving


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reply", default="Nice to meet you!\n<nyima-notes>\nremember: no\n</nyima-notes>")
    parser.add_argument("--wait", type=float, default=0.0)
    parser.add_argument("--behind", action="store_true", help="Be the upstream.")
    given = parser.parse_args()
    if given.behind:
        with serving(StubUpstream(given.reply, 6, given.wait)) as url:
            print(url, flush=True)
            sys.stdin.read()
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    ring = KeyRing(given.folder / "keys.json")
    _, secret = ring.make("measured", Scope(), ["read", "write"], requests=0)
    _, acting = ring.make("acting", Scope(user="service"), ["read", "write", "act-as", "admin"], requests=0)
    with _behind(given) as behind:
        chat = OpenAIChat("stub", Endpoint(f"{behind}/v1", "upstream", retries=0))
        parts = parts_for(given.folder / "memory.db", "me", None, chat, HashEmbedder(), None)
        with serving(application(parts, ring, Serving(idle=5.0)), **SETTINGS) as url:
            print(json.dumps({"url": url, "upstream": behind, "key": secret, "acting": acting}), flush=True)
            sys.stdin.read()


@contextlib.contextmanager
def _behind(given: argparse.Namespace) -> Iterator[str]:
    command = [sys.executable, __file__, str(given.folder), "--reply", given.reply, "--wait", str(given.wait)]
    process = subprocess.Popen([*command, "--behind"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate("", timeout=30)


if __name__ == "__main__":
    main()
