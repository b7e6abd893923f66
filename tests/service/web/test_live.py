"""What comes by itself: messages of an agent, a reply as it is written, folds of a talk that outgrows its window."""

from __future__ import annotations

import re
import time

import pytest
from tests.service.api.client import FILLER, Client, api, chat, reply, user
from tests.service.api.test_turns import wait_for_end
from tests.service.served import run_service
from tests.service.web.browser import (
    SECONDS,
    choose,
    fold,
    menu,
    message,
    open_page,
    panel,
    say,
    wait_for,
    wait_until_idle,
)

from foldline.testing import Answer, Faulty, Gate, Scripted, serve_in_thread

pytestmark = pytest.mark.slow


def test_twenty_messages_a_second_all_appear_in_order_and_once(page, service):
    service.begin("live", messages=[user("Begin."), reply("Begun.")])
    page.goto("/web/s/live")
    began = time.monotonic()
    for number in range(40):
        service.say("live", user(f"Number {number:03}") if number % 2 == 0 else reply(f"Number {number:03}"))
        time.sleep(max(0.0, began + (number + 1) / 20 - time.monotonic()))
    page.locator("#history article .text", has_text="Number 039").first.wait_for()  # the panel may be ahead
    texts = " ".join(page.locator("#history article .text").all_inner_texts())
    assert re.findall(r"Number (\d+)", texts) == [f"{number:03}" for number in range(40)]


def test_figures_meter_and_panel_follow_what_an_agent_says_and_folds(page, service):
    service.begin("follows", title="Before", messages=chat(20))
    page.goto("/web/s/follows")
    opened_one = page.locator("#panel .sent").nth(2)
    opened_one.locator("summary").click()
    before = page.locator("#gauge p").inner_text()
    service.say("follows", user(f"A word of an agent. {FILLER * 3}"), reply("Heard."))
    service.send("PATCH", "/sessions/follows", json={"title": "After"})
    page.locator("h1", has_text="After").wait_for()
    wait_for(page, "44 messages, all sent")
    page.locator("#panel .sent", has_text="A word of an agent.").wait_for()
    assert page.locator("#panel .sent").nth(2).get_attribute("open") is not None
    assert page.locator("#gauge p").inner_text() != before
    assert page.get_by_role("button", name="Undo fold").is_disabled()
    service.post("/sessions/follows/compact")
    page.locator(".fold-line").wait_for()
    wait_for(page, "folded 1 time")
    assert page.get_by_role("button", name="Undo fold").is_enabled()
    page.locator("#panel .sent", has_text="foldline-checkpoint").wait_for()
    pytest.importorskip("playwright.sync_api").expect(page).to_have_title(re.compile("^After"))


def test_a_reply_is_seen_as_it_is_written_and_stop_keeps_the_question_alone(chromium, tmp_path):
    model = Faulty(
        Scripted(lambda asked: f"Reply {asked.index}. {FILLER}"), seed=1, plan=["stall"], stall=600.0
    )
    with serve_in_thread(model) as url:
        given = {"model": f"openai-compatible:scripted@{url}/v1", "window": 60_000}
        with (
            run_service(**given, store=f"sqlite:///{tmp_path / 't.db'}") as at,
            open_page(chromium, at) as page,
        ):
            client = Client(at)
            client.begin("stopped")
            page.goto("/web/s/stopped")
            page.locator("#words").fill("A question.")
            page.get_by_role("button", name="Send").click()
            page.locator("#reply", has_text="It works as it was asked for").wait_for()
            message(page, "A question.").wait_for()
            page.get_by_role("button", name="Stop").click()
            wait_for(page, "Your message is kept, the half reply is not.")
            assert page.locator("#reply").is_hidden()
            said = client.get("/sessions/stopped/history").json()["items"]
            assert [(one["role"], one["text"]) for one in said] == [("user", "[User]: A question.")]
            wait_for_end(client, "stopped")  # the service hears later that the page has left
            page.get_by_role("button", name="Answer the last message").click()
            page.locator("#history article.assistant", has_text="Reply 1.").wait_for()
            page.locator("#stop").wait_for(state="hidden")
            assert page.locator("#history article").count() == 2
            client.close()


def test_a_fold_that_a_model_writes_says_so_and_is_stopped(chromium):
    gate = Gate()
    model = Scripted(lambda asked: Answer("A summary that nobody waited for.", wait=gate))
    with api(model, summaries="upstream") as (client, _):
        client.begin("waits", messages=chat(12))
        page = chromium.new_page(base_url=client.url)  # its console tells of what was stopped
        page.set_default_timeout(SECONDS * 1_000)
        page.goto("/web/s/waits")
        fold(page, "Fold at once")
        wait_for(page, "Working …")
        page.locator("#said").get_by_role("button", name="Cancel").click()
        wait_for(page, "Stopped.")
        wait_for_end(client, "waits")
        gate.open()
        assert client.get("/sessions/waits/boundaries").json()["boundaries"] == []
        page.close()


def test_what_could_not_be_sent_stands_in_its_field_again(chromium, service):
    service.begin("refused", messages=[user("Hello."), reply("Hello.")])
    page = chromium.new_page(base_url=service.url)  # its console tells of the refusal
    page.set_default_timeout(SECONDS * 1_000)
    page.goto("/web/s/refused")
    page.route("**/say", lambda route: route.fulfill(status=409, json={"detail": "a turn is under way"}))
    page.locator("#words").fill("Lost?")
    page.get_by_role("button", name="Send").click()
    wait_for(page, "a turn is under way")
    assert page.locator("#words").input_value() == "Lost?"
    page.route("**/say", lambda route: route.fulfill(status=429, body="<h1>Too many requests</h1>"))
    page.get_by_role("button", name="Send").click()
    wait_for(page, "It was not sent: the service answers 429.")
    assert page.locator("#words").input_value() == "Lost?"
    page.close()


def test_the_moldable_walk(chromium, tmp_path):
    """Talk until it folds by itself, read all of it, close and reopen both, go on, fold a second time."""

    def service():
        return api(Scripted(lambda asked: f"Reply {asked.index}. {FILLER}"), store=store, window=9_000)

    def talked(page, number, folds):
        while page.locator(".fold-line").count() < folds:
            assert number < 40
            say(page, f"Question {number:02}. {FILLER * 2}")
            number += 1
        return number

    def asked(page):
        while page.locator(".earlier a").count():
            with page.expect_response("**/earlier*"):
                page.locator(".earlier a").click()
            wait_until_idle(page)
        return [
            int(one)
            for one in re.findall(
                r"Question (\d\d)", " ".join(page.locator("#history .text").all_inner_texts())
            )
        ]

    store = f"sqlite:///{tmp_path / 'moldable.db'}"
    with service() as (client, _), open_page(chromium, client.url) as page:
        page.goto("/web/")
        menu(page, "New session")
        page.locator("#title").fill("The walk")
        page.locator("#policy").select_option("moldable")
        page.get_by_role("button", name="Create").click()
        wait_for(page, "policy moldable")
        number = talked(page, 0, folds=1)
        assert asked(page) == list(range(number))
        assert page.locator("article.folded").count() > 0
        place = page.url.partition("?")[0].removeprefix(client.url)
    with service() as (client, _), open_page(chromium, client.url) as page:  # another browser, another server
        page.goto("/web/")
        page.get_by_role("link", name="The walk").click()
        page.wait_for_url(client.url + place)
        assert asked(page) == list(range(number))
        page.goto(place)
        assert "Checkpoint 1 of this conversation." in page.locator("#panel").inner_text()
        number = talked(page, number, folds=2)
        assert asked(page) == list(range(number))
        page.goto(place)
        assert "Checkpoint 2 of this conversation." in page.locator("#panel").inner_text()
        assert [one[:6] for one in panel(page, "Folds").locator("h4").all_inner_texts()] == [
            "Fold 2",
            "Fold 1",
        ]
        assert "the window was nearly full" in page.locator("#panel").inner_text()


def test_a_fold_and_its_undo_stay_in_place(page, service):
    service.begin("place", messages=chat(20))
    page.goto("/web/s/place")
    page.evaluate("window.same = true")
    fold(page, "Fold at once")
    wait_for(page, "Folded:")
    page.locator(".fold-line.holds.fresh").wait_for()  # scrolled to, which comes behind its place
    box = page.locator(".fold-line.holds").bounding_box()
    assert 0 < box["y"] < 900  # it is in sight
    page.locator("#said").get_by_role("button", name="Undo").click()
    wait_for(page, "The newest fold is undone")
    page.locator(".fold-line.undone").wait_for()
    page.wait_for_timeout(1_000)  # what says that a request takes long is no longer due
    wait_for(page, "The newest fold is undone")
    page.locator("#history article.user").last.hover()
    choose(page.locator("#history article.user").last, "Pin")
    wait_for(page, "Pinned: the model always gets")
    page.locator("#scroller").evaluate("one => one.scrollTo(0, 0)")
    say(page, "And now?")
    reply_ = page.locator("#history article.assistant").last
    reply_.filter(has_text="Reply").wait_for()
    box = reply_.bounding_box()
    assert box["y"] + box["height"] <= page.locator("#say").bounding_box()["y"] + 1  # its end is in sight
    assert page.evaluate("window.same")  # no page was loaded anew


def test_a_panel_that_is_filled_anew_moves_no_message(page, service):
    service.begin("unmoved", messages=chat(20))
    page.goto("/web/s/unmoved")
    wait_until_idle(page)
    scroller = page.locator("#scroller")
    place = scroller.evaluate(
        "one => (one.scrollTop = one.scrollHeight - one.clientHeight - 30, one.scrollTop)"
    )
    page.evaluate("new Promise(requestAnimationFrame)")  # the page has heard of it
    panel(page, "Tokens")
    assert scroller.evaluate("one => one.scrollTop") == place


def test_the_map_beside_the_history_leads_to_every_part_of_it(page, service):
    service.begin("mapped", messages=chat(60))
    service.post("/sessions/mapped/compact")
    page.goto("/web/s/mapped")
    parts = page.locator("#map a")
    parts.first.wait_for()
    assert parts.count() == 40
    assert page.locator("#map .fold-mark").count() == 1
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(page.locator("#seen")).to_have_attribute("y", re.compile(r"^[89]\d\d"))  # at the end
    parts.first.click()
    page.locator("article:target", has_text="Question 0").or_(page.locator("article:target")).wait_for()
    assert "Question 0." in page.locator("#history").inner_text()


def test_a_result_that_comes_later_joins_its_call(page, service):
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
    service.begin("later", messages=[user("Read it.")])
    service.say("later", {"role": "assistant", "content": None, "tool_calls": [call]})
    page.goto("/web/s/later")
    page.locator(".step .waits").wait_for()
    service.say("later", {"role": "tool", "tool_call_id": "c", "content": "A line of the file."})
    page.locator(".step .waits").wait_for(state="hidden")
    page.locator(".step > summary").click()
    wait_for(page, "A line of the file.")
    assert page.locator("#history > article").count() == 2


def test_a_second_fold_by_hand_stacks(page, service):
    service.begin("stack", messages=chat(12))
    page.goto("/web/s/stack")
    fold(page, "Fold at once")
    wait_for(page, "Folded:")
    service.say("stack", *chat(10, first=100)[2:])  # all of it fits on a page
    fold(page, "Fold at once", "the numbers")
    wait_for(page, "Folded:")
    assert page.locator(".fold-line").count() == 2
    assert page.locator(".fold-line.holds").count() == 1
    before = page.locator("article.message").all_inner_texts()
    page.reload()
    assert page.locator("article.message").all_inner_texts() == before


def test_who_reads_further_up_stays_there_when_something_is_folded(page, service):
    service.begin("further", messages=chat(60))
    page.goto("/web/s/further")
    with page.expect_response("**/earlier*"):
        page.locator(".earlier a").click()
    wait_until_idle(page)
    first = page.locator("#history article").first.get_attribute("id")
    assert page.locator("#history article").count() == 100
    fold(page, "Fold at once")
    wait_for(page, "Folded:")
    page.locator(".fold-line.holds").wait_for()
    assert page.locator("#history article").first.get_attribute("id") == first
    service.post("/sessions/further/undo")
    page.locator(".fold-line.undone").wait_for()
    assert page.locator("#history article").first.get_attribute("id") == first
    assert page.locator("#history article").count() == 100
    with page.expect_response("**/earlier*"):
        page.locator(".earlier a").click()
    wait_until_idle(page)
    assert page.locator("#history article").count() == 122
    assert page.locator(".earlier").count() == 0


def test_a_button_clicked_twice_does_what_it_says_once(page, service):
    service.begin("twice", messages=chat(20))
    page.goto("/web/s/twice")
    asked = []
    page.route("**/do/compact", lambda route: asked.append(route))
    menu(page, "Fold")
    page.get_by_role("button", name="Fold at once").dblclick()
    asked[0].continue_()
    wait_for(page, "Folded:")
    wait_until_idle(page)
    assert len(asked) == 1
    page.locator("#said").get_by_role("button", name="Undo").wait_for()


def test_a_button_pressed_by_a_key_or_what_stands_for_it_is_held_afterwards(page, service):
    service.begin("keys", messages=chat(20))
    page.goto("/web/s/keys")
    fold(page, "Fold at once")
    wait_for(page, "Folded:")
    held = page.locator(":focus")
    for pressed, then in (("Undo fold", "Redo fold"), ("Redo fold", "Undo fold")):
        page.locator("#lifts").get_by_role("button", name=pressed).press("Enter")
        page.locator("#lifts :focus", has_text=then).wait_for()
    page.locator(".fold-line.holds").get_by_role("button", name="Undo").press("Enter")
    page.locator(".fold-line.undone:focus").wait_for()
    assert held.count() == 1


def send(page, session, *events):
    """Send a message, and answer with these events of a turn."""
    page.goto(f"/web/s/{session}")
    lines = [f"event: {name}\ndata: {data}\n\n" for name, data in (*events, ("done", '{"how": "done"}'))]
    page.route("**/say", lambda route: route.fulfill(body="".join(lines), content_type="text/event-stream"))
    page.locator("#words").fill("Is it so?")
    page.get_by_role("button", name="Send").click()


def test_a_turn_says_that_code_wrote_a_summary_because_the_model_failed(page, service):
    service.begin("failed", messages=[user("Hello."), reply("Hello.")])
    failure = '{"kind": "summary_failed", "text": "m wrote no summary: it is down"}'
    send(page, "failed", ("warning", failure), ("compaction.committed", "{}"))
    wait_for(page, "Older messages were folded. Code wrote the summary: m wrote no summary: it is down.")


def test_of_several_replies_of_a_turn_only_the_last_is_shown_as_it_is_written(page, service):
    service.begin("steps", messages=[user("Hello."), reply("Hello.")])
    deltas = [("message.delta", f'{{"text": "{text}"}}') for text in ("I look.", "It is so.")]
    send(page, "steps", deltas[0], ("message", "{}"), deltas[1])
    wait_for(page, "Answered.")
    assert page.locator("#reply .text").text_content() == "It is so."
