"""A local chat model: llama.cpp in a child process, spoken to over loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nyima.domain.ports import READS_CLAIMS, Completion, Message
from nyima.errors import PackError
from nyima.models.openai import Endpoint, OpenAIChat
from nyima.models.reached import Reached

__all__ = ["LocalChat"]

_LANES: Mapping[str, int] = {"chat": 0, "note": 1, "gate": 1, "": 2, READS_CLAIMS: 3}
_LOAD_SECONDS = 180.0


class LocalChat:
    """A GGUF file served by a child of this process; it starts at the first call and
    ends with it. Each family of prompts has a slot of its own in the prefix cache. ``adapter`` is a LoRA
    adapter that was trained to read claims; it is applied to the requests of that lane alone."""

    grammars = True

    def __init__(
        self, file: Path, name: str, *, window: int = 4_096, threads: int = 2, adapter: Path | None = None
    ) -> None:
        self.name = name
        self.trained = frozenset({READS_CLAIMS} if adapter is not None else ())
        self._adapter = adapter
        self.window = window
        self._file = file
        self._threads = threads
        self._child: asyncio.subprocess.Process | None = None
        self._chat: OpenAIChat | None = None
        self._starting = asyncio.Lock()
        self._busy = [asyncio.Lock() for _ in range(max(_LANES.values()) + 1)]

    async def start(self) -> OpenAIChat:
        """Load the model, once. Raises PackError when it cannot be loaded."""
        async with self._starting:
            if self._chat is not None and self._child is not None and self._child.returncode is None:
                return self._chat
            arguments = [str(self._file), str(self.window), str(max(_LANES.values()) + 1), str(self._threads)]
            arguments += [self.name, str(self._adapter or "")]
            # A passive wait policy: with both cores busy, spinning threads starve each other.
            launch = (
                "import os, sys; os.environ.setdefault('OMP_WAIT_POLICY', 'PASSIVE');"
                " from nyima.models.local_server import main; main()"
            )
            self._child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", launch, *arguments,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
            assert self._child.stdout is not None
            line = b""
            with contextlib.suppress(TimeoutError):
                line = await asyncio.wait_for(self._child.stdout.readline(), _LOAD_SECONDS)
            if not line:
                await self.close()
                raise PackError(
                    f"the local model {self.name!r} cannot be loaded: run `nyima models verify {self.name}`,"
                    " and `pip install 'nyima[local]'` if llama.cpp is missing"
                )
            url = json.loads(line)["url"] + "/v1"
            endpoint = Endpoint(url, "local", seconds=600.0, retries=2)
            self._chat = OpenAIChat(
                self.name,
                endpoint,
                window=self.window,
                grammars=True,
                slots=_LANES,
                adapters=dict.fromkeys(self.trained, 0),
            )
            return self._chat

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        schema: Mapping[str, Any] | None = None,
        grammar: str | None = None,
        lane: str = "",
    ) -> AsyncIterator[str | Completion]:
        """Pieces of text, then the Completion."""
        chat = await self.start()
        # Requests that wait for one slot inside llama.cpp's server get each other's answers.
        async with self._busy[_LANES.get(lane, max(_LANES.values()))]:
            async for piece in chat.stream(
                messages, max_tokens=max_tokens, temperature=temperature, schema=schema, grammar=grammar, lane=lane
            ):
                yield piece

    @contextlib.asynccontextmanager
    async def reached(self, lane: str) -> AsyncIterator[Reached]:
        """The child's address, while its slot is free for one request."""
        chat = await self.start()
        async with self._busy[_LANES.get(lane, max(_LANES.values()))], chat.reached(lane) as there:
            yield there

    async def close(self) -> None:
        """End the child."""
        if self._chat is not None:
            await self._chat.close()
            self._chat = None
        if self._child is not None and self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._child.kill()
            await self._child.wait()
        self._child = None
