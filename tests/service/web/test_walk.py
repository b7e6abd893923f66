"""Every action of the page, clicked in a real browser on two sessions: the example, and a file of Claude Code."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
from tests.service.web import claude_code
from tests.service.web.browser import DROP, choose, fold, menu, message, panel, say, wait_for

pytestmark = pytest.mark.slow


class Walked(msgspec.Struct, frozen=True):
    """A session file: its name and text, and what the walk looks for in it."""

    file: str
    text: str
    messages: int
    asked: str  # a message of the user's that is folded
    kept: str  # a message that is kept by hand
    rule: str
    ended: str  # a rule that ended, and why; empty for none
    searched: str


FILES = (
    Walked(
        "session.jsonl",
        Path("examples/session.jsonl").read_text(encoding="utf-8"),
        173,
        "kiosk client goes wild",
        "I'll read the README",
        "Never touch anything under migrations/",
        "",
        "token bucket",
    ),
    Walked(
        "claude.jsonl",
        claude_code.claude_code_file(),
        94,
        "Bookings that are returned late",
        "calendar.py knows due dates",
        "must cost a fee",
        claude_code.LIFT,
        "RATE_7",
    ),
)


def on(*files):
    """Walk through these files: the actions are the same for any, what a panel shows is not."""
    return pytest.mark.parametrize("walked", files, ids=lambda one: one.file)


@pytest.fixture
def session(walked, service, request):
    """The file, imported as a session of the test's own."""
    name = f"{Path(walked.file).stem}-{request.node.originalname[5:25]}"
    found = service.send("POST", "/imports", content=walked.text.encode(), params={"id": name}).json()
    assert found["messages"] == walked.messages
    return name


def stats(service, name):
    return service.get(f"/sessions/{name}/stats").json()["stats"]


@on(FILES[1])
def test_a_file_is_dropped_listed_searched_and_downloaded(page, service, walked, tmp_path):
    page.goto("/web/")
    page.evaluate(DROP, [walked.text, walked.file])
    wait_for(page, f"Imported {walked.messages} messages")
    place = page.url.partition("?")[0]
    assert page.locator("#history article").count() > 10
    for kind, suffix in (("markdown", "md"), ("json", "json")):
        menu(page, "Download")
        page.get_by_label("For reading, for a program").select_option(kind)
        with page.expect_download() as coming:
            page.get_by_role("button", name="Get the file").click()
        assert coming.value.suggested_filename.endswith(f".{kind}.{suffix}")
        assert walked.asked in Path(coming.value.path()).read_text(encoding="utf-8")
        page.keyboard.press("Escape")
    menu(page, "Download")
    page.get_by_label("For reading, for a program").select_option("codex")
    page.get_by_role("button", name="Get the file").click()
    wait_for(page, "codex resume")
    page.get_by_label("The folder of your project").fill("/home/ada/bookings")
    with page.expect_download() as coming:
        page.get_by_role("button", name="Save the file").click()
    raw = Path(coming.value.path()).read_text(encoding="utf-8")
    assert walked.asked in raw
    assert "/home/ada/bookings" in raw
    page.goto("/web/")
    row = page.locator("tbody tr", has=page.locator(f'a[href="{urlsplit(place).path}"]'))
    assert f"{walked.messages}" in row.inner_text()
    page.get_by_label("Search all messages").fill(walked.searched)
    page.get_by_role("button", name="Search").click()
    page.locator(".hits a").first.click()
    page.locator("article:target").wait_for()
    page.goto("/web/")
    other = walked.text.replace(walked.kept, "Something else was said")
    menu(page, "Import")
    page.set_input_files("#file", {"name": "b.jsonl", "mimeType": "text/plain", "buffer": other.encode()})
    page.get_by_role("button", name="Import", exact=True).click()
    wait_for(page, "It is a separate copy")
    assert page.url.partition("?")[0] != place


@on(*FILES)
def test_a_fold_is_shown_kept_edited_made_undone_and_redone(page, service, walked, session):
    page.goto(f"/web/s/{session}")
    assert page.get_by_role("button", name="Undo fold").is_disabled()
    fold(page, "Preview", "the numbers")
    wait_for(page, "nothing has changed yet")
    page.locator("summary", has_text="Receipt").click()
    assert page.locator(".receipt").inner_text().count("nothing") == 1  # the price of code
    assert walked.rule in page.locator("#summary").input_value()
    before = page.locator("#after").inner_text()
    page.locator(".turn", has_text=walked.asked).locator("summary").click()
    page.locator(".pick li", has_text=walked.asked).get_by_role("checkbox").check()
    assert page.locator("#after").inner_text() != before  # what it would come to
    page.get_by_label("The summary that replaces").fill("Words that would be lost.")
    page.get_by_role("link", name="Sessions", exact=True).click()
    page.wait_for_url("**/web/")
    page.go_back()
    assert page.get_by_label("The summary that replaces").input_value() == "Words that would be lost."
    assert page.locator(".pick li", has_text=walked.asked).get_by_role("checkbox").is_checked()
    page.get_by_role("button", name="Preview again").click()
    page.locator(".pick li", has_text=walked.asked).get_by_role("checkbox", disabled=True).wait_for()
    page.get_by_role("button", name="Cancel").click()
    wait_for(page, "Nothing has changed.")
    history = service.get(f"/sessions/{session}/history", limit=500).json()["items"]
    assert not [one for one in history if one["pinned"]]
    fold(page, "Preview", "the numbers")
    page.get_by_label("Show only messages with").fill(walked.kept.upper())
    page.locator(".pick li:has(input)").first.wait_for(state="hidden")
    page.locator(".pick li", has_text=walked.kept).get_by_role("checkbox").check()
    summary = page.locator("#summary")
    summary.fill(f"{summary.input_value()}\n\nWords of my own.")
    page.get_by_role("button", name="Fold", exact=True).click()
    wait_for(page, "1 message pinned by you, under Rules.")
    mark = page.locator(".fold-line")
    assert mark.count() == 1
    assert 0 < mark.bounding_box()["y"] < 900  # in sight
    mark.locator("summary").click()
    assert "Words of my own." in mark.inner_text()
    sent = page.locator("#panel").inner_text()
    assert "Words of my own." in sent
    view = service.get(f"/sessions/{session}/view").text
    assert walked.kept in view
    assert walked.rule in view
    page.get_by_role("button", name="Undo fold").click()
    wait_for(page, "The newest fold is undone")
    assert page.locator(".fold-line.undone").count() == 1
    assert stats(service, session)["summaries"] == 0
    page.get_by_role("button", name="Redo fold").click()
    wait_for(page, "The fold is in effect again.")
    assert stats(service, session)["summaries"] == 1


@on(*FILES)
def test_every_panel_tells_of_the_session(page, service, walked, session):
    service.post(f"/sessions/{session}/compact")
    page.goto(f"/web/s/{session}")
    page.evaluate("window.same = true")
    summaries = page.locator("#panel .sent summary").all_inner_texts()
    assert "[{" not in "".join(summaries)  # words, not JSON
    receipt = panel(page, "Folds").locator(".card").inner_text()
    for word in ("Fold 1", "requested by hand", "code, no model", "all before this message", "Rules kept"):
        assert word in receipt
    page.locator(".card").get_by_role("button", name="Undo").click()
    wait_for(page, "The newest fold is undone")
    page.locator(".card.undone").wait_for()
    page.get_by_role("button", name="Redo fold").click()
    wait_for(page, "The fold is in effect again.")
    rules = panel(page, "Rules").inner_text()
    assert walked.rule in rules
    assert walked.ended in rules
    assert ("Lifted because you said" in rules) == bool(walked.ended)
    ledger = panel(page, "Ledger")
    ledger.locator("summary", has_text="Files").click()
    assert ".py" in ledger.inner_text()
    tokens = panel(page, "Tokens")
    assert tokens.locator("polygon").count() > 2
    assert tokens.locator("path.fold-mark").count() == 1
    assert re.search(r"Tool (read_file|Read|bash|Bash|edit|Edit|write)", tokens.inner_text())
    sizes = [int(one.replace(",", "")) for one in re.findall(r"([\d,]+) tokens ", tokens.inner_text())]
    assert sizes == sorted(sizes, reverse=True)
    assert panel(page, "Branches").locator("li").count() == 1
    recall = panel(page, "Recall")
    recall.locator("#recall").fill(walked.searched)
    page.keyboard.press("Enter")
    recall.locator(".hits a").first.wait_for()
    assert page.evaluate("window.same")  # no page was loaded anew
    recall.locator(".hits a").first.click()
    page.locator("article:target").wait_for()
    assert page.locator(".tabs a[aria-current]").inner_text() == "Recall"
    page.reload()
    assert page.locator("#recall").input_value() == walked.searched


@on(FILES[0])
def test_messages_are_pinned_forked_rewound_left_and_handed_off(page, service, walked, session):
    service.post(f"/sessions/{session}/compact")
    page.goto(f"/web/s/{session}")
    last = page.locator("#history article.user").last
    text = last.locator(".text").inner_text()[:40]
    choose(message(page, text), "Pin")
    wait_for(page, "Pinned: the model always gets")
    assert message(page, text).locator(".badge.pinned").count() == 1
    assert text in panel(page, "Rules").inner_text()
    choose(message(page, text), "Unpin")
    wait_for(page, "Unpinned.")
    choose(page.locator("#history article.assistant").last, "Fork")
    wait_for(page, f"A copy of {session}.")
    page.get_by_role("link", name=session, exact=True).click()
    page.wait_for_url(f"**/s/{session}*")
    folded = page.locator("article.assistant.folded").first
    choose(folded, "Branch")  # from before the boundary
    wait_for(page, "The session continues from there")
    assert stats(service, session)["summaries"] == 0
    assert page.get_by_role("button", name="Undo fold").is_disabled()
    branches = panel(page, "Branches")
    assert branches.locator("li").count() >= 2
    branches.locator("li", has_text=text).get_by_role("button", name="Go there").first.click()
    wait_for(page, "The session continues from there")
    assert stats(service, session)["summaries"] == 1
    page.get_by_role("button", name="Undo fold").click()  # after a branch
    wait_for(page, "The newest fold is undone")
    page.get_by_role("button", name="Redo fold").click()
    wait_for(page, "The fold is in effect again")
    choose(message(page, text), "Rewind")
    wait_for(page, "Edit the message and send it again")
    assert page.locator("#words").input_value().startswith(text)
    assert page.locator("article.message", has_text=text).count() == 0
    menu(page, "Hand off")
    page.get_by_label("What is the new session for?").fill("Write the tests")
    page.get_by_role("button", name="Preview").last.click()
    assert "Write the tests" in page.get_by_label("What the new session knows").input_value()
    page.get_by_label("What the new session knows").fill("## Goal\n\nWrite the tests, all of them.")
    page.get_by_role("button", name="Create the session").click()
    wait_for(page, f"Handed off from {session}.")
    assert page.locator("h1").inner_text() == "Write the tests"
    assert "all of them" in page.locator("#panel").text_content()


@on(FILES[1])
def test_a_session_is_talked_to_renamed_cleared_and_deleted(page, service, walked, session):
    page.goto(f"/web/s/{session}")
    page.get_by_role("button", name="Answer the last message").click()
    page.locator("#history article.assistant", has_text="Reply ").wait_for(timeout=60_000)
    page.locator("#stop").wait_for(state="hidden")
    page.get_by_role("button", name="Answer the last message").wait_for(state="detached")
    say(page, "And what else?")
    texts = page.locator("#history article.message .text").all_inner_texts()
    assert [one for one in texts[-2:] if "And what else?" in one or one.startswith("Reply")] == texts[-2:]
    assert page.locator("#words").input_value() == ""
    menu(page, "Rename")
    page.get_by_label("Title").fill("Another title")
    page.get_by_role("button", name="Save").click()
    page.locator("h1", has_text="Another title").wait_for()
    menu(page, "More")
    page.get_by_role("button", name="Clear").click()
    wait_for(page, "Cleared.")
    wait_for(page, "No messages yet.")
    panel(page, "Branches").get_by_role("button", name="Go there").first.click()
    message(page, "And what else?").wait_for()
    menu(page, "Delete")
    page.get_by_label("Delete it and all its branches").check()
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/web/")
    assert session not in page.locator("main").inner_text()


@pytest.mark.soak
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_recorded_session_of_claude_code_is_read_and_folded(page, service, recorded, number):
    page.goto("/web/")
    menu(page, "Import")
    page.set_input_files("#file", recorded / "native" / f"claude-code-{number}.jsonl")
    page.get_by_role("button", name="Import", exact=True).click()
    wait_for(page, "messages of claude-code")
    session = page.url.partition("?")[0].rpartition("/")[2]
    messages = page.locator("#figures p").inner_text()
    fold(page, "Preview")
    page.get_by_role("button", name="Fold", exact=True).click()
    wait_for(page, "Folded as previewed")
    for name in ("Folds", "Rules", "Ledger", "Tokens", "Branches", "Sent"):
        assert len(panel(page, name).inner_text()) > 100
    page.get_by_role("button", name="Undo fold").click()
    wait_for(page, "The newest fold is undone")
    assert page.locator("#figures p").inner_text() == messages
    page.get_by_role("button", name="Redo fold").click()
    wait_for(page, "The fold is in effect again.")
    assert stats(service, session)["summaries"] >= 1
