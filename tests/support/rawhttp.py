"""A loopback HTTP server that answers with exactly the bytes that a test gives it, and sees connections close."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

RESET = "reset"  # in an answer: the connection is torn down here
STALL = "stall"  # in an answer: nothing more comes until the client goes

Answer = Sequence[bytes | str]


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Server:
    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)  # a request has been read
    left: asyncio.Event = field(default_factory=asyncio.Event)  # a client went while an answer was stalled

    @property
    def body(self) -> Any:
        return self.requests[-1].body


def json_answer(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    return text_answer(json.dumps(body), status, {"content-type": "application/json", **(headers or {})})


def text_answer(text: str, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    raw = text.encode()
    lines = {"content-length": str(len(raw)), **(headers or {})}
    head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return [head.encode() + b"\r\n" + raw]


def sse_answer(events: Sequence[Any], *tail: str) -> Answer:
    """A stream of events; it ends well unless `tail` says RESET or STALL. A string is sent as the data it is."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    return [head, *(_event(event) for event in events), *tail]


def _event(event: Any) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if isinstance(event.get("type"), str) else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


@asynccontextmanager
async def raw_server(*answers: Answer) -> AsyncIterator[Server]:
    """Serve the answers in order, one a request; the last one again when there are more requests."""
    server = Server(answers=list(answers))
    busy: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        busy.add(task)
        try:
            await _serve(server, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went, or the test is over
        finally:
            busy.discard(task)
            writer.close()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listening.close()
        for task in list(busy):
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        await listening.wait_closed()


async def _serve(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        server.requests.append(Request(head[0].split(" ")[1], headers, json.loads(body or b"null")))
        server.came.set()
        answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        for piece in answer:
            if piece == RESET:
                writer.transport.abort()
                return
            if piece == STALL:
                await reader.read()  # returns when the client goes
                server.left.set()
                return
            writer.write(piece)
            await writer.drain()
        if b"text/event-stream" in answer[0]:
            return
