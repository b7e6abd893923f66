"""The server of the application: it listens, says where, and ends what is under way before it stops.

Its connections end where the head of a request does not come in time.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final, cast

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp
from uvicorn.config import LOGGING_CONFIG
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from foldline.config import ServeSettings
from foldline.errors import InputError
from foldline.service.access_log import JSON_LOG
from foldline.service.app import make_app

GRACE_SECONDS: Final = 5.0  # that a stop may take besides what it waits for
HEAD_SECONDS: Final = 20.0  # that a client may take to send the head of a request
IDLE_SECONDS: Final = 1.0  # that an idle client may take to send another request when its worker stops


def end_in_time(number: int, serve: ServeSettings) -> None:
    """End the process within its limit after a signal, also where a thread of it does not.

    What is under way has `drain` seconds, what goes on in the background as many again.
    """
    last = threading.Timer(2 * math.ceil(serve.drain) + GRACE_SECONDS, os._exit, (128 + number,))
    last.daemon = True
    last.start()


class HttpServer(uvicorn.Server):
    """Serves the application at a socket; `ready` is called with its URL once it answers."""

    def __init__(self, serve: ServeSettings, ready: Callable[[str], None]) -> None:
        self._tell = ready
        self._serve_settings = serve
        super().__init__(configured(serve, make_app(serve), PatientConnection))
        self._held = listen(serve)

    @property
    def url(self) -> str:
        """Where it listens."""
        return url_of(self._held)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal ends it."""
        with self._held:
            super().run(sockets or [self._held])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at a signal."""
        super().handle_exit(sig, frame)
        end_in_time(sig, self._serve_settings)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say that it has."""
        await super().startup(sockets)
        if self.started:
            self._tell(self.url)


def configured(
    serve: ServeSettings, app: ASGIApp | Callable[[], ASGIApp], connection: type[PatientConnection]
) -> uvicorn.Config:
    """Return how uvicorn is to serve an application, or what a function makes in a worker."""
    # an answer's headers are the model's: none are added
    return uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType]
        factory=not isinstance(app, Starlette),
        http=connection,
        ws="none",
        log_level="warning",
        log_config=JSON_LOG if serve.log == "json" else LOGGING_CONFIG,
        access_log=False,
        reset_contextvars=True,  # else requests of one connection are spans inside its first one
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,  # longer than a balancer keeps a connection: who closes first must not be us
        timeout_graceful_shutdown=math.ceil(serve.drain),
    )


def url_of(held: socket.socket) -> str:
    """Return where a socket listens."""
    host, port = held.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen(serve: ServeSettings) -> socket.socket:
    """Return the socket that was asked for; raises InputError where it is taken."""
    # the protocol must be named: by it asyncio sees that small answers must not wait for an ACK (40 ms)
    family = socket.AF_INET6 if ":" in serve.host else socket.AF_INET
    held = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((serve.host, serve.port))
    except OSError as error:
        held.close()
        raise InputError(
            f"cannot listen at {serve.host}:{serve.port}: {error.strerror}; --port 0 takes a free one"
        ) from error
    return held


# ---- its connections


class PatientConnection(H11Protocol):
    """An HTTP/1.1 connection. uvicorn bounds the pause between two requests, this the time of a head."""

    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read; a head that is whole ends the wait for it."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._end_wait()
        elif self._head is None and self.cycle.response_complete:  # there was a head: else it is waited for
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the wait."""
        self._end_wait()
        super().connection_lost(exc)

    def _should_upgrade(self) -> bool:
        return False  # there are no WebSockets here; uvicorn would warn of each that is asked for

    def _wait(self) -> None:
        self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _end_wait(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class YieldingConnection(PatientConnection):
    """A connection of one of several workers: when that stops, its client goes on at another one.

    A client that is idle may send at any moment, so that closing at once would break its request. It is
    answered, and told to close; who stays idle for a while is left.
    """

    _stopping = False

    def shutdown(self) -> None:
        """End what is under way, and wait for the next request of an idle client."""
        self._stopping = True
        if self._idle:
            self.loop.call_later(IDLE_SECONDS, self._leave)
        else:
            self._close_behind()

    def data_received(self, data: bytes) -> None:
        """Read; behind this request the client is to go elsewhere."""
        super().data_received(data)
        if self._stopping and not self._idle:
            self._close_behind()

    @property
    def _idle(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        return cycle is None or cycle.response_complete

    def _close_behind(self) -> None:
        if self.cycle.keep_alive:
            self.cycle.keep_alive = False
            headers = self.cycle.scope["headers"]
            self.cycle.scope["headers"] = [*headers, CLOSE_HEADER]  # the answer then has it too

    def _leave(self) -> None:
        if self._idle and not self.transport.is_closing():
            super().shutdown()
