"""The service on the loopback, in front of a scripted model."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import tempfile
import threading
import time
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from foldline.config import ServeSettings
from foldline.service import rate
from foldline.service.server import HttpServer
from foldline.testing import Answer, Gate, Scripted, serve_in_thread


@contextlib.contextmanager
def run_service(**changes: Any) -> Generator[str]:
    """Run the service in a thread; yield its URL."""
    ready = threading.Event()
    urls = []

    def on_ready(url):
        urls.append(url)
        ready.set()

    settings = {"summaries": "offline", "drain": 60.0, **changes}
    server = HttpServer(msgspec.structs.replace(ServeSettings(port=0), **settings), on_ready)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield urls[0]
    finally:
        server.should_exit = True
        thread.join(120)


WORKERS = contextvars.ContextVar("workers", default=1)  # how many services share each store
SIBLINGS = {}  # URL of the first service -> URLs of all that share its store


@pytest.fixture(autouse=True)
def two_workers():
    """Run two services on one store instead of each one; requests alternate between them."""
    token = WORKERS.set(2)
    yield
    WORKERS.reset(token)


@contextlib.contextmanager
def run_services(*, store="memory://", **changes):
    """Run `WORKERS` services on one store; yield the URL of the first."""
    count = WORKERS.get()
    if count == 1:
        with run_service(store=store, **changes) as url:
            yield url
        return
    with contextlib.ExitStack() as stack:
        if store == "memory://":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            store = f"sqlite:///{folder}/s.db"
        urls = [stack.enter_context(run_service(store=store, **changes)) for _ in range(count)]
        SIBLINGS[urls[0]] = urls
        stack.callback(SIBLINGS.pop, urls[0])  # a later service may be given the same port
        yield urls[0]


def freeze_rate_clock(monkeypatch):
    """Stop the clock of the rate limit: on a slow machine the next request would be allowed again."""
    now = time.time()
    monkeypatch.setattr(rate, "time", SimpleNamespace(time=lambda: now, monotonic=time.monotonic))


class AlternatingClients:
    """HTTP clients of several services over one store: each request goes to the next."""

    def __init__(self, make, url):
        self._all = [make(url) for url in SIBLINGS.get(url, [url])]
        self._next = itertools.cycle(self._all)

    def __getattr__(self, name):
        return getattr(next(self._next), name)

    def close(self):
        for client in self._all:
            client.close()


class Held:
    """Answers that wait for a gate, all or those to requests that `holds` names; the first sets `begun`."""

    def __init__(self, says, holds=lambda asked: True):
        self.begun, self.gate = threading.Event(), Gate()
        self._says, self._holds = says, holds

    def __call__(self, asked):
        text = self._says(asked)
        if not self._holds(asked):
            return text
        self.begun.set()
        return Answer(text=text, wait=self.gate)


@contextlib.contextmanager
def run_gateway(answers, *, window=60_000, store="memory://", fold_at=None, **changes):
    """Serve a scripted model, and the service in front of it; yields the service's URL and the model.

    `fold_at` is the window that the service assumes, if it differs from the model's.
    """
    window = fold_at or window
    model = answers if isinstance(answers, Scripted) else Scripted(answers, window=window)
    with (
        serve_in_thread(model) as url,
        run_services(
            openai_upstream=url,
            anthropic_upstream=url,
            google_upstream=url,
            window=window,
            store=store,
            **changes,
        ) as service_url,
    ):
        yield service_url, model
