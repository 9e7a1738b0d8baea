"""Prompts as data: a text file each, a typed input, a pydantic output, a version.

A file ``prompts/<job>.md`` has sections ``## name``; ``$word`` in a section is filled
from the input. The version is ``job@hash`` of the file's bytes and goes into the
provenance of every record that the prompt made.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any, Generic, TypeVar

import json_repair
from pydantic import BaseModel, Field, ValidationError

from nyima.domain.ports import Message
from nyima.errors import ConfigError, ModelGarbled

__all__ = ["Prompt", "TextOut", "fill", "sections", "version"]

In = TypeVar("In")
Out = TypeVar("Out", bound=BaseModel)


@cache
def sections(job: str, package: str = "nyima") -> Mapping[str, str]:
    """The sections by name of a prompt file: ``prompts/<job>.md`` in a package."""
    try:
        text = (resources.files(package) / "prompts" / f"{job}.md").read_text("utf-8")
    except FileNotFoundError:
        raise ConfigError(
            f"there is no prompt {job!r} in {package}: the package is incomplete, install it again"
        ) from None
    found: dict[str, str] = {"": hashlib.sha256(text.encode()).hexdigest()[:8]}
    for part in text.split("\n## ")[1:]:
        name, _, body = part.partition("\n")
        found[name.strip()] = body.strip()
    return found


def version(job: str, package: str = "nyima") -> str:
    """``job@hash``."""
    return f"{job}@{sections(job, package)['']}"


def fill(job: str, section: str, values: Mapping[str, object], package: str = "nyima") -> str:
    """A section with its words filled in."""
    return string.Template(sections(job, package)[section]).substitute(values)


@dataclass(frozen=True, slots=True)
class Prompt(Generic[In, Out]):
    """A job for a model. ``room`` is the most tokens that it may write, ``package`` where its text is."""

    job: str
    output: type[Out]
    room: int
    package: str = "nyima"

    @property
    def version(self) -> str:
        """``job@hash``."""
        return version(self.job, self.package)

    def render(self, given: In) -> tuple[Message, ...]:
        """The messages: what never changes first."""
        values: dict[str, Any] = asdict(given)  # type: ignore[call-overload]
        return (
            Message("system", sections(self.job, self.package)["system"]),
            Message("user", fill(self.job, "user", values, self.package)),
        )

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the output, flat."""
        schema = self.output.model_json_schema()
        properties = {name: {k: v for k, v in p.items() if k != "title"} for name, p in schema["properties"].items()}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def parse(self, text: str) -> tuple[Out, bool]:
        """The output, and whether the text had to be repaired. Raises ModelGarbled."""
        try:
            return self.output.model_validate_json(text), False
        except ValidationError:
            pass
        try:
            return self.output.model_validate(json_repair.loads(text)), True
        except (ValidationError, RecursionError) as error:
            raise ModelGarbled(
                f"the model's answer to {self.job!r} cannot be read: {text[:120]!r}: try a larger model"
            ) from error


class TextOut(BaseModel):
    """A text."""

    text: str = Field(min_length=1)
