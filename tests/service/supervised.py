"""`foldline serve` as a process of its own, with workers that can be killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import wait_until


class Supervised:
    """The command, once it has told its address."""

    def __init__(self, process, url):
        self.process = process
        self.url = url

    def workers(self):
        """The ids of the worker processes."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [pid for pid in map(int, path.read_text().split()) if _is_worker(pid)]

    def send(self, number, pid=None):
        """Send a signal to the supervisor, or to a worker."""
        os.kill(pid or self.process.pid, number)

    def renewed(self, before, *, count=2):
        """Wait until other workers, as many, are there."""
        wait_until(lambda: len(now := self.workers()) == count and not set(now) & set(before), 300.0)

    def stop(self, number=signal.SIGTERM):
        """End it; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(120)  # a stop may take a minute


def _is_worker(pid):
    with contextlib.suppress(OSError):
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@contextlib.contextmanager
def supervised(home, *options, env=None):
    """Run `foldline serve` with options, its home in a folder of its own."""
    settled = {**os.environ, "HOME": str(home), **(env or {})}
    errors = (home / "errors.txt").open("w+")
    process = subprocess.Popen(
        [sys.executable, "-m", "foldline", "serve", "--port", "0", *options],
        stdout=subprocess.PIPE, stderr=errors, text=True, env=settled, cwd=home,
    )  # fmt: skip
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http"), (home / "errors.txt").read_text()
        yield Supervised(process, url)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        process.stdout.close()
        errors.close()
