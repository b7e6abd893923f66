"""The service on the loopback, in front of a scripted model."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading

import msgspec
import uvicorn

from foldline.config import ServeSettings, settings
from foldline.service.app import Service
from foldline.testing import Scripted, serve_in_thread


@contextlib.contextmanager
def served(**changes):
    """Serve the service in a thread of its own; yields its URL and the service."""
    known = settings()
    service = Service(msgspec.structs.replace(ServeSettings(), **{"summaries": "offline", **changes}), known)
    held = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(service.app(), log_level="warning", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[held])), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        threading.Event().wait(0.01)
    try:
        yield f"http://127.0.0.1:{held.getsockname()[1]}", service
    finally:
        server.should_exit = True
        thread.join(20)
        held.close()


@contextlib.contextmanager
def in_front_of(answers, *, window=60_000, store="memory://", **changes):
    """Serve a scripted model, and the service in front of it; yields the service's URL and the model."""
    model = answers if isinstance(answers, Scripted) else Scripted(answers, window=window)
    with (
        serve_in_thread(model) as url,
        served(openai_upstream=url, anthropic_upstream=url, window=window, store=store, **changes) as (at, _),
    ):
        yield at, model
