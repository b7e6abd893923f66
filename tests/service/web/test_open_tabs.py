"""A tab that stays open: the way back, a service that is gone, a token that ended, a session that was deleted."""

from __future__ import annotations

import re

import pytest
from tests.service.api.client import api, chat, reply, user
from tests.service.web.browser import message, open_page, panel, say, wait_for
from tests.service.web.plain_browser import PART, browsing

from foldline.service.web.page_request import STOP_ASKING

TOKEN = "secret-for-open-tabs"


@pytest.mark.slow
def test_the_way_back_from_a_panel_leads_to_a_whole_page(page, service):
    service.begin("back", messages=chat(3))
    page.goto("/web/s/back")
    panel(page, "Rules")
    page.wait_for_url("**/s/back?panel=rules")
    panel(page, "Tokens")
    page.go_back()
    page.wait_for_url("**/s/back?panel=rules")
    page.locator("#panel", has_text="Standing rules").wait_for()
    page.go_back()
    page.locator("#panel", has_text="What is sent to the model").wait_for()
    message(page, "Question 2.").wait_for()
    assert page.locator("#words").is_visible()


@pytest.mark.slow
def test_a_message_that_a_service_does_not_take_stands_in_its_field_again(chromium, service):
    service.begin("down", messages=[user("Hello."), reply("Hello.")])
    with open_page(chromium, service.url, refused=True) as page:
        page.goto("/web/s/down")
        page.route("**/say", lambda route: route.abort())
        page.locator("#words").fill("Lost?")
        page.get_by_role("button", name="Send").click()
        wait_for(page, "It was not sent: the service does not answer.")
        assert page.locator("#words").input_value() == "Lost?"
        page.unroute("**/say")
        page.route("**/say", lambda route: route.fulfill(body="<h1>Sign in</h1>", content_type="text/html"))
        page.get_by_role("button", name="Send").click()
        wait_for(page, "It was not sent: the service answers 200.")
        assert page.locator("#words").input_value() == "Lost?"


@pytest.mark.slow
def test_a_token_that_ended_is_asked_for_and_what_was_written_is_there_behind_it(chromium):
    given = {"tokens": {TOKEN: "ada"}, "headers": {"Authorization": f"Bearer {TOKEN}"}}
    with api(**given) as (client, _), open_page(chromium, client.url, refused=True) as page:
        client.begin("ends", messages=[user("Hello."), reply("Hello.")])

        def sign_in():
            page.get_by_label("Token").fill(TOKEN)
            page.get_by_role("button", name="Sign in").click()

        page.goto("/web/s/ends?panel=rules")
        sign_in()
        message(page, "Hello.").wait_for()
        page.route("**/since*", lambda route: route.fulfill(status=204))  # the turn is the first to ask
        page.context.clear_cookies()
        page.locator("#words").fill("Lost?")
        page.get_by_role("button", name="Send").click()
        wait_for(page, "Your message was not sent: sign in again.")
        assert page.locator("#words").input_value() == "Lost?"
        page.unroute("**/since*")
        page.locator("h1", has_text="Sign in").wait_for()
        sign_in()
        page.wait_for_url("**/s/ends?panel=rules")
        message(page, "Hello.").wait_for()
        assert page.locator("#words").input_value() == "Lost?"
        say(page, "Lost?")


def test_a_part_of_a_page_without_a_token_leads_the_page_to_the_form_for_one():
    with browsing(token=TOKEN, tenant="ada") as browser:

        def asked(page):
            found = browser.http.get(
                "/web/s/one/since", params={"leaf": "x"}, headers={**PART, "hx-current-url": page}
            )
            assert (found.status_code, found.text) == (401, "")
            return found.headers["hx-redirect"]

        assert (
            asked(f"{browser.client.url}/web/s/one?panel=rules")
            == "/web/login?to=%2Fweb%2Fs%2Fone%3Fpanel%3Drules"
        )
        assert asked(f"{browser.client.url}/web/") == asked("http://[") == asked("") == "/web/login"
        assert 'name="to" value="/web/"' in browser.get(asked("https://evil.example//evil.example/"))


@pytest.mark.slow
def test_what_is_answered_on_an_older_page_is_led_to(page, service):
    service.begin("older", messages=chat(60))
    page.goto("/web/s/older")
    older = page.locator(".earlier a").get_attribute("href")
    page.goto(older)
    page.locator(".later").wait_for()
    page.locator("#words").fill("And from here?")
    page.get_by_role("button", name="Send").click()
    page.wait_for_url(re.compile("/s/older$"))
    page.locator("#said", has_text="Answered.").wait_for()
    message(page, "And from here?").wait_for()
    page.locator("#history article.assistant", has_text="Reply ").wait_for()
    assert page.locator("#words").input_value() == ""


@pytest.mark.slow
def test_a_page_of_a_session_that_is_deleted_says_so(page, service):
    service.begin("gone", messages=[user("Hello."), reply("Hello.")])
    page.goto("/web/s/gone")
    message(page, "Hello.").wait_for()
    service.send("DELETE", "/sessions/gone")
    page.locator("[role=alert]", has_text="This session was deleted.").wait_for()
    message(page, "Hello.").wait_for()


def test_a_part_of_a_deleted_session_tells_it_and_an_action_fails(browser):
    found = browser.part("/web/s/nobody/since")
    assert found.status_code == STOP_ASKING
    assert "This session was deleted." in found.text
    assert "script-src 'self'" in found.headers["content-security-policy"]
    assert browser.press("/web/s/nobody/preview").status_code == 404
