"""The service on the loopback, in front of a scripted model."""

from __future__ import annotations

import contextlib
import threading

import msgspec

from foldline.config import ServeSettings
from foldline.service.server import HttpServer
from foldline.testing import Scripted, serve_in_thread


@contextlib.contextmanager
def served(**changes):
    """Serve the service in a thread of its own; yields its URL."""
    ready = threading.Event()
    urls = []

    def tell(url):
        urls.append(url)
        ready.set()

    given = {"summaries": "offline", "drain": 5.0, **changes}
    server = HttpServer(msgspec.structs.replace(ServeSettings(port=0), **given), tell)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield urls[0]
    finally:
        server.should_exit = True
        thread.join(20)


@contextlib.contextmanager
def in_front_of(answers, *, window=60_000, store="memory://", fold_at=None, **changes):
    """Serve a scripted model, and the service in front of it; yields the service's URL and the model.

    `fold_at` is the window that the service is told, where it is not the model's.
    """
    window = fold_at or window
    model = answers if isinstance(answers, Scripted) else Scripted(answers, window=window)
    with (
        serve_in_thread(model) as url,
        served(openai_upstream=url, anthropic_upstream=url, window=window, store=store, **changes) as at,
    ):
        yield at, model
