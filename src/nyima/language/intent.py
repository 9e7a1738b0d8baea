"""Is a turn worth keeping? A model's word, corrected by what can be seen in the text.

Small models are unsure here: the larger ones keep too much, the smallest nothing. What
they cannot do reliably is to tell small talk and plain questions from statements, which
a few features of the text tell well (measured in docs/LOG.md).
"""

from __future__ import annotations

import re

from nyima.language.words import looks_unspaced, sentences, words

__all__ = ["first_person", "is_goodbye", "wish_of", "worth_keeping"]

_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i’m|i've|i’ve|i'd|i'll|im|my|mine|we|we're|we've|our|eu|meu|minha|meus|minhas|nós|nosso|yo|mi|mis|soy|"
    r"tengo|nosotros|nuestra|nuestro|ich|mein\w*|wir|unser\w*|je|j'|mon|ma|mes|nous|notre|io|mio|mia|miei|noi|nostro)\b"
    r"|我|私|僕|俺|わたし",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"\b(?:my|mine|our|i'm|i’m|i am|i've|i’ve|meu|minha|mi|mis|mein\w*|unser\w*|mon|ma|mes|notre|mio|mia)\b|我的|私の",
    re.IGNORECASE,
)
_ENDS_AS_QUESTION = re.compile(r"[?？]\W*$")
_REQUEST = re.compile(
    r"^\W*(?:please\s+)?(?:can|could|would|will) (?:you|we)\b|^\W*(?:tell|show|give|write|explain|translate|find|list|help)\b",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"\b(?:please|from now on|always|never|next time|in (?:the )?future|could you|can you|i(?:'d| would) (?:like|prefer)|"
    r"i (?:prefer|want|like)|keep|make|stop|don't|do not|use|avoid)\b.{0,60}\b(?:answers?|repl(?:y|ies)|respon[ds]\w*|"
    r"call me|emojis?|bullet points?|messages|sentences|words|tone|formal|informal|brief|concise)\b",
    re.IGNORECASE,
)
_GOODBYE = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|well|thanks?|thank you|alright|no|so)\W+){0,3}(?:good ?bye|bye(?: ?bye)?|see you(?: later| soon| tomorrow)?|"
    r"good ?night|farewell|cya|adi[oó]s|tchau|adeus|at[eé] (?:logo|amanhã)|tsch[uü]ss|auf wiedersehen|au revoir|"
    r"arrivederci|ciao|再见|再見|さようなら|じゃあね)(?:\W+(?:nyima|then|now|all|and thanks?|thanks?))*\W*$",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^\W*(?:and|but|so|oh|also|by the way|btw|then)\b[\s,]*", re.IGNORECASE)
_SHORT = 4
_LONGEST_WISH = 120


def worth_keeping(text: str, said: bool | None, facts: int) -> bool:
    """The decision for one user turn.

    ``said`` is the model's word (None when there is none), ``facts`` how many facts it
    found that the text supports. A plain question or a few words without a fact are not
    kept; a statement in the first person is; else the model decides, and without one,
    every statement of some length is kept.
    """
    length = len(words(text))
    short = length < (_SHORT * 2 if looks_unspaced(text) else _SHORT)
    parts = sentences(text)
    question = bool(parts) and all(_ENDS_AS_QUESTION.search(part) for part in parts)
    if question and not (facts and _OWN.search(text)):
        return False
    if facts:
        return True
    if short:
        return False
    if _FIRST_PERSON.search(text) and not _REQUEST.search(text) and not question:
        return True
    return not question if said is None else said


def first_person(text: str) -> bool:
    """Whether the text speaks of its writer."""
    return bool(_FIRST_PERSON.search(text))


def wish_of(text: str) -> str:
    """The sentence with a wish for how the assistant should answer, empty when there is
    none. English; other languages rely on the model."""
    for part in sentences(text):
        if len(part) <= _LONGEST_WISH and _WISH.search(part) and not _ENDS_AS_QUESTION.search(part):
            return _LEAD.sub("", part).rstrip(" .!")
    return ""


def is_goodbye(text: str) -> bool:
    """Whether a message takes leave and says nothing else."""
    return bool(_GOODBYE.match(text.strip()[:120]))
