"""Chat models behind the OpenAI wire protocol: any provider, vLLM, Ollama, llama.cpp."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nyima.domain.evidence import Usage
from nyima.domain.ports import Completion, Message
from nyima.errors import ModelRefused, ModelUnreachable
from nyima.language.words import tokens
from nyima.models.reached import Reached

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["Endpoint", "OpenAIChat", "translated"]

_OPENAI = "https://api.openai.com/v1"
_OPTIONAL = ("max_tokens", "temperature", "stream_options")


@dataclass(slots=True)
class Endpoint:
    """An address with its key; the client is made at first use.

    Requests that fail to connect, time out, or get 408, 409, 429 or 5xx are tried again
    ``retries`` times, with exponential backoff, jitter and ``Retry-After`` honoured.
    """

    url: str | None = None
    key: str | None = None
    seconds: float = 120.0
    retries: int = 3
    _client: AsyncOpenAI | None = None

    def client(self) -> AsyncOpenAI:
        """The client of the ``openai`` package."""
        if self._client is None:
            from openai import AsyncOpenAI

            self._client = AsyncOpenAI(
                base_url=self.url, api_key=self.key or "none", timeout=self.seconds, max_retries=self.retries
            )
        return self._client

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None


@contextmanager
def translated(endpoint: Endpoint, model: str) -> Iterator[None]:
    """The package's errors as ours; no key ever enters a message."""
    import openai

    where = endpoint.url or "the provider's default address"
    try:
        yield
    except openai.APITimeoutError as error:
        raise ModelUnreachable(
            f"{model!r} at {where} did not answer within {endpoint.seconds:.0f} s: check the server, or try again"
        ) from error
    except openai.APIConnectionError as error:
        raise ModelUnreachable(f"{where} cannot be reached: start the server, or change OPENAI_BASE_URL") from error
    except openai.AuthenticationError as error:
        raise ModelRefused(f"{where} does not accept the key (HTTP 401): check OPENAI_API_KEY") from error
    except openai.RateLimitError as error:
        raise ModelRefused(f"{where} is out of quota or too busy (HTTP 429): wait, or use another model") from error
    except openai.NotFoundError as error:
        raise ModelRefused(
            f"{where} has no model {model!r} (HTTP 404): set NYIMA_MODEL to one that it lists"
        ) from error
    except openai.APIStatusError as error:
        detail = str(error.message)[:200]
        raise ModelRefused(
            f"{where} answered HTTP {error.status_code}: {detail}: check the model's settings"
        ) from error
    except (ValueError, AttributeError, TypeError, LookupError) as error:
        raise ModelRefused(
            f"{where} answered in a form that is none of OpenAI's ({error}): check its address"
        ) from error
    except openai.APIError as error:
        raise ModelRefused(f"{where} broke off its answer: {str(error.message)[:200]}: try again") from error


class OpenAIChat:
    """A chat model at an OpenAI-compatible address.

    A server that refuses a JSON schema is asked without one from then on. ``slots`` maps
    a lane to a slot of a llama.cpp server, so that each prompt family keeps its prefix
    cache; with ``grammars`` a GBNF grammar is sent where one is given. ``adapters`` maps a lane to the
    number of the LoRA adapter that a llama.cpp server applies to its requests.
    """

    def __init__(
        self, model: str, endpoint: Endpoint, *, window: int = 32_000, grammars: bool = False,
        slots: Mapping[str, int] | None = None, adapters: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.name = model
        self.window = window
        self.grammars = grammars
        self._endpoint = endpoint
        self.trained = frozenset(adapters or ())
        self._slots = slots
        self._adapters = adapters or {}
        self._schemas = True
        self._refused: set[str] = set()

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
        extra: dict[str, Any] = {}
        if self._slots is not None:
            extra["id_slot"] = self._slots.get(lane, max(self._slots.values()))
            extra["cache_prompt"] = True
        if lane in self._adapters:
            extra["lora"] = [{"id": self._adapters[lane], "scale": 1.0}]
        if grammar is not None and self.grammars:
            extra["grammar"] = grammar
            schema = None
        request: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "max_tokens": max_tokens,
            "temperature": temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            "extra_body": extra,
        }
        parts: list[str] = []
        usage, finish = Usage(calls=1), "cut"
        with translated(self._endpoint, self.name):
            answer, retries = await self._open(request, schema)
            async with answer:
                async for chunk in answer:
                    if chunk.usage is not None:
                        usage = _usage(chunk.usage)
                    if chunk.choices:
                        finish = chunk.choices[0].finish_reason or finish
                        content = chunk.choices[0].delta.content
                        if content:
                            if not isinstance(content, str):
                                raise TypeError(f"content {str(content)[:40]!r} is no text")
                            parts.append(content)
                            yield parts[-1]
        text = "".join(parts)
        if not usage.prompt:
            usage = Usage(1, sum(tokens(m.content) for m in messages), 0, tokens(text))
        yield Completion(text, finish, usage + Usage(calls=retries))

    async def _open(self, request: dict[str, Any], schema: Mapping[str, Any] | None) -> tuple[Any, int]:
        import openai

        raw: Any = None
        create: Any = self._endpoint.client().chat.completions.with_raw_response.create
        if schema is not None and self._schemas:
            form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema), "strict": True}}
            try:
                raw = await create(**self._adapted(request), response_format=form)
            except (openai.BadRequestError, openai.UnprocessableEntityError):
                self._schemas = False
            else:
                return raw.parse(), raw.retries_taken
        for _ in range(len(_OPTIONAL) + 1):
            try:
                raw = await create(**self._adapted(request))
            except openai.BadRequestError as error:
                refused = next((n for n in _OPTIONAL if n in str(error.message) and n not in self._refused), None)
                if refused is None:
                    raise
                self._refused.add(refused)
            else:
                break
        return raw.parse(), raw.retries_taken

    def _adapted(self, request: dict[str, Any]) -> dict[str, Any]:
        """The request without what this server has refused; newer models of OpenAI want
        ``max_completion_tokens``."""
        kept = {k: v for k, v in request.items() if k not in self._refused}
        if "max_tokens" in self._refused:
            kept["max_completion_tokens"] = request["max_tokens"]
        return kept

    @asynccontextmanager
    async def reached(self, lane: str) -> AsyncIterator[Reached]:
        """The address, for requests that are sent on as they are."""
        extra: dict[str, Any] = {}
        if self._slots is not None:
            extra = {"id_slot": self._slots.get(lane, max(self._slots.values())), "cache_prompt": True}
        yield Reached(self._endpoint.url or _OPENAI, self._endpoint.key or "", extra)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()


def _usage(usage: Any) -> Usage:
    details = getattr(usage, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", 0) or 0
    return Usage(1, usage.prompt_tokens or 0, cached, usage.completion_tokens or 0)
