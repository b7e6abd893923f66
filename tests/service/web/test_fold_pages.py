"""Folds in pages without a script: made, previewed, edited, undone, and found again."""

from __future__ import annotations

import re

from tests.service.api.client import FILLER, RULE, chat, reply, user
from tests.service.web.plain_browser import browsing

from foldline.service.api import history
from foldline.service.web import previews
from foldline.testing import Refusal


def test_folding_undoing_and_redoing_by_buttons(browser):
    browser.client.begin("one", messages=chat(20))
    page = browser.post("/web/s/one/do/compact", instructions="numbers")
    assert "Folded:" in page
    assert "folded messages" in page
    assert page.count('class="fold-line') == 1
    assert re.search(r"<b>\d+ messages folded</b>", page)
    page = browser.post("/web/s/one/do/undo")
    assert "is undone" in page
    assert 'class="fold-line undone' in page
    assert "The fold is in effect again" in browser.post("/web/s/one/do/redo")
    assert "Nothing was folded" in browser.post("/web/s/one/do/compact")


def test_folding_up_to_and_from_a_message_by_its_buttons(browser):
    browser.client.begin("one", messages=chat(20))
    entry = browser.client.get("/sessions/one/history", limit=100).json()["items"][8]["entry"]
    assert "Fold from here" in browser.get("/web/s/one")
    page = browser.post("/web/s/one/do/fold-since", entry=entry)
    assert "Folded:" in page
    assert 'class="fold-line holds' in page
    assert "&lt;folded-range&gt;" in page
    browser.post("/web/s/one/do/undo")
    assert 'class="fold-line holds' in browser.post("/web/s/one/do/fold-up-to", entry=entry)
    assert "cannot be folded: it was folded before" in browser.post("/web/s/one/do/fold-since", entry=entry)


def test_a_fold_is_shown_edited_and_made_and_messages_are_kept_in_it(browser):
    browser.client.begin("one", messages=chat(20))
    first = browser.client.get("/sessions/one/history", limit=100).json()["items"][4]
    page = browser.post("/web/s/one/preview", instructions="")
    assert "Preview of a fold" in page
    assert f'<span class="chip">{RULE}</span>' in page
    assert re.search(r"<b>Now</b> <span>[\d,]+ tokens", page)
    assert "Changes from the previous" not in page  # there is no summary before it
    (name,) = set(re.findall(r"/preview/([0-9a-f]+)/commit", page))
    page = browser.post(f"/web/s/one/preview/{name}/keep", keep=first["entry"], instructions="")
    assert "checked disabled" in page
    (name,) = set(re.findall(r"/preview/([0-9a-f]+)/commit", page))
    page = browser.post(f"/web/s/one/preview/{name}/commit", summary="## Goal\n\nA summary of my own.")
    assert "Folded as previewed" in page
    view = browser.client.get("/sessions/one/view").text
    assert "A summary of my own." in view
    assert first["parts"][0]["text"][:40] in view
    assert RULE in page  # the summary has left it out, which is told


def test_a_preview_has_an_address_and_tells_what_it_changes(browser):
    browser.client.begin("one", messages=chat(20))
    browser.post("/web/s/one/do/compact")
    browser.client.say("one", *chat(20, first=100)[2:])
    made = browser.http.post("/web/s/one/preview", data={"instructions": "numbers"})
    assert made.history[0].status_code == 303
    page = browser.get(made.url.path, instructions="numbers")
    assert 'name="instructions" value="numbers"' in page
    assert "Changes from the previous summary" in page
    assert 'class="hl-gi"' in page
    browser.post(f"{made.url.path}/drop")
    assert "That preview has expired" in browser.get(made.url.path)


def numbers_of(page):
    """How many messages a preview says go and stay, and how many rows it lists of each."""
    told = re.search(r"Of ([\d,]+) messages, (\d+) go and (\d+) stay", page).groups()
    goes, stays = re.findall(r'<div class="pick".*?</div>', page, re.DOTALL)
    return [int(one.replace(",", "")) for one in told], goes.count("<li"), stays.count("<li")


def test_a_preview_counts_all_messages_that_are_sent(browser, monkeypatch):
    system = {"role": "system", "content": "Be brief."}
    browser.client.begin("one", messages=[system, *chat(20)])
    (whole, go, stay), goes, stays = numbers_of(browser.post("/web/s/one/preview"))
    assert (go, stay) == (goes, stays)
    assert whole == go + stay == 43
    monkeypatch.setattr(previews, "SHOWN", 5)  # messages that are looked at: what goes is older
    page = browser.post("/web/s/one/preview")
    assert numbers_of(page) == ([whole, go, stay], 0, 5)
    assert f"{go} older ones go too but are not listed here" in page
    monkeypatch.undo()
    browser.post("/web/s/one/do/compact")
    browser.client.say("one", *chat(20, first=100)[2:])
    (whole, go, stay), goes, stays = numbers_of(browser.post("/web/s/one/preview"))
    assert (go, stay) == (goes, stays)


def test_a_fold_says_that_code_wrote_its_summary_because_the_model_failed():
    def answer(asked):
        return Refusal(400, "the model is down") if "summar" in str(asked.messages[0]) else f"Reply. {FILLER}"

    with browsing(answer, summaries="upstream", window=9_000) as browser:
        browser.client.begin("one", messages=chat(8))
        for number in range(8):
            browser.post("/web/s/one/say", text=f"Question {number}. {FILLER}")
        page = browser.get("/web/s/one")
    assert re.search(
        r"(?s)fold-line holds.*code wrote the summary: .* wrote no summary: .*the model is down", page
    )


def test_pages_do_not_write_messages_as_they_are_sent(browser, monkeypatch):
    browser.client.begin("one", messages=chat(20))
    written = []
    monkeypatch.setattr(history, "as_text", written.append)
    for page in (browser.post("/web/s/one/preview"), browser.get("/web/s/one", panel="tokens")):
        assert "Question 19." in page
    assert not written  # it took a third of the time of a long preview


def test_what_goes_and_stays_is_listed_by_turns_with_their_figures(browser):
    browser.client.begin("one", messages=chat(20))
    page = browser.post("/web/s/one/preview")
    turns = re.findall(
        r'<details class="turn"( open)?><summary>(.*?)</summary>(.*?)</details>', page, re.DOTALL
    )
    for _, closed, rows in turns:
        sizes = [int(one.replace(",", "")) for one in re.findall(r'class="quiet">([\d,]+)</span></li>', rows)]
        told = re.search(r"(\d+) messages?, ([\d,]+) tokens", closed)
        assert (int(told[1]), int(told[2].replace(",", ""))) == (len(sizes), sum(sizes))
    assert [rows.count('<li class="user"') for _, _, rows in turns].count(1) == 21
    assert not any(is_open for is_open, _, _ in turns)
    entry = re.search(r'name="keep" value="([^"]+)"', turns[0][2])[1]
    page = browser.post(f"{preview_of(page)}/keep", keep=entry)
    assert page.count('<details class="turn" open>') == 1  # what is kept is in sight


def preview_of(page):
    (name,) = set(re.findall(r"/preview/([0-9a-f]+)/drop", page))
    return f"/web/s/one/preview/{name}"


def pins(browser):
    return [one["entry"] for one in browser.client.get("/sessions/one/pins").json()["pins"]]


def test_what_a_preview_pinned_is_told_and_taken_back(browser):
    browser.client.begin("one", messages=chat(20))
    entries = [one["entry"] for one in browser.client.get("/sessions/one/history", limit=100).json()["items"]]
    page = browser.post("/web/s/one/preview")
    assert "nothing has changed yet" in page
    page = browser.post(f"{preview_of(page)}/keep", keep=entries[4:6])
    assert "2 messages pinned so far" in page
    assert "nothing has changed yet" not in page
    known = preview_of(page)
    for step in ("keep", "commit"):  # all that could go: nothing is left to fold
        page = browser.post(f"{known}/{step}", keep=entries, kept=entries[4:6], summary="My own words.")
        assert "Nothing was folded" in page
        assert "2 messages pinned so far" in page
        assert preview_of(page) == known
        assert "My own words." in page
    browser.post(f"{known}/drop", kept=entries[4:6])
    assert pins(browser) == []


def test_an_edited_summary_is_shown_again_where_its_fold_cannot_be_made(browser):
    browser.client.begin("one", messages=chat(20))
    known = preview_of(browser.post("/web/s/one/preview"))
    edited = {"summary": "My own words. " * 20_000}
    page = browser.post(f"{known}/commit", **edited)
    assert "Nothing was folded" in page
    assert edited["summary"] in page
    assert preview_of(page) == known  # it can be edited again
    browser.post(f"{known}/drop")
    page = browser.post(f"{known}/commit", summary="My own words.")
    assert "That preview has expired" in page
    assert "My own words." in page
    browser.post("/web/s/one/do/compact")
    page = browser.post(f"{known}/commit", summary="My own words.", kept=[])
    assert "My own words." in page  # nothing can be folded any more: to be copied
    assert "Folded as previewed" not in browser.get("/web/s/one")


def test_a_fold_before_the_first_page_is_led_to(browser):
    browser.client.begin("one", messages=chat(20))
    fold = browser.client.post("/sessions/one/compact").json()
    browser.client.say("one", *chat(100, first=100)[2:])
    boundary = browser.client.get("/sessions/one/boundaries").json()["boundaries"][0]["entry"]
    assert fold
    assert f'id="e-{boundary}"' not in browser.get("/web/s/one")
    assert f"/at/{boundary}" in browser.get("/web/s/one", panel="receipts")
    assert f'id="e-{boundary}"' in browser.get(f"/web/s/one/at/{boundary}")


def test_each_fold_of_the_panel_leads_to_a_page_with_its_mark(browser):
    short = [one for number in range(30) for one in (user(f"Short {number}."), reply("Yes."))]
    browser.client.begin("one")
    for number in range(3):  # a fold is made pages behind the first message that it keeps
        browser.client.say("one", *chat(20, first=100 * number)[2:])
        last = browser.client.leaf("one")[1:-1]
        browser.client.say("one", *short)
        found = browser.client.post("/sessions/one/compact", {"up_to": last}).json()
        assert found["receipt"]["messages_after"] > 60
    panel = browser.get("/web/s/one", panel="receipts")
    links = re.findall(r'<a href="(/web/s/one/at/[0-9a-f]+)[^"]*">Fold \d', panel)
    assert len(links) == 3
    for link in links:
        assert f'id="e-{link.rpartition("/")[2]}"' in browser.get(link)
