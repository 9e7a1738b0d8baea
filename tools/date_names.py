"""Write the names of months and weekdays in other languages from the CLDR, by babel.

    python tools/date_names.py

A name that an English speaker uses for something else, or that two languages use for different
months or days, is left out.
"""

from __future__ import annotations

import json
from pathlib import Path

from babel import Locale

TARGET = Path(__file__).parents[1] / "src/nyima/language/times/dates.json"
LANGUAGES = "ca cs da de es et fi fr gl hr hu id is it lt lv nb nl nn pl pt ro sk sl sv tr uk ru bg el".split()


def names() -> dict[str, dict[str, int]]:
    """The names in lower case, with their number."""
    found: dict[str, dict[str, set[int]]] = {"months": {}, "days": {}}
    for code in LANGUAGES:
        locale = Locale.parse(code)
        for form in ("format", "stand-alone"):
            for number, name in locale.months[form]["wide"].items():
                found["months"].setdefault(name.lower(), set()).add(number)
            for number, name in locale.days[form]["wide"].items():
                found["days"].setdefault(name.lower(), set()).add(number)
    english = Locale.parse("en")
    own = {name.lower() for part in (english.months, english.days) for name in part["format"]["wide"].values()}
    return {
        part: {
            name: min(numbers)
            for name, numbers in sorted(every.items())
            if len(numbers) == 1 and len(name) > 2 and name not in own
        }
        for part, every in found.items()
    }


def rendered() -> str:
    """The file's text."""
    return json.dumps(names(), ensure_ascii=False, indent=0) + "\n"


if __name__ == "__main__":
    TARGET.write_text(rendered(), "utf-8")
