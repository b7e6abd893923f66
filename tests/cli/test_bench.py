"""`foldline bench`, as it is called."""

from __future__ import annotations

import json

from tests.cli.calling import SESSION

from foldline.testing import Scripted, serve_in_thread


def test_the_command_prints_and_writes(foldline, tmp_path):
    asked = "--systems foldline,newest --measures valid --messages 80 --window 6000 --jobs 1".split()
    target, figures = tmp_path / "bench.html", tmp_path / "bench.json"
    done = foldline("bench", *asked, "--html", target, "--json", figures)
    assert done.code == 0
    assert done.out.startswith("foldline is first, alone or with others, in all ")
    assert "result-missing" in done.out
    assert target.read_text().startswith("<!doctype html>")
    document = json.loads(figures.read_text())
    assert [one["name"] for one in document["rows"]] == ["foldline", "newest"]
    assert document["rows"][0]["cells"]["valid"]["figures"]["invalid"] == 0
    assert foldline("bench", *asked, "--json").json["measures"] == ["valid"]


def test_a_session_that_cannot_be_read_is_left_out_and_none_is_refused(foldline, tmp_path):
    asked = ("--systems", "foldline,newest", "--measures", "retention", "--jobs", 1, "--json")
    bad = tmp_path / "bad.json"
    bad.write_text('{"not": "a session"}')
    done = foldline("bench", *asked, "--sessions", bad)
    assert done.code == 2
    assert "none of the sessions could be read" in done.err
    assert foldline("bench", *asked, "--sessions", tmp_path / "none.jsonl").code == 2
    (tmp_path / "good.jsonl").write_bytes(SESSION.read_bytes())
    done = foldline("bench", *asked, "--sessions", tmp_path)
    assert done.code == 0
    assert f"left out: {bad}" in done.err
    assert all(row["cells"]["retention"]["figures"]["cuts"] for row in done.json["rows"])


def test_where_nothing_is_compared_it_says_so(foldline, tmp_path):
    short = tmp_path / "short.json"
    short.write_text('[{"role": "user", "content": "Go."}]')
    done = foldline("bench", "--systems", "foldline", "--measures", "retention", "--sessions", short)
    assert done.code == 1
    assert done.out.startswith("Nothing could be compared")


def test_a_model_is_asked_for_decisions(foldline):
    with serve_in_thread(Scripted(lambda _: "I am done.")) as url:
        model = f"openai-compatible:scripted@{url}/v1"
        asked = ("--systems", "everything", "--measures", "retention", "--model", model, "--jobs", 1)
        done = foldline("bench", *asked, "--sessions", SESSION, "--json")
    assert done.json["measures"] == ["retention", "decision"]
    figures = done.json["rows"][0]["cells"]["decision"]["figures"]
    assert figures["decisions"] > 5
    assert figures["tool"] == figures["refused"] == 0


def test_a_decision_needs_a_model_and_sessions(foldline):
    for words, told in (
        (("--measures", "decision", "--sessions", SESSION), "decision needs --model"),
        (("--model", "openai-compatible:m@http://127.0.0.1:9/v1"), "decision needs --sessions"),
        (("--model", "gpt", "--sessions", SESSION), "unknown provider 'gpt'"),
        (("--model", "anthropic:claude-sonnet-4-5", "--sessions", SESSION), "anthropic"),
    ):
        done = foldline("bench", "--systems", "newest", *words)
        assert done.code == 2
        assert told in done.err


def test_mistakes_of_the_call(foldline):
    done = foldline("bench", "--measures", "speed")
    assert done.code == 2
    assert "no measure 'speed'" in done.err
