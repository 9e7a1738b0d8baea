"""A session for the OpenAI Agents SDK: ``Runner.run(agent, text, session=NyimaSession(opened, "s1"))``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nyima.domain.conversation import Role, Turn
from nyima.errors import NotFound
from nyima.memory import BlockingMemory, Memory, Said

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings

__all__ = ["NyimaSession"]

_ITEM = "openai-agents-item"


class NyimaSession:
    """One session of a memory. Messages become turns that are remembered and recalled
    everywhere; calls of tools and their results are kept as they are."""

    session_settings: SessionSettings | None = None

    def __init__(self, memory: BlockingMemory, session_id: str) -> None:
        """``memory`` is ``Memory.open(…).sync``."""
        self._sync, self.session_id = memory, session_id

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items, oldest first; with a limit the newest so many."""
        found = [_item(t) for t in await self._sync.wrap(self._memory.turns(self.session_id))]
        return found if limit is None else found[max(0, len(found) - limit) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Keep items."""
        said = [_said(dict(item)) for item in items]
        if said:
            await self._sync.wrap(self._memory.remember(said, session=self.session_id))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item away, for good."""
        return await self._sync.wrap(self._pop())

    async def clear_session(self) -> None:
        """Erase the session for good, with what was made of it."""
        await self._sync.wrap(self._clear())

    @property
    def _memory(self) -> Memory:
        return self._sync.inner

    async def _pop(self) -> TResponseInputItem | None:
        turns = await self._memory.turns(self.session_id)
        if not turns:
            return None
        await self._memory.forget(f"e-{turns[-1].id}")
        return _item(turns[-1])

    async def _clear(self) -> None:
        try:
            await self._memory.forget(session=self.session_id)
        except NotFound:
            return  # nothing was said in it yet


def _said(item: dict[str, Any]) -> Said:
    """A message as a turn in its own words; everything else as JSON of a tool."""
    content = item.get("content")
    if isinstance(content, list):
        texts = [p.get("text") for p in content if isinstance(p, dict)]
        plain = len(content) == 1 and isinstance(texts[0], str)
        content = texts[0] if plain else None
    if isinstance(content, str) and content.strip() and item.get("role") in {"user", "assistant"}:
        return Said(content, Role(item["role"]))
    return Said(json.dumps(item, ensure_ascii=False), Role.TOOL, speaker=_ITEM)


def _item(turn: Turn) -> TResponseInputItem:
    found: Any = {"role": turn.role.value, "content": turn.text}
    if turn.speaker == _ITEM:
        found = json.loads(turn.text)
    return found  # type: ignore[no-any-return]
