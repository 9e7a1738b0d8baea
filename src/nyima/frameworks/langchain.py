"""A LangChain chat history: ``RunnableWithMessageHistory(chain, lambda id: NyimaHistory(opened, id))``."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from nyima.domain.conversation import Role
from nyima.errors import NotFound
from nyima.memory import BlockingMemory, Memory, Said

__all__ = ["NyimaHistory"]

_ROLES: tuple[tuple[type[BaseMessage], Role], ...] = ((HumanMessage, Role.USER), (AIMessage, Role.ASSISTANT))


class NyimaHistory(BaseChatMessageHistory):
    """One session of a memory as a history. What it keeps is remembered: with a chat model
    notes and facts are made of it, in every session it can be recalled. Calls of tools and
    their results are no part of it."""

    def __init__(self, memory: BlockingMemory, session: str) -> None:
        """``memory`` is ``Memory.open(…).sync``."""
        self._sync, self._session = memory, session

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, in order."""
        return self._sync.wait(self._read())

    async def aget_messages(self) -> list[BaseMessage]:
        """The messages, in order."""
        return await self._sync.wrap(self._read())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Keep messages."""
        self._sync.wait(self._add(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Keep messages."""
        await self._sync.wrap(self._add(messages))

    def clear(self) -> None:
        """Erase the session for good, with what was made of it."""
        self._sync.wait(self._clear())

    async def aclear(self) -> None:
        """Erase the session for good, with what was made of it."""
        await self._sync.wrap(self._clear())

    @property
    def _memory(self) -> Memory:
        return self._sync.inner

    async def _read(self) -> list[BaseMessage]:
        made: list[BaseMessage] = []
        for turn in await self._memory.turns(self._session):
            if turn.role is Role.USER:
                made.append(HumanMessage(turn.text, id=turn.id))
            elif turn.role is Role.TOOL:
                made.append(ToolMessage(turn.text, id=turn.id, tool_call_id=turn.speaker or turn.id))
            else:
                made.append(AIMessage(turn.text, id=turn.id))
        return made

    async def _add(self, messages: Sequence[BaseMessage]) -> None:
        roles = [
            next((role for kind, role in _ROLES if isinstance(m, kind)), None) for m in messages
        ]  # or their chunks
        said = [
            Said(m.text, role, id=m.id or "")
            for m, role in zip(messages, roles, strict=True)
            if role is not None and m.text.strip()
        ]
        if said:
            await self._memory.remember(said, session=self._session)

    async def _clear(self) -> None:
        try:
            await self._memory.forget(session=self._session)
        except NotFound:
            return  # nothing was said in it yet
