"""The server of the application: it listens, says where, and ends what is under way before it stops."""

from __future__ import annotations

import math
import os
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp
from uvicorn.config import LOGGING_CONFIG

from foldline.config import ServeSettings
from foldline.errors import InputError
from foldline.service.access_log import JSON_LOG
from foldline.service.app import make_app
from foldline.service.connection import PatientConnection

GRACE_SECONDS: Final = 5.0  # that a stop may take besides what it waits for


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
