"""From arguments and settings to the parts of a memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from nyima.app.environment import SystemClock, build, find_chat_model, find_embedder, find_outdating, load_settings
from nyima.app.services import Services
from nyima.app.sources_file import read_sources
from nyima.domain.ports import ChatModel, Clock, Embedder, Verifier
from nyima.errors import ConfigError
from nyima.read.outdating import Outdating
from nyima.read.prompting import Shot

__all__ = ["parts_for", "read_shots"]


def parts_for(
    path: str | Path | None,
    user: str | None,
    recipe: str | None,
    model: ChatModel | str | None,
    embedder: Embedder | str | None,
    clock: Clock | None,
    verifier: Verifier | None = None,
    outdating: Outdating | None = None,
) -> Services:
    """Settings and objects as parts."""
    settings = load_settings(
        db=path,
        user=user,
        recipe=recipe,
        model=model if isinstance(model, str) else None,
        embedder=embedder if isinstance(embedder, str) else None,
    )
    chat = model if model is not None and not isinstance(model, str) else None
    if chat is None and model != "none":
        chat = find_chat_model(settings)
    given = embedder is not None and not isinstance(embedder, str)
    vectors = embedder if embedder is not None and not isinstance(embedder, str) else find_embedder(settings)
    judge = outdating if outdating is not None or given else find_outdating(settings)
    services = build(settings, chat=chat, embedder=vectors, clock=clock or SystemClock())
    return replace(services, sources=read_sources(settings), given_verifier=verifier, outdating=judge)


def read_shots(parts: Services) -> list[Shot]:
    """The labelled examples of the settings: JSON lines with memory, context, response."""
    if not parts.settings.examples:
        return []
    path = Path(parts.settings.examples).expanduser()
    try:
        rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
        return [Shot(str(r["memory"]), str(r["context"]), str(r["response"])) for r in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"the examples {path} cannot be read: {error!r}: each line needs memory, context and response"
        ) from error
