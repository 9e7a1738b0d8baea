"""Each framework's own objects over a memory."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nyima.memory import BlockingMemory, Memory
from nyima.sync import Opening
from nyima.testing import HashEmbedder

MODULES = ("langgraph", "langchain", "llamaindex", "openai_agents", "pydantic_ai", "anthropic_memory", "open_webui")


def opening(db: Path) -> Opening[Memory, BlockingMemory]:
    return Memory.open(db, user="karen", embedder=HashEmbedder())


@pytest.fixture
def opened(db: Path) -> Iterator[BlockingMemory]:
    with opening(db).sync as found:
        yield found


def test_each_module_wants_its_own_framework_only() -> None:
    code = (
        "import sys, importlib\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in {'langgraph','langchain_core','llama_index','agents','pydantic_ai','anthropic'}:\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "import nyima.frameworks\n"
        "import nyima.frameworks.open_webui, nyima.frameworks.openai_agents\n"
        "try:\n    import nyima.frameworks.langgraph\nexcept ModuleNotFoundError as e: print(e.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().startswith("langgraph")


@pytest.mark.req("serve.frameworks")
def test_langgraph_store(db: Path) -> None:
    pytest.importorskip("langgraph.store.base")
    from langgraph.store.base import GetOp, PutOp

    from nyima.frameworks.langgraph import NyimaStore

    store = NyimaStore(opening(db))
    place = ("memories", "karen")
    store.put(place, "pet", {"text": "The cat is called Nyima", "age": 11})
    store.put(place, "food", {"text": "Allergic to walnuts", "age": 3})
    store.put(("other",), "pet", {"text": "A dog called Rex", "age": 2})
    found = store.get(place, "pet")
    assert found is not None
    assert found.value == {"text": "The cat is called Nyima", "age": 11}
    assert found.namespace == place
    assert store.get(place, "none") is None
    store.put(place, "pet", {"text": "The cat is called Luna", "age": 12})
    assert next(i.key for i in store.search(place, query="what is the cat called")) == "pet"
    assert [i.key for i in store.search(("memories",), filter={"age": {"$gt": 5}})] == ["pet"]
    assert [i.key for i in store.search(place, filter={"age": 3})] == ["food"]
    assert {i.key for i in store.search(place, limit=1)} <= {"pet", "food"}
    assert store.search(("memor",)) == [], "a prefix is of whole parts"
    with pytest.raises(Exception, match="no filter"):
        store.search(place, filter={"age": {"$regex": ".*"}})
    assert store.list_namespaces() == [("memories", "karen"), ("other",)]
    assert store.list_namespaces(prefix=("memories", "*")) == [place]
    assert store.list_namespaces(max_depth=1) == [("memories",), ("other",)]
    store.delete(place, "pet")
    assert store.get(place, "pet") is None
    assert store.batch([PutOp(place, "a", {"x": 1}), GetOp(place, "a")])[1].value == {"x": 1}  # type: ignore[union-attr]

    async def at_once() -> None:
        await store.aput(place, "async", {"text": "from a loop"})
        again = await store.aget(place, "async")
        assert again is not None
        assert again.value["text"] == "from a loop"
        await asyncio.gather(*(store.aput(place, "race", {"n": n}) for n in range(8)))
        assert [i.key for i in await store.asearch(place, limit=50)].count("race") == 1

    asyncio.run(at_once())
    store.close()
    assert b"Luna" not in b"".join(p.read_bytes() for p in db.parent.glob(f"{db.name}*")), "deleted is gone"


@pytest.mark.req("serve.frameworks")
@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")
def test_langchain_history(opened: BlockingMemory) -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
    from langchain_core.runnables import RunnableLambda
    from langchain_core.runnables.history import RunnableWithMessageHistory

    from nyima.frameworks.langchain import NyimaHistory

    chain = RunnableWithMessageHistory(
        RunnableLambda(lambda messages: AIMessage(f"I heard {len(messages)} messages.")),
        lambda session: NyimaHistory(opened, session),
    )
    config: Any = {"configurable": {"session_id": "s1"}}
    assert chain.invoke([HumanMessage("My cat is called Nyima.")], config).text == "I heard 1 messages."
    assert chain.invoke([HumanMessage("And I live in Porto.")], config).text == "I heard 3 messages."
    history = NyimaHistory(opened, "s1")
    assert [m.type for m in history.messages] == ["human", "ai", "human", "ai"]
    assert "Nyima" in opened.recall("What is my cat called?").kept[0].text
    asyncio.run(history.aadd_messages([HumanMessage("one more")]))
    assert len(asyncio.run(history.aget_messages())) == 5
    history.add_messages([AIMessageChunk("streamed"), ToolMessage("a tool's", tool_call_id="c")])
    assert [m.text for m in history.messages][5:] == ["streamed"], "what was streamed is kept as well"
    history.add_messages([ToolMessage("a tool's alone", tool_call_id="c")])
    history.clear()
    assert history.messages == []
    NyimaHistory(opened, "never").clear()


@pytest.mark.req("serve.frameworks")
def test_langgraph_search_looks_in_its_namespace_however_much_is_elsewhere(db: Path) -> None:
    pytest.importorskip("langgraph.store.base")
    from langgraph.store.base import PutOp

    from nyima.frameworks.langgraph import NyimaStore

    store = NyimaStore(opening(db))
    same = {"text": "Likes green tea in the morning"}
    store.batch([PutOp(("users", str(n)), "tea", same) for n in range(60)])
    store.batch([PutOp(("notes",), str(n), {"text": f"Green tea, lot {n}", "lot": n}) for n in range(60)])
    assert [(i.namespace, i.key) for i in store.search(("users", "47"), query="green tea")] == [
        (("users", "47"), "tea")
    ]
    assert [i.key for i in store.search(("notes",), query="green tea", filter={"lot": 53})] == ["53"]
    assert len(store.search(("notes",), query="green tea", limit=50)) == 50
    assert len(store.search(("users",), query="green tea", limit=100)) == 60, "equal values are all there"
    assert store.search(("nobody",), query="green tea") == []
    store.close()


@pytest.mark.req("serve.frameworks")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the store of LlamaIndex
async def test_llamaindex_block(db: Path) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import Memory as IndexMemory

    from nyima.frameworks.llamaindex import NyimaBlock

    opened = await asyncio.to_thread(lambda: opening(db).sync)
    block = NyimaBlock(memory=opened)
    await block.aput([ChatMessage(role="user", content="My cat is called Nyima.")], session_id="s1")
    assert "Nyima" in await block.aget([ChatMessage(role="user", content="What is my cat called?")])
    assert await block.aget([]) == ""
    memory = IndexMemory.from_defaults(session_id="s2", memory_blocks=[block])
    await memory.aput(ChatMessage(role="user", content="What is my cat called?"))
    messages = await memory.aget()
    await memory.sql_store._async_engine.dispose()  # type: ignore[union-attr]
    gc.collect()
    assert "Nyima" in str(messages)
    await asyncio.to_thread(opened.close)


@pytest.mark.req("serve.frameworks")
async def test_openai_agents_session(db: Path) -> None:
    agents = pytest.importorskip("agents")
    from agents import Agent, Runner, set_tracing_disabled
    from agents.memory import Session

    from nyima.frameworks.openai_agents import NyimaSession
    from nyima.models.openai import Endpoint
    from nyima.testing.upstream import StubUpstream, serving

    set_tracing_disabled(True)
    opened = await asyncio.to_thread(lambda: opening(db).sync)
    session = NyimaSession(opened, "s1")
    assert isinstance(session, Session)
    stub = StubUpstream("Noted!")
    with serving(stub) as behind:
        client = Endpoint(f"{behind}/v1", "x").client()
        agent = Agent(name="a", model=agents.OpenAIChatCompletionsModel("stub", client))
        await Runner.run(agent, "My cat is called Nyima.", session=session)
        await Runner.run(agent, "What is my cat called?", session=session)
        await client.close()
    assert [m["content"] for m in stub.bodies[-1]["messages"] if m["role"] == "user"] == [
        "My cat is called Nyima.",
        "What is my cat called?",
    ]
    items = await session.get_items()
    assert len(items) == 4
    assert len(await session.get_items(limit=1)) == 1
    call: Any = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    await session.add_items([call])
    assert (await session.get_items(limit=1)) == [call]
    assert await session.pop_item() == call
    assert len(await session.get_items()) == 4
    assert [e for e in (await asyncio.to_thread(opened.recall, "my cat")).kept if "Nyima" in e.text]
    await session.clear_session()
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await asyncio.to_thread(opened.close)


@pytest.mark.req("serve.frameworks")
async def test_pydantic_ai_capability(db: Path) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from nyima.frameworks.pydantic_ai import NyimaMemory

    seen: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(str(info.instructions) + str(messages))
        assert {t.name for t in info.function_tools} == {"search_memory", "remember"}
        return ModelResponse([TextPart("Your cat is called Nyima.")])

    opened = await asyncio.to_thread(lambda: opening(db).sync)
    agent = Agent(FunctionModel(answer), capabilities=[NyimaMemory(opened)])
    await agent.run("My cat is called Nyima.")
    await agent.run("Hello, what is my cat called?")
    assert "My cat is called Nyima." in seen[-1]
    assert "nyima-notes" not in seen[-1]
    turns = await asyncio.to_thread(opened.turns)
    assert [t.text for t in turns][:2] == ["My cat is called Nyima.", "Your cat is called Nyima."]
    await agent.run(["What is my cat called,", "again?"])
    assert "My cat is called Nyima." in seen[-1], "a prompt of parts is looked up and kept, too"
    turns = await asyncio.to_thread(opened.turns)
    assert turns[-2].text == "What is my cat called,\nagain?"
    await asyncio.to_thread(opened.close)


@pytest.mark.req("serve.frameworks")
async def test_anthropic_memory_tool(db: Path) -> None:
    pytest.importorskip("anthropic")
    from anthropic.lib.tools import ToolError

    from nyima.frameworks.anthropic_memory import NyimaMemoryTool

    opened = await asyncio.to_thread(lambda: opening(db).sync)
    tool = NyimaMemoryTool(opened)
    assert tool.to_dict()["type"] == "memory_20250818"

    async def do(command: str, **given: Any) -> str:
        return str(await tool.call({"command": command, **given}))

    assert "/memories" in await do("view", path="/memories")
    await do("create", path="/memories/cat.md", file_text="The cat is Nyima.\nShe is 11.\n")
    assert "     1\tThe cat is Nyima." in await do("view", path="/memories/cat.md")
    assert "11" not in await do("view", path="/memories/cat.md", view_range=[1, 1])
    await do("str_replace", path="/memories/cat.md", old_str="11", new_str="12")
    await do("insert", path="/memories/cat.md", insert_line=1, insert_text="An orange tabby.\n")
    assert "     2\tAn orange tabby." in await do("view", path="/memories/cat.md")
    await do("rename", old_path="/memories/cat.md", new_path="/memories/pets/cat.md")
    assert "/memories/pets/cat.md" in await do("view", path="/memories")
    found = await asyncio.to_thread(opened.recall, "What is the cat called?")
    assert "Nyima" in found.kept[0].text
    assert found.kept[0].record.provenance.origin.value == "tool"
    for command, given in (
        ("view", {"path": "/etc/passwd"}), ("view", {"path": "/memories/../etc/passwd"}), ("view", {"path": "/memories/%2e%2e/etc"}),
        ("view", {"path": "/memoriesX"}), ("view", {"path": "/memories/none"}), ("delete", {"path": "/memories"}),
        ("create", {"path": "/memories/pets/cat.md", "file_text": "x"}), ("delete", {"path": "/memories/none"}),
        ("str_replace", {"path": "/memories/pets/cat.md", "old_str": "zebra", "new_str": "x"}),
        ("insert", {"path": "/memories/pets/cat.md", "insert_line": 99, "insert_text": "x"}),
        ("rename", {"old_path": "/memories/none", "new_path": "/memories/x"}), ("create", {"path": "/memories", "file_text": "x"}),
        ("create", {"path": "/memories/pets", "file_text": "x"}), ("create", {"path": "/memories/pets/cat.md/x", "file_text": "x"}),
    ):  # fmt: skip
        with pytest.raises(ToolError):
            await do(command, **given)
    await do("create", path="/memories/list.md", file_text="0")
    await asyncio.gather(
        *(do("insert", path="/memories/list.md", insert_line=1, insert_text=f"l{n}") for n in range(1, 9))
    )
    listed = await do("view", path="/memories/list.md")
    assert all(f"l{n}" in listed for n in range(1, 9)), "none of several at once is lost"
    await do("delete", path="/memories/list.md")
    await do("delete", path="/memories/pets")
    assert (await asyncio.to_thread(opened.recall, "cat")).kept == ()
    await do("create", path="/memories/a.md", file_text="x")
    await tool.clear_all_memory()
    assert "a.md" not in await do("view", path="/memories")
    await asyncio.to_thread(opened.close)


@pytest.mark.req("serve.frameworks")
async def test_open_webui_filter(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    from nyima.frameworks.open_webui import Filter
    from server.conftest import desk_at

    with desk_at(tmp_path) as desk:
        filter = Filter()
        filter.valves.url, filter.valves.key = desk.url, desk.key("webui", "read,write,act-as")
        karen = {"id": "karen"}
        body: dict[str, Any] = {"chat_id": "c1", "messages": [{"role": "user", "content": "My cat is called Nyima."}]}
        assert await filter.inlet(body, karen, {"chat_id": "c1"}) == body, "nothing is known yet"
        after = {**body, "messages": [*body["messages"], {"role": "assistant", "content": "Nice to meet her!"}]}
        for _ in range(2):
            await filter.outlet(after, karen, {"chat_id": "c1"})
        assert [t.text for t in desk.turns("karen")] == ["My cat is called Nyima.", "Nice to meet her!"]
        asked = {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "What is my cat called?"},
            ]
        }
        known = (await filter.inlet(asked, karen, {}))["messages"]
        assert [m["role"] for m in known] == ["system", "system", "user"]
        assert "My cat is called Nyima." in known[1]["content"]
        assert (await filter.inlet(asked, {"id": "ben"}, {}))["messages"] == asked["messages"], (
            "another user's is another memory"
        )
        assert await filter.inlet(asked, karen, {"task": "title_generation"}) == asked
    told: list[Any] = []

    async def emit(event: Any) -> None:
        told.append(event)

    assert await filter.inlet(asked, karen, {}, emit) == asked
    assert "does not answer" in json.dumps(told)
