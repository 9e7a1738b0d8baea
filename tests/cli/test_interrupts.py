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

NYIMA = [sys.executable, "-c", "from nyima.cli.main import run; run()"]


def start(tmp_path: Path, url: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "NYIMA_EMBEDDER": "none", "NYIMA_DB": str(tmp_path / "m.db"), "OPENAI_BASE_URL": url}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*NYIMA, *arguments], text=True, env=environment, **pipes)


def interrupt(child: subprocess.Popen[str]) -> tuple[str, str]:
    child.send_signal(signal.SIGINT)
    child.wait(timeout=60)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 130, err
    assert "Traceback" not in err
    return out, err


def asked(count: int, requests: list[Any]) -> None:
    end = time.monotonic() + 120
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


def test_while_the_writers_work_the_rest_is_left_as_jobs(tmp_path: Path) -> None:
    first = answer("Hi Karen!", remember=True, claims={"name": "Karen"})
    script = tmp_path / "talk.txt"
    script.write_text("I'm Karen, I live in Moab.\n")
    with openai_server(plan=[first, "slow " + '{"context": "", "knowledge": "The user is Karen."}']) as server:
        child = start(tmp_path, server.url, "chat", "--script", str(script))
        asked(2, server.requests)
        _, err = interrupt(child)
    assert "kept for the next start" in err
    note = '{"context": "", "knowledge": "The user is Karen and lives in Moab."}'
    with openai_server(plan=[note, '{"text": "The user is Karen."}']) as server:
        child = start(tmp_path, server.url, "work", "--json")
        out, err = child.communicate(timeout=120)
        # The claims, the note, and the writer of the session's end.
        assert json.loads(out) == {"done": 3, "waiting": 0, "parked": 0}, err


def test_a_closed_terminal_ends_the_session_as_goodbye_does(tmp_path: Path) -> None:
    first = answer("Hi Marta!", remember=True, claims={"name": "Marta"})
    for number in (signal.SIGHUP, signal.SIGTERM):
        folder = tmp_path / number.name
        folder.mkdir()
        with openai_server(plan=[first]) as server:
            child = start(folder, server.url, "chat")
            assert child.stdin is not None
            child.stdin.write("My name is Marta.\n/help\n")
            child.stdin.flush()
            assert child.stdout is not None
            while "what the last reply rests on" not in child.stdout.readline():
                assert child.poll() is None
            child.send_signal(number)
            child.communicate(timeout=120)
        with openai_server(
            plan=['{"over": [], "said": [1]}', '{"context": "", "knowledge": "x"}', "Hello Marta!"]
        ) as server:
            child = start(folder, server.url, "chat")
            out, err = child.communicate("", timeout=120)
            asked_of = str([r["messages"][0]["content"] for r in server.requests])
        assert "name: Marta" in asked_of, err
        assert "don't think we have met" not in out


def test_ctrl_c_stops_a_reply_and_a_second_one_ends_the_chat(tmp_path: Path) -> None:
    plan = ["slow " + answer("This is a long reply that takes its time to come."), answer("Short.")]
    with openai_server(plan=plan) as server:
        child = start(tmp_path, server.url, "chat")
        assert child.stdin is not None
        child.stdin.write("I'm Karen, I live in Moab.\n")
        child.stdin.flush()
        asked(1, server.requests)
        child.send_signal(signal.SIGINT)
        child.stdin.write("Are you there?\n")
        child.stdin.flush()
        asked(2, server.requests)
        _, err = interrupt(child)
    assert "stopped" in err
    assert "what was said is kept" in err
    assert {"I'm Karen, I live in Moab.", "Are you there?"} <= set(texts(tmp_path))


def test_a_private_chat_never_says_that_something_is_kept(tmp_path: Path) -> None:
    with openai_server(plan=["slow " + answer("This is a long reply that takes its time to come.")]) as server:
        child = start(tmp_path, server.url, "chat", "--private")
        assert child.stdin is not None
        child.stdin.write("My pin is 4711.\n")
        child.stdin.flush()
        asked(1, server.requests)
        child.send_signal(signal.SIGINT)
        time.sleep(0.3)
        _, err = interrupt(child)
    assert "nothing of it is kept" in err
    assert "said is kept" not in err
    assert texts(tmp_path) == []
    assert b"4711" not in b"".join(p.read_bytes() for p in tmp_path.glob("m.db*"))
