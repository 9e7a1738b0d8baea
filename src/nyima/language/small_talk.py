"""Messages that need no memory: greetings, thanks, leave, agreement, bare arithmetic."""

from __future__ import annotations

import re

from nyima.language.intent import is_goodbye

__all__ = ["ABOUT_YOU", "is_small_talk"]

SMALL_TALK = frozenset(
    """hello hi hey hiya yo good morning afternoon evening night thanks thank you thx cheers ok okay k fine great nice
    cool lol haha hahaha yes yeah yep no nope sure please welcome bye goodbye wow hmm mm oh ah alright right perfect
    how are doing today is it going up what s whats sup there very much so a lot the same
    olá ola oi bom dia boa tarde noite obrigado obrigada tudo bem como vai você voce hola gracias buenos dias buenas tardes
    noches qué tal que hallo danke guten morgen tag abend wie geht s es dir bonjour bonsoir merci salut ça va ciao grazie
    buongiorno buonasera""".split()
)

CARRIES = frozenset("what how is it a the no are today same up there so s".split())

ARITHMETIC = re.compile(r"^[\s\d().,]*\d\s*[+*/×÷^%][\s\d+\-*/×÷().,^%=?]*$")

ABOUT_YOU = re.compile(
    r"\b(?:you|your|yours|yourself|tu|você|teu|seu|usted|du|dein\w*|toi|vous|votre)\b|你|您|あなた|君", re.IGNORECASE
)

MOST_SMALL_TALK = 7

LONGEST = 200

GREETS = frozenset("hello hi hey thanks thank you good morning evening afternoon night".split())

ASKS = (["what", "is"], ["what", "are"], ["how", "is"], ["is", "it"])

UNSPACED_GREETING = re.compile(
    r"^\W*(?:你好|您好|早上好|晚上好|谢谢|謝謝|こんにちは|おはよう|ありがとう|好的|嗯|哈哈+)\W*$"
)


def is_small_talk(text: str, before: str = "") -> bool:
    """Whether a message greets, thanks, takes leave, agrees or is bare arithmetic, and
    nothing else. After a question (``before``) an answer is no small talk."""
    if len(text) > LONGEST:
        return False
    said = re.findall(r"[^\W_]+", text.lower())
    if not said or ARITHMETIC.match(text) or is_goodbye(text) or UNSPACED_GREETING.match(text):
        return not before.rstrip().endswith(("?", "？")) or not said or is_goodbye(text)
    if before.rstrip().endswith(("?", "？")) and not set(said) <= GREETS:
        return False
    small = len(said) <= MOST_SMALL_TALK and set(said) <= SMALL_TALK
    return small and (len(said) == 1 or not set(said) <= CARRIES) and said[:2] not in ASKS
