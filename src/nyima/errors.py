"""Every error that Nyima raises on purpose.

::

    NyimaError
    ├── InputError            what was given cannot be used
    │   ├── ConfigError       a setting, a persona file or a recipe is wrong
    │   └── NotFound          no record, turn, session or file has that name
    ├── StoreError            the memory file cannot be read or written
    │   ├── StoreLocked       another process holds it for too long
    │   ├── StoreReadOnly     the file or its folder cannot be written
    │   ├── StoreFull         the disk is full
    │   ├── ForeignStore      the file is not a memory of Nyima, or is damaged
    │   ├── NewerStore        a newer Nyima wrote it
    │   ├── Conflict          somebody else changed the memory in the meantime
    │   ├── LostLease         another worker has taken the job in the meantime
    │   └── EmbedderMismatch  its vectors come from another embedding model
    ├── ModelError            the chat or embedding model failed
    │   ├── ModelUnreachable  no answer at that address
    │   ├── ModelRefused      it answered with an error
    │   ├── ModelGarbled      its answer could not be used, also after repair
    │   ├── NoModel           an operation needs a model and none is set
    │   ├── BudgetSpent       the user's budget of calls or tokens is used up
    │   └── PackError         model weights are missing, damaged or out of reach
    └── SourceFailed          a source of the user's own raised, or took too long

Each message says what happened, the value concerned and what to do next.
"""

from __future__ import annotations

__all__ = [
    "BudgetSpent",
    "ConfigError",
    "Conflict",
    "EmbedderMismatch",
    "ForeignStore",
    "InputError",
    "LostLease",
    "ModelError",
    "ModelGarbled",
    "ModelRefused",
    "ModelUnreachable",
    "NewerStore",
    "NoModel",
    "NotFound",
    "NyimaError",
    "PackError",
    "SourceFailed",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "StoreReadOnly",
]


class NyimaError(Exception):
    """The root of the tree; ``exit_code`` is what the command line returns."""

    exit_code = 1


class InputError(NyimaError):
    """What was given cannot be used."""

    exit_code = 2


class ConfigError(InputError):
    """A setting, a persona file or a recipe is wrong."""


class NotFound(InputError):
    """No record, turn, session or file has that name."""

    exit_code = 3


class StoreError(NyimaError):
    """The memory file cannot be read or written."""

    exit_code = 5


class StoreLocked(StoreError):
    """Another process holds the file for too long."""


class StoreReadOnly(StoreError):
    """The file or its folder cannot be written."""


class StoreFull(StoreError):
    """The disk is full."""


class ForeignStore(StoreError):
    """The file is not a memory of Nyima, or it is damaged."""


class NewerStore(StoreError):
    """A newer Nyima wrote the file."""


class Conflict(StoreError):
    """The memory changed since it was read; read it again and retry."""


class LostLease(StoreError):
    """The job's lease ran out and another worker has it, or has done it."""


class EmbedderMismatch(StoreError):
    """The file's vectors come from another embedding model."""


class ModelError(NyimaError):
    """The chat or embedding model failed."""

    exit_code = 4


class ModelUnreachable(ModelError):
    """No answer at that address."""


class ModelRefused(ModelError):
    """The model's server answered with an error."""


class ModelGarbled(ModelError):
    """The model's answer could not be used, also after repair and one retry."""


class NoModel(ModelError):
    """An operation needs a chat model and none is set."""

    def __init__(
        self,
        message: str = "there is no chat model: set NYIMA_MODEL, or run `nyima models pull qwen2.5-coder-1.5b`",
    ) -> None:
        super().__init__(message)


class BudgetSpent(ModelError):
    """The user's budget of calls or tokens is used up."""


class SourceFailed(NyimaError):
    """A source of the user's own raised, took too long, or gave what is no text."""


class PackError(ModelError):
    """Model weights are missing, damaged or out of reach."""

    exit_code = 6
