"""A server over a scripted upstream, for measurements: prints its address and keys as JSON,
and serves until its standard input closes.

    python tools/serve_stub.py FOLDER [--upstream URL]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from nyima.adapters.openai_chat import Endpoint, OpenAIChat
from nyima.domain.conversation import Scope
from nyima.interfaces.server.application import Serving, application
from nyima.interfaces.server.keys import KeyRing
from nyima.opening import parts_for
from nyima.testing import HashEmbedder
from nyima.testing.upstream import StubUpstream, serving


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reply", default="Nice to meet you!\n<nyima-notes>\nremember: no\n</nyima-notes>")
    parser.add_argument("--wait", type=float, default=0.0)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    ring = KeyRing(given.folder / "keys.json")
    _, secret = ring.make("measured", Scope(), ["read", "write"], requests=0)
    _, acting = ring.make("acting", Scope(user="service"), ["read", "write", "act-as", "admin"], requests=0)
    with serving(StubUpstream(given.reply, 6, given.wait)) as behind:
        chat = OpenAIChat("stub", Endpoint(f"{behind}/v1", "upstream", retries=0))
        parts = parts_for(given.folder / "memory.db", "me", None, chat, HashEmbedder(), None)
        with serving(application(parts, ring, Serving(idle=5.0))) as url:
            print(json.dumps({"url": url, "upstream": behind, "key": secret, "acting": acting}), flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main()
