"""A batch that is killed half way, and started again."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from contextlib import closing

import pytest
from tests.cli.calling import coding_session, write_lines
from tests.e2e.running import COMMAND, environment, run
from tests.support.waiting import wait_until

from foldline.lab.batch import MANIFEST

pytestmark = pytest.mark.slow

FILES, FIRST = 12, 6  # sessions, and those that are done before it is killed
JOBS = 2


@pytest.fixture
def archive(tmp_path):
    folder = tmp_path / "archive"
    folder.mkdir()
    for n in range(FILES):
        write_lines(folder / f"s{n:02}.jsonl", coding_session(8 + n % 3))
    return folder


def killed_half_way(archive, tmp_path, with_signal):
    """Start the batch, and kill it once the first results are there; return its exit code and what it said.

    The others are pipes meanwhile, which come last, as they have no size, and nobody writes to them: so its
    processes wait there, however fast they are.
    """
    files = sorted(archive.iterdir())
    late = {file: file.read_bytes() for file in files[FIRST:]}
    for file in late:
        file.unlink()
        os.mkfifo(file)
    words = [*COMMAND, "batch", "fold", *map(str, files), "-o", "out", "--target", "2000"]
    words += ["--jobs", str(JOBS)]
    with subprocess.Popen(
        words,
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            wait_until(lambda: process.poll() is not None or finished(tmp_path) == FIRST, 300)
            process.send_signal(with_signal)
            assert process.stderr
            told = process.stderr.read().decode()  # its processes hold this too: all of them have ended
        finally:
            process.kill()
    for file, raw in late.items():
        file.unlink()
        file.write_bytes(raw)
    return process.returncode, told


def finished(tmp_path):
    return len(list((tmp_path / "out").glob("s*.jsonl")))


def kept(tmp_path):
    """How many the manifest names."""
    with closing(sqlite3.connect(tmp_path / "out" / MANIFEST)) as database:
        return database.execute("select count(*) from done").fetchone()[0]


def test_what_was_done_when_it_was_killed_is_not_done_again(archive, tmp_path):
    code, _ = killed_half_way(archive, tmp_path, signal.SIGKILL)
    assert code == -signal.SIGKILL
    before = kept(tmp_path)
    assert FIRST - JOBS <= before <= FIRST  # each process may have written one that is not recorded
    done = run(tmp_path, "batch", "fold", "archive", "-o", "out", "--target", 2000, "--jobs", 2, "--json")
    assert done.returncode == 0
    totals = json.loads(done.stdout)["totals"]
    assert (totals["earlier"], totals["done"], totals["failed"]) == (before, FILES - before, 0)
    for name in ("s00.jsonl", f"s{FILES - 1}.jsonl"):
        run(tmp_path, "compact", archive / name, "--target", 2000, "-o", "alone.jsonl")
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "alone.jsonl").read_bytes()


def test_ctrl_c_says_how_to_go_on(archive, tmp_path, ctrl_c):
    code, told = killed_half_way(archive, tmp_path, signal.SIGINT)
    assert code == 130
    assert "run the same command again to continue" in told
    assert "interrupted; finished work is kept" in told
    assert "Traceback" not in told
    again = run(tmp_path, "batch", "fold", "archive", "-o", "out", "--target", 2000, "--json")
    assert json.loads(again.stdout)["totals"]["earlier"] >= FIRST - JOBS
