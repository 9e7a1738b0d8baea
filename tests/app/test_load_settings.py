"""Where each setting comes from, and which part of the program is put together of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nyima.app.environment import (
    _ENVIRONMENT,
    build,
    default_chat_pack,
    find_chat_model,
    find_embedder,
    load_settings,
    read_persona,
    with_k,
)
from nyima.app.opening import parts_for, read_shots
from nyima.app.registry import recipe_named
from nyima.app.settings import Settings, default_path, read_zone, sources_path
from nyima.errors import ConfigError, NoModel, PackError
from nyima.models.embed import OpenAIEmbedder
from nyima.models.openai import OpenAIChat
from nyima.testing import FixedClock, HashEmbedder, ScriptedModel
from support import openai_server
from wires import answered, wire

Config = Callable[[str], Path]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    path = tmp_path / "settings.toml"

    def write(text: str) -> Path:
        path.write_text(text, "utf-8")
        monkeypatch.setenv("NYIMA_CONFIG", str(path))
        return path

    return write


@pytest.mark.parametrize("name", sorted(_ENVIRONMENT))
def test_an_argument_comes_before_the_environment_before_the_file(
    name: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = getattr(Settings(), name)

    def shown(settings: Settings) -> tuple[str, str | None]:
        return str(getattr(settings, name)), settings.origin.get(name)

    values = ("true", "1", "yes") if isinstance(default, bool) else ("/x/file", "/x/environment", "/x/argument")
    seen = ("True",) * 3 if isinstance(default, bool) else values
    assert shown(load_settings()) == (str(default), None)
    path = config(f'{name} = "{values[0]}"')
    assert shown(load_settings()) == (seen[0], str(path))
    monkeypatch.setenv(_ENVIRONMENT[name], values[1])
    assert shown(load_settings()) == (seen[1], _ENVIRONMENT[name])
    assert shown(load_settings(**{name: values[2]})) == (seen[2], "argument")
    assert shown(load_settings(**{name: None})) == (seen[1], _ENVIRONMENT[name])


def test_an_empty_variable_is_not_set(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    config('user = "karen"')
    monkeypatch.setenv("NYIMA_USER", "")
    assert load_settings().user == "karen"


def test_the_settings_file_lies_in_the_users_folder() -> None:
    path = default_path("config")
    path.parent.mkdir(parents=True)
    path.write_text('user = "karen"\n')
    assert (load_settings().user, load_settings().origin["user"]) == ("karen", str(path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('user = "a"\nuser = "b"', "cannot be read: .*mend it, or set NYIMA_CONFIG"),
        ("colour = 1", r"settings\.toml: there is no setting 'colour': choose from db, store, user"),
        ("origin = 1", "there is no setting 'origin'"),
        ('threads = "many"', r"settings\.toml: threads = 'many' is not a int"),
        ("tools = 5", "tools = 5 is not a tuple"),
        ("calls_per_day = [1]", r"calls_per_day = \[1\] is not a int"),
        ("cache = 7", "cache = 7 is not a PosixPath"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(config: Config, text: str, words: str) -> None:
    config(text)
    with pytest.raises(ConfigError, match=words):
        load_settings()


@pytest.mark.parametrize("text", ['learn = "maybe"', 'user = ["a"]', "threads = 2.5"])
def test_a_value_of_the_wrong_type_is_refused(config: Config, text: str) -> None:
    config(text)
    with pytest.raises(ConfigError):
        load_settings()


def test_a_file_that_is_no_text_is_named(config: Config) -> None:
    config("").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"settings\.toml cannot be read"):
        load_settings()


def test_a_settings_file_that_is_named_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NYIMA_CONFIG", "/nowhere/config.toml")
    with pytest.raises(ConfigError, match=r"NYIMA_CONFIG names /nowhere/config\.toml, which does not exist"):
        load_settings()


@given(st.text(max_size=30))
def test_no_key_is_ever_shown(key: str) -> None:
    settings = load_settings(api_key="sk-" + key)
    assert settings.shown()["api_key"] == "set"
    assert "sk-" not in repr(settings)
    assert set(settings.shown()) == {f.name for f in fields(Settings)} - {"origin"}


def test_lists_may_stand_in_one_text_and_home_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/karen")
    assert load_settings(k="history=5,notes=2").k == ("history=5", "notes=2")
    assert load_settings(db="~/me.db").db == Path("/home/karen/me.db")
    assert sources_path(load_settings(sources="~/s.json")) == Path("/home/karen/s.json")
    assert sources_path(load_settings()) == default_path("config").with_name("sources.json")


@pytest.mark.parametrize("name", ["Europe/Atlantis", "../../etc/passwd", "/etc/passwd", "\0"])
def test_a_zone_that_does_not_exist_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match="give one such as Europe/Lisbon"):
        read_zone(name)


def test_a_zone_by_its_name_has_its_summer_time() -> None:
    summer = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert read_zone("Europe/Lisbon").utcoffset(summer.astimezone(read_zone("Europe/Lisbon"))) == timedelta(hours=1)
    assert read_zone("").utcoffset(summer) is not None


# --- the recipe ---


def test_other_numbers_of_pieces_are_given_by_source() -> None:
    recipe = recipe_named("default")
    changed = with_k(recipe, ("history=9", "notes=0", "history=7"))
    ks = {s.name: s.k for s in changed.sources}
    assert (ks["history"], ks["notes"]) == (7, 0)
    assert {s.name: s.k for s in recipe.sources if s.name not in {"history", "notes"}}.items() <= ks.items()


@pytest.mark.parametrize("pair", ["history", "history=", "history=-1", "history=x", "nothing=3", "=3", ""])
def test_a_number_for_no_source_is_answered_with_the_sources(pair: str) -> None:
    with pytest.raises(ConfigError, match="give source=number; the sources of 'history' are history"):
        with_k(recipe_named("history"), (pair,))
    with pytest.raises(ConfigError, match="the sources of 'none' are none"):
        with_k(recipe_named("none"), ("history=1",))


@pytest.mark.parametrize(
    "ask", [lambda: with_k(recipe_named("history"), ("history=²",)), lambda: recipe_named("history@²")]
)
def test_a_superscript_is_no_number(ask: Callable[[], Any]) -> None:
    with pytest.raises(ConfigError):
        ask()


@given(st.text(max_size=8))
def test_any_name_of_a_recipe_is_known_or_refused(name: str) -> None:
    if any(c.isdigit() and not c.isdecimal() for c in name):
        return  # see the superscript above
    problem = ""
    try:
        assert recipe_named(name).name == name
    except ConfigError as error:
        problem = str(error)
    assert not problem or f"there is no recipe {name!r}" in problem


@pytest.mark.parametrize("k", [1, 7, 100])
def test_a_recipe_at_k_makes_room_for_what_it_brings(k: int) -> None:
    plain, wide = recipe_named("default"), recipe_named(f"default@{k}")
    assert {s.k for s in wide.sources} == {k}
    assert wide.evidence.records == k * len(plain.sources)
    assert wide.evidence.tokens >= plain.evidence.tokens
    for wrong in ("default@0", "default@101", "default@", "default@-1", "@3"):
        with pytest.raises(ConfigError, match="or name@k"):
            recipe_named(wrong)


# --- the model ---


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens on the usual ports."""
    monkeypatch.setattr("nyima.app.environment._LOCAL_PORTS", {})


@pytest.mark.usefixtures("alone")
def test_without_any_server_the_local_pack_is_wanted(tmp_path: Path) -> None:
    settings = load_settings(cache=tmp_path)
    assert default_chat_pack(settings) == "qwen2.5-coder-1.5b"
    with pytest.raises(PackError, match="nyima models pull qwen2.5-coder-1.5b"):
        find_chat_model(settings)
    with pytest.raises(NoModel, match="no server has the model 'mine': set OPENAI_BASE_URL, or choose a pack"):
        find_chat_model(settings, "mine")
    assert default_chat_pack(load_settings(model="mine")) == ""
    assert default_chat_pack(load_settings(api_key="k")) == ""


def test_none_is_no_model() -> None:
    with pytest.raises(NoModel, match="set NYIMA_MODEL"):
        find_chat_model(load_settings(model="none", base_url="http://127.0.0.1:9/v1"))


@pytest.mark.parametrize(("model", "asked"), [("", "fake-model"), ("other", "other")])
def test_a_server_is_asked_for_its_first_model_when_none_is_named(model: str, asked: str) -> None:
    with openai_server() as server:
        found = find_chat_model(load_settings(base_url=server.url, model=model))
    assert isinstance(found, OpenAIChat)
    assert found.name == asked


@pytest.mark.parametrize(
    "answer",
    [
        answered({"data": []}),
        answered({"data": None}),
        answered([1]),
        answered(b"\xff", "text/html"),
        answered({}, status="404 Not Found"),
        b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{}",
        b"",
        pytest.param(
            b"SSH-2.0-OpenSSH_9\r\n\r\n",
        ),
    ],
)
def test_an_address_that_lists_no_model_is_asked_for_a_usual_one(answer: bytes) -> None:
    with wire(answer) as server:
        assert find_chat_model(load_settings(base_url=server.url)).name == "gpt-4o-mini"


def test_a_server_on_a_usual_port_is_used_with_a_small_window(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with openai_server() as server:
        port = int(server.url.split(":")[2].split("/")[0])
        monkeypatch.setattr("nyima.app.environment._LOCAL_PORTS", {port: "a test"})
        found = find_chat_model(load_settings(cache=tmp_path))
        assert default_chat_pack(load_settings(cache=tmp_path)) == ""
    assert (found.name, found.window) == ("fake-model", 8_000)


@pytest.mark.usefixtures("alone")
def test_a_pack_that_is_named_is_not_asked_of_a_server(tmp_path: Path) -> None:
    with openai_server() as server, pytest.raises(PackError, match="smollm2-135m"):
        find_chat_model(load_settings(base_url=server.url, model="smollm2-135m", cache=tmp_path))


# --- the rest ---


def test_what_is_no_pack_and_no_folder_is_a_model_of_the_endpoint(tmp_path: Path) -> None:
    found = find_embedder(load_settings(embedder="text-embedding-3-small", base_url="http://127.0.0.1:9/v1"))
    assert isinstance(found, OpenAIEmbedder)
    assert found.name == "text-embedding-3-small"
    assert find_embedder(load_settings(embedder="none")) is None
    assert find_embedder(load_settings(embedder="none"), "other") is not None
    with pytest.raises(PackError, match="nyima models pull minilm-l6"):
        find_embedder(load_settings(cache=tmp_path, embedder="minilm-l6"))


def test_the_folder_of_a_trained_retriever_is_an_embedder(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.onnx").touch()
    found = find_embedder(load_settings(embedder=str(tmp_path / "mine")))
    assert found is not None
    assert found.name == "trained:mine"


def test_a_persona_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "susan.md").write_bytes(b"\xff")
    for name in ("susan.md", "gone.md"):
        with pytest.raises(ConfigError, match=f"{name} cannot be read: .*set another file"):
            read_persona(load_settings(persona=str(tmp_path / name)))
    assert "Nyima" in read_persona(load_settings())


@pytest.mark.parametrize(
    "line", ["{", "[]", "null", '{"memory": "a", "context": "b"}', '"memory context response"', "7"]
)
async def test_an_example_that_lacks_a_part_is_refused(tmp_path: Path, db: Path, line: str) -> None:
    path = tmp_path / "shots.jsonl"
    path.write_text('{"memory": "a", "context": "b", "response": "c"}\n' + line + "\n")
    parts = build(load_settings(db=db, examples=str(path)), chat=None, embedder=None)
    with pytest.raises(
        ConfigError, match=r"shots\.jsonl cannot be read: .*each line needs memory, context and response"
    ):
        read_shots(parts)
    await parts.store.close()


async def test_objects_and_names_are_both_taken(db: Path, clock: FixedClock) -> None:
    model, embedder = ScriptedModel(), HashEmbedder()
    parts = parts_for(db, "karen", "history", model, embedder, clock)
    assert (parts.chat, parts.writer_chat, parts.embedder, parts.clock) == (model, model, embedder, clock)
    assert (parts.scope.user, parts.recipe.name, parts.settings.db) == ("karen", "history", db)
    await parts.store.close()
    without = parts_for(db, None, None, "none", "none", None)
    assert (without.chat, without.embedder, without.scope.user) == (None, None, "me")
    await without.store.close()


async def test_another_model_writes_when_it_is_set(db: Path, config: Config, clock: FixedClock) -> None:
    with openai_server() as server:
        config(f'writer_model = "writer"\nbase_url = "{server.url}"\nquery_embedder = "asker"\nsilence_minutes = 5')
        model = ScriptedModel()
        parts = parts_for(db, None, None, model, HashEmbedder(), clock)
        assert parts.chat is model
        assert parts.writer_chat is not None
        assert (parts.writer_chat.name, parts.queries and parts.queries.name) == ("writer", "asker")
        assert parts.silence == timedelta(minutes=5)
        await parts.store.close()
        reading = parts_for(db, None, None, "none", HashEmbedder(), clock)
        assert reading.writer_chat is None, "without a model for replies nothing is written by another"
        await reading.store.close()


async def test_a_model_of_that_name_is_found_behind_the_address(db: Path, config: Config) -> None:
    config('base_url = "http://127.0.0.1:9/v1"')
    parts = parts_for(db, None, None, "theirs", "none", None)
    assert parts.chat is not None
    assert parts.chat.name == "theirs"
    await parts.store.close()


async def test_what_is_not_trained_says_how_to_train_it(db: Path, tmp_path: Path) -> None:
    parts = build(load_settings(db=db, trained=str(tmp_path)), chat=None, embedder=None)
    with pytest.raises(ConfigError, match="run `nyima train planner`, or set `trained` to its folder"):
        parts.trained("planner")
    (tmp_path / "planner").mkdir()
    assert parts.trained("planner") == tmp_path / "planner"
    await parts.store.close()
