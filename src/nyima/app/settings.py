"""Everything that can be set, with its defaults. ``app`` reads it from the environment and
the settings file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nyima.errors import ConfigError

__all__ = ["EMBED_PACK", "Settings", "default_path", "read_zone", "sources_path"]

EMBED_PACK = "minilm-l6-int8"


def default_path(name: str) -> Path:
    """Where the settings, the cache or the memory lies unless it is set."""
    import platformdirs

    if name == "config":
        return Path(platformdirs.user_config_dir("nyima", False)) / "config.toml"
    if name == "cache":
        return Path(platformdirs.user_cache_dir("nyima", False))
    return Path(platformdirs.user_data_dir("nyima", False)) / "memory.db"


def sources_path(settings: Settings) -> Path:
    """The file with the user's own sources: the one that is set, else beside the settings."""
    return Path(settings.sources).expanduser() if settings.sources else default_path("config").with_name("sources.json")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set. ``origin`` says where each value came from."""

    db: Path = field(default_factory=lambda: default_path("db"))
    store: str = field(default="", repr=False)
    user: str = "me"
    model: str = ""
    writer_model: str = ""
    embedder: str = EMBED_PACK
    query_embedder: str = ""
    cache: Path = field(default_factory=lambda: default_path("cache"))
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    recipe: str = "default"
    k: tuple[str, ...] = ()
    persona: str = ""
    examples: str = ""
    tools: tuple[str, ...] = ("calculator", "clock")
    silence_minutes: float = 60.0
    calls_per_day: int = 0
    tokens_per_day: int = 0
    zone: str = ""
    learn: bool = False
    sources: str = ""
    trained: str = ""
    judge: bool = True
    subclasses: tuple[str, ...] = ()
    threads: int = field(default_factory=lambda: max(1, min(4, os.cpu_count() or 2)))
    hub: bool = True
    capture_content: bool = False
    origin: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def where(self) -> str:
        """The store: the path of its file, or its URL."""
        return self.store or str(self.db)

    @property
    def trained_folder(self) -> Path:
        """The user's own trained parts: the folder that is set, else one in the cache."""
        return Path(self.trained).expanduser() if self.trained else self.cache / "trained"

    def shown(self) -> dict[str, str]:
        """The values as texts; a key is never shown."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "origin"}
        values["api_key"] = "set" if self.api_key else ""
        values["store"] = re.sub(r"//[^@/]*@", "//…@", self.store)
        values["tools"] = ", ".join(self.tools)
        values["k"] = ", ".join(self.k)
        return {name: str(value) for name, value in values.items()}


def read_zone(name: str) -> tzinfo:
    """A time zone by its name, the machine's when there is none."""
    if not name:
        local = datetime.now().astimezone().tzinfo
        return local or UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"there is no time zone {name!r}: give one such as Europe/Lisbon, or install tzdata"
        ) from error
