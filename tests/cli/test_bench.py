"""`foldline bench`, as it is called."""

from __future__ import annotations

import json


def test_the_command_prints_and_writes(foldline, tmp_path):
    asked = (
        "--systems",
        "foldline,newest",
        "--measures",
        "valid",
        "--messages",
        80,
        "--window",
        6_000,
        "--jobs",
        1,
    )
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


def test_mistakes_of_the_call(foldline):
    done = foldline("bench", "--measures", "speed")
    assert done.code == 2
    assert "no measure 'speed'" in done.err
