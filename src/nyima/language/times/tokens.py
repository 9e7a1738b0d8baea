"""A text as tokens: words, numbers (in digits or words), times of day and dates in figures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from nyima.language.times.vocabulary import NUMBERS, ORDINALS

__all__ = ["Token", "tokenized"]

_TOKEN = re.compile(
    r"(?P<iso>\d{4}-\d{1,2}-\d{1,2})(?:t(?=\d))?"
    r"|(?P<month>\d{4}-\d\d(?![\d-]))"
    r"|(?P<cjk>(?:\d{4}[年년]\s?)?\d{1,2}[月월]\s?\d{1,2}[日일])"
    r"|(?P<dmy>\d{1,2}[/.-]\d{1,2}[/.-]\d{4})"
    r"|(?P<clock>\d{1,2}[:.h]\d\d(?::\d\d)?)(?![\d.:])"
    r"|(?P<decade>(?:\d\d)?\d0['’]?s|['’]\d0s)\b"
    r"|(?P<number>\d{1,4}(?!\d))(?P<suffix>st|nd|rd|th|\.º|º|er)?(?![^\W\d_])"
    r"|(?P<hour>\d{1,2})(?P<glued>[ap]\.?m\b\.?)"
    r"|(?P<quarter>[qh][1-4])\b"
    r"|(?P<word>[^\W\d_]+(?:[-.'’][^\W\d_]+)*['’]?)"
    r"|(?P<mark>\S)"
)
_SPLIT_COMPOUND = re.compile(r"^(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|mid|early|late)-")


@dataclass(frozen=True, slots=True)
class Token:
    """One token. ``kind`` is word, number, ordinal, clock, date, decade, quarter or mark; ``text`` is in lower
    case; ``capital`` tells that it begins with a capital within a sentence."""

    kind: str
    text: str
    begin: int
    stop: int
    number: int = -1
    minute: int = 0
    day: date | None = None
    capital: bool = False


def tokenized(text: str) -> list[Token]:
    """The tokens of a text. Linear in its length."""
    found: list[Token] = []
    starts, shouting = True, text.isupper()
    for match in _TOKEN.finditer(text.lower() if len(text.lower()) == len(text) else text):
        raw = text[match.start() : match.end()]
        capital = raw[:1].isupper() and not starts and not shouting
        found += _tokens(match, capital)
        starts = raw in {".", "!", "?", "…", "\n"} or (starts and not raw[:1].isalnum())
    return found


def _tokens(match: re.Match[str], capital: bool) -> list[Token]:
    kind, text, begin, stop = match.lastgroup or "mark", match.group(), match.start(), match.end()
    if kind in {"iso", "cjk", "dmy"}:
        return [Token("date", text, begin, stop, day=_date(kind, text))]
    if kind == "month":
        return [Token("month", text, begin, stop, day=_date("iso", f"{text}-1"))]
    if kind == "clock":
        hour, minute = re.split(r"[:.h]", text)[:2]
        return [Token("clock", text, begin, stop, int(hour), int(minute))]
    if kind == "decade":
        return [Token("decade", text, begin, stop, int(re.sub(r"\D", "", text)))]
    if kind in {"number", "suffix"}:
        return [Token("ordinal" if match["suffix"] else "number", text, begin, stop, int(match["number"]))]
    if kind == "glued":
        middle = match.end("hour")
        return [
            Token("number", match["hour"], begin, middle, int(match["hour"])),
            Token("word", match["glued"].replace(".", ""), middle, stop),
        ]
    if kind == "quarter":
        return [Token("quarter", text, begin, stop, int(text[1]))]
    if kind != "word":
        return [Token("mark", text, begin, stop)]
    text = text.replace("’", "'")
    if text in {"a.m", "p.m"}:
        return [Token("word", text.replace(".", ""), begin, stop)]
    split = _SPLIT_COMPOUND.match(text)
    if split:
        head, tail = text[: split.end() - 1], text[split.end() :]
        middle = begin + split.end() - 1
        return [_word(head, begin, middle, capital), _word(tail, middle + 1, stop, capital)]
    return [_word(text, begin, stop, capital)]


def _word(text: str, begin: int, stop: int, capital: bool) -> Token:
    if text in NUMBERS:
        return Token("number", text, begin, stop, NUMBERS[text], capital=capital)
    if text in ORDINALS:
        return Token("ordinal", text, begin, stop, ORDINALS[text], capital=capital)
    return Token("word", text, begin, stop, capital=capital)


def _date(kind: str, text: str) -> date | None:
    """The date in figures; None where there is no such day, or day and month could be either."""
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    if kind == "dmy":
        first, second, year = numbers
        if "/" in text and first <= 12 and second <= 12 and first != second:
            return None
        numbers = [year, first, second] if first <= 12 < second else [year, second, first]
    if len(numbers) != 3:
        return None
    try:
        return date(*numbers)
    except ValueError:
        return None
