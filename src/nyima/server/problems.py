"""Errors on the wire: OpenAI's envelope below /v1, problem details (RFC 9457) elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nyima.errors import (
    BudgetSpent,
    Conflict,
    InputError,
    ModelError,
    NotFound,
    NyimaError,
    PackError,
    StoreError,
    StoreFull,
    StoreLocked,
)

__all__ = ["Problem", "problem_of", "respond"]

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
_STATUS: tuple[tuple[type[NyimaError], int], ...] = (
    (NotFound, 404),
    (InputError, 422),
    (Conflict, 409),
    (BudgetSpent, 429),
    (PackError, 501),
    (ModelError, 502),
    (StoreLocked, 503),
    (StoreFull, 507),
    (StoreError, 503),
)


class Problem(Exception):
    """A request that is answered with an error. ``after`` is when to try again, in seconds."""

    def __init__(
        self, status: int, detail: str, *, param: str | None = None, code: str = "", after: float = 0.0
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.param, self.code, self.after = status, detail, param, code, after


def problem_of(error: NyimaError) -> Problem:
    """One of Nyima's errors as a problem."""
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    after = 60.0 if status in {429, 503} else 0.0
    return Problem(status, str(error), code=type(error).__name__, after=after)


def respond(request: Request, problem: Problem) -> Response:
    """The problem in the form of the route's API."""
    headers: dict[str, str] = {}
    if problem.after > 0:
        headers["retry-after"] = str(math.ceil(problem.after))
    if problem.status in {408, 413}:
        headers["connection"] = "close"  # the rest of the body is not waited for
    if problem.status == 401:
        headers["www-authenticate"] = 'Bearer realm="nyima"'
    if request.url.path.startswith("/v1"):
        return JSONResponse(envelope(problem), problem.status, headers)
    title = HTTPStatus(problem.status).phrase
    body: dict[str, Any] = {"type": "about:blank", "title": title, "status": problem.status, "detail": problem.detail}
    if problem.code:
        body["code"] = problem.code
    if problem.param:
        body["param"] = problem.param
    return JSONResponse(body, problem.status, headers, media_type="application/problem+json")


def envelope(problem: Problem) -> Mapping[str, Any]:
    """OpenAI's error object."""
    kind = _TYPES.get(problem.status, "invalid_request_error" if problem.status < 500 else "server_error")
    code = problem.code or ("invalid_api_key" if problem.status == 401 else None)
    return {"error": {"message": problem.detail, "type": kind, "param": problem.param, "code": code}}
