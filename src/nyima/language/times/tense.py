"""Whether a phrase of time is about the past: read off the verb that it most likely belongs to."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Sequence

from nyima.language.times.tokens import Token

__all__ = ["Tenses"]

_BE = frozenset("am is are be being im isn't aren't isnt arent get getting gets got".split())
_SUBJECTS = frozenset("i we you they".split())
_NOW = frozenset("is are im do does isn't aren't don't doesn't isnt arent dont doesnt".split())
_HAVE = frozenset("have has ive weve".split())
_AHEAD = frozenset(
    "will shall gonna must can should might won't can't wont cant shan't shouldn't gotta upcoming due".split()
)
_PAST = frozenset("did was were had didn't wasn't weren't hadn't didnt wasnt werent".split())
_PROMISED = frozenset(
    "promised planned agreed arranged decided offered intended hoped expected wanted supposed due".split()
)
"""What was meant then to be done later: "they promised to start in June" is not about the past."""
_WHO = frozenset("what's who's where's when's how's there's that's it's he's she's whats whos wheres whens".split())


class Tenses:
    """The verbs of a text that show a tense, by where they stand."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._places: list[int] = []
        self._back: list[bool] = []
        self._stops = [t.begin for t in tokens if t.text in {".", "!", "?", ";"}]
        words = [t.text for t in tokens]
        for number, token in enumerate(tokens):
            verdict = _tense(words, number) if token.kind == "word" else None
            if verdict is not None:
                self._places.append(token.begin)
                self._back.append(verdict)

    def at(self, place: int) -> bool | None:
        """Return whether a phrase at this offset is about the past: by the nearest verb before it in
        its sentence, else the first one after it; None where there is none."""
        stop = bisect.bisect_left(self._stops, place)
        first = self._stops[stop - 1] if stop else -1
        last = self._stops[stop] if stop < len(self._stops) else place + 10_000
        after = bisect.bisect_left(self._places, place)
        if after and self._places[after - 1] > first:
            return self._back[after - 1]
        if after < len(self._places) and self._places[after] < last:
            return self._back[after]
        return None


def _tense(words: Sequence[str], i: int) -> bool | None:
    """Whether a word shows the past (True) or what is to come (False); None where it shows neither."""
    word = words[i]
    follow = words[i + 1 : i + 3]
    if word in _PAST:
        return True
    if word == "do" and not _PAST.isdisjoint(words[max(0, i - 3) : i]):
        return None
    if word in _AHEAD | _NOW | _WHO or word.endswith(("'ll", "'re", "'m")):
        return False
    if word in _HAVE or word.endswith("'ve"):
        return any(_is_past(w, "VBN") for w in follow) and "got" not in follow
    if word == "to" and follow and _is_base(follow[0]):
        led = words[i - 1] if i else ""
        return led == "used" or (_is_past(led, "VBD") and led not in _PROMISED and not _passive(words, i - 1))
    if _is_past(word, "VBD") and not _passive(words, i):
        have = any(w.endswith("'ve") or w in _HAVE for w in words[max(0, i - 2) : i])
        return None if have else True
    if word == "am":  # a German preposition, too
        return False if "i" in (words[max(0, i - 1)], *follow[:1]) else None
    if i and words[i - 1] in _SUBJECTS and _is_base(word) and words[max(0, i - 2)] not in _PAST:
        return False
    return None


def _passive(words: Sequence[str], i: int) -> bool:
    """Whether a participle stands with a present form of "be" or "get": "is closed", "getting married"."""
    return any(w in _BE or w in _WHO or w.endswith(("'re", "'m")) for w in words[max(0, i - 2) : i])


@functools.lru_cache(4_096)
def _is_past(word: str, tag: str) -> bool:
    """Whether a word is that form of a verb (VBD: past, VBN: participle), and not the bare verb."""
    import lemminflect

    lemmas = lemminflect.getAllLemmas(word, upos="VERB").get("VERB", ())
    return any(word != lemma and word in lemminflect.getInflection(lemma, tag=tag) for lemma in lemmas)


@functools.lru_cache(4_096)
def _is_base(word: str) -> bool:
    import lemminflect

    return word in lemminflect.getAllLemmas(word, upos="VERB").get("VERB", ())
