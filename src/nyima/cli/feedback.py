"""What the user thinks of a reply, and what is learned from it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from nyima.domain.ports import Event

if TYPE_CHECKING:
    from nyima.assistant import Assistant
    from nyima.domain.evidence import Answer

__all__ = ["feedback"]


async def feedback(assistant: Assistant, answer: Answer | None, kind: str, right: str) -> str:
    """Keep a thumb or a corrected answer for the last reply (``answer``). The walk learns from it when
    the setting ``learn`` is on; ``nyima train policy --undo`` takes that back."""
    memory = assistant.memory
    if answer is None or (kind == "/correct" and not right):
        return "there is no reply yet" if answer is None else "say what it should have been: /correct TEXT"
    if assistant.private:
        return "nothing of a private chat is kept"
    body = {"kind": kind.strip("/"), "reply": answer.turn, "right": right}
    refs = (answer.turn, *(e.record.id for e in answer.recall.kept))
    at = memory.clock.now()
    await memory.store.log(memory.scope, Event(f"thumb-{uuid.uuid4().hex[:16]}", "feedback", at, refs, body))
    if not memory.parts.settings.learn:
        return "thank you, kept (nothing is learned from it: the setting `learn` is off)"
    from nyima.mechanisms.graph.online import learn_from_answer, learn_from_thumb

    if kind == "/correct":
        made = await learn_from_answer(memory, answer.recall, right)
    else:
        made = await learn_from_thumb(memory, answer.recall, good=kind == "/good")
    return "thank you, kept" if made is None else f"thank you, learned (policy version {made.number})"
