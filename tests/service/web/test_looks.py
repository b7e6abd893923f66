"""The page for everyone: hostile sessions, keys alone, a phone, both colour schemes, screen readers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.service.api.client import chat, reply, user
from tests.service.web.browser import DROP, HOSTILE, PHONE, fold, menu, open_page, panel, wait_for

from foldline.service.web.session_page import PANELS

pytestmark = pytest.mark.slow


def test_nothing_that_a_session_holds_runs(page, service):
    """In what the user says, a result, a file's name, a title, a summary; `page` sees to it that nothing ran."""
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"path": "<b>"}'}}
    said = [
        user(f"Never do {HOSTILE}."),
        {"role": "assistant", "content": HOSTILE, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": HOSTILE},
        *chat(12),
    ]
    service.begin("hostile", title=HOSTILE, messages=said)

    def clean():
        assert (
            page.locator("img, main script, main svg:not(.course, .gauge svg, #bars svg, .icon)").count() == 0
        )

    page.goto("/web/s/hostile")
    assert HOSTILE in page.locator("h1").inner_text()
    fold(page, "Preview", HOSTILE)
    summary = page.locator("#summary")
    summary.fill(f"{summary.input_value()}\n{HOSTILE}")
    clean()
    page.get_by_role("button", name="Fold", exact=True).click()
    page.locator(".fold-line.holds summary").click()
    assert HOSTILE in page.locator(".fold-line.holds").inner_text()
    clean()
    for name, _ in PANELS.values():
        panel(page, name)
        clean()
    for path in ("/web/", "/web/?q=script", "/web/s/hostile?problem=" + HOSTILE.replace("&", "%26")):
        page.goto(path)
        clean()
    page.goto("/web/")
    page.evaluate(DROP, [Path("examples/session.jsonl").read_text(encoding="utf-8"), f"{HOSTILE}.jsonl"])
    wait_for(page, "Imported 173 messages")
    page.goto("/web/replay")
    page.evaluate(DROP, ["{bad", f"{HOSTILE}.jsonl"])
    page.get_by_role("button", name="Replay").click()
    page.locator("h1", has_text="window.ran").wait_for()
    clean()


# ---- keys


def tab_to(page, what):
    """Press Tab until an element that fits has the focus."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("what => document.activeElement.matches(what)", what):
            return
    raise AssertionError(f"{what} is not reached by Tab")


def test_all_of_it_is_reached_by_keys(page, service):
    service.begin("keys", messages=chat(12))
    page.goto("/web/s/keys")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    tab_to(page, ".actions summary")
    page.keyboard.press("Enter")
    tab_to(page, "#focus")
    page.keyboard.type("the numbers")
    page.keyboard.press("Enter")  # its first button: the preview
    page.locator("#summary").wait_for()
    tab_to(page, "#fold button.main")
    page.keyboard.press("Enter")
    wait_for(page, "Folded as previewed")
    tab_to(page, ".message .menu > summary")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    wait_for(page, "Pinned: the model")
    tab_to(page, "#words")
    page.keyboard.type("Said by keys.")
    page.keyboard.press("Control+Enter")
    page.locator("#history article.user", has_text="Said by keys.").wait_for()
    page.locator("#stop").wait_for(state="hidden")
    tab_to(page, ".tabs a[href*=receipts]")
    page.keyboard.press("Enter")
    page.locator("#panel h3", has_text="Folds").wait_for()


def test_keys_lead_through_the_messages_and_to_all_that_can_be_done(page, service):
    service.begin("shortcuts", messages=chat(12))
    page.goto("/web/s/shortcuts")
    page.keyboard.press("j")
    held = "document.activeElement.id"
    first = page.evaluate(held)
    page.keyboard.press("k")
    second = page.evaluate(held)
    assert first.startswith("e-")
    assert second.startswith("e-")
    assert first != second
    page.keyboard.press("c")
    assert page.evaluate(held) == "words"
    page.keyboard.type("j/k")
    assert page.locator("#words").input_value() == "j/k"  # a field takes what is typed
    page.locator("h1").click()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    page.locator("#recall:focus").wait_for()
    page.get_by_role("button", name="Commands").click()
    page.keyboard.type("download")
    assert page.locator("#palette li").all_inner_texts() == ["Download"]
    page.keyboard.press("Enter")
    page.locator("#format:focus").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("replay")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/web/replay*")


def test_keys_that_act_alone_are_switched_off_and_on(page, service):
    service.begin("no-single-keys", messages=chat(4))
    page.goto("/web/s/no-single-keys")
    held = "document.activeElement.id"
    for now, reached in (("off", False), ("on", True)):
        page.keyboard.press("Control+k")
        page.keyboard.type("switch the keys")
        assert page.locator("#palette li").all_inner_texts() == [f"Switch the keys j, k, c and / {now}"]
        page.keyboard.press("Enter")
        page.reload()  # it is remembered
        page.keyboard.press("c")
        assert (page.evaluate(held) == "words") is reached


# ---- sizes and colours


@pytest.mark.parametrize("size", [{"width": 1280, "height": 720}, PHONE], ids=["desktop", "phone"])
def test_the_field_to_write_in_and_the_meter_stay_in_view(chromium, service, size):
    name = f"shell-{size['width']}"
    service.begin(name, messages=chat(20))
    with open_page(chromium, service.url, viewport=size) as page:
        page.goto(f"/web/s/{name}")
        for end in ("newest", "oldest"):
            for what in ("#words", "#gauge", ".actions summary.main", "#map svg"):
                box = page.locator(what).first.bounding_box()
                assert box["y"] >= 0, (end, what)
                assert box["y"] + box["height"] <= size["height"], (end, what)
            page.locator("#history article").first.scroll_into_view_if_needed()
        small = page.evaluate(SMALL)
        assert small == []
        seen_of_it = page.locator("#seen").bounding_box()  # a part of the map
        assert max(seen_of_it["width"], seen_of_it["height"]) < size["width"] / 2 + 100
        page.locator("#map a").first.click()
        page.wait_for_url("**#e-*")


SMALL = """() => [...document.querySelectorAll(
  ".actions > details > summary, .actions button, .tabs a, .menu > summary, .say button, .fold-line summary"
)].filter((one) => one.checkVisibility({contentVisibilityAuto: true}))
  .filter((one) => one.getBoundingClientRect().height < 32 || one.getBoundingClientRect().width < 32)
  .map((one) => one.outerHTML)"""


def test_a_phone_scrolls_down_alone(chromium, service):
    name = "phone"
    service.begin(name, title="W" * 120, messages=[*chat(12), user("x" * 3_000), reply("`" + "y" * 3_000)])
    with open_page(chromium, service.url, viewport=PHONE) as page:

        def narrow(what):
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), what

        page.goto(f"/web/s/{name}")
        fold(page, "Preview")
        page.locator("#summary").wait_for()
        narrow("preview")
        page.get_by_role("button", name="Fold", exact=True).click()
        page.locator(".fold-line").wait_for()
        for path in (
            "",
            "?q=Question",
            "login",
            "replay",
            f"s/{name}/download?format=codex",
            *(f"s/{name}?panel={one}&q=Question" for one in PANELS),
        ):
            page.goto(f"/web/{path}")
            narrow(path)
        for one in ("Fold", "Download", "More", "Hand off"):
            menu(page, one)
            narrow(one)
            page.mouse.click(3, 300)  # beside it
        menu(page, "Hand off")
        page.get_by_label("What is the new session for?").fill("Go on")
        page.get_by_role("button", name="Preview").last.click()
        page.locator("#text").wait_for()
        narrow("hand-off")


# ---- accessibility


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The program of axe-core; `FOLDLINE_AXE` names a folder whose node_modules hold it already."""
    ready = os.environ.get("FOLDLINE_AXE")
    folder = Path(ready) if ready else tmp_path_factory.mktemp("axe")
    if not ready:
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("no npm: install Node.js with npm")
        install = [npm, "install", "--no-fund", "--no-audit", "--prefix", str(folder), "axe-core@4"]
        if subprocess.run(install, capture_output=True, timeout=60, check=False).returncode:
            pytest.skip("npm could not install axe-core: its registry must be reachable")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def violations(page, axe):
    """The findings of axe on a page: rule and element."""
    page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [
        (one["id"], one["nodes"][0]["html"][:160], one["nodes"][0]["failureSummary"][:300]) for one in found
    ]


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page, service, axe, scheme):
    name = f"axe-{scheme}"
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    tools = [
        user("Read it."),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "Lines.\n" * 100},
    ]
    service.begin(
        name, messages=[*tools, *chat(12), *tools, reply("Read **all** of [it](https://a.example).")]
    )
    found = {}
    page.emulate_media(color_scheme=scheme)

    def check(what):
        found[what] = violations(page, axe)

    page.goto(f"/web/s/{name}")
    fold(page, "Preview")
    page.locator("#summary").wait_for()
    check("preview")
    page.get_by_role("button", name="Fold", exact=True).click()
    page.locator(".fold-line").wait_for()
    check("notice")
    page.get_by_role("button", name="Undo fold").click()
    page.locator(".fold-line.undone").wait_for()
    check("undone")
    page.get_by_role("button", name="Redo fold").click()
    page.locator(".fold-line.holds").wait_for()
    service.say(name, *chat(12, first=100)[2:])
    for place in (
        "",
        "?q=Question",
        "login",
        "overview",
        "connect",
        "replay",
        f"s/{name}/download?format=codex",
        *(f"s/{name}?panel={one}&q=Question" for one in PANELS),
    ):
        page.goto(f"/web/{place}")
        check(place)
    for one in ("Fold", "Download", "More"):
        menu(page, one)
        check(one)
        page.keyboard.press("Escape")
    for step in page.locator(".step > summary").all():
        step.click()
    check("calls")
    page.set_viewport_size(PHONE)
    page.locator("#history article").first.scroll_into_view_if_needed()
    check("phone")
    page.locator(".message .menu summary").first.click()
    check("menu")
    menu(page, "Hand off")
    page.get_by_label("What is the new session for?").fill("Go on")
    page.get_by_role("button", name="Preview").last.click()
    page.locator("#text").wait_for()
    check("hand-off")
    page.goto(f"/web/replay?session={name}")
    page.get_by_label("Context window").fill("60000")
    page.get_by_role("button", name="Replay").click()
    page.locator("#progress").wait_for()
    check("replay under way")
    page.get_by_text("Done in").wait_for(timeout=90_000)
    check("replay")
    assert {place: one for place, one in found.items() if one} == {}
