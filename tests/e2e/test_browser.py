"""The web page in a real headless Chromium: what a person can do, what a script cannot."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nyima.memory import Memory
from nyima.testing.upstream import StubUpstream
from server.conftest import Desk, desk_at

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
Page = Any

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip
CAT = "Nice to meet Nyima!\n<notes>\nremember: yes\ncat_name: Nyima\n</notes>"
_PATIENCE = 20_000  # milliseconds: two cores may be busy with other tests
api.expect.set_options(timeout=_PATIENCE)
PAGES = ("/", "/memories", "/profile", "/sessions", "/graph", "/documents", "/settings", "/docs")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Page]:
    context = browser.new_context(accept_downloads=False)
    found = context.new_page()
    found.set_default_timeout(_PATIENCE)
    yield found
    context.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path, StubUpstream(CAT), idle=0.2) as found:
        yield found


def log_in(page: Page, desk: Desk) -> None:
    page.goto(desk.url)
    page.get_by_label("API key").fill(desk.secret)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_selector("#say")
    page.wait_for_load_state("networkidle")


def say(page: Page, text: str) -> str:
    count = page.locator("#talk > li.assistant").count()
    page.get_by_label("Message").fill(text)
    page.keyboard.press("Enter")
    reply = page.locator("#talk > li.assistant").nth(count)
    reply.wait_for()
    api.expect(page.get_by_role("button", name="Send")).to_be_enabled()
    return reply.locator(".text").inner_text()


@pytest.mark.req("serve.page")
def test_a_person_talks_sees_why_corrects_and_forgets(page: Page, desk: Desk) -> None:
    page.goto(desk.url)
    page.get_by_label("API key").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    assert page.get_by_role("alert").inner_text() == "That key is not valid."
    log_in(page, desk)
    assert say(page, "My cat is called Nyima.").strip() == "Nice to meet Nyima!"
    assert "cat name = Nyima" in page.locator(".why").first.inner_text()
    page.get_by_role("button", name="New session").click()
    api.expect(page.locator("#talk > li")).to_have_count(0)
    desk.stub.reply = "Your cat is called Nyima.\n<notes>\nremember: no\n</notes>"
    assert "Nyima" in say(page, "What is my cat called?")
    page.locator("details.why summary").click()
    assert "My cat is called Nyima." in page.locator("details.why").inner_text()

    page.goto(f"{desk.url}/memories?q=cat")  # what was said is found at once, before anything is made of it
    page.locator("details summary").first.click()
    page.get_by_role("button", name="Pin: always in mind").first.click()
    page.wait_for_selector(".pin")
    page.locator("input[name=q]").fill("zebra")
    page.wait_for_timeout(600)

    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{desk.url}/memories?q=cat")
    row = page.locator("#rows li", has_text="My cat is called Nyima.").first
    row.locator("summary").click()
    row.get_by_role("button", name="Forget with its words").click()
    page.get_by_text("Erased for good. Turns: ").wait_for()
    api.expect(page.locator("#rows .text", has_text="My cat is called Nyima.")).to_have_count(0)
    page.goto(f"{desk.url}/memories")
    page.get_by_role("link", name="Chat").click()
    api.expect(page.locator("#talk > li")).not_to_have_count(0)


@pytest.mark.req("serve.page")
def test_undo_under_a_reply_takes_back_what_was_noted_of_it(page: Page, desk: Desk) -> None:
    log_in(page, desk)
    desk.stub.reply = "Noted.\n<notes>\nremember: yes\nlocation: Lisbon\n</notes>"
    say(page, "I live in Lisbon.")
    desk.stub.reply = "A fine city.\n<notes>\nremember: yes\nlocation: Porto\n</notes>"
    say(page, "I moved to Porto.")
    desk.stub.reply = "Good.\n<notes>\nremember: yes\noccupation: baker\n</notes>"
    say(page, "I work as a baker.")
    for _ in range(50):  # the jobs of the last message
        if not desk.look(lambda m: m.store.jobs(m.scope, ("queued", "leased"))):
            break
        page.wait_for_timeout(100)
    page.get_by_role("button", name="Undo").nth(1).click()
    page.get_by_text("Taken back.").wait_for()
    assert page.get_by_role("button", name="Undo").count() == 2

    async def kept(memory: Memory) -> tuple[list[list[list[str]]], list[str]]:
        noted = [e.body["claims"] for e in reversed(await memory.store.events(memory.scope, "notes"))]
        return noted, [r.text for r in await memory.records(kinds=("claim",))]

    noted, relations = desk.look(kept)
    stay = [[], [["user", "location", "Lisbon", "holds"]], [["user", "occupation", "baker", "holds"]]]
    assert sorted(noted) == stay, "other replies' notes stay"
    assert "Lisbon" in str(relations)
    assert "Porto" not in str(relations)


@pytest.mark.req("serve.page")
def test_a_chat_is_there_after_a_reload_and_can_be_gone_on_with(page: Page, desk: Desk) -> None:
    desk.look(lambda m: m.remember("My cat is called Nyima."))
    log_in(page, desk)
    desk.stub.reply = "Your cat is called Nyima.\n<notes>\nremember: no\n</notes>"
    say(page, "What is my cat called?")
    page.reload()
    api.expect(page.locator("#talk > li")).to_have_count(2)
    page.get_by_role("button", name="What it used").click()
    rows = page.locator("details.why li")
    api.expect(rows.filter(has_text="My cat is called Nyima.").first).to_be_visible()
    said = rows.filter(has_text="history").first
    assert said.get_by_role("button", name="Edit").count() == 0, "what was said cannot be changed"
    page.on("dialog", lambda dialog: dialog.accept("The cat is called Luna."))
    fact = rows.filter(has=page.get_by_role("button", name="Edit")).first
    fact.get_by_role("button", name="Edit").click()
    api.expect(rows.filter(has_text="Luna").first).to_contain_text("corrected")
    page.goto(f"{desk.url}/sessions")
    page.get_by_role("link", name="Go on").first.click()
    api.expect(page.locator("#talk > li")).to_have_count(2)
    say(page, "And how old is she?")
    assert len({t.session for t in desk.turns() if "cat is called" not in t.text}) == 1
    page.get_by_label("Private chat").check()
    assert page.locator("#kept").inner_text() == "Nothing that you say here is kept."
    assert page.url == f"{desk.url}/"


def test_a_private_chat_writes_nothing(page: Page, desk: Desk) -> None:
    log_in(page, desk)
    before = desk.look(lambda m: m.store.revision(m.scope))
    page.get_by_label("Private chat").check()
    say(page, "I am planning a surprise for Ben.")
    say(page, "Do not tell him.")
    assert desk.turns() == []
    assert desk.look(lambda m: m.store.revision(m.scope)) == before
    assert "surprise for Ben" in str(desk.stub.bodies[-1]), "it knows what was said in this chat"


def test_facts_documents_graph_and_sessions_have_pages(page: Page, desk: Desk, tmp_path: Path) -> None:
    log_in(page, desk)
    say(page, "My sister Anna lives in Lisbon.")
    page.goto(f"{desk.url}/profile")
    page.get_by_label("What").fill("location")
    page.get_by_label("Value").fill("Porto")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("Porto").first.wait_for()
    page.locator("details summary").first.click()
    page.get_by_label("New text").fill("Lisbon")
    page.get_by_role("button", name="Save").click()
    page.locator("li .text", has_text="Lisbon").first.wait_for()
    page.goto(f"{desk.url}/documents")
    notes = tmp_path / "notes.md"
    notes.write_text("# Recipes\n\nThe walnut bread needs 50 g walnuts.", "utf-8")
    page.get_by_label("Add a file").set_input_files(notes)
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator(".records .text", has_text="notes.md").wait_for()
    page.goto(f"{desk.url}/sessions")
    page.locator(".records a").first.click()
    page.get_by_text("My sister Anna lives in Lisbon.").wait_for()
    for _ in range(50):
        page.goto(f"{desk.url}/graph")
        if page.locator("#drawing svg").count():
            break
        page.wait_for_timeout(100)
    shown = "document.querySelector('#drawing svg').viewBox.baseVal.width"
    whole = page.evaluate(shown)
    page.get_by_role("button", name="Zoom in").click()
    assert page.evaluate(shown) < whole
    page.get_by_role("button", name="Show all").click()
    assert page.evaluate(shown) == whole
    page.locator("#drawing .node").first.focus()
    page.keyboard.press("-")
    assert page.evaluate(shown) > whole
    page.keyboard.press(" ")
    page.wait_for_selector("#side .records")
    assert page.locator("#side .records li").count() >= 1, "what was clicked is told"


PAYLOADS = [
    f"{before}{code}{after}"
    for code in (
        "<script>window.__ran=1</script>", "<img src=x onerror='window.__ran=1'>", "<svg/onload=window.__ran=1>",
        "<body onload=window.__ran=1>", "<iframe srcdoc='<script>parent.__ran=1</script>'>", "<a href='javascript:window.__ran=1'>x</a>",
        "<details open ontoggle=window.__ran=1>", "<input autofocus onfocus=window.__ran=1>", "<math><mtext></mtext><script>window.__ran=1</script>",
        "<style>@import 'javascript:window.__ran=1'</style>", "<object data='javascript:window.__ran=1'>", "{{constructor.constructor('window.__ran=1')()}}",
        "<div hx-get='/x' hx-trigger='load' hx-on::load='window.__ran=1'>x</div>", "<marquee onstart=window.__ran=1>", "${window.__ran=1}",
        "<video><source onerror=window.__ran=1>", "<base href='javascript:window.__ran=1//'>", "<form action='javascript:window.__ran=1'><button>",
        "<template><script>window.__ran=1</script></template>", "<link rel=stylesheet href='javascript:window.__ran=1'>",
    )
    for before, after in (("", ""), ("\"'>", ""), ("</textarea></title></script>", ""), ("-->", "<!--"), ("javascript:/*", "*/"),
                          ("`", "`"), ("\u2028", "\u2029"), ("]]>", ""), ("' onmouseover='window.__ran=1", "'"), ("&lt;", "&gt;"))
]  # fmt: skip


@pytest.mark.req("serve.page")
def test_no_script_in_a_memory_runs(page: Page, desk: Desk) -> None:
    """200 payloads as memories, facts, session titles, document and entity names."""
    assert len(PAYLOADS) == 200
    with desk.client() as client:
        for start in range(0, 200, 50):
            some = PAYLOADS[start : start + 50]
            client.post(
                "/api/turns", json={"session": f"x{start}", "title": some[0], "turns": [{"text": p} for p in some]}
            )
        for i, payload in enumerate(PAYLOADS[:40]):
            client.put(f"/api/profile/key_{i}", json={"value": payload[:400]})
    desk.stub.reply = PAYLOADS[1]
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url))
    log_in(page, desk)
    say(page, PAYLOADS[0])
    for path in (
        *PAGES,
        "/memories?q=script",
        "/memories/rows?kind=episode",
        "/sessions/x0",
        "/sessions/x50",
        "/sessions/x100",
        "/sessions/x150",
    ):
        page.goto(desk.url + path)
        page.wait_for_load_state("networkidle")
        for summary in page.locator("details summary").all()[:10]:
            summary.click()
        page.wait_for_timeout(50)
        assert page.evaluate("window.__ran") is None, path
    page.goto(f"{desk.url}/memories")
    page.select_option("select[name=kind]", "episode")
    page.locator("#rows li").nth(150).wait_for(state="attached")
    assert page.evaluate("window.__ran") is None
    assert not [url for url in asked if not url.startswith((desk.url, "data:"))], "nothing is fetched from elsewhere"


@pytest.mark.req("serve.accessible")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1_200, 360])
def test_the_pages_are_accessible(browser: Any, desk: Desk, scheme: Any, width: int) -> None:
    axe_module = pytest.importorskip("axe_playwright_python.sync_playwright")
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    page = context.new_page()
    axe = axe_module.Axe()
    page.goto(desk.url)
    assert axe.run(page).violations_count == 0, "login"
    log_in(page, desk)
    say(page, "My sister Anna lives in Lisbon.")
    with desk.client() as client:
        client.put("/api/profile/location", json={"value": "Porto"})
    for path in PAGES:
        page.goto(desk.url + path)
        for summary in page.locator("details summary").all()[:2]:
            summary.click()
        page.wait_for_timeout(200)
        found = axe.run(page)
        assert found.violations_count == 0, (path, found.generate_report())
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") in {"skip", ""}
    context.close()
