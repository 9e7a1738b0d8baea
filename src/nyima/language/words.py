"""Words, sentences and sizes of texts in any language; standard library only.

Scripts that are written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese)
are cut into overlapping pairs of characters, so that full-text search finds them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = [
    "content_words",
    "cut_tokens",
    "fold",
    "has_quotation",
    "looks_unspaced",
    "own_words",
    "segment",
    "sentences",
    "stem",
    "stems",
    "supports",
    "tight",
    "tokens",
    "words",
]

_ABOUT = frozenset("i the user users assistant usuario usuaria utilizador nutzer nutzerin utilisateur utente".split())
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
_LONGEST_ABBREVIATION = 8
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


_OPENS = {"‘": "’", "“": "”", "«": "»", "„": "“", "「": "」", "『": "』", '"': '"'}
_NAME_WORDS = 3
_LINE_END = 200
_FENCE = re.compile(r" {0,8}(?:```|~~~)")
_CITED = re.compile(r" {0,8}>")
_LABEL = re.compile(
    r"\W{0,4}(?:[\d:., /apmAPM-]{1,24}[\])]? ?)?[^\W\d_][\w .'-]{0,30}(?: ?\([^()]{0,30}\))?\W{0,2}[:：]\W{0,2}(?:\s|$)|"
    r"[^\W\d_][\w.'-]{0,30}(?: [\w.'-]{1,30}){0,2} {1,4}[(\[]?\d{1,2}[:.]\d{2}(?: ?[apAP][mM])?[)\]]?\s*$"
)
_RULED = re.compile(r" {0,8}(?:[-=_*#~]{3,}|#{1,6} |\[\d{1,3}\] )")
_TAG = re.compile(r"\{%|</?[A-Za-z][\w:-]{0,40}(?: [^<>]{0,200})?/?>|\[/?INST\]|\{\{|<\|[\w ]{1,30}\|>")
_HANDED = re.compile(
    r"\b(?:here(?:'s| is| are)|fwd|fw|forwarded|below is|this is)\b.{0,60}\b(?:(?:e-?)?mail|message|letter|text|article|post|song|lyrics|poem|story|"
    r"page|notes?|transcript|chat)\b.{0,60}:\s*$",
    re.IGNORECASE,
)
_ASKS_FOR_TEXT = re.compile(
    r"(?:^|[.!?;,:]\s)[^\w\n]{0,4}(?:(?:please|kindly|can you|could you|would you|will you|now|hey|ok(?:ay)?|pls|help me(?: to)?|i(?:'d| would)? (?:need|want|like) you to|"
    r"por favor|bitte|kannst du|puedes|podes|peux-tu)\W{1,3}){0,3}(?:re)?"
    r"(?:(?:make|sing|give|tell) (?:me|us) an? (?:\w+ ){0,2}(?:poem|song|story|letter|mail|summary|translation|text|rap|haiku)|tl;?dr|"
    r"write|compose|draft|translate|summari[sz]e|paraphrase|phrase|proofread|shorten|word|condense|"
    r"resum[aei]\w*|traduz\w*|traduc\w*|escrev[ae]\w*|escrib[ae]\w*|schreib\w*|übersetz\w*|fasse|résume\w*|traduis\w*|écris)\b",
    re.IGNORECASE | re.MULTILINE,
)


def own_words(text: str) -> str:
    """The part of a message that its writer says about themselves; empty when the message hands
    over another text: a request to write, rewrite, translate or summarise, a chat log or a mail
    (lines with a speaker or a header), the tags and rules of a program's template.

    Code blocks, cited lines and quotations of more than three words are left out; a short
    quotation is a name or a title. A text that is pasted without any such sign cannot be told
    from the writer's own words.
    """
    lines = text.split("\n")
    if _ASKS_FOR_TEXT.search(text) or _TAG.search(text):
        return ""
    if sum(_LABEL.match(line) is not None for line in lines) > 1 or any(map(_RULED.match, lines)):
        return ""
    kept: list[str] = []
    fenced = False
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not _CITED.match(line):
            kept.append(line)
            if _HANDED.search(line[-_LINE_END:]):
                break
    return _without_quotations("\n".join(kept)).strip()


def has_quotation(text: str) -> bool:
    """Whether a text has quotation marks: what stands in them may be anybody's words."""
    return any(mark in text for mark in _OPENS)


def _without_quotations(text: str) -> str:
    """The text without the quotations that are longer than a name or a title."""
    out: list[str] = []
    at, lost = 0, set[str]()
    while at < len(text):
        mark = text[at]
        end = text.find(_OPENS[mark], at + 1) if mark in _OPENS and mark not in lost else -1
        if end < 0:
            lost |= {mark} & {*_OPENS}  # it is never closed: it need not be looked for again
            out.append(mark)
            at += 1
            continue
        inside = text[at + 1 : end]
        out.append(text[at : end + 1] if len(inside.split()) <= _NAME_WORDS and not looks_unspaced(inside) else " ")
        at = end + 1
    return "".join(out)


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


def stem(word: str) -> str:
    """Return a word without most of its ending, so that forms of one word are equal."""
    if not word.isascii():
        return word
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word[:5]


def stems(text: str) -> frozenset[str]:
    """Return the content words of a text without their endings."""
    return frozenset(stem(w) for w in content_words(text))


def supports(text: str, sources: Iterable[str], share: float) -> bool:
    """Return whether at least ``share`` of a text's words, and all its numbers and names, are in the
    sources. Names are words with a capital letter inside a sentence."""
    there = {stem(w) for w in words("\n".join(sources))}
    wanted = [w for w in content_words(text) if w not in _ABOUT]
    names = {fold(w) for w in re.findall(r"(?<=[\w,;:] )[A-Z]\w+", text)} - _ABOUT
    exact = {w for w in wanted if any(c.isdigit() for c in w)} | {w for name in names for w in words(name)}
    if not wanted or any(stem(w) not in there for w in exact):
        return False
    return sum(stem(w) in there for w in wanted) >= share * len(wanted)


def sentences(text: str) -> list[str]:
    """The sentences of a text, stripped, in order; a line break ends one too."""
    found: list[list[str]] = []
    goes_on = False
    for piece in map(str.strip, _SENTENCE.split(text)):
        if piece:
            if goes_on:
                found[-1].append(piece)
            else:
                found.append([piece])
            goes_on = _ABBREVIATION.search(piece[-_LONGEST_ABBREVIATION:]) is not None
    return [" ".join(parts) for parts in found]


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
