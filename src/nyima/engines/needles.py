"""What an erase looks for afterwards: pieces of the texts that nothing which stays holds."""

from __future__ import annotations

from collections.abc import Mapping

from nyima.domain.conversation import Scope, Turn
from nyima.domain.memory import MemoryRecord, ProfileFact
from nyima.domain.ports import RecordFilter, Store
from nyima.domain.text import content_words, fold, sentences

__all__ = ["needles_of", "repeats"]

_NEEDLE = 24
_LEAST_VALUE = 5


async def needles_of(
    store: Store, scope: Scope, turns: Mapping[str, Turn], records: Mapping[str, MemoryRecord]
) -> list[str]:
    """Pieces of the erased texts that nothing which stays holds too."""
    pieces: set[str] = set()
    for text in (*(t.text for t in turns.values()), *(r.text for r in records.values())):
        for sentence in sentences(text)[:50]:
            pieces |= {sentence[i : i + _NEEDLE] for i in range(0, len(sentence) - 11, _NEEDLE)}
    values = (r.value for r in records.values() if isinstance(r, ProfileFact))
    pieces |= {value for value in values if len(value) >= _LEAST_VALUE}
    if not pieces:
        return []
    stay: list[str] = [t.text for t in await store.turns(scope) if t.id not in turns]
    every = await store.records(scope, RecordFilter(retired=True))
    stay += [r.text for r in every if r.id not in records]
    everything = "\n".join(stay)
    return sorted(p for p in pieces if len(p.strip()) >= _LEAST_VALUE and p not in everything)


def repeats(reply: str, said: str) -> bool:
    """Whether a reply repeats a word of some length, or a number, of a turn."""
    told = {w for w in content_words(said) if len(w) > 3 or w.isdigit()}
    again = {w for w in content_words(fold(reply)) if w in told}
    return bool(again)
