"""Kill a writer again and again and count what was acknowledged and lost.

    python tools/kill_cycles.py 300

A child writes turns with their records and prints each id once the store has answered;
the parent kills it with SIGKILL after a random time, opens the file, and compares.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WRITER = """
import asyncio, sys, uuid
from pathlib import Path
from nyima.stores.sqlite.store import SqliteStore
from nyima.domain.changes import Add, Delta, Revise
from nyima.domain.ports import Job
from nyima.testing.contract import ME, SESSION, note, turn

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    last = None
    for i in range(1000000):
        id = uuid.uuid4().hex
        await store.append(ME, SESSION, [turn(id, "words " * 20)], delta=Delta((Add(note("n" + id, "x" * 200)),)),
                           jobs=[Job("j" + id, "gate", id)])
        print("t", id, flush=True)
        if last:
            await store.commit(ME, Delta((Revise("n" + last, note("m" + last, "y" * 200)),)), close="j" + last)
            print("r", last, flush=True)
        last = id
asyncio.run(main())
"""


async def state(path: Path) -> tuple[set[str], set[str], set[str], str]:
    """Turns, open records, jobs that are done, and SQLite's integrity check."""
    from nyima.domain.ports import RecordFilter
    from nyima.stores.sqlite.store import SqliteStore
    from nyima.testing.contract import ME

    store = SqliteStore(path)
    turns = {t.id for t in await store.turns(ME)}
    records = {r.id for r in await store.records(ME, RecordFilter())}
    done = {j.id for j in await store.jobs(ME, ("done",))}
    check = await store.check()
    await store.close()
    return turns, records, done, check


def main() -> None:
    """Run the cycles and print the counts."""
    cycles = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rng = random.Random(5)
    lost = half = corrupt = 0
    said: set[str] = set()
    revised: set[str] = set()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        for cycle in range(cycles):
            child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(rng.random() * 0.2)
            os.kill(child.pid, signal.SIGKILL)
            for line in child.stdout.read().split("\n")[:-1]:
                kind, id = line.split(" ")
                (said if kind == "t" else revised).add(id)
            child.wait()
            child.stdout.close()
            if cycle % 10 == 9 or cycle == cycles - 1:
                turns, records, done, check = asyncio.run(state(path))
                lost += len(said - turns) + len({"m" + r for r in revised} - records)
                half += sum(("n" + t in records) == ("m" + t in records) for t in turns)
                half += sum((f"j{t}" in done) != (f"m{t}" in records) for t in turns)
                corrupt += check != "ok"
    print(
        json.dumps(
            {
                "cycles": cycles,
                "acknowledged": len(said) + len(revised),
                "lost": lost,
                "half_written": half,
                "corrupt": corrupt,
                "seconds": round(time.perf_counter() - started, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
