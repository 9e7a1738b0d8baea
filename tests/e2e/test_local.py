"""With real weights: the embedder, and a companion on the small local model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nyima import Assistant
from nyima.app.environment import find_embedder, load_settings, shelf
from nyima.domain.ports import READS_CLAIMS, Completion, Message
from nyima.errors import PackError
from nyima.memory import Memory, Said
from nyima.models.embed import OnnxEmbedder
from nyima.models.local import LocalChat
from nyima.read.embedding import QueryEmbedder
from nyima.read.touching import touching
from nyima.testing import FixedClock

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group(name="local-model")]
SMALL = "qwen2.5-coder-0.5b"


def files(name: str) -> dict[str, Path]:
    try:
        return shelf(load_settings()).files(name)
    except PackError as error:
        if os.environ.get("NYIMA_REQUIRE_PACKS"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder(files("minilm-l6-int8"))


def as_array(vectors: list[bytes]) -> Any:
    return np.array([np.frombuffer(v, "<f4") for v in vectors])


async def test_meaning_is_near(embedder: OnnxEmbedder) -> None:
    cat, kitten, tax = as_array(await embedder.embed(["my cat sleeps", "the kitten is napping", "income tax form"]))
    assert cat @ kitten > 0.5 > cat @ tax
    assert np.linalg.norm(cat) == pytest.approx(1.0, abs=1e-5)
    assert cat.shape == (384,)


async def test_a_batch_gives_what_single_texts_give(embedder: OnnxEmbedder) -> None:
    texts = ["short", "a longer sentence about green tea and jazz", "猫の名前", "", "x " * 3_000]
    together = as_array(await embedder.embed(texts))
    alone = as_array([(await embedder.embed([t]))[0] for t in texts])
    assert (together * alone).sum(1).min() > 0.98


async def test_what_stands_after_256_pieces_does_not_count(embedder: OnnxEmbedder) -> None:
    base = "green tea and jazz " * 100
    one, two = as_array(await embedder.embed([base, base + " quarterly tax report"]))
    assert one @ two == pytest.approx(1.0, abs=1e-4)


@pytest.mark.req("rsum.metrics")
async def test_bert_score_is_that_of_the_authors_package_on_the_same_weights(embedder: OnnxEmbedder) -> None:
    """The figures are those of the package (tools/check_bertscore.py, largest difference 2e-7)."""
    from nyima_lab.measure.metrics import bert_score

    published = {
        ("Your dog is called Biscuit.", "Your dog's name is Biscuit, and she is a beagle."): (
            0.848779,
            0.709448,
            0.772884,
        ),
        ("I don't know that yet.", "You play the cello and the flute."): (0.106070, 0.088293, 0.096368),
        ("Tea", "You like to drink a cup of green tea in the morning."): (0.848064, 0.427347, 0.568315),
    }
    for (reply, reference), wanted in published.items():
        one, two = await embedder.token_vectors([reply, reference])
        assert bert_score(one, two) == pytest.approx(wanted, abs=0.01)  # int8 kernels differ between processors


async def test_two_conversations_at_once_do_not_get_each_others_answers() -> None:
    model = LocalChat(files(SMALL)["model.gguf"], SMALL)

    async def ask(pet: str) -> str:
        system = Message("system", f"The user's cat is called {pet}. Answer in one word.")
        pieces = model.stream([system, Message("user", "What is my cat called?")], max_tokens=12, lane="chat")
        return [p async for p in pieces if isinstance(p, Completion)][-1].text

    try:
        import asyncio

        pets = ["Momo", "Zelda", "Pixel", "Waffle"]
        answers = await asyncio.gather(*(ask(p) for p in pets))
    finally:
        await model.close()
    assert not any(other in answer for pet, answer in zip(pets, answers, strict=True) for other in pets if other != pet)


@pytest.mark.req("emg.screenshots")
def test_a_screenshot_is_read(tmp_path: Path) -> None:
    from PIL import Image, ImageDraw, ImageFont

    from nyima.transfer.screenshots import said_in

    picture = Image.new("RGB", (900, 200), "white")
    draw = ImageDraw.Draw(picture)
    for row, line in enumerate(("Booking confirmed", "The Regina is at Rua Nova 4, Porto")):
        draw.text((30, 30 + 70 * row), line, fill="black", font=ImageFont.load_default(size=36))
    path = tmp_path / "shot.png"
    picture.save(path)
    (said,) = said_in(None, None, path)
    assert said.origin.value == "document"
    assert "The Regina is at Rua Nova 4, Porto" in said.text


@pytest.mark.req("emg.replace", "emg.insert")
async def test_a_claim_in_other_words_is_found_by_meaning(tmp_path: Path, embedder: OnnxEmbedder) -> None:
    async with Memory.open(tmp_path / "m.db", recipe="graph", embedder=embedder, clock=FixedClock()) as memory:
        for what, value in (("meets the landlord", "5 May"), ("phone cable", "USB-C"), ("lives in", "Leeds")):
            await memory.set(what, value)
        await memory.ingest.index(memory.scope)
        shown = [c.attribute for c in await touching(
            memory.store, memory.scope, QueryEmbedder(embedder), "The charger in my car is Lightning now.",
            memory.clock.now(), 1,
        )]  # fmt: skip
        assert shown == ["phone cable"]


async def test_damaged_weights_are_explained(tmp_path: Path) -> None:
    settings = load_settings(cache=tmp_path)
    held = shelf(settings)
    for file in held.pack("minilm-l6-int8").files:
        held.path(file).parent.mkdir(parents=True)
        held.path(file).write_bytes(b"\0" * file.size)
    embedder = find_embedder(settings)
    assert embedder is not None
    with pytest.raises(PackError, match="nyima models pull minilm-l6-int8"):
        await embedder.embed(["tea"])
    (tmp_path / "model.gguf").write_text("no weights")
    chat = LocalChat(tmp_path / "model.gguf", SMALL)
    with pytest.raises(PackError, match="nyima models verify"):
        await chat.start()


async def test_the_local_model_streams_keeps_its_prefix_and_obeys_a_schema() -> None:
    chat = LocalChat(files(SMALL)["model.gguf"], SMALL)
    system = Message("system", "You are a friendly companion. " * 20)
    asked = [system, Message("user", "Say hello.")]

    async def run(messages: list[Message], **options: Any) -> Completion:
        async for piece in chat.stream(messages, max_tokens=40, lane="chat", **options):
            if isinstance(piece, Completion):
                return piece
        raise AssertionError("no completion came")

    try:
        first = await run(asked)
        assert first.text
        second = await run([*asked, Message("assistant", first.text), Message("user", "And goodbye.")])
        assert second.usage.cached > 0.5 * first.usage.prompt
        schema = {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        }
        shaped = await run([Message("user", "The user lives in Porto. Which city?")], schema=schema)
        assert set(json.loads(shaped.text)) == {"city"}
    finally:
        await chat.close()


async def test_an_adapter_changes_the_answers_of_its_lane_alone(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("gguf")
    from nyima_lab.train.claims_adapter import AdapterPlan, write_adapter

    torch.manual_seed(0)
    plan, layer = AdapterPlan(rank=2), "model.layers.3.mlp.down_proj"
    tensors = {f"{layer}.lora_A.weight": torch.randn(2, 4864), f"{layer}.lora_B.weight": torch.randn(896, 2)}
    write_adapter(tensors, tmp_path / "noise.gguf", plan)
    weights = files(SMALL)["model.gguf"]

    async def said(lane: str, adapter: Path | None) -> str:
        chat = LocalChat(weights, SMALL, adapter=adapter)
        try:
            asked = [Message("user", "Say hello.")]
            pieces = [p async for p in chat.stream(asked, max_tokens=12, lane=lane)]
        finally:
            await chat.close()
        return next(p.text for p in pieces if isinstance(p, Completion))

    plain = await said("", None)
    assert await said("", tmp_path / "noise.gguf") == plain
    assert await said(READS_CLAIMS, tmp_path / "noise.gguf") != plain


async def test_the_judge_puts_what_is_out_of_date_behind_what_is_newer(tmp_path: Path) -> None:
    files("minilm-l6-int8")
    clock = FixedClock()
    async with Memory.open(tmp_path / "n.db", clock=clock) as memory:
        for text in (
            "I work at the harbour office in Bremen.",
            "What a lovely morning it was.",
            "I handed in my notice at the harbour office, I start at the museum on Monday!",
        ):
            await memory.remember([Said(text)])
            clock.forward(days=30)
        kept = (await memory.recall("Do I still work at the harbour office?")).kept
    said = [(piece.label, piece.text) for piece in kept]
    assert [label for label, text in said if "Bremen" in text] == ["earlier"]
    assert [label for label, text in said if "museum" in text] == [""]
    assert [text for _, text in said].index(next(t for _, t in said if "museum" in t)) == 0


@pytest.fixture(scope="module")
def two_days(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """A scripted chat of two sessions through the program itself."""
    files("minilm-l6-int8"), files(SMALL)
    folder = tmp_path_factory.mktemp("chat")
    script = folder / "talk.txt"
    script.write_text(
        "I'm Karen, I live in Moab. I was just chilling with my cat.\n"
        "My cat is called Nyima, an orange tabby. And please keep your answers short.\n"
        "What is the capital of France?\n"
        "goodbye\n\n"
        "What is my cat called?\n"
        "goodbye\n"
    )
    command = [
        sys.executable,
        "-c",
        "from nyima.cli.main import run; run()",
        "chat",
        "--script",
        str(script),
    ]
    environment = {**os.environ, "NYIMA_DB": str(folder / "memory.db"), "NYIMA_MODEL": SMALL}
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, env=environment, timeout=540)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_first_day_is_remembered(two_days: list[dict[str, Any]]) -> None:
    turns = [row for row in two_days if "user" in row]
    first, second = (row for row in two_days if row.get("session_end"))
    assert len(turns) == 6
    assert all(row["calls"] >= 1 and row["reply"] for row in turns)
    assert first["records"]["note"] >= 2
    assert second["profile"].items() >= first["profile"].items()


def test_the_second_day_finds_the_cat(two_days: list[dict[str, Any]]) -> None:
    asked = next(row for row in two_days if row.get("user") == "What is my cat called?")
    assert any("Nyima" in piece["text"] for piece in asked["recall"]["kept"])
    assert "Nyima" in asked["reply"]


def test_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    files("minilm-l6-int8"), files(SMALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NYIMA_MODEL", SMALL)
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    block = readme.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {"Assistant": Assistant}
    exec(compile(block, "README.md", "exec"), names)
    names["nyima"].close()
    out = capsys.readouterr().out
    assert "history" in out
    assert names["e"].record_id in out, "each piece stands with the id to revise or forget it by"
