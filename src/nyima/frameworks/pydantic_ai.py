"""A pydantic-ai capability: ``Agent(model, capabilities=[NyimaMemory(opened)])``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.run import AgentRunResult
from pydantic_ai.toolsets import AgentToolset, FunctionToolset

from nyima.memory import BlockingMemory, Memory
from nyima.program import ProgramReply, ProgramRequest

__all__ = ["NyimaMemory"]


@dataclass
class NyimaMemory(AbstractCapability[Any]):
    """Gives a run what the memory has on its prompt, keeps prompt and reply, and lends the
    tools ``search_memory`` and ``remember``. ``memory`` is ``Memory.open(…).sync``."""

    memory: BlockingMemory
    session: str = "pydantic-ai"
    tools: bool = True

    def get_instructions(self) -> Any:
        """What is known, as data, for each run."""

        async def known(ctx: RunContext[Any]) -> str:
            text = _words(ctx.prompt)
            if not text.strip():
                return ""
            asked = ProgramRequest(text, self.session, writes=False, notes=False)
            return await self.memory.wrap(self._system(asked))

        return known

    def get_toolset(self) -> AgentToolset[Any] | None:
        """The tools."""
        if not self.tools:
            return None
        tools: FunctionToolset[Any] = FunctionToolset()

        async def search_memory(query: str) -> list[str]:
            """Search what the user said in earlier conversations."""
            found = await self.memory.wrap(self._memory.recall(query, log=False))
            return [f"{e.at:%Y-%m-%d} {e.text}" for e in found.kept]

        async def remember(text: str) -> str:
            """Keep something lasting that the user said about themselves, in their words."""
            done = await self.memory.wrap(self._memory.remember(text, session=self.session))
            return f"kept as {done.turns[0].id}"

        tools.add_function(search_memory)
        tools.add_function(remember)
        return tools

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Keep the prompt and the reply."""
        if (text := _words(ctx.prompt)).strip():
            await self.memory.wrap(self._keep(text, str(result.output), ctx.run_id or ""))
        return result

    @property
    def _memory(self) -> Memory:
        return self.memory.inner

    async def _system(self, asked: ProgramRequest) -> str:
        return (await ProgramReply.begin(self._memory, asked)).system

    async def _keep(self, prompt: str, reply: str, key: str) -> None:
        exchange = await ProgramReply.begin(
            self._memory, ProgramRequest(prompt, self.session, key=key, reads=False, notes=False)
        )
        await exchange.close(reply)


def _words(prompt: object) -> str:
    """The words of a prompt, which may hold pictures and files as well."""
    if isinstance(prompt, str):
        return prompt
    parts: Sequence[object] = prompt if isinstance(prompt, Sequence) else ()
    return "\n".join(part for part in parts if isinstance(part, str))
