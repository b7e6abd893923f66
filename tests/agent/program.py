"""Run `foldline` as a separate process against a scripted model over HTTP."""

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
    """Serve a scripted model; yield it and the `--model` value that selects it."""
    model = answers if isinstance(answers, Scripted) else Scripted(answers, window=window, **more)
    with serve_in_thread(model) as url:
        yield model, f"openai-compatible:scripted@{url}/v1"


def environment(folder, **more):
    """Return the environment of a user with an empty home and no API keys."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_TOKEN"))}
    home = folder / "home"
    home.mkdir(exist_ok=True, parents=True)
    return {**kept, "HOME": str(home), "NO_COLOR": "1", "COLUMNS": "100", **more}


def run_foldline(folder, *words, stdin="", timeout=_PATIENCE, **more):
    """Run a command to its end in the folder `work`."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return forked.run(words, folder=work, env=environment(folder, **more), stdin=stdin, timeout=timeout)


def settings(folder, text):
    """Write the user settings of the home that `environment` makes in a folder; return the file."""
    file = folder / "home/.foldline/settings.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


class Rpc:
    """A running `foldline rpc`; `kill_programs` in conftest.py kills it when the test ends."""

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
            raise AssertionError(f"the program ended: {self.process.stderr.read()}")
        event = json.loads(line)
        self.seen.append(event)
        return event

    def wait(self, kind, **fields):
        """Read until an event of that type with these fields arrives; return it."""
        while True:
            event = self.next()
            if event["type"] == kind and all(event.get(key) == value for key, value in fields.items()):
                return event

    def ask(self, **request):
        """Send a request and return its response's data, or the error's text."""
        self.send(**request)
        while True:
            event = self.next()
            if event["type"] == "response" and event["command"] == request["type"]:
                return event["data"]
            if event["type"] == "error":
                assert set(event) == {"type", "error"}
                return event["error"]

    def prompt(self, message):
        """Send a prompt and wait for the end of its turn; return the `turn` event."""
        self.send(type="prompt", message=message)
        return self.wait("turn")

    def close(self):
        """Close the input; return the exit code and stderr."""
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
