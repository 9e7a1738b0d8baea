"""The command that talks aloud."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nyima.cli.common import Common, command, console, ended_by_signals, ensure_packs, pull_with_progress

if TYPE_CHECKING:
    from nyima.app.environment import Settings
    from nyima.models.speech import Ears, Mouth
    from nyima.voice import Spoken

__all__ = ["add_to"]


async def voice(
    common: Common,
    wav: Annotated[
        list[Path] | None, typer.Option("--wav", help="A file instead of the microphone; may be repeated.", exists=True)
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="A folder for what is spoken, with --wav.")] = None,
    ears: Annotated[str, typer.Option("--ears", help="A speech pack, or a model of the server.")] = "whisper-tiny.en",
    mouth: Annotated[str, typer.Option("--mouth", help="espeak-ng, or a model of the server.")] = "espeak-ng",
    model: Annotated[str, typer.Option("--model", help="The chat model.")] = "",
) -> None:
    """Talk with Nyima aloud; say goodbye to end. What is said is shown, too."""
    from nyima.assistant import Assistant
    from nyima.models.speech import SileroDetector
    from nyima.voice import DeviceAir, WavAir, converse, greet

    settings = common.settings(model=model or None)
    ensure_packs(settings, "embed", "chat")
    heard, said = _ears(settings, ears), _mouth(settings, mouth)
    air = WavAir(wav, out) if wav else DeviceAir()
    err = console(err=True)

    def show(who: str, text: str) -> None:
        if common.json:
            return
        screen = console()
        if who == "you":
            screen.print(f"you    {text}", markup=False)
        elif who == "nyima":
            screen.print("Nyima  ", end="", markup=False)
        elif who == "note":
            err.print(text, markup=False)
        else:
            screen.print(text, end="\n" if who == "end" else "", markup=False)

    async with Assistant.open(settings.where, user=settings.user, model=model or None) as nyima:
        talk = converse(nyima, heard, said, air, SileroDetector(), show)
        with ended_by_signals() as deaf, contextlib.closing(air):
            try:
                await greet(nyima, said, air, show)
                rows = [_row(turn) async for turn in talk]
            except asyncio.CancelledError:  # Ctrl-C, or the terminal was closed: the work is done at the next start
                raise typer.Exit(130) from None
            finally:  # however the talk ended
                deaf()
                await nyima.end_session()
        await nyima.drain()
    if common.json:
        common.show({"turns": rows}, lambda screen: None)


def _row(turn: Spoken) -> dict[str, object]:
    lasts = sum(sound.seconds for sound in turn.sounds)
    return {
        "heard": turn.heard, "reply": turn.reply, "barged": turn.barged, "first_sound": round(turn.seconds, 3),
        "spoken": round(lasts, 3),
    }  # fmt: skip


def _ears(settings: Settings, name: str) -> Ears:
    from nyima.app.environment import shelf
    from nyima.models.openai import Endpoint
    from nyima.models.packs import packs
    from nyima.models.speech import OpenAIEars, WhisperEars

    if name not in packs():
        return OpenAIEars(name, Endpoint(settings.base_url or None, settings.api_key or None))
    held = shelf(settings)
    if not held.present(held.pack(name)):
        pull_with_progress(settings, name)
    return WhisperEars(held.files(name), threads=settings.threads)


def _mouth(settings: Settings, name: str) -> Mouth:
    from nyima.models.openai import Endpoint
    from nyima.models.speech import EspeakMouth, OpenAIMouth

    if name in {"espeak-ng", "espeak"}:
        return EspeakMouth(program=name)
    return OpenAIMouth(name, Endpoint(settings.base_url or None, settings.api_key or None))


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    command(app, "voice", "nyima voice --wav hello.wav --out spoken")(voice)
