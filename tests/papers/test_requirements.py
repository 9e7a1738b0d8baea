"""The manifest and the tests agree, in both directions."""

from __future__ import annotations

import ast
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

TESTS = Path(__file__).parents[1]


def manifest() -> set[str]:
    data = tomllib.loads((TESTS / "papers" / "requirements.toml").read_text("utf-8"))
    rows = {f"{seed}.{name}": row for seed, group in data.items() for name, row in group.items()}
    assert all(row["where"] and row["text"] for row in rows.values())
    return set(rows)


def marked() -> dict[str, list[str]]:
    """Each id that a test is marked with, and the tests."""
    found: dict[str, list[str]] = {}
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.req":
                    for argument in decorator.args:
                        assert isinstance(argument, ast.Constant)
                        found.setdefault(str(argument.value), []).append(node.name)
    return found


def test_every_id_has_a_test() -> None:
    assert manifest() - set(marked()) == set()


def test_every_marked_id_exists() -> None:
    assert set(marked()) - manifest() == set()


def test_every_mechanism_that_is_taken_out_is_there_to_be_taken_out() -> None:
    spec = spec_from_file_location("take_out", TESTS.parent / "tools" / "take_out.py")
    assert spec is not None
    assert spec.loader is not None
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    for requirement, file, old, _ in tool.EDITS:
        assert requirement in manifest()
        assert old in (tool.ROOT / tool.SOURCE / file).read_text("utf-8"), (requirement, file)
