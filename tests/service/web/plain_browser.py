"""A browser without scripts, and what htmx asks for in one with them."""

from __future__ import annotations

import contextlib
import html
import re
from http.cookiejar import CookieJar

import httpx2
from tests.service.api.client import api
from tests.service.served import AlternatingClients

POLICY = "content-security-policy"
PART = {"hx-request": "true"}
TOKEN = "secret-for-pages"


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

    def part(self, path, **query):
        """A part of a page, as htmx asks for it."""
        return self.http.get(path, params=query or None, headers=PART)

    def again(self, page, name):
        """The part of a page with this id, as htmx asks for it again."""
        return self.part(html.unescape(re.search(rf'id="{name}"[^>]* hx-get="([^"]+)"', page)[1]))

    def press(self, path, **fields):
        """What a button is answered where htmx sends its form."""
        return self.http.post(path, data=fields, headers=PART)


@contextlib.contextmanager
def browsing(*replies, token=None, tenant="default", **settings):
    """A browser of a service of its own, which wants a `token` if one is given."""
    if token:
        settings |= {"tokens": {token: tenant}, "headers": {"Authorization": f"Bearer {token}"}}
    with api(*replies, **settings) as (client, _):
        browser = Browser(client)
        with contextlib.closing(browser.http):
            yield browser
