"""The list of sessions: the first steps, files at once, what a search finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.service.api.client import api, reply, user
from tests.service.web.browser import menu, opened, seen
from tests.service.web.test_pages import Browser
from tests.support import patient

from foldline.service.web.connecting import FRAMEWORKS, USUAL, agents, frameworks
from foldline.service.web.shown import marked


@pytest.fixture
def browser(tmp_path):
    with api(store=f"sqlite:///{tmp_path / 's.db'}") as (client, _):
        made = Browser(client)
        yield made
        made.http.close()


def part(browser, page, **query):
    """The list as htmx asks for it again."""
    path = re.search(r'id="list"[^>]* hx-get="([^"]+)"', page)[1].replace("&amp;", "&")
    return browser.http.get(path, params=query or None, headers={"hx-request": "true"})


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
    assert "There is none yet. Waiting for the first request" in page
    assert f"foldline wrap claude --gateway {browser.client.url}" in page
    assert "foldline wrap claude" in browser.get("/web/connect")
    assert part(browser, page).status_code == 204  # nothing has changed
    browser.client.begin("first", title="The first", messages=[user("Hello."), reply("Hello.")])
    found = part(browser, page)
    assert "The first" in found.text
    assert "<html" not in found.text
    assert part(browser, found.text).status_code == 204
    assert "<html" in browser.get("/web/list")  # without a script it is the page


def test_a_service_for_others_does_not_tell_where_its_store_is(tmp_path):
    token = "secret-for-pages"
    given = {"tokens": {token: "default"}, "headers": {"Authorization": f"Bearer {token}"}}
    with api(store=f"sqlite:///{tmp_path / 'hidden.db'}", **given) as (client, _):
        found = patient.get(f"{client.url}/web/", headers={"foldline-token": token})
        assert "foldline-token" in found.text
        assert "hidden.db" not in found.text


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
    more = re.search(r'href="([^"]+)">More</a>', page)[1].replace("&amp;", "&")
    last = browser.get(more)
    assert last.count("<mark>plank</mark>") == 10
    assert ">More</a>" not in last
    places = re.findall(r"/at/([^\"]+)", page + last)
    assert len(set(places)) == len(places) == 30
    assert "Every word must begin" in browser.get("/web/", q="zebra")


def test_what_is_marked_is_what_a_search_looks_for():
    assert marked("Grün, green.", "GRUN") == [("Grün", True), (", ", False), ("green", False), (".", False)]
    assert "".join(text for text, _ in marked("a_b <c> 日本", "日")) == "a_b <c> 日本"
    assert marked("", "x") == []


@pytest.mark.slow
def test_a_list_that_waits_fills_without_being_loaded_anew(chromium, tmp_path):
    with api(store=f"sqlite:///{tmp_path / 's.db'}") as (client, _), opened(chromium, client.url) as page:
        page.goto("/web/")
        page.evaluate("window.same = true")
        page.locator(".recipe button", has_text="Copy").first.wait_for()
        client.begin("late", title="It came late", messages=[user("Hello.")])
        seen(page, "It came late")
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
    with api(store=f"sqlite:///{tmp_path / 's.db'}") as (client, _), opened(chromium, client.url) as page:
        held = []

        def bring():
            page.goto("/web/")
            menu(page, "Import")
            page.set_input_files("#file", files)
            page.get_by_role("button", name="Import", exact=True).click()

        bring()
        seen(page, "Imported 2 of 3 files. 1.jsonl was not imported")
        assert client.get("/sessions").json()["total"] == 2
        assert "notice" not in page.url  # what came of it is told once

        def hold(route):
            held.append(route)
            if len(held) < 3:
                route.continue_()

        page.route("**/web/import", hold)
        bring()
        seen(page, "Importing 3 of 3: 2.jsonl")
        page.get_by_role("button", name="Cancel").click()
        seen(page, "Imported 1 of 3 files. 1.jsonl was not imported")
        seen(page, "Stopped.")
