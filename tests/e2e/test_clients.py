"""Programs of others against the server, unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interfaces.server.conftest import Desk, desk_at
from nyima.testing.upstream import StubUpstream

CAT = "Nice to meet Nyima!\n<nyima-notes>\nremember: yes\ncat_name: Nyima\n</nyima-notes>"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path, StubUpstream(CAT)) as found:
        yield found


def test_the_openai_package_as_it_is(desk: Desk) -> None:
    import openai

    with openai.OpenAI(base_url=f"{desk.url}/v1", api_key=desk.secret) as client:
        messages: Any = [{"role": "user", "content": "My cat is called Nyima."}]
        whole = client.chat.completions.create(model="stub", messages=messages)
        assert (whole.choices[0].message.content or "").strip() == "Nice to meet Nyima!"
        assert whole.usage is not None
        assert whole.usage.total_tokens == 15
        stream = client.chat.completions.create(
            model="stub", messages=messages, stream=True, stream_options={"include_usage": True}
        )
        pieces = list(stream)
        assert "".join(p.choices[0].delta.content or "" for p in pieces if p.choices).strip() == "Nice to meet Nyima!"
        assert [p.choices[0].finish_reason for p in pieces if p.choices and p.choices[0].finish_reason] == ["stop"]
        assert pieces[-1].usage is not None
        response = client.responses.create(model="stub", input="What is my cat called?")
        assert response.output_text.strip() == "Nice to meet Nyima!"
        seen = [e.type for e in client.responses.create(model="stub", input="And my dog?", stream=True)]
        assert seen[0] == "response.created"
        assert seen[-1] == "response.completed"
        with client.responses.stream(model="stub", input="A typed stream?") as typed:
            assert typed.get_final_response().output_text.strip() == "Nice to meet Nyima!"
        tool: Any = {
            "type": "function",
            "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
        }
        called = client.chat.completions.create(model="stub", messages=messages, tools=[tool])
        assert called.choices[0].message.tool_calls
        with client.chat.completions.stream(model="stub", messages=messages, tools=[tool]) as typed_chat:
            calls = typed_chat.get_final_completion().choices[0].message.tool_calls
            assert calls
            assert calls[0].function.name == "look"
        assert [m.id for m in client.models.list()] == ["stub"]
        assert client.embeddings.create(model="stub", input="x", encoding_format="float").data[0].embedding == [1.0]
        raw = client.chat.completions.with_raw_response.create(
            model="stub", messages=messages, extra_headers={"X-Nyima-Memory": "off"}
        )
        assert raw.headers["x-nyima-memory"] == "off"
    with openai.OpenAI(base_url=f"{desk.url}/v1", api_key="wrong", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError) as found:
            client.models.list()
        assert found.value.code == "invalid_api_key"


async def test_many_at_once_are_not_mixed_up(desk: Desk) -> None:
    import openai

    desk.stub.reply = lambda body: f"Echo {body['messages'][-1]['content']}"
    secrets = {f"user{i}": desk.key(f"user{i}", requests=0) for i in range(8)}

    async def ask(user: str, number: int) -> None:
        async with openai.AsyncOpenAI(base_url=f"{desk.url}/v1", api_key=secrets[user]) as client:
            text = f"{user} number {number}"
            stream = await client.chat.completions.create(
                model="stub",
                messages=[{"role": "user", "content": text}],
                stream=True,
                extra_headers={"X-Nyima-Session-Id": "s"},
            )
            said = "".join([p.choices[0].delta.content or "" async for p in stream if p.choices])
            assert said == f"Echo {text}"

    await asyncio.gather(*(ask(user, n) for user in secrets for n in range(4)))
    for user in secrets:
        assert all(user in t.text for t in desk.turns(user))
        assert len(desk.turns(user)) == 8
    others = [
        b for b in desk.stub.bodies if len({w for w in str(b).split() if w.startswith("user") and w[4:5].isdigit()}) > 1
    ]
    assert not others, "no prompt has two users' words"
