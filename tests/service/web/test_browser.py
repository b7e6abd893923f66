"""The page in a real browser: every action is clicked, and what is seen is checked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.service.api.client import FILLER, Client, api, reply, talk, user
from tests.service.served import served

from foldline.service.web.session_page import PANELS
from foldline.testing import Faulty, Scripted, serve_in_thread

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1300, "height": 900}
HOSTILE = (
    "<script>window.ran=1</script><img src=x onerror='window.ran=2'>"
    "</textarea></title><svg onload='window.ran=3'>"
)
EXAMPLE = "examples/session.jsonl"


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as made:
        browser = made.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    store = f"sqlite:///{tmp_path_factory.mktemp('web') / 's.db'}"
    with api(Scripted(_answer, window=60_000), store=store) as (client, _):
        yield client


def _answer(asked):
    return f"Reply {asked.index}. " + FILLER


@pytest.fixture
def page(chromium, service):
    """A page; at its end the console must have told no error, and no dialog have been opened."""
    context = chromium.new_context(viewport=DESKTOP, base_url=service.url, accept_downloads=True)
    page = context.new_page()
    told = []
    page.on("console", lambda one: told.append(one.text) if one.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("dialog", lambda dialog: (told.append(dialog.message), dialog.dismiss()))
    page.set_default_timeout(10_000)
    yield page
    ran = page.evaluate("window.ran")
    context.close()
    assert told == []
    assert ran is None


def seen(page, text):
    page.get_by_text(text).first.wait_for()


def menu(message, action):
    """Choose an action of a message."""
    message.get_by_text("Actions", exact=True).click()
    message.get_by_role("button", name=action).click()


def message(page, text):
    """The newest message that says this."""
    return page.locator("article.message", has_text=text).last


def fold_menu(page, focus=""):
    page.locator(".actions summary", has_text="Fold").click()
    page.get_by_label("What must the summary").fill(focus)


def folded(service, name):
    return service.get(f"/sessions/{name}/stats").json()["stats"]["summaries"]


# ---- the list


def test_files_are_imported_by_choice_and_by_drop_and_found(page, service, tmp_path):
    page.goto("/web/")
    page.set_input_files("#file", EXAMPLE)
    page.get_by_role("button", name="Import", exact=True).click()
    seen(page, "Imported 173 messages")
    for kind, suffix in (("markdown", "md"), ("json", "json"), ("claude-code", "jsonl")):
        page.locator(".actions summary", has_text="Download").click()
        page.get_by_label("Format").select_option(kind)
        with page.expect_download() as coming:
            page.get_by_role("button", name="Download").click()
        assert coming.value.suggested_filename.endswith(f".{kind}.{suffix}")
        file = tmp_path / f"{kind}.{suffix}"
        coming.value.save_as(file)
        assert "shelfmark" in file.read_text(encoding="utf-8")
        page.keyboard.press("Escape")
    page.goto("/web/")
    raw = (tmp_path / "claude-code.jsonl").read_text(encoding="utf-8")
    page.evaluate(
        """([text, name]) => {
          const data = new DataTransfer();
          data.items.add(new File([text], name));
          document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        [raw, f"{HOSTILE}.jsonl"],
    )
    seen(page, "messages of claude-code")
    page.goto("/web/")
    page.get_by_label("Search all that was said").fill("token bucket")
    page.get_by_role("button", name="Search").click()
    seen(page, "messages with")
    page.locator(".hits a").first.click()
    page.locator("article:target").wait_for()


# ---- folding


def test_a_fold_is_shown_kept_edited_made_undone_and_made_again(page, service):
    service.begin("folds", messages=talk(20))
    page.goto("/web/s/folds")
    fold_menu(page, "the numbers")
    page.get_by_role("button", name="Preview").click()
    seen(page, "nothing has changed yet")
    assert folded(service, "folds") == 0
    page.get_by_label("Question 3.").check()
    page.get_by_role("button", name="Keep these").click()
    assert page.get_by_label("Question 3.").is_disabled()
    page.get_by_label("The summary; edit it").fill("## Goal\n\nWords of my own. " + HOSTILE)
    page.get_by_role("button", name="Fold", exact=True).click()
    seen(page, "Folded as it was shown.")
    assert page.locator(".fold-line").count() == 1
    assert page.locator("article.folded").count() > 10
    page.locator(".tabs a", has_text="Sent").click()
    assert "Words of my own." in page.locator("#panel").inner_text()
    assert "Question 3." in service.get("/sessions/folds/view").text
    page.get_by_role("button", name="Undo fold").click()
    seen(page, "The newest fold is undone")
    assert page.locator(".fold-line.undone").count() == 1
    page.get_by_role("button", name="Redo fold").click()
    seen(page, "The fold holds again.")
    assert folded(service, "folds") == 1


def test_a_second_fold_stacks_and_a_branch_leaves_before_it(page, service):
    service.begin("stack", messages=talk(12))
    page.goto("/web/s/stack")
    fold_menu(page)
    page.get_by_role("button", name="Fold at once").click()
    seen(page, "Folded:")
    service.say("stack", *talk(12, first=100)[2:])
    fold_menu(page)
    page.get_by_role("button", name="Fold at once").click()
    seen(page, "Folded:")
    assert page.locator(".fold-line").count() == 2
    before = page.locator("article.message").all_inner_texts()
    page.goto("/web/")
    page.goto("/web/s/stack")
    assert page.locator("article.message").all_inner_texts() == before
    menu(message(page, "Question 7."), "Branch")
    seen(page, "The session goes on from there")
    assert folded(service, "stack") == 0
    assert page.locator("article.message").last.inner_text().count("Question 7.") == 1
    page.locator(".tabs a", has_text="Branches").click()
    page.get_by_role("button", name="Go there").first.click()
    seen(page, "The session goes on from there")
    assert folded(service, "stack") == 2


@pytest.mark.parametrize("name", [name for name, _ in PANELS])
def test_every_panel_is_a_tab(page, service, name):
    if name == "view":
        service.begin("panels", messages=talk(12))
        service.post("/sessions/panels/compact")
    page.goto("/web/s/panels")
    text = dict(PANELS)[name]
    page.locator(".tabs a", has_text=text).click()
    page.wait_for_url(f"**/panels?panel={name}")
    seen_first = {"view": "What the model is sent", "recall": "Recall", "course": "The view over time"}
    page.locator("#panel h3", has_text=seen_first.get(name, "")).first.wait_for()
    assert page.locator(".tabs a[aria-current]").inner_text() == text
    if name == "recall":
        page.locator("#recall").fill("Question 5")
        page.keyboard.press("Enter")
        page.locator("#panel .hits a").first.wait_for()
        assert "Question 5" in page.locator("#panel").inner_text()
        page.locator("#panel .hits a").first.click()
        page.locator("article:target").wait_for()


# ---- steering


def test_messages_are_pinned_rewound_forked_and_handed_off(page, service):
    service.begin("steer", title=HOSTILE, messages=talk(5))
    page.goto("/web/s/steer")
    assert HOSTILE in page.locator("h1").inner_text()
    menu(message(page, "Question 2."), "Pin")
    seen(page, "Pinned: every later view")
    assert message(page, "Question 2.").locator(".badge.pinned").count() == 1
    menu(message(page, "Question 2."), "Unpin")
    seen(page, "Unpinned.")
    menu(message(page, "Question 3."), "Rewind")
    seen(page, "Edit it, and send it again")
    assert page.locator("#words").input_value().startswith("Question 3.")
    assert page.locator("article.message", has_text="Question 3.").count() == 0
    menu(message(page, "Answer 1."), "Fork")
    seen(page, "A copy of steer.")
    assert "Answer 1." in page.locator("article.message").last.inner_text()
    page.goto("/web/s/steer")
    page.locator(".actions summary", has_text="Hand off").click()
    page.get_by_label("What is the new session for?").fill(f"Write the tests {HOSTILE}")
    page.get_by_role("button", name="Preview").last.click()
    page.get_by_label("What the new session knows").fill("## Goal\n\nWrite the tests.")
    page.get_by_role("button", name="Begin the session").click()
    seen(page, "Handed off from steer.")
    assert "Write the tests." in page.locator("#history").text_content()
    assert page.locator("h1 + p + p a", has_text="steer").count() == 1


def test_nothing_that_a_session_holds_runs(page, service):
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "read", "arguments": f'{{"path": "{"<b>"}"}}'},
    }
    said = [
        user(f"Never do {HOSTILE}."),
        {"role": "assistant", "content": HOSTILE, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": HOSTILE},
        *talk(12),
    ]
    service.begin("hostile", title=HOSTILE, messages=said)
    service.post("/sessions/hostile/compact")
    for path in ("/web/", "/web/?q=script", "/web/s/hostile?problem=" + HOSTILE.replace("&", "%26")):
        page.goto(path)
        assert page.evaluate("window.ran") is None
        assert page.locator("img, main script").count() == 0
    for _, name in PANELS:
        page.locator(".tabs a", has_text=name).click()
        page.wait_for_timeout(100)
        assert page.locator("img, main script").count() == 0


# ---- talk


def test_a_reply_is_seen_in_its_place(page, tmp_path):
    model = Scripted(_answer, window=60_000, delay=0.02) if False else Scripted(_answer, window=60_000)
    with api(model, store=f"sqlite:///{tmp_path / 't.db'}") as (client, _):
        client.begin("talk")
        page.goto(f"{client.url}/web/s/talk")
        page.locator("#words").fill("First question.")
        page.get_by_role("button", name="Send").click()
        page.locator("#history article.assistant", has_text="Reply 0.").wait_for()
        assert page.locator("#history article").count() == 2
        assert page.locator("#words").input_value() == ""
        page.locator("#stop").wait_for(state="hidden")


def test_stop_keeps_nothing_half_done(page, tmp_path):
    model = Faulty(Scripted(_answer, window=60_000), seed=1, plan=["stall"] * 3, stall=30.0)
    with serve_in_thread(model) as url:
        given = {"model": f"openai-compatible:scripted@{url}/v1", "window": 60_000}
        with served(**given, store=f"sqlite:///{tmp_path / 't.db'}") as at:
            client = Client(at)
            client.begin("stopped")
            page.goto(f"{at}/web/s/stopped")
            page.locator("#words").fill("A question.")
            page.get_by_role("button", name="Send").click()
            page.get_by_role("button", name="Stop").click()
            page.get_by_text("Stopped. Nothing half done is kept.").wait_for()
            assert page.locator("#reply").is_hidden()
            said = client.get("/sessions/stopped/history").json()["items"]
            assert [one["role"] for one in said if one["role"] == "assistant"] == []
            client.close()


# ---- live


def test_twenty_messages_a_second_all_appear_in_order_and_once(page, service):
    service.begin("live", messages=[user("Begin."), reply("Begun.")])
    page.goto("/web/s/live")
    began = time.monotonic()
    for number in range(60):
        service.say("live", user(f"Number {number:03}") if number % 2 == 0 else reply(f"Number {number:03}"))
        time.sleep(max(0.0, began + (number + 1) / 20 - time.monotonic()))
    seen(page, "Number 059")
    texts = " ".join(page.locator("#history article .text").all_inner_texts())
    assert re.findall(r"Number (\d+)", texts) == [f"{number:03}" for number in range(60)]


# ---- keys, sizes, colours


def tab_to(page, what):
    """Press Tab until an element that fits has the focus."""
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("what => document.activeElement.matches(what)", what):
            return
    raise AssertionError(f"{what} is not reached by Tab")


def test_all_of_it_is_reached_by_keys(page, service):
    service.begin("keys", messages=talk(12))
    page.goto("/web/s/keys")
    tab_to(page, ".actions summary")
    page.keyboard.press("Enter")
    tab_to(page, "#focus")
    tab_to(page, ".actions button[formaction]")
    page.keyboard.press("Enter")
    seen(page, "Folded:")
    tab_to(page, ".message .menu > summary")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    seen(page, "Pinned: every")
    tab_to(page, "#words")
    page.keyboard.type("Said by keys.")
    tab_to(page, "#say button.main")
    page.keyboard.press("Enter")
    page.locator("#history article.user", has_text="Said by keys.").wait_for()
    page.locator("#stop").wait_for(state="hidden")
    tab_to(page, ".tabs a[href*=receipts]")
    page.keyboard.press("Enter")
    page.locator("#panel h3", has_text="Folds").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_down_alone(page, service, scheme):
    name = f"phone-{scheme}"
    service.begin(name, title="W" * 120, messages=[*talk(12), user("x" * 3_000), reply("`" + "y" * 3_000)])
    service.post(f"/sessions/{name}/compact")
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme=scheme)
    for path in ("", "?q=Question", *(f"s/{name}?panel={panel}&q=Question" for panel, _ in PANELS)):
        page.goto(f"/web/{path}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page.locator(".actions summary", has_text="More").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# ---- accessibility


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The program of axe-core; `FOLDLINE_AXE` names a folder whose node_modules hold it already."""
    ready = os.environ.get("FOLDLINE_AXE")
    folder = Path(ready) if ready else tmp_path_factory.mktemp("axe")
    if not ready:
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed")
        install = [npm, "install", "--no-fund", "--no-audit", "--prefix", str(folder), "axe-core@4"]
        if subprocess.run(install, capture_output=True, timeout=60, check=False).returncode:
            pytest.skip("npm could not install axe-core")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def serious(page, axe):
    """The findings of axe on a page that matter: rule and element."""
    page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [
        (one["id"], one["nodes"][0]["html"][:160], one["nodes"][0]["failureSummary"][:300])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page, service, axe, scheme):
    name = f"axe-{scheme}"
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    tools = [
        user("Read it."),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "Lines."},
    ]
    service.begin(name, messages=[*talk(12), *tools, reply("Read.")])
    service.post(f"/sessions/{name}/compact")
    service.say(name, *talk(12, first=100)[2:])
    page.emulate_media(color_scheme=scheme)
    places = ["", "?q=Question", "login", *(f"s/{name}?panel={panel}&q=Question" for panel, _ in PANELS)]
    found = {}
    for place in places:
        page.goto(f"/web/{place}")
        found[place] = serious(page, axe)
    page.locator(".message .menu summary").first.click()
    found["menu"] = serious(page, axe)
    page.locator(".actions summary", has_text="Hand off").click()
    page.get_by_label("What is the new session for?").fill("Go on")
    page.get_by_role("button", name="Preview").last.click()
    page.locator("#text").wait_for()
    found["hand-off"] = serious(page, axe)
    page.goto(f"/web/s/{name}")
    fold_menu(page)
    page.get_by_role("button", name="Preview").first.click()
    page.locator("#summary").wait_for()
    found["preview"] = serious(page, axe)
    assert {place: one for place, one in found.items() if one} == {}
