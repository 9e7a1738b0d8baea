"""The REST API, over real connections."""

from __future__ import annotations

import html
import re
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from nyima.errors import PackError
from nyima.mechanisms.by_hand import Statement
from nyima.mechanisms.pins import pin, pinned
from nyima.server.problems import problem_of
from nyima.testing.upstream import StubUpstream

from .conftest import Desk, desk_at


def remember(desk: Desk, *texts: str, session: str = "s", **headers: str) -> dict[str, Any]:
    with desk.client(**headers) as client:
        answer = client.post("/api/turns", json={"session": session, "turns": [{"text": t} for t in texts]})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


def test_what_is_stored_is_recalled_with_its_trace(desk: Desk) -> None:
    stored = remember(desk, "My cat is called Nyima.", "I live in Porto.")
    assert [t["position"] for t in stored["turns"]] == [0, 1]
    with desk.client() as client:
        found = client.post("/api/recall", json={"query": "What is my cat called?", "k": 3}).json()
        assert "Nyima" in found["kept"][0]["text"]
        assert found["plan"]
        trace = client.get("/api/traces/last").json()
        assert trace["query"] == "What is my cat called?"
        assert client.get("/api/traces/t-none").status_code == 404
        assert [s["id"] for s in client.get("/api/sessions").json()["rows"]] == ["s"]
        assert [t["text"] for t in client.get("/api/sessions/s/turns").json()["rows"]] == [
            "My cat is called Nyima.",
            "I live in Porto.",
        ]
        assert client.get("/api/sessions/none/turns").status_code == 404
        assert client.post("/api/sessions/s/end").status_code == 204


def test_turns_with_ids_are_stored_once(desk: Desk) -> None:
    with desk.client() as client:
        for _ in range(3):
            client.post("/api/turns", json={"session": "s", "turns": [{"text": "hello", "id": "1"}]})
    assert len(desk.turns()) == 1


def test_pages_follow_each_other(desk: Desk) -> None:
    remember(desk, *(f"thing number {i}" for i in range(25)))
    seen, cursor = list[str](), None
    with desk.client() as client:
        while True:
            page = client.get("/api/records", params={"limit": 7, **({"cursor": cursor} if cursor else {})}).json()
            seen += [r["text"] for r in page["rows"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert len(seen) == len(set(seen)) == 25
        for bad in ("x", "eA==", "WzFd", "", "[]"):
            assert client.get("/api/records", params={"cursor": bad}).status_code == 400


@pytest.mark.req("serve.rest")
def test_a_record_is_revised_under_a_condition_and_undone(desk: Desk) -> None:
    with desk.client() as client:
        made = client.put("/api/profile/location", json={"value": "Porto"}).json()
        id = made["id"]
        read = client.get(f"/api/records/{id}")
        etag = read.headers["etag"]
        assert read.json()["etag"] == etag
        assert (
            client.patch(f"/api/records/{id}", json={"text": "Rome"}, headers={"If-Match": '"old"'}).status_code == 412
        )
        new = client.patch(f"/api/records/{id}", json={"text": "Lisbon"}, headers={"If-Match": etag})
        assert new.status_code == 200
        assert client.get("/api/profile").json()["profile"] == {"location": "Lisbon"}
        assert client.patch(f"/api/records/{id}", json={"text": "Rome"}, headers={"If-Match": etag}).status_code == 412
        assert client.patch(f"/api/records/{id}", json={"text": "Rome"}).status_code == 409
        history = client.get(f"/api/records/{new.json()['id']}").json()["history"]
        assert [h["text"] for h in history] == [made["text"]]
        (done,) = client.post("/api/undo").json()["rows"]
        assert (done["before"], done["after"]) == ("Porto", "Lisbon")
        assert client.get("/api/profile").json()["profile"] == {"location": "Porto"}
        assert client.post("/api/redo").status_code == 200
        assert client.get("/api/profile").json()["profile"] == {"location": "Lisbon"}
        client.put("/api/profile/pet", json={"value": "cat"})
        rows = client.get("/api/changes").json()["rows"]
        (pet,) = [c for c in rows if c["after"] == "cat"]
        assert client.post("/api/undo", params={"change": pet["id"]}).status_code == 200
        assert client.post("/api/undo", params={"change": pet["id"]}).status_code == 422
        assert client.get("/api/profile").json()["profile"] == {"location": "Lisbon"}


def test_saving_a_record_with_its_own_text_changes_nothing(desk: Desk) -> None:
    remember(desk, "My cat is called Nyima.", "I live in Porto.")
    with desk.client() as client:
        client.put("/api/profile/location", json={"value": "Porto"})
        before = client.get("/api/records", params={"retired": True}).json()["rows"]
        for row in client.get("/api/records").json()["rows"]:
            assert client.patch(f"/api/records/{row['id']}", json={"text": row["text"]}).json()["id"] == row["id"]
            shown = client.get(f"/memories/{row['id']}").text
            value = re.search(r'name="text" value="([^"]*)"', shown)
            if value is not None:  # the form of the page, as it is filled when it opens
                text = html.unescape(value[1])
                assert client.post(f"/memories/{row['id']}/revise", data={"text": text}).status_code == 200
        assert client.get("/api/records", params={"retired": True}).json()["rows"] == before


def test_what_goes_is_said_beforehand_and_one_record_goes_alone(desk: Desk) -> None:
    remember(desk, "Tiago is a sound engineer, and his birthday is on 14 December.")
    with desk.client() as client:
        (episode,) = client.get("/api/records", params={"kind": "episode"}).json()["rows"]
        going = client.post("/api/forget", json={"ids": [episode["id"]], "preview": True}).json()["going"]
        assert [t["text"] for t in going["turns"]] == ["Tiago is a sound engineer, and his birthday is on 14 December."]
        going = client.post("/api/forget", json={"ids": [episode["id"]], "only": True, "preview": True}).json()["going"]
        assert (going["turns"], len(going["kept"])) == ([], 1)
        receipt = client.delete(f"/api/records/{episode['id']}", params={"only": True}).json()["receipt"]
        assert (receipt["turns"], len(receipt["still_said"])) == (0, 1)


def test_the_persona_is_no_memory(desk: Desk) -> None:
    with desk.client() as client:
        kept = client.post("/api/recall", json={"query": "Who are you? A warm and curious companion?"}).json()["kept"]
        assert [e for e in kept if e["source"] == "persona"] == []


def test_forgetting_shows_what_it_would_erase_and_leaves_a_receipt(desk: Desk) -> None:
    remember(desk, "My old phone number is 555 0199.", "I like figs.")
    with desk.client() as client:
        would = client.post("/api/forget", json={"query": "phone number"}).json()
        assert "555 0199" in would["candidates"][0]["text"]
        assert len(client.get("/api/records").json()["rows"]) >= 2
        receipt = client.post("/api/forget", json={"query": "phone number", "confirm": True}).json()["receipt"]
        assert receipt["bytes_found"] == 0
        assert not [
            r for r in client.get("/api/records", params={"retired": True}).json()["rows"] if "555" in r["text"]
        ]
        assert client.post("/api/forget", json={}).status_code == 422
        assert client.post("/api/forget", json={"everything": True}).status_code == 422
        left = client.get("/api/records").json()["rows"]
        assert client.delete(f"/api/records/{left[0]['id']}").json()["receipt"]["turns"] == 1
        assert client.post("/api/forget", json={"everything": True, "confirm": True}).status_code == 200
    assert desk.turns() == []


def test_what_is_exported_can_be_imported_elsewhere(desk: Desk) -> None:
    remember(desk, "My cat is called Nyima.")
    with desk.client() as client:
        lines = client.get("/api/export").content
    other = desk.key("other")
    with desk.client(other) as client:
        assert client.post("/api/import", content=lines).status_code == 200
        assert [t["text"] for t in client.get("/api/sessions/s/turns").json()["rows"]] == ["My cat is called Nyima."]
        for bad in (b"", b"{}", b"\x00\xff", b'{"nyima": 1}\n{"turn": 7}', b"[" * 10_000):
            assert client.post("/api/import", content=bad).status_code in {200, 422}, bad
    assert len(desk.turns("other")) == 1


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/turns", {"turns": []}),
        ("POST", "/api/turns", {"turns": [{"text": ""}]}),
        ("POST", "/api/turns", {"turns": [{"text": "x", "role": "king"}]}),
        ("POST", "/api/turns", {"turns": [{"text": "x", "at": "2026-01-01T10:00:00"}]}),
        ("POST", "/api/turns", {"turns": [{"text": "x"}], "user": "other"}),
        ("POST", "/api/recall", {"query": "x", "k": 10**30}),
        ("POST", "/api/recall", {"query": "x", "kinds": ["king"]}),
        ("POST", "/api/recall", {"query": "   "}),
        ("PATCH", "/api/records/x", {"text": 7}),
        ("PUT", "/api/profile/city", {"value": ""}),
        ("GET", "/api/records?limit=0", None),
        ("GET", "/api/records?as_of=yesterday", None),
        ("GET", "/api/records?kind=king", None),
    ],
)
def test_bad_input_is_a_problem_with_its_place(desk: Desk, method: str, path: str, body: Any) -> None:
    with desk.client() as client:
        answer = client.request(method, path, json=body)
    assert answer.status_code in {404, 422}
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= set(answer.json())


def test_the_interface_is_described_with_examples(desk: Desk) -> None:
    with desk.client() as client:
        found = client.get("/openapi.json").json()
    assert found["openapi"].startswith("3.")
    for path, methods in found["paths"].items():
        for method, about in methods.items():
            assert about.get("description"), (method, path)
            assert {"401", "422", "429"} <= set(about["responses"])
    assert found["components"]["schemas"]["RecallIn"]["examples"]


def test_documents_sources_and_graph(desk: Desk) -> None:
    remember(desk, "My sister Anna lives in Lisbon.")
    with desk.client() as client:
        client.post("/api/jobs/run")
        desk.look(lambda m: m.state(Statement("sister Anna", "lives in", "Lisbon", turn=desk.turns()[0].id)))
        added = client.post(
            "/api/documents", json={"name": "bread.md", "text": "# Bread\n\nIt needs 50 g walnuts."}
        ).json()
        assert (added["state"], added["passages"]) == ("added", 1)
        assert (
            client.post(
                "/api/documents", json={"name": "bread.md", "text": "# Bread\n\nIt needs 50 g walnuts."}
            ).json()["state"]
            == "unchanged"
        )
        assert client.post("/api/documents", json={"name": "bread.exe", "text": "x"}).status_code == 422
        assert [d["name"] for d in client.get("/api/documents").json()["rows"]] == ["bread.md"]
        assert "documents" in {s["name"] for s in client.get("/api/sources").json()["rows"]}
        found = client.get("/api/graph", params={"name": "Anna"}).json()
        assert "Lisbon" in {e["name"] for e in found["entities"]}
        assert client.get("/api/graph", params={"name": "Zebra"}).status_code == 404
        rows = client.get("/api/graph/history", params={"query": "Anna lives"}).json()["rows"]
        assert rows[0]["said"] == ["My sister Anna lives in Lisbon."]
        receipt = client.delete("/api/documents", params={"name": "bread.md"}).json()["receipt"]
        assert receipt["bytes_found"] == 0
        assert client.delete("/api/documents", params={"name": "bread.md"}).status_code == 404


def test_a_long_run_of_jobs_tells_how_far_it_came_and_goes_on(tmp_path: Path) -> None:
    stub = StubUpstream('{"remember": false, "facts": {}}')
    with desk_at(tmp_path, stub) as desk, desk.client() as client:
        desk.ask("I live in Porto.", tools=[{"type": "function", "function": {"name": "x"}}])
        stub.wait = 0.2
        told = client.post("/api/jobs/run", params={"seconds": 0.1}).json()
        assert told["waiting"] >= 1
        for _ in range(600):
            if not client.get("/api/jobs").json()["rows"]:
                break
            time.sleep(0.1)
        assert client.get("/api/jobs").json()["rows"] == []
        assert client.post("/api/jobs/run").json() == {"done": 0, "waiting": 0, "parked": 0}


def test_of_two_who_change_one_version_the_second_is_told(desk: Desk) -> None:
    with desk.client() as client:
        made = client.put("/api/profile/city", json={"value": "Porto"}).json()["id"]
        etag = client.get(f"/api/records/{made}").headers["etag"]

        def change(number: int) -> int:
            with desk.client() as own:
                given = {"text": f"town {number}"}
                return own.patch(f"/api/records/{made}", json=given, headers={"If-Match": etag}).status_code

        with ThreadPoolExecutor(6) as pool:
            codes = sorted(pool.map(change, range(6)))
        assert codes[0] == 200
        assert set(codes[1:]) <= {409, 412}


def test_an_export_brings_pins_along(desk: Desk) -> None:
    other = desk.key("other")
    with desk.client() as client, desk.client(other) as there:
        made = client.put("/api/profile/city", json={"value": "Porto"}).json()["id"]
        desk.look(lambda m: pin(m, made))
        lines = client.get("/api/export").content
        assert there.post("/api/import", content=lines).status_code == 200
        assert [r.id for r in desk.look(pinned, "other")] == [made]
        assert there.post("/api/import", content=lines).status_code == 200, "again changes nothing"
        bad = b'{"nyima": 1, "user": "x"}\n{"pin": "f-none"}\n'
        assert "f-none" in there.post("/api/import", content=bad).json()["detail"]


def test_sessions_of_any_name_can_be_opened_ended_and_forgotten(desk: Desk) -> None:
    name = "team/chat?1#x y%2F+ü"
    with desk.client() as client:
        client.post("/api/turns", json={"session": name, "turns": [{"text": "I live in Porto."}]})
        (row,) = client.get("/api/sessions").json()["rows"]
        assert row["id"] == name
        path = urllib.parse.quote(name, safe="")
        assert [t["text"] for t in client.get(f"/api/sessions/{path}/turns").json()["rows"]] == ["I live in Porto."]
        assert client.post(f"/api/sessions/{path}/end").status_code == 204
        link = re.search(r'href="(/sessions/[^"]+)"', client.get("/sessions").text)
        assert link is not None
        page = client.get(link[1])
        assert "I live in Porto." in page.text
        form = re.search(r'action="(/sessions/[^"]+/forget)"', page.text)
        assert form is not None
        client.post(form[1])
        assert client.get("/api/sessions").json()["rows"] == []


def test_the_api_is_described_on_a_page(desk: Desk) -> None:
    with desk.client() as client:
        page = client.get("/docs").text
        document = client.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        for method in operations:
            assert f"<code>{method.upper()} {path}</code>" in page
    assert "/v1/chat/completions" in page
    assert "My cat is called" in page, "with examples of bodies"
    assert "$ref" not in page


def test_importing_again_leaves_nothing_for_undo_to_take_away(desk: Desk) -> None:
    remember(desk, "My cat is called Nyima.")
    with desk.client() as client:
        client.put("/api/profile/city", json={"value": "Porto"})
        lines = client.get("/api/export").content
        before = desk.look(lambda m: m.store.changes(m.scope))
        assert client.post("/api/import", content=lines).status_code == 200
        assert desk.look(lambda m: m.store.changes(m.scope)) == before
        client.post("/api/undo")
        assert client.get("/api/profile").json()["profile"] == {}
        assert len(client.get("/api/records").json()["rows"]) > 0


def test_what_ended_where_it_was_exported_ends_here(desk: Desk) -> None:
    other = desk.key("other")
    with desk.client() as client, desk.client(other) as there:
        client.put("/api/profile/city", json={"value": "Moab"})
        there.post("/api/import", content=client.get("/api/export").content)
        client.put("/api/profile/city", json={"value": "Provo"})
        there.post("/api/import", content=client.get("/api/export").content)
        assert there.get("/api/profile").json()["profile"] == client.get("/api/profile").json()["profile"]


def test_a_browser_is_told_what_is_wrong_on_a_page(desk: Desk) -> None:
    with desk.client() as client:
        login = client.post("/login", content=f"key={desk.secret}")
    cookie = login.headers["set-cookie"].partition(";")[0]
    with httpx2.Client(base_url=desk.url, headers={"cookie": cookie, "accept": "text/html"}) as browser:
        for path, status in (("/nothing", 404), ("/sessions/none", 404), ("/memories/n-none", 404)):
            answer = browser.get(path)
            assert answer.status_code == status
            assert '<p role="alert">' in answer.text
            assert 'aria-label="Pages"' in answer.text
        assert browser.get("/api/records/n-none").headers["content-type"].startswith("text/html")
        assert browser.get("/nothing", headers={"accept": "*/*"}).json()["status"] == 404


def test_reading_documents_without_the_package_is_said_as_such(desk: Desk) -> None:
    assert problem_of(PackError("reading PDF needs an extra package")).status == 501
