"""Take mechanisms out, one at a time, and see that the tests of their requirement fail.

    python tools/take_out.py

Works on a copy of the repository; each row is a requirement and an edit that disables it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = "src/nyima/"
EDITS = [
    ("cond.gate", "domain/recipe.py", 'return self.gate == "reply"', "return False"),
    ("cond.record", "mechanisms/conditional.py", "context=context,", 'context="",'),
    ("cond.reflect", "read/judge.py", '"reflect": _prompted(ReflectingJudge),', '"reflect": lambda kit: ScoreJudge(),'),
    ("cond.ablation", "mechanisms/conditional.py", 'knowledge if "knowledge" in self.desk.recipe.parts else ""', "knowledge"),
    ("cond.history", "mechanisms/history.py", "if turn.text.strip() and turn.role is not Role.SYSTEM", "if turn.role is Role.USER"),
    ("cond.k", "app/recipes.py", 'SourceSpec("history", "vector", 3, _PLAIN)', 'SourceSpec("history", "vector", 5, _PLAIN)'),
    ("cond.dense", "read/search.py", 'if self.how == "vector":', "if False:"),
    ("rsum.fold", "mechanisms/summaries.py", 'body = last.body if last else ""', 'body = ""'),
    ("rsum.bound", "mechanisms/summaries.py", "if len(kept) <= most:", "if True:"),
    ("rsum.current", "mechanisms/summaries.py", 'Revise(last.id, successor, "session ended")', "Add(successor)"),
    ("rsum.context-only", "assistant.py", "if self.recipe.past else []", "if False else []"),
    ("rsum.few-shot", "read/prompting.py", "for shot in self.shots:", "for shot in ():"),
    ("prof.system", "read/prompting.py", "if whole.profile.claims:", "if False:"),
    ("prof.merge", "write/claims.py", "if over and (says or old.id not in shown):", "if False:"),
    ("prof.unknown", "prompts/notes.py", "if what and not is_placeholder(value):", "if what:"),
    ("emg.replace", "write/claims.py", "elif over or (says and over is None and new):", "elif False:"),
    ("emg.passive", "mechanisms/reading.py", "waits=True,", "waits=False,"),
    ("emg.screenshots", "write/claims.py", "status = Status.PENDING", "status = Status.HOLDS"),
    ("prof.robust", "prompts/notes.py", "    cut = min((i for m in markers", "    cut = -1 if True else min((i for m in markers"),
    ("prof.goodbye", "assistant.py", "if is_goodbye(text):", "if False:"),
    ("prof.tasks", "read/reader.py", "result = await request.use(*wish) if request.use else", 'result = "nothing" if request.use else'),
]  # fmt: skip


def main() -> int:
    """Run every row; the number of mechanisms whose tests did not notice."""
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache"))
        for requirement, file, old, new in EDITS:
            path = copy / SOURCE / file
            text = path.read_text("utf-8")
            if old not in text:
                print(f"{requirement:20} THE EDIT DOES NOT FIT {file}")
                missed += 1
                continue
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-p",
                "no:cacheprovider",
                "--req",
                requirement,
                "tests",
                "--ignore=tests/e2e",
            ]
            environment = {"PYTHONPATH": f"{copy}/src:{copy}/lab/src", "PATH": "/usr/bin:/bin"}
            whole = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=environment)
            path.write_text(text.replace(old, new, 1), "utf-8")
            broken = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=environment)
            path.write_text(text, "utf-8")
            good = whole.returncode == 0 and broken.returncode == 1
            missed += not good
            print(
                f"{requirement:20} whole {whole.returncode}, taken out {broken.returncode}  {'noticed' if good else 'MISSED'}"
            )
    print(f"{len(EDITS) - missed} passed, {missed} failed")
    return missed


if __name__ == "__main__":
    sys.exit(main())
