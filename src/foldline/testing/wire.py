"""The response to one request: delay, status, headers, body in pieces, and how the connection ends."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future, InvalidStateError
from typing import Any, Literal, Protocol

import msgspec

from foldline.core.log.codec import encode
from foldline.testing.request import Asked

JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"


class Gate:
    """Hold an answer back until `open` is called, from any thread; it then stays open.

    `Answer(text="Done.", wait=gate)` keeps a model busy as long as the test needs, on any machine.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened = False
        self._waiting: list[Future[None]] = []

    def open(self) -> None:
        """Release the answer."""
        with self._lock:
            self._opened = True
        for waiter in self._waiting:
            with contextlib.suppress(InvalidStateError):  # it was cancelled
                waiter.set_result(None)

    async def passed(self) -> None:
        """Wait until the gate is open."""
        waiter: Future[None] = Future()
        with self._lock:
            if self._opened:
                return
            self._waiting.append(waiter)
        await asyncio.wrap_future(waiter)


async def wait_for(wait: float | Gate) -> None:
    """Wait for a number of seconds, or for a gate."""
    if isinstance(wait, Gate):
        await wait.passed()
    else:
        await asyncio.sleep(wait)


class Wire(msgspec.Struct, frozen=True):
    """A response as bytes. `pieces` are sent one by one, for a stream one event each.

    `wait` is the delay before the first byte: seconds, or until a gate opens. Before the piece at index
    `stall_at` the server sends nothing for `stall` seconds. `end`: the connection is kept ("whole"), closed
    before the body is complete ("close"), or reset ("reset"). `length` is the content-length of a body that
    is not a stream, if it differs from the pieces. `reply` is the whole reply as one body; None for an error.
    """

    status: int
    pieces: tuple[bytes, ...]
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    wait: float | Gate = 0.0
    stall_at: int | None = None
    stall: float = 0.0
    end: Literal["whole", "close", "reset"] = "whole"
    length: int | None = None
    reply: dict[str, Any] | None = None

    @property
    def streamed(self) -> bool:
        """Whether the body is a stream of events."""
        return self.content_type == EVENTS


class Served(Protocol):
    """A model that can be served: `answer` returns the response to a request."""

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that exist."""
        ...

    async def answer(self, request: Asked) -> Wire:
        """Answer a request; never raises for what a provider would refuse."""
        ...

    def refuse_body(self, dialect: str, text: str) -> Wire:
        """Answer a request whose body is not a JSON object."""
        ...

    def count(self, request: Asked) -> int:
        """Count the input of a request in the model's tokens."""
        ...


def sse(data: Any, event: str | None = None) -> bytes:
    """Write one server-sent event; `data` is a JSON value, or text that is sent unchanged."""
    text = data.encode() if isinstance(data, str) else encode(data)
    name = f"event: {event}\n".encode() if event else b""
    return name + b"data: " + text + b"\n\n"
