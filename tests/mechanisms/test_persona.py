"""The assistant's persona as a source."""

from __future__ import annotations

import pytest

from made import SCOPE, T0
from nyima.domain.conversation import Origin
from nyima.domain.evidence import Evidence, Query, Step
from nyima.mechanisms.persona import PersonaRetriever

PERSONA = "I am Nyima, a snow leopard.\n\n   I like green tea and long walks.  \nMy favourite colour is green.\n"


async def asked(question: str, persona: str = PERSONA, k: int = 9, keywords: tuple[str, ...] = ()) -> list[Evidence]:
    step = Step("persona", Query(question, T0, keywords=keywords), k)
    return await PersonaRetriever(persona).retrieve(SCOPE, step)


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        ("What is your favourite colour?", ["My favourite colour is green."]),
        ("Do you like green tea?", ["I like green tea and long walks.", "My favourite colour is green."]),
        ("quantum physics", []),
        ("", []),
    ],
)
async def test_the_lines_that_share_words_come_best_first(question: str, lines: list[str]) -> None:
    found = await asked(question)
    assert [e.text for e in found] == lines
    assert all(0 < e.score <= 1 and e.source == "persona" for e in found)


async def test_keywords_are_looked_for_too_and_k_is_kept() -> None:
    assert [e.text for e in await asked("hm", keywords=("leopard",))] == ["I am Nyima, a snow leopard."]
    assert len(await asked("green tea colour", k=1)) == 1
    assert await asked("anything", persona=" \n ") == []


async def test_a_line_is_quoted_like_a_document_with_its_number() -> None:
    (found,) = await asked("leopard")
    assert (found.record.id, found.record.kind, found.record.region) == ("persona-0", "passage", "persona")
    assert found.record.provenance.origin is Origin.DOCUMENT
    assert [e.record_id for e in await asked("walks")] == ["persona-1"], "blank lines have no number"
