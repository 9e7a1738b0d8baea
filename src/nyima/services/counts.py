"""Figures about a memory: records per utterance and mean length (Yuan et al. 2023,
table 1), calls, tokens, jobs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from nyima.language.words import words
from nyima.memory import Memory
from nyima.read.calls import usage_of

__all__ = ["statistics"]


async def statistics(memory: Memory) -> dict[str, Any]:
    """Counts as JSON values. ``per_utterance`` divides by all turns, ``mean_words``
    counts words (pairs of characters in unspaced scripts)."""
    turns = len(await memory.turns())
    count: Counter[str] = Counter()
    length: Counter[str] = Counter()
    for record in await memory.records():
        count[record.kind] += 1
        length[record.kind] += len(words(record.text))
    records = {
        kind: {
            "count": n,
            "per_utterance": round(n / turns, 3) if turns else 0.0,
            "mean_words": round(length[kind] / n, 1),
        }
        for kind, n in sorted(count.items())
    }
    calls, failed, fallbacks = 0, 0, 0
    tokens = {"prompt": 0, "cached": 0, "completion": 0}
    by_job: Counter[str] = Counter()
    for event in await memory.store.events(memory.scope, "call"):
        if event.body["outcome"] == "fallback":
            fallbacks += 1
            continue
        usage = usage_of(event.body)
        calls += usage.calls
        by_job[str(event.body["job"]).partition("@")[0]] += usage.calls
        failed += event.body["outcome"] not in {"stop", "length", "cancelled"}
        tokens["prompt"] += usage.prompt
        tokens["cached"] += usage.cached
        tokens["completion"] += usage.completion
    jobs = Counter(job.state for job in await memory.store.jobs(memory.scope))
    return {
        "records": records,
        "calls": {"count": calls, "failed": failed, "fallbacks": fallbacks, "by_job": dict(sorted(by_job.items()))},
        "tokens": tokens,
        "jobs": dict(sorted(jobs.items())),
        "turns": turns,
    }
