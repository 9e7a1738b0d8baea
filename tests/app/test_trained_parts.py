"""Where the trained parts are found: the user's own first, then those of the package."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nyima.app import environment
from nyima.app.environment import find_chat_model, find_outdating
from nyima.app.settings import Settings
from nyima.domain.ports import READS_CLAIMS
from nyima.errors import ConfigError


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(Settings(), cache=tmp_path / "cache", trained=str(tmp_path / "own"))


def judge(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    for name, content in (("judge.json", text), ("model.onnx", "x"), ("tokenizer.json", "{}")):
        (folder / name).write_text(content, "utf-8")


def test_the_users_own_judge_comes_first(settings: Settings, tmp_path: Path) -> None:
    judge(tmp_path / "own" / "judge", json.dumps({"earlier": 0.25}))
    found = find_outdating(settings)
    assert found is not None
    assert (found.threshold, found.scorer.name) == (0.25, "judge")


@pytest.mark.parametrize("change", [{"judge": False}, {"embedder": "none"}])
def test_a_judge_can_be_left_out(settings: Settings, tmp_path: Path, change: dict[str, object]) -> None:
    judge(tmp_path / "own" / "judge", json.dumps({"earlier": 0.25}))
    assert find_outdating(replace(settings, **change)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"earlier": "much"}'])
def test_a_judge_without_its_threshold_is_named(settings: Settings, tmp_path: Path, text: str) -> None:
    judge(tmp_path / "own" / "judge", text)
    with pytest.raises(ConfigError, match="train the judge again"):
        find_outdating(settings)


@pytest.mark.parametrize("there", [True, False])
def test_a_pack_reads_claims_where_there_is_an_adapter_for_it(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    if there:
        (tmp_path / "own" / "claims").mkdir(parents=True)
        (tmp_path / "own" / "claims" / "smollm2-135m.gguf").write_bytes(b"GGUF")

    class Shelf:
        def files(self, pack: str) -> dict[str, Path]:
            return {"model.gguf": tmp_path / f"{pack}.gguf"}

    monkeypatch.setattr(environment, "shelf", lambda settings: Shelf())
    assert find_chat_model(settings, "smollm2-135m").trained == ({READS_CLAIMS} if there else set())
