"""Settings and wiring: the only module that reads the environment, and the only one
that puts the parts together."""

from __future__ import annotations

import functools
import logging
import os
import socket
import tomllib
import urllib.error
import urllib.request
from dataclasses import fields, replace
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nyima.app.services import Services
from nyima.app.settings import Settings, default_path
from nyima.app.stores import open_store, path_of
from nyima.domain.conversation import Scope
from nyima.domain.ports import ChatModel, Clock, Embedder
from nyima.errors import ConfigError, NoModel

if TYPE_CHECKING:
    from nyima.domain.recipe import Recipe
    from nyima.models.packs import PackShelf
    from nyima.read.outdating import Outdating

__all__ = [
    "Services",
    "Settings",
    "SystemClock",
    "build",
    "default_chat_pack",
    "find_chat_model",
    "find_embedder",
    "find_outdating",
    "load_settings",
    "shelf",
]

_ENVIRONMENT = {
    "db": "NYIMA_DB",
    "user": "NYIMA_USER",
    "recipe": "NYIMA_RECIPE",
    "model": "NYIMA_MODEL",
    "embedder": "NYIMA_EMBEDDER",
    "cache": "NYIMA_CACHE",
    "base_url": "OPENAI_BASE_URL",
    "api_key": "OPENAI_API_KEY",
    "capture_content": "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
}
_LOCAL_PORTS = {11434: "Ollama", 8080: "llama.cpp", 1234: "LM Studio", 8000: "vLLM"}
_CHAT_PACK = "qwen2.5-coder-1.5b"


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(UTC)


def load_settings(**given: Any) -> Settings:
    """Arguments, then environment, then the settings file, then defaults.

    Raises ConfigError for a file that cannot be read or a value of the wrong type.
    """
    path = Path(os.environ.get("NYIMA_CONFIG") or default_path("config"))
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    if path.is_file():
        try:
            data = tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise ConfigError(
                f"{path} cannot be read: {error}: mend it, or set NYIMA_CONFIG to another file"
            ) from error
        for name, value in data.items():
            values[name], origin[name] = value, str(path)
    elif "NYIMA_CONFIG" in os.environ:
        raise ConfigError(f"NYIMA_CONFIG names {path}, which does not exist: create it or unset the variable")
    for name, variable in _ENVIRONMENT.items():
        if os.environ.get(variable):
            values[name], origin[name] = os.environ[variable], variable
    for name, value in given.items():
        if value is not None:
            values[name], origin[name] = value, "argument"
    if "://" in str(values.get("db", "")):
        file = path_of(str(values["db"]))
        if file is None:  # what lies beside a file (keys, audit) lies where the file would be
            values["store"], origin["store"] = str(values.pop("db")), origin.pop("db")
        else:
            values["db"] = file
    known = {f.name: f for f in fields(Settings) if f.name != "origin"}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ConfigError(f"{origin[unknown[0]]}: there is no setting {unknown[0]!r}: choose from {', '.join(known)}")
    checked = {name: _checked(name, value, origin[name]) for name, value in values.items()}
    return replace(Settings(), **checked, origin=origin)


_YES_OR_NO = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False, "": False}  # fmt: skip


def _checked(name: str, value: Any, origin: str) -> Any:
    default = getattr(Settings(), name)
    try:
        if isinstance(default, Path):
            return Path(value).expanduser()
        if isinstance(default, tuple):
            return tuple(str(v) for v in (value.split(",") if isinstance(value, str) else value))
        if isinstance(default, bool):
            return value if isinstance(value, bool) else _YES_OR_NO[str(value).lower()]
        if not isinstance(value, str) and type(value) is not type(default) and type(default) is not float:
            raise TypeError(value)
        return type(default)(value)
    except (TypeError, ValueError, KeyError) as error:
        raise ConfigError(f"{origin}: {name} = {value!r} is not a {type(default).__name__}") from error


def shelf(settings: Settings) -> PackShelf:
    """The packs in the cache."""
    from nyima.models.packs import PackShelf

    return PackShelf(settings.cache / "packs", hub=settings.hub)


def find_chat_model(settings: Settings, name: str | None = None) -> ChatModel:
    """The chat model: the named one, else the first of OPENAI_BASE_URL or
    OPENAI_API_KEY, a local server on the usual ports, the local pack.

    Raises NoModel or PackError with what to do when there is none.
    """
    from nyima.models.openai import Endpoint, OpenAIChat
    from nyima.models.packs import packs

    name = name if name is not None else settings.model
    if name == "none":
        raise NoModel("the model is set to 'none': set NYIMA_MODEL, or leave it out to use the local model")
    if name in packs():
        return _local(settings, name)
    url, key = settings.base_url, settings.api_key
    if url or key:
        model = name or _first_model(url, key) or "gpt-4o-mini"
        return OpenAIChat(model, Endpoint(url or None, key or None))
    for port in _LOCAL_PORTS:
        local = f"http://127.0.0.1:{port}/v1"
        if _listens(port) and (model := name or _first_model(local, "")):
            return OpenAIChat(model, Endpoint(local, "none"), window=8_000)
    if name:
        raise NoModel(
            f"no server has the model {name!r}: set OPENAI_BASE_URL, or choose a pack from `nyima models list`"
        )
    return _local(settings, _CHAT_PACK)


def default_chat_pack(settings: Settings) -> str:
    """The pack that answers when nothing else is set, empty when a server does."""
    from nyima.models.packs import packs

    if settings.model and settings.model not in packs():
        return ""
    if settings.base_url or settings.api_key or any(_listens(port) for port in _LOCAL_PORTS):
        return ""
    return _CHAT_PACK


def _local(settings: Settings, pack: str) -> ChatModel:
    from nyima.models.local import LocalChat

    file = shelf(settings).files(pack)["model.gguf"]
    return LocalChat(file, pack, threads=min(settings.threads, 4), adapter=_claims_adapter(settings, pack))


def _claims_adapter(settings: Settings, pack: str) -> Path | None:
    """The adapter with which a pack reads claims; None where there is none for it."""
    folder = _trained(settings, "claims", f"{pack}.gguf")
    return None if folder is None else folder / f"{pack}.gguf"


def _trained(settings: Settings, what: str, file: str) -> Path | None:
    """The folder that has a file of something trained: the user's own first, then that of the package."""
    shipped = Path(__file__).parents[1] / "models" / "trained"
    return next(
        (folder / what for folder in (settings.trained_folder, shipped) if (folder / what / file).is_file()), None
    )


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.05)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _first_model(url: str, key: str) -> str:
    """The first model that an address lists, empty when it lists none."""
    import json

    if not url:
        return ""
    request = urllib.request.Request(url.rstrip("/") + "/models", headers={"Authorization": f"Bearer {key or 'none'}"})
    try:
        with urllib.request.urlopen(request, timeout=2.0) as answer:
            listed = json.loads(answer.read(1_000_000))["data"]
            return str(listed[0]["id"]) if listed else ""
    except (OSError, HTTPException, ValueError, KeyError, TypeError, IndexError):
        return ""


def find_embedder(settings: Settings, name: str | None = None) -> Embedder | None:
    """The embedder (or the named one): a pack, the folder of a trained retriever, or a model
    of the endpoint; None for ``none``, and where the packages for a pack are not installed:
    then memories are found by words, and a warning says so once. A pack must have been
    pulled. All memories of a process share the embedder of one model."""
    from nyima.models.embed import OpenAIEmbedder, runtime_missing
    from nyima.models.openai import Endpoint
    from nyima.models.packs import packs

    name = name or settings.embedder
    if name == "none":
        return None
    folder = Path(name).expanduser()
    trained = name not in packs() and (folder / "model.onnx").is_file()
    if name not in packs() and not trained:
        return OpenAIEmbedder(name, Endpoint(settings.base_url or None, settings.api_key or None))
    missing = runtime_missing()
    if missing:
        _say_once(
            f"{missing} is not installed, so memories are found by their words and not by meaning:"
            " run `pip install 'nyima[local]'`, or set NYIMA_EMBEDDER=none to be told no more"
        )
        return None
    if trained:
        return _onnx(folder / "model.onnx", folder / "tokenizer.json", f"trained:{folder.name}")
    files = shelf(settings).files(name)
    return _onnx(files["model.onnx"], files["tokenizer.json"], name)


def find_outdating(settings: Settings) -> Outdating | None:
    """Who finds that a newer message makes an earlier one untrue: a model that was trained here, else the
    one that comes with Nyima; None where the settings or the packages leave it out. It reads English."""
    from nyima.models.embed import runtime_missing

    if not settings.judge or settings.embedder == "none" or runtime_missing():
        return None
    folder = _trained(settings, "judge", "judge.json")
    return None if folder is None else _outdating(folder)


@functools.lru_cache(maxsize=2)
def _outdating(folder: Path) -> Outdating:
    """The judge of a folder: one for all memories of the process."""
    import json

    from nyima.models.pair_scorer import OnnxPairScorer
    from nyima.read.outdating import Outdating

    try:
        threshold = float(json.loads((folder / "judge.json").read_text("utf-8"))["earlier"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{folder / 'judge.json'} cannot be read ({error!r}): train the judge again") from error
    return Outdating(OnnxPairScorer(folder), threshold)


@functools.lru_cache(maxsize=4)
def _onnx(model: Path, tokenizer: Path, name: str) -> Embedder:
    """The embedder of these files: one for all memories of the process, since each holds the
    whole model. A pack's content was checked by its hash when it was pulled."""
    from nyima.models.embed import OnnxEmbedder

    return OnnxEmbedder({"model.onnx": model, "tokenizer.json": tokenizer}, name)


@functools.lru_cache(maxsize=16)
def _say_once(message: str) -> None:
    logging.getLogger("nyima").warning(message)


def read_persona(settings: Settings) -> str:
    """The assistant's persona: the file that is set, else the built-in one."""
    path = Path(settings.persona).expanduser() if settings.persona else Path(__file__).with_name("persona.md")
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the persona {path} cannot be read: {error}: set another file") from error


def with_k(recipe: Recipe, chosen: tuple[str, ...]) -> Recipe:
    """The recipe with other numbers of pieces a source, given as ``source=number``."""
    numbers: dict[str, int] = {}
    for pair in chosen:
        name, _, number = pair.partition("=")
        if not number.isdecimal() or name not in {s.name for s in recipe.sources}:
            known = ", ".join(s.name for s in recipe.sources) or "none"
            raise ConfigError(f"k = {pair!r}: give source=number; the sources of {recipe.name!r} are {known}")
        numbers[name] = int(number)
    return replace(recipe, sources=tuple(replace(s, k=numbers.get(s.name, s.k)) for s in recipe.sources))


def build(
    settings: Settings, *, chat: ChatModel | None, embedder: Embedder | None, clock: Clock | None = None
) -> Services:
    """Open the store and join the parts."""
    from nyima.app.registry import registry
    from nyima.domain.storage import Batched

    known = registry()
    recipe = with_k(known.recipe(settings.recipe), settings.k)
    persona = read_persona(settings)
    queries = find_embedder(settings, settings.query_embedder) if settings.query_embedder and embedder else None
    writer = find_chat_model(settings, settings.writer_model) if settings.writer_model and chat is not None else chat
    return Services(
        Scope(user=settings.user),
        Batched(open_store(settings.where)),
        clock or SystemClock(),
        embedder,
        chat,
        writer,
        settings,
        recipe,
        persona,
        known,
        queries=queries,
    )
