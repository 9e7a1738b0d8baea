"""Tools that the assistant may call: Python functions; a calculator and the clock."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from nyima.errors import ConfigError

__all__ = ["Tool", "calculator", "clock", "load_tools", "use_tool"]

_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_LONGEST = 600
_LARGEST_POWER = 256


def calculator(expression: str) -> str:
    """Work out arithmetic, such as 12.5 * (3 + 4)."""

    def value(node: ast.AST) -> Any:
        match node:
            case ast.Expression(body):
                return value(body)
            case ast.Constant(number) if isinstance(number, int | float) and not isinstance(number, bool):
                return number
            case ast.BinOp(left, ast.Pow(), right):
                base, power = value(left), value(right)
                if abs(power) > _LARGEST_POWER or abs(base) > 1e9:
                    raise ValueError("the power is too large")
                return base**power
            case ast.BinOp(left, how, right) if type(how) in _OPERATORS:
                return _OPERATORS[type(how)](value(left), value(right))
            case ast.UnaryOp(how, operand) if type(how) in _OPERATORS:
                return _OPERATORS[type(how)](value(operand))
            case _:
                raise ValueError("only numbers and + - * / // % ** ( ) are allowed")

    if len(expression) > 200:
        raise ValueError("the expression is longer than 200 characters")
    result = value(ast.parse(expression.replace("×", "*").replace("÷", "/"), mode="eval"))
    return f"{result:.12g}" if isinstance(result, float) else str(result)


def clock() -> str:
    """Tell the current local date, weekday and time."""
    return datetime.now().astimezone().strftime("%A %-d %B %Y, %H:%M")


@dataclass(frozen=True, slots=True)
class Tool:
    """A function with what the model is told about it."""

    name: str
    about: str
    function: Callable[..., Any]

    def run(self, given: Mapping[str, Any]) -> str:
        """The result as text; an error of the function becomes a text, too, since the
        model is who must deal with it."""
        try:
            return str(self.function(**given))[:_LONGEST]
        except Exception as error:  # noqa: BLE001 - somebody else's function may raise anything
            return f"error: {error}"[:_LONGEST]


_BUILT_IN: Mapping[str, Callable[..., Any]] = {"calculator": calculator, "clock": clock}


def load_tools(tools: Iterable[Callable[..., Any] | str]) -> dict[str, Tool]:
    """Tools from functions, built-in names, or ``module:function``. Raises ConfigError."""
    loaded: dict[str, Tool] = {}
    for tool in tools:
        function = _found(tool) if isinstance(tool, str) else tool
        name = getattr(function, "__name__", "")
        if not name.isidentifier():
            raise ConfigError(f"the tool {tool!r} has no name: give a function")
        about = (inspect.getdoc(function) or "").split("\n")[0]
        try:
            parameters = ", ".join(inspect.signature(function).parameters)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"the tool {name!r} does not say what it takes: give a function of Python") from error
        loaded[name] = Tool(name, f"({parameters}) {about}", function)
    return loaded


def _found(name: str) -> Callable[..., Any]:
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    module, _, attribute = name.partition(":")
    try:
        function: Any = getattr(importlib.import_module(module), attribute)
    except Exception as error:
        raise ConfigError(
            f"the function {name!r} cannot be loaded: {error}: give module:function, with the module on PYTHONPATH"
        ) from error
    if not callable(function):
        raise ConfigError(f"the tool {name!r} is no function")
    return cast("Callable[..., Any]", function)


async def use_tool(tools: Mapping[str, Tool], name: str, given: Mapping[str, Any]) -> str:
    """What a tool answers, in a thread; or that there is none of that name."""
    tool = tools.get(name)
    if tool is None:
        return f"there is no tool {name!r}"
    return await asyncio.to_thread(tool.run, given)
