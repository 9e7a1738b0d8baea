"""Programs of others against the server, unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from nyima.testing.upstream import StubUpstream
from server.conftest import Desk, desk_at

CAT = "Nice to meet Nyima!\n<nyima-notes>\nremember: yes\ncat_name: Nyima\n</nyima-notes>"


def noted(body: dict[str, Any]) -> str:
    """With notes where they are asked for."""
    return CAT if "nyima-notes" in str(body) else CAT.partition("\n")[0]


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


@pytest.mark.parametrize("wire", ["chat", "responses"])
async def test_the_agents_sdk_as_it_is(desk: Desk, wire: str) -> None:
    agents = pytest.importorskip("agents")
    import openai

    looked: list[str] = []
    desk.stub.reply = noted

    @agents.function_tool
    def look() -> str:
        """Look at the weather."""
        looked.append("yes")
        return "It rains in Porto."

    agents.set_tracing_disabled(True)
    async with openai.AsyncOpenAI(base_url=f"{desk.url}/v1", api_key=desk.secret) as client:
        kind = agents.OpenAIChatCompletionsModel if wire == "chat" else agents.OpenAIResponsesModel
        model = kind("stub", client)
        plain = agents.Agent(name="plain", instructions="Be brief.", model=model)
        done = await agents.Runner.run(plain, "My cat is called Nyima.")
        assert done.final_output.strip() == "Nice to meet Nyima!"
        streamed = agents.Runner.run_streamed(
            plain, [*done.to_input_list(), {"role": "user", "content": "Is she well?"}]
        )
        assert [e async for e in streamed.stream_events()]
        assert streamed.final_output.strip() == "Nice to meet Nyima!"
        able = agents.Agent(name="able", instructions="Be brief.", model=model, tools=[look])
        done = await agents.Runner.run(able, "What is the weather like?")
        assert done.final_output.strip() == "Nice to meet Nyima!"
        streamed = agents.Runner.run_streamed(able, "And what is it like tomorrow?")
        assert [e async for e in streamed.stream_events()]
        assert looked == ["yes", "yes"]
    said = [t.text for t in desk.turns() if t.role == "user"]
    assert sorted(said) == sorted(
        ["My cat is called Nyima.", "Is she well?", "What is the weather like?", "And what is it like tomorrow?"]
    ), "each message once, however many calls it takes"
    assert len([t for t in desk.turns() if t.role == "assistant"]) == 4
    notes = desk.look(lambda m: m.store.events(m.scope, "notes"))
    assert [["user", "cat name", "Nyima", "holds"]] in [n.body["claims"] for n in notes]


async def _talk(model: Any, look: Any) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    first = model.invoke("My cat is called Nyima.")
    assert first.text.strip() == "Nice to meet Nyima!"
    assert first.usage_metadata["total_tokens"] == 15
    lines: list[Any] = [HumanMessage("My cat is called Nyima."), first, HumanMessage("Is she well?")]
    assert "".join([piece.text async for piece in model.astream(lines)]).strip() == "Nice to meet Nyima!"
    lines = [HumanMessage("What is the weather like?")]
    asked = model.bind_tools([look]).invoke(lines)
    assert isinstance(asked, AIMessage)
    assert [c["name"] for c in asked.tool_calls] == ["look"]
    lines += [asked, ToolMessage(look.invoke(asked.tool_calls[0]).content, tool_call_id=asked.tool_calls[0]["id"])]
    assert model.bind_tools([look]).invoke(lines).text.strip() == "Nice to meet Nyima!"


@pytest.mark.parametrize("responses", [False, True])
async def test_langchain_as_it_is(desk: Desk, responses: bool) -> None:
    chat = pytest.importorskip("langchain_openai")
    from langchain_core.tools import tool

    desk.stub.reply = noted

    @tool
    def look() -> str:
        """Look at the weather."""
        return "It rains in Porto."

    with httpx2.Client() as here:
        async with httpx2.AsyncClient() as there:
            model = chat.ChatOpenAI(
                base_url=f"{desk.url}/v1", api_key=desk.secret, model="stub", use_responses_api=responses,
                http_client=here, http_async_client=there,
            )  # fmt: skip
            await _talk(model, look)
    said = [t.text for t in desk.turns() if t.role == "user"]
    assert said == ["My cat is called Nyima.", "Is she well?", "What is the weather like?"]
    notes = desk.look(lambda m: m.store.events(m.scope, "notes"))
    assert [["user", "cat name", "Nyima", "holds"]] in [n.body["claims"] for n in notes]


@pytest.mark.parametrize("fault", ["die:3", "die:6", "500", "429", "html"])
async def test_programs_hear_that_an_answer_broke_off(tmp_path: Path, fault: str) -> None:
    """Each program raises; none takes half an answer for a whole one, and none waits."""
    import openai

    agents, chat = pytest.importorskip("agents"), pytest.importorskip("langchain_openai")
    agents.set_tracing_disabled(True)
    with desk_at(tmp_path, StubUpstream("Porto is a fine city, with a river.", fault=fault)) as desk:
        async with openai.AsyncOpenAI(base_url=f"{desk.url}/v1", api_key=desk.secret, max_retries=0) as client:
            stream = client.chat.completions
            asked: Any = {"model": "stub", "messages": [{"role": "user", "content": "Porto?"}], "stream": True}
            with pytest.raises(openai.APIError, match="upstream"):
                [piece async for piece in await stream.create(**asked)]
            with pytest.raises(openai.APIError, match="upstream"):
                [e async for e in await client.responses.create(model="stub", input="Porto?", stream=True)]
            for kind in (agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel):
                agent = agents.Agent(name="a", instructions="Be brief.", model=kind("stub", client))
                with pytest.raises(Exception, match="upstream"):
                    [e async for e in agents.Runner.run_streamed(agent, "Porto?").stream_events()]
        async with httpx2.AsyncClient() as there:
            for responses in (False, True):
                model = chat.ChatOpenAI(
                    base_url=f"{desk.url}/v1", api_key=desk.secret, model="stub", max_retries=0,
                    use_responses_api=responses, http_async_client=there,
                )  # fmt: skip
                with pytest.raises(Exception, match="upstream"):
                    [piece async for piece in model.astream("Porto?")]
        assert {t.text for t in desk.turns() if t.role == "user"} == {"Porto?"}


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
