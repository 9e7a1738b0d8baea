"""What of a message its writer says."""

from __future__ import annotations

import pytest

from nyima.language.words import own_words, tight
from nyima.memory import Memory, Said

MAIL = "Dear all, my name is Gwendolyn and I live in Lund. The choir meets on Tuesday."


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("I live in Porto.", "I live in Porto."),
        (f"Please summarise this mail:\n\n{MAIL}", ""),
        (f"Translate this:\n{MAIL}\n\nMore.", ""),
        ("Can you rewrite this more politely? I live in Lund and I hate it.", ""),
        ("Write me a poem: I moved to Paris and married the rain.", ""),
        (f"Here is the mail that I got:\n{MAIL}", "Here is the mail that I got:"),
        ("Ana: I moved to Rome\nMe: really?\nAna: I quit my job, too", ""),
        ("[12:03] Ana: I moved to Rome\n[12:04] Ben: me too", ""),
        (f"From: Gwendolyn\nSubject: choir\n\n{MAIL}", ""),
        (f"<context>\n{MAIL}\n</context>\nWhen is the choir?", ""),
        (f"Context information is below.\n-----------\n{MAIL}\n-----------\nWho lives in Lund?", ""),
        (f"Use these pieces of context.\n\n{MAIL}\n\nQuestion: who?\nHelpful Answer:", ""),
        (f"[1] {MAIL}\n[2] {MAIL}\nWho lives in Lund?", ""),
        (f"I moved to Porto.\n> {MAIL}\nI like it.", "I moved to Porto.\nI like it."),
        (f"My code:\n```\n{MAIL}\n```\nIt fails for me.", "My code:\nIt fails for me."),
        (f"{MAIL} " * 40 + "\n\nTranslate the above", ""),
        ("Make me a poem about rain: I moved to Paris.", ""),
        ("I'd like you to translate this: I moved to Paris.", ""),
        ("Ana  12:03\nI moved to Rome\nBen  12:04\nme too", ""),
        ("**User:** I moved to Rome\n**Assistant:** Nice!", ""),
        ("I just finished writing my thesis, I live in Porto.",) * 2,
        ("I write songs, and tell me if I am wrong.",) * 2,
        ("My cat is called “Luna”.",) * 2,
        ("I write novels. At 10:30 I see my dentist.",) * 2,
        (f"He wrote “{MAIL}” and I laughed.", "He wrote   and I laughed."),
        ("Two things:\nI moved to Porto, and I started at Delphi last week, which I like a lot.",) * 2,
        (f"```\n{MAIL}", ""),
    ],
)
def test_what_is_pasted_is_not_said(text: str, own: str) -> None:
    assert own_words(text) == own


async def test_nothing_is_made_of_what_is_pasted(memory: Memory) -> None:
    await memory.remember([Said(f"Please summarise this mail:\n\n{MAIL}", id="1")], session="s")
    await memory.end_session("s")
    await memory.drain()
    made = await memory.records(kinds=("note", "claim", "claim", "entity"))
    assert not [r for r in made if "Gwendolyn" in r.text or "Lund" in r.text]
    assert (await memory.recall("When does the choir meet?")).kept, "it is found all the same"


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        ("我 最 喜欢 的 电影", "我最喜欢的电影"),
        ("《 星球大战 》 。", "《星球大战》。"),
        ("I like café à la carte", "I like café à la carte"),
        ("IT 部门 15 年", "IT 部门 15 年"),
    ],
)
def test_cut_text_is_written_together(cut: str, whole: str) -> None:
    assert tight(cut) == whole
