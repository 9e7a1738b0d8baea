"""What every command shares: options, opening, errors, output."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nyima.app.environment import Settings, load_settings
from nyima.errors import NyimaError, StoreFull

if TYPE_CHECKING:
    from datetime import tzinfo

    from rich.console import Console

    from nyima.memory import Memory

__all__ = ["Common", "command", "console", "ensure_packs", "parse_date", "say"]


@dataclass(frozen=True, slots=True)
class Common:
    """The options that every command has."""

    json: bool
    user: str | None
    db: str | None
    debug: bool

    def settings(self, **more: Any) -> Settings:
        """The settings with these options on top."""
        return load_settings(user=self.user, db=self.db, **more)

    async def memory(self, *, recipe: str | None = None, model: str = "none", embedder: str | None = None) -> Memory:
        """The memory that the options name; fetches the small embedding model once."""
        from nyima.memory import Memory

        settings = self.settings(embedder=embedder)
        ensure_packs(settings, "embed")
        return await Memory.open(
            settings.where, user=settings.user, recipe=recipe, model=model, embedder=settings.embedder
        )

    def show(self, data: Any, text: Callable[[Console], None]) -> None:
        """One JSON document on standard output, or the readable form."""
        if self.json:
            say(json.dumps(data, ensure_ascii=False, indent=2))
        else:
            text(console())


def say(line: str) -> None:
    """A line on standard output, in UTF-8 whatever the terminal claims."""
    sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
    sys.stdout.flush()


@functools.cache
def console(*, err: bool = False) -> Console:
    """Rich output; progress and messages go to standard error."""
    from rich.console import Console

    return Console(stderr=err, highlight=False, soft_wrap=not err)


_JSON = Annotated[bool, typer.Option("--json", help="Print JSON on standard output and nothing else.")]
_USER = Annotated[str | None, typer.Option("--user", help="Whose memory (NYIMA_USER; default: me).")]
_DB = Annotated[str | None, typer.Option("--db", help="The memory file, or the URL of a store (NYIMA_DB).")]
_DEBUG = Annotated[bool, typer.Option("--debug", help="Show tracebacks and what is extracted and merged.")]
_SHARED = (("as_json", _JSON, False), ("user", _USER, None), ("db", _DB, None), ("debug", _DEBUG, False))


def command(app: typer.Typer, name: str, example: str) -> Callable[[Callable[..., Awaitable[None]]], None]:
    """Register an async function as a command. It gets a Common first; the shared
    options, the error messages and the exit codes are the same everywhere. A parameter
    that is a dataclass stands for a group of options, one a field."""

    def register(function: Callable[..., Awaitable[None]]) -> None:
        signature = inspect.signature(function, eval_str=True)
        given_own = list(signature.parameters.values())[1:]
        groups: dict[str, Any] = {p.name: p.annotation for p in given_own if is_dataclass(p.annotation)}
        own = [p for p in given_own if p.name not in groups]
        own += [p for kind in groups.values() for p in inspect.signature(kind, eval_str=True).parameters.values()]
        shared = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for key, kind, default in _SHARED
        ]

        def wrapper(**given: Any) -> None:
            common = Common(given.pop("as_json"), given.pop("user"), given.pop("db"), given.pop("debug"))
            for name, kind in groups.items():
                given[name] = kind(**{f.name: given.pop(f.name) for f in fields(kind)})
            run_guarded(lambda: function(common, **given), debug=common.debug)

        keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        wrapper.__signature__ = inspect.Signature([*keyword, *shared])  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in (*keyword, *shared)}
        wrapper.__doc__ = f"{inspect.getdoc(function)}\n\nExample: `{example}`"
        wrapper.__name__ = function.__name__
        app.command(name)(wrapper)

    return register


@contextlib.contextmanager
def ended_by_signals() -> Iterator[Callable[[], None]]:
    """Cancel the running command at Ctrl-C, where the terminal closes (SIGHUP), or where the
    process is asked to end (SIGTERM), so that it can still leave things in order. What is given
    makes it deaf to further ones meanwhile."""
    work = asyncio.current_task()
    assert work is not None
    names = ("SIGINT", "SIGHUP", "SIGTERM")
    for name in names:
        on_signal(name, work.cancel)

    def deaf() -> None:
        for name in names:
            on_signal(name, lambda: None)

    try:
        yield deaf
    finally:
        for name in names:
            with contextlib.suppress(AttributeError, NotImplementedError):
                asyncio.get_running_loop().remove_signal_handler(getattr(signal, name))


def on_signal(name: str, action: Callable[[], object]) -> None:
    """Do this at a signal from now on; nothing where the system does not have it (Windows)."""
    with contextlib.suppress(AttributeError, NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(getattr(signal, name), action)


def run_guarded(work: Callable[[], Awaitable[None]], *, debug: bool) -> None:
    """Run a command; errors become messages with what to do, and exit codes."""

    async def run() -> None:
        await work()

    try:
        asyncio.run(run())
    except NyimaError as error:
        _fail(str(error), error.exit_code, debug=debug)
    except KeyboardInterrupt:
        _fail("stopped; what was said or fetched so far is kept", 130, debug=False)
    except typer.Abort:
        _fail("not confirmed; nothing was changed", 1, debug=False)
    except BrokenPipeError:
        sys.stderr.close()
        raise typer.Exit(141) from None
    except OSError as error:
        code = StoreFull.exit_code
        _fail(
            f"{error.filename or 'the system'}: {error.strerror or error}: check the path and the disk",
            code,
            debug=debug,
        )
    except typer.Exit:
        raise
    except Exception as error:
        _fail(
            f"unexpected {type(error).__name__}: {error}: run it with --debug and report what it prints", 1, debug=debug
        )


def _fail(message: str, code: int, *, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    print(f"nyima: {message}", file=sys.stderr)
    raise typer.Exit(code)


def ensure_packs(settings: Settings, *roles: str) -> None:
    """Fetch the packs that the settings need and that are not there yet, with progress."""
    from nyima.app.environment import shelf
    from nyima.models.embed import runtime_missing
    from nyima.models.packs import packs

    held = shelf(settings)
    wanted = [settings.embedder] if "embed" in roles and not runtime_missing() else []
    if "chat" in roles:
        wanted.append(chat_pack(settings))
    for name in wanted:
        if name in packs() and not held.present(held.pack(name)):
            pull_with_progress(settings, name)


def chat_pack(settings: Settings) -> str:
    """The chat pack that will be used, empty when a server answers instead."""
    from nyima.app.environment import default_chat_pack
    from nyima.models.packs import packs

    if settings.model in packs():
        return settings.model
    return default_chat_pack(settings)


def pull_with_progress(settings: Settings, name: str) -> None:
    """Fetch a pack with a bar: size, speed, time left."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from nyima.app.environment import shelf

    held = shelf(settings)
    pack = held.pack(name)
    # The event loop's own handler would wait for the download to end.
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    columns = (
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    try:
        with Progress(*columns, console=console(err=True)) as progress:
            tasks = {f.name: progress.add_task(f"{name}: {f.name}", total=f.size) for f in pack.files}
            held.pull(name, lambda file, have, _: progress.update(tasks[file], completed=have))
    finally:
        signal.signal(signal.SIGINT, previous)


def parse_date(text: str | None, zone: tzinfo | None = None) -> Any:
    """A date or time as an aware datetime, in the user's zone (else the machine's) where it names
    none; a date means its end, so that it counts."""
    from datetime import UTC, datetime, timedelta

    from nyima.errors import InputError

    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if len(text) <= 10:
            moment += timedelta(days=1) - timedelta(microseconds=1)
        if moment.tzinfo is None and zone is not None:
            moment = moment.replace(tzinfo=zone)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(f"{text!r} is no date: give one such as 2026-05-01 or 2026-05-01T18:00") from error
