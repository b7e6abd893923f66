"""Replays in a browser, each by the command itself in a process of its own."""

from __future__ import annotations

import csv
import os
import re
import tempfile
import time
from io import StringIO
from pathlib import Path

import pytest
from tests.service.api.client import api, talk
from tests.service.web.test_pages import Browser

from foldline.service.web import replays

RESEARCH = Path("examples/research.jsonl")
LONG = Path("examples/coop-trace.jsonl")
ALL = ("none", "foldline", "coop", "pi", "codex", "opencode", "claude-code", "klaude", "moldable", "gencode")
SECONDS = 120


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The temporary folder of the service alone."""
    made = tmp_path / "tmp"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


@pytest.fixture
def browser():
    with api() as (client, _):
        made = Browser(client)
        yield made
        made.http.close()


def begin(browser, file=RESEARCH, name=None, policies=("none", "pi"), **fields):
    """Post the form; return where it leads."""
    found = browser.http.post(
        "/web/replay",
        data={"policy": list(policies), "window": "", "session": "", **fields},
        files={"file": (name or file.name, file.read_bytes())} if file else {"file": ("", b"")},
        headers={"origin": browser.client.url},
        follow_redirects=False,
    )
    assert found.status_code == 303, found.text
    return found.headers["location"]


def wait(browser, place):
    """Look again until it has ended; return the pages."""
    pages = [browser.get(place)]
    until = time.monotonic() + SECONDS
    while "Look again" in pages[-1]:
        assert time.monotonic() < until
        time.sleep(0.05)
        pages.append(browser.get(place))
    return pages


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


def test_a_file_is_replayed_compared_and_saved(browser, folder):
    page = browser.get("/web/replay")
    assert re.findall(r'value="([^"]+)" checked', page) == ["none", "foldline", "pi"]
    place = begin(browser, policies=("codex", "none"), window="8,000")
    page = wait(browser, place)[-1]
    assert "in a window of 8,000 tokens" in page
    assert re.findall(r'<tr><th scope="row">([^<]+)', page) == ["none", "codex"]
    rows = browser.http.get(f"{place}/table.json").json()
    assert [row["policy"] for row in rows] == ["none", "codex"]
    assert rows[1]["compactions"] > 0
    assert rows[1]["input_tokens"] < rows[0]["input_tokens"]
    assert rows[1]["less"] == round(1 - rows[1]["input_tokens"] / rows[0]["input_tokens"], 4)
    assert f"{rows[1]['input_tokens']:,}" in page
    found = browser.http.get(f"{place}/table.csv")
    assert found.headers["content-disposition"] == 'attachment; filename="research.replay.table.csv"'
    lines = list(csv.DictReader(StringIO(found.text)))
    assert [int(line["input_tokens"]) for line in lines] == [row["input_tokens"] for row in rows]
    (session,) = browser.http.get(f"{place}/report.json").json()["sessions"]
    assert session["session"] == "research.jsonl"
    assert session["policies"][1]["turns"][0]["contexts"]
    svg, png = (browser.http.get(f"{place}/plot.{kind}") for kind in ("svg", "png"))
    assert (svg.headers["content-type"], png.headers["content-type"]) == ("image/svg+xml", "image/png")
    assert b"research.jsonl, window 8,000 tokens" in svg.content
    assert png.content.startswith(b"\x89PNG")
    assert str(folder) not in page + found.text + svg.text
    assert not list(folder.rglob("given"))  # what was sent is not kept
    assert place in browser.get("/web/replay")
    browser.post(f"{place}/drop")
    browser.get(place, 404)
    assert not list(folder.rglob("plot.svg"))


def test_a_kept_session_is_replayed(browser):
    browser.client.begin("one", title="My <i>session</i>", messages=talk(10))
    assert 'value="one" selected' in browser.get("/web/replay", session="one")
    page = wait(browser, begin(browser, None, session="one", window="8000"))[-1]
    assert "Done in" in page
    assert "Replay of My &lt;i&gt;session&lt;/i&gt;" in page


def test_retention_is_measured_of_an_imported_session(browser):
    raw = Path("examples/session.jsonl").read_bytes()
    name = browser.client.send("POST", "/imports", content=raw).json()["session"]
    place = begin(browser, None, session=name, window="30000", policies=("foldline",))
    page = wait(browser, place)[-1]
    (row,) = browser.http.get(f"{place}/table.json").json()
    assert 0.5 < row["steps"] < 1
    assert f"{row['steps']:.2f}" in page
    assert "2 of 2</td>" in page
    assert row["less"] is None  # there is nothing to compare it with


def test_the_page_says_how_far_it_is(browser):
    place = begin(browser, LONG, policies=ALL)
    pages = wait(browser, place)
    shown = {int(one) for page in pages for one in re.findall(r'<progress [^>]*value="(\d+)"', page)}
    assert len(shown) > 2
    assert all('<meta http-equiv="refresh"' in page for page in pages[:-1])
    assert "http-equiv" not in pages[-1]
    assert "Done in" in pages[-1]


def test_htmx_gets_the_part_that_changes(browser):
    place = begin(browser, LONG, policies=ALL)
    part = browser.http.get(place, headers={"hx-request": "true"}).text
    assert "<html" not in part
    assert f'hx-get="{place}" hx-trigger="every 1s"' in part
    browser.post(f"{place}/drop")
    assert browser.http.get(place, headers={"hx-request": "true"}).status_code == 286  # asks no more


def test_a_file_that_cannot_be_read_is_told_as_the_command_tells_it(browser, tmp_path, folder):
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{bad")
    page = wait(browser, begin(browser, broken))[-1]
    assert "broken.jsonl:1: not a session file" in page
    assert str(folder) not in page
    assert not list(folder.rglob("given"))


HOSTILE = "<img src=x onerror=alert(1)>'$\\frac{$ --policy=all; ..\\foldline.toml"


def test_a_hostile_name_is_text(browser, folder):
    place = begin(browser, name=HOSTILE)
    for page in (*wait(browser, place), browser.get("/web/replay")):
        assert "<img src=x" not in page
        assert "&lt;img src=x" in page
    assert "Done in" in browser.get(place)
    assert "<img" not in browser.http.get(f"{place}/plot.svg").text
    name = browser.http.get(f"{place}/plot.svg").headers["content-disposition"]
    assert re.fullmatch(r'attachment; filename="[A-Za-z0-9._-]+"', name)
    assert all(
        replays.safe_name(one) for one in ("", "..", "--json", "-", "/etc/passwd", "данные", "a" * 999)
    )


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
    with api(max_body=20_000) as (client, _):
        browser = Browser(client)
        files = {"file": ("x.jsonl", RESEARCH.read_bytes())}
        assert "20,000 bytes at most" in browser.post("/web/replay", 413, files=files, policy="pi")
        browser.http.close()


def test_another_tenant_sees_nothing_of_it():
    with api(tokens={"one": "a", "two": "b"}, headers={"Authorization": "Bearer one"}) as (client, _):
        mine, other = Browser(client), Browser(client)
        mine.http.headers["foldline-token"] = "one"
        other.http.headers["foldline-token"] = "two"
        place = begin(mine)
        wait(mine, place)
        other.get(place, 404)
        other.get(f"{place}/table.csv", 404)
        other.get(f"{place}/report.json", 404)
        other.post(f"{place}/drop")
        assert place not in other.get("/web/replay")
        assert place in mine.get("/web/replay")
        assert "Done in" in mine.get(place)
        mine.http.close()
        other.http.close()


def test_only_so_many_at_once_and_so_many_kept(browser, folder, monkeypatch):
    monkeypatch.setattr(replays, "KEPT", 1)
    places = [begin(browser, LONG, policies=ALL) for _ in range(replays.UNDER_WAY)]
    running(folder)
    assert "Wait until one of yours has ended" in browser.post(
        "/web/replay", 400, files={"file": ("x", b"{}")}, policy="pi"
    )
    assert len(processes(folder)) <= replays.AT_ONCE
    assert "waits until another" in browser.get(places[-1])
    for place in places:
        browser.post(f"{place}/drop")
    assert not processes(folder)
    ended = [begin(browser, name="bad.jsonl", file=Path("README.md")) for _ in range(2)]
    until = time.monotonic() + SECONDS
    while len(found := [one for one in ended if browser.http.get(one).status_code == 200]) > 1:
        assert time.monotonic() < until
        time.sleep(0.05)
    wait(browser, found[0])
    assert len(list(folder.glob("*/*"))) == 1


def test_one_that_takes_too_long_is_stopped(folder, monkeypatch):
    monkeypatch.setattr(replays.ReplayJobs.__init__, "__defaults__", (0.2,))
    with api() as (client, _):
        browser = Browser(client)
        page = wait(browser, begin(browser, LONG, policies=ALL))[-1]
        assert "it took longer than" in page
        assert not processes(folder)
        browser.http.close()


def test_the_service_takes_its_replays_along(folder):
    with api() as (client, _):
        browser = Browser(client)
        for _ in range(3):
            begin(browser, LONG, policies=ALL)
        assert running(folder)
        (root,) = folder.glob("foldline-replays-*")
        assert root.stat().st_mode & 0o077 == 0
        browser.http.close()
    assert not processes(folder)
    assert not list(folder.iterdir())
