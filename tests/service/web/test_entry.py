"""The way in and out: a token with a link behind it, errors as pages, pages made smaller on the way."""

from __future__ import annotations

import gzip
import html
import http.client
import re
from urllib.parse import urlencode, urlsplit

import pytest
from tests.service.api.client import chat, reply, user
from tests.service.web.plain_browser import TOKEN, browsing

import foldline
from foldline.service.web import list_page
from foldline.service.web.page_request import within


def test_a_link_leads_on_behind_the_token_and_signing_out_forgets_that():
    with browsing(token=TOKEN, tenant="ada") as browser:
        browser.client.begin("one", title="The one", messages=[user("Hello.")])
        page = browser.get("/web/s/one", panel="rules")
        assert "Enter a token" in page
        to = re.search(r'name="to" value="([^"]+)"', page)[1]
        assert to == "/web/s/one?panel=rules"
        page = browser.post("/web/login", 401, token="wrong-and-long-enough", to=to)
        assert f'value="{to}"' in page
        page = browser.post("/web/login", token=TOKEN, to=to)
        assert "The one" in page
        assert "Standing rules" in page
        assert '<span class="quiet" title="Whose sessions these are">ada</span>' in page
        assert "Enter a token" in browser.post("/web/logout")
        assert "Enter a token" in browser.get("/web/s/one")
        assert not list(browser.http.cookies.jar)


def test_a_token_is_typed_once():
    with browsing(token=TOKEN) as browser:
        assert "Enter a token" in browser.get("/")
        assert "token is not valid" in browser.post("/web/login", 401, token="wrong")
        assert "Sessions" in browser.post("/web/login", token=TOKEN)
        cookie = next(iter(browser.http.cookies.jar))
        assert (cookie.path, cookie.has_nonstandard_attr("HttpOnly")) == ("/web", True)
        assert "no sessions yet" in browser.get("/web/")


@pytest.mark.parametrize("name", ["a/b", "50%2F", ".", "..", ".b", "a b?c#d", "ж"])
def test_a_session_that_a_program_named_anyhow_is_opened(tmp_path, name):
    store = f"sqlite:///{tmp_path / 's.db'}"
    with foldline.open_sync(store, name) as session:
        session.append(user("Look at the sea."), reply("Yes."))
    with browsing(store=store, token=TOKEN) as browser:
        browser.post("/web/login", token=TOKEN)
        place = re.search(r'href="(/web/s/[^"]+)"', browser.get("/web/"))[1]
        assert "Look at the sea." in browser.get(place)
        page = browser.post(f"{place}/do/rename", title="A title")
        assert "A title" in page
        assert f'action="{place}/preview"' in page
        browser.http.cookies.clear()
        login = browser.get(place)  # asks for the token, and leads on
        to = html.unescape(re.search(r'name="to" value="([^"]*)"', login)[1])
        assert "Look at the sea." in browser.post("/web/login", token=TOKEN, to=to)


def test_a_login_leads_to_a_long_address_and_says_what_is_wrong_with_a_long_token():
    with browsing(token=TOKEN) as browser:
        place = "/web/?" + urlencode({"f": "/" * 1_300})
        assert len(place) > 3_900
        to = html.unescape(re.search(r'name="to" value="([^"]*)"', browser.get(place))[1])
        assert to == place
        assert "Sessions" in browser.post("/web/login", token=TOKEN, to=to)
        assert "token is not valid" in browser.post("/web/login", 401, token="x" * 20_000)
        browser.http.cookies.clear()
        assert 'name="to" value="/web/"' in browser.get(f"{place}{'x' * 4_000}")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "//evil.example/web/",
        "https://evil.example/web/",
        "/web/login?to=/web/login",
        "/web/\\evil",
        "/api/x",
    ],
)
def test_a_token_leads_to_no_other_place(address):
    assert within(address) == "/web/"


def test_what_is_not_there_and_what_fails_is_a_page(browser, monkeypatch, caplog):
    assert "Sign out" not in browser.get("/web/")  # there is no token
    assert "There is nothing at /web/nowhere/&lt;b&gt;." in browser.get("/web/nowhere/<b>", 404)
    assert "No such page" in browser.get("/web/s/nobody/do/undo", 404)
    assert "No such session" in browser.get("/web/s/nobody", 404)
    assert "No such panel" in browser.get("/web/s/nobody/panel/none", 404)
    broken = browser.http.post(
        "/web/import", content=b"no parts", headers={"content-type": "multipart/form-data"}
    )
    assert broken.status_code == 400
    assert "It cannot be read" in broken.text

    async def fails(*_):
        raise RuntimeError("a defect")

    monkeypatch.setattr(list_page, "rows_of", fails)
    page = browser.get("/web/", 500)
    assert "Internal error" in page
    assert "a defect" not in page
    assert "a page failed: GET /web/" in caplog.text


def test_pages_are_made_smaller_and_the_stream_of_a_turn_is_not(browser):
    browser.client.begin("one", messages=chat(20))
    at = urlsplit(browser.client.url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
    sizes = {}
    for accepts in ("gzip", "identity"):
        connection.request("GET", "/web/s/one", headers={"accept-encoding": accepts})
        answer = connection.getresponse()
        raw = answer.read()
        sizes[accepts] = len(raw)
        assert answer.headers.get("content-encoding") == (accepts if accepts == "gzip" else None)
        assert answer.headers["vary"] == "Accept-Encoding"
        assert b"Question 19." in (gzip.decompress(raw) if accepts == "gzip" else raw)
    assert sizes["gzip"] * 4 < sizes["identity"]
    for method, path, body in (
        ("GET", "/api/sessions/one/history", None),
        ("POST", "/web/s/one/say", "text=Hello"),
    ):
        headers = {
            "accept-encoding": "gzip",
            "accept": "text/event-stream" if body else "*/*",
            "content-type": "application/x-www-form-urlencoded",
        }
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        assert answer.headers.get("content-encoding") is None
        assert answer.read()
    connection.close()
