"""A LlamaIndex memory block: ``Memory.from_defaults(memory_blocks=[NyimaBlock(memory=opened)])``."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemoryBlock
from pydantic import Field

from nyima.domain.conversation import Role
from nyima.domain.evidence import Budget
from nyima.memory import BlockingMemory, Said

__all__ = ["NyimaBlock"]

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL}


class NyimaBlock(BaseMemoryBlock[str]):
    """Gives what the memory has on the last message, as text; keeps what leaves the window."""

    name: str = "nyima"
    description: str | None = "What is known of the user from earlier conversations."
    priority: int = 1
    memory: BlockingMemory = Field(description="Memory.open(…).sync")
    records: int = Field(default=8, description="How many records at most.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        del block_kwargs
        query = next((m.content for m in reversed(messages or []) if m.role.value == "user" and m.content), "")
        return await self.memory.wrap(self._recalled(query or ""))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await self.memory.wrap(self._kept(messages))

    async def _recalled(self, query: str) -> str:
        memory = self.memory.inner
        facts = [f"{k.replace('_', ' ')}: {v}" for k, v in (await memory.profile()).as_dict().items()]
        found = (await memory.recall(query, Budget(self.records, 1_000), log=False)).kept if query.strip() else ()
        return "\n".join([*facts, *(f"{e.at:%Y-%m-%d}: {e.text}" for e in found)])

    async def _kept(self, messages: list[ChatMessage]) -> None:
        memory = self.memory.inner
        by_session: dict[str, list[Said]] = {}
        for message in messages:
            role = _ROLES.get(message.role.value)
            if role is not None and message.content and message.content.strip():
                session = str(message.additional_kwargs.get("session_id") or "llamaindex")
                by_session.setdefault(session, []).append(Said(message.content, role))
        for session, said in by_session.items():
            await memory.remember(said, session=session)
