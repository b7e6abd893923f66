"""How many requests a worker takes: at once, and of each tenant in a minute. Beyond that it says so."""

from __future__ import annotations

import time
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


class RateLimit:
    """A token bucket: so many requests a minute, and as many at once; 0 is no limit."""

    def __init__(self, per_minute: float) -> None:
        self._most = per_minute
        self._left = max(1.0, per_minute)
        self._at = time.monotonic()

    def wait(self) -> float:
        """Count one; return how many seconds too early it is, 0 where it may be done."""
        if not self._most:
            return 0.0
        now = time.monotonic()
        grown = self._left + (now - self._at) * self._most / 60.0
        self._left, self._at = min(max(1.0, self._most), grown), now
        if self._left < 1.0:
            return (1.0 - self._left) * 60.0 / self._most
        self._left -= 1.0
        return 0.0
