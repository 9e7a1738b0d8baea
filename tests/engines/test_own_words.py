"""What of a message its writer says."""

from __future__ import annotations

import pytest

from nyima.domain.text import own_words, tight
from nyima.memory import Memory, Said

MAIL = "Dear all, my name is Gwendolyn and I live in Lund. The choir meets on Tuesday."


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("I live in Porto.", "I live in Porto."),
        (f"Please summarise this mail:\n\n{MAIL}", "Please summarise this mail:"),
        (f"Translate this:\n{MAIL}\n\nMore.", "Translate this:"),
        (f"I moved to Porto.\n> {MAIL}\nI like it.", "I moved to Porto.\n \nI like it."),
        (f"My code:\n```\n{MAIL}\n```\nIt fails for me.", "My code:\n \nIt fails for me."),
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
    made = await memory.records(kinds=("note", "fact", "relation", "entity"))
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
