"""The chat in the terminal, and the scripted chat."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from nyima.cli.common import Common, command, console, ended_by_signals, ensure_packs, on_signal, say
from nyima.cli.feedback import feedback
from nyima.cli.memories import show_forgetting, show_receipt
from nyima.cli.why import show_evidence, show_trace
from nyima.domain.evidence import Answer, Usage
from nyima.errors import InputError, ModelError, NoModel, NotFound, NyimaError
from nyima.read.trace import evidence_to_dict, plan_to_list, trace_event

if TYPE_CHECKING:
    from rich.status import Status

    from nyima.assistant import Assistant
    from nyima.write.jobs import JobProgress

__all__ = ["add_to", "drain_with_progress"]

_HELP = """/why            what the last reply rests on
/good, /bad     a thumb for the last reply
/correct TEXT   what it should have said
/recall WORDS   look something up
/profile        what is known of you
/forget WORDS   erase what these words find, for good
/private        start or end a chat that reads the memory and never writes it
/recipe NAME    another recipe from now on
/help           this
goodbye         end the conversation; Ctrl-D does, too
Ctrl-C          stop a reply; a second time end the conversation
A line that ends with a backslash goes on in the next one; Alt-Enter starts a new line."""


async def drain_with_progress(drain: Callable[[JobProgress], Awaitable[Mapping[str, int]]]) -> Mapping[str, int]:
    """Do the work that is owed with a progress line. Ctrl-C leaves the rest as jobs."""
    err = console(err=True)
    with err.status("") as status:

        def show(kind: str, left: int) -> None:
            status.update(
                f"remembering: {kind} ({left} left; Ctrl-C leaves the rest for the next start)" if left else ""
            )

        try:
            done = await drain(show)
        except asyncio.CancelledError:
            err.print("the work that is left is kept for the next start")
            raise
    if done.get("parked"):
        err.print(f"[red]{done['parked']} jobs were given up[/]: `nyima doctor` says why")
    if done.get("waiting"):
        err.print(f"{done['waiting']} jobs wait for another try: `nyima work` runs them, or the next start")
    return done


@dataclass(slots=True)
class _Talk:
    """One run of the chat command."""

    assistant: Assistant
    common: Common
    last: Answer | None = None

    async def interruptible(self, text: str, write: Callable[[str], None]) -> Answer | None:
        """Stream a reply; None where Ctrl-C stopped it. Ctrl-C a second time ends the chat."""
        chat = asyncio.current_task()
        assert chat is not None
        reply = asyncio.get_running_loop().create_task(self.answer(text, write))

        def stop() -> None:
            chat.cancel() if reply.cancelling() else reply.cancel()

        on_signal("SIGINT", stop)
        try:
            return await reply
        except asyncio.CancelledError:
            if chat.cancelling():
                reply.cancel()
                await asyncio.wait({reply})
                raise
            return None
        finally:
            on_signal("SIGINT", chat.cancel)

    async def answer(self, text: str, write: Callable[[str], None]) -> Answer:
        """Stream a reply; the answer."""
        stream = self.assistant.stream(text)
        async for piece in stream:
            write(piece)
        self.last = stream.answer
        return self.last

    async def before(self) -> tuple[int, Usage]:
        """Where the counting of a session starts."""
        memory = self.assistant.memory
        return await memory.store.revision(memory.scope), await self._spent()

    async def _spent(self) -> Usage:
        from nyima.read.calls import usage_of

        memory = self.assistant.memory
        events = await memory.store.events(memory.scope, "call")
        return sum((usage_of(e.body) for e in events), Usage())

    async def close_session(self, start: tuple[int, Usage]) -> dict[str, Any]:
        """End the session, do what is owed, and count what was remembered since."""
        memory = self.assistant.memory
        await self.assistant.end_session()
        at_end = await self._spent()
        await drain_with_progress(self.assistant.drain)
        used = await self._spent()
        rows = await memory.store.changes(memory.scope, since=start[0])
        made = {r.successor or r.id for r in rows if r.verb in {"add", "revise"} and r.by != "history"}
        counts: dict[str, int] = {}
        for record in await memory.records():
            if record.id in made:
                counts[record.kind] = counts.get(record.kind, 0) + 1
        return {
            "profile": (await memory.profile()).as_dict(),
            "records": counts,
            "calls": used.calls - at_end.calls,
            "tokens": used.prompt + used.completion - at_end.prompt - at_end.completion,
        }


def _turn_json(user: str, answer: Answer) -> dict[str, Any]:
    return {
        "user": user,
        "reply": answer.text,
        "notes": {
            "remember": answer.notes.remember,
            "claims": [
                {"who": c.who, "what": c.what, "value": c.value, "status": c.status} for c in answer.notes.claims
            ],
            "outdated": list(answer.notes.outdated),
        },
        "recall": {
            "plan": plan_to_list(answer.recall),
            "kept": [evidence_to_dict(e) for e in answer.recall.kept],
        },
        "calls": answer.usage.calls,
        "tokens": {
            "prompt": answer.usage.prompt,
            "cached": answer.usage.cached,
            "completion": answer.usage.completion,
        },
        "ms": round(answer.seconds.get("total", 0.0) * 1_000),
        "ms_first": round(answer.seconds.get("first", 0.0) * 1_000),
    }


def _count(n: int, one: str) -> str:
    many = one[:-1] + "ies" if one.endswith("y") else one + "s"
    return f"{n} {one if n == 1 else many}"


def _remembered(counts: Mapping[str, int]) -> str:
    names = {"note": "note", "claim": "claim", "summary": "summary"}
    return ", ".join(_count(counts[kind], name) for kind, name in names.items() if counts.get(kind)) or "nothing new"


async def _script(talk: _Talk, lines: list[str]) -> None:
    """One message a line; an empty line and the end of the file end the session."""
    start = await talk.before()
    open_session = False
    for line in [*lines, ""]:
        text = line.rstrip("\r\n")
        if not text.strip():
            if open_session:
                done = await talk.close_session(start)
                _session_line(talk, done)
                start, open_session = await talk.before(), False
            continue
        open_session = True
        if talk.common.json:
            answer = await talk.answer(text, lambda _: None)
            say(json.dumps(_turn_json(text, answer), ensure_ascii=False))
        else:
            say(f"you    {text}")
            answer = await talk.answer(text, lambda _: None)
            say(f"Nyima  {answer.text}")


def _session_line(talk: _Talk, done: dict[str, Any]) -> None:
    if talk.common.json:
        line = {"session_end": True, "profile": done["profile"], "records": done["records"]}
        say(json.dumps(line, ensure_ascii=False))
    else:
        say(
            f"       remembered: {_remembered(done['records'])}        ({_count(done['calls'], 'model call')}, {done['tokens']:,} tokens)"
        )


async def _lines(assistant: Assistant) -> AsyncIterator[str]:
    """What the user types: with editing and history on a terminal, else plain lines.

    The history comes from the stored turns, so that nothing said lies in another file.
    """
    if not sys.stdin.isatty():
        async for line in _piped():
            print(f"you    {line.rstrip()}")
            yield line
        return
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import InMemoryHistory
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.patch_stdout import patch_stdout

    keys = KeyBindings()
    keys.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
    said = [t.text for t in await assistant.memory.turns() if t.role.value == "user"][-200:]
    prompt: PromptSession[str] = PromptSession(history=InMemoryHistory(said), key_bindings=keys, multiline=False)
    while True:
        try:
            with patch_stdout():
                text = await prompt.prompt_async("you    ")
                while text.endswith("\\"):
                    text = text[:-1] + "\n" + await prompt.prompt_async("...    ")
        except (EOFError, KeyboardInterrupt):
            return
        work = asyncio.current_task()
        if work is not None:
            on_signal("SIGINT", work.cancel)  # the prompt has taken it away
        yield text


async def _piped() -> AsyncIterator[str]:
    """The lines of standard input. They are read by a thread that the end of the program does
    not wait for, through a file object of its own, whose lock nobody else needs."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue()

    def read() -> None:
        with _own_input() as given, contextlib.suppress(RuntimeError):
            line = "begin"
            while line:  # an empty one is the end; the loop may be closed by then
                line = given.readline()
                loop.call_soon_threadsafe(lines.put_nowait, line)

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        yield line


def _own_input() -> contextlib.AbstractContextManager[TextIO]:
    """Standard input as another file object; as it is where a program has put its own there."""
    try:
        return open(sys.stdin.fileno(), encoding="utf-8", errors="replace", closefd=False)
    except (OSError, ValueError):
        return contextlib.nullcontext(sys.stdin)


async def _last_trace(talk: _Talk) -> dict[str, Any]:
    """The trace of the last reply; a private one is in no file."""
    if talk.last is not None:
        return dict(trace_event(talk.last.recall, datetime.now(UTC), talk.last).body)
    return dict((await talk.assistant.memory.explain("last")).trace or {})


async def _command(talk: _Talk, line: str, typed: AsyncIterator[str]) -> None:
    """A line that begins with a slash; ``typed`` is what comes after it."""
    out = console()
    name, _, rest = line.partition(" ")
    rest = rest.strip()
    memory = talk.assistant.memory
    match name:
        case "/why":
            show_trace(out, await _last_trace(talk))
        case "/recall":
            show_evidence(out, [evidence_to_dict(e) for e in (await memory.recall(rest)).kept])
        case "/profile":
            for key, value in (await memory.profile()).as_dict().items():
                out.print(f"{key.replace('_', ' '):20} {value}", markup=False)
        case "/forget":
            found = [e.record_id for e in await memory.meant(rest)]
            if not found:
                raise NotFound("nothing that is remembered is to the point: say it in other words")
            show_forgetting(out, await memory.would_forget(*found))
            print("Erase this for good? [y/N]: ", end="", flush=True)
            agreed = await anext(typed, None)
            if agreed is None:
                raise typer.Abort
            if agreed.strip().lower() in {"y", "yes"}:
                show_receipt(out, await talk.assistant.forget(*found))
        case "/private":
            if not talk.assistant.private:
                await talk.assistant.end_session()
            talk.assistant.private = not talk.assistant.private
            out.print("private: nothing of this is kept" if talk.assistant.private else "no longer private")
        case "/recipe":
            talk.assistant.choose(rest)
            out.print(f"recipe: {talk.assistant.recipe.about}")
        case "/good" | "/bad" | "/correct":
            out.print(await feedback(talk.assistant, talk.last, name, rest))
        case "/help":
            out.print(_HELP, markup=False)
        case _:
            out.print(f"there is no command {name}: /help lists them, and `goodbye` or Ctrl-D ends", markup=False)


class _Waiting:
    """A sign that something is coming, until the first piece of it is there."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._status: Status | None = console(err=True).status("thinking (the model is loaded at the first use)")

    def __enter__(self) -> Callable[[str], None]:
        if self._status is not None:
            self._status.start()
        return self.piece

    def piece(self, text: str) -> None:
        """Write a piece; before the first one the sign goes and the name comes."""
        if self._status is not None:
            self._status.stop()
            self._status = None
            self._write("Nyima  ")
        self._write(text)

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()


async def _interactive(talk: _Talk) -> None:
    from nyima.language.intent import is_goodbye

    assistant = talk.assistant
    start = await talk.before()
    failed: ModelError | None = None

    def write(piece: str) -> None:
        sys.stdout.write(piece)
        sys.stdout.flush()

    try:
        with _Waiting(write) as first:
            async for piece in assistant.greet():
                first(piece)
    except ModelError as error:
        write(f"Hello! ({error})")
    print(flush=True)
    typed = _lines(assistant)
    async for line in typed:
        text = line.strip()
        if not text:
            continue
        try:
            if text.startswith("/"):
                await _command(talk, text, typed)
                continue
            with _Waiting(write) as first:
                answer = await talk.interruptible(line.rstrip("\n"), first)
            print()
            if answer is None:
                print("       stopped; Ctrl-C again ends the chat", file=sys.stderr)
            elif talk.common.debug:
                print(
                    f"       extracted: remember {answer.notes.remember}, claims "
                    f"{[(c.who, c.what, c.value, c.status) for c in answer.notes.claims]}",
                    file=sys.stderr,
                )
        except ModelError as error:
            failed = error
            print(f"\nnyima: {error}{'' if assistant.private else '; what you said is kept'}", file=sys.stderr)
        except (InputError, NotFound, typer.Abort) as error:
            print(f"nyima: {str(error) or 'not confirmed; nothing was changed'}", file=sys.stderr)
        if is_goodbye(text):
            break
    if not assistant.private:
        done = await talk.close_session(start)
        _session_line(talk, done)
        if talk.common.debug:
            print(f"       profile: {done['profile']}", file=sys.stderr)
    if failed is not None and not sys.stdin.isatty():
        raise typer.Exit(failed.exit_code)


async def chat(
    common: Common,
    script: Annotated[
        Path | None, typer.Option("--script", help="Messages from a file, one a line.", dir_okay=False)
    ] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", help="Which recipe; `default` unless set.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="A model's or a pack's name (NYIMA_MODEL).")] = None,
    private: Annotated[bool, typer.Option("--private", help="Read the memory, never write it.")] = False,
) -> None:
    """Talk with a companion that remembers."""
    from nyima.app.registry import recipe_named
    from nyima.assistant import Assistant

    settings = common.settings(model=model, recipe=recipe)
    lines: list[str] = []
    if script is not None:
        try:
            lines = script.read_text("utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{script} cannot be read: {error}: give a text file in UTF-8") from error
    if settings.model == "none":
        raise NoModel("the model is set to 'none', and a chat needs one: unset NYIMA_MODEL, or name another")
    recipe_named(settings.recipe)  # before anything is fetched for it
    ensure_packs(settings, "embed", "chat")
    assistant = await Assistant.open(
        settings.where,
        user=settings.user,
        model=settings.model or None,
        recipe=settings.recipe,
        embedder=settings.embedder,
    )
    assistant.private = private
    talk = _Talk(assistant, common)
    if common.json and script is None:
        script, lines = Path("-"), sys.stdin.read().split("\n")
    with ended_by_signals() as deaf:
        try:
            if script is not None:
                await _script(talk, lines)
            else:
                await _interactive(talk)
        except asyncio.CancelledError:
            deaf()  # a terminal that closes may say so more than once
            await _left(assistant)
            raise typer.Exit(130) from None
        finally:
            await assistant.close()


async def _left(assistant: Assistant) -> None:
    """After Ctrl-C, or when the terminal was closed: end the session as `goodbye` does, so that
    its work is owed, and say what is kept."""
    kept = "nothing of it is kept" if assistant.private else "what was said is kept"
    try:
        await asyncio.shield(assistant.end_session())
    except NyimaError as error:
        kept = str(error)
    with contextlib.suppress(OSError):  # nobody reads it any more
        print(f"nyima: the chat has ended; {kept}", file=sys.stderr)


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    command(app, "chat", "nyima chat --recipe default")(chat)
