"""What the graph knows of the world before anybody speaks: types and subclasses
(Wang et al. 2024, table 8), and the common relations with their usual words, whether one
or several values hold at once, and the subclass that they belong to.

Everything else that people say becomes a relation too; it is named by its own verb, and
its subclass is the nearest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nyima.errors import ConfigError
from nyima.language.words import content_words, fold

__all__ = [
    "LABELS",
    "OPEN_LABELS",
    "SUBCLASSES",
    "Label",
    "Subclass",
    "label_of",
    "read_subclasses",
    "single",
    "subclass_of",
]


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


@dataclass(frozen=True, slots=True)
class Label:
    """A relation: ``single`` when a new value replaces the old one."""

    name: str
    subclass: str
    single: bool
    words: frozenset[str]


def _label(name: str, subclass: str, words: str, *, single: bool = True) -> Label:
    return Label(name, subclass, single, frozenset({name, *words.split()}))


_BELONGINGS = "Personal belongings/Pets"
_ALL = (
    _label("name", "Name/Nickname", "full_name is_called called is_named named first_name"),
    _label("nickname", "Name/Nickname", "go_by call_me"),
    _label("surname", "Name/Nickname", "last_name family_name"),
    _label("age", "Birthday/Age", "years_old turned turn be_years_old"),
    _label("birthday", "Birthday/Age", "birth_date date_of_birth born born_on born_in be_born be_born_on be_born_in"),
    _label("gender", "Gender", "sex pronouns"),
    _label(
        "location",
        "Address",
        "live live_in live_at live_on lives_in move move_to move_into home hometown based_in be_based_in reside_in"
        " residence settle_in relocate_to city city_of_residence town",
    ),
    _label("address", "Address", "home_address postal_address street_address be_at"),
    _label("located", "Address", "located_in located_on located_at be_in be_on sit_in stand_in lie_in be_located_in"),
    _label("phone", "Address", "phone_number mobile mobile_number telephone mobile_phone_number"),
    _label("email", "Address", "email_address e_mail mail_address"),
    _label("postcode", "Address", "postal_code zip zip_code"),
    _label("from", "Address", "be_from come_from nationality citizen_of be_citizen_of", single=True),
    _label("job", "Occupation", "occupation profession work_as works_as be_a become train_as role position job_title"),
    _label("employer", "Occupation", "work_at work_for works_at works_for work_in join company job_at"),
    _label("school", "Education", "go_to_school study_at go_to_university attend_school"),
    _label("study", "Education", "studies learn", single=False),
    _label("language", "Education", "speak speaks speak_fluently", single=False),
    _label("degree", "Education", "graduate_in"),
    _label("partner", "Spouse", "husband wife spouse boyfriend girlfriend fiance fiancee married_to engaged_to date"
           " be_married_to be_engaged_to marry"),
    _label("boss", "Colleague/Friends", "manager line_manager supervisor"),
    _label("landlord", "Colleague/Friends", "landlady"),
    _label("doctor", "Colleague/Friends", "gp physician"),
    _label("friend", "Colleague/Friends", "best_friend be_friend_of colleague neighbour neighbor", single=False),
    _label("like", "Cultural preference", "likes love loves enjoy enjoys adore be_into fond_of", single=False),
    _label("dislike", "Cultural preference", "hate hates cannot_stand detest dislikes", single=False),
    _label("allergy", "Diet preference", "allergic_to be_allergic_to allergies", single=False),
    _label("diet", "Diet preference", "be_vegan be_vegetarian eat_only"),
    _label("car", "Car preference", "drive drives car_model make_and_model"),
    _label("own", _BELONGINGS, "owns has have possess keep got", single=False),
    _label("pet", _BELONGINGS, "dog cat", single=False),
    _label("play", "Sports preference", "plays practise do_sport", single=False),
    _label("departs", "Arrangement", "leave leaves depart departs_at take_off fly_out set_off departure departure_date"
           " departure_time"),
    _label("arrives", "Arrangement", "arrive land arrival arrives_at get_in"),
    _label("takes_place", "Arrangement", "be start begin is_on is_at be_scheduled be_set_for move_to_date on at date time"
           " take_place happen kick_off start_at starts due be_due"),
    _label("ends", "Arrangement", "end finish"),
    _label("expires", "Arrangement", "valid_until be_valid run_out expire end_on be_valid_until"),
    _label("attend", "Arrangement", "attends have_appointment go_to_event", single=False),
    _label("travel", "Arrangement", "travel_to fly_to go_on_trip visit flies_to", single=False),
    _label("booked", "Arrangement", "book reserve order booked_hotel", single=False),
    _label("anniversary", "Anniversary", "wedding_anniversary"),
    _label("because", "Life events", "depends_on rests_on", single=False),
)  # fmt: skip

LABELS: Mapping[str, Label] = {label.name: label for label in _ALL}
_BY_WORD: Mapping[str, Label] = {word: label for label in reversed(_ALL) for word in label.words}
OPEN_LABELS = frozenset({"like", "dislike", "play", "own"})
"""Relations whose subclass depends on what is liked, played or owned."""
_SINGLE_HEADS = ("favourite_", "favorite_", "preferred_")


def label_of(words: str) -> str:
    """The relation that words such as ``live_in`` name, else the words themselves."""
    found = _BY_WORD.get(words)
    return found.name if found else words


def single(label: str) -> bool:
    """Whether one value of a relation holds at a time."""
    known = LABELS.get(label)
    return known.single if known is not None else label.startswith(_SINGLE_HEADS)


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


def subclass_of(label: str, note: str, known: Iterable[Subclass] = SUBCLASSES) -> str:
    """The subclass of a relation without vectors: by its label, else by the examples whose
    words the note shares, else by what stands in the note."""
    listed = LABELS.get(label)
    if listed is not None and listed.name not in OPEN_LABELS:
        return listed.subclass
    words = set(content_words(fold(note)))
    best, most = "", 0
    for subclass in known:
        shared = len(words & {w for e in subclass.examples for w in content_words(e)})
        if shared > most:
            best, most = subclass.name, shared
    return best or (listed.subclass if listed is not None else _BELONGINGS)
