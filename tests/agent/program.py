"""`foldline` as a program of its own, talking to a scripted model over HTTP."""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager
from typing import ClassVar

from tests.support import forked

from foldline.testing import Scripted, serve_in_thread

_PATIENCE = 300.0  # seconds after which a program that hangs is killed, so that its test fails


@contextmanager
def serve_model(answers, *, window=60_000, **more):
    """Serve a scripted model; yields it and the name by which the agent finds it."""
    model = answers if isinstance(answers, Scripted) else Scripted(answers, window=window, **more)
    with serve_in_thread(model) as url:
        yield model, f"openai-compatible:scripted@{url}/v1"


def environment(folder, **more):
    """A machine with a home of its own, and no keys."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_TOKEN"))}
    home = folder / "home"
    home.mkdir(exist_ok=True, parents=True)
    return {**kept, "HOME": str(home), "NO_COLOR": "1", "COLUMNS": "100", **more}


def run_foldline(folder, *words, stdin="", timeout=_PATIENCE, **more):
    """Run a command to its end in the folder `work`."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return forked.run(words, folder=work, env=environment(folder, **more), stdin=stdin, timeout=timeout)


class Rpc:
    """A running `foldline rpc`; `reaped` in conftest.py ends it with its test, however that ends."""

    running: ClassVar[list[Rpc]] = []

    def __init__(self, folder, *words, **more):
        work = folder / "work"
        work.mkdir(exist_ok=True)
        self.process = forked.Piped(["rpc", *words], folder=work, env=environment(folder, **more))
        self.running.append(self)
        self.guard = threading.Timer(_PATIENCE, self.process.kill)
        self.guard.start()
        self.seen = []
        self.session = self.wait("session")["id"]

    def send(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def raw(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def next(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"it ended: {self.process.stderr.read()}")
        found = json.loads(line)
        self.seen.append(found)
        return found

    def wait(self, kind, **fields):
        """Read on until an object of that type with these fields comes."""
        while True:
            found = self.next()
            if found["type"] == kind and all(found.get(key) == value for key, value in fields.items()):
                return found

    def ask(self, **request):
        """Send a request and return its response's data, or the error's text."""
        self.send(**request)
        while True:
            found = self.next()
            if found["type"] == "response" and found["command"] == request["type"]:
                return found["data"]
            if found["type"] == "error":
                assert set(found) == {"type", "error"}
                return found["error"]

    def prompt(self, message):
        """Have a prompt worked on to its end; returns how it ended."""
        self.send(type="prompt", message=message)
        return self.wait("turn")

    def close(self):
        """End the input; returns the exit code and what was written to stderr."""
        self.process.stdin.close()
        if not self.process.stdout.closed:
            self.process.stdout.read()
        error = self.process.stderr.read()
        code = self.process.wait()
        self.kill()
        return code, error

    def kill(self):
        self.guard.cancel()
        self.process.close()
