"""Twenty sentences, spoken by espeak-ng, heard by a Whisper pack: word error rate, and the time
from the end of speech to the first sound of a reply that a scripted model writes at once.

    python tools/measure_voice.py [--ears whisper-tiny.en]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from nyima.app.environment import load_settings, shelf
from nyima.assistant import Assistant
from nyima.models.speech import RATE, EspeakMouth, SileroDetector, WhisperEars, as_wav, resampled
from nyima.testing import HashEmbedder, ScriptedModel
from nyima.voice import WavAir, converse

SENTENCES = (
    "My cat is called Luna and she is eleven years old.", "I moved to Porto in the spring of last year.",
    "Please keep your answers short.", "My sister lives in Lisbon with two children.", "I am allergic to walnuts and peanuts.",
    "What did I tell you about my flight?", "The meeting was moved to half past three on Thursday.", "I work as a nurse at the city hospital.",
    "We adopted a dog from the shelter in June.", "Remind me to call the dentist tomorrow morning.", "I stopped drinking coffee two weeks ago.",
    "My favourite film is about a journey to the moon.", "The train to the office leaves at ten past eight.", "I would like to learn how to play the piano.",
    "Anna and Ben are coming to dinner on Saturday.", "I bought a red bicycle for my daughter.", "Do you know where I left my keys?",
    "The doctor told me to walk more every day.", "Our anniversary is on the twelfth of May.", "Forget what I said about the old house.",
)  # fmt: skip
NUMBERS = {
    "10": "ten",
    "11": "eleven",
    "2": "two",
    "12th": "twelfth",
    "3": "three",
    "8": "eight",
    "favorite": "favourite",
}


def words(text: str) -> list[str]:
    """Words without case and marks; figures as words."""
    return [NUMBERS.get(w, w) for w in re.findall(r"[\w']+", text.lower())]


def errors(said: Sequence[str], heard: Sequence[str]) -> int:
    """The edit distance of two lists of words."""
    row = list(range(len(heard) + 1))
    for i, one in enumerate(said, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(heard, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (one != other))
    return row[-1]


async def measure(pack: str) -> dict[str, object]:
    """All sentences, each a conversation of one turn."""
    mouth, ears = EspeakMouth(), WhisperEars(shelf(load_settings()).files(pack))
    await ears.hear(bytes(2 * RATE))
    wrong, total, first, hearing = 0, 0, list[float](), list[float]()
    reply = json.dumps({"reply": "I will keep that in mind. Is there more?", "remember": False, "facts": []})
    with tempfile.TemporaryDirectory() as name:
        for number, sentence in enumerate(SENTENCES):
            path = Path(name) / f"{number}.wav"
            sound = await mouth.speak(sentence)
            path.write_bytes(as_wav(sound))
            begun = time.perf_counter()
            heard = await ears.hear(resampled(sound, RATE).samples)
            hearing.append(time.perf_counter() - begun)
            wrong += errors(words(sentence), words(heard))
            total += len(words(sentence))
            model = ScriptedModel({"chat": [reply]})
            async with Assistant.open(
                Path(name) / f"{number}.db", model=model, embedder=HashEmbedder(), tools=()
            ) as nyima:
                talk = converse(nyima, ears, mouth, WavAir([path]), SileroDetector(), lambda who, text: None)
                first += [turn.seconds async for turn in talk]
    return {
        "ears": pack, "sentences": len(SENTENCES), "words": total, "wrong": wrong, "word_error_rate": round(wrong / total, 3),
        "hearing_ms": round(1_000 * statistics.median(hearing)), "first_sound_ms": round(1_000 * statistics.median(first)),
        "first_sound_p95_ms": round(1_000 * statistics.quantiles(first, n=20)[18]),
    }  # fmt: skip


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ears", default="whisper-tiny.en")
    print(json.dumps(asyncio.run(measure(parser.parse_args().ears)), indent=1))


if __name__ == "__main__":
    main()
