"""What goes in and out below ``/api``: pydantic, since bytes come in here."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

__all__ = [
    "ChatIn", "DocumentIn", "ForgetIn", "ForgetOut", "Page", "Problems", "RecallIn", "RecordOut", "ReviseIn",
    "TurnBody", "TurnOut", "TurnsIn", "TurnsOut", "ValueBody",
]  # fmt: skip

Text = Annotated[str, StringConstraints(min_length=1, max_length=1_000_000)]
Short = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TurnBody(_In):
    """One turn."""

    text: Text
    role: Literal["user", "assistant", "tool"] = "user"
    at: AwareDatetime | None = None
    speaker: Annotated[str, StringConstraints(max_length=200)] = ""
    id: Annotated[str, StringConstraints(max_length=200)] = ""


class TurnsIn(_In):
    """Turns to remember. Equal ids in one session are stored once."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"session": "s-1", "turns": [{"text": "My cat is called Nyima."}]}]},
    )
    turns: Annotated[list[TurnBody], Field(min_length=1, max_length=1_000)]
    session: Id | None = None
    title: Annotated[str, StringConstraints(max_length=200)] = ""


class TurnOut(BaseModel):
    """A stored turn."""

    id: str
    session: str
    role: str
    text: str
    at: datetime
    origin: str
    position: int


class TurnsOut(BaseModel):
    """What was stored."""

    session: str
    turns: list[TurnOut]
    records: list[str]


class RecallIn(_In):
    """A question to the memory."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"query": "What is my cat called?", "k": 5}]}
    )
    query: Short
    k: Annotated[int, Field(ge=1, le=200)] = 10
    tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 100_000
    as_of: AwareDatetime | None = None
    kinds: Annotated[list[str], Field(max_length=20)] = Field(default_factory=list)


class RecordOut(BaseModel):
    """A record."""

    model_config = ConfigDict(extra="allow")
    id: str
    kind: str
    text: str


class ReviseIn(_In):
    """Another text or value, by the user's own word."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"text": "Lisbon"}]})
    text: Text


class ValueBody(_In):
    """A value of the profile."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"value": "Porto"}]})
    value: Annotated[str, StringConstraints(min_length=1, max_length=500)]


class ForgetIn(_In):
    """What to erase: records, what a query finds, a session, or everything. Without
    ``confirm`` a query only says what it would erase; ``preview`` says it of anything. With
    ``only`` the turns that records came from stay."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"query": "my old phone", "confirm": True}]}
    )
    ids: Annotated[list[Id], Field(max_length=1_000)] = Field(default_factory=list)
    query: Annotated[str, StringConstraints(max_length=2_000)] = ""
    session: Annotated[str, StringConstraints(max_length=200)] = ""
    everything: bool = False
    confirm: bool = False
    only: bool = False
    preview: bool = False


class ForgetOut(BaseModel):
    """The receipt; or the records that were found, and all that would go with them."""

    receipt: dict[str, Any] | None = None
    going: dict[str, Any] | None = None
    candidates: list[RecordOut] = Field(default_factory=list)


class DocumentIn(_In):
    """A text document; its name's ending says the format."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "notes.md", "text": "# Notes"}]})
    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    text: Text


class ChatIn(_In):
    """A message to the companion."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"text": "What is my cat called?"}]})
    text: Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
    session: Id | None = None
    private: bool = False
    before: Annotated[list[TurnBody], Field(max_length=200)] = Field(default_factory=list)


class Page(BaseModel):
    """Some rows, and the cursor of the next ones."""

    rows: list[dict[str, Any]]
    next: str | None = None


class Problems(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str | None = None
    param: str | None = None
