"""The page that describes the API, made of its OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from nyima.server.state import caller
from nyima.server.web.pages import Route, render

__all__ = ["routes"]

_METHODS = ("get", "post", "put", "patch", "delete")
_DEEPEST = 4
_OTHERS = (
    ("POST /v1/chat/completions", "Chat, with the memory in it; also as a stream."),
    ("POST /v1/responses", "The same as responses; GET and DELETE of one by its id."),
    ("GET /v1/models", "The models of the upstream."),
    ("POST /v1/embeddings, /v1/audio/…", "Passed on as they are."),
    ("/mcp", "The Model Context Protocol over HTTP."),
)


async def docs(request: Request) -> Response:
    """Every operation of the API, with its parameters and an example of its body."""
    caller(request, "read")
    document: dict[str, Any] = request.app.openapi()
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, operations in document["paths"].items():
        for method in (m for m in _METHODS if m in operations):
            found = operations[method]
            groups.setdefault((found.get("tags") or ["other"])[0], []).append(_row(document, path, method, found))
    return render(request, "docs.html", "API", others=_OTHERS, groups=list(groups.items()))


def _row(document: Mapping[str, Any], path: str, method: str, found: Mapping[str, Any]) -> dict[str, Any]:
    content = found.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    example = _example(document, content) if content else None
    parameters = [
        {"name": p["name"], "place": p["in"], "required": p.get("required", False), "text": p.get("description", "")}
        for p in found.get("parameters", ())
    ]
    return {
        "id": found["operationId"], "method": method.upper(), "path": path, "summary": found.get("summary", ""),
        "text": found.get("description", ""), "parameters": parameters, "answers": sorted(found["responses"]),
        "body": json.dumps(example, indent=2, ensure_ascii=False) if example is not None else "",
    }  # fmt: skip


def _example(document: Mapping[str, Any], schema: Mapping[str, Any], depth: int = 0) -> Any:
    """A value of a schema: its example or default, else the name of its type."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if schema.get("examples"):
        return schema["examples"][0]
    for name in ("example", "default", "const"):
        if name in schema:
            return schema[name]
    if schema.get("enum"):
        return schema["enum"][0]
    choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if choices:
        return _example(document, choices[0], depth + 1)
    if schema.get("type") == "array":
        return [_example(document, schema.get("items", {}), depth + 1)] if depth < _DEEPEST else []
    if schema.get("type") == "object" and depth < _DEEPEST:
        return {name: _example(document, inner, depth + 1) for name, inner in schema.get("properties", {}).items()}
    return schema.get("format") or schema.get("type", "any")


def routes() -> list[Route]:
    """Path, function, method."""
    return [("/docs", docs, "GET")]
