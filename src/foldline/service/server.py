"""The HTTP server: listens, reports its URL, and finishes running requests before it stops.

It closes a connection on which the head of a request arrives too slowly.
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

GRACE_SECONDS: Final = 5.0  # for a stop, beyond the drain time
HEAD_SECONDS: Final = 20.0  # for a client to send the head of a request
IDLE_SECONDS: Final = 1.0  # for an idle client to send a request while its worker stops


def end_in_time(number: int, serve: ServeSettings) -> None:
    """End the process within a time limit after a signal, even if one of its threads hangs.

    Running requests have `drain` seconds, background work as many again.
    """
    timer = threading.Timer(2 * math.ceil(serve.drain) + GRACE_SECONDS, os._exit, (128 + number,))
    timer.daemon = True
    timer.start()


class HttpServer(uvicorn.Server):
    """Serves the application; `ready` is called with its URL once it accepts requests."""

    def __init__(self, serve: ServeSettings, ready: Callable[[str], None]) -> None:
        self._on_ready = ready
        self._serve_settings = serve
        super().__init__(uvicorn_config(serve, make_app(serve), PatientConnection))
        self._socket = listen(serve)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal ends it."""
        with self._socket:
            super().run(sockets or [self._socket])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at a signal."""
        super().handle_exit(sig, frame)
        end_in_time(sig, self._serve_settings)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and report the URL."""
        await super().startup(sockets)
        if self.started:
            self._on_ready(url_of(self._socket))


def uvicorn_config(
    serve: ServeSettings, app: ASGIApp | Callable[[], ASGIApp], connection: type[PatientConnection]
) -> uvicorn.Config:
    """Return uvicorn's configuration for an application, or for a function that creates it in a worker."""
    # responses have the model's headers: none are added
    return uvicorn.Config(
        app,  # pyright: ignore[reportArgumentType]
        factory=not isinstance(app, Starlette),
        http=connection,
        ws="none",
        log_level="warning",
        log_config=JSON_LOG if serve.log == "json" else LOGGING_CONFIG,
        access_log=False,
        reset_contextvars=True,  # otherwise later requests of a connection are spans inside its first
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,  # longer than load balancers keep a connection: they must close first
        timeout_graceful_shutdown=math.ceil(serve.drain),
    )


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def listen(serve: ServeSettings) -> socket.socket:
    """Return a socket bound to the configured address; raises InputError if that is taken."""
    # asyncio sets TCP_NODELAY only if the protocol is given; without it small responses wait 40 ms for an ACK
    family = socket.AF_INET6 if ":" in serve.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((serve.host, serve.port))
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen at {serve.host}:{serve.port}: {error.strerror}; use --port 0 for a free port"
        ) from error
    return listener


# ---- connections


class PatientConnection(H11Protocol):
    """An HTTP/1.1 connection that limits the time for a request's head; uvicorn limits the idle time."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of the first head."""
        super().connection_made(transport)
        self._start_timeout()

    def data_received(self, data: bytes) -> None:
        """Read; a complete head cancels its timeout."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._cancel_timeout()
        elif self._head_timer is None and self.cycle.response_complete:  # the next head has begun
            self._start_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
        self._cancel_timeout()
        super().connection_lost(exc)

    def _should_upgrade(self) -> bool:
        return False  # there are no WebSockets; uvicorn would log a warning for each attempt

    def _start_timeout(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _cancel_timeout(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class YieldingConnection(PatientConnection):
    """A connection of one of several workers: when the worker stops, the client moves to another one.

    An idle client may send at any moment, and closing at once would break its request. That request is
    answered with `Connection: close`; a client that stays idle is disconnected.
    """

    _stopping = False

    def shutdown(self) -> None:
        """Finish the running request, or wait a moment for one of an idle client."""
        self._stopping = True
        if self._idle:
            self.loop.call_later(IDLE_SECONDS, self._leave)
        else:
            self._close_after_response()

    def data_received(self, data: bytes) -> None:
        """Read; after a request that arrives during the stop, close the connection."""
        super().data_received(data)
        if self._stopping and not self._idle:
            self._close_after_response()

    @property
    def _idle(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        return cycle is None or cycle.response_complete

    def _close_after_response(self) -> None:
        if self.cycle.keep_alive:
            self.cycle.keep_alive = False
            headers = self.cycle.scope["headers"]
            self.cycle.scope["headers"] = [*headers, CLOSE_HEADER]  # the response then has it too

    def _leave(self) -> None:
        if self._idle and not self.transport.is_closing():
            super().shutdown()
