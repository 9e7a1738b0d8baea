"""Tools: what a model may call, and what it is told when that fails."""

from __future__ import annotations

import ast
import operator
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.app.tools import Tool, calculator, load_tools, use_tool
from nyima.errors import ConfigError

OPERATIONS: dict[str, Callable[[int, int], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
CALCULATOR = Tool("calculator", "", calculator)


@given(st.integers(-(10**6), 10**6), st.sampled_from(sorted(OPERATIONS)), st.integers(1, 10**6))
def test_whole_numbers_are_worked_out_as_python_does(a: int, sign: str, b: int) -> None:
    assert calculator(f"({a}) {sign} {b}") == str(OPERATIONS[sign](a, b))


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("2 + 3 * 4", "14"),
        ("12.5 * (3 + 4)", "87.5"),
        ("0.1 + 0.2", "0.3"),
        ("6 × 7 ÷ 2", "21"),
        ("-2 ** 2", "-4"),
        ("+-+3", "-3"),
        ("2 ** 256", str(2**256)),
    ],
)
def test_arithmetic(expression: str, result: str) -> None:
    assert calculator(expression) == result


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("2 ** 257", "the power is too large"),
        ("(10 ** 9 + 1) ** 2", "the power is too large"),
        ("9 ** 9 ** 9", "the power is too large"),
        ("1" * 201, "longer than 200 characters"),
        ("__import__('os').getcwd()", "only numbers and"),
        ("(1).real", "only numbers and"),
        ("True + 1", "only numbers and"),
        ("'a' * 9", "only numbers and"),
        ("[1 for _ in (1,)]", "only numbers and"),
        ("2 if 1 else 3", "only numbers and"),
        ("1 << 9", "only numbers and"),
        ("~1", "only numbers and"),
        ("1 / 0", "division by zero"),
        ("1; 2", "invalid syntax"),
        ("", "invalid syntax"),
    ],
)
def test_what_is_no_arithmetic_is_an_error_that_the_model_reads(expression: str, words: str) -> None:
    answer = CALCULATOR.run({"expression": expression})
    assert answer.startswith("error: ")
    assert words in answer


@given(st.text("0123456789.+-*/%() ej_x'", max_size=40))
def test_the_calculator_answers_anything(expression: str) -> None:
    answer = CALCULATOR.run({"expression": expression})
    assert len(answer) <= 600
    if not answer.startswith("error: "):
        assert not {n.__class__ for n in ast.walk(ast.parse(expression.strip(), mode="eval"))} & {ast.Call, ast.Name}


def weather(place: str, day: str = "today") -> str:
    """Tell the weather.

    What stands further down is not told.
    """
    return f"{place} {day}: sunny"


def test_a_tool_is_told_by_its_parameters_and_first_line() -> None:
    tools = load_tools([weather, "calculator", "clock"])
    assert list(tools) == ["weather", "calculator", "clock"]
    assert tools["weather"].about == "(place, day) Tell the weather."
    assert tools["clock"].about.startswith("() Tell the current local date")
    assert tools["weather"].run({"place": "Porto"}) == "Porto today: sunny"


def test_a_tool_of_a_module_is_loaded_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_own_tools.py").write_text('def tide(harbour):\n    """Tell the tide."""\n    return "high"\n')
    monkeypatch.syspath_prepend(tmp_path)
    assert load_tools(["my_own_tools:tide"])["tide"].about == "(harbour) Tell the tide."
    del sys.modules["my_own_tools"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "no_such_module:f",
            "'no_such_module:f' cannot be loaded: .*give module:function, with the module on PYTHONPATH",
        ),
        ("json:nothing", "cannot be loaded"),
        ("json", "cannot be loaded"),
        ("", "cannot be loaded"),
        (":f", "cannot be loaded"),
        ("sys:version", "'sys:version' is no function"),
    ],
)
def test_what_cannot_be_loaded_says_how_it_is_written(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_tools([name])


def test_a_function_without_a_name_is_no_tool() -> None:
    with pytest.raises(ConfigError, match="has no name: give a function"):
        load_tools([lambda: 1])


@pytest.mark.parametrize("name", ["own_syntax:f", "own_raises:f", "builtins:dict"])
def test_a_module_that_is_broken_is_told_like_one_that_is_missing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_syntax.py").write_text("def f(:\n")
    (tmp_path / "own_raises.py").write_text("raise RuntimeError('not today')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError):
        load_tools([name])


class OwnError(Exception):
    """Of the kind that network libraries raise."""


def failing(kind: str) -> str:
    raise {"value": ValueError, "key": KeyError, "os": OSError, "own": OwnError, "assert": AssertionError}[kind](kind)


@pytest.mark.parametrize(
    "kind",
    [
        "value",
        "key",
        "os",
        "own",
        "assert",
    ],
)
async def test_an_error_of_a_function_becomes_a_text(kind: str) -> None:
    assert (await use_tool(load_tools([failing]), "failing", {"kind": kind})).startswith("error: ")


async def test_a_call_with_other_arguments_is_told_to_the_model() -> None:
    tools = load_tools([weather])
    assert "unexpected keyword argument 'city'" in await use_tool(tools, "weather", {"city": "Porto"})
    assert await use_tool(tools, "tide", {}) == "there is no tool 'tide'"


async def test_a_long_answer_is_cut_and_a_slow_tool_stops_nobody() -> None:
    def chatter() -> str:
        return f"{threading.current_thread() is threading.main_thread()} " + "x" * 10_000

    answer = await use_tool(load_tools([chatter]), "chatter", {})
    assert answer.startswith("False "), "it runs beside the event loop"
    assert len(answer) == 600
