"""Nyima: a personal memory that you own, for any LLM assistant.

    from nyima import Assistant

    nyima = Assistant.open("me.db", user="karen").sync
    print(nyima.reply("My cat is called Nyima."))

Names are loaded when they are first used, so that importing costs little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nyima.app.environment import Settings, load_settings
    from nyima.assistant import AnswerStream, Assistant, BlockingAssistant
    from nyima.change.cascade import Receipt
    from nyima.domain.changes import Add, Delta, Erase, Retire, Revise, merge
    from nyima.domain.conversation import Origin, Role, Scope, Session, Turn
    from nyima.domain.evidence import (
        Answer,
        Budget,
        Evidence,
        Notes,
        Query,
        Recall,
        Review,
        Selection,
        Step,
        Usage,
        Visit,
    )
    from nyima.domain.mechanism import Source
    from nyima.domain.recipe import Recipe
    from nyima.domain.records import (
        Claim,
        Entity,
        Episode,
        Interval,
        MemoryRecord,
        Note,
        Passage,
        Profile,
        Provenance,
        Quote,
        Slot,
        Status,
        Summary,
    )
    from nyima.errors import NyimaError
    from nyima.mechanisms.by_hand import Statement
    from nyima.memory import BlockingMemory, Explanation, Memory, Remembered, Said
    from nyima.sync import Opening

__version__ = "0.1.0"

_HOME = {
    "nyima.app.environment": ("Settings", "load_settings"),
    "nyima.assistant": ("AnswerStream", "Assistant", "BlockingAssistant"),
    "nyima.sync": ("Opening",),
    "nyima.domain.changes": ("Add", "Delta", "Erase", "Retire", "Revise", "merge"),
    "nyima.domain.conversation": ("Origin", "Role", "Scope", "Session", "Turn"),
    "nyima.domain.evidence": (
        "Answer", "Budget", "Evidence", "Notes", "Query", "Recall", "Review", "Selection", "Step", "Usage", "Visit",
    ),
    "nyima.domain.records": (
        "Claim", "Entity", "Episode", "Interval", "MemoryRecord", "Note", "Passage", "Profile",
        "Provenance", "Quote", "Slot", "Status", "Summary",
    ),
    "nyima.change.cascade": ("Receipt",),
    "nyima.domain.recipe": ("Recipe",),
    "nyima.domain.mechanism": ("Source",),
    "nyima.errors": ("NyimaError",),
    "nyima.mechanisms.by_hand": ("Statement",),
    "nyima.memory": ("BlockingMemory", "Explanation", "Memory", "Remembered", "Said"),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Add",
    "Answer",
    "AnswerStream",
    "Assistant",
    "BlockingAssistant",
    "BlockingMemory",
    "Budget",
    "Claim",
    "Delta",
    "Entity",
    "Episode",
    "Erase",
    "Evidence",
    "Explanation",
    "Interval",
    "Memory",
    "MemoryRecord",
    "Note",
    "Notes",
    "NyimaError",
    "Opening",
    "Origin",
    "Passage",
    "Profile",
    "Provenance",
    "Query",
    "Quote",
    "Recall",
    "Receipt",
    "Recipe",
    "Remembered",
    "Retire",
    "Review",
    "Revise",
    "Role",
    "Said",
    "Scope",
    "Selection",
    "Session",
    "Settings",
    "Slot",
    "Source",
    "Statement",
    "Status",
    "Step",
    "Summary",
    "Turn",
    "Usage",
    "Visit",
    "load_settings",
    "merge",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'nyima' has no attribute {name!r}")
