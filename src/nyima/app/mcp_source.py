"""A tool of an MCP server (over standard input and output) as a function of the question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nyima.errors import ConfigError, PackError

__all__ = ["mcp_function"]

_NAMES = ("query", "question", "q", "text", "input", "search")


def mcp_function(command: Sequence[str], tool: str) -> Callable[[str], Awaitable[list[str]]]:
    """A function that starts the server, calls the tool with the question as its one text
    argument, and returns the texts of the result.

    Raises ConfigError without a command; the function raises it when the server has no such
    tool or the tool takes no text, and PackError without the package ``mcp``."""
    if not command:
        raise ConfigError("an MCP source needs the command of its server")

    async def function(question: str) -> list[str]:
        try:
            from mcp import ClientSession, StdioServerParameters
            from mcp.client.stdio import stdio_client
        except ImportError as error:
            raise PackError("MCP sources need an extra package: run `pip install 'nyima[mcp]'`") from error
        server = StdioServerParameters(command=command[0], args=list(command[1:]))
        texts, problem = list[str](), ""  # what is raised inside would come out wrapped in groups
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            listed = {t.name: t for t in (await session.list_tools()).tools}
            argument = _argument(listed[tool].input_schema) if tool in listed else ""
            if tool not in listed:
                problem = f"the server has no tool {tool!r}: choose from {', '.join(listed) or 'none'}"
            elif not argument:
                problem = f"the tool {tool!r} takes no text: give a tool that takes a question"
            else:
                result = await session.call_tool(tool, {argument: question})
                texts = [part.text for part in result.content if part.type == "text"]
                problem = f"the tool {tool!r} failed: {' '.join(texts)[:200]}" if result.is_error else ""
        if problem:
            raise ConfigError(problem)
        return texts

    return function


def _argument(schema: object) -> str:
    """The name of the text argument of a tool's JSON schema, empty when it has none."""
    fields = schema.get("properties", {}) if isinstance(schema, dict) else {}
    texts: list[str] = [n for n, field in fields.items() if isinstance(field, dict) and field.get("type") == "string"]
    return next((name for name in (*_NAMES, *texts) if name in texts), "")
