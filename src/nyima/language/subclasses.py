"""The categories of claims: types and subclasses (Wang et al. 2024, table 8), each with examples, and
those that the user's settings add."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nyima.errors import ConfigError
from nyima.language.words import content_words

__all__ = ["SUBCLASSES", "Subclass", "read_subclasses", "subclass_of"]


@dataclass(frozen=True, slots=True)
class Subclass:
    """A category with examples; the mean of their vectors is its first centre."""

    type: str
    name: str
    examples: tuple[str, ...]


SUBCLASSES: tuple[Subclass, ...] = tuple(
    Subclass(type, name, tuple(examples.split("|")))
    for type, name, examples in (
        ("Relationship", "Spouse", "My wife is called Ida.|I am married to Jonas.|My partner works nights."),
        ("Relationship", "Parents/Children", "My mother lives in Graz.|My son is three.|Dad retired last year."),
        ("Relationship", "Relatives", "My cousin studies law.|My aunt visits us in July.|My brother has two children."),
        (
            "Relationship",
            "Colleague/Friends",
            "My boss flies a lot.|Petra is my best friend.|My neighbour has a drill.",
        ),
        ("Relationship", "Teacher/Student", "My piano teacher is strict.|I have eleven pupils.|My tutor is Mr. Ode."),
        (
            "Preference",
            "Diet preference",
            "I like sour apples.|I can't stand olives.|I am allergic to nuts.|I drink tea.",
        ),
        ("Preference", "Cultural preference", "I love old castles.|I like to travel by train.|I enjoy galleries."),
        ("Preference", "Car preference", "I would buy another Volvo.|I like small cars.|My favourite car is a Fiat."),
        ("Preference", "Sports preference", "I play tennis on Sundays.|I support Ajax.|I love climbing and running."),
        ("Preference", "Gaming preference", "I play chess online.|My favourite game is Tetris.|I like strategy games."),
        (
            "Preference",
            "Audio-visual entertainment preference",
            "I listen to fado.|My favourite film is Alien.|I watch crime series.|I play the cello.",
        ),
        ("Event", "Life events", "We are having a baby.|I bought a flat.|I passed my finals.|They got divorced."),
        ("Event", "Arrangement", "I see the dentist on Monday.|The flight leaves at noon.|I booked a table for four."),
        ("Event", "Anniversary", "Our wedding anniversary is in June.|It is ten years since we met."),
        ("Attribute", "Name/Nickname", "My name is Ola.|People call me Bear.|My surname is Lund."),
        ("Attribute", "Birthday/Age", "I am 41 years old.|My birthday is in March.|I was born in 1988."),
        ("Attribute", "Gender", "I am a woman.|My pronouns are they and them."),
        ("Attribute", "Education", "I study physics in Delft.|I have a degree in law.|I speak Danish."),
        ("Attribute", "Personal belongings/Pets", "I drive a Skoda.|My cat is black.|I own a boat.|My phone is new."),
        ("Attribute", "Address", "I live in Bergen.|My office is in Sintra.|My phone number is 912 000 111."),
        ("Attribute", "Occupation", "I work as a baker.|I am a nurse.|My shifts are at night.|I run a shop."),
    )
)


def read_subclasses(lines: Iterable[str]) -> tuple[Subclass, ...]:
    """The built-in subclasses with those of the settings, each ``Type/Subclass: example;
    example``. Raises ConfigError."""
    more: list[Subclass] = []
    for line in lines:
        place, colon, examples = line.partition(":")
        type, slash, name = place.partition("/")
        found = tuple(e.strip() for e in examples.split(";") if e.strip())
        if not (colon and slash and type.strip() and name.strip() and found):
            raise ConfigError(f"subclasses: {line!r} cannot be read: give 'Type/Subclass: an example; another'")
        more.append(Subclass(type.strip(), name.strip(), found))
    return (*SUBCLASSES, *more)


def subclass_of(text: str, known: Iterable[Subclass] = SUBCLASSES) -> str:
    """Return the subclass whose examples share the most words with a text; empty when none does. It is
    for where there are no vectors."""
    words = set(content_words(text))
    best, most = "", 0
    for subclass in known:
        shared = len(words & {w for e in subclass.examples for w in content_words(e)})
        if shared > most:
            best, most = subclass.name, shared
    return best
