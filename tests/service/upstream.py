"""An upstream that answers with bytes prepared for each request, and keeps what it was sent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading

import msgspec
import uvicorn
from tests.service.served import run_service

JSON = [("content-type", "application/json")]


class Prepared(msgspec.Struct):
    """What one request is answered with."""

    status: int = 200
    headers: list[tuple[str, str]] = []
    pieces: list[bytes] = []


class Received(msgspec.Struct):
    """What came: the path with its query, headers in order, the body."""

    path: str
    headers: list[tuple[str, str]]
    body: bytes


class Upstream:
    """An ASGI application."""

    def __init__(self):
        self.prepared = {}
        self.received = {}

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        case = dict(headers).get("x-case", "")
        query = scope["query_string"].decode()
        path = scope["raw_path"].decode() + (f"?{query}" if query else "")
        self.received.setdefault(case, []).append(Received(path, headers, body))
        answer = self.prepared[case]
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": raw})
        for piece in answer.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


@contextlib.contextmanager
def upstream(app=None):
    """Serve an upstream; yields its URL and itself."""
    app = app or Upstream()
    held = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        log_level="warning",
        lifespan="off",
        server_header=False,
        date_header=False,
        timeout_keep_alive=600,  # a connection that is closed just when it is used breaks its request
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[held])), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        threading.Event().wait(0.01)
    try:
        yield f"http://127.0.0.1:{held.getsockname()[1]}", app
    finally:
        server.should_exit = True
        thread.join(60)
        held.close()


@contextlib.contextmanager
def served_upstream(**changes):
    """Serve an upstream with the service in front of it; yields the service's URL and the upstream."""
    with (
        upstream() as (url, model),
        run_service(openai_upstream=url, anthropic_upstream=url, **changes) as at,
    ):
        yield at, model
