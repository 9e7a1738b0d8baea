"""The server's application: routes, errors, and what is open without a key."""

from __future__ import annotations

import asyncio
import contextlib
import time
import urllib.parse
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nyima import __version__
from nyima.app.services import Services
from nyima.errors import NyimaError
from nyima.memory import Memory
from nyima.models.reached import Reaches
from nyima.server import rest, rest_sources
from nyima.server.access.auth import COOKIE, Gate, needs
from nyima.server.access.guard import Guard, route_of
from nyima.server.access.keys import Key, KeyRing
from nyima.server.access.limits import RateLimits
from nyima.server.audit import audit
from nyima.server.mcp import Lends, mcp_server, transport_security
from nyima.server.metrics import Metrics
from nyima.server.pool import Memories
from nyima.server.problems import Problem, problem_of, respond
from nyima.server.proxy.identity import header, scope_of
from nyima.server.proxy.note_support import Notetakers
from nyima.server.proxy.routes import Proxy
from nyima.server.proxy.upstream import Upstream
from nyima.server.proxy.wire_chat import CHAT
from nyima.server.proxy.wire_responses import RESPONSES
from nyima.server.state import Served, served
from nyima.server.web import pages, reference, talk
from nyima.server.web.pages import login_page, render

__all__ = ["Serving", "application"]

_OPEN = frozenset({"/health/live", "/health/ready"})


@dataclass(frozen=True, slots=True)
class Serving:
    """How a server is set up. ``hosts`` are the names that it answers to; ``trusted`` takes
    the headers of front ends; ``most`` bytes and ``seconds`` bound a body, ``large`` bytes one
    that may hold files; ``idle`` is how long it waits, in seconds, before it works."""

    hosts: frozenset[str] = frozenset({"127.0.0.1", "localhost", "[::1]"})
    trusted: bool = False
    most: int = 4_194_304
    large: int = 67_108_864
    seconds: float = 60.0
    idle: float = 1.5


def application(parts: Services, ring: KeyRing, serving: Serving = Serving()) -> FastAPI:
    """The application over one store and one model."""
    memories = Memories(parts, idle=serving.idle)
    limits, metrics = RateLimits(), Metrics()
    chat: object = parts.chat
    upstream = Upstream(chat) if isinstance(chat, Reaches) else None
    takers = Notetakers(small=parts.chat is not None and parts.chat.grammars)
    proxy = Proxy(memories, upstream, limits, metrics, takers, serving.trusted) if upstream is not None else None

    tools = mcp_server(_lends(memories))
    over_http = tools.streamable_http_app(
        streamable_http_path="/mcp", json_response=True, stateless_http=True,
        transport_security=transport_security(sorted(serving.hosts)),
    )  # fmt: skip

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        await memories.start()
        async with tools.session_manager.run():
            yield
        if running := app.state.served.running:
            _, late = await asyncio.wait(running, timeout=10.0)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if proxy is not None:
            await proxy.close()
        if upstream is not None:
            await upstream.close()
        await memories.close()

    app = FastAPI(
        title="Nyima", version=__version__, description="A personal memory that you own, for any LLM assistant.",
        lifespan=life, openapi_url="/openapi.json", docs_url=None, redoc_url=None,
        middleware=[Middleware(Guard, hosts=serving.hosts, sizes=(serving.most, serving.large), seconds=serving.seconds),
                    Middleware(_Counted, metrics=metrics), Middleware(_Keyed)],
    )  # fmt: skip
    app.state.served = Served(memories, Gate(ring, limits), limits, metrics, proxy)
    _answer_errors(app)
    app.include_router(rest.router)
    app.include_router(rest_sources.router)
    _add_proxy(app)
    _add_health(app)
    _add_pages(app)
    app.router.routes.extend(over_http.routes)
    return app


def _lends(memories: Memories) -> Lends:
    """The memory of a call's key, when the key may do it."""

    def lends(request: object, writes: bool) -> Memory:
        assert isinstance(request, Request)
        key: Key = request.state.key
        needs(key, ("read", "write") if writes else ("read",))
        scope = scope_of(key, header(request.headers, "x-nyima-user-id").strip())
        request.state.whose = scope
        if writes:
            memories.owe(scope)
        return memories.of(scope)

    return lends


@dataclass(slots=True)
class _Keyed:
    """No route but the health routes is reached without a key, whatever it forgets."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        logging_in = scope["type"] == "http" and (scope["path"], scope["method"]) == ("/login", "POST")
        if scope["type"] == "http" and scope["path"] not in _OPEN and not logging_in:
            request = Request(scope)
            try:
                scope.setdefault("state", {})["key"] = served(request).gate.check(request)
            except Problem as problem:
                page = problem.status == 401 and scope["method"] == "GET" and _wants_page(request)
                await (login_page() if page else respond(request, problem))(scope, receive, send)
                return
            except NyimaError as error:
                await respond(request, problem_of(error))(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _wants_page(request: Request) -> bool:
    """Whether a browser asks for a page."""
    named = "authorization" in request.headers or "x-api-key" in request.headers
    return not named and "text/html" in request.headers.get("accept", "")


@dataclass(slots=True)
class _Counted:
    app: ASGIApp
    metrics: Metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, audited = time.perf_counter(), 500, False

        async def answer(message: Message) -> None:
            nonlocal status, audited
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body" and not message.get("more_body", False):
                audited = True  # the line stands before the client can know that it was answered
                audit(scope, route_of(scope), status)
            await send(message)

        try:
            await self.app(scope, receive, answer)
        finally:
            self.metrics.observe(scope["method"], route_of(scope), status, time.perf_counter() - started)
            if not audited:
                audit(scope, route_of(scope), status)


def _answer_errors(app: FastAPI) -> None:
    async def problem(request: Request, error: Exception) -> Response:
        found = _problem_of(error)
        if request.method == "GET" and _wants_page(request) and hasattr(request.state, "key"):
            page = render(request, "problem.html", HTTPStatus(found.status).phrase, what=found.detail)
            page.status_code = found.status
            return page
        return respond(request, found)

    for kind in (Problem, NyimaError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, problem)


def _problem_of(error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, NyimaError):
        return problem_of(error)
    if isinstance(error, RequestValidationError):
        first: dict[str, Any] = dict(next(iter(error.errors()), {}))
        where = ".".join(str(p) for p in first.get("loc", ()))
        return Problem(422, f"{where}: {first.get('msg', 'not valid')}", param=where)
    if isinstance(error, HTTPException):
        return Problem(error.status_code, str(error.detail))
    return Problem(500, "something failed that should not: it is in the server's log")


def _add_proxy(app: FastAPI) -> None:
    def there(request: Request) -> Proxy:
        found = served(request).proxy
        if found is None:
            raise Problem(503, "there is no chat model behind this server: set OPENAI_BASE_URL or NYIMA_MODEL")
        return found

    async def chat(request: Request) -> Response:
        """Chat completions, with the memory."""
        return await there(request).answer(request, request.state.key, CHAT)

    async def responses(request: Request) -> Response:
        """Responses, with the memory."""
        return await there(request).answer(request, request.state.key, RESPONSES)

    async def pass_on(request: Request) -> Response:
        """As it is."""
        needs(request.state.key, ("read",))
        return await there(request).pass_on(request, request.state.key, request.url.path.removeprefix("/v1"))

    async def stored(request: Request) -> Response:
        """A response that the upstream keeps."""
        needs(request.state.key, ("write",) if request.method == "DELETE" else ("read",))
        return await there(request).stored(request, request.state.key, request.path_params["id"])

    routes: Iterable[tuple[str, Callable[[Request], Awaitable[Response]], str]] = (
        ("/v1/chat/completions", chat, "POST"),
        ("/v1/responses", responses, "POST"),
        ("/v1/responses/{id}", stored, "GET"),
        ("/v1/responses/{id}", stored, "DELETE"),
        ("/v1/models", pass_on, "GET"),
        ("/v1/models/{id:path}", pass_on, "GET"),
        ("/v1/embeddings", pass_on, "POST"),
        ("/v1/audio/{what}", pass_on, "POST"),
    )
    for path, function, method in routes:
        app.add_route(path, function, methods=[method], include_in_schema=False)


def _add_pages(app: FastAPI) -> None:
    async def login(request: Request) -> Response:
        """The key of a form as a cookie."""
        try:
            form = urllib.parse.parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=4)
            cookie = served(request).gate.login(form.get("key", [""])[0])
        except (Problem, ValueError):
            return login_page(wrong=True)
        answer = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, cookie, max_age=30 * 86_400, httponly=True, samesite="strict", secure=secure)
        return answer

    async def logout(request: Request) -> Response:
        """The cookie is gone."""
        del request
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(COOKIE)
        return answer

    found = [
        ("/login", login, "POST"),
        ("/logout", logout, "POST"),
        *talk.routes(),
        *pages.routes(),
        *reference.routes(),
    ]
    for path, function, method in found:
        app.add_route(path, function, methods=[method], include_in_schema=False)
    app.mount("/static", StaticFiles(directory=Path(pages.__file__).parent / "static"))


def _add_health(app: FastAPI) -> None:
    async def live(request: Request) -> Response:
        """The process answers. It looks at nothing else."""
        del request
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        """The memory file can be read."""
        try:
            await served(request).memories.parts.store.users(limit=1)
        except NyimaError as error:
            return JSONResponse({"status": "not ready", "why": type(error).__name__}, 503)
        return JSONResponse({"status": "ok"})

    async def metrics(request: Request) -> Response:
        """For Prometheus; needs a key with the scope admin."""
        needs(request.state.key, ("admin",))
        parts = served(request)
        waiting = Counter(await parts.memories.parts.store.queue())
        return PlainTextResponse(parts.metrics.text(waiting), media_type="text/plain; version=0.0.4")

    for path, function in (("/health/live", live), ("/health/ready", ready), ("/metrics", metrics)):
        app.add_route(path, function, methods=["GET"], include_in_schema=False)
