"""The wire: streaming, schemas, errors, retries; against a server on loopback."""

from __future__ import annotations

import struct

import pytest

from nyima.domain.ports import Completion, Message
from nyima.errors import ModelError, ModelRefused, ModelUnreachable
from nyima.models.embed import OpenAIEmbedder
from nyima.models.openai import Endpoint, OpenAIChat
from support import openai_server

ASK = [Message("system", "be brief"), Message("user", "hello")]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


async def ask(model: OpenAIChat, **options: object) -> tuple[list[str], Completion]:
    pieces: list[str] = []
    done = Completion("")
    async for piece in model.stream(ASK, max_tokens=20, **options):  # type: ignore[arg-type]
        if isinstance(piece, Completion):
            done = piece
        else:
            pieces.append(piece)
    await model.close()
    return pieces, done


async def test_pieces_come_then_the_completion() -> None:
    with openai_server(plan=["good morning Karen"]) as server:
        pieces, done = await ask(OpenAIChat("fake-model", Endpoint(server.url, "k")))
        assert "".join(pieces) == done.text == "good morning Karen"
        assert len(pieces) > 1
        assert (done.usage.calls, done.usage.prompt, done.usage.cached, done.usage.completion) == (1, 11, 4, 3)
        assert server.requests[0]["messages"][1] == {"role": "user", "content": "hello"}


async def test_a_server_without_schemas_is_asked_without_from_then_on() -> None:
    with openai_server(schemas=False) as server:
        model = OpenAIChat("fake-model", Endpoint(server.url, "k"))
        for _ in range(2):
            async for _piece in model.stream(ASK, max_tokens=5, schema=SCHEMA):
                pass
        await model.close()
        assert ["response_format" in r for r in server.requests] == [True, False, False]


async def test_a_schema_is_sent_where_it_is_taken() -> None:
    with openai_server() as server:
        await ask(OpenAIChat("fake-model", Endpoint(server.url, "k")), schema=SCHEMA)
        assert server.requests[0]["response_format"]["json_schema"]["schema"] == SCHEMA


async def test_a_grammar_and_a_slot_go_to_llama_cpp() -> None:
    with openai_server() as server:
        model = OpenAIChat("m", Endpoint(server.url, "k"), grammars=True, slots={"chat": 0, "": 2})
        await ask(model, grammar="root ::= x", schema=SCHEMA, lane="chat")
        assert server.requests[0]["grammar"] == "root ::= x"
        assert server.requests[0]["id_slot"] == 0
        assert "response_format" not in server.requests[0]


async def test_an_adapter_is_applied_to_the_requests_of_its_lane_alone() -> None:
    with openai_server() as server:
        model = OpenAIChat("m", Endpoint(server.url, "k"), slots={"": 0}, adapters={"claims": 0})
        assert model.trained == {"claims"}
        await ask(model, lane="claims")
        await ask(OpenAIChat("m", Endpoint(server.url, "k"), adapters={"claims": 0}), lane="chat")
        assert server.requests[0]["lora"] == [{"id": 0, "scale": 1.0}]
        assert "lora" not in server.requests[1]


async def test_a_busy_server_is_asked_again_and_every_try_is_counted() -> None:
    with openai_server(plan=[503, "fine"], headers={"Retry-After": "0.01"}) as server:
        pieces, done = await ask(OpenAIChat("m", Endpoint(server.url, "k", retries=2)))
        assert "".join(pieces) == "fine"
        assert done.usage.calls == 2


@pytest.mark.parametrize(
    ("step", "kind", "words"),
    [
        (401, ModelRefused, "OPENAI_API_KEY"),
        (404, ModelRefused, "NYIMA_MODEL"),
        (429, ModelRefused, "quota"),
        (500, ModelRefused, "HTTP 500"),
        ("hang", ModelUnreachable, "did not answer"),
    ],
)
async def test_errors_say_what_to_do(step: object, kind: type[ModelError], words: str) -> None:
    with openai_server(plan=[step]) as server, pytest.raises(kind, match=words) as caught:
        await ask(OpenAIChat("m", Endpoint(server.url, "sk-secret", seconds=0.5, retries=0)))
    assert "sk-secret" not in str(caught.value)


async def test_nobody_there_is_unreachable() -> None:
    with pytest.raises(ModelUnreachable, match="OPENAI_BASE_URL"):
        await ask(OpenAIChat("m", Endpoint("http://127.0.0.1:9/v1", "k", retries=0)))


async def test_a_stream_that_breaks_off_is_marked() -> None:
    with openai_server(plan=["cut"]) as server:
        pieces, done = await ask(OpenAIChat("m", Endpoint(server.url, "k")))
        assert "".join(pieces) == "partial"
        assert done.finish == "cut"


async def test_embeddings_are_unit_vectors_in_order() -> None:
    with openai_server() as server:
        endpoint = Endpoint(server.url, "k")
        vectors = await OpenAIEmbedder("e", endpoint).embed(["a", "bbb", ""])
        floats = [struct.unpack("<3f", v) for v in vectors]
        assert all(sum(x * x for x in v) == pytest.approx(1.0) for v in floats)
        assert floats[1][0] == pytest.approx(3 / 10**0.5)
        assert await OpenAIEmbedder("e", endpoint).embed([]) == []
        await endpoint.close()


async def test_a_parameter_that_is_refused_is_left_out_from_then_on() -> None:
    with openai_server(refuses=("max_tokens", "temperature")) as server:
        model = OpenAIChat("m", Endpoint(server.url, "k"))
        for _ in range(2):
            async for _piece in model.stream(ASK, max_tokens=5):
                pass
        await model.close()
        assert len(server.requests) == 4
        assert server.requests[-1]["max_completion_tokens"] == 5
        assert "temperature" not in server.requests[-1]
