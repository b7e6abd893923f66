"""Replays in a browser, each by the command itself in a process of its own."""

from __future__ import annotations

import csv
import os
import re
import tempfile
import time
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from tests.service.api.client import api
from tests.service.web.plain_browser import Browser, browsing

from foldline.files import safe_name
from foldline.service.jobs import replays
from foldline.service.jobs.replay_records import ReplayRecords

pytestmark = pytest.mark.slow

RESEARCH = Path("examples/research.jsonl")
LONG = Path("examples/coop-trace.jsonl")
ALL = ("none", "foldline", "coop", "pi", "codex", "opencode", "claude-code", "klaude", "moldable", "gencode")
SECONDS = 300


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The temporary folder of the service alone, which draws nothing: that takes seconds."""
    monkeypatch.setattr(replays, "find_spec", lambda name: None)
    made = tmp_path / "tmp"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


@pytest.fixture
def browser():
    with browsing() as made:
        yield made


def begin(browser, file=RESEARCH, name=None, policies=("none", "pi"), **fields):
    """Post the form; return where it leads."""
    found = browser.http.post(
        "/web/replay",
        data={"policy": list(policies), "window": "", "session": "", **fields},
        files={"file": (name or file.name, file.read_bytes())} if file else {"file": ("", b"")},
        follow_redirects=False,
    )
    assert found.status_code == 303, found.text
    return found.headers["location"]


def wait(browser, place):
    """Reload until it has ended; return the pages."""
    pages = [browser.get(place)]
    until = time.monotonic() + SECONDS
    while "Reload" in pages[-1]:
        assert time.monotonic() < until
        time.sleep(0.05)
        pages.append(browser.get(place))
    return pages


def table(browser, place):
    """The rows of the table as it is saved."""
    found = browser.http.get(f"{place}/table.csv")
    return list(csv.DictReader(StringIO(found.text)))


def processes(folder):
    """The processes that have a file of the folder in their command."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        try:
            command = (one / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in command:
            found.append(one.name)
    return found


def running(folder):
    until = time.monotonic() + SECONDS
    while not (found := processes(folder)):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


class Done(msgspec.Struct):
    """A replay that has ended: who asked for it, another tenant, its place, its last page, where it was kept."""

    mine: Browser
    other: Browser
    place: str
    page: str
    folder: Path


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A file with a hostile name, replayed once for all the tests that look at what came of it."""
    folder = tmp_path_factory.mktemp("replays")
    given = {
        "tokens": {"one-who-may-ask-here": "a", "two-who-may-ask-here": "b"},
        "headers": {"Authorization": "Bearer one-who-may-ask-here"},
    }
    with pytest.MonkeyPatch.context() as patch, api(**given) as (client, _):
        patch.setattr(tempfile, "tempdir", str(folder))
        mine, other = Browser(client), Browser(client)
        mine.http.headers["foldline-token"] = "one-who-may-ask-here"
        other.http.headers["foldline-token"] = "two-who-may-ask-here"
        place = begin(mine, name=HOSTILE, policies=("codex", "none"), window="8,000")
        yield Done(mine, other, place, wait(mine, place)[-1], folder)
        mine.http.close()
        other.http.close()


def test_a_file_is_replayed_compared_and_saved(done):
    assert "in a window of 8,000 tokens" in done.page
    assert re.findall(r'<tr><th scope="row">([^<]+)', done.page) == ["none", "codex"]
    http, place = done.mine.http, done.place
    rows = table(done.mine, place)
    assert [row["policy"] for row in rows] == ["none", "codex"]
    whole, sent = (int(row["input_tokens"]) for row in rows)
    assert int(rows[1]["compactions"]) > 0
    assert sent < whole
    assert float(rows[1]["less"]) == round(1 - sent / whole, 4)
    assert f"{sent:,}" in done.page
    (session,) = http.get(f"{place}/report.json").json()["sessions"]
    assert session["session"] == HOSTILE
    assert session["policies"][1]["turns"][0]["contexts"]
    svg, png = (http.get(f"{place}/plot.{kind}") for kind in ("svg", "png"))
    assert (svg.headers["content-type"], png.headers["content-type"]) == ("image/svg+xml", "image/png")
    assert b"window 8,000 tokens" in svg.content
    assert png.content.startswith(b"\x89PNG")
    assert str(done.folder) not in done.page + svg.text
    assert not list(done.folder.rglob("given"))  # what was sent is not kept
    assert place in done.mine.get("/web/replay")


HOSTILE = "<img src=x onerror=alert(1)>'$\\frac{$ --policy=all; ..\\foldline.toml"


def test_a_hostile_name_is_text(done):
    for page in (done.page, done.mine.get("/web/replay")):
        assert "<img src=x" not in page
        assert "&lt;img src=x" in page
    found = done.mine.http.get(f"{done.place}/plot.svg")
    assert "<img" not in found.text
    assert re.fullmatch(r'attachment; filename="[A-Za-z0-9._-]+"', found.headers["content-disposition"])
    assert all(safe_name(one) for one in ("", "..", "--json", "-", "/etc/passwd", "данные", "a" * 999))


def test_another_tenant_sees_nothing_of_it(done):
    for path in ("", "/table.csv", "/report.json", "/plot.svg"):
        done.mine.http.get(f"{done.place}{path}").raise_for_status()
        done.other.get(f"{done.place}{path}", 404)
    done.other.post(f"{done.place}/drop")
    assert done.place not in done.other.get("/web/replay")
    assert "Done in" in done.mine.get(done.place)


def test_a_kept_session_is_replayed_and_its_retention_measured(browser, folder):
    page = browser.get("/web/replay", window="60000")
    assert 'name="window" value="60000"' in page
    assert re.findall(r'value="([^"]+)" checked', page) == ["none", "foldline", "pi"]
    raw = Path("examples/session.jsonl").read_bytes()
    name = browser.client.send("POST", "/imports", content=raw).json()["session"]
    browser.client.send("PATCH", f"/sessions/{name}", json={"title": "My <i>session</i>"})
    assert f'href="/web/replay?session={name}&amp;window=60000"' in browser.get(f"/web/s/{name}")
    browser.client.begin("untitled", messages=[{"role": "user", "content": "Paint the shed."}])
    assert f'value="{name}" selected' in browser.get("/web/replay", session=name)
    assert ">Paint the shed. (" in browser.get("/web/replay")  # as the list names it
    place = begin(browser, None, session=name, window="30000", policies=("foldline",))
    page = wait(browser, place)[-1]
    assert "Replay of My &lt;i&gt;session&lt;/i&gt;" in page
    (row,) = table(browser, place)
    assert 0.5 < float(row["steps"]) < 1
    assert f"{float(row['steps']):.2f}" in page
    assert "2 of 2</td>" in page
    assert not row["less"]  # there is nothing to compare it with
    browser.post(f"{place}/drop")
    browser.get(place, 404)
    assert not list(folder.rglob("report.json"))


def test_of_a_file_no_other_session_is_offered_again_and_no_report_that_was_too_large(browser, monkeypatch):
    browser.client.begin("other", messages=[{"role": "user", "content": "Hello."}])
    page = wait(browser, begin(browser, session="other"))[-1]
    assert "?session=other" not in page
    assert "every turn as JSON" in page

    async def too_large(*_):
        return False

    monkeypatch.setattr(ReplayRecords, "keep_file", too_large)
    page = wait(browser, begin(browser))[-1]
    assert "every turn as JSON" not in page
    assert "table as CSV" in page


def test_the_page_says_how_far_it_is(browser):
    place = begin(browser, LONG, policies=("none", "foldline"))
    part = browser.part(place).text
    assert "<html" not in part
    assert f'hx-get="{place}" hx-trigger="every 1s"' in part
    held = re.findall(r"<(?:a|button)\b[^>]*>", part)
    assert held
    assert all(" id=" in one for one in held)  # so that the key stays there
    pages = wait(browser, place)
    shown = {int(one) for page in pages for one in re.findall(r'<progress [^>]*value="(\d+)"', page)}
    assert len(shown) > 1
    assert all('<meta http-equiv="refresh"' in page for page in pages[:-1])
    assert "http-equiv" not in pages[-1]
    assert "Done in" in pages[-1]
    browser.post(f"{place}/drop")
    assert browser.part(place).status_code == 286  # asks no more


def test_what_a_replay_lacks_is_told_drawings_without_their_extra_and_folds_in_a_large_window(
    browser, monkeypatch
):
    monkeypatch.setattr(replays, "find_spec", lambda name: None)
    place = begin(browser, policies=("codex",), window="8000")
    page = wait(browser, place)[-1]
    assert "Done in" in page
    assert "No policy folded" not in page
    assert "pip install &#39;foldline[plots]&#39;" in page or "pip install 'foldline[plots]'" in page
    assert "plot.svg" not in page
    assert browser.http.get(f"{place}/plot.svg").status_code == 404
    page = wait(browser, begin(browser, policies=("pi",)))[-1]
    assert "No policy folded: the session stayed far below this window." in page


def test_a_file_that_cannot_be_read_is_told_as_the_command_tells_it(browser, tmp_path, folder):
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{bad")
    page = wait(browser, begin(browser, broken))[-1]
    assert "broken.jsonl:1: not a session file" in page
    assert str(folder) not in page
    assert not list(folder.rglob("given"))


def test_what_cannot_be_begun_is_told_with_the_form_as_it_was(browser):
    def refused(**fields):
        given = {"policy": ["codex"], "window": "9000", **fields}
        page = browser.post("/web/replay", 400, files={"file": ("", b"")}, **given)
        assert 'value="codex" checked' in page or given["policy"] != ["codex"]
        return page

    assert "Choose a file or a session first" in refused()
    assert "Tick a policy first" in refused(policy=[])
    assert "There is no policy" in refused(policy=["/etc/x.toml"])
    assert "A window is a number" in refused(window="many")
    browser.post("/web/replay", 404, files={"file": ("", b"")}, policy="pi", session="nobody")


def test_a_file_larger_than_may_be_is_refused(tmp_path):
    with browsing(max_body=20_000) as browser:
        files = {"file": ("x.jsonl", RESEARCH.read_bytes())}
        assert "20,000 bytes at most" in browser.post("/web/replay", 413, files=files, policy="pi")


def test_only_so_many_at_once_and_so_many_kept(browser, folder, monkeypatch):
    monkeypatch.setattr(replays, "KEPT", 1)
    places = [begin(browser, LONG, policies=ALL) for _ in range(replays.UNDER_WAY)]
    running(folder)
    assert "Wait until one of your replays has ended" in browser.post(
        "/web/replay", 400, files={"file": ("x", b"{}")}, policy="pi"
    )
    assert len(processes(folder)) <= replays.AT_ONCE
    assert "Waiting for another" in browser.get(places[-1])
    for place in places:
        browser.post(f"{place}/drop")
    assert not processes(folder)
    ended = [begin(browser, name="bad.jsonl", file=Path("README.md")) for _ in range(2)]
    until = time.monotonic() + SECONDS
    while len(found := [one for one in ended if browser.http.get(one).status_code == 200]) > 1:
        assert time.monotonic() < until
        time.sleep(0.05)
    wait(browser, found[0])
    assert not [one for one in folder.glob("*/*") if one.is_dir()]  # what was found is in the store


def test_one_that_takes_too_long_is_stopped(folder, monkeypatch):
    monkeypatch.setattr(replays, "SECONDS", 0.2)
    with browsing() as browser:
        page = wait(browser, begin(browser, LONG, policies=ALL))[-1]
        assert "it took longer than" in page
        assert not processes(folder)


def test_the_service_takes_its_replays_along(folder):
    with browsing() as browser:
        for _ in range(3):
            begin(browser, LONG, policies=ALL)
        assert running(folder)
        assert all(one.stat().st_mode & 0o077 == 0 for one in folder.glob("foldline-replay-*"))
    assert not processes(folder)
    assert not list(folder.iterdir())
