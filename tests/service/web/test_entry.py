"""The way in and out: a token with a link behind it, errors as pages, pages made smaller on the way."""

from __future__ import annotations

import gzip
import http.client
import re
from urllib.parse import urlsplit

import pytest
from tests.service.api.client import api, chat, user
from tests.service.web.test_pages import Browser

from foldline.service.web import list_page
from foldline.service.web.page_request import within

TOKEN = "secret-for-pages"


def test_a_link_leads_on_behind_the_token_and_signing_out_forgets_that():
    with api(tokens={TOKEN: "ada"}, headers={"Authorization": f"Bearer {TOKEN}"}) as (client, _):
        client.begin("one", title="The one", messages=[user("Hello.")])
        browser = Browser(client)
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
        browser.http.close()


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


@pytest.fixture
def browser():
    with api() as (client, _):
        made = Browser(client)
        yield made
        made.http.close()


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
