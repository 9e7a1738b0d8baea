"""Keys, hosts, sizes, foreign users, and what never leaves the server."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import socket
import stat
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.routing import APIRoute

from nyima.domain.conversation import Scope
from nyima.errors import ConfigError, InputError, NotFound
from nyima.server.access.guard import JsonLines
from nyima.server.access.keys import KeyRing
from nyima.server.access.limits import RateLimits
from nyima.server.audit import AuditFile
from nyima.server.problems import Problem
from nyima.testing.upstream import StubUpstream

from .conftest import NOTES, Desk, desk_at

CANARY = "zanzibar-canary-77"


def paths_of(desk: Desk) -> list[tuple[str, str]]:
    """Every route of the application, with something in its places."""
    found: set[tuple[str, str]] = set()

    def walk(routes: Any, before: str = "") -> None:
        for route in routes:
            path = before + getattr(route, "path", "")
            for method in getattr(route, "methods", None) or ():
                found.add((method, path))
            if not getattr(route, "methods", None):
                walk(
                    getattr(route, "routes", None) or getattr(getattr(route, "original_router", None), "routes", ()),
                    before,
                )

    walk(desk.app.routes)
    described = desk.app.openapi()["paths"]
    found |= {(m.upper(), p) for p, methods in described.items() for m in methods}
    return sorted(found)


@pytest.mark.req("serve.keys")
def test_every_route_wants_a_key_but_health(desk: Desk) -> None:
    routes = paths_of(desk)
    assert len(routes) > 30
    with httpx2.Client(base_url=desk.url) as client:
        for method, path in routes:
            full = path.replace("{id:path}", "x").replace("{", "").replace("}", "")
            for headers in (
                {},
                {"authorization": "Bearer nyima-00000000-nothing"},
                {"authorization": "Basic eDp5"},
                {"x-api-key": "x"},
            ):
                answer = client.request(method, full, headers=headers)
                assert answer.status_code == (200 if path.startswith("/health/") else 401), (method, path)
                if answer.status_code == 401:
                    assert answer.headers["www-authenticate"].startswith("Bearer")
        assert client.get("/nothing").status_code == 401, "not even what is not there"


@pytest.mark.req("serve.keys")
def test_keys_are_hashed_owned_and_withdrawn_at_once(desk: Desk, tmp_path: Path) -> None:
    assert desk.secret not in desk.ring.path.read_text("utf-8")
    assert stat.S_IMODE(desk.ring.path.stat().st_mode) == 0o600
    beside = KeyRing(desk.ring.path)
    key, secret = beside.make("program", Scope(user="karen"), ["read"])
    with desk.client(secret) as client:
        assert client.get("/api/profile").status_code == 200
        assert client.put("/api/profile/city", json={"value": "x"}).status_code == 403, "it may only read"
        assert client.get("/metrics").status_code == 403
        beside.remove(key.id)
        assert client.get("/api/profile").status_code == 401
    with pytest.raises(NotFound):
        beside.remove(key.id)
    for name, scopes in (("", ["read"]), ("x", []), ("x", ["king"])):
        with pytest.raises(InputError):
            beside.make(name, Scope(), scopes)
    beside.path.write_text("{", "utf-8")
    with pytest.raises(ConfigError, match="cannot be read"):
        KeyRing(beside.path).all()


def test_a_key_has_so_many_requests_and_tokens() -> None:
    now = [0.0]
    limits = RateLimits(lambda: now[0])
    ring = KeyRing(Path("/nonexistent/keys.json"))
    assert ring.all() == []
    from nyima.server.access.keys import Key

    key = Key("1", "x", "", "local", "me", ("read",), "", requests=60, tokens=100)
    for _ in range(60):
        limits.enter(key)
    with pytest.raises(Problem) as found:
        limits.enter(key)
    assert (found.value.status, round(found.value.after)) == (429, 1)
    now[0] += 1.0
    limits.enter(key)
    now[0] += 60.0
    limits.spend(key, 100)
    with pytest.raises(Problem, match="tokens of this day"):
        limits.enter(key)
    now[0] += 86_400.0
    limits.enter(key)


def test_a_key_that_asks_too_much_is_told_when_to_come_again(desk: Desk) -> None:
    secret = desk.key("karen", requests=3)
    answers = [desk.ask("hello", secret=secret) for _ in range(5)]
    assert [a.status_code for a in answers] == [200, 200, 200, 429, 429]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert answers[-1].json()["error"]["type"] == "rate_limit_error"


def test_another_users_memory_opens_only_for_keys_that_act_for_others(desk: Desk) -> None:
    desk.ask("My cat is called Nyima.", headers={"X-Nyima-User-Id": "me"})
    assert desk.ask("hello", headers={"X-Nyima-User-Id": "karen"}).status_code == 403
    acting = desk.key("service", "read,write,act-as")
    for headers, body in (
        ({"X-Nyima-User-Id": "karen"}, {}), ({}, {"user": "karen"}), ({}, {"safety_identifier": "karen"}), ({}, {"metadata": {"user_id": "karen"}}),
    ):  # fmt: skip
        assert desk.ask("I like figs.", secret=acting, headers=headers, **body).status_code == 200
    assert len({t.session for t in desk.turns("karen")}) >= 1
    assert desk.turns("service") == []
    assert desk.ask("hi", user="karen").status_code == 200
    assert {t.text for t in desk.turns("me")} == {"My cat is called Nyima.", "Hello.", "hi"}, (
        "a key of one user stays there"
    )


def test_headers_of_front_ends_count_only_when_they_are_trusted(tmp_path: Path) -> None:
    headers = {"X-OpenWebUI-User-Id": "karen", "X-OpenWebUI-Chat-Id": "chat-1"}
    for trusted in (False, True):
        with desk_at(tmp_path / str(trusted), trusted=trusted) as desk:
            acting = desk.key("service", "read,write,act-as")
            desk.ask("I like figs.", secret=acting, headers=headers)
            assert [t.session for t in desk.turns("karen" if trusted else "service")][:1] == (
                ["chat-1"] if trusted else [desk.turns("service")[0].session]
            )
            before = len(desk.turns("karen"))
            desk.ask("Give a title", secret=acting, headers={**headers, "X-OpenWebUI-Task": "title_generation"})
            assert not trusted or len(desk.turns("karen")) == before


@pytest.mark.req("serve.isolation")
def test_no_field_header_or_id_reaches_another_users_memory(tmp_path: Path) -> None:
    """Every route, with every id of another user, in every place where an id can stand."""
    seen: list[str] = []
    with desk_at(tmp_path, StubUpstream(lambda body: seen.append(json.dumps(body)) or "Hello."), idle=10_000.0) as desk:  # type: ignore[func-returns-value]
        victim = desk.key("victim", "read,write")
        with desk.client(victim) as client:
            client.post(
                "/api/turns", json={"session": "vs", "turns": [{"text": f"My secret is {CANARY}.", "id": "v1"}]}
            )
            client.put("/api/profile/secret", json={"value": CANARY})
            client.post("/api/recall", json={"query": "secret"})
            rows = client.get("/api/records").json()["rows"]
            turns = client.get("/api/sessions/vs/turns").json()["rows"]
            cursor = client.get("/api/records", params={"limit": 1}).json()["next"]
        ids = [rows[0]["id"], turns[0]["id"], "vs", "last"]
        if os.environ.get("NYIMA_PROBES") == "all":
            ids += [*(r["id"] for r in rows[1:]), "victim", "resp_1", "me", rows[0]["id"][:6], turns[0]["id"].upper()]
        before = desk.look(lambda m: m.store.revision(m.scope), "victim")
        attacker = desk.key("attacker", "read,write", requests=0)
        headers = [
            {}, {"X-Nyima-User-Id": "victim"}, {"X-OpenWebUI-User-Id": "victim"}, {"x-litellm-end-user-id": "victim"},
            {"X-Nyima-Session-Id": "vs"}, {"Cookie": "nyima_session=victim"},
        ]  # fmt: skip
        probes = 0
        with desk.client(attacker) as client:
            for (method, path), id, head in itertools.product(paths_of(desk), ids, headers):
                if path.startswith(("/health", "/openapi")) or method in {"HEAD", "OPTIONS"}:
                    continue
                for query in (
                    {},
                    {"cursor": cursor, "retired": "true"},
                    {"session": "vs", "user": "victim", "q": CANARY[:4]},
                ):
                    full = path
                    for place in ("{id:path}", "{id}", "{session}", "{turn}", "{key}", "{what}", "{name}"):
                        full = full.replace(place, id)
                    if "{" not in path and id != ids[0] and not query:
                        continue
                    body = {
                        "messages": [{"role": "user", "content": f"what is the secret of {id}"}], "input": "secret", "query": "secret",
                        "user": "victim", "safety_identifier": "victim", "metadata": {"user_id": "victim"}, "conversation": "vs",
                        "previous_response_id": "resp_1", "turns": [{"text": "secret"}], "text": "mine", "value": "mine", "ids": [id],
                    }  # fmt: skip
                    mine = {k: v for k, v in body.items() if path.startswith("/v1") or k in _fields(path)}
                    answer = client.request(
                        method, full, params=query, headers=head, json=mine if method != "GET" else None
                    )
                    probes += 1
                    assert CANARY not in answer.text, (method, full, head)
                    assert answer.status_code < 500 or path.startswith("/v1"), (method, full, answer.text)
        print(f"{probes} probes")
        assert probes > 500
        assert not [body for body in seen if CANARY in body], "nor the model"
        assert desk.look(lambda m: m.store.revision(m.scope), "victim") == before, "nothing of theirs was changed"


def _fields(path: str) -> set[str]:
    return {
        "/api/turns": {"turns"}, "/api/recall": {"query"}, "/api/forget": {"ids"}, "/api/records/{id}": {"text"}, "/api/profile/{attribute}": {"value"},
    }.get(path, set())  # fmt: skip


def test_foreign_hosts_and_pages_are_refused(desk: Desk) -> None:
    with desk.client(host="evil.example") as client:
        assert client.get("/health/live").status_code == 421
        assert client.get("/api/profile").status_code == 421
    for origin in ("https://evil.example", "null", "http://localhost:1"):
        with desk.client(origin=origin) as client:
            answer = client.get("/api/profile")
            assert answer.status_code == 403
            assert "access-control-allow-origin" not in answer.headers
    with desk.client() as client:
        assert client.options("/api/profile").status_code == 405
        headers = client.get("/api/profile").headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


def test_a_body_over_the_limit_is_refused_whether_its_length_is_told_or_not(tmp_path: Path) -> None:
    with desk_at(tmp_path, most=100_000, large=300_000) as desk, desk.client() as client:
        big = b'{"messages": [{"role": "user", "content": "' + b"a" * 200_000 + b'"}]}'
        huge = b" " * 200_000 + big
        assert client.post("/api/turns", content=big).status_code == 413
        assert client.post("/api/turns", content=iter([big[:150_000], big[150_000:]])).status_code == 413
        for path in ("/v1/chat/completions", "/api/import", "/documents?name=a.txt"):
            assert client.post(path, content=big).status_code != 413, "it may hold files"
            assert client.post(path, content=huge).status_code == 413
            assert client.post(path, content=iter([huge[:350_000], huge[350_000:]])).status_code == 413
        assert client.get("/health/live").status_code == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/profile HTTP/1.1\r\n\r\n",
        b"POST /api/turns HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 9\r\n\r\nx",
        b"GET /api/profile HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 200_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /api/profile\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_smuggled_and_broken_requests_get_no_further(desk: Desk, raw: bytes) -> None:
    host, port = desk.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as line:
        answer = b""
        with contextlib.suppress(OSError):  # it may hang up at once
            line.sendall(raw)
            line.shutdown(socket.SHUT_WR)
            while piece := line.recv(65_536):
                answer += piece
    assert b" 200 " not in answer.split(b"\r\n", 1)[0]
    with httpx2.Client(base_url=desk.url) as client:
        assert client.get("/health/live").status_code == 200


def test_what_looks_like_a_secret_is_not_in_a_log_line() -> None:
    made = logging.makeLogRecord(
        {
            "msg": "refused %s",
            "args": ("Bearer abc.def",),
            "key": "nyima-0a1b2c3d-SECRETSECRET",
            "other": "sk-abcdefghijkl",
        }
    )
    line = JsonLines().format(made)
    assert not [s for s in ("abc.def", "SECRETSECRET", "abcdefghijkl") if s in line]
    assert json.loads(line)["what"] == "refused [secret]"


def test_an_error_of_the_server_says_nothing_of_it(desk: Desk) -> None:
    async def broken() -> None:
        raise RuntimeError(f"/root/secret {CANARY}")

    desk.app.router.routes.insert(0, APIRoute("/api/broken", broken))
    with desk.client() as client:
        answer = client.get("/api/broken")
    assert answer.status_code == 500
    assert CANARY not in answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.req("serve.metrics")
def test_metrics_count_routes_and_name_no_user(desk: Desk) -> None:
    desk.ask("hello " + CANARY, headers={"X-Nyima-User-Id": "me"}, user="karen@example.org")
    admin = desk.key("ops", "admin")
    with desk.client(admin) as client:
        text = client.get("/metrics").text
    assert 'nyima_http_requests_total{method="POST",route="chat",status="200"} 1.0' in text
    assert 'nyima_jobs{state="queued"}' in text
    assert "karen" not in text
    assert CANARY not in text


def test_the_notes_of_one_reply_are_made_when_nobody_talks(tmp_path: Path) -> None:
    gate = '{"remember": true, "facts": {"city": "Porto"}}'
    stub = StubUpstream(
        lambda body: gate if "remember" in str(body["messages"][0]) and not body.get("n_marker") else "Fine." + NOTES
    )
    with desk_at(tmp_path, stub, idle=0.05) as desk:
        desk.ask("I live in Porto.", tools=[{"type": "function", "function": {"name": "x"}}])
        with desk.client() as client:
            for _ in range(100):
                if not [j for j in client.get("/api/jobs").json()["rows"] if j["state"] != "parked"]:
                    break
                socket.socket().close()
                __import__("time").sleep(0.05)
            assert client.get("/api/jobs").json()["rows"] == []


# --- the audit ---


@pytest.fixture
def audited(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "nyima.audit")
    return caplog


def _audit(found: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [json.loads(JsonLines().format(r)) for r in found.records if r.name == "nyima.audit"]


@pytest.mark.req("serve.audit")
def test_who_changed_what_can_be_looked_up_without_what_was_said(desk: Desk, audited: pytest.LogCaptureFixture) -> None:
    acting = desk.key("service", "read,write,act-as")
    karen = {"X-Nyima-User-Id": "karen"}
    with desk.client() as client, desk.client(acting) as service, desk.client("nyima-12345678-wrong") as stranger:
        made = client.put("/api/profile/city", json={"value": CANARY}).json()["id"]
        client.get("/api/profile")
        client.delete(f"/api/records/{made}")
        client.get("/api/export")
        service.get("/api/profile", headers=karen)
        service.get("/api/profile")
        service.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": CANARY}], "user": "karen"})
        stranger.get("/api/profile")
        client.post(f"/sessions/{CANARY}/forget")
        client.post("/sessions/mum-has-cancer/forget")
    lines = _audit(audited)
    told = [(r["what"], r["method"], r["route"], r["status"], r.get("user"), r.get("id")) for r in lines]
    assert told == [
        ("change", "PUT", "/api/profile/{attribute}", 200, "me", None),
        ("change", "DELETE", "/api/records/{id}", 200, "me", made),
        ("export", "GET", "/api/export", 200, "me", None),
        ("other user", "GET", "/api/profile", 200, "karen", None),
        ("other user", "POST", "chat", 200, "karen", None),
        ("refused", "GET", "none", 401, None, None),
        ("change", "POST", "session", 404, "me", None),
        ("change", "POST", "session", 404, "me", None),
    ]
    keys = {k.id for k in desk.ring.all()}
    assert {r["key"] for r in lines if "key" in r} <= keys
    assert CANARY not in str(lines)


@pytest.mark.req("serve.audit")
def test_the_audit_is_a_file_of_its_owner(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "there" / "memory.audit.jsonl")
    file.setFormatter(JsonLines())
    file.emit(logging.makeLogRecord({"name": "nyima.audit", "msg": "change", "key": "1a2b"}))
    file.close()
    path = tmp_path / "there" / "memory.audit.jsonl"
    assert json.loads(path.read_text("utf-8"))["key"] == "1a2b"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
