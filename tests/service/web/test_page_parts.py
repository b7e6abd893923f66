"""What changes of an open page: what was said since, calls with their results, what a button did."""

from __future__ import annotations

import re

from tests.service.api.client import chat, reply, user
from tests.service.web.plain_browser import PART


def test_what_was_said_meanwhile_comes_by_itself(browser):
    browser.client.begin("one", messages=chat(20))
    page = browser.get("/web/s/one")
    assert browser.again(page, "live").status_code == 204
    browser.client.say("one", user("And this?"), reply("This, too."))
    found = browser.again(page, "live")
    assert "And this?" in found.text
    assert "Question 19" not in found.text
    assert '<div id="history"' not in found.text
    assert browser.again(found.text, "live").status_code == 204
    browser.client.post("/sessions/one/compact")
    found = browser.again(found.text, "live")
    assert '<div id="history" hx-swap-oob="innerHTML">' in found.text
    assert "fold-line" in found.text
    browser.client.send("DELETE", "/sessions/one")
    assert browser.again(page, "live").status_code == 286  # asks no more
    browser.get("/web/s/one", 404)


def calling(*ids):
    calls = [
        {"id": one, "type": "function", "function": {"name": "read", "arguments": f'{{"path": "{one}.py"}}'}}
        for one in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answer(call, text):
    return {"role": "tool", "tool_call_id": call, "content": text}


def test_a_call_and_what_it_was_answered_are_one_row(browser):
    browser.client.begin(
        "one", messages=[user("Read both."), calling("a", "b"), answer("b", "def b(): pass")]
    )
    page = browser.get("/web/s/one")
    steps = re.findall(r'<details class="step" id="c-([^"]+)">(.*?)<details class="step"', page, re.DOTALL)
    assert "no result yet" in steps[0][1]
    assert page.count("no result yet") == 1
    entry = browser.client.get("/sessions/one/history").json()["items"][-1]["entry"]
    assert page.index('id="c-') < page.index("<code>read</code>") < page.index(f'id="e-{entry}"')
    browser.client.say("one", answer("a", "def a(): pass"), user("And c?"), calling("c"), answer("c", "none"))
    found = browser.again(page, "live").text
    assert f'hx-swap-oob="beforeend:#c-{steps[0][0]}"' in found
    assert found.count('hx-swap-oob="beforeend') == 1
    assert found.count('class="message assistant') == 1  # the row of c, with its result in it


def test_texts_are_shown_as_they_were_written_at_a_switch(browser):
    browser.client.begin(
        "one", messages=[user("Hi."), reply("**Bold** words."), calling("a"), answer("a", "x")]
    )
    page = browser.get("/web/s/one")
    assert "<strong>Bold</strong>" in page
    assert "<dt>path</dt>" in page
    page = browser.get("/web/s/one/raw", on="1")
    assert "**Bold** words." in page
    assert "<dt>path</dt>" not in page
    assert "<strong>Bold</strong>" in browser.get("/web/s/one/raw", on="0")


def test_a_result_in_json_is_rows_and_a_file_in_json_stays_as_it_is(browser):
    result = '{"found": 2, "log": "' + "x" * 2_001 + '"}'
    file = {"id": "f", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.json"}'}}
    asked = {"role": "assistant", "content": None, "tool_calls": [file]}
    browser.client.begin(
        "one", messages=[user("Look."), calling("a"), answer("a", result), asked, answer("f", result)]
    )
    page = browser.get("/web/s/one")
    assert page.count("<dt>found</dt><dd><code>") == 1
    assert page.count('<details class="rest"><summary>2,001 characters</summary>') == 1
    assert "<dt>found</dt>" not in browser.get("/web/s/one/raw", on="1")


def test_what_a_button_did_is_put_in_place_for_a_page_with_a_script(browser):
    browser.client.begin("one", messages=chat(20))
    found = browser.press("/web/s/one/do/compact")
    assert "<html" not in found.text
    assert found.headers["hx-trigger-after-settle"] == "folded"
    assert found.text.count('class="fold-line') == 1
    assert re.search(
        r'<p class="notice"[^>]*>Folded: .*?</p>\s*<form action="/web/s/one/do/undo"', found.text
    )
    found = browser.press("/web/s/one/do/undo")
    assert "is undone" in found.text
    assert found.headers["hx-trigger-after-settle"] == "done"
    assert "There is no fold to undo" in browser.press("/web/s/one/do/undo").text


def test_a_branch_and_a_merge_are_put_in_place_where_the_newest_messages_are_shown(browser):
    browser.client.begin("one", messages=chat(60))
    page = browser.get("/web/s/one")
    entry, leaf = re.findall(r'id="e-([^"]+)"', page)[-3], browser.client.leaf("one")[1:-1]
    assert re.search(r'<form [^>]*hx-post="/web/s/one/do/branch"', page)
    found = browser.press("/web/s/one/do/branch", entry=entry).text
    assert "The session continues from there" in found
    assert found.rindex('id="e-') == found.index(f'id="e-{entry}"')
    tree = browser.part("/web/s/one/panel/tree").text
    assert tree.count('hx-post="/web/s/one/do/branch"') == tree.count('hx-post="/web/s/one/do/merge"') == 1
    assert "A summary of that branch was added here" in browser.press("/web/s/one/do/merge", entry=leaf).text
    before = re.search(r'href="(/web/s/one\?before=[^"]+)"', browser.get("/web/s/one"))[1]
    assert "hx-post" not in browser.get(f"{before}&panel=tree")  # else what is shown would change its place
    there = {**PART, "hx-current-url": f"http://here{before}"}
    assert "hx-post" not in browser.http.get("/web/s/one/panel/tree", headers=there).text
