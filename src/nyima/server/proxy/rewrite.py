"""What goes on to the upstream, and its errors as the program gets them."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nyima.server.access.keys import Key
from nyima.server.problems import Problem, envelope
from nyima.server.proxy.upstream import Sent
from nyima.server.sse import dumped, parsed

__all__ = ["Answered", "outgoing", "read_object", "refused"]


class Answered(JSONResponse):
    """An upstream's answer, which may hold what strict JSON does not."""

    def render(self, content: Any) -> bytes:
        """As bytes."""
        return dumped(content)


def outgoing(body: Mapping[str, Any], key: Key, drops: Collection[str] = ()) -> dict[str, Any]:
    """The request as the upstream gets it: no user of ours is named there, nor what is to be
    dropped."""
    gone = {"user", "safety_identifier", "prompt_cache_key", *drops}
    found = {k: v for k, v in body.items() if k not in gone}
    metadata = found.get("metadata")
    if isinstance(metadata, dict):
        found["metadata"] = {k: v for k, v in metadata.items() if k not in {"user_id", "session_id", "memory"}}
    if any(name in body for name in ("user", "safety_identifier")):
        found["safety_identifier"] = f"nyima-{key.id}"
    return found


async def read_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object. Raises Problem 400."""
    try:
        found = parsed(await request.body())
    except ValueError as error:
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
            error = parsed(raw)["error"]
            detail = f"{detail}: {str(error['message'])[:500]}"
            code = str(error.get("code") or code)
    return Answered(envelope(Problem(status, detail, code=code)), status, headers)
