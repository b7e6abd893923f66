"""The pages without a script: every page can be read, and every button is a form."""

from __future__ import annotations

import json
import re

import pytest
from tests.service.api.client import FILLER, chat, reply, user
from tests.service.web import claude_code
from tests.service.web.browser import HOSTILE
from tests.service.web.plain_browser import TOKEN, browsing

from foldline.config import TokenGrant
from foldline.service.web import prose
from foldline.service.web.session_page import PANELS


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
        part = browser.part(f"/web/s/one/panel/{panel}", q="Question").text
        assert part.strip() in page or panel == "recall"
        assert "<html" not in part
        assert "Question" in part or panel in ("ledger", "tree", "receipts", "rules")


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
    with browsing(tokens={TOKEN: TokenGrant("ada", ("read",))}) as browser:
        browser.post("/web/login", token=TOKEN)
        found = browser.http.post(
            "/web/s/one/say", data={"text": "Hello?"}, headers={"accept": "text/event-stream"}
        )
        assert found.status_code == 403
        assert "write" in found.json()["detail"]
    with browsing(model="") as browser:
        browser.client.begin("one", messages=[user("Hello."), reply("Hello.")])
        long = "x" * 90_000
        page = browser.post("/web/s/one/say", 400, text=long)
        assert field(page) == long
        assert 'class="problem" role="alert"' in page
        assert "Hello." in browser.get("/web/s/one/say")  # its address by itself


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
    with browsing(window=1_000_000) as browser:
        browser.client.begin("one", messages=chat(150))
        page = browser.get("/web/s/one", panel="view")
        assert page.count('class="sent"') == 200
        assert "102 messages left out here" in page


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


def test_what_turns_the_text_around_it_is_shown_as_a_mark(browser):
    turned = "invoice\u202egnp.exe \x1b[2J \u2066x"
    browser.client.begin("one", title=turned, messages=[user(f"Open {turned}."), reply(f"I open {turned}.")])
    for page in (browser.get("/web/"), browser.get("/web/s/one")):
        assert "invoice\\u202egnp.exe \\x1b[2J \\u2066x" in page
        assert not {"\u202e", "\x1b", "\u2066"} & set(page)


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
