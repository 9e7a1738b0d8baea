"""Plant facts, let them enter episodes, notes, summaries and the profile, forget them,
and look for their bytes in every file.

    python tools/forget_planted.py 50

The model is scripted (it repeats what it reads), so that every planted word surely gets
everywhere; the store, the write path and the erase are the shipped ones.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from nyima import Assistant
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from nyima.testing.doubles import Request


def _chat(request: Request) -> str:
    said = request.last.rpartition("\n")[2]
    word = next((w for w in said.split() if w.startswith("planted")), "")
    facts = {f"thing_{word}": word} if word else {}
    return json.dumps({"reply": f"I see, {word}.", "remember": bool(word), "facts": facts})


def _note(request: Request) -> str:
    said = request.last.rpartition("Message: ")[2]
    return json.dumps({"context": said, "knowledge": said, "facts": {}})


def _fold(request: Request) -> str:
    lines = [line.removeprefix("User: ") for line in request.last.splitlines() if "planted" in line]
    return json.dumps({"text": " ".join(lines) or "nothing"})


async def run(count: int) -> dict[str, object]:
    """The counts."""
    words = [f"planted{i:03d}x{i * 7919 % 9973:04d}q" for i in range(count)]
    clock = FixedClock()
    model = ScriptedModel({"chat": [_chat], "note": [_note], "fold": [_fold], "summary": [_fold]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        options = {"model": model, "embedder": HashEmbedder(), "clock": clock, "tools": ()}
        async with Assistant.open(path, **options) as nyima:  # type: ignore[arg-type]
            for i, word in enumerate(words):
                await nyima.reply(f"My favourite thing number {i} is the {word} at home.")
                clock.forward(minutes=1)
                if i % 5 == 4:
                    await nyima.end_session()
                    await nyima.drain()
                    await nyima.recall(f"what is my favourite {word}")
                    clock.forward(hours=2)

            def holding() -> dict[str, int]:
                content = b"".join(p.read_bytes() for p in Path(folder).iterdir())
                return {w: content.count(w.encode()) for w in words}

            before = holding()
            records = await nyima.memory.records(retired=True)
            kinds = {
                k: sum(any(w in r.text for r in records if r.kind == k) for w in words)
                for k in ("episode", "note", "fact", "summary")
            }
            started = time.perf_counter()
            left: dict[str, int] = {}
            receipts = []
            for word in words:
                fact = next(f for f in (await nyima.memory.profile()).facts if f.value == word)
                receipts.append(await nyima.forget(fact.id))
                left[word] = holding()[word]
            seconds = time.perf_counter() - started
            await nyima.drain()
            after = holding()
        closed = b"".join(p.read_bytes() for p in Path(folder).iterdir())
    return {
        "planted": count,
        "facts_that_had_entered": kinds,
        "occurrences_before": sum(before.values()),
        "left_right_after_each": sum(left.values()),
        "left_after_derivation": sum(after.values()),
        "left_in_closed_files": sum(closed.count(w.encode()) for w in words),
        "bytes_found_by_receipts": sum(r.bytes_found for r in receipts),
        "seconds_each": round(seconds / count, 3),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else 50)), indent=1))
