"""The words of time: English here, names of months and days of other languages from CLDR.

``dates.json`` holds the names of months and weekdays of the Unicode CLDR, as the library babel
gives them; ``python tools/date_names.py`` writes it.
"""

from __future__ import annotations

import functools
import json
from importlib import resources

__all__ = [
    "DAYS", "FUNCTION_WORDS", "HOLIDAYS", "MONTHS", "NUMBERS", "ORDINALS", "PARTS", "SEASONS", "UNITS", "UNIT_ALIASES", "foreign_names",
]  # fmt: skip

MONTHS = {
    name: number
    for number, names in enumerate(
        "jan january|feb febuary february|mar march|apr april|may|jun june|jul july|aug august|"
        "sep sept september|oct october|nov november|dec december".split("|"),
        1,
    )
    for name in names.split()
}
DAYS = {
    name: number
    for number, names in enumerate(
        "monday mon|tuesday tue tues|wednesday wed weds|thursday thu thur thurs|friday fri|saturday sat|sunday sun".split(
            "|"
        )
    )
    for name in names.split()
}
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
UNITS = ("minute", "hour", "day", "week", "month", "year", "decade")
UNIT_ALIASES = {
    **{unit: unit for unit in UNITS}, **{f"{unit}s": unit for unit in UNITS}, **{f"{unit}s'": unit for unit in UNITS},
    "min": "minute", "mins": "minute", "hr": "hour", "hrs": "hour", "wk": "week", "wks": "week", "yr": "year", "yrs": "year",
    "mth": "month", "mths": "month",
}  # fmt: skip
_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBERS = {word: number for number, word in enumerate(_ONES.split())} | {
    word: 10 * number for number, word in enumerate(_TENS.split(), 2)
}
_ORDINAL_ONES = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth"
    " fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
ORDINALS = {word: number for number, word in enumerate(_ORDINAL_ONES.split())} | {"thirtieth": 30}
PARTS = {
    "dawn": (4, 7), "morning": (5, 12), "lunchtime": (12, 14), "lunch": (12, 14), "afternoon": (12, 18), "teatime": (16, 18),
    "evening": (18, 23), "night": (19, 29),
}  # fmt: skip
"""Parts of a day in hours; the night ends on the next day."""
HOLIDAYS = {
    "christmas eve": (12, 24), "christmas day": (12, 25), "christmas": (12, 25), "xmas eve": (12, 24), "xmas": (12, 25),
    "boxing day": (12, 26), "new year's eve": (12, 31), "new years eve": (12, 31), "hogmanay": (12, 31), "nye": (12, 31),
    "new year's day": (1, 1), "new years day": (1, 1), "valentine's day": (2, 14), "valentines day": (2, 14), "valentine's": (2, 14),
    "valentines": (2, 14), "st patrick's day": (3, 17), "april fools": (4, 1), "april fool's day": (4, 1), "halloween": (10, 31),
    "bonfire night": (11, 5), "guy fawkes night": (11, 5), "independence day": (7, 4), "bastille day": (7, 14),
}  # fmt: skip
"""Feasts with a fixed date, as (month, day)."""
FUNCTION_WORDS = frozenset(
    """a about after all also although am an and any are around as at be because been before but by can could did do
    does during either except for from get go going got had has have he her here him his how i if in instead into is it
    just like may me might must my near never no nor not of off on onto or our out over please she should since so some
    still that the their them then there they this though through to today together tomorrow tonight too towards under
    until up us was we were what when where which while who whom whose why will with without would yes yesterday you
    your i'm i've i'd i'll we're we've we'll we'd it's he's she's they're you're didn't don't wasn't isn't won't
    can't couldn't wouldn't lol btw pls thanks thx ta u im ive dont didnt wont cant""".split()
)
"""Words that stand after a phrase of time; after others "the 3rd" may be "the 3rd floor"."""


@functools.cache
def foreign_names() -> tuple[dict[str, int], dict[str, int]]:
    """The names of months (1 to 12) and of weekdays (0 is Monday) in other languages, in lower case."""
    text = resources.files("nyima.language.times").joinpath("dates.json").read_text("utf-8")
    held = json.loads(text)
    return held["months"], held["days"]
