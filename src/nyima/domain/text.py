"""Words, sentences and sizes of texts in any language; standard library only.

Scripts that are written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese)
are cut into overlapping pairs of characters, so that full-text search finds them.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = [
    "content_words",
    "cut_tokens",
    "fold",
    "looks_unspaced",
    "own_words",
    "segment",
    "sentences",
    "tight",
    "tokens",
    "words",
]

_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003134f"
)
_RUN = re.compile(f"[{_UNSPACED}]+")
_MARK = r"\u2014\u2018-\u201d\u2026\u3000-\u303f\uff00-\uffef"
_GAP = re.compile(
    f"(?<=[{_UNSPACED}]) (?=[{_UNSPACED}{_MARK}])|(?<=[{_MARK}]) (?=[{_UNSPACED}])|(?<=[\u3000-\u303f\uff00-\uffef]) (?=[{_MARK}])"
)
_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[。！？])|\n+")
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|e\.g|i\.e|etc|No|[A-Z])\.$")

# The commonest function words of languages with spaces: they carry no topic, and
# searching for them costs time in a large memory.
_FUNCTION_WORDS = frozenset(
    """a about all am an and any are as at be because been but by can could d did do does doing don for from
    had has have having he her here hers him his how i if in into is it its just ll m may me might mine must my no
    not of on or our ours re s shall she should so some t than that the their them then there these they this those
    to too us ve was we were what when where which who whom whose why will with would you your yours
    el la los las un una unos unas y o de del al en con por para que es son era fue ser estar me te se mi tu su lo
    le les como cuando donde quien cual mas pero si
    os as um uma uns umas e do da dos das no na nos nas ao aos com que nao eu ele ela nos voces meu minha seu sua foi
    le les des une et ou du dans pour sur avec est sont etait ce cette ces je tu il elle nous vous ils elles mon ma
    mes ton ta tes son sa ses qui quand comment pourquoi ne pas au aux
    der die das den dem des ein eine einen einem und oder in im von zu zum zur mit ist sind war ich du er sie es wir
    ihr mein dein sein wie wer wann wo warum nicht auf fur an
    il lo gli uno di del della nel nella e con per che sono era io lui lei noi voi mio mia tuo tua suo sua come
    quando dove chi perche non""".split()
)


def fold(text: str) -> str:
    """Case and accents removed: ``Éva`` and ``eva`` become equal."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(c for c in decomposed if not unicodedata.combining(c) or c in "\u3099\u309a")
    return unicodedata.normalize("NFC", kept)


def looks_unspaced(text: str) -> bool:
    """Whether the text has characters of a script that is written without spaces."""
    return not text.isascii() and _RUN.search(text) is not None


def _pairs(match: re.Match[str]) -> str:
    run = match.group()
    return " " + (" ".join(run[i : i + 2] for i in range(len(run) - 1)) if len(run) > 1 else run) + " "


_FENCED = re.compile(r"^ *(```|~~~).*?(?:^ *\1|\Z)", re.DOTALL | re.MULTILINE)
_CITED = re.compile(r"^ *>.*$", re.MULTILINE)
_QUOTE = re.compile(r"“[^”]*”|«[^»]*»|\"[^\"\n]*\"")
_LONG = 60
_HANDED = re.compile(
    r"^(?P<own>\W*(?:(?:please|can you|could you|would you|por favor|bitte)\W+)*(?:summari[sz]e|translate|proofread|rewrite|rephrase|"
    r"shorten|correct|explain|check|review|read|reply to|answer|resum[ae]|traduz\w*|traduce\w*|fasse|übersetz\w*|résume\w*|"
    r"traduis\w*)\b[^\n]*\b(?:this|these|the|following|est[ae]s?|isto|dies\w*|ce\w*|das|den|die)\b[^\n]*:|"
    r"[^\n]{0,60}\b(?:here(?:'s| is| are)|fwd|fw|forwarded|below is|this is)\b[^\n]*\b(?:mail|e-mail|email|message|letter|text|article|post|"
    r"page|notes?|transcript|chat)\b[^\n]*:)[ \t]*\n(?P<text>.+)\Z",
    re.IGNORECASE | re.DOTALL,
)
_FORWARDED = re.compile(
    r"^[ \t]*-{2,}[^\n]*(?:forwarded|original)[^\n]*-{2,}.*\Z|^(?:from|von|de): [^\n]+\n(?:[\w-]+: [^\n]*\n)+.*\Z",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


def own_words(text: str) -> str:
    """What of a message its writer says: without code blocks, cited lines, long quotations,
    forwarded mail and a text that is handed over under a line that says so ("Summarise this
    mail:"). A text that is pasted without any sign cannot be told from the writer's own."""
    if "\n" not in text and len(text) < 80:
        return text
    handed = _HANDED.match(text.strip())
    own = handed["own"] if handed else text
    for quoted in (_FENCED, _CITED, _FORWARDED):
        own = quoted.sub(" ", own)
    return _QUOTE.sub(lambda m: m.group() if len(m.group()) < _LONG else " ", own).strip()


def segment(text: str) -> str:
    """The text with runs of an unspaced script cut into overlapping pairs."""
    return text if text.isascii() else _RUN.sub(_pairs, unicodedata.normalize("NFKC", text))


def tight(text: str) -> str:
    """A text of an unspaced script that was cut into words or characters, as it is written."""
    return _GAP.sub("", text).strip()


def words(text: str) -> list[str]:
    """The folded words, in order; unspaced runs as pairs of characters."""
    return _WORD.findall(fold(segment(text)))


def content_words(text: str) -> list[str]:
    """The words without the commonest function words, each once, in order; all the
    words when nothing else is left."""
    every = dict.fromkeys(words(text))
    return [w for w in every if w not in _FUNCTION_WORDS] or list(every)


def sentences(text: str) -> list[str]:
    """The sentences of a text, stripped, in order; a line break ends one too."""
    found: list[str] = []
    for piece in _SENTENCE.split(text):
        piece = piece.strip()
        if not piece:
            continue
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] = f"{found[-1]} {piece}"
        else:
            found.append(piece)
    return found


def tokens(text: str) -> int:
    """An estimate of a model's tokens: a quarter of the characters of spaced scripts,
    one a character of unspaced ones."""
    if text.isascii():
        return (len(text) + 3) // 4
    dense = sum(len(run) for run in _RUN.findall(text))
    return dense + (len(text.encode("utf-8", "replace")) - 3 * dense + 3) // 4


def cut_tokens(text: str, limit: int) -> str:
    """The text, or its beginning and end with a mark between when it is longer than
    ``limit`` tokens."""
    have = tokens(text)
    if have <= limit:
        return text
    size = min(max(8, limit * (1 if looks_unspaced(text) else 4) - 8), max(3, len(text) * limit // have))
    return f"{text[: size * 2 // 3].rstrip()} […] {text[-(size // 3) :].lstrip()}"
