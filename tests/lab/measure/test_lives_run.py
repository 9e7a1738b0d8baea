"""What becomes of a life's claims when a message comes, through ``Memory.remember``."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from made import claim
from nyima.domain.evidence import Noted
from nyima.domain.ports import READS_CLAIMS
from nyima.domain.records import Status
from nyima.errors import InputError
from nyima.testing import HashEmbedder, Request, ScriptedModel
from nyima_lab.measure.lives_run import agrees, run_lives
from nyima_lab.readers.lives import read_lives
from nyima_lab.readers.real_turns import read_real_turns
from support import Agrees

ROW: dict[str, Any] = {
    "life": "A-1", "lang": "en",
    "claims": [{"id": "c1", "subject": "user", "attribute": "lives in", "value": "Leeds"},
               {"id": "c2", "subject": "user", "attribute": "works as", "value": "nurse"}],
    "messages": [
        {"text": "We have moved to Porto now.", "over": ["c1"],
         "said": [{"subject": "user", "attribute": "lives in", "value": "Porto", "status": "holds"}]},
        {"before": "How are you?", "text": "Not so well, I was let go.", "over": ["c2"], "said": []},
    ],
}  # fmt: skip


def lives(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "lives.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    return path


async def test_what_is_closed_labelled_and_read_is_counted(tmp_path: Path) -> None:
    def reads(request: Request) -> str:
        if "Porto" not in request.last:
            return "over: none"
        number = next(line[0] for line in request.last.splitlines() if line.endswith("Leeds"))
        return f"user | lives in | Porto | holds\nuser | has | moved | holds\nover: {number}"

    model = ScriptedModel({READS_CLAIMS: [reads]}, trained=frozenset({READS_CLAIMS}))
    report = await run_lives(read_lives([lives(tmp_path, ROW)]), HashEmbedder(), model, verifier=Agrees())
    every = report["all"]
    assert every["messages"] == report["en"]["messages"] == 2
    assert (every["over_closed"]["mean"], every["over_closed"]["n"]) == (0.5, 2)
    assert every["closed_right"]["mean"] == 1.0
    assert (every["recall"]["mean"], every["precision"]["mean"]) == (1.0, 0.5)
    assert [row["closed"] for row in report["rows"]] == [("c1",), ()]


@pytest.mark.parametrize(
    ("read", "same"),
    [
        (claim("a", "is based in", "Porto"), True),
        (claim("a", "lives in", "the city of Porto"), True),
        (claim("a", "lives in", "Porto", status=Status.ENDED), False),
        (claim("a", "lives in", "Porto", subject="x", name="dad"), False),
        (claim("a", "works in", "Braga"), False),
    ],
)
def test_two_claims_agree_on_whom_what_and_whether(read: Any, same: bool) -> None:
    assert agrees(read, Noted("user", "lives in", "Porto")) is same


@pytest.mark.parametrize("bad", [{**ROW, "claims": []}, {"life": "x"}, [1]])
def test_a_life_that_cannot_be_read_is_named(tmp_path: Path, bad: Any) -> None:
    with pytest.raises(InputError, match="line 2"):
        read_lives([lives(tmp_path, ROW, bad)])
    with pytest.raises(InputError, match="no life"):
        read_lives([lives(tmp_path)])


ANNOTATED = Path(__file__).parents[2] / "judged"


@pytest.mark.parametrize("path", sorted((ANNOTATED / "outside").glob("lives_*.jsonl")), ids=lambda p: p.stem)
def test_the_committed_lives_can_be_read(path: Path) -> None:
    assert len(read_lives([path])) >= 24


def annotations(tmp_path: Path, text: str) -> Path:
    row = {
        "set": "msc", "file": "valid.txt", "where": {"episode": 0, "turn": 1}, "lang": "en",
        "sha": hashlib.sha256(text.encode()).hexdigest()[:12],
        "claims": [{"subject": "user", "attribute": "has", "value": "a dog", "status": "holds", "start": 0, "end": 3}],
    }  # fmt: skip
    return lives(tmp_path, row)


def test_a_real_turn_is_joined_with_its_text_and_a_changed_one_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "msc").mkdir()
    talk = {"dialog": [{"text": "Hi!"}, {"text": "I have a dog."}]}
    (tmp_path / "msc" / "valid.txt").write_text(json.dumps(talk) + "\n", "utf-8")
    (life,) = read_real_turns(tmp_path, annotations(tmp_path, "I have a dog."))
    assert [(m.text, m.said) for m in life.messages] == [("I have a dog.", (Noted("user", "has", "a dog"),))]
    with pytest.raises(InputError, match="another one than was annotated"):
        read_real_turns(tmp_path, annotations(tmp_path, "I have a cat."))
    with pytest.raises(InputError, match="give the folder of the data"):
        read_real_turns(tmp_path / "nowhere", annotations(tmp_path, "I have a dog."))
