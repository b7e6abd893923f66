"""The list of sessions: the first steps, files at once, what a search finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.service.api.client import api, reply, user
from tests.service.web.browser import DESKTOP, DROP, PHONE, menu, open_page, wait_for
from tests.service.web.plain_browser import TOKEN, browsing

from foldline.service.web.connecting import FRAMEWORKS, USUAL, agents, frameworks
from foldline.service.web.shown import marked


def test_the_first_steps_are_commands_for_each_agent_and_framework():
    lines = {one.name: one.lines for one in agents(USUAL)}
    assert lines["Claude Code"].splitlines()[0].startswith("foldline wrap claude")
    assert "--gateway" not in lines["Claude Code"]
    assert lines["pi"] == "foldline wrap pi\npi"
    elsewhere = {one.name: one.lines for one in agents("http://127.0.0.1:9000")}
    assert "foldline wrap codex --gateway http://127.0.0.1:9000" in elsewhere["Codex"]
    assert "OPENAI_BASE_URL=http://127.0.0.1:9000/v1" in elsewhere["An agent or SDK for OpenAI"]
    for store in ("", "sqlite:///s.db"):
        for one, row in zip(frameworks(store), FRAMEWORKS, strict=True):
            assert "{" not in one.lines
            assert (f'"{store}"' in one.lines) == bool(store), one.lines
            module = row[1].replace("-", "_")
            assert Path(f"src/foldline/adapters/{module}.py").read_text(encoding="utf-8").count(row[2])


def test_an_empty_list_shows_them_and_fills_by_itself(browser):
    page = browser.get("/web/")
    assert "There are no sessions yet. Waiting for the first request" in page
    assert f"foldline wrap claude --gateway {browser.client.url}" in page
    assert "foldline wrap claude" in browser.get("/web/connect")
    assert "Nothing saved since" in browser.get("/web/overview")
    assert browser.again(page, "list").status_code == 204  # nothing has changed
    browser.client.begin("first", title="The first", messages=[user("Hello."), reply("Hello.")])
    found = browser.again(page, "list")
    assert "The first" in found.text
    assert "folds in" not in browser.get("/web/s/first")  # in thousands of turns
    assert "<html" not in found.text
    assert browser.again(found.text, "list").status_code == 204
    assert "<html" in browser.get("/web/list")  # without a script it is the page


def test_a_service_for_others_does_not_tell_where_its_store_is(tmp_path):
    with browsing(store=f"sqlite:///{tmp_path / 'hidden.db'}", token=TOKEN) as browser:
        page = browser.post("/web/login", token=TOKEN)
        assert "foldline-token" in page
        assert "hidden.db" not in page


def test_many_files_are_imported_at_once(browser):
    given = [
        ("file", (f"{n}.jsonl", Path(f"examples/{n}.jsonl").read_bytes())) for n in ("session", "research")
    ]
    page = browser.post("/web/import", files=[*given, ("file", ("bad.jsonl", b"\x00\xff"))])
    assert "Imported 2 of 3 files. bad.jsonl was not imported" in page
    assert browser.client.get("/sessions").json()["total"] == 2
    bad = [("file", (f"{n}.jsonl", b"\x00\xff")) for n in range(2)]
    page = browser.post("/web/import", 400, files=bad)
    assert "0.jsonl was not imported" in page
    assert "1.jsonl was not imported" in page


def test_a_search_marks_its_words_has_pages_and_finds_a_message_once(browser):
    browser.client.begin("one", messages=[user(f"Paint plank {n} green.") for n in range(30)])
    browser.client.post("/sessions/one/fork")
    page = browser.get("/web/", q="plank gre")
    assert page.count("<mark>plank</mark>") == 20
    assert "<mark>green</mark>" in page
    assert "1 to 20" in page
    assert 'id="list"' not in page  # what was found stands alone
    more = re.search(r'href="([^"]+)">More</a>', page)[1].replace("&amp;", "&")
    last = browser.get(more)
    assert last.count("<mark>plank</mark>") == 10
    assert ">More</a>" not in last
    places = re.findall(r"/at/([^\"]+)", page + last)
    assert len(set(places)) == len(places) == 30
    assert "Each word must be the beginning" in browser.get("/web/", q="zebra")


def test_what_is_marked_is_what_a_search_looks_for():
    assert marked("Grün, green.", "GRUN") == [("Grün", True), (", ", False), ("green", False), (".", False)]
    assert "".join(text for text, _ in marked("a_b <c> 日本", "日")) == "a_b <c> 日本"
    assert marked("", "x") == []


@pytest.mark.slow
def test_a_list_that_waits_fills_without_being_loaded_anew(chromium, tmp_path):
    with api(store=f"sqlite:///{tmp_path / 's.db'}") as (client, _), open_page(chromium, client.url) as page:
        page.goto("/web/")
        page.evaluate("window.same = true")
        page.locator(".recipe button", has_text="Copy").first.wait_for()
        client.begin("late", title="It came late", messages=[user("Hello.")])
        wait_for(page, "It came late")
        assert page.evaluate("window.same")
        assert page.locator(".recipe").count() == 0
        for file in ("session", "research"):
            client.send("POST", "/imports", content=Path(f"examples/{file}.jsonl").read_bytes())
        page.locator("tbody tr").nth(2).wait_for()


@pytest.mark.slow
def test_many_files_show_how_far_they_are_and_can_be_stopped(chromium, tmp_path):
    raw = Path("examples/research.jsonl").read_bytes()
    files = [
        {"name": f"{n}.jsonl", "mimeType": "text/plain", "buffer": raw.replace(b"Hebe", b"Hebe %d" % n)}
        for n in range(3)
    ]
    files[1]["buffer"] = b"\x00\xff"
    store = f"sqlite:///{tmp_path / 's.db'}"
    with api(store=store) as (client, _), open_page(chromium, client.url, refused=True) as page:
        held = []

        def bring():
            page.goto("/web/")
            menu(page, "Import")
            page.set_input_files("#file", files)
            page.get_by_role("button", name="Import", exact=True).click()

        bring()
        wait_for(page, "Imported 2 of 3 files. 1.jsonl was not imported")
        assert client.get("/sessions").json()["total"] == 2
        assert "notice" not in page.url  # what came of it is told once

        def hold(route):
            held.append(route)
            if len(held) < 3:
                route.continue_()

        page.route("**/web/import", hold)
        bring()
        wait_for(page, "Importing 3 of 3: 2.jsonl")
        page.get_by_role("button", name="Cancel").click()
        wait_for(page, "Imported 1 of 3 files. 1.jsonl was not imported")
        wait_for(page, "Stopped.")
        page.unroute("**/web/import")
        first = iter([lambda route: route.abort()])
        page.route("**/web/import", lambda route: next(first, lambda route: route.continue_())(route))
        bring()
        wait_for(
            page,
            "Imported 1 of 3 files. 0.jsonl was not imported: the service does not answer. 1.jsonl was not",
        )


@pytest.mark.slow
def test_several_files_dropped_on_a_replay_are_not_imported(page, service):
    before = service.get("/sessions").json()["total"]
    page.goto("/web/replay")
    page.evaluate(DROP, ["{}", "a.jsonl", "b.jsonl"])
    wait_for(page, "Drop one file.")
    page.evaluate(DROP, [Path("examples/research.jsonl").read_text(encoding="utf-8"), "a.jsonl"])
    assert page.locator("#file").evaluate("one => one.files.length") == 1
    page.get_by_role("button", name="Replay").click()
    page.wait_for_url("**/web/replay/*")
    assert service.get("/sessions").json()["total"] == before


@pytest.mark.slow
def test_a_phone_sorts_the_list(chromium, tmp_path):
    with (
        api(store=f"sqlite:///{tmp_path / 's.db'}") as (client, _),
        open_page(chromium, client.url, viewport=PHONE) as page,
    ):
        client.begin("long", messages=[user("Hello."), reply("Hello."), user("And?")])
        client.begin("short", messages=[user("Hello.")])
        page.goto("/web/")
        for by, first in (("Messages, most first", "long"), ("Messages, least first", "short")):
            page.get_by_label("Sorted by").select_option(by)
            page.locator("tbody tr").first.locator(f"#s-{first}").wait_for()
        page.reload()
        page.locator("tbody tr").first.locator("#s-short").wait_for()
        page.set_viewport_size(DESKTOP)
        page.get_by_label("Sorted by").wait_for(state="hidden")


@pytest.mark.slow
def test_a_list_that_changes_keeps_what_is_held_and_seen_of_it(chromium, tmp_path):
    with (
        api(store=f"sqlite:///{tmp_path / 's.db'}") as (client, _),
        open_page(chromium, client.url, viewport={"width": 700, "height": 600}) as page,
    ):
        client.begin("first", title="x" * 120, messages=[user("Hello.")])
        page.goto("/web/")
        page.locator("#rows").focus()
        page.locator("#rows").evaluate("one => one.scrollTo(90, 0)")
        client.begin("second", messages=[user("Hello.")])
        page.locator("#s-second").wait_for(state="attached")
        assert page.locator("#rows:focus").count() == 1
        assert page.locator("#rows").evaluate("one => one.scrollLeft") == 90


def test_what_is_asked_for_again_and_again_has_names_for_what_can_be_held(browser):
    browser.client.begin("one", title="One", messages=[user("Hello."), reply("Hello.")])
    for page in (browser.get("/web/"), browser.get("/web/?f=nothing"), browser.get("/web/overview")):
        again = page[page.index('hx-trigger="every') :].partition("</main>")[0]
        held = re.findall(r"<(?:a|button|summary)\b[^>]*>|<[^>]* tabindex=[^>]*>", again)
        assert held
        assert [one for one in held if " id=" not in one] == []


def test_a_title_of_blanks_is_none(browser):
    browser.client.begin("blank", title="  ")
    assert '<a id="s-blank" href="/web/s/blank">blank</a>' in browser.get("/web/")
    assert "<h1>blank</h1>" in browser.get("/web/s/blank")


def test_an_overview_in_which_nothing_has_changed_is_not_put_in_place(browser):
    browser.client.begin("one", messages=[user("Hello."), reply("Hello.")])
    page = browser.get("/web/overview")
    assert browser.again(page, "overview").status_code == 204
    browser.client.say("one", user("And?"))
    found = browser.again(page, "overview")
    assert found.status_code == 200
    assert browser.again(found.text, "overview").status_code == 204
