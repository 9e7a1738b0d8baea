"""Clients that leave at a random byte, and clients that ask again, clients that are slow: nothing
is lost, stored twice or waited for."""

from __future__ import annotations

import json
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nyima.cli.serve import _bound
from nyima.server.uvicorn_settings import Timed
from nyima.testing.upstream import StubUpstream

from .conftest import Desk, desk_at

REPLY = "Porto is a fine city, with a river, bridges and steep streets. " * 3
RUNS = 40


def hang_up(desk: Desk, number: int, after: int) -> None:
    """Ask, read so many bytes of the answer, and hang up."""
    host, port = desk.url.removeprefix("http://").split(":")
    body = json.dumps(
        {"messages": [{"role": "user", "content": f"I moved to Porto, question {number}."}], "stream": True}
    ).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {desk.secret}\r\nX-Nyima-Session-Id: s{number}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as line:
        line.sendall(head.encode() + body)
        got = 0
        while got < after:
            piece = line.recv(min(256, after - got))
            if not piece:
                return
            got += len(piece)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


@pytest.mark.req("serve.durable")
def test_a_client_that_leaves_at_any_byte_loses_nothing(tmp_path: Path) -> None:
    draw = random.Random(7)
    with desk_at(tmp_path, StubUpstream(REPLY, 9, 0.002)) as desk:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: hang_up(desk, n, draw.randrange(0, 6_000)), range(RUNS)))
        for _ in range(600):
            turns = desk.turns()
            if len(turns) == 2 * RUNS:
                break
            time.sleep(0.1)
        assert sum(t.role == "user" for t in turns) == RUNS
        assert [t.text for t in turns if t.role == "assistant"] == [REPLY.strip()] * RUNS


@pytest.mark.req("serve.durable")
def test_a_key_that_is_sent_again_and_again_stores_one_message_and_one_reply(desk: Desk) -> None:
    counted = iter(range(10_000))
    desk.stub.reply = lambda body: f"Reply {next(counted)}."
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda n: desk.ask("My cat is called Nyima.", headers={"Idempotency-Key": "once"}, stream=n % 2 == 0),
                range(RUNS),
            )
        )
    assert {a.status_code for a in answers} == {200}
    assert [t.role for t in desk.turns()] == ["user", "assistant"]
    assert len(desk.records("episode")) == 2


def test_an_upstream_that_is_busy_for_a_while_parks_nothing(tmp_path: Path) -> None:
    with desk_at(tmp_path, StubUpstream("Fine.", fault="429"), idle=0.05) as desk:
        for n in range(5):
            assert desk.ask(f"I live in Porto, {n}.").status_code == 429
        time.sleep(1.0)
        jobs = desk.look(lambda m: m.store.jobs(m.scope, ("queued", "leased", "parked")))
        assert [j.state for j in jobs if j.state == "parked"] == []
        assert len(desk.turns()) == 5


class Hasty(Timed):
    """Waits a third of a second for a head."""

    seconds = 0.3


def drip(line: socket.socket, data: bytes) -> bool:
    """Send a byte now and then; whether the other side ends it at last."""
    for _ in range(1_200):
        try:
            line.sendall(data[:1])
            data = data[1:] or data
            line.settimeout(0.05)
            if not line.recv(65_536):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.parametrize("before", [b"", b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"])
def test_a_head_that_does_not_come_to_its_end_is_not_waited_for(tmp_path: Path, before: bytes) -> None:
    with desk_at(tmp_path, settings={"http": Hasty}) as desk:
        host, port = desk.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as line:
            line.sendall(before)
            if before:
                assert line.recv(65_536).startswith(b"HTTP/1.1 200")
                time.sleep(0.5)  # silence between requests is no slow head
            assert drip(line, b"POST /v1/chat/completions HTTP/1.1\r\nHost: " + b"a" * 1_000)
        with desk.client() as client:
            assert client.get("/health/live").status_code == 200


def test_a_body_that_does_not_come_is_answered_408_and_its_connection_closed(tmp_path: Path) -> None:
    with desk_at(tmp_path, seconds=0.3) as desk:
        host, port = desk.url.removeprefix("http://").split(":")
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {desk.secret}\r\nContent-Length: 1000\r\n\r\n{{"
        with socket.create_connection((host, int(port)), timeout=60) as line:
            line.sendall(head.encode())
            said = b""
            while piece := line.recv(65_536):
                said += piece
        assert said.startswith(b"HTTP/1.1 408")
        assert b'"message":"the body did not come within 0.3 seconds' in said
        assert desk.turns() == []


def test_an_answer_may_take_longer_than_a_body(tmp_path: Path) -> None:
    with desk_at(tmp_path, StubUpstream(REPLY, 9, 0.2), seconds=2.0) as desk:
        assert desk.ask("I moved to Porto.", stream=True).text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("path", ["/api/turns", "/v1/models", "/health/live"])
@pytest.mark.parametrize("known", [True, False])
def test_a_body_that_drips_in_holds_no_connection(tmp_path: Path, path: str, known: bool) -> None:
    """Also behind an answer that did not wait for it, and where a framework reads the body."""
    with desk_at(tmp_path, seconds=0.5, settings={"http": Hasty}) as desk:
        host, port = desk.url.removeprefix("http://").split(":")
        key = desk.secret if known else "wrong"
        head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
        with socket.create_connection((host, int(port)), timeout=60) as line:
            line.sendall(head.encode())
            said, ended = b"", False
            for _ in range(1_200):
                try:
                    line.sendall(b" ")
                    line.settimeout(0.05)
                    piece = line.recv(65_536)
                    said += piece
                    ended = not piece
                except TimeoutError:
                    continue
                except OSError:
                    ended = True
                if ended:
                    break
            assert ended
        if path == "/api/turns" and known:
            assert said.startswith(b"HTTP/1.1 408")
            assert b"problem+json" in said


def test_answers_do_not_wait_for_nagle() -> None:
    """asyncio turns the delay, 40 ms an answer, off only for sockets that name their protocol."""
    with _bound("127.0.0.1", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP
