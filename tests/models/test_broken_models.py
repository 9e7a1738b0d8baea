"""Model servers that answer wrongly: each is an error of ours that says what to do."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from nyima.domain.evidence import Usage
from nyima.domain.ports import Completion, Message
from nyima.errors import ModelError, ModelRefused, ModelUnreachable
from nyima.models.embed import OpenAIEmbedder
from nyima.models.openai import Endpoint, OpenAIChat
from nyima.models.speech import RATE, OpenAIEars, OpenAIMouth, Sound, as_wav
from nyima.testing.upstream import StubUpstream, serving
from wires import answered, chunk, events, wire

DONE = b"[DONE]"
HTML = answered(b"<html>It works!</html>", "text/html")


async def ask(url: str, *, retries: int = 0, **options: Any) -> tuple[list[str], Completion]:
    """The pieces and the completion of one call."""
    model = OpenAIChat("stub", Endpoint(url, "sk-secret", retries=retries))
    try:
        found = [p async for p in model.stream([Message("user", "hello there")], max_tokens=9, **options)]
    finally:
        await model.close()
    assert isinstance(found[-1], Completion)
    return [p for p in found if isinstance(p, str)], found[-1]


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (events(chunk("Hel"), {"error": {"message": "overloaded", "type": "x"}}), ModelRefused, "broke off.*overloaded"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", ModelUnreachable, "cannot be reached"),
        (b"", ModelUnreachable, "cannot be reached"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\ndata: {", ModelUnreachable, "cannot be reached"),
        (answered({"error": {"message": "no"}}, status="403 Forbidden"), ModelRefused, "HTTP 403: .*check the model's settings"),
        (answered({}, status="400 Bad Request"), ModelRefused, "HTTP 400"),
        (answered({"error": {"message": "a" * 900}}, status="418 Teapot"), ModelRefused, "418 - a{150,200}: check"),
        (events(chunk("Hel"), b"{not json"), ModelRefused, "form"),
        (events(b"7"), ModelRefused, "form"),
        (events(b"null"), ModelRefused, "form"),
        (events(chunk(["Hel", "lo"]), DONE), ModelRefused, "form"),
        (events({"choices": [{"index": 0, "delta": None}]}), ModelRefused, "form"),
    ],
)  # fmt: skip
async def test_a_chat_server_that_answers_wrongly(answer: bytes, kind: type[ModelError], words: str) -> None:
    with wire(answer) as server, pytest.raises(kind, match=words) as caught:
        await ask(server.url)
    assert "sk-secret" not in str(caught.value)
    assert server.url in str(caught.value)


@pytest.mark.parametrize("fault", ["die:0", "die:2", "die:4"])
async def test_a_server_that_dies_while_it_speaks_is_unreachable(fault: str) -> None:
    stub = StubUpstream("Hello there, how are you?", fault=fault)
    with serving(stub) as url, pytest.raises(ModelUnreachable, match="start the server"):
        await ask(f"{url}/v1")


@pytest.mark.parametrize(
    "answer", [HTML, events(), events({"strange": 1}, DONE), events(chunk(""), DONE), events(DONE)]
)
async def test_what_says_nothing_is_marked_as_cut(answer: bytes) -> None:
    with wire(answer) as server:
        assert await ask(server.url) == ([], Completion("", "cut", Usage(1, 3, 0, 0)))


async def test_a_stream_without_its_end_is_cut_whatever_it_said() -> None:
    with wire(events(chunk("Hello"), chunk(" there"))) as server:
        pieces, done = await ask(server.url)
    assert (pieces, done.text, done.finish) == (["Hello", " there"], "Hello there", "cut")


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter", "tool_calls"])
async def test_why_a_reply_ended_is_told(finish: str) -> None:
    with wire(events(chunk("Hello"), chunk(None, finish), DONE)) as server:
        assert (await ask(server.url))[1].finish == finish


async def test_a_server_that_tells_no_usage_is_counted_by_words() -> None:
    with wire(events(chunk("one two three"), chunk(None, "stop"), DONE)) as server:
        usage = (await ask(server.url))[1].usage
    assert usage.calls == 1
    assert usage.prompt > 0
    assert usage.completion >= 3
    assert usage.cached == 0


async def test_usage_without_details_is_taken_as_it_is() -> None:
    told = {**chunk(None), "choices": [], "usage": {"prompt_tokens": 21, "completion_tokens": 4, "total_tokens": 25}}
    with wire(events(chunk("a"), chunk(None, "stop"), told, DONE)) as server:
        assert (await ask(server.url))[1].usage == Usage(1, 21, 0, 4)


async def test_signs_of_life_and_pieces_without_text_are_no_reply() -> None:
    rows: tuple[object, ...] = (chunk(None), chunk(""), chunk("a"), {"choices": []}, chunk(None, "stop"), DONE)
    stream = events(*rows).split(b"\r\n\r\n", 1)[1].replace(b"data: ", b": alive\n\ndata: ", 1)
    with wire(answered(stream, "text/event-stream")) as server:
        pieces, _ = await ask(server.url)
    assert pieces == ["a"]


async def test_every_try_at_a_busy_server_is_counted() -> None:
    busy = answered({"error": {"message": "busy"}}, "application/json", "retry-after-ms: 1", status="429 Busy")
    with wire(busy, busy, events(chunk("a"), chunk(None, "stop"), DONE)) as server:
        _, done = await ask(server.url, retries=2)
    assert (done.usage.calls, len(server.bodies)) == (3, 3)


async def test_what_is_refused_for_no_known_reason_is_not_asked_for_ever() -> None:
    with wire(answered({"error": {"message": "top_k is unknown"}}, status="400 Bad Request")) as server:
        with pytest.raises(ModelRefused, match="top_k is unknown"):
            await ask(server.url)
        assert len(server.bodies) == 1
    with wire(answered({"error": {"message": "no max_tokens, no temperature"}}, status="400 Bad")) as server:
        with pytest.raises(ModelRefused):
            await ask(server.url)
        sent = [json.loads(b) for b in server.bodies]
    assert [("max_tokens" in b, "temperature" in b) for b in sent] == [(True, True), (False, True), (False, False)]
    assert [b.get("max_completion_tokens") for b in sent] == [None, 9, 9]


async def test_a_schema_that_is_refused_costs_one_try_alone() -> None:
    refused = answered({"error": {"message": "response_format"}}, status="422 No")
    with wire(refused, events(chunk("{}"), chunk(None, "stop"), DONE)) as server:
        pieces, _ = await ask(server.url, schema={"type": "object"})
        assert ["response_format" in json.loads(b) for b in server.bodies] == [True, False]
    assert pieces == ["{}"]


async def test_a_grammar_goes_only_to_servers_that_take_one() -> None:
    with wire(events(chunk("a"), DONE)) as server:
        await ask(server.url, grammar="root ::= x", schema={"type": "object"})
        body = json.loads(server.bodies[0])
    assert "grammar" not in body
    assert "response_format" in body


async def test_an_address_is_lent_with_its_slot() -> None:
    model = OpenAIChat("m", Endpoint("http://127.0.0.1:9/v1", "sk"), slots={"chat": 0, "": 2})
    async with model.reached("chat") as chat, model.reached("what else") as other:
        assert (chat.url, chat.key, chat.extra["id_slot"]) == ("http://127.0.0.1:9/v1", "sk", 0)
        assert other.extra == {"id_slot": 2, "cache_prompt": True}
        assert "sk" not in repr(chat)
    async with OpenAIChat("m", Endpoint()).reached("chat") as default:
        assert (default.url, default.key, default.extra) == ("https://api.openai.com/v1", "", {})


def embeddings(*rows: object) -> bytes:
    data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
    return answered({"object": "list", "data": data, "model": "e", "usage": {"prompt_tokens": 1, "total_tokens": 1}})


async def embed(answer: bytes, *texts: str) -> Sequence[bytes]:
    with wire(answer) as server:
        endpoint = Endpoint(server.url, "k", retries=0)
        try:
            return await OpenAIEmbedder("e", endpoint).embed(texts)
        finally:
            await endpoint.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (embeddings([1.0, 2.0]), r"'e' returned \(1, 2\) vectors for 2 texts: use another model"),
        (embeddings([1.0], [2.0], [3.0]), "for 2 texts"),
        (embeddings(1.0, 2.0), r"returned \(2,\) vectors"),
        (answered({"error": {"message": "no"}}, status="404 Not Found"), "has no model 'e'"),
        (embeddings([1.0], [1.0, 2.0]), "form|vectors"),
        (embeddings(["a"], ["b"]), "form|vectors"),
        (answered({}), "form|vectors"),
        (answered({"data": None}), "form|vectors"),
        (answered([]), "form|vectors"),
        (HTML, "form|vectors"),
        (answered({"data": [{"embedding": [1.0]}, {"embedding": [2.0]}]}), "form|vectors"),
        (embeddings([], []), "form|vectors"),
        (embeddings([float("nan")], [1.0]), "form|vectors"),
    ],
)
async def test_an_embedder_that_answers_wrongly(answer: bytes, words: str) -> None:
    with pytest.raises(ModelRefused, match=words):
        await embed(answer, "tea", "coffee")


async def test_a_vector_of_zeros_stays_one() -> None:
    assert await embed(embeddings([0.0, 0.0], [0.0, 3.0]), "", "a") == [
        struct.pack("<2f", 0, 0),
        struct.pack("<2f", 0, 1),
    ]


async def test_long_texts_are_cut_and_empty_ones_are_sent_as_a_space() -> None:
    with wire(embeddings([1.0], [1.0])) as server:
        endpoint = Endpoint(server.url, "k")
        await OpenAIEmbedder("e", endpoint).embed(["a" * 7_000, ""])
        await endpoint.close()
        assert json.loads(server.bodies[0])["input"] == ["a" * 6_000, " "]


Speech = Callable[[Endpoint], Any]


def EARS(endpoint: Endpoint) -> Any:
    return OpenAIEars("whisper", endpoint).hear(bytes(640), ["Marta", "Luna"])


def MOUTH(endpoint: Endpoint) -> Any:
    return OpenAIMouth("tts", endpoint, "nova").speak("Hello.")


async def speech(work: Speech, answer: bytes) -> tuple[Any, str, bytes]:
    with wire(answer) as server:
        endpoint = Endpoint(server.url, "k", retries=0)
        try:
            found = await work(endpoint)
        finally:
            await endpoint.close()
        return found, server.heads[0].split()[1], server.bodies[0]


async def test_ears_send_a_file_with_the_names_that_are_likely() -> None:
    heard, path, body = await speech(EARS, answered({"text": " My name is Marta. "}))
    assert (heard, path) == ("My name is Marta.", "/v1/audio/transcriptions")
    assert as_wav(Sound(bytes(640), RATE)) in body
    assert b"Marta, Luna" in body


async def test_a_mouth_asks_for_a_voice_and_gets_a_sound() -> None:
    sound = Sound(b"\1\2" * 40, 24_000)
    said, path, body = await speech(MOUTH, answered(as_wav(sound), "audio/wav"))
    assert (said, path) == (sound, "/v1/audio/speech")
    assert {"voice": "nova", "input": "Hello.", "response_format": "wav"}.items() <= json.loads(body).items()


@pytest.mark.parametrize(
    ("work", "answer"),
    [
        (MOUTH, HTML),
        (MOUTH, answered({"error": "no"}, status="401 No")),
        (EARS, answered({"error": "no"}, status="500 No")),
        (EARS, answered({})),
        (EARS, HTML),
    ],
)
async def test_a_speech_server_that_answers_wrongly(work: Speech, answer: bytes) -> None:
    with pytest.raises(ModelRefused):
        await speech(work, answer)
