"""How many requests a worker takes at once: beyond that it says so, rather than being slow for all."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from foldline.service.metrics import Metrics
from foldline.service.problems import problem

ALWAYS: Final = ("/health", "/ready", "/metrics")
SECONDS: Final = 1  # after which a client that was refused may try again


class AdmissionLimit:
    """Refuses requests (503, Retry-After) while `most` are under way; whether it lives is always told."""

    def __init__(self, app: ASGIApp, *, most: int, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._most = most
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] in ALWAYS:
            await self._app(scope, receive, send)
            return
        if self._under_way >= self._most:
            self._metrics.refused()
            refused = problem(503, "too much at once", f"{self._most} requests are under way: try again soon")
            refused.headers["retry-after"] = str(SECONDS)
            await refused(scope, receive, send)
            return
        self._under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way -= 1
