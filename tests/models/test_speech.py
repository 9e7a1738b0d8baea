"""Sounds as files, and a program that speaks."""

from __future__ import annotations

import struct
import wave
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.errors import ModelRefused, PackError
from nyima.models.speech import EspeakMouth, Sound, as_wav, read_wav, resampled

samples = st.lists(st.integers(-32_768, 32_767), max_size=60).map(lambda v: struct.pack(f"<{len(v)}h", *v))
rates = st.sampled_from([8_000, 16_000, 22_050, 24_000, 48_000])


@given(samples, rates)
def test_a_sound_comes_back_from_its_file(data: bytes, rate: int) -> None:
    sound = Sound(data, rate)
    assert read_wav(as_wav(sound)) == sound
    assert sound.seconds == len(data) / 2 / rate


@given(samples, st.integers(0, 200))
def test_a_file_that_was_cut_off_is_a_beginning_or_refused(data: bytes, end: int) -> None:
    problem = ""
    try:
        assert data.startswith(read_wav(as_wav(Sound(data, 16_000))[:end]).samples)
    except ModelRefused as error:
        problem = str(error)
    assert not problem or "give WAV with 16 bits" in problem


def test_what_was_cut_off_in_a_sample_can_be_played() -> None:
    assert resampled(read_wav(as_wav(Sound(b"\1\2\3\4", 16_000))[:-1]), 8_000).rate == 8_000


def test_a_chunk_that_is_longer_than_its_file_is_refused() -> None:
    data = bytearray(as_wav(Sound(b"\1\2" * 10, 16_000)))
    data[18] = 255
    with pytest.raises(ModelRefused):
        read_wav(bytes(data))


def of(width: int, channels: int, data: bytes) -> bytes:
    out = BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(16_000)
        file.writeframes(data)
    return out.getvalue()


@pytest.mark.parametrize("width", [1, 3, 4])
def test_another_size_of_samples_is_refused(width: int) -> None:
    with pytest.raises(ModelRefused, match=f"{8 * width} bits a sample: give WAV with 16 bits"):
        read_wav(of(width, 1, bytes(width * 10)))


@given(st.lists(st.tuples(st.integers(-9_000, 9_000), st.integers(-9_000, 9_000)), min_size=1, max_size=20))
def test_two_channels_become_their_mean(pairs: list[tuple[int, int]]) -> None:
    data = b"".join(struct.pack("<hh", *pair) for pair in pairs)
    mixed = struct.unpack(f"<{len(pairs)}h", read_wav(of(2, 2, data)).samples)
    assert all(abs(m - (a + b) / 2) < 1 for m, (a, b) in zip(mixed, pairs, strict=True))


def test_a_stream_that_does_not_know_its_length_is_read_to_its_end() -> None:
    data = bytearray(as_wav(Sound(b"\1\2" * 30, 22_050)))
    data[40:44] = data[4:8] = b"\xff\xff\xff\x7f"
    assert read_wav(bytes(data)) == Sound(b"\1\2" * 30, 22_050)


@given(samples, rates, rates)
def test_another_rate_keeps_how_long_and_how_loud_it_is(data: bytes, old: int, new: int) -> None:
    sound = Sound(data, old)
    found = resampled(sound, new)
    assert found.rate == new
    assert abs(found.seconds - sound.seconds) <= 1 / min(old, new)
    loudest = max((abs(v) for v in struct.unpack(f"<{len(data) // 2}h", data)), default=0)
    assert max((abs(v) for v in struct.unpack(f"<{len(found.samples) // 2}h", found.samples)), default=0) <= loudest


def program(folder: Path, body: str) -> str:
    path = folder / "speaker"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


async def test_a_program_hears_the_text_on_its_input_and_never_as_an_option(tmp_path: Path) -> None:
    (tmp_path / "sound.wav").write_bytes(as_wav(Sound(b"\1\2" * 30, 22_050)))
    mouth = EspeakMouth(
        "de", program(tmp_path, f'echo "$@" > {tmp_path}/args; cat > {tmp_path}/text; cat {tmp_path}/sound.wav')
    )
    assert await mouth.speak("--version; $(id) Füße") == Sound(b"\1\2" * 30, 22_050)
    assert (tmp_path / "args").read_text().split() == ["-v", "de", "--stdin", "--stdout"]
    assert (tmp_path / "text").read_text("utf-8") == "--version; $(id) Füße"


@pytest.mark.parametrize("body", ["cat sound.wav; exit 3", "exit 0", "echo no sound"])
async def test_a_program_that_fails_is_refused(tmp_path: Path, body: str) -> None:
    (tmp_path / "sound.wav").write_bytes(as_wav(Sound(b"\1\2" * 30, 22_050)))
    with pytest.raises(ModelRefused):
        await EspeakMouth("xx", program(tmp_path, f"cat > /dev/null; cd {tmp_path}; {body}")).speak("Hello.")


def test_a_program_that_is_missing_says_what_else_there_is() -> None:
    with pytest.raises(PackError, match="no-such-voice is not installed: install it, or give --mouth a model"):
        EspeakMouth(program="no-such-voice")
