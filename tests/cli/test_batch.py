from __future__ import annotations

import json

import pytest
from tests.cli.calling import talk, work, write_lines

from foldline.lab.manifest import NAME


@pytest.fixture
def archive(tmp_path):
    folder = tmp_path / "archive"
    (folder / "deep").mkdir(parents=True)
    write_lines(folder / "long.jsonl", work())
    write_lines(folder / "deep" / "short.jsonl", talk("one", "two", "three"))
    return folder


@pytest.fixture
def batch(foldline, archive, tmp_path):
    return lambda *args: foldline("batch", archive, "-o", tmp_path / "out", "--jobs", 1, *args)


def test_an_archive_is_folded_as_each_file_alone(foldline, batch, archive, tmp_path):
    done = batch("--target", 2000)
    assert done.code == 0
    assert "2 files: 2 done now" in done.out
    assert "1 were folded" in done.out
    foldline("compact", archive / "long.jsonl", "--target", 2000, "-o", tmp_path / "alone.jsonl")
    assert (tmp_path / "out" / "long.jsonl").read_bytes() == (tmp_path / "alone.jsonl").read_bytes()
    short = [
        json.loads(line) for line in (tmp_path / "out" / "deep" / "short.jsonl").read_text().splitlines()
    ]
    assert short == talk("one", "two", "three")


def test_it_goes_on_where_it_was_left(batch):
    batch("--target", 2000)
    again = batch("--target", 2000, "--json").json
    assert again["totals"]["earlier"] == 2
    assert [one["state"] for one in again["files"]] == ["earlier", "earlier"]
    assert batch("--target", 1500, "--json").json["totals"]["done"] == 2
    assert batch("--target", 1500, "--force", "--json").json["totals"]["done"] == 2


def test_json_holds_a_row_for_each_file(batch):
    found = batch("--target", 2000, "--json").json
    row = next(one for one in found["files"] if one["folded"])
    assert row["output"] == "long.jsonl"
    assert row["tokens_after"] <= 2000 < row["tokens_before"]
    assert found["totals"]["tokens_before"] == sum(one["tokens_before"] for one in found["files"])


def test_replays_are_those_of_each_file_alone(foldline, batch, archive, tmp_path):
    wanted = ("--policy", "none,foldline", "--window", 6000)
    done = batch("--replay", *wanted, "--json")
    assert done.code == 0
    written = json.loads((tmp_path / "out" / "long.json").read_bytes())
    alone = foldline("replay", archive / "long.jsonl", *wanted, "--json").json["sessions"][0]
    for one in (*written["policies"], *alone["policies"]):
        one["totals"].pop("compaction_seconds")
    assert written["policies"] == alone["policies"]
    sums = {one["policy"]: one["totals"] for one in done.json["policies"]}
    assert sums["foldline"]["input_tokens"] < sums["none"]["input_tokens"]
    assert "2 sessions" in batch("--replay", *wanted).out


def test_a_file_that_fails_is_named_and_the_others_go_on(foldline, batch, archive):
    (archive / "bad.jsonl").write_bytes(b"\x00\x01")
    done = batch("--target", 2000, "--json")
    assert done.code == 1
    assert "failed:" in done.err
    assert "1 of 3 files failed" in done.err
    rows = {one["output"]: one for one in done.json["files"]}
    assert rows["bad.jsonl"]["state"] == "failed"
    assert "bad.jsonl" in rows["bad.jsonl"]["error"]
    assert rows["long.jsonl"]["state"] == "done"


def test_progress_is_a_line_a_file_where_there_is_no_terminal(batch):
    done = batch("--target", 2000)
    assert "2 of 2: " in done.err
    assert NAME in done.out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["ARCHIVE"], "--output"),
        (["ARCHIVE", "-o", "out", "--replay", "--target", "9"], "--target folds, and --replay does not"),
        (["ARCHIVE", "-o", "out", "--rounds", "3"], "--rounds is for --replay"),
        (["ARCHIVE", "-o", "out", "--policy", "nobody"], "no policy 'nobody'"),
        (["ARCHIVE", "-o", "ARCHIVE"], "no session file outside of"),
        (["ARCHIVE", "-o", "ARCHIVE/long.jsonl"], "is a file"),
        (["-", "-o", "out"], "standard input"),
    ],
)
def test_what_is_wrong_is_told(foldline, archive, args, words):
    done = foldline("batch", *(arg.replace("ARCHIVE", str(archive)) for arg in args))
    assert done.code == 2
    assert words in done.err
