"""Requests that are sent on as they are to the server of the chat model."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from nyima.errors import ModelUnreachable
from nyima.models.reached import Reaches

__all__ = ["Sent", "Upstream"]

_FORWARDED = ("content-type", "accept", "openai-beta", "openai-organization", "openai-project")
_RETURNED = ("content-type", "retry-after", "x-request-id", "openai-processing-ms")


@dataclass(frozen=True, slots=True)
class Sent:
    """An answer that is coming in."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]

    async def read(self, most: int) -> bytes:
        """The whole body. Raises ModelUnreachable when it is larger than ``most`` bytes."""
        found = bytearray()
        async for piece in self.body:
            found += piece
            if len(found) > most:
                raise ModelUnreachable(f"the upstream sent more than {most:,} bytes: ask for less")
        return bytes(found)


class Upstream:
    """Where requests go on to. Only settings say where that is; of a request's headers
    only a few are sent on, and none that names a user or carries a key."""

    def __init__(self, chat: Reaches, *, seconds: float = 600.0) -> None:
        self.chat = chat
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(seconds, connect=10.0), follow_redirects=False, trust_env=True,
            limits=httpx2.Limits(max_connections=200, max_keepalive_connections=50),
        )  # fmt: skip

    @contextlib.asynccontextmanager
    async def send(
        self, method: str, path: str, content: bytes | Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncIterator[Sent]:
        """Send a request; ``path`` begins behind ``/v1``. A mapping goes as JSON, with a
        model and what the server needs. Raises ModelUnreachable when it cannot be
        reached or breaks off."""
        lane = "chat" if isinstance(content, Mapping) else ""
        async with self.chat.reached(lane) as there:
            if isinstance(content, bytes):
                body = content
            else:
                given = {k: v for k, v in content.items() if k != "model"}
                body = json.dumps({"model": content.get("model") or self.chat.name, **given, **there.extra}).encode()
            kept = {k: v for k, v in headers.items() if k in _FORWARDED}
            kept["authorization"] = f"Bearer {there.key or 'none'}"
            try:
                request = self._client.build_request(method, there.url.rstrip("/") + path, content=body, headers=kept)
                answer = await self._client.send(request, stream=True)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise ModelUnreachable(_said("cannot be reached", error)) from error
            try:
                named = {k: v for k, v in answer.headers.items() if k.lower() in _RETURNED}
                yield Sent(answer.status_code, named, _pieces(answer))
            finally:
                await answer.aclose()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


async def _pieces(answer: httpx2.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.aiter_bytes():
            yield piece
    except httpx2.HTTPError as error:
        raise ModelUnreachable(_said("broke off", error)) from error


def _said(what: str, error: Exception) -> str:
    return f"the upstream {what} ({type(error).__name__}): start it, check OPENAI_BASE_URL, or try again"
