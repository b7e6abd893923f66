from __future__ import annotations

import json
import sys

import pytest
from pyarrow import parquet
from tests.cli.calling import coding_session, talk, write_lines

from foldline.lab.batch import MANIFEST

pytestmark = pytest.mark.slow


@pytest.fixture
def archive(tmp_path):
    folder = tmp_path / "archive"
    (folder / "deep").mkdir(parents=True)
    write_lines(folder / "long.jsonl", coding_session())
    write_lines(folder / "deep" / "short.jsonl", talk("one", "two", "three"))
    return folder


@pytest.fixture
def batch(foldline, archive, tmp_path):
    return lambda *args, what="fold": foldline(
        "batch", what, archive, "-o", tmp_path / "out", "--jobs", 1, *args
    )


def test_an_archive_is_folded_as_each_file_alone(foldline, batch, archive, tmp_path):
    done = batch("--target", 2000)
    assert done.code == 0
    assert "2 files: 2 done now" in done.out
    assert "1 folded, the others already fit" in done.out
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
    refused = batch("--target", 1500)
    assert refused.code == 2
    assert "has a batch with other options (target)" in refused.err
    assert batch("--target", 1500, "--force", "--json").json["totals"]["done"] == 2


def test_json_holds_a_row_for_each_file(batch):
    found = batch("--target", 2000, "--json").json
    row = next(one for one in found["files"] if one["folded"])
    assert row["output"] == "long.jsonl"
    assert row["tokens_after"] <= 2000 < row["tokens_before"]
    assert found["totals"]["tokens_before"] == sum(one["tokens_before"] for one in found["files"])


def test_replays_are_those_of_each_file_alone(foldline, batch, archive, tmp_path):
    wanted = ("--policy", "none,foldline", "--window", 5000)
    done = batch(*wanted, "--json", what="replay")
    assert done.code == 0
    written = json.loads((tmp_path / "out" / "long.json").read_bytes())
    alone = foldline("replay", archive / "long.jsonl", *wanted, "--json").json["sessions"][0]
    for one in alone["policies"]:
        one["totals"].pop("compaction_seconds")
    assert written["policies"] == alone["policies"]
    sums = {one["policy"]: one["totals"] for one in done.json["policies"]}
    assert sums["foldline"]["input_tokens"] < sums["none"]["input_tokens"]
    assert "2 sessions" in batch(*wanted, what="replay").out


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
    assert MANIFEST in done.out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["fold", "ARCHIVE"], "--out"),
        (["fold", "ARCHIVE", "-o", "out", "--rounds", "3"], "--rounds"),
        (["replay", "ARCHIVE", "-o", "out", "--target", "9"], "--target"),
        (["fold", "ARCHIVE", "-o", "out", "--policy", "nobody"], "no policy 'nobody'"),
        (["fold", "ARCHIVE", "-o", "out", "--ray", "sessions/"], "not the address of a cluster"),
        (["fold", "ARCHIVE", "-o", "ARCHIVE"], "no session file: those in"),
        (["fold", "ARCHIVE", "-o", "ARCHIVE/long.jsonl"], "is a file"),
        (["replay", "-", "-o", "out"], "standard input"),
        (["fold", "ARCHIVE/*.txt", "-o", "out"], "no file matches this pattern"),
        (["fold", "sqlite:///gone.db", "-o", "out"], "there is no store"),
        (["fold", "memory://", "-o", "out"], "belongs to one process"),
        (["fold", "redis://here", "-o", "out"], "unknown store URL"),
        (["fold", "postgresql://me:secret@host/db", "-o", "out"], "set PGPASSWORD"),
        (["fold", "postgresql://host/db?password=secret", "-o", "out"], "set PGPASSWORD"),
    ],
)
def test_what_is_wrong_is_told(foldline, archive, args, words):
    done = foldline("batch", *(arg.replace("ARCHIVE", str(archive)) for arg in args))
    assert done.code == 2
    assert words in done.err
    assert "secret" not in done.err


def test_a_pattern_that_no_shell_has_seen_stands_for_its_files(foldline, archive, tmp_path):
    done = foldline("batch", "fold", archive / "**" / "*.jsonl", "-o", tmp_path / "out", "--json").json
    assert [one["output"] for one in done["files"]] == ["short.jsonl", "long.jsonl"]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    return (
        f"sqlite:///{tmp_path}/s.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    )


def test_a_store_stands_for_its_sessions(foldline, archive, tmp_path, store):
    for file, name in (("long.jsonl", "team/long"), ("deep/short.jsonl", "short")):
        foldline("import", archive / file, "--id", name, "--store", store)
    foldline("export", "team/long", "--store", store, "--format", "jsonl", "-o", tmp_path / "own.jsonl")

    def batch(what, *args):
        return foldline(
            "batch", what, store, "-o", tmp_path / what, "--window", 5000, "--jobs", 1, "--json", *args
        )

    done = batch("fold").json
    assert [(one["file"], one["output"], one["state"]) for one in done["files"]] == [
        (f"{store}#team/long", "team_long.jsonl", "done"),
        (f"{store}#short", "short.jsonl", "done"),
    ]
    foldline("compact", tmp_path / "own.jsonl", "--window", 5000, "-o", tmp_path / "alone.jsonl")
    assert (tmp_path / "fold" / "team_long.jsonl").read_bytes() == (tmp_path / "alone.jsonl").read_bytes()
    more = write_lines(tmp_path / "more.jsonl", talk("one", "two", "three", "four"))
    foldline("import", more, "--id", "short", "--store", store)
    assert [one["state"] for one in batch("fold").json["files"]] == ["earlier", "done"]
    wanted = ("--policy", "foldline", "--no-retention")
    replayed = batch("replay", *wanted).json["policies"][0]["totals"]
    alone = foldline("replay", tmp_path / "own.jsonl", *wanted, "--window", 5000, "--json").json
    assert replayed["compactions"] == alone["sessions"][0]["policies"][0]["totals"]["compactions"] > 0
    report = json.loads((tmp_path / "replay" / "team_long.json").read_bytes())
    assert report["session"] == f"{store}#team/long"


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_table_has_a_row_a_session_and_an_error_with_its_remedy(batch, archive, tmp_path):
    (archive / "bad.jsonl").write_bytes(b"\x00\x01")
    assert batch("--target", 2000).code == 1
    bad, short, long = rows(tmp_path / "out" / "results.jsonl")
    assert (bad["state"], bad["tokens_after"]) == ("failed", None)
    assert "bad.jsonl" in bad["error"]
    assert (short["output"], short["folded"]) == ("deep/short.jsonl", False)
    assert (long["state"], long["folded"], long["error"]) == ("ok", True, None)
    assert long["tokens_after"] <= 2000
    assert json.loads(long["receipt"])["tokens_after"] == long["tokens_after"]


def test_the_table_of_a_replay_has_a_row_for_each_session_and_policy(batch, tmp_path):
    batch("--policy", "none", "--policy", "pi,foldline", "--window", 5000, what="replay")
    told = rows(tmp_path / "out" / "results.jsonl")
    assert [one["policy"] for one in told] == ["none", "pi", "foldline"] * 2
    assert told[5]["input_tokens"] < told[3]["input_tokens"]
    assert told[5]["compactions"] > 0 == told[3]["compactions"]
    assert {one["window"] for one in told} == {5000}
    assert {"handle", "far_bound", "steps"} < set(told[5])


def test_parquet_holds_what_json_lines_do(batch, tmp_path):
    wanted = ("--policy", "none", "--policy", "pi,foldline", "--window", 5000)
    batch(*wanted, what="replay")
    batch(*wanted, "--format", "parquet", what="replay")
    told = rows(tmp_path / "out" / "results.jsonl")
    assert parquet.read_table(tmp_path / "out" / "results.parquet").to_pylist() == told


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--target", 2000], "2 done now"),
        (["--ray=local"], "--ray needs Ray: pip install 'foldline[ray]'"),
        (["--format", "parquet"], "pip install 'foldline[parquet]'"),
    ],
)
def test_an_extra_is_named_only_where_it_is_asked_for(batch, monkeypatch, args, words):
    for name in ("ray", "pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    done = batch(*args)
    assert words in done.out + done.err


def test_a_session_that_takes_too_long_is_named_and_the_rest_is_done(batch, archive):
    write_lines(archive / "huge.jsonl", coding_session(3000))
    done = batch("--target", 2000, "--timeout", "0.2")
    assert done.code == 1
    assert "huge.jsonl: stopped after 0.2 seconds: allow more with --timeout" in done.err
