"""What goes on to the upstream, and its errors as the program gets them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nyima.adapters.upstream import Sent
from nyima.interfaces.server.keys import Key
from nyima.interfaces.server.problems import Problem, envelope

__all__ = ["outgoing", "read_object", "refused"]


def outgoing(body: Mapping[str, Any], key: Key) -> dict[str, Any]:
    """The request as the upstream gets it: no user of ours is named there."""
    found = {k: v for k, v in body.items() if k not in {"user", "safety_identifier", "prompt_cache_key"}}
    metadata = found.get("metadata")
    if isinstance(metadata, dict):
        found["metadata"] = {k: v for k, v in metadata.items() if k not in {"user_id", "session_id", "memory"}}
    if any(name in body for name in ("user", "safety_identifier")):
        found["safety_identifier"] = f"nyima-{key.id}"
    return found


async def read_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object. Raises Problem 400."""
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"the body is no JSON: {str(error)[:200]}") from error
    if not isinstance(found, dict):
        raise Problem(400, "the body must be a JSON object")
    return found


def refused(sent: Sent, raw: bytes) -> Response:
    """The upstream's error, in OpenAI's form whatever its own was. What it says of its keys
    stays here."""
    after = sent.headers.get("retry-after", "")
    headers = {"retry-after": after} if after else {}
    status = sent.status if sent.status not in {401, 403} else 502
    detail = f"the upstream answered HTTP {sent.status}"
    code = "upstream_error"
    if status == sent.status:
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            error = json.loads(raw)["error"]
            detail = f"{detail}: {str(error['message'])[:500]}"
            code = str(error.get("code") or code)
    return JSONResponse(envelope(Problem(status, detail, code=code)), status, headers)
