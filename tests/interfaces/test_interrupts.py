"""Ctrl-C: in the middle of a reply, and while the writers work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from support import answer, openai_server

NYIMA = [sys.executable, "-c", "from nyima.interfaces.cli.main import run; run()"]


def start(tmp_path: Path, url: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "NYIMA_EMBEDDER": "none", "NYIMA_DB": str(tmp_path / "m.db"), "OPENAI_BASE_URL": url}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*NYIMA, *arguments], text=True, env=environment, **pipes)


def interrupt(child: subprocess.Popen[str]) -> tuple[str, str]:
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert child.returncode == 130, err
    assert "Traceback" not in err
    return out, err


def asked(count: int, requests: list[Any]) -> None:
    end = time.monotonic() + 20
    while len(requests) < count and time.monotonic() < end:
        time.sleep(0.02)
    assert len(requests) >= count
    time.sleep(0.6)


def texts(tmp_path: Path) -> list[str]:
    command = [*NYIMA, "export", "--db", str(tmp_path / "m.db")]
    out = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "NYIMA_EMBEDDER": "none"}
    ).stdout
    return [row["turn"]["text"] for row in map(json.loads, out.splitlines()) if "turn" in row]


def test_in_the_middle_of_a_reply_what_was_said_stays(tmp_path: Path) -> None:
    with openai_server(plan=["slow " + answer("This is a long reply that takes its time to come.")]) as server:
        child = start(tmp_path, server.url, "chat")
        assert child.stdin is not None
        child.stdin.write("I'm Karen, I live in Moab.\n")
        child.stdin.flush()
        asked(1, server.requests)
        _, err = interrupt(child)
    assert "kept" in err
    assert "I'm Karen, I live in Moab." in texts(tmp_path)


def test_while_the_writers_work_the_rest_is_left_as_jobs(tmp_path: Path) -> None:
    first = answer("Hi Karen!", remember=True, facts={"name": "Karen"})
    script = tmp_path / "talk.txt"
    script.write_text("I'm Karen, I live in Moab.\n")
    with openai_server(
        plan=[first, "slow " + '{"context": "", "knowledge": "The user is Karen.", "facts": {}}']
    ) as server:
        child = start(tmp_path, server.url, "chat", "--script", str(script))
        asked(2, server.requests)
        _, err = interrupt(child)
    assert "kept for the next start" in err
    note = '{"context": "", "knowledge": "The user is Karen and lives in Moab.", "facts": {}}'
    with openai_server(plan=[note, '{"text": "The user is Karen."}']) as server:
        child = start(tmp_path, server.url, "work", "--json")
        out, err = child.communicate(timeout=30)
    assert json.loads(out) == {"done": 5, "waiting": 0, "parked": 0}, err
