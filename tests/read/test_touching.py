"""The current claims that a message may touch."""

from __future__ import annotations

from made import claim, edge, entity, put
from nyima.domain.records import Claim, Status
from nyima.memory import Memory
from nyima.read.embedding import QueryEmbedder
from nyima.read.touching import touching


async def near(memory: Memory, text: str, most: int = 6) -> list[str]:
    found = await touching(memory.store, memory.scope, QueryEmbedder(memory.embedder), text, memory.clock.now(), most)
    return [c.id for c in found]


async def test_the_nearest_come_first_and_what_is_over_or_denied_is_not_shown(memory: Memory) -> None:
    over: list[Claim] = [
        claim("ended", "lives in", "Leeds flat", status=Status.ENDED), claim("denied", "lives in", "Leeds", status=Status.DENIED)
    ]  # fmt: skip
    await put(
        memory, claim("home", "lives in", "Leeds"), claim("plan", "moves to", "Leeds", status=Status.PLANNED), *over
    )
    await put(memory, claim("tea", "likes", "green tea"))
    await memory.ingest.index(memory.scope)
    found = await near(memory, "So that's us out of Leeds")
    assert set(found[:2]) == {"home", "plan"}
    assert not {"ended", "denied"} & {*found}
    await memory.retire("home")
    assert "home" not in await near(memory, "So that's us out of Leeds")


async def test_those_of_what_the_message_names_are_among_them(memory: Memory) -> None:
    await put(memory, entity("ana", "sister Ana"), entity("x", "bakery"))
    await put(memory, edge("job", "ana", "employed by", "x", "the bakery", name="sister Ana"))
    await put(memory, *(claim(f"c{n}", f"remark {n}", f"sister words number {n}") for n in range(12)))
    await memory.ingest.index(memory.scope)
    assert "job" in await near(memory, "My sister Ana gave notice, words fail me")


async def test_there_are_never_more_than_asked_for_and_none_twice(memory: Memory) -> None:
    await put(memory, *(claim(f"c{n}", "likes", f"tea number {n}") for n in range(30)))
    for most in (1, 3, 6):
        found = await near(memory, "tea number 7", most)
        assert len(found) == len(set(found)) == most
    assert await near(memory, "?!") == [] or len(await near(memory, "?!")) <= 6
