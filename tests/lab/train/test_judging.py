"""What the judge learns from: messages beside what they make untrue, and beside what they leave standing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nyima.domain.evidence import Noted
from nyima.errors import InputError
from nyima.testing import HashEmbedder
from nyima_lab.readers.lives import AnnotatedLife, LifeMessage
from nyima_lab.train.judging import inference_pairs, life_pairs, read_told

CLAIMS = {f"c{n}": Noted("user", "knows", f"person {n}") for n in range(9)}
LIFE = AnnotatedLife("L", "en", CLAIMS, (LifeMessage("Person 8 is gone", "", frozenset({"c8"}), ()),))


async def test_a_message_stands_beside_near_claims_and_all_that_it_ends() -> None:
    pairs = await life_pairs([LIFE], {"L": {"c8": "I know person 8"}}, HashEmbedder())
    over = [p for p in pairs if p.label]
    assert {(p.first, p.second, p.kind) for p in over} == {
        ("Person 8 is gone", "no longer true: user knows: person 8", "claim"),
        ("Person 8 is gone", "no longer true: I know person 8", "told"),
    }
    assert 5 <= sum(p.kind == "claim" for p in pairs) <= 7


def test_a_contradiction_makes_its_hypothesis_untrue(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "Text\tHypothesis\tgold_label\nIt rains\tIt is dry\tcontradiction\nA\tB\tneutral\nC\tD\t-\n", "utf-8"
    )
    assert [(p.first, p.second, p.label) for p in inference_pairs([path])] == [
        ("It rains", "no longer true: It is dry", 1.0),
        ("A", "no longer true: B", 0.0),
    ]
    path.write_text("a\tb\n1\t2\n", "utf-8")
    with pytest.raises(InputError, match="no table of inference pairs"):
        inference_pairs([path])


def test_how_claims_were_told_is_read(tmp_path: Path) -> None:
    path = tmp_path / "told.jsonl"
    path.write_text(json.dumps({"life": "L", "told": {"c1": "I know one"}}) + "\n\n", "utf-8")
    assert read_told([path]) == {"L": {"c1": "I know one"}}
    path.write_text("{}\n", "utf-8")
    with pytest.raises(InputError, match="line 1"):
        read_told([path])
