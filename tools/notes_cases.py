"""The notes of the reply's own call against hand-made cases.

    python tools/notes_cases.py qwen2.5-coder-1.5b test

Each case is a conversation of its own through the shipped assistant; counted are the
decisions (the model's own, and as settled with the features of the text) and the facts.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from nyima.language.facts import proposals

from nyima import Assistant
from nyima.domain.conversation import Origin, Role, Session, Turn
from nyima.language.intent import worth_keeping
from nyima.write.jobs import turn_id

CASES = Path(__file__).parents[1] / "tests" / "judged" / "notes_cases.jsonl"


async def main(model: str, part: str) -> None:
    """Run the cases of a part and print the counts."""
    cases = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    cases = [c for c in cases if c["part"] == part]
    right = alone = found = extra = 0
    with tempfile.TemporaryDirectory() as folder:
        async with Assistant.open(Path(folder) / "m.db", model=model) as nyima:
            for case in cases:
                now = nyima.memory.clock.now()
                nyima._session = Session(turn_id(), now)
                if case["before"]:
                    before = Turn(turn_id(), nyima._session.id, Role.ASSISTANT, case["before"], now, Origin.ASSISTANT)
                    await nyima.memory.store.append(nyima.memory.scope, nyima._session, [before])
                answer = await nyima.reply(case["said"])
                facts = proposals(answer.notes.facts, "", case["said"], case["before"])
                values = " ".join(p.value for p in facts)
                right += answer.notes.remember == case["remember"]
                alone += worth_keeping(case["said"], None, 0) == case["remember"]
                found += sum(f in values for f in case["facts"])
                extra += bool(facts) and not case["remember"]
    gold = sum(len(c["facts"]) for c in cases)
    print(
        json.dumps(
            {
                "model": model, "part": part, "cases": len(cases), "decisions_right": right,
                "features_alone": alone, "facts_found": found, "facts": gold, "facts_where_none": extra,
            }
        )
    )  # fmt: skip


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
