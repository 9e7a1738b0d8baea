"""A conversation by voice (the companion of the seeds, "In practice"): speech in, speech out; the
reply is spoken sentence by sentence while it is being written."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from nyima.assistant import Assistant
from nyima.domain.records import Entity
from nyima.errors import InputError, ModelError, NyimaError, PackError
from nyima.language.intent import is_goodbye
from nyima.models.speech import FRAME, RATE, Detector, Ears, Mouth, Sound, as_wav, read_wav, resampled

__all__ = ["Air", "DeviceAir", "Spoken", "WavAir", "converse", "greet", "sentences", "utterances"]

_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|(?<=[。！？])|\n+")
_SHORT = 12
_SPEECH, _SILENCE = 0.5, 0.35
_BARGE_FRAMES = 8
_KEPT_FRAMES = 18
_NOT_SAID = re.compile(r"[*_`#>|~]+|\[\d+\]|https?://\S+")


class Air(Protocol):
    """Where sound comes from and goes to. ``listens``: it can be heard while it plays."""

    listens: bool

    def frames(self) -> AsyncIterator[bytes]:
        """Frames of FRAME samples at RATE, as they come; the end when nothing more comes."""
        ...

    async def play(self, sound: Sound, stop: asyncio.Event) -> None:
        """Play until the end, or until ``stop`` is set."""
        ...

    def close(self) -> None:
        """Let microphone and loudspeaker go."""
        ...


@dataclass(slots=True)
class Spoken:
    """One exchange: what was heard, what was answered, whether the user spoke in between, and
    the seconds from the end of speech to the first sound."""

    heard: str
    reply: str = ""
    barged: bool = False
    seconds: float = 0.0
    sounds: list[Sound] = field(default_factory=list[Sound])


async def sentences(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    """Whole sentences of a text that is being written; very short ones wait for the next."""
    rest = ""
    async for piece in pieces:
        rest += piece
        while match := _END.search(rest, min(_SHORT, len(rest))):
            yield rest[: match.end()]
            rest = rest[match.end() :]
    if rest:
        yield rest


async def utterances(
    frames: AsyncIterator[bytes], detector: Detector, *, silence: float = 0.7, most: float = 30.0
) -> AsyncIterator[bytes]:
    """The stretches of speech in a stream of frames: each ends after ``silence`` seconds
    without speech, or after ``most`` seconds."""
    each = FRAME / RATE
    before: list[bytes] = []
    said: list[bytes] = []
    quiet = 0.0
    async for frame in frames:
        chance = detector.speech(frame)
        if not said:
            before = [*before[-9:], frame]
            if chance >= _SPEECH:
                said, before, quiet = list(before), [], 0.0
            continue
        said.append(frame)
        quiet = 0.0 if chance >= _SILENCE else quiet + each
        if quiet >= silence or len(said) * each >= most:
            yield b"".join(said)
            said, quiet = [], 0.0
            detector.reset()
    if said:
        yield b"".join(said)


async def converse(
    nyima: Assistant, ears: Ears, mouth: Mouth, air: Air, detector: Detector, show: Callable[[str, str], None]
) -> AsyncIterator[Spoken]:
    """Talk until the sound ends or somebody says goodbye. All that is said is also shown. A
    sentence that cannot be spoken is shown all the same."""
    late: deque[bytes] = deque(maxlen=_KEPT_FRAMES)
    async for samples in utterances(_with(late, air.frames()), detector):
        ended = time.perf_counter()
        try:
            text = await ears.hear(samples, await _names(nyima))
        except PackError:
            raise
        except ModelError as error:
            show("note", f"that could not be heard: {error}")
            continue
        if not text:
            continue
        show("you", text)
        spoken = Spoken(text)
        stop = asyncio.Event()
        watch = asyncio.create_task(_barge(air, detector, stop, late)) if air.listens else None
        try:
            await _answer(nyima.stream(text), mouth, air, (spoken, stop, ended), show)
        finally:
            if watch is not None:
                watch.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watch
        spoken.barged = stop.is_set()
        if not spoken.barged:
            late.clear()
        yield spoken
        if is_goodbye(text):
            return


async def greet(nyima: Assistant, mouth: Mouth, air: Air, show: Callable[[str, str], None]) -> Spoken:
    """Begin the conversation: a greeting, by name where the memory knows it."""
    spoken = Spoken("")
    await _answer(nyima.greet(), mouth, air, (spoken, asyncio.Event(), time.perf_counter()), show)
    return spoken


async def _answer(
    pieces: AsyncIterator[str],
    mouth: Mouth,
    air: Air,
    turn: tuple[Spoken, asyncio.Event, float],
    show: Callable[[str, str], None],
) -> None:
    """Write, speak and play side by side: while a sentence is played the next is spoken."""
    spoken, stop, ended = turn
    ready: asyncio.Queue[Sound | None] = asyncio.Queue(2)

    async def written() -> AsyncIterator[str]:
        async for piece in pieces:
            spoken.reply += piece
            show("", piece)
            yield piece

    async def say() -> None:
        try:
            async for sentence in sentences(written()):
                plain = " ".join(_NOT_SAID.sub(" ", sentence).split())
                if stop.is_set() or not any(c.isalnum() for c in plain):
                    continue
                try:
                    await ready.put(await mouth.speak(plain))
                except ModelError as error:
                    show("note", str(error))
        finally:
            await ready.put(None)

    show("nyima", "")
    work = asyncio.create_task(say())
    try:
        while (sound := await ready.get()) is not None:
            spoken.seconds = spoken.seconds or time.perf_counter() - ended
            spoken.sounds.append(sound)
            await air.play(sound, stop)
    except BaseException:
        work.cancel()
        raise
    try:
        await work
    except NyimaError as error:
        show("note", str(error))
    show("end", "")


async def _with(late: deque[bytes], frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The frames, and before them those that were heard while a reply was spoken: with them
    begins what the user says in between."""
    async for frame in frames:
        while late:
            yield late.popleft()
        yield frame
    while late:
        yield late.popleft()


async def _barge(air: Air, detector: Detector, stop: asyncio.Event, late: deque[bytes]) -> None:
    """Set ``stop`` when the user begins to speak; the last frames are kept in ``late``."""
    count = 0
    async for frame in air.frames():
        late.append(frame)
        count = count + 1 if detector.speech(frame) >= _SPEECH else 0
        if count >= _BARGE_FRAMES:
            stop.set()
            return


async def _names(nyima: Assistant) -> Sequence[str]:
    """Names that the memory knows, for ears that spell rare ones wrongly."""
    values = [v for v in (await nyima.memory.profile()).as_dict().values() if isinstance(v, str)]
    entities = [r.name for r in await nyima.memory.records(kinds=("entity",)) if isinstance(r, Entity)]
    found = [w for w in dict.fromkeys((*values, *entities)) if w[:1].isupper() and len(w) <= 30]
    return found[:30]


class WavAir:
    """Files instead of a microphone: each is one utterance; what is said goes to ``out``."""

    listens = False

    def __init__(self, files: Sequence[Path], out: Path | None = None) -> None:
        self._files, self._out = list(files), out
        self._count = 0

    async def frames(self) -> AsyncIterator[bytes]:
        """The files' frames, with a second of silence after each. Raises InputError."""
        for path in self._files:
            try:
                sound = resampled(read_wav(await asyncio.to_thread(path.read_bytes)), RATE)
            except (OSError, NyimaError) as error:
                raise InputError(f"{path} cannot be heard: {error}") from error
            samples = sound.samples + bytes(2 * RATE)
            for start in range(0, len(samples) - 2 * FRAME + 1, 2 * FRAME):
                yield samples[start : start + 2 * FRAME]

    async def play(self, sound: Sound, stop: asyncio.Event) -> None:
        """Write it as the next file."""
        del stop
        self._count += 1
        if self._out is not None:
            await asyncio.to_thread(self._out.mkdir, parents=True, exist_ok=True)
            await asyncio.to_thread((self._out / f"{self._count:03d}.wav").write_bytes, as_wav(sound))

    def close(self) -> None:
        """Files are closed already."""


class DeviceAir:
    """The machine's microphone and loudspeaker, by sounddevice (PortAudio)."""

    listens = True

    def __init__(self) -> None:
        try:
            import sounddevice
        except (ImportError, OSError) as error:
            raise PackError(
                f"there is no sound ({error}): `pip install 'nyima[voice]'` and install PortAudio, or give --wav"
            ) from error
        self._device: Any = sounddevice
        self._heard: asyncio.Queue[bytes] = asyncio.Queue(1_000)
        self._input: Any = None

    async def frames(self) -> AsyncIterator[bytes]:
        """What the microphone hears. Raises PackError when there is none."""
        loop = asyncio.get_running_loop()

        def put(data: bytes) -> None:
            if self._heard.full():
                self._heard.get_nowait()
            self._heard.put_nowait(data)

        if self._input is None:
            try:
                self._input = self._device.RawInputStream(
                    RATE, FRAME, channels=1, dtype="int16",
                    callback=lambda data, *_: loop.call_soon_threadsafe(put, bytes(data)),
                )  # fmt: skip
                self._input.start()
            except self._device.PortAudioError as error:
                raise PackError(f"the microphone cannot be used: {error}: plug one in, or give --wav") from error
        while True:
            yield await self._heard.get()

    async def play(self, sound: Sound, stop: asyncio.Event) -> None:
        """Play; stops within a tenth of a second."""
        with self._device.RawOutputStream(sound.rate, channels=1, dtype="int16") as out:
            step = 2 * (sound.rate // 10)
            for start in range(0, len(sound.samples), step):
                if stop.is_set():
                    return
                await asyncio.to_thread(out.write, sound.samples[start : start + step])

    def close(self) -> None:
        """Let the microphone go."""
        if self._input is not None:
            self._input.close()
            self._input = None
