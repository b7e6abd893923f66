"""The page in a real browser: what its script does, and that nothing that a session holds runs."""

from __future__ import annotations

import shutil
import threading
import time

import pytest
from playwright.sync_api import expect, sync_playwright
from tests.service.api.client import FILLER, api, reply, talk, user
from tests.service.web.test_pages import HOSTILE

from foldline.service.web.session_page import PANELS
from foldline.testing import Scripted

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run"]  # fmt: skip
SECONDS = 15_000  # that a page may take, in ms

pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as tool:
        made = tool.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield made
        made.close()


@pytest.fixture
def served(tmp_path):
    slow = Scripted(lambda asked: f"Answer {asked.index}. {FILLER}", window=60_000)
    with api(slow, store=f"sqlite:///{tmp_path / 's.db'}", window=60_000) as (client, model):
        yield client, model


@pytest.fixture
def page(browser):
    """A page whose console says nothing wrong: no error, nothing that the policy had to stop."""
    told = []
    with browser.new_context(viewport={"width": 1400, "height": 900}) as context:
        made = context.new_page()
        made.set_default_timeout(SECONDS)
        made.on("console", lambda one: told.append(one.text) if one.type in ("error", "warning") else None)
        made.on("pageerror", lambda error: told.append(str(error)))
        made.on("dialog", lambda one: (told.append(one.message), one.dismiss()))
        yield made
        assert told == []


def test_a_talk_is_seen_as_it_is_written_and_folds(served, page):
    client, _ = served
    client.begin("one", messages=talk(55))
    page.goto(f"{client.url}/web/s/one")
    for number in range(3):
        page.fill("#words", f"Hello {number}.")
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#history").get_by_text(f"Hello {number}.")).to_be_visible()
        expect(page.locator("#reply")).to_be_hidden()
    expect(page.locator("#history .message.assistant").last).to_contain_text("Answer")
    expect(page.locator(".fold-line").first).to_be_attached()
    assert page.locator(".message.folded").count() > 0


def test_a_fold_is_previewed_edited_made_and_undone(served, page):
    client, _ = served
    client.begin("one", messages=talk(20))
    page.goto(f"{client.url}/web/s/one")
    page.locator(".actions summary", has_text="Fold").click()
    page.fill("#focus", "the numbers")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("checkbox").nth(4).check()
    page.get_by_role("button", name="Keep these").click()
    expect(page.get_by_role("checkbox").nth(4)).to_be_checked()
    page.fill("#summary", page.input_value("#summary") + "\n\nAnd this, in my own words.")
    page.get_by_role("button", name="Fold", exact=True).click()
    expect(page.get_by_text("Folded as it was shown")).to_be_visible()
    assert "in my own words" in client.get("/sessions/one/view").text
    page.get_by_role("button", name="Undo fold").click()
    expect(page.locator(".fold-line.undone")).to_be_visible()
    page.get_by_role("button", name="Redo fold").click()
    expect(page.locator(".fold-line:not(.undone)")).to_be_visible()


def test_panels_change_without_a_new_page_and_are_places(served, page):
    client, _ = served
    client.begin("one", messages=talk(20))
    client.post("/sessions/one/compact")
    page.goto(f"{client.url}/web/s/one")
    page.evaluate("window.kept = true")
    for name, text in PANELS[1:]:
        page.locator(".tabs a", has_text=text).click()
        expect(page).to_have_url(f"{client.url}/web/s/one?panel={name}")
        expect(page.locator("#panel h3").first).to_be_visible()
    page.fill("#recall", "Question 3")
    page.locator("#panel button").click()
    expect(page.locator("#panel .hits li").first).to_contain_text("Question 3")
    assert page.evaluate("window.kept") is True
    page.reload()
    expect(page.locator("#recall")).to_be_visible()


def test_twenty_messages_a_second_all_come_once_and_in_order(served, page):
    client, _ = served
    client.begin("one", messages=talk(2))
    page.goto(f"{client.url}/web/s/one")
    page.wait_for_function("window.htmx !== undefined")

    def say():
        for number in range(30):
            client.say("one", user(f"Live {number:02d}."), reply(f"Seen {number:02d}."))
            time.sleep(0.1)

    saying = threading.Thread(target=say)
    saying.start()
    saying.join()
    expect(page.locator("#history").get_by_text("Seen 29.")).to_be_visible()
    shown = page.locator("#history .text").all_inner_texts()
    live = [one for one in shown if one.startswith(("Live", "Seen"))]
    assert live == [word for n in range(30) for word in (f"Live {n:02d}.", f"Seen {n:02d}.")]


def test_a_file_that_is_dropped_is_imported(served, page):
    client, _ = served
    page.goto(f"{client.url}/web/")
    with open("examples/session.jsonl", encoding="utf-8") as file:  # noqa: PTH123
        text = file.read()
    page.evaluate(
        """text => {
            const carried = new DataTransfer();
            carried.items.add(new File([text], "<b>session</b>.jsonl"));
            document.dispatchEvent(new DragEvent("drop", {dataTransfer: carried, bubbles: true, cancelable: true}));
        }""",
        text,
    )
    expect(page.get_by_text("Imported 173 messages")).to_be_visible()


def test_what_a_session_holds_never_runs(served, page):
    client, _ = served
    call = {"id": "c", "type": "function", "function": {"name": HOSTILE[:60], "arguments": "{}"}}
    client.begin(
        "one",
        title=HOSTILE,
        messages=[
            user(f"Never do {HOSTILE}."),
            {"role": "assistant", "content": HOSTILE, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": HOSTILE},
            reply(HOSTILE),
            *talk(20),
        ],
    )
    client.post("/sessions/one/compact", {"instructions": HOSTILE})
    page.goto(f"{client.url}/web/")
    for name, _text in PANELS:
        page.goto(f"{client.url}/web/s/one?panel={name}&q=alert")
        expect(page.locator("h1")).to_contain_text("<script>")
    assert page.locator("img, main script, #panel svg:not(.course), .message svg").count() == 0


def test_the_keyboard_alone_is_enough(served, page):
    client, _ = served
    client.begin("one", messages=talk(20))
    page.goto(f"{client.url}/web/s/one")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    for _number in range(3):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText") == "Fold":
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("the numbers")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Preview of a fold")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(served, browser, scheme):
    client, _ = served
    client.begin("one", title="x" * 120, messages=[user("y" * 500), reply("z " * 50), *talk(20)])
    client.post("/sessions/one/compact")
    with browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme) as context:
        made = context.new_page()
        for path in ("/web/", *(f"/web/s/one?panel={name}" for name, _ in PANELS)):
            made.goto(client.url + path)
            wide, screen = made.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide <= screen, path
