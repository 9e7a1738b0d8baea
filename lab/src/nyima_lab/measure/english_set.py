"""A generated English set for planning and reading from several sources: what the user has
told (profile), who the assistant is (persona), and documents about the user's things.

The two parts share neither things nor names, and only some ways of asking, so that what is
learned on ``train`` has to carry over to ``test``."""

from __future__ import annotations

import random
from dataclasses import dataclass

from nyima.errors import InputError
from nyima_lab.measure.grounded import Piece, Sample

__all__ = ["english_samples"]

_KINDS: dict[str, tuple[str, str, tuple[tuple[str, str, str], ...]]] = {
    "car": ("The user drives a {thing}.", "car", (
        ("tyre pressure", "The tyre pressure of the {thing} is {n}.{m} bar.", "{n}.{m} bar"),
        ("oil", "The {thing} takes {n} litres of engine oil.", "{n} litres"),
        ("boot", "The boot of the {thing} holds {k} litres.", "{k} litres"),
        ("service", "The {thing} wants a service every {k}0 kilometres.", "every {k}0 kilometres"),
        ("warranty", "The warranty of the {thing} lasts {n} years.", "{n} years"))),
    "pet": ("The user has a {thing}.", "pet", (
        ("food", "A {thing} eats {k} grams of food a day.", "{k} grams a day"),
        ("sleep", "A {thing} sleeps about {n} hours a day.", "about {n} hours"),
        ("age", "A {thing} lives for about {n} years.", "about {n} years"),
        ("weight", "A grown {thing} weighs about {n} kilos.", "about {n} kilos"),
        ("walks", "A {thing} should go out {n} times a day.", "{n} times a day"))),
    "machine": ("The user owns a {thing}.", "machine", (
        ("filter", "The filter of the {thing} is changed every {n} months.", "every {n} months"),
        ("power", "The {thing} draws {k} watts.", "{k} watts"),
        ("noise", "The {thing} makes a noise of {k} decibels.", "{k} decibels"),
        ("water", "The tank of the {thing} holds {n}.{m} litres.", "{n}.{m} litres"),
        ("error", "On the {thing} the error E{n} means that the lid is open.", "that the lid is open"))),
    "town": ("The user lives in {thing}.", "town", (
        ("bus", "The night bus of {thing} runs until {n} in the morning.", "until {n} in the morning"),
        ("market", "The market of {thing} has {k} stalls.", "{k} stalls"),
        ("bins", "In {thing} the bins are emptied every {n} days.", "every {n} days"),
        ("tower", "The tower of {thing} has {k} steps.", "{k} steps"),
        ("library", "The library of {thing} lends {n} books at a time.", "{n} books"))),
}  # fmt: skip
_THINGS = {
    "train": {
        "car": "Fiat Lanterna|Opel Merino|Volvo Kestrel|Renault Sable|Mazda Orrin|Seat Almada|Ford Tarn|Kia Delve",
        "pet": "grey parrot|beagle|Siamese cat|ferret|corgi|rabbit|greyhound|tortoise",
        "machine": "Brunel kettle|Vanta dishwasher|Kolb printer|Osta oven|Lumo vacuum|Perrin coffee mill|Haldor freezer|Tamsin iron",
        "town": "Lowick|Saltern|Marbeck|Ostrava Hill|Dunmere|Castrel|Vilar|Penrow",
    },
    "test": {
        "car": "Lancia Porto|Saab Heron|Dacia Numa|Skoda Brisk|Rover Fenn",
        "pet": "poodle|Persian cat|cockatoo|hamster|terrier",
        "machine": "Norrland mixer|Quill scanner|Fenwick heater|Sorrel fridge|Odell pump",
        "town": "Ambleford|Torrevale|Kirkwick|Santara|Hollin",
    },
}
_ASKS = {
    "train": ("What does {own} need to know about the {topic}: how is it?", "Tell me about the {topic} of my {kind}.", "How is it with the {topic} of {own}?", "What does the manual say about the {topic} of my {kind}?"),
    "test": ("Look up the {topic} of my {kind}, please.", "What about the {topic} of {own}?", "Tell me about the {topic} of my {kind}."),
}  # fmt: skip
_RECALL = {
    "train": ("Which {kind} do I have again?", "What did I say my {kind} is?", "Do you remember my {kind}?"),
    "test": ("What was my {kind}?", "Do you still know which {kind} is mine?", "Which {kind} do I have again?"),
}
_HOBBIES = {
    "train": ("old maps", "chess", "lighthouses", "thunderstorms", "pear trees", "crossword puzzles"),
    "test": ("steam trains", "owls", "rock pools", "juggling"),
}
_ABOUT_YOU = {
    "train": (
        "What do you like?",
        "Is there something you are fond of?",
        "Tell me something about yourself.",
        "What are your hobbies?",
    ),
    "test": ("What are you fond of?", "Do you have a hobby?", "Tell me something about yourself."),
}
_TALK = {
    "train": (("Hello there!", "Hello! How are you?"), ("Thanks, that helps.", "You are welcome."), ("I am tired today.", "Then rest a little."), ("It rains again.", "A good day for tea."), ("Good night!", "Sleep well."), ("What is two and two?", "Four.")),
    "test": (("Hi, good morning!", "Good morning!"), ("Great, thank you.", "You are welcome."), ("What a long day.", "Then rest a little."), ("It is so hot outside.", "Drink some water."), ("How many days has a week?", "Seven.")),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _World:
    """What the sources of one dialogue hold."""

    pieces: tuple[Piece, ...]
    owned: tuple[tuple[str, str], ...]
    answers: dict[str, str]
    hobby: str


def _world(draw: random.Random, part: str) -> _World:
    pieces: list[Piece] = []
    answers: dict[str, str] = {}
    owned: list[tuple[str, str]] = []
    for i, kind in enumerate(draw.sample(sorted(_KINDS), 3)):
        thing = draw.choice(_THINGS[part][kind].split("|"))
        told, _, facts = _KINDS[kind]
        owned.append((kind, thing))
        pieces.append(Piece(f"U{i}", "profile", told.format(thing=thing)))
        for j, (_, text, answer) in enumerate(facts):
            numbers = {"thing": thing, "n": draw.randint(2, 12), "m": draw.randint(0, 9), "k": draw.randint(21, 980)}
            pieces.append(Piece(f"U{i}-{j}", "documents", text.format(**numbers), f"U{i}"))
            answers[f"U{i}-{j}"] = answer.format(**numbers)
    hobby = draw.choice(_HOBBIES[part])
    pieces += [
        Piece("A0", "persona", "The assistant is called Nyima."),
        Piece("A1", "persona", f"The assistant is fond of {hobby}."),
        Piece("A2", "persona", "The assistant speaks calmly and briefly."),
    ]
    return _World(tuple(pieces), tuple(owned), answers, hobby)


def english_samples(count: int, part: str = "test", seed: int = 0, turns: int = 4) -> list[Sample]:
    """``count`` turns in dialogues of ``turns``: small talk and common knowledge (NULL), what
    the user has told (profile), the assistant (persona), and what a document says about a
    thing of the user's (profile, then documents)."""
    if part not in _THINGS:
        raise InputError(f"there is no part {part!r}: give train or test")
    found: list[Sample] = []
    number = 0
    while len(found) < count:
        draw = random.Random(f"{part}/{seed}/{number}")  # noqa: S311 - a generated set
        world, said = _world(draw, part), list[tuple[str, str]]()
        for turn in range(turns):
            message, gold, reply = _turn(draw, world, part)
            group = f"english-{part}-{number}"
            found.append(Sample(f"{group}/{turn}", group, tuple(said), message, world.pieces, gold, reply))
            said += [("user", message), ("assistant", reply)]
        number += 1
    return found[:count]


def _turn(draw: random.Random, world: _World, part: str) -> tuple[str, frozenset[str], str]:
    way = draw.choices(("talk", "you", "recall", "ask"), (0.3, 0.15, 0.2, 0.35))[0]
    if way == "talk":
        message, reply = draw.choice(_TALK[part])
        return message, frozenset(), reply
    if way == "you":
        return draw.choice(_ABOUT_YOU[part]), frozenset({"A1"}), f"I am fond of {world.hobby}."
    i = draw.randrange(len(world.owned))
    kind, thing = world.owned[i]
    if way == "recall":
        return draw.choice(_RECALL[part]).format(kind=kind), frozenset({f"U{i}"}), f"Your {kind} is {_a(kind, thing)}."
    j = draw.randrange(5)
    topic = _KINDS[kind][2][j][0]
    own = draw.choice((f"my {kind}", f"my {thing}" if kind != "town" else thing))
    message = draw.choice(_ASKS[part]).format(topic=topic, kind=kind, own=own)
    return (
        message,
        frozenset({f"U{i}", f"U{i}-{j}"}),
        f"For your {kind}, {_a(kind, thing)}: {world.answers[f'U{i}-{j}']}.",
    )


def _a(kind: str, thing: str) -> str:
    return thing if kind == "town" else f"a {thing}"
