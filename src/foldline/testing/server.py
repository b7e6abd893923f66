"""An HTTP server on the loopback for scripted models, for the providers' own SDKs.

Routes, each with or without `/v1` before it: `/chat/completions`, `/responses`, `/messages`,
`/messages/count_tokens`, `/models`; `/v1beta/models/NAME:generateContent` and `:streamGenerateContent`.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import threading
from collections.abc import AsyncGenerator, Generator
from typing import Any, Final, cast

from foldline.core.log.codec import decode, encode
from foldline.dialects.values import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES
from foldline.testing.answers import Refusal
from foldline.testing.apis import api_of
from foldline.testing.apis.openai import CREATED
from foldline.testing.connection import Connection, Received
from foldline.testing.request import Asked
from foldline.testing.wire import Served, Wire

_ROUTES: Final = {
    "/chat/completions": OPENAI_CHAT,
    "/responses": OPENAI_RESPONSES,
    "/messages": ANTHROPIC,
    "/messages/count_tokens": ANTHROPIC,
}
_GENERATE: Final = re.compile(
    r"/v1beta/models/(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent)"
)
_BACKLOG: Final = 128
_START_SECONDS: Final = 30.0  # for the server in a thread


class Server:
    """Serve one model on a free port of the loopback. `api_key` None: a key is required, but any is valid."""

    def __init__(self, served: Served, *, api_key: str | None = None) -> None:
        self.url = ""
        self._served = served
        self._api_key = api_key
        self._listening: asyncio.Task[None] | None = None
        self._stopping = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Listen; return the URL, without a path."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
        listener.setblocking(False)
        self._address = listener.getsockname()
        self.url = f"http://127.0.0.1:{self._address[1]}"
        self._stopping = False
        self._listening = asyncio.create_task(self._listen(listener))
        return self.url

    async def stop(self) -> None:
        """Stop listening and end every connection, even one that waits."""
        if self._listening is None:
            return
        self._stopping = True
        with contextlib.suppress(OSError), socket.socket() as last:  # OSError: the listener has failed
            last.setblocking(False)
            await asyncio.get_running_loop().sock_connect(last, self._address)
            await asyncio.wait([self._listening])
        self._listening = None
        await asyncio.sleep(0)  # a task that has not begun could not close its socket
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self, listener: socket.socket) -> None:
        """Accept connections, each in its own task, until `stop` connects.

        `asyncio.start_server`, and an accept that is cancelled, can lose a connection while they stop.
        """
        with listener:
            while True:
                accepted, _ = await asyncio.get_running_loop().sock_accept(listener)
                if self._stopping:
                    accepted.close()
                    return
                task = asyncio.create_task(self._serve(accepted))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _serve(self, accepted: socket.socket) -> None:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or each reply waits 40 ms for an ACK
        reader, writer = await asyncio.open_connection(sock=accepted)
        await Connection(reader, writer, self._handle).run()

    async def _handle(self, received: Received) -> Wire:
        gemini = _GENERATE.fullmatch(received.path)
        path = received.path.removeprefix("/v1")
        anthropic = "anthropic-version" in received.headers
        if path == "/models" and received.method == "GET":
            return _json(_models(self._served.models, anthropic))
        dialect = GEMINI if gemini else _ROUTES.get(path)
        if dialect is None:
            return api_of(ANTHROPIC if anthropic else OPENAI_CHAT).refuse(Refusal(404))
        if received.method != "POST":
            return api_of(dialect).refuse(Refusal(405, "Method Not Allowed"))
        if (refusal := self._check_headers(received, dialect)) is not None:
            return api_of(dialect).refuse(refusal)
        try:
            body = decode(received.body)
        except (ValueError, RecursionError) as error:
            return self._served.refuse_body(dialect, str(error))
        if not isinstance(body, dict):
            return self._served.refuse_body(dialect, "expected an object")
        request = Asked(dialect, cast("dict[str, Any]", body), received.headers)
        if gemini:
            request.named, request.streamed = gemini["model"], gemini["method"].startswith("stream")
        if path.endswith("count_tokens"):
            return _json({"input_tokens": self._served.count(request)})
        return await self._served.answer(request)

    def _check_headers(self, received: Received, dialect: str) -> Refusal | None:
        """Return the refusal of a request without the right key or Anthropic's version; else None."""
        bearer = received.headers.get("authorization", "").removeprefix("Bearer ")
        header = {ANTHROPIC: "x-api-key", GEMINI: "x-goog-api-key"}.get(dialect, "")
        key = received.headers.get(header) or bearer
        if not key:
            return Refusal(401, api_of(dialect).no_key)
        if self._api_key is not None and key != self._api_key:
            return Refusal(401)
        if dialect == ANTHROPIC and "anthropic-version" not in received.headers:
            return Refusal(400, "anthropic-version: header is required")
        return None


@contextlib.asynccontextmanager
async def serve(served: Served, *, api_key: str | None = None) -> AsyncGenerator[str]:
    """Serve a model on the loopback while the block runs; yields the URL.

    The URL is the `base_url` of the SDKs. The port, all connections and tasks are closed with the block.
    """
    server = Server(served, api_key=api_key)
    url = await server.start()
    try:
        yield url
    finally:
        await server.stop()


@contextlib.contextmanager
def serve_in_thread(served: Served, *, api_key: str | None = None) -> Generator[str]:
    """Serve a model as `serve` does, but in a thread: for clients that are not async, and other processes."""
    server = Server(served, api_key=api_key)
    ready = threading.Event()
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def run() -> None:
        stop = asyncio.Event()
        await server.start()
        loops.append((asyncio.get_running_loop(), stop))
        ready.set()
        await stop.wait()
        await server.stop()

    thread = threading.Thread(target=asyncio.run, args=(run(),), name="foldline-testing", daemon=True)
    thread.start()
    if not ready.wait(_START_SECONDS):
        raise RuntimeError("the test server did not start")
    try:
        yield server.url
    finally:
        loop, stop = loops[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def _json(body: Any) -> Wire:
    return Wire(200, (encode(body),))


def _models(names: tuple[str, ...], anthropic: bool) -> dict[str, Any]:
    if anthropic:
        data = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
            for name in names
        ]
        ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
        return {"data": data, "has_more": False, **ends}
    data = [{"id": name, "object": "model", "created": CREATED, "owned_by": "foldline"} for name in names]
    return {"object": "list", "data": data}
