"""A real Ray on this machine: the same results as from processes, and what fails stays one file's matter."""

from __future__ import annotations

import os
import signal
import time
import warnings
from pathlib import Path

import pytest
from tests.cli.calling import coding_session, talk, write_lines

from foldline.errors import InputError
from foldline.lab.runner import Failed, LocalPool, RayCluster

pytestmark = pytest.mark.slow

POLICIES = ("--policy", "none,pi,foldline", "--window", 6000, "--no-retention")


@pytest.fixture(scope="module")
def cluster():
    """One cluster for all tests here, as starting it is what takes long."""
    ray = pytest.importorskip("ray", reason="needs the extra foldline[ray]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own, while it starts
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=100 * 1024 * 1024,
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=False,
        )
    yield RayCluster()
    ray.shutdown()


def unsteady(file: str) -> int:
    if file.endswith("deadly"):
        os.kill(os.getpid(), signal.SIGKILL)
    if file.endswith("bad"):
        raise InputError("not a session file")
    if file.endswith("slow"):
        time.sleep(60)
    return len(Path(file).read_bytes())


def test_what_fails_dies_or_takes_too_long_stops_nothing_else(cluster, tmp_path):
    files = [str(tmp_path / name) for name in ("one", "deadly", "bad", "slow", "two")]
    for file in files:
        Path(file).write_bytes(b"xyz")
    limited = RayCluster(seconds=1)
    found = dict(limited.each(files, unsteady, file=str))
    one, deadly, bad, slow, two = map(found.get, files)
    assert (one, two) == (3, 3)
    assert deadly == Failed(files[1], f"{files[1]}: its process died (out of memory?)")
    assert bad == Failed(files[2], f"{files[2]}: not a session file")
    assert slow == Failed(files[3], f"{files[3]}: stopped after 1 seconds: allow more with --timeout")


def test_ray_two_processes_and_one_write_the_same_bytes(cluster, foldline, tmp_path):
    archive = tmp_path / "archive"
    archive.mkdir()
    for n in range(2):
        write_lines(archive / f"{n}.jsonl", coding_session(20 + 7 * n))
    write_lines(archive / "short.jsonl", talk("one", "two"))
    (archive / "bad.jsonl").write_bytes(b"\x00\x01")
    one, two, ray = ("--jobs", 1), ("--jobs", 2), ("--ray=local",)  # that takes long to start: once is enough
    for what, options, places in (
        ("fold", ("--target", 2000), (one, two, ray)),
        ("replay", POLICIES, (one, two)),
    ):
        written = []
        for n, where in enumerate(places):
            out = tmp_path / f"{what}{n}"
            done = foldline("batch", what, archive, "-o", out, *options, *where)
            assert done.code == 1
            names = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
            written.append(
                {name: (out / name).read_bytes() for name in names if not name.name.startswith("manifest")}
            )
        assert all(one == written[0] for one in written[1:])
        assert "results.jsonl" in {str(name) for name in written[0]}


def test_nothing_to_do_is_done(cluster):
    assert list(cluster.each([], unsteady, file=str)) == list(LocalPool().each([], unsteady, file=str)) == []
