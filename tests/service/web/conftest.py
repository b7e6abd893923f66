"""One Chromium, one browser without scripts, and one service of each for each file of these tests."""

from __future__ import annotations

import pytest
from tests.service.api.client import FILLER, api
from tests.service.web.browser import ARGUMENTS, SECONDS, find_chromium, open_page
from tests.service.web.plain_browser import browsing

from foldline.service.web import savings_book
from foldline.testing import Scripted


@pytest.fixture(autouse=True)
def patient_pages(monkeypatch):
    """Pages wait for figures until they are read: a person is shown those that are there after 0.3 s."""
    monkeypatch.setattr(savings_book, "PATIENCE", SECONDS)


@pytest.fixture(
    scope="module"
)  # Playwright's loop runs as long as it lives: other tests have loops of their own
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: make setup installs it")
    if (program := find_chromium()) is None:
        pytest.skip("no Chromium: apt install chromium")
    playwright.expect.set_options(timeout=SECONDS * 1_000)
    with playwright.sync_playwright() as made:
        browser = made.chromium.launch(executable_path=program, args=ARGUMENTS, timeout=3 * SECONDS * 1_000)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A client of a service over SQLite, whose model answers `Reply N.`"""
    store = f"sqlite:///{tmp_path_factory.mktemp('web') / 's.db'}"
    with api(Scripted(_answer, window=60_000), store=store, rate=0) as (client, _):
        yield client


def _answer(asked):
    return f"Reply {asked.index}. " + FILLER


@pytest.fixture
def page(chromium, service):
    with open_page(chromium, service.url) as page:
        yield page


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    store = f"sqlite:///{tmp_path_factory.mktemp('pages') / 's.db'}"
    with browsing(store=store) as browser:
        yield browser


@pytest.fixture
def browser(shared):
    """A browser; what its test has begun, and chosen, is deleted behind it."""
    yield shared
    shared.http.cookies.clear()
    for one in shared.client.get("/sessions", limit=100).json()["sessions"]:
        shared.client.send("DELETE", f"/sessions/{one['id']}")
