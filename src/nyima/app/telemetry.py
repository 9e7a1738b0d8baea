"""Spans of what a memory does, by OpenTelemetry's conventions for GenAI memory (in
development; the names are those of semantic-conventions-genai at 002c8a6).

Nothing is sent anywhere: spans are made only in a program that uses OpenTelemetry already,
and go where that program sends them. Queries and records are left out unless the setting
``capture_content`` asks for them.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nyima.app.services import Services
from nyima.errors import NyimaError

__all__ = ["Spanned", "span"]

_KINDS = {"recall": "search_memory", "remember": "create_memory", "revise": "update_memory", "forget": "delete_memory"}


@dataclass(slots=True)
class Spanned:
    """A span that is open, or none."""

    inner: Any = None
    content: bool = False

    def found(self, count: int, query: str = "") -> None:
        """Say how many records there were; the query only when content is captured."""
        if self.inner is not None:
            self.inner.set_attribute("gen_ai.memory.record.count", count)
            if self.content and query:
                self.inner.set_attribute("gen_ai.memory.query.text", query)


@contextlib.contextmanager
def span(parts: Services, verb: str) -> Iterator[Spanned]:
    """A span of recall, remember, revise or forget. It names no user."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        yield Spanned()
        return
    operation = _KINDS[verb]
    attributes = {"gen_ai.operation.name": operation, "gen_ai.memory.store.id": "nyima"}
    tracer = trace.get_tracer("nyima")
    with tracer.start_as_current_span(
        operation, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as inner:
        try:
            yield Spanned(inner, parts.settings.capture_content)
        except NyimaError as error:  # by its kind only: its text quotes what was asked
            inner.set_attribute("error.type", type(error).__name__)
            raise
