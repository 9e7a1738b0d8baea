"""Measures the server: overhead of the proxy, requests a second, clients that hang up, retries.

    python tools/measure_serving.py overhead|load|hang-up|retries|local [--runs N]

The upstream is scripted, on the same machine; latencies are of one client at a time. ``local``
is `nyima serve` over the small local model, beside the same model asked directly.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2

from nyima.app.opening import parts_for
from nyima.memory import Memory
from nyima.models.reached import Reaches
from nyima.testing import HashEmbedder

HERE = Path(__file__).parent
MODEL = "qwen2.5-coder-0.5b"
TEXT = "What did I tell you about my cat, number {n}?"


def started(folder: Path, wait: float = 0.0) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """A server in a process of its own."""
    command = [sys.executable, str(HERE / "serve_stub.py"), str(folder), "--wait", str(wait)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


def ask(client: httpx2.Client, url: str, n: int, *, stream: bool = True, **more: Any) -> tuple[float, float]:
    """Seconds to the first piece of text, and to the end."""
    body = {"model": "stub", "messages": [{"role": "user", "content": TEXT.format(n=n)}], "stream": stream, **more}
    begun, first = time.perf_counter(), 0.0
    with client.stream("POST", url, json=body, headers={"X-Nyima-Session-Id": f"s{n}"}) as answer:
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            if not first and '"content":' in line.replace('"content": ""', "").replace('"content":""', ""):
                first = time.perf_counter() - begun
    return first, time.perf_counter() - begun


def spread(values: list[float]) -> dict[str, float]:
    """Median and 95th percentile in milliseconds."""
    cut = statistics.quantiles(values, n=20)
    return {"p50_ms": round(1_000 * statistics.median(values), 1), "p95_ms": round(1_000 * cut[18], 1)}


def overhead(there: dict[str, str], runs: int) -> dict[str, Any]:
    """Directly, through the proxy with an empty memory, and with 2,000 turns in it."""
    found: dict[str, Any] = {}
    with httpx2.Client(headers={"authorization": f"Bearer {there['key']}"}, timeout=30.0) as client:
        for name, url in (
            ("upstream", there["upstream"]),
            ("proxy", there["url"]),
            ("proxy, 2,000 turns", there["url"]),
        ):
            if "2,000" in name:
                fill(client, there["url"])
            for n in range(5):
                ask(client, f"{url}/v1/chat/completions", n)
            rows = [ask(client, f"{url}/v1/chat/completions", 1_000 + n) for n in range(runs)]
            found[name] = {"first": spread([f for f, _ in rows]), "total": spread([t for _, t in rows])}
    return found


async def directly(runs: int) -> dict[str, Any]:
    """The local model without a proxy."""
    parts = parts_for(Path(tempfile.mkdtemp()) / "memory.db", "me", None, MODEL, HashEmbedder(), None)
    chat: object = parts.chat
    assert isinstance(chat, Reaches)
    rows: list[tuple[float, float]] = []
    for n in range(runs + 2):
        async with chat.reached("chat") as up:
            key = {"authorization": f"Bearer {up.key or 'none'}"}

            def once(n: int = n, url: str = up.url, key: dict[str, str] = key) -> tuple[float, float]:
                with httpx2.Client(headers=key, timeout=120.0) as client:
                    return ask(client, f"{url.rstrip('/')}/chat/completions", n, max_tokens=32)

            rows.append(await asyncio.to_thread(once))
    await Memory(parts).close()
    return {"first": spread([f for f, _ in rows[2:]]), "total": spread([t for _, t in rows[2:]])}


def local(runs: int, folder: Path) -> dict[str, Any]:
    """The shipped server over the small local model: without memory, with an empty one, with
    2,000 turns."""
    found = {"model": asyncio.run(directly(runs))}
    command = [sys.executable, "-m", "nyima", "serve", "--json", "--db", str(folder / "m.db"), "--model", MODEL]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        there = json.loads(b"".join(iter(process.stdout.readline, b"}\n")) + b"}")
        with httpx2.Client(headers={"authorization": f"Bearer {there['key']}"}, timeout=120.0) as client:
            url = f"{there['url']}/v1/chat/completions"
            for name, mode in (("memory off", "off"), ("memory on", "on"), ("memory on, 2,000 turns", "on")):
                if "2,000" in name:
                    fill(client, there["url"])
                client.headers["X-Nyima-Memory"] = mode
                rows = [ask(client, url, 1_000 + n, max_tokens=32) for n in range(runs + 2)][2:]
                found[name] = {"first": spread([f for f, _ in rows]), "total": spread([t for _, t in rows])}
        process.terminate()
    return found


def fill(client: httpx2.Client, url: str) -> None:
    """2,000 turns, and their vectors."""
    for start in range(0, 2_000, 500):
        turns = [{"text": f"Note {start + i}: the cat sat on mat {i % 97}."} for i in range(500)]
        client.post(f"{url}/api/turns", json={"session": f"old{start}", "turns": turns})
    client.post(f"{url}/api/recall", json={"query": "cat"})


def load(there: dict[str, str], runs: int) -> dict[str, Any]:
    """Requests a second with 8 clients at once."""
    with (
        httpx2.Client(headers={"authorization": f"Bearer {there['key']}"}, timeout=60.0) as client,
        ThreadPoolExecutor(8) as pool,
    ):
        found: dict[str, Any] = {}
        for name, url in (("upstream", there["upstream"]), ("proxy", there["url"])):
            begun = time.perf_counter()
            list(pool.map(lambda n, url=url: ask(client, f"{url}/v1/chat/completions", n, stream=False), range(runs)))  # type: ignore[misc]
            found[name] = {"requests_per_second": round(runs / (time.perf_counter() - begun), 1)}
    return found


def hang_up(there: dict[str, str], runs: int, folder: Path) -> dict[str, Any]:
    """Clients that read so many bytes and go."""
    draw = random.Random(1)
    host, port = there["url"].removeprefix("http://").split(":")

    def one(n: int) -> None:
        body = json.dumps({"messages": [{"role": "user", "content": TEXT.format(n=n)}], "stream": True}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {there['key']}\r\nX-Nyima-Session-Id: h{n}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((host, int(port)), timeout=20) as line:
            line.sendall(head.encode() + body)
            left = draw.randrange(0, 1_500)
            while left > 0 and (piece := line.recv(min(left, 256))):
                left -= len(piece)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(runs)))
    time.sleep(5.0)
    return {"runs": runs, **_stored(folder, "h%")}


def retries(there: dict[str, str], runs: int, folder: Path) -> dict[str, Any]:
    """One request, sent again and again with one key."""
    headers = {"authorization": f"Bearer {there['key']}", "Idempotency-Key": "one", "X-Nyima-Session-Id": "r"}
    body = {"messages": [{"role": "user", "content": "My cat is called Nyima."}]}
    with httpx2.Client(headers=headers, timeout=30.0) as client, ThreadPoolExecutor(16) as pool:
        url = f"{there['url']}/v1/chat/completions"
        codes = list(pool.map(lambda _: client.post(url, json=body).status_code, range(runs)))
    return {"runs": runs, "answered 200": codes.count(200), **_stored(folder, "r")}


def _stored(folder: Path, session: str) -> dict[str, int]:
    with sqlite3.connect(folder / "memory.db") as db:
        rows = db.execute("SELECT role, count(*) FROM turns WHERE session LIKE ? GROUP BY role", (session,)).fetchall()
    return {f"{role} turns": count for role, count in rows}


def main() -> None:
    """Run one measurement and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("overhead", "load", "hang-up", "retries", "local"))
    parser.add_argument("--runs", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.what == "local":
            print(json.dumps({"local": local(given.runs, folder)}, indent=1))
            return
        process, there = started(folder, 0.002 if given.what == "hang-up" else 0.0)
        work: dict[str, Callable[[], dict[str, Any]]] = {
            "overhead": lambda: overhead(there, given.runs), "load": lambda: load(there, given.runs),
            "hang-up": lambda: hang_up(there, given.runs, folder), "retries": lambda: retries(there, given.runs, folder),
        }  # fmt: skip
        try:
            print(json.dumps({given.what: work[given.what]()}, indent=1))
        finally:
            process.communicate("", timeout=30)


if __name__ == "__main__":
    main()
