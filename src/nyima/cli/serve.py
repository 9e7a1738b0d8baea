"""The commands that serve the memory, and the keys to it."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.cli.common import Common, command, console, ensure_packs

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from nyima.app.environment import Settings
    from nyima.app.services import Services
    from nyima.server.access.keys import Key, KeyRing

__all__ = ["add_to"]

_Host = Annotated[str, typer.Option("--host", help="The address to listen on.")]


@dataclass(frozen=True, slots=True)
class Admits:
    """What is let in."""

    names: Annotated[
        list[str] | None, typer.Option("--host-name", help="A name under which it is reached; may be repeated.")
    ] = None
    trusted: Annotated[
        bool, typer.Option("--trust-headers", help="Take user and chat from the headers of Open WebUI and LiteLLM.")
    ] = False
    large: Annotated[int, typer.Option("--max-body", min=4, max=1_024, help="MiB of a body that may hold files.")] = 64


async def serve(
    common: Common,
    host: _Host = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0 takes a free one.")] = 8_765,
    admits: Admits = Admits(),
    model: Annotated[str, typer.Option("--model", help="The chat model behind it.")] = "",
    log: Annotated[bool, typer.Option("--log", help="A JSON line a request on standard error.")] = False,
) -> None:
    """Serve the memory: /v1 for OpenAI-compatible programs, /api, /mcp and a web page."""
    uvicorn = _needed("uvicorn")
    from nyima.errors import ConfigError
    from nyima.server.application import Serving, application
    from nyima.server.uvicorn_settings import SETTINGS

    settings = common.settings(model=model or None)
    ring = _ring(settings)
    local = _is_loopback(host)
    if not local and not ring.all():
        raise ConfigError(
            f"{host} can be reached from outside and there is no key yet: run `nyima keys add NAME` first"
        )
    bound = _bound(host, port)
    address = f"http://{'127.0.0.1' if host in {'0.0.0.0', '::'} else host}:{bound.getsockname()[1]}"  # noqa: S104
    secret = _first_key(ring, settings) if not ring.all() else ""
    parts, without = _parts(common, settings, model)
    hosts = frozenset({"127.0.0.1", "localhost", "[::1]", host, *(admits.names or ())})
    app = application(parts, ring, Serving(hosts=hosts, trusted=admits.trusted, large=admits.large << 20))

    def text(out: Console) -> None:
        out.print(f"Nyima at {address}  (web page; /v1 for programs, /api, /mcp; Ctrl-C ends)", markup=False)
        if secret:
            out.print(f"API key, shown once: {secret}", markup=False)
        if parts.chat is None:
            why = f"{without}: " if without else ""
            out.print(f"{why}/v1 answers 503; set OPENAI_BASE_URL or NYIMA_MODEL", markup=False)

    common.show({"url": address, "key": secret or None}, text)
    _log_to_stderr(quiet=not log)
    _audit_to(settings.db.with_suffix(".audit.jsonl"))
    config = uvicorn.Config(app, **SETTINGS)
    with contextlib.closing(bound):
        await uvicorn.Server(config).serve([bound])


def _parts(common: Common, settings: Settings, model: str) -> tuple[Services, str]:
    """The parts, with the chat model when there is one; else why there is none."""
    from nyima.app.opening import parts_for
    from nyima.errors import NoModel

    ensure_packs(settings, "embed", "chat")
    try:
        return parts_for(settings.where, settings.user, None, model or None, settings.embedder, None), ""
    except NoModel as error:
        return parts_for(settings.where, settings.user, None, "none", settings.embedder, None), str(error)


def _bound(host: str, port: int) -> socket.socket:
    from nyima.errors import ConfigError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off Nagle's delay, 40 ms an answer, only for sockets that name their protocol
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise ConfigError(f"{host}:{port} cannot be taken: {error.strerror or error}: give another --port") from error
    return bound


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _needed(name: str) -> Any:
    from nyima.errors import ConfigError

    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise ConfigError(f"{error.name or name} is missing: run `pip install 'nyima[server]'`") from error
    return uvicorn


def _ring(settings: Settings) -> KeyRing:
    """The keys beside the memory file."""
    from nyima.server.access.keys import KeyRing

    return KeyRing(settings.db.with_suffix(".keys.json"))


def _first_key(ring: KeyRing, settings: Settings) -> str:
    from nyima.domain.conversation import Scope

    _, secret = ring.make("first", Scope(user=settings.user), ("read", "write", "admin"))
    return secret


def _log_to_stderr(*, quiet: bool) -> None:
    from nyima.server.access.guard import JsonLines

    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("nyima").setLevel(logging.WARNING if quiet else logging.INFO)


def _audit_to(path: Path) -> None:
    from nyima.server.access.guard import JsonLines
    from nyima.server.audit import AuditFile

    handler = AuditFile(path)
    handler.setFormatter(JsonLines())
    audit = logging.getLogger("nyima.audit")
    audit.handlers[:] = [handler]
    audit.setLevel(logging.INFO)
    audit.propagate = False


async def mcp(common: Common) -> None:
    """Speak MCP on standard input and output: `claude mcp add nyima -- nyima mcp`."""
    from nyima.errors import ConfigError

    try:
        from nyima.server.mcp import mcp_server, one_memory
    except ImportError as error:
        raise ConfigError(f"{error.name} is missing: run `pip install 'nyima[mcp]'`") from error
    memory = await common.memory()
    try:
        await mcp_server(one_memory(memory)).run_stdio_async()
    finally:
        await memory.close()


async def add(
    common: Common,
    name: Annotated[str, typer.Argument(help="What gets the key, such as a program's name.")],
    scopes: Annotated[str, typer.Option("--scopes", help="Of read, write, act-as, admin.")] = "read,write",
    tenant: Annotated[str, typer.Option("--tenant", help="Whose users it opens.")] = "local",
    requests: Annotated[int, typer.Option("--requests", min=0, help="A minute; 0 is no limit.")] = 600,
    tokens: Annotated[int, typer.Option("--tokens", min=0, help="A day, of the model behind; 0 is no limit.")] = 0,
) -> None:
    """Make an API key for the memory of --user. It is shown once; only its hash is kept."""
    from nyima.domain.conversation import Scope

    settings = common.settings()
    wanted = [s.strip() for s in scopes.split(",") if s.strip()]
    scope = Scope(tenant=tenant, user=settings.user)
    key, secret = _ring(settings).make(name, scope, wanted, requests=requests, tokens=tokens)

    def text(out: Console) -> None:
        out.print(f"{secret}", markup=False)
        console(err=True).print(f"key {key.id} of {key.user} ({', '.join(key.scopes)}); it is not shown again")

    common.show({**_shown(key), "secret": secret}, text)


async def list_(common: Common) -> None:
    """The keys: name, user, scopes, limits. Secrets are not kept, so none can be shown."""
    rows = [_shown(k) for k in _ring(common.settings()).all()]

    def text(out: Console) -> None:
        for row in rows:
            limits = f"{row['requests'] or 'any'} requests a minute, {row['tokens'] or 'any'} tokens a day"
            out.print(
                f"{row['id']}  {row['name']:16} {row['user']:12} {','.join(row['scopes']):20} {limits}", markup=False
            )
        if not rows:
            out.print("there is no key: `nyima keys add NAME` makes one", markup=False)

    common.show({"keys": rows}, text)


async def remove(
    common: Common, id: Annotated[str, typer.Argument(help="The key's id, as `keys list` has it.")]
) -> None:
    """Withdraw a key. A server that runs refuses it from the next request on."""
    key = _ring(common.settings()).remove(id)
    common.show({"removed": key.id}, lambda out: out.print(f"withdrawn: {key.id} {key.name}", markup=False))


def _shown(key: Key) -> dict[str, Any]:
    return {
        "id": key.id, "name": key.name, "tenant": key.tenant, "user": key.user, "scopes": list(key.scopes),
        "requests": key.requests, "tokens": key.tokens, "made": key.made,
    }  # fmt: skip


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "serve", "nyima serve --port 8765")(serve)
    command(app, "mcp", "nyima mcp --user karen")(mcp)
    keys = typer.Typer(help="API keys for the server.", no_args_is_help=True)
    command(keys, "add", "nyima keys add my-editor --scopes read,write")(add)
    command(keys, "list", "nyima keys list")(list_)
    command(keys, "remove", "nyima keys remove 1a2b3c4d")(remove)
    app.add_typer(keys, name="keys")
