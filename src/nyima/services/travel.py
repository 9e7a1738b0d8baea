"""Where the user wants to go (Wang et al. 2024, section 4.4): the address of the place that
is meant, as a map link and as a geo URI. Without a network: an address that the user told,
never one that was looked up or made up."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nyima.domain.records import ME, MemoryRecord
from nyima.errors import InputError
from nyima.language.words import fold, stems
from nyima.memory import Memory
from nyima.services.known import Stated, known

__all__ = ["Destination", "Place", "destination"]

_ADDRESS_LABELS = frozenset({"address", "location"})
_COORDINATES = re.compile(r"(-?\d{1,2}\.\d{3,}),\s*(-?\d{1,3}\.\d{3,})")
_HOME = frozenset({"home", "house", "flat", "apartment"})
_WORK = frozenset({"work", "office", "job"})
_LIKE = {"hotel": "booked stay hotel", "restauran": "eat dinner lunch restaurant", "restau": "eat dinner lunch restaurant",
         "grandm": "grandmother grandma", "grandma": "grandmother grandma", "grandf": "grandfather grandpa",
         "mum": "mother mum mom", "dad": "father dad"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A place with its address and the memory that says so."""

    name: str
    address: str
    evidence: MemoryRecord

    @property
    def geo(self) -> str:
        """A geo URI (RFC 5870): with coordinates where the address has them, else a query."""
        found = _COORDINATES.search(self.address)
        if found:
            return f"geo:{found[1]},{found[2]}"
        return f"geo:0,0?q={urllib.parse.quote(self.address)}"

    @property
    def link(self) -> str:
        """A link to OpenStreetMap; nothing is fetched."""
        return f"https://www.openstreetmap.org/search?query={urllib.parse.quote(self.address)}"


@dataclass(frozen=True, slots=True)
class Destination:
    """The place that was meant; or the ``choices`` between which the user must say."""

    place: Place | None = None
    choices: tuple[Place, ...] = ()


async def destination(memory: Memory, asked: str) -> Destination:
    """The place that some words mean. Two places that fit equally well are both given."""
    wanted = stems(re.sub(r"\b(?:place|take me to|navigate to|way to|directions to|near)\b", " ", fold(asked)))
    if not asked.strip():
        raise InputError("say where to: a place, a person or a booking")
    everything = await known(memory)
    if wanted & _HOME and not wanted - _HOME:
        wanted = frozenset()
    scored: dict[str, tuple[float, Place]] = {}
    for item in everything:
        if not _is_address(item):
            continue
        score = _fit(item, wanted, everything, fold(asked))
        if score > 0 and (item.tail not in scored or score > scored[item.tail][0]):
            scored[item.tail] = (score, Place(item.head, item.tail, item.record))
    if not scored:
        return Destination()
    ranked = sorted(scored.values(), key=lambda s: (-s[0], s[1].address))
    best = [place for score, place in ranked if score >= ranked[0][0] - 0.05]
    return Destination(best[0]) if len(best) == 1 else Destination(None, tuple(best))


def _is_address(item: Stated) -> bool:
    """Whether a relation says where something is, precisely enough to go there."""
    if item.label == "address":
        return True
    return item.label in _ADDRESS_LABELS and bool(
        re.search(r"\d", item.tail) or _COORDINATES.search(item.tail) or "," in item.tail or len(item.tail.split()) > 1
    )


def _fit(item: Stated, wanted: frozenset[str], everything: Sequence[Stated], asked: str) -> float:
    """How well a place with an address is what was asked for: by its own name, or by what
    is related to it ("my sister" is Inês, who lives there)."""
    if not wanted:
        return 1.0 if item.mine else 0.0
    if item.mine:
        return 0.0
    like = {w: {w, *stems(_LIKE.get(w, ""))} for w in wanted}
    names = {item.head}
    others = re.search(r"^([A-Z]\w+)'s ", item.head)
    if (
        others
        and fold(others[1]) not in asked
        and re.search(r"\b(?:my|the)\b", asked)
        and not _linked(item, everything)
    ):
        return 0.0
    own = max(_share(like, stems(n)) for n in names)
    about = 0.0
    for other in everything:
        if other.record.id == item.record.id:
            continue
        ends = {other.tail, other.head}
        if not (names & ends or any(_owner(n) in ends for n in names)):
            continue
        said = stems(" ".join((other.label.replace("_", " "), other.note, other.head)))
        if wanted & _WORK and other.label in {"employer", "job"} and other.mine:
            about = max(about, 1.0)
        about = max(about, _share(like, said) * (0.9 if _strong(other, like) else 0.6))
    note = _share(like, stems(item.note)) * 0.5
    return (
        min(1.0, max(own, about, min(1.0, own + 0.5 * about), note))
        if max(own, about) > 0
        else note
        if note >= 0.5
        else 0.0
    )


def _share(like: Mapping[str, set[str]], said: frozenset[str]) -> float:
    """The share of the words asked for that stand there, in these words or like ones."""
    return sum(bool(words & said) for words in like.values()) / max(1, len(like))


def _strong(other: Stated, like: Mapping[str, set[str]]) -> bool:
    """Whether a relation itself is called what was asked for ("my vet is Dr. Salgado")."""
    return _share(like, stems(" ".join((other.label.replace("_", " "), other.head)))) > 0


def _owner(name: str) -> str:
    """The owner of a thing: of "Nortec's office", Nortec."""
    return name.rsplit("'s ", maxsplit=1)[0] if "'s " in name else name


def _linked(item: Stated, everything: Sequence[Stated]) -> bool:
    """Whether the owner of a place is related to the user."""
    owner = _owner(item.head)
    return any(k.head == ME and k.tail == owner and k.label != "friend" for k in everything) or any(
        k.tail == owner and not k.mine for k in everything
    )
