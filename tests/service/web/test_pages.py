"""The pages without a script: every page can be read, and every button is a form."""

from __future__ import annotations

import html
import json
import re
from http.cookiejar import CookieJar
from urllib.parse import urlencode

import httpx2
import pytest
from tests.service.api.client import FILLER, RULE, api, chat, reply, user
from tests.service.served import AlternatingClients
from tests.service.web import claude_code
from tests.service.web.browser import HOSTILE

import foldline
from foldline.config import TokenGrant
from foldline.lab.panels import colours
from foldline.service.api import history
from foldline.service.web import previews, prose
from foldline.service.web.meter import KINDS
from foldline.service.web.session_page import PANELS
from foldline.testing import Refusal

POLICY = "content-security-policy"


class Browser:
    """Asks for pages as a browser without scripts would."""

    def __init__(self, client):
        self.client = client
        cookies = CookieJar()
        self.http = AlternatingClients(
            lambda one: httpx2.Client(
                base_url=one, follow_redirects=True, timeout=120, headers={"origin": one}, cookies=cookies
            ),
            client.url,
        )

    def get(self, path, status=200, **query):
        return self.checked(self.http.get(path, params=query or None), status)

    def post(self, path, status=200, files=None, **fields):
        found = self.http.post(path, data=fields, files=files)
        return self.checked(found, status)

    def checked(self, found, status):
        assert found.status_code == status, found.text
        assert "script-src 'self'" in found.headers[POLICY]
        assert "<script>" not in found.text
        assert " style=" not in found.text
        return found.text


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    store = f"sqlite:///{tmp_path_factory.mktemp('pages') / 's.db'}"
    with api(store=store, window=60_000) as (client, _):
        made = Browser(client)
        yield made
        made.http.close()


@pytest.fixture
def browser(shared):
    """A browser; what its test has begun, and chosen, is deleted behind it."""
    yield shared
    shared.http.cookies.clear()
    for one in shared.client.get("/sessions", limit=100).json()["sessions"]:
        shared.client.send("DELETE", f"/sessions/{one['id']}")


def test_the_list_searches_begins_and_imports(browser):
    assert "There are no sessions yet" in browser.get("/")
    page = browser.post("/web/new", title="A <b>title</b>")
    assert "A &lt;b&gt;title&lt;/b&gt;" in page
    with open("examples/session.jsonl", "rb") as file:  # noqa: PTH123
        page = browser.post("/web/import", files={"file": ("session.jsonl", file)})
    assert "Imported 173 messages" in page
    assert "Rate limits for shelfmark" in browser.get("/web/")
    assert "limits" in browser.get("/web/", q="token bucket")
    assert "was not imported" in browser.post("/web/import", 400, files={"file": ("x", b"\x00\xff")})
    assert "Choose a file first" in browser.post("/web/import", 400, files={"other": ("x", b"")})


def test_every_panel_shows_a_folded_session(browser):
    browser.client.begin("one", messages=chat(20))
    browser.client.post("/sessions/one/compact")
    for panel in PANELS:
        page = browser.get("/web/s/one", panel=panel, q="Question")
        assert 'aria-current="true"' in page
        asked = {"params": {"q": "Question"}, "headers": {"hx-request": "true"}}
        part = browser.http.get(f"/web/s/one/panel/{panel}", **asked).text
        assert part.strip() in page or panel == "recall"
        assert "<html" not in part
        assert "Question" in part or panel in ("ledger", "tree", "receipts", "rules")


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


def test_a_branch_is_merged_by_its_button(browser):
    browser.client.begin("one", messages=chat(2))
    left = browser.client.post("/sessions/one/rewind").json()["left"]
    browser.client.say("one", {"role": "user", "content": "Ask the neighbours."})
    assert "Add its summary here" in browser.get("/web/s/one", panel="tree")
    page = browser.post("/web/s/one/do/merge", entry=left)
    assert "A summary of that branch was added here" in page
    assert "&lt;branch-summary&gt;" in page
    assert "nothing was said on" in browser.post(
        "/web/s/one/do/merge", entry=browser.client.leaf("one")[1:-1]
    )


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

    with api(answer, summaries="upstream", window=9_000) as (client, _):
        browser = Browser(client)
        client.begin("one", messages=chat(8))
        for number in range(8):
            browser.post("/web/s/one/say", text=f"Question {number}. {FILLER}")
        page = browser.get("/web/s/one")
        browser.http.close()
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


def test_branches_rewinds_forks_pins_and_hand_offs_by_buttons(browser):
    browser.client.begin("one", messages=chat(4))
    items = browser.client.get("/sessions/one/history").json()["items"]
    assert "Pinned" in browser.post("/web/s/one/do/pin", entry=items[2]["entry"])
    assert "Unpinned" in browser.post("/web/s/one/do/unpin", entry=items[2]["entry"])
    assert browser.get("/web/s/one").count("Take out of the context") == len(items)
    page = browser.post("/web/s/one/do/exclude", entry=items[2]["entry"])
    assert "Taken out: neither" in page
    assert '<span class="badge excluded">excluded</span>' in page
    assert page.count("Take out of the context") == len(items) - 1
    assert "already taken out of the context" in browser.post(
        "/web/s/one/do/exclude", entry=items[2]["entry"]
    )
    assert "Exclusion 1" in browser.get("/web/s/one?panel=receipts")
    assert "badge excluded" not in browser.post("/web/s/one/do/undo")
    page = browser.post("/web/s/one/do/rewind", entry=items[4]["entry"])
    assert "Question 1." in re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)[1]
    assert "continues from there" in browser.post("/web/s/one/do/branch", entry=items[-1]["entry"])
    assert "A copy of one" in browser.post("/web/s/one/do/fork", entry=items[3]["entry"])
    page = browser.post("/web/s/one/handoff", goal="Write the tests")
    assert "Write the tests" in page
    page = browser.post("/web/s/one/do/handoff", goal="Write the tests", text="## Goal\n\nWrite the tests.")
    assert "Handed off from one" in page
    assert "Cleared" in browser.post("/web/s/one/do/clear")
    assert "Tick the box" in browser.post("/web/s/one/do/delete")
    browser.post("/web/s/one/do/delete", sure="yes")
    assert "No such session" in browser.get("/web/s/one", 404)


@pytest.mark.parametrize("size", [30_000, 200_000])
def test_a_long_message_is_rewound_whole(browser, size):
    long = f"Begin. {'x' * size} End."
    browser.client.begin("one", messages=[user("Hello."), reply("Hello."), user(long), reply("Read.")])
    items = browser.client.get("/sessions/one/history").json()["items"]
    for given in ({"entry": items[2]["entry"]}, {}):  # none: the newest
        page = browser.post("/web/s/one/do/rewind", **given)
        assert field(page) == long
        assert "Read." not in page
        browser.post("/web/s/one/do/branch", entry=items[-1]["entry"])
    assert field(browser.get("/web/s/one", draft_of="none")) == ""


def field(page):
    """What stands in the field to write in."""
    return re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)[1]


def test_what_cannot_be_said_stands_in_the_field_whole_and_is_told_as_what_it_is():
    with api(tokens={"secret-for-pages": TokenGrant("ada", ("read",))}) as (client, _):
        browser = Browser(client)
        browser.post("/web/login", token="secret-for-pages")
        found = browser.http.post(
            "/web/s/one/say", data={"text": "Hello?"}, headers={"accept": "text/event-stream"}
        )
        assert found.status_code == 403
        assert "write" in found.json()["detail"]
        browser.http.close()
    with api(model="") as (client, _):
        client.begin("one", messages=[user("Hello."), reply("Hello.")])
        browser = Browser(client)
        long = "x" * 90_000
        page = browser.post("/web/s/one/say", 400, text=long)
        assert field(page) == long
        assert 'class="problem" role="alert"' in page
        assert "Hello." in browser.get("/web/s/one/say")  # its address by itself
        browser.http.close()


def test_an_action_leads_back_whatever_is_told_of_where_it_was_clicked(browser):
    browser.client.begin("one", messages=chat(20))
    found = browser.http.post("/web/s/one/do/compact", data={}, headers={"referer": "http://["})
    assert found.status_code == 200
    assert "Folded:" in found.text


def test_the_address_of_what_failed_leads_back(browser):
    for place in ("/web/import", "/web/new"):
        assert "<h1>Sessions</h1>" in browser.get(place)


def test_a_talk_without_a_script_goes_on_past_its_window(browser):
    browser.client.begin("one")
    for number in range(14):
        page = browser.post("/web/s/one/say", text=f"Question {number}. {FILLER * 8}")
        assert "Answer" in page
    assert 'class="fold-line holds' in page
    assert browser.client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 28


def test_the_calls_of_the_model_itself_are_shown_as_such(browser):
    names = ("compact_context", "context_stats", "recall_search", "recall_read", "recall_list", "compact")
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for number, name in enumerate(names)
    ]
    results = [{"role": "tool", "tool_call_id": one["id"], "content": "Done."} for one in calls]
    said = [user("Go on."), {"role": "assistant", "content": None, "tool_calls": calls}, *results]
    browser.client.begin("one", messages=said)
    page = browser.get("/web/s/one")
    shown = re.findall(r"<summary>(The model [^<]+|)<code>(\w+)</code>", page)
    assert shown == [
        ("The model requests a fold ", "compact_context"),
        ("The model asks how full its window is ", "context_stats"),
        ("The model searches what was folded ", "recall_search"),
        ("The model reads what was folded ", "recall_read"),
        ("The model lists what was folded ", "recall_list"),
        ("", "compact"),
    ]


def test_a_session_without_messages_says_so_everywhere(browser):
    page = browser.post("/web/new", title="Empty")
    assert "No messages yet." in page
    name = re.search(r'action="(/web/s/[^/]+)/preview"', page)[1]
    hints = {
        "view": "No messages yet.",
        "receipts": "No folds yet",
        "rules": "No rules found.",
        "tokens": "None yet.",
        "ledger": "Empty until the first fold",
        "recall": "Search this session",
    }
    for panel, hint in hints.items():
        assert hint in browser.get(name, panel=panel)
    assert "Nothing was folded: " in browser.post(f"{name}/preview")
    assert "There is nothing to fold yet" in browser.post(f"{name}/do/compact")


def test_output_that_the_recording_does_not_tell_whole_is_said_to_be_too_low(browser):
    whole = claude_code.claude_code_file()
    cut = re.sub(r'"output_tokens": ?\d+', '"output_tokens": 1', whole)
    for name, text, told in (("whole", whole, False), ("cut", cut, True)):
        browser.client.send("POST", "/imports", content=text.encode(), params={"id": name})
        page = browser.get(f"/web/s/{name}", panel="tokens")
        assert "replies read" in page
        assert ("The model wrote more than the recording counts" in page) == told


def test_what_another_agents_fold_did_is_said_to_be_unknown(browser):
    lines = [
        {"type": "session", "version": 3, "id": "p", "timestamp": "2026-01-01T10:00:00.000Z", "cwd": "/pier"},
        *(pi_message(f"m{n}", f"m{n - 1}" if n else None, n) for n in range(8)),
        {"type": "compaction", "id": "c", "parentId": "m7", "timestamp": "2026-01-01T11:00:00.000Z",
         "summary": "The pier was mended.", "firstKeptEntryId": "m6", "tokensBefore": 201_606},
        *(pi_message(f"m{n}", "c" if n == 8 else f"m{n - 1}", n) for n in range(8, 12)),
    ]  # fmt: skip
    text = "\n".join(map(json.dumps, lines))
    browser.client.send("POST", "/imports", content=text.encode(), params={"id": "pier"})
    receipts = browser.get("/web/s/pier", panel="receipts")
    assert "201,606 by its agent’s count → unknown" in receipts
    assert "another agent" in receipts
    assert "code, no model" not in receipts
    page = browser.get("/web/s/pier", panel="tokens")
    assert "1 summary; the cost of 1 is unknown." in page
    stats = browser.client.get("/sessions/pier/stats").json()
    assert stats["spent"]["summaries_unpriced"] == 1
    points = browser.client.get("/sessions/pier/timeline").json()["points"]
    behind = next(point for point in points if point.get("boundary"))
    assert behind["by_category"]["checkpoint"] > 0
    assert behind["by_category"]["user"] > 0
    assert points[-1]["tokens"] == stats["stats"]["context_tokens"]
    shown = f"{stats['stats']['context_tokens']:,} now"
    assert shown in page


def pi_message(key, parent, number):
    said = {"role": "user", "content": f"Look at plank {number}."}
    if number % 2:
        usage = {"input": 30_000 + 100 * number, "output": 9, "cacheRead": 0, "cacheWrite": 0}
        said = {"role": "assistant", "content": [{"type": "text", "text": f"Plank {number} is sound."}], "usage": usage,
                "stopReason": "stop"}  # fmt: skip
    return {
        "type": "message",
        "id": key,
        "parentId": parent,
        "timestamp": f"2026-01-01T10:{number:02}:00.000Z",
        "message": said,
    }


def test_a_long_history_is_read_page_by_page(browser):
    browser.client.begin("one", messages=chat(200))
    seen, path = set(), "/web/s/one"
    while path:
        page = browser.get(path)
        seen |= set(re.findall(r"Question (\d+)\.", page))
        found = re.search(r'class="earlier"><a href="([^"]+)"', page)
        path = found[1].replace("&amp;", "&") if found else None
    assert {str(number) for number in range(200)} <= seen
    entry = browser.client.get("/sessions/one/history", limit=300).json()["items"][30]["entry"]
    assert f'id="e-{entry}"' in browser.get(f"/web/s/one/at/{entry}")


def test_of_a_long_view_the_ends_are_shown():
    with api(window=1_000_000) as (client, _):
        browser = Browser(client)
        client.begin("one", messages=chat(150))
        page = browser.get("/web/s/one", panel="view")
        assert page.count('class="sent"') == 200
        assert "102 messages left out here" in page
        browser.http.close()


def test_a_session_is_written_out_as_a_file(browser):
    browser.client.begin("one", messages=chat(3))
    for form in ("markdown", "json", "claude-code", "codex", "jsonl"):
        found = browser.http.get("/web/s/one/download", params={"format": form, "save": "yes"})
        assert found.headers["content-disposition"].startswith("attachment;")
        assert "Question 2" in found.text


def test_a_session_is_on_one_page_to_be_printed_with_its_folds(browser):
    browser.client.begin("one", title="To print", messages=chat(60))
    browser.client.post("/sessions/one/compact")
    assert 'href="/web/s/one/print"' in browser.get("/web/s/one")
    kept = prose.prose.cache_info().currsize
    page = browser.get("/web/s/one/print")
    assert prose.prose.cache_info().currsize == kept  # it would outlive a session that is deleted
    assert [f"Question {number}." in page for number in range(60)] == [True] * 60
    assert "Compacted" in page
    browser.get("/web/s/nobody/print", 404)


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


def test_for_another_agent_the_page_says_where_the_file_goes(browser):
    browser.client.begin("one", messages=chat(3))
    page = browser.get("/web/s/one/download", format="claude-code", cwd="/home/ada/shop")
    assert "~/.claude/projects/-home-ada-shop/" in page
    assert "claude --resume" in page
    place = re.search(r"[\w-]+\.jsonl", page)[0]
    found = browser.http.get(
        "/web/s/one/download", params={"format": "claude-code", "cwd": "/home/ada/shop", "save": "yes"}
    )
    assert place.removesuffix(".jsonl") in found.text
    assert "/home/ada/shop" in found.text


def test_a_token_is_typed_once():
    with api(
        tokens={"secret-for-pages": "default"}, headers={"Authorization": "Bearer secret-for-pages"}
    ) as (client, _):
        browser = Browser(client)
        assert "Enter a token" in browser.get("/")
        assert "token is not valid" in browser.post("/web/login", 401, token="wrong")
        assert "Sessions" in browser.post("/web/login", token="secret-for-pages")
        cookie = next(iter(browser.http.cookies.jar))
        assert (cookie.path, cookie.has_nonstandard_attr("HttpOnly")) == ("/web", True)
        assert "no sessions yet" in browser.get("/web/")
        browser.http.close()


@pytest.mark.parametrize("name", ["a/b", "50%2F", ".", "..", ".b", "a b?c#d", "ж"])
def test_a_session_that_a_program_named_anyhow_is_opened(tmp_path, name):
    store = f"sqlite:///{tmp_path / 's.db'}"
    token = {"Authorization": "Bearer secret-for-pages"}
    with foldline.open_sync(store, name) as session:
        session.append(user("Look at the sea."), reply("Yes."))
    with api(store=store, tokens={"secret-for-pages": "default"}, headers=token) as (client, _):
        browser = Browser(client)
        browser.post("/web/login", token="secret-for-pages")
        place = re.search(r'href="(/web/s/[^"]+)"', browser.get("/web/"))[1]
        assert "Look at the sea." in browser.get(place)
        page = browser.post(f"{place}/do/rename", title="A title")
        assert "A title" in page
        assert f'action="{place}/preview"' in page
        browser.http.cookies.clear()
        login = browser.get(place)  # asks for the token, and leads on
        to = html.unescape(re.search(r'name="to" value="([^"]*)"', login)[1])
        assert "Look at the sea." in browser.post("/web/login", token="secret-for-pages", to=to)
        browser.http.close()


def test_a_login_leads_to_a_long_address_and_says_what_is_wrong_with_a_long_token():
    with api(
        tokens={"secret-for-pages": "default"}, headers={"Authorization": "Bearer secret-for-pages"}
    ) as (
        client,
        _,
    ):
        browser = Browser(client)
        place = "/web/?" + urlencode({"f": "/" * 1_300})
        assert len(place) > 3_900
        to = html.unescape(re.search(r'name="to" value="([^"]*)"', browser.get(place))[1])
        assert to == place
        assert "Sessions" in browser.post("/web/login", token="secret-for-pages", to=to)
        assert "token is not valid" in browser.post("/web/login", 401, token="x" * 20_000)
        browser.http.cookies.clear()
        assert 'name="to" value="/web/"' in browser.get(f"{place}{'x' * 4_000}")
        browser.http.close()


def test_what_turns_the_text_around_it_is_shown_as_a_mark(browser):
    turned = "invoice\u202egnp.exe \x1b[2J \u2066x"
    browser.client.begin("one", title=turned, messages=[user(f"Open {turned}."), reply(f"I open {turned}.")])
    for page in (browser.get("/web/"), browser.get("/web/s/one")):
        assert "invoice\\u202egnp.exe \\x1b[2J \\u2066x" in page
        assert not {"\u202e", "\x1b", "\u2066"} & set(page)


def test_what_was_said_meanwhile_comes_by_itself(browser):
    browser.client.begin("one", messages=chat(20))

    def since(page):
        path = re.search(r'id="live" hx-get="([^"]+)"', page)[1].replace("&amp;", "&")
        return browser.http.get(path, headers={"hx-request": "true"})

    page = browser.get("/web/s/one")
    assert since(page).status_code == 204
    browser.client.say("one", user("And this?"), reply("This, too."))
    found = since(page)
    assert "And this?" in found.text
    assert "Question 19" not in found.text
    assert '<div id="history"' not in found.text
    assert since(found.text).status_code == 204
    browser.client.post("/sessions/one/compact")
    found = since(found.text)
    assert '<div id="history" hx-swap-oob="innerHTML">' in found.text
    assert "fold-line" in found.text
    browser.client.send("DELETE", "/sessions/one")
    assert since(page).status_code == 286  # asks no more
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
    path = re.search(r'id="live" hx-get="([^"]+)"', page)[1].replace("&amp;", "&")
    browser.client.say("one", answer("a", "def a(): pass"), user("And c?"), calling("c"), answer("c", "none"))
    found = browser.http.get(path, headers={"hx-request": "true"}).text
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
    asked = {"headers": {"hx-request": "true"}}
    found = browser.http.post("/web/s/one/do/compact", data={}, **asked)
    assert "<html" not in found.text
    assert found.headers["hx-trigger-after-settle"] == "folded"
    assert found.text.count('class="fold-line') == 1
    assert re.search(
        r'<p class="notice"[^>]*>Folded: .*?</p>\s*<form action="/web/s/one/do/undo"', found.text
    )
    found = browser.http.post("/web/s/one/do/undo", data={}, **asked)
    assert "is undone" in found.text
    assert found.headers["hx-trigger-after-settle"] == "done"
    assert "There is no fold to undo" in browser.http.post("/web/s/one/do/undo", data={}, **asked).text


def test_a_branch_and_a_merge_are_put_in_place_where_the_newest_messages_are_shown(browser):
    browser.client.begin("one", messages=chat(60))
    page = browser.get("/web/s/one")
    entry, leaf = re.findall(r'id="e-([^"]+)"', page)[-3], browser.client.leaf("one")[1:-1]
    assert re.search(r'<form [^>]*hx-post="/web/s/one/do/branch"', page)
    asked = {"headers": {"hx-request": "true"}}
    found = browser.http.post("/web/s/one/do/branch", data={"entry": entry}, **asked).text
    assert "The session continues from there" in found
    assert found.rindex('id="e-') == found.index(f'id="e-{entry}"')
    tree = browser.http.get("/web/s/one/panel/tree", **asked).text
    assert tree.count('hx-post="/web/s/one/do/branch"') == tree.count('hx-post="/web/s/one/do/merge"') == 1
    assert (
        "A summary of that branch was added here"
        in browser.http.post("/web/s/one/do/merge", data={"entry": leaf}, **asked).text
    )
    before = re.search(r'href="(/web/s/one\?before=[^"]+)"', browser.get("/web/s/one"))[1]
    assert "hx-post" not in browser.get(f"{before}&panel=tree")  # else what is shown would change its place
    there = {"headers": {"hx-request": "true", "hx-current-url": f"http://here{before}"}}
    assert "hx-post" not in browser.http.get("/web/s/one/panel/tree", **there).text


def test_the_meter_names_what_fills_the_window_and_when_it_folds(browser):
    browser.client.begin("one", messages=chat(20))
    page = browser.get("/web/s/one")
    gauge = re.search(r'<div class="gauge.*?</ul>', page, re.DOTALL)[0]
    figures = browser.client.get("/sessions/one/stats").json()
    left = figures["folds_at"] - figures["stats"]["context_tokens"]
    a_turn = figures["stats"]["context_tokens"] / 21
    assert f"folds in about {-int(-left // a_turn)} turns" in gauge
    for name in ("user", "assistant", "free", "reserve"):
        assert f">{name} " in gauge


def test_no_other_page_can_click(browser):
    browser.client.begin("one", messages=chat(20))
    for origin in ("https://evil.example", "null"):
        refused = browser.http.post("/web/s/one/do/compact", data={}, headers={"origin": origin})
        assert refused.status_code == 403
    assert browser.client.get("/sessions/one/stats").json()["stats"]["summaries"] == 0


def test_nothing_that_a_session_holds_is_markup(browser):
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": HOSTILE[:60], "arguments": '{"path": "' + "<b>x</b>" + '"}'},
    }
    browser.client.begin(
        "one",
        title=HOSTILE,
        messages=[
            user(f"Never do {HOSTILE}."),
            {"role": "assistant", "content": HOSTILE, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": HOSTILE},
            reply(HOSTILE),
            *chat(20),
        ],
    )
    browser.client.post("/sessions/one/compact")
    pages = [browser.get("/web/"), browser.get("/web/", q="script")]
    pages += [
        browser.get("/web/s/one", panel=name, q="alert", notice=HOSTILE, problem=HOSTILE, draft=HOSTILE)
        for name in PANELS
    ]
    pages += [
        browser.post("/web/s/one/preview", instructions=HOSTILE),
        browser.post("/web/s/one/handoff", goal=HOSTILE),
    ]
    for page in pages:
        assert "<img src=x" not in page
        assert "<svg onload" not in page
        assert "<b>x</b>" not in page
        assert page.count("</textarea>") == page.count("<textarea")


def test_the_page_and_the_drawings_of_the_lab_share_their_colours(browser):
    style = browser.http.get("/web/static/page.css").text
    known = colours([])
    for category, name in KINDS.items():
        assert f"--{name}: {known[category]};" in style
